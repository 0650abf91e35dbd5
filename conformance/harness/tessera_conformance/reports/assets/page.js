
// The head, the coverage, the list and its filters, the keys.
// Everything shown comes from the two islands and enters the page as text, never as markup.

const CHUNK = 200;
const clauses = new Map(data.clauses.map((clause) => [clause.id, clause]));
const outcomeWords = new Map(data.outcomes);
const documentTitles = new Map(data.documents);

/** An element with a class, attributes and children; strings become text. */
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const words = (name) => name.replaceAll("_", " ");
const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u2009");
const plural = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;

function seconds(value) {
  if (value === undefined) return "";
  return value < 0.0995 ? `${(value * 1000).toFixed(1)} ms` : `${value.toFixed(1)} s`;
}

// ---- the head of the page

function showHead() {
  $("implementation").textContent = data.implementation;
  const facts = data.label === data.implementation ? data.facts : [["--impl", data.label], ...data.facts];
  for (const [key, value] of facts) $("facts").append(make("div", "", make("dt", "", key), make("dd", "", value)));
  $("claim").className = data.claim;
  $("claim").querySelector("strong").textContent = data.badge;
  $("claim").querySelector("strong").className = data.badge.length > 20 ? "long" : "";
  $("claim").querySelector("span").textContent = data.reason;
  $("scope").append(...data.scope.map((one) => make("li", "", one)));
  if (data.claim === "invalid") {
    $("invalid").textContent = `This report is invalid and supports no claim: ${data.reason}.`;
    $("invalid").hidden = false;
  }
  $("problems").hidden = data.problems.length === 0;
  $("problems").querySelector("ul").append(...data.problems.map((problem) => make("li", "", problem)));
  $("start-stderr").textContent = data.stderr;
  $("start-stderr").hidden = data.stderr === "";
}

// ---- coverage

const BARS = data.outcomes.map(([name]) => name).filter((name) => name !== "not_testable");

function tally(members) {
  const counts = new Map(BARS.map((name) => [name, 0]));
  for (const { outcome } of members) if (counts.has(outcome)) counts.set(outcome, counts.get(outcome) + 1);
  return counts;
}

const total = (counts) => [...counts.values()].reduce((sum, number) => sum + number, 0);

/** A name, a bar of outcomes, and how many of the testable clauses pass. */
function measure(tag, name, members) {
  const counts = tally(members), all = total(counts);
  const bar = make("span", "bar");
  const said = [];
  for (const outcome of BARS) {
    if (!counts.get(outcome)) continue;
    said.push(`${counts.get(outcome)} ${outcomeWords.get(outcome)}`);
    const part = make("i", `is-${outcome}`);
    part.style.flexGrow = counts.get(outcome);
    part.title = said.at(-1);
    bar.append(part);
  }
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", said.join(", ") || "nothing a test can judge");
  const title = make("span", "name", name);
  title.title = name;
  const number = make("span", "number", make("b", "", String(counts.get("pass"))), ` of ${all}`);
  if (all === 0) number.replaceChildren("not testable");
  return make(tag, "measure", title, bar, number);
}

const OTHERWISE = { inspection: "by inspection", untestable: "not testable" };

function clauseRow(clause) {
  const twin = clause.twin ? ` (says what ${clause.twin} says)` : "";
  const why = clause.outcome === "not_testable" ? OTHERWISE[clause.verify] : outcomeWords.get(clause.outcome);
  const outcome = make("span", `outcome is-${clause.outcome}`, why);
  const name = clause.cases ? clauseLink(clause.id) : make("span", "bits", clause.id);
  if (clause.cases) name.title = `show ${plural(clause.cases, "case")}`;
  const summary = make("span", "summary", clause.summary + twin);
  return make("li", "", name, make("span", "level", clause.level), outcome, summary);
}

/** A button that shows the cases of one clause. */
function clauseLink(id) {
  const button = make("button", "link", id);
  button.type = "button";
  button.addEventListener("click", () => {
    filterAnew(id);
    $("cases").scrollIntoView();
  });
  return button;
}

/** A measure that opens; what is inside is made when it is first opened. */
function folding(name, members, inside) {
  const fold = make("details", "", measure("summary", name, members));
  fold.addEventListener("toggle", () => {
    if (fold.open && fold.children.length === 1) fold.append(...inside());
  });
  return fold;
}

