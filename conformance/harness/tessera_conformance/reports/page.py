"""The report as one self-contained HTML page that works from a file, without a network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tessera_conformance.registry import Clause, Registry
from tessera_conformance.registry.model import LEVELS
from tessera_conformance.reports import wording
from tessera_conformance.reports.causes import OUTCOME_WORDS, Cause, causes, clause_results, in_order, missing_feature
from tessera_conformance.reports.claim import OUTCOMES, Line, counts_against
from tessera_conformance.reports.journal import Report
from tessera_conformance.reports.lines import LONG
from tessera_conformance.reports.summary import rooflines
from tessera_conformance.terminal import visible
from tessera_conformance.verdicts import VERDICTS

# A self-contained HTML document: a template of `assets` filled with its style, its script and its data.
#
# A content security policy allows exactly this style and this script, by their hashes. Data are compressed and in
# base64, so that no text inside can end its element, and the same data give the same bytes.


_ASSETS = Path(__file__).resolve().parent / "assets"
_PLACE = re.compile(r"@@([A-Z]+)@@")


def document(
    template: str,
    title: str,
    styles: Sequence[str],
    scripts: Sequence[str],
    places: Mapping[str, str],
    details: Iterable[str] = (),
) -> Iterator[str]:
    """Yield the document piece by piece; the details replace their placeholder in the template and are never joined."""
    script = "".join(map(_asset, scripts))
    filled = {**places, "SCRIPT": script}
    before, _, after = _asset(template).partition("@@DETAILS@@")
    yield head(title, styles, script)
    yield _PLACE.sub(lambda place: filled[place[1]], before)
    yield from details
    yield _PLACE.sub(lambda place: filled[place[1]], after)


def head(title: str, styles: Sequence[str], script: str = "") -> str:
    """Return the beginning of a document, up to its body."""
    style = "".join(map(_asset, ["base.css", *styles]))
    filled = {"TITLE": html.escape(title), "POLICY": _policy(script, style), "STYLE": style}
    return _PLACE.sub(lambda place: filled[place[1]], _asset("head.html"))


def packed(text: str) -> str:
    """Return a gzip stream in base64."""
    return base64.b64encode(gzip.compress(text.encode("utf-8", errors="backslashreplace"), 9, mtime=0)).decode()


def registry_data(registry: Registry) -> dict[str, Any]:
    """Return the levels, the outcomes with their words, and the documents with their sections."""
    return {
        "levels": LEVELS,
        "outcomes": [[name, OUTCOME_WORDS[name]] for name in OUTCOMES],
        "sections": {key: dict(document.sections) for key, document in registry.documents.items()},
        "documents": [[key, document.title] for key, document in registry.documents.items()],
    }


def claim_data(report: Report, registry: Registry) -> dict[str, Any]:
    """Return the implementation, the claim with its reason, and the facts of a run."""
    return {
        "implementation": wording.implementation_name(report),
        "claim": report.claim,
        "badge": wording.claim_title(report),
        "reason": wording.claim_reason(report, registry),
        "facts": wording.facts(report),
    }


def clause_data(clause: Clause) -> dict[str, Any]:
    """Return the fields of a clause that the scripts show."""
    shown = ("id", "document", "section", "level", "summary", "verify", "interpretations")
    return {name: getattr(clause, name) for name in shown} | {"twin": clause.duplicate_of}


def script_json(value: Any) -> str:
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":"))


def cut(text: str, longest: int) -> str:
    """Return a text, or its beginning and the number of the characters that follow."""
    return text if len(text) <= longest else f"{text[:longest]} ... ({len(text) - longest} more characters)"


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _policy(script: str, style: str) -> str:
    """Return the content security policy that allows only this style, and this script if there is one."""
    texts = {"script-src": script, "style-src": style}
    digests = {name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for name, text in texts.items()}
    sources = "; ".join(f"{name} 'sha256-{digests[name]}'" for name, text in texts.items() if text)
    return f"default-src 'none'; {sources}; img-src data:; base-uri 'none'; form-action 'none'"


# The report as one self-contained HTML page that works from a file, without a network.
#
# The page is `assets/page.html` with its style, its script and two islands of data put in, compressed: a JSON object
# with all that the tables and filters need, and, in blocks, one JSON line a case with what was sent, what came back
# and what was expected; a block is unpacked when a case of it is opened. The page cuts long texts, those of a case
# that passed sooner; the report file has them.


LONGEST_PASSED = 2_000
LONGEST_OTHER = 20_000
"""Characters of one text that the page keeps, of a case that passed and of any other."""

BLOCK = 128
"""Cases whose details are compressed together."""
SCRIPTS = (
    *("packed.js", "words.js", "bars.js", "tensor.js", "deadlock.js", "case.js", "causes.js", "map.js", "list.js"),
    *("filters.js", "address.js", "keys.js", "scheme.js", "page.js"),
)
"""The pieces of the script, which become one."""


def page(report: Report, registry: Registry) -> Iterator[str]:
    """Return the HTML document, piece by piece, so that the details of all cases are never in memory at once."""
    title = visible(f"{wording.implementation_name(report)}: {report.claim}")
    places = {
        "ROOFLINES": rooflines(report),
        "DATA": packed(script_json(_data(report, registry))),
    }
    return document("page.html", title, ["page.css"], SCRIPTS, places, _blocks(report))


def _blocks(report: Report) -> Iterator[str]:
    lines = in_order(report.observed)
    for start in range(0, len(lines), BLOCK):
        block = "\n".join(_details(report, line) for line in lines[start : start + BLOCK])
        yield f"{chr(10) if start else ''}{packed(block)}"


def _data(report: Report, registry: Registry) -> dict[str, Any]:
    lines = in_order(report.observed)
    places = {line["case"]: place for place, line in enumerate(lines)}
    results = clause_results(report, registry).values()
    cited = {name for result in results if result.cases for name in result.clause.interpretations}
    cited &= registry.interpretations.keys()
    return {
        **claim_data(report, registry),
        "scope": [*wording.scope(report), *wording.products(report)],
        "problems": wording.problems_of(report, registry),
        "stderr": wording.start_stderr(report),
        "verdicts": VERDICTS,
        **registry_data(registry),
        "clauses": [
            clause_data(result.clause) | {"outcome": result.outcome, "cases": len(result.cases)} for result in results
        ],
        "block": BLOCK,
        "interpretations": {name: registry.interpretations[name].decision for name in sorted(cited)},
        "causes": [_cause(report, cause, places) for cause in causes(report)],
        "cases": [_case(line) for line in lines],
    }


def _cause(report: Report, cause: Cause, places: Mapping[str, int]) -> dict[str, Any]:
    """Return a cause; its cases, the smallest first, are indices into the list."""
    return {
        "sentence": cause.sentence(),
        "missing": cause.form[0] == "missing",
        "clause": cause.clauses[0] if cause.clauses else None,
        "holds": len(cause.mended),
        "command": wording.reproduce_command(report, cause.smallest["case"]),
        "cases": [places[line["case"]] for line in cause.lines],
    }


def _case(observation: Line) -> dict[str, Any]:
    return {
        "id": observation["case"],
        **{name: observation[name] for name in ("title", "clauses", "verdict", "disposition", "cause")},
        "counts": counts_against(observation),
        "missing": missing_feature(observation) is not None,
        "reason": cut(observation["reason"], 400),
        "seconds": wording.seconds_of(observation),
    }


def _details(report: Report, observation: Line) -> str:
    longest = LONGEST_PASSED if observation["verdict"] == "pass" else LONGEST_OTHER
    details = {
        "reason": observation["reason"],
        "command": wording.reproduce_command(report, observation["case"]),
        "deviation": wording.deviation_reason(report, observation),
        **{name: observation[name] for name in LONG},
        "left_out": wording.left_out(observation),
    }
    return script_json(_trimmed(details, longest))


def _trimmed(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return cut(value, longest)
    if isinstance(value, list):
        return [_trimmed(item, longest) for item in value]
    if isinstance(value, dict):
        return {key: _trimmed(item, longest) for key, item in value.items()}
    return value
