"""Blocked cases: a case that fails on a construct which does not work at all says nothing of its own clause.

`conformance/clauses/constructs.toml` names for each construct (a method, a feature of program texts) its control case:
the plainest use of just that construct. Where the control case fails in a run, the cases that fail on a call with that
construct are inapplicable, "blocked by" the control case, whose clause is the one that fails.

A case that names an interpretation hangs on it. Where another case of the run shows that the implementation follows a
listed alternative, the cases that name the interpretation and fail are blocked by the one that shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from tessera_conformance.check import CheckFailed, Unanswered
from tessera_conformance.observations import Returned
from tessera_conformance.registry import Construct
from tessera_conformance.session import Exchange
from tessera_conformance.verdicts import BAD_VERDICTS

BLOCKABLE = frozenset({"fail", "crash", "hang", "protocol_error"})
"""The verdicts of a case that may be blocked."""

Line = Mapping[str, Any]


def judged_exchange(exchanges: Sequence[Exchange], error: BaseException | None) -> Exchange | None:
    """Return the exchange of the answer on which a case ended; the last one where the error names none."""
    answer = error.observation if isinstance(error, CheckFailed | Unanswered) else None
    same = (exchange for exchange in reversed(exchanges) if exchange.observation is answer)
    return next(same, exchanges[-1] if exchanges else None)


def controls(
    constructs: Sequence[Construct], case: str, exchanges: Sequence[Exchange], error: BaseException | None
) -> list[str]:
    """Return the control cases of the constructs in the call on which a case failed, the simplest construct first.

    A control case leans on the constructs before its own alone, so that no two block each other.
    """
    exchange = judged_exchange(exchanges, error)
    if exchange is None or isinstance(exchange.observation, Returned):
        return []
    source = exchange.params.get("source")
    found = []
    for construct in constructs:
        if construct.control == case:
            break
        if exchange.method in construct.methods or (isinstance(source, str) and _uses(construct.pattern, source)):
            found.append(construct.control)
    return found


def _uses(pattern: str, source: str) -> bool:
    return bool(pattern) and _compiled(pattern).search(source) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


class Blockers:
    """The cases of a run by which others are blocked."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._failed: set[str] = set()
        self._shown: dict[str, str] = {}
        for line in lines:
            if line["verdict"] in BAD_VERDICTS:
                self._failed.add(line["case"])
            if line["disposition"] == "other_reading":
                self._shown.setdefault(line["interpretation"], line["case"])

    def of(self, line: Line) -> str | None:
        """Return the case that failed or showed another reading, and so says why this one failed; None without one."""
        failed = (name for name in line.get("leans", ()) if name in self._failed)
        shown = (self._shown[name] for name in line.get("cites", ()) if name in self._shown)
        return next(failed, None) or next(shown, None)


def settled(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the observation lines of a run, a case that is blocked as inapplicable."""
    blockers = Blockers(lines)
    for line in lines:
        control = blockers.of(line)
        if control is None or line["verdict"] not in BLOCKABLE or line["disposition"] != "none":
            yield line
        else:
            reason = f"blocked by {control}: {line['reason']}"
            yield {**line, "verdict": "inapplicable", "cause": "blocked", "reason": reason}
