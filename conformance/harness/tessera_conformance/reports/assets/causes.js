// The causes of the failures, what to mend first on top. Joined before page.js into one script.

const CAUSES_SHOWN = 4;

function showCauses() {
  $("causes").hidden = data.causes.length === 0;
  const cases = data.causes.reduce((sum, cause) => sum + cause.cases.length, 0);
  $("caused").textContent = `of ${plural(cases, "case")} that count${cases === 1 ? "s" : ""} against the claim`;
  $("cause-list").append(...data.causes.slice(0, CAUSES_SHOWN).map(causeRow));
  const further = data.causes.slice(CAUSES_SHOWN);
  if (!further.length) return;
  const more = makeButton("more", `Show ${plural(further.length, "more cause")}`, () => {
    more.remove();
    $("cause-list").append(...further.map((cause, at) => causeRow(cause, CAUSES_SHOWN + at)));
    $("cause-list").children[CAUSES_SHOWN].querySelector("a").focus();
  });
  $("causes").append(more);
}

/** A cause: the sentence leads to its cases, below it stand the clause and the smallest case. */
function causeRow(cause, at) {
  const [number, ...said] = cause.sentence.split(": ");
  const smallest = data.cases[cause.cases[0]], clause = clauses.get(cause.clause);
  const tone = cause.missing ? NOT_IMPLEMENTED : smallest.verdict === "pass" ? "fail" : smallest.verdict;
  const holds = `${plural(cause.holds, "clause")} ${cause.holds === 1 ? "holds" : "hold"} once it is mended`;
  return make("li", `is-${tone}`,
    makeLink("sentence", `#cause=${at + 1}`, make("b", "", number), make("span", "", said.join(": "))),
    make("p", "clause", clause ? clauseLink(clause.id) : cause.clause, clause ? ` ${clause.summary}` : null),
    make("p", "holds", cause.holds ? holds : ""),
    make("p", "smallest", "smallest: ", makeLink("link", addressOfCase(smallest, `cause=${at + 1}`), smallest.id)),
    command(cause.command),
  );
}

