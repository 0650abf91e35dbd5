"""Several reports compared: two as a list of changes, many as one HTML page; and the badge of one."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tessera_conformance.registry import Registry
from tessera_conformance.reports import wording
from tessera_conformance.reports.causes import clause_results, judgeable, tally
from tessera_conformance.reports.claim import OUTCOMES, Line, counts_against
from tessera_conformance.reports.journal import Report
from tessera_conformance.reports.page import claim_data, clause_data, cut, document, packed, registry_data, script_json

# Two reports compared: cases that were fixed, that broke, and that changed otherwise.
#
# A case has one of three grades: it passes; it neither passes nor counts against the claim (unsupported, inapplicable,
# a known deviation); or it counts against the claim. A case whose grade rises is fixed; one whose grade falls is
# broken, so that a pass that turns into unsupported is broken. An unexpected pass is not: only its deviation is out of
# date. A case of the same grade whose verdict, disposition, reason or failing checks differ is changed. If a report
# covers a part of the suite, only the cases of that part are compared.


GROUPS = ("broken", "removed", "fixed", "changed", "added")
TOLD_ONE_BY_ONE = 3
"""The most cases with the same change that are listed one by one; more are grouped."""
HOLDS, FAILS, UNUSABLE = 0, 1, 2
"""Exit codes."""


Comparison = Mapping[str, Any]
"""Two reports compared, as `compare --json` prints it: the reports, and in five groups every case whose result differs.

`compared` and `left_out` are numbers of cases; those left out are of a run of a part, which did not have them.
"""


def compare(before: Report, after: Report) -> Comparison:
    """Return the change of each case from one report to the next."""
    old = {line["case"]: line for line in before.observed}
    new = {line["case"]: line for line in after.observed}
    compared = old.keys() | new.keys()
    for cases, report in ((old, before), (new, after)):
        compared &= cases.keys() if report.is_part else compared
    groups: dict[str, list[Mapping[str, Any]]] = {name: [] for name in GROUPS}
    for case in sorted(compared):
        sides = old.get(case), new.get(case)
        kind = _kind(*sides)
        if kind is not None:
            groups[kind].append({"case": case, **dict(zip(("before", "after"), map(_side, sides), strict=True))})
    return {
        "before": {"path": str(before.path), "claim": before.claim},
        "after": {"path": str(after.path), "claim": after.claim},
        "invalid": [f"{one.path} is invalid: {one.problem}" for one in (before, after) if one.claim == "invalid"],
        "warnings": _selections_differ(before, after),
        "compared": len(compared),
        "left_out": len(old.keys() | new.keys()) - len(compared),
        **groups,
    }


def exit_code(comparison: Comparison) -> int:
    """Return 0 where nothing broke, 1 where a case broke or disappeared, 2 where a file supports no comparison."""
    if comparison["invalid"]:
        return UNUSABLE
    return FAILS if comparison["broken"] or comparison["removed"] else HOLDS


def _selections_differ(before: Report, after: Report) -> list[str]:
    """Return the differences between the runs' selections: they alone may explain a change."""
    old, new = before.header["selection"], after.header["selection"]
    differences = [
        f"the runs differ in {key}: {str(one).lower()} before, {str(other).lower()} after"
        for key in ("profile", "level", "shard", "complete", "seed")
        if (one := old.get(key, 0)) != (other := new.get(key, 0))
    ]
    if old["deviations"] != new["deviations"]:
        numbers = f"{len(old['deviations'])} before, {len(new['deviations'])} after"
        differences.append(f"the runs differ in their known deviations: {numbers}")
    return differences


def _kind(before: Line | None, after: Line | None) -> str | None:
    if before is None:
        return "added"
    if after is None:
        return "removed"
    height_before, height_after = _height(before), _height(after)
    if height_before != height_after:
        return "fixed" if height_after > height_before else "broken"
    return None if _shows(before) == _shows(after) else "changed"


