// The filters: text, clause, document, level, verdicts, and the cause that one follows. Joined before page.js.

const chosen = new Set();
let followed = null;

const spellings = new Map(data.clauses.map(({ id }) => [id.toUpperCase(), id]));
const clauseNamed = (typed) => spellings.get(typed.toUpperCase()) ?? typed.toUpperCase();
const citedClauses = [...new Set(data.cases.flatMap((item) => item.clauses))];
const firstOf = (id) => clauses.get(id)?.twin ?? id;

data.cases.forEach((item, place) => {
  const { id, title, reason, verdict, disposition } = item;
  item.place = place;
  item.found = [id, title, reason, verdict, disposition, ...item.clauses].join("\n").toLowerCase();
});

function showFilters() {
  const counts = new Map();
  for (const verdict of data.cases.flatMap(verdictsOf)) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  for (const verdict of shownVerdicts) {
    const chip = makeButton(`chip verdict is-${verdict}`, words(verdict), () => {
      if (!chosen.delete(verdict)) chosen.add(verdict);
      showChosen();
      filter();
    });
    chip.append(" ", make("b", "", grouped(counts.get(verdict))));
    chip.dataset.verdict = verdict;
    $("verdicts").append(chip);
  }
  const option = (value, text) => Object.assign(make("option", "", text), { value });
  $("document").append(...data.documents.map(([key, title]) => option(key, title)));
  $("level").append(...data.levels.map((level) => option(level, level)));
  const judged = data.clauses.filter((clause) => clause.cases);
  $("clause-ids").append(...judged.map((clause) => option(clause.id, clause.summary)));
  $("filters").addEventListener("input", filter);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("clear").addEventListener("click", () => {
    takeFilters(new URLSearchParams());
    filter();
  });
  $("followed").addEventListener("click", () => {
    followed = null;
    showChosen();
    filter();
  });
}

/** Let the buttons say which verdicts are chosen and which cause is followed. */
function showChosen() {
  for (const chip of $("verdicts").children) chip.setAttribute("aria-pressed", String(chosen.has(chip.dataset.verdict)));
  $("followed").hidden = followed === null;
  if (followed === null) return;
  $("followed").textContent = `cause ${followed}: ${data.causes[followed - 1].sentence} \u00d7`;
  $("followed").title = "show the cases of other causes too";
}

/** The tests that a case has to pass, those that leave out most first. */
function wantedOf() {
  const tests = [];
  const typed = clauseNamed($("clause").value.trim()), document = $("document").value, level = $("level").value;
  if (followed !== null) {
    const caused = new Set(data.causes[followed - 1].cases);
    tests.push((item) => caused.has(item.place));
  }
  if (chosen.size) tests.push((item) => verdictsOf(item).some((verdict) => chosen.has(verdict)));
  if (typed) tests.push(citesOneOf((id) => (clauses.has(typed) ? firstOf(id) === firstOf(typed) : id.startsWith(typed))));
  if (document || level) {
    const fits = (clause) => clause && (!document || clause.document === document) && (!level || clause.level === level);
    tests.push(citesOneOf((id) => fits(clauses.get(id))));
  }
  for (const part of $("text").value.trim().toLowerCase().split(/\s+/).filter(Boolean)) {
    tests.push((item) => item.found.includes(part));
  }
  return tests;
}

/** The test of a case whether one of its clauses fits; each clause is looked at once. */
function citesOneOf(fits) {
  const fitting = new Set(citedClauses.filter(fits));
  return (item) => item.clauses.some((id) => fitting.has(id));
}

function filter() {
  const tests = wantedOf();
  matching = data.cases.filter((item) => tests.every((test) => test(item)));
  const all = plural(data.cases.length, "case");
  $("shown").textContent = matching.length === data.cases.length ? all : `${grouped(matching.length)} of ${all}`;
  if (current && !matching.includes(current)) closeCase();
  keepAddress();
  showList();
}

