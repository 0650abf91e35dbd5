// The map: clauses by outcome and cases by verdict, by document and section. Joined before page.js into one script.

/** The verdicts by which a case is filtered and counted: what is not implemented fails too. */
const verdictsOf = (item) => (item.missing ? [item.verdict, NOT_IMPLEMENTED] : [item.verdict]);
const known = new Set(data.cases.flatMap(verdictsOf));
const shownVerdicts = [...data.verdicts, NOT_IMPLEMENTED].filter((name) => known.has(name));

/** The part of an id that all clauses of its section have. */
const sectionPrefix = (id) => id.replace(/\d+$/, "");

/** By document and by prefix of section, how many cases have each verdict. */
const casesByPlace = new Map();
for (const item of data.cases) {
  const judged = item.clauses.map((id) => clauses.get(id)).filter(Boolean);
  const places = judged.flatMap((clause) => [clause.document, sectionPrefix(clause.id)]);
  for (const place of new Set(places)) {
    if (!casesByPlace.has(place)) casesByPlace.set(place, new Map());
    const counts = casesByPlace.get(place);
    for (const verdict of verdictsOf(item)) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  }
}

/** A name, a bar of outcomes, how many of the testable clauses pass, and the cases of the place by verdict. */
function measure(tag, name, members, place, address) {
  const counts = tally(members);
  const title = make("span", "name", name);
  title.title = name;
  const number = passNumber(counts);
  return make(tag, "measure", title, outcomeBar(counts), number, ...(place ? [verdictCells(place, address)] : []));
}

/** The number of cases of each verdict, each of which leads to these cases. */
function verdictCells(place, address) {
  const counts = casesByPlace.get(place) ?? new Map();
  return make("span", "cells", ...shownVerdicts.map((verdict) => {
    const number = counts.get(verdict);
    if (!number) return make("span", "none", "\u00b7");
    const link = makeLink(`verdict is-${verdict}`, `#verdict=${verdict}&${address}`, grouped(number));
    link.title = `${plural(number, "case")} ${words(verdict)}`;
    return link;
  }));
}

function clauseRow(clause) {
  const twin = clause.twin ? ` (says what ${clause.twin} says)` : "";
  const why = clause.outcome === "not_testable" ? OTHERWISE[clause.verify] : outcomeWords.get(clause.outcome);
  const outcome = make("span", `outcome is-${clause.outcome}`, why);
  const name = clause.cases ? clauseLink(clause.id) : make("span", "bits", clause.id);
  if (clause.cases) name.title = `show ${plural(clause.cases, "case")}`;
  const summary = make("span", "summary", clause.summary + twin);
  return make("li", "", name, make("span", "level", clause.level), outcome, summary);
}

/** The way to the cases of one clause. */
const clauseLink = (id) => makeLink("link", `#${new URLSearchParams({ clause: id })}`, id);

function sectionFold(inside) {
  const place = sectionPrefix(inside[0].id);
  const row = measure("summary", sectionName(inside[0]), inside, place, `clause=${encodeURIComponent(place)}`);
  return folding(row, () => [make("ul", "clauses", ...inside.map(clauseRow))]);
}

function documentFold([key, title]) {
  const members = data.clauses.filter((clause) => clause.document === key);
  return folding(measure("summary", title, members, key, `document=${encodeURIComponent(key)}`), () => [
    ...data.levels.map((level) => [level, members.filter((clause) => clause.level === level)])
      .filter(([, inside]) => total(tally(inside)))
      .map(([level, inside]) => make("div", "inside", measure("div", level, inside))),
    ...withCasesFirst([...groupBy(members, "section").values()], ([clause]) => sectionPrefix(clause.id), "section", sectionFold),
  ]);
}

/** Rows of what has cases; the rest is behind one that opens. */
function withCasesFirst(members, placeOf, noun, row) {
  const asked = members.filter((member) => casesByPlace.has(placeOf(member)));
  const rest = members.filter((member) => !casesByPlace.has(placeOf(member)));
  if (!rest.length) return asked.map(row);
  const summary = make("summary", "rest", make("span", "name", `${plural(rest.length, noun)} without a case in this run`));
  return [...asked.map(row), folding(summary, () => rest.map(row))];
}

function showMap() {
  const counts = tally(data.clauses);
  $("covered").textContent =
    `${grouped(counts.get("pass"))} of ${grouped(total(counts))} testable clauses pass; ` +
    `${grouped(data.clauses.length - total(counts))} more cannot be judged by a test`;
  for (const outcome of BARS.filter((name) => counts.get(name))) {
    $("legend").append(make("li", `is-${outcome}`, `${outcomeWords.get(outcome)} ${grouped(counts.get(outcome))}`));
  }
  for (const level of data.levels) {
    $("by-level").append(measure("div", level, data.clauses.filter((clause) => clause.level === level)));
  }
  $("by-document").style.setProperty("--verdicts", Math.max(1, shownVerdicts.length));
  const heads = shownVerdicts.map((name) => make("span", `verdict is-${name}`, words(name)));
  $("by-document").append(
    make("div", "measure head", make("span"), make("span"), make("span", "number", "clauses pass"), make("span", "cells", ...heads)),
    ...withCasesFirst(data.documents, ([key]) => key, "document", documentFold),
  );
}