def _height(observation: Line) -> int:
    if observation["verdict"] == "pass":
        return 2
    return 0 if counts_against(observation) else 1


def _shows(observation: Line) -> object:
    return _side(observation), [check for check in observation["checks"] if not check["passed"]]


def _side(observation: Line | None) -> Line | None:
    return None if observation is None else {key: observation[key] for key in ("verdict", "disposition", "reason")}


def as_text(before: Report, after: Report, comparison: Comparison) -> str:
    """Return the comparison for people: counts first, then each case with its result before and after."""
    lines = [f"before  {_named(before)}", f"after   {_named(after)}"]
    lines += [f"  invalid: {problem}" for problem in comparison["invalid"]]
    if comparison["left_out"]:
        compared = f"{wording.cases(comparison['compared'])} that both runs have"
        lines.append(f"  compared: the {compared}; {wording.count(comparison['left_out'])} others are left out")
    lines += [f"  warning: {wording.printable(warning)}" for warning in comparison["warnings"]]
    lines.append("  " + "   ".join(f"{wording.count(len(comparison[name]))} {name}" for name in GROUPS))
    for name in GROUPS:
        if comparison[name]:
            lines += ["", name, *(line for alike in _alike(comparison[name]) for line in _shown_together(alike))]
    return "\n".join(lines)


def _named(report: Report) -> str:
    cases = wording.count(len(report.observed))
    who = wording.printable(wording.implementation_name(report))
    return f"{who}, {wording.selection(report)}: {cases} cases, {report.claim.upper()}"


