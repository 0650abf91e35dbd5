// Implementations side by side: claims, histories, and clauses by outcome. Joined last.

const FIELDS = ["text", "document", "level"], CHECKS = ["differ", "changed"];
/** Of how many clauses the sections open by themselves. */
const OPENED = 60;
const outcomeNames = data.outcomes.map(([name]) => name);
const latest = data.implementations.map(({ runs }) => runs.at(-1));
const outcomeOf = (run, { place }) => outcomeNames[run.outcomes[place]];

data.clauses.forEach((clause, place) => {
  clause.place = place;
  clause.differ = new Set(latest.map((run) => run.outcomes[place])).size > 1;
  clause.changed = data.implementations.some(({ runs }) => new Set(runs.map((run) => run.outcomes[place])).size > 1);
  clause.found = `${clause.id}\n${clause.summary}`.toLowerCase();
});

const tallyOf = (members, run) => tally(members.map((clause) => ({ outcome: outcomeOf(run, clause) })));

// ---- implementations

function showImplementations() {
  $("title").textContent = data.implementations.map(({ name }) => name).join(", ");
  $("notes").append(...data.notes.map((note) => make("li", "", note)));
  const badges = [...$("badges").children];
  $("implementations").append(...data.implementations.map(({ name, runs }, at) => {
    const run = latest[at];
    return make("article", `implementation ${run.claim}`,
      make("h2", "", name), badges[at],
      make("p", "reason", make("b", "", run.badge), ` ${run.reason}`),
      make("p", "verdicts", run.verdicts.map(([verdict, number]) => `${number} ${verdict}`).join(", ")),
      ...(runs.length > 1 ? [historyOf(runs)] : []),
      foldedFacts(run),
    );
  }));
}

function foldedFacts(run) {
  const rows = run.facts.flatMap(([key, value]) => [make("dt", "", key), make("dd", "", value)]);
  return make("details", "", make("summary", "", make("span", "name", run.implementation)), make("dl", "facts", ...rows));
}

/** A bar for each run, of what some run was asked the part that passes; below them what the last run changed. */
function historyOf(runs) {
  const asked = data.clauses.filter((clause) => runs.some((run) => outcomeOf(run, clause) !== "untested"));
  const all = total(tallyOf(asked, runs[0]));
  const bars = runs.map((run) => {
    const counts = tallyOf(data.clauses, run), part = make("b"), bar = make("i", `is-${run.claim}`, part);
    part.style.height = `${100 * counts.get("pass") / Math.max(1, all)}%`;
    bar.title = `${run.implementation}, ${new Map(run.facts).get("started") ?? ""}: ` +
      `${counts.get("pass")} of ${total(counts)} clauses pass${changesOf(run)}`;
    return bar;
  });
  const chart = make("div", "history", ...bars);
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", bars.map((bar) => bar.title).join("; "));
  const since = `since ${runs.at(-2).implementation}${changesOf(runs.at(-1)) || ": no case changed"}`;
  return make("div", "past", chart, make("p", "", since));
}

const changesOf = ({ changes }) => {
  const said = Object.entries(changes).map(([name, number]) => `${plural(number, "case")} ${name}`);
  return said.length ? `: ${said.join(", ")}` : "";
};

// ---- clauses

/** A row of the matrix: a name and a cell for each implementation. */
function matrixRow(tag, className, name, cells) {
  const named = cells.map((cell, at) => {
    cell.dataset.name = data.implementations[at].name;
    return cell;
  });
  return make(tag, `side ${className}`, name, ...named);
}

function measureAll(name, members) {
  const cells = latest.map((run) => {
    const counts = tallyOf(members, run);
    return make("span", "cell", outcomeBar(counts), passNumber(counts));
  });
  return matrixRow("summary", "", make("span", "name", name), cells);
}

function outcomeMark(run, clause) {
  const outcome = outcomeOf(run, clause);
  const said = outcome === "not_testable" ? OTHERWISE[clause.verify] : outcomeWords.get(outcome);
  return make("span", `outcome is-${outcome}`, said);
}