/** Number and title of a clause's section, as the document has them. */
function sectionName({ document, section }) {
  const number = /^\d/.test(section) ? `section ${section}` : section, title = data.sections[document]?.[section];
  return title ? `${number}: ${title}` : number;
}

function sections(members) {
  return [...groupBy(members, "section").values()].map((inside) => {
    return folding(sectionName(inside[0]), inside, () => [make("ul", "clauses", ...inside.map(clauseRow))]);
  });
}

function groupBy(members, key) {
  const groups = new Map();
  for (const member of members) {
    if (!groups.has(member[key])) groups.set(member[key], []);
    groups.get(member[key]).push(member);
  }
  return groups;
}

function showCoverage() {
  const counts = tally(data.clauses);
  const ofLevel = (members, level) => members.filter((clause) => clause.level === level);
  $("covered").textContent =
    `${grouped(counts.get("pass"))} of ${grouped(total(counts))} testable clauses pass; ` +
    `${grouped(data.clauses.length - total(counts))} more cannot be judged by a test`;
  for (const outcome of BARS.filter((name) => counts.get(name))) {
    $("legend").append(make("li", `is-${outcome}`, `${outcomeWords.get(outcome)} ${grouped(counts.get(outcome))}`));
  }
  for (const level of data.levels) $("by-level").append(measure("div", level, ofLevel(data.clauses, level)));
  for (const [key, title] of data.documents) {
    const members = data.clauses.filter((clause) => clause.document === key);
    const levels = data.levels.filter((level) => ofLevel(members, level).length);
    $("by-document").append(folding(title, members, () => [
      ...levels.map((level) => make("div", "inside", measure("div", level, ofLevel(members, level)))),
      ...sections(members),
    ]));
  }
}

// ---- cases: filters and list

for (const item of data.cases) {
  const { id, title, reason, verdict, disposition } = item;
  item.found = [id, title, reason, verdict, disposition, ...item.clauses].join("\n").toLowerCase();
  item.judged = item.clauses.map((id) => clauses.get(id)).filter(Boolean);
}
const chosen = new Set();
const NOT_IMPLEMENTED = "not_implemented";
const wide = matchMedia("(min-width: 1001px)");
let matching = [], rendered = 0, current = null;

function showFilters() {
  const counts = new Map();
  for (const item of data.cases) counts.set(item.verdict, (counts.get(item.verdict) ?? 0) + 1);
  const missing = data.cases.filter((item) => item.missing).length;
  if (missing) counts.set(NOT_IMPLEMENTED, missing);
  for (const verdict of [...data.verdicts, NOT_IMPLEMENTED].filter((name) => counts.has(name))) {
    const number = make("b", "", grouped(counts.get(verdict)));
    const chip = make("button", `chip verdict is-${verdict}`, words(verdict), " ", number);
    chip.type = "button";
    chip.dataset.verdict = verdict;
    chip.setAttribute("aria-pressed", "false");
    chip.addEventListener("click", () => {
      if (!chosen.delete(verdict)) chosen.add(verdict);
      chip.setAttribute("aria-pressed", String(chosen.has(verdict)));
      filter();
    });
    $("verdicts").append(chip);
  }
  const option = (value, text) => Object.assign(make("option", "", text), { value });
  $("document").append(...data.documents.map(([key, title]) => option(key, title)));
  $("level").append(...data.levels.map((level) => option(level, level)));
  const judged = data.clauses.filter((clause) => clause.cases);
  $("clause-ids").append(...judged.map((clause) => option(clause.id, clause.summary)));
  $("filters").addEventListener("input", filter);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("clear").addEventListener("click", () => filterAnew(""));
}

/** Only the cases of one clause, or all of them. */
function filterAnew(clause) {
  $("filters").reset();
  $("clause").value = clause;
  chosen.clear();
  for (const chip of $("verdicts").children) chip.setAttribute("aria-pressed", "false");
  filter();
}

const spellings = new Map(data.clauses.map(({ id }) => [id.toUpperCase(), id]));
const clauseNamed = (typed) => spellings.get(typed.toUpperCase()) ?? typed.toUpperCase();

