"""The verdict of a case from its line in a report, without the implementation: its test runs again."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.check import Check
from tessera_conformance.plugin import CASE, arguments
from tessera_conformance.protocol import Fault, Hello, Observation, ProtocolViolation, read_outcome
from tessera_conformance.reports.claim import Blockers, Line
from tessera_conformance.reports.lines import FOLDER, WHOLE_TEXT, encoded, short, without_run
from tessera_conformance.session import Exchange, Session
from tessera_conformance.suite_run import SuiteRun, observation
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports import Inapplicable
from tessera_conformance.transports.locate import DeadlinePassed, DirectTransport, limited, take_alarm
from tessera_conformance.vectors import Vector


@dataclass
class Recomputation:
    """The findings in the lines of a report: problems, and the numbers of cases by how they were verified."""

    problems: list[str] = field(default_factory=list)
    replayed: int = 0
    """Cases that were replayed against their exchanges."""
    digests: int = 0
    """Cases whose evidence, or a long answer, the report has by digest: only counts and labels are judged."""
    by_claims: int = 0
    """Cases that did not run because of the claims and the selection."""
    unverified: int = 0
    """Cases without evidence, such as those that did not run; each counts against the claim."""


def against_counts(line: Line, vector: Vector | None) -> Iterator[str]:
    """Yield problems of a case whose checks are only counted: no more of it can be wrong."""
    if line["verdict"] != "pass" or line["disposition"] != "none":
        yield "is kept as counts and a digest, though it did not simply pass"
    bits = line["evidence"]["checks"].get("bits", 0)
    if vector is not None and bits < len(vector.expected):
        yield f"{bits} results were judged, {vector.id} has {len(vector.expected)}"


def unaccounted(lines: Sequence[Line], plan: Sequence[str], names: Collection[str]) -> Iterator[str]:
    """Yield cases that are missing, unknown or repeated."""
    observed = Counter(line["case"] for line in lines)
    yield from (f"{case}: observed twice" for case, number in observed.items() for _ in range(number - 1))
    yield from (f"{case}: planned, and not observed" for case in plan if case not in observed)
    yield from (f"{case}: observed, and not planned" for case in sorted(observed.keys() - set(plan)))
    yield from (f"{case}: no case of this suite" for case in sorted(set(plan) - set(names)))


# A case run again without the implementation: its test asks, and the exchanges of its line in a report answer.
#
# The test must send the recorded requests, and its checks, verdict and reason must be those of the line. A line has
# long tensors and texts by digest alone. The test itself, or its golden vector, supplies those that it sends.


FOREIGN_IMAGE = "the reference's compiler"
"""Words in the reason of a case for whose runtime the compiler makes no image."""
DEADLINE = 60.0
"""Seconds for a case; the longest takes two."""
_LONG_TEXT = re.compile(r"\.\.\. \(\d+ characters, SHA-256 ([0-9a-f]{64})\)\Z")


class NotKept(BaseException):
    """The line lacks a long answer or a file that the test read: the case cannot be replayed. No test catches it."""


class Departed(BaseException):
    """The test sends another request than the recorded one; has the request. No test catches it."""


class RecordedSession(Session):
    """A session that answers with the exchanges of a line, in their order."""

    def __init__(
        self, hello: Hello | Fault, line: Line, folder: Path, values: Mapping[str, Any], evidence: str
    ) -> None:
        super().__init__(DirectTransport(Reported, "report"))
        self._opened, self._line = hello, line
        self._place = json.dumps(str(folder))[1:-1]
        self._recorded: Sequence[Line] = line["exchanges"]
        self._left_out = line.get("left_out", {}).get("exchanges", 0)
        self._known, self._keeps_all = dict(values), evidence == "all"

    def open(self) -> Hello | Fault:
        """Return the Hello of the report."""
        return self._opened

    def call(self, method: str, params: Mapping[str, Any]) -> Observation:
        """Return the recorded answer to a request. Raises `Departed` or `NotKept`."""
        number = len(self.exchanges)
        if self._left_out and number >= len(self._recorded) // 2:
            raise self._not_kept()
        if number >= len(self._recorded):
            if self._line["cause"] == "question" and FOREIGN_IMAGE in self._line["reason"]:
                raise Inapplicable(self._line["reason"])
            raise Departed(f"asks for {method}, of which there is no record")
        recorded = self._recorded[number]
        request = json.loads(encoded({"method": method, "params": params}).replace(self._place, FOLDER))
        if request != {"method": recorded["method"], "params": recorded["params"]}:
            raise Departed(f"exchange {number} is of another request: the test asks for {method}")
        self._known.update(_long_values(params))
        answer = self._answer(method, recorded["observation"])
        self.exchanges.append(Exchange(method, params, answer, 0.0))
        return answer

    def _answer(self, method: str, recorded: Line) -> Observation:
        if "fault" in recorded:
            return Fault(**recorded["fault"])
        outcome = json.loads(json.dumps(recorded).replace(FOLDER, self._place))
        try:
            return read_outcome(method, self._whole(outcome))
        except ProtocolViolation as violation:
            raise Departed(f"{violation}, which a run would have called a protocol error") from None

    def _whole(self, value: Any) -> Any:
        """Return the value with values in place of digests. Raises `NotKept`."""
        if isinstance(value, str) and (match := _LONG_TEXT.search(value)):
            return self._of_digest(match[1])
        if isinstance(value, list):
            return [self._whole(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "head" in (value.get("$tensor") or {}):
            return self._of_digest(value["$tensor"]["sha256"])
        return {name: self._whole(item) for name, item in value.items()}

    def _of_digest(self, digest: str) -> Any:
        if digest not in self._known:
            raise self._not_kept()
        return self._known[digest]

    def _not_kept(self) -> BaseException:
        """Return the exception for an omitted answer, which a run that keeps everything never has."""
        complete = "an answer is left out, and the header says that all are kept"
        return Departed(complete) if self._keeps_all else NotKept()

    def reset(self) -> Fault | None:
        """Return the recorded fault of the reset, if there was one."""
        rest, self.exchanges = self._recorded[len(self.exchanges) :], []
        if rest and rest[0]["method"] == "session.reset" and "fault" in rest[0]["observation"]:
            return Fault(**rest[0]["observation"]["fault"])
        return None


class Reported:
    """A session in place of the implementation of a report, which is absent."""

    def hello(self) -> Mapping[str, Any]:
        """Return {}: the report has the Hello."""
        return {}


def _long_values(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors and texts in a value that a line has by digest, with their digests."""
    if isinstance(value, Tensor):
        yield value.sha256, value
    elif isinstance(value, str) and len(value) > WHOLE_TEXT:
        yield hashlib.sha256(value.encode("utf-8", "backslashreplace")).hexdigest(), value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _long_values(item)