function clauseFold(clause) {
  const cells = data.implementations.map(({ runs }) => {
    const before = runs.length > 1 ? runs.at(-2) : null;
    const other = before && before.outcomes[clause.place] !== runs.at(-1).outcomes[clause.place];
    const was = other ? make("small", "", `was ${outcomeWords.get(outcomeOf(before, clause))}`) : null;
    return make("span", "cell", outcomeMark(runs.at(-1), clause), was);
  });
  const name = make("span", "name", make("span", "bits", clause.id), ` ${clause.summary} `, make("small", "", clause.level));
  return folding(matrixRow("summary", "clause", name, cells), () => [make("dl", "facts", ...pastOf(clause))]);
}

/** By implementation the outcome of a clause in each run, and the first case that fails it. */
function pastOf(clause) {
  return data.implementations.flatMap(({ name, runs }) => [
    make("dt", "", name),
    make("dd", "", ...runs.map((run) => {
      const [item, reason] = run.failing[clause.id] ?? [];
      const told = item ? [make("span", "bits", item), ` ${reason}`] : [];
      return make("p", "", ...(runs.length > 1 ? [`${run.implementation}: `] : []), outcomeMark(run, clause), " ", ...told);
    })),
  ]);
}

function showMatrix() {
  const parts = $("text").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (clause) => ["document", "level"].every((name) => !$(name).value || clause[name] === $(name).value) &&
    CHECKS.every((name) => !$(name).checked || clause[name]) && parts.every((part) => clause.found.includes(part));
  const matching = data.clauses.filter(fits), all = plural(data.clauses.length, "clause");
  $("shown").textContent = matching.length === data.clauses.length ? all : `${grouped(matching.length)} of ${all}`;
  const open = matching.length <= OPENED;
  const heads = data.implementations.map(({ name }) => make("span", "cell", name));
  const documents = data.documents.map(([key, title]) => [title, matching.filter((clause) => clause.document === key)]);
  $("matrix").replaceChildren(
    matrixRow("div", "head", make("span"), heads),
    ...documents.filter(([, members]) => members.length).map(([title, members]) => {
      return folding(measureAll(title, members), () => [...groupBy(members, "section").values()].map((inside) => {
        return folding(measureAll(sectionName(inside[0]), inside), () => inside.map(clauseFold), open);
      }), open);
    }),
    ...(matching.length ? [] : [make("p", "empty", "No clause matches these filters.")]),
  );
  keepAddress();
}

// ---- the address and the keys

function keepAddress() {
  const fields = new URLSearchParams();
  for (const name of FIELDS) if ($(name).value.trim()) fields.set(name, $(name).value.trim());
  for (const name of CHECKS) if ($(name).checked) fields.set(name, 1);
  history.replaceState(null, "", location.href.split("#")[0] + (String(fields) && `#${fields}`));
}

function takeAddress() {
  const fields = new URLSearchParams(location.hash.slice(1));
  for (const name of FIELDS) $(name).value = fields.get(name) ?? "";
  for (const name of CHECKS) $(name).checked = fields.has(name);
  showMatrix();
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest?.("input, select")) return;
  event.preventDefault();
  $("text").focus();
});

const option = (value, text) => Object.assign(make("option", "", text), { value });
$("document").append(...data.documents.map(([key, title]) => option(key, title)));
$("level").append(...data.levels.map((level) => option(level, level)));
$("matrix").style.setProperty("--implementations", data.implementations.length);
const seen = new Set(latest.flatMap((run) => [...run.outcomes].map((digit) => outcomeNames[digit])));
$("legend").append(...BARS.filter((name) => seen.has(name)).map((name) => make("li", `is-${name}`, outcomeWords.get(name))));
showImplementations();
takeAddress();
$("filters").addEventListener("input", showMatrix);
$("filters").addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", takeAddress);
$("main").removeAttribute("aria-busy");
