// Outcomes of clauses as bars and numbers, and rows that open. Joined before the script of each page.

const BARS = data.outcomes.map(([name]) => name).filter((name) => name !== "not_testable");
const OTHERWISE = { inspection: "by inspection", untestable: "not testable" };

function tally(members) {
  const counts = new Map(BARS.map((name) => [name, 0]));
  for (const { outcome } of members) if (counts.has(outcome)) counts.set(outcome, counts.get(outcome) + 1);
  return counts;
}

const total = (counts) => [...counts.values()].reduce((sum, number) => sum + number, 0);

/** A bar of outcomes. */
function outcomeBar(counts) {
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
  return bar;
}

/** How many of the testable clauses pass. */
function passNumber(counts) {
  const all = total(counts);
  if (all === 0) return make("span", "number", "not testable");
  return make("span", "number", make("b", "", String(counts.get("pass"))), ` of ${all}`);
}

/** A row that opens; what is inside is made when it is first opened. */
function folding(row, inside, open = false) {
  const fold = make("details", "", row);
  const fill = () => {
    if (fold.open && fold.children.length === 1) fold.append(...inside());
  };
  fold.open = open;
  fill();
  fold.addEventListener("toggle", fill);
  return fold;
}

/** Number and title of a clause's section, as the document has them. */
function sectionName({ document, section }) {
  const number = /^\d/.test(section) ? `section ${section}` : section, title = data.sections[document]?.[section];
  return title ? `${number}: ${title}` : number;
}