/** Whether a case is tagged with the clause typed or one that says the same, or with any that begins so. */
function speaksOf(item, typed) {
  const first = (id) => clauses.get(id)?.twin ?? id;
  return item.clauses.some((id) => (clauses.has(typed) ? first(id) === first(typed) : id.startsWith(typed)));
}

function filter() {
  const parts = $("text").value.trim().toLowerCase().split(/\s+/);
  const typed = clauseNamed($("clause").value.trim());
  const wanted = [["document", $("document").value], ["level", $("level").value]].filter(([, value]) => value);
  matching = data.cases.filter((item) =>
    (chosen.size === 0 || chosen.has(item.verdict) || (item.missing && chosen.has(NOT_IMPLEMENTED))) &&
    parts.every((part) => item.found.includes(part)) &&
    (!typed || speaksOf(item, typed)) &&
    (!wanted.length || item.judged.some((clause) => wanted.every(([key, value]) => clause[key] === value))));
  const all = plural(data.cases.length, "case");
  $("shown").textContent = matching.length === data.cases.length ? all : `${grouped(matching.length)} of ${all}`;
  if (current && !matching.includes(current)) closeCase();
  keepAddress();
  rendered = 0;
  const nothing = data.cases.length ? "No case matches these filters." : "The report holds no cases.";
  $("list").replaceChildren(...(matching.length ? [] : [make("li", "empty", nothing)]));
  showMore();
}

function showMore() {
  $("list").append(...matching.slice(rendered, rendered + CHUNK).map(listed));
  rendered = Math.min(rendered + CHUNK, matching.length);
  $("more").hidden = rendered === matching.length;
  $("more").textContent = `Show ${Math.min(CHUNK, matching.length - rendered)} more of ${grouped(matching.length)}`;
}

function badge(item) {
  const verdict = item.missing ? NOT_IMPLEMENTED : item.verdict;
  const said = words(item.disposition === "none" ? verdict : item.disposition);
  const tone = item.disposition === "none" ? item.verdict : item.counts ? "fail" : "deviates";
  return make("span", `verdict is-${tone}`, said);
}

function listed(item) {
  const about = item.verdict === "pass" ? item.title : item.reason || item.title;
  const link = make("a", "", badge(item), make("span", "id", item.id), make("span", "about", about));
  link.href = addressOf(item);
  if (item === current) link.setAttribute("aria-current", "true");
  return make("li", "", link);
}

// ---- keys and addresses

/** Filter as the address says and show the case that it names, and let the keyboard follow where a reader asked for it. */
async function openAddressed(event) {
  const fields = addressed(), name = fields.get("case");
  const item = name === null ? null : data.cases.find((one) => one.id === name);
  if (item) current = item; // so that filters keep it open
  if (takeFilters(fields) || !event) filter();
  if (!item) return;
  await openCase(item);
  if (event) $("detail").focus({ preventScroll: true });
  if (!wide.matches) $("detail").scrollIntoView();
}

function focusList() {
  ($("list").querySelector("[aria-current]") ?? $("list").querySelector("a"))?.focus();
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    $("text").focus();
  } else if (event.key === "Escape" && (typing || $("detail").contains(event.target))) {
    focusList();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const link = document.activeElement.closest?.("#list a");
    if (!link) return;
    event.preventDefault();
    const row = link.parentElement;
    const next = event.key === "ArrowDown" ? row.nextElementSibling : row.previousElementSibling;
    next?.querySelector("a")?.focus();
  }
});

showHead();
showCoverage();
showFilters();
$("more").addEventListener("click", () => {
  const first = rendered;
  showMore();
  $("list").children[first]?.querySelector("a")?.focus();
});
new IntersectionObserver((entries) => {
  if (entries.some((entry) => entry.isIntersecting) && !$("more").hidden && rendered > 0) showMore();
}, { rootMargin: "600px" }).observe($("more"));
addEventListener("hashchange", openAddressed);
$("list").addEventListener("click", (event) => {
  if (event.target.closest("a")?.getAttribute("href") === location.hash) openAddressed(event);
});
await openAddressed();
if (!current && wide.matches && matching[0]?.counts) await openCase(matching[0]);
$("main").removeAttribute("aria-busy");