def _alike(changes: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Yield groups of changes: many with the same text together, others one by one."""
    groups: dict[str, list[Line]] = {}
    for change in changes:
        groups.setdefault(str((change["before"], change["after"])), []).append(change)
    for group in groups.values():
        if len(group) > TOLD_ONE_BY_ONE:
            yield group
        else:
            yield from ([change] for change in group)


def _shown_together(alike: Sequence[Line]) -> Iterator[str]:
    first = alike[0]
    one = wording.printable(first["case"])
    who = one if len(alike) == 1 else f"{wording.cases(len(alike))}, such as {one}"
    sides = [side for side in (first["before"], first["after"]) if side is not None]
    yield f"  {who}  {' -> '.join(dict.fromkeys(map(_state, sides)))}"
    if len(sides) == 1:
        return
    for label, side in zip(("was", "is"), sides, strict=True):
        if side["reason"]:
            yield f"    {label:<4}{wording.printable(side['reason'])}"


def _state(side: Line) -> str:
    disposition = side["disposition"]
    return str(side["verdict"]) + (f" ({disposition})" if disposition != "none" else "")


# The badge of a report, one line in SVG for a README: the claim, and how many of the testable clauses pass.


NAME = "Tessera conformance"
COLOURS: Mapping[str, str] = {"success": "#2f7a52", "partial": "#96650f", "failure": "#b8322a", "invalid": "#5b6570"}
NAMESPACE = 'xmlns="http://www.w3.org/2000/svg" '
CHARACTER, PADDING, HEIGHT = 6.4, 7, 20
"""The width that a character is given, the space beside a text, and the height of the badge, in pixels."""


def badge(report: Report, registry: Registry, attributes: str = NAMESPACE) -> str:
    """Return the badge; inside of an HTML document it needs no namespace."""
    counts = tally(clause_results(report, registry).values())
    summary = f"{report.claim}: {counts['pass']} of {judgeable(counts)} clauses"
    text = html.escape(summary if report.claim != "invalid" else "invalid report")
    left, right = _width(NAME), _width(text)
    size = f'width="{left + right}" height="{HEIGHT}" viewBox="0 0 {left + right} {HEIGHT}"'
    return (
        f'<svg {attributes}class="badge" {size} role="img" aria-label="{NAME}: {text}">'
        f'<rect width="{left}" height="{HEIGHT}" fill="#3b444c"/>'
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{COLOURS[report.claim]}"/>'
        '<g fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11">'
        f"{_text(NAME, 0, left)}{_text(text, left, right)}</g></svg>"
    )


def _width(text: str) -> int:
    return round(len(text) * CHARACTER) + 2 * PADDING


def _text(text: str, begins: int, width: int) -> str:
    return f'<text x="{begins + PADDING}" y="14" textLength="{width - 2 * PADDING}">{text}</text>'


# Several reports in one self-contained HTML page: implementations side by side, by document, section and clause.
#
# Reports with the same implementation name and device are its history, in the order of the arguments; the last one is
# shown beside the other implementations. Clauses are those of the current registry. The page leaves out the messages of
# cases: the page of each report has them.


SCRIPTS = ("packed.js", "words.js", "bars.js", "scheme.js", "compared.js")
"""The pieces of the script, which become one."""
LONGEST_REASON = 200


def compared_page(reports: Sequence[Report], registry: Registry) -> Iterator[str]:
    """Yield the HTML document piece by piece."""
    histories: dict[str, list[Report]] = {}
    for report in reports:
        histories.setdefault(_name(report), []).append(report)
    data = {
        "notes": _notes(reports),
        **registry_data(registry),
        "clauses": [clause_data(clause) for clause in registry.clauses.values() if clause.active],
        "implementations": [
            {"name": name, "runs": [_run(*pair, registry) for pair in zip(history, [None, *history], strict=False)]}
            for name, history in histories.items()
        ],
    }
    places = {
        "DATA": packed(script_json(data)),
        "BADGES": "\n".join(badge(history[-1], registry, attributes="") for history in histories.values()),
    }
    title = f"Tessera conformance: {', '.join(histories)}"
    return document("compared.html", title, ["page.css", "compared.css"], SCRIPTS, places)


def _name(report: Report) -> str:
    """Name and device, which stay from one version to the next; the label of one that did not start."""
    identity = report.identity or {"name": report.header["implementation"]["label"]}
    return " on ".join(filter(None, [str(identity["name"]), str(identity.get("device") or "")]))


def _notes(reports: Sequence[Report]) -> list[str]:
    """Return sentences about differences that may be due to the runs alone."""
    chosen = [report.header["selection"] for report in reports]
    notes = [
        f"{report.path.name} of {_name(report)} is invalid: {report.problem}" for report in reports if report.problem
    ]
    notes += [
        f"The runs differ in {key}: {', '.join(sorted(values))}."
        for key in ("profile", "level")
        if len(values := {str(one[key]) for one in chosen}) > 1
    ]
    if any(report.is_part for report in reports):
        notes.append("Some runs are of a part of the suite: what they left out is untested.")
    if len({report.header["registry"]["sha256"] for report in reports}) > 1:
        notes.append("The reports were made with different clause registries: some clauses had other cases.")
    return notes


def _run(report: Report, before: Report | None, registry: Registry) -> dict[str, Any]:
    """Return a run's claim, the outcome of each clause as one digit, and the first failing case of each that fails."""
    results = clause_results(report, registry)
    changes = compare(before, report) if before is not None else dict.fromkeys(GROUPS, ())
    bad = {line["case"]: line for line in report.observed if counts_against(line)}
    failed = {name: result.cases for name, result in results.items() if result.outcome == "fail"}
    failing = {name: next(bad[case] for case in cases if case in bad) for name, cases in failed.items()}
    return {
        **claim_data(report, registry),
        "verdicts": wording.verdict_counts(report),
        "outcomes": "".join(str(OUTCOMES.index(result.outcome)) for result in results.values()),
        "failing": {
            name: (line["case"], cut(wording.reason_with_verdict(line), LONGEST_REASON))
            for name, line in failing.items()
        },
        "changes": {name: len(changes[name]) for name in GROUPS if changes[name]},
    }