class Replay:
    """Replays the cases of one report, whose header has the selection and the implementation."""

    def __init__(self, run: SuiteRun, blockers: Blockers, evidence: str) -> None:
        self._run, self._blockers, self._evidence = run, blockers, evidence
        take_alarm()

    def problem(self, item: pytest.Function, line: Line) -> str | None:
        """Return the first difference between a line and what follows from its exchanges. Raises `NotKept`."""
        if "evidence" in line:
            raise NotKept
        with tempfile.TemporaryDirectory(prefix="tessera-replay-") as name:
            try:
                again = self._again(item, line, Path(name))
            except Departed as departed:
                return f"replayed, {departed}"
        here, there = short(without_run(self._blockers.settle(again))), short(without_run(line))
        for name in sorted({*here, *there}, key=lambda name: (name not in ("verdict", "checks"), name)):
            follows, recorded = (json.dumps(fields.get(name), sort_keys=True) for fields in (here, there))
            if follows != recorded and "tmp_path" in item.fixturenames:
                raise NotKept  # it may have read files that the implementation wrote
            if follows != recorded:
                return f"replayed, its {name} follow as {follows[:200]}; the report has {recorded[:200]}"
        return None

    def _again(self, item: pytest.Function, line: Line, folder: Path) -> Line:
        """Return the line that the exchanges of a recorded line give."""
        run, values = self._run, dict[str, Any]()
        for value in item.callspec.params.values() if hasattr(item, "callspec") else ():
            if isinstance(value, Vector):
                values.update(_long_values([value.expected, value.call.params]))
        run.session = RecordedSession(run.hello, line, folder, values, self._evidence)
        case = replace(item.stash[CASE], check=Check())
        fixtures = arguments(run, case, item)
        if "tmp_path" in item.fixturenames:
            fixtures["tmp_path"] = case.folder = folder
        error: BaseException | None = None
        try:
            limited(lambda: item.obj(**fixtures), DEADLINE)
        except DeadlinePassed:
            raise Departed(f"its test takes more than {DEADLINE:g} s") from None
        except Exception as raised:
            error = raised
        run.settle(case, run.judge_after(case, error))
        return observation(case, self._evidence)
