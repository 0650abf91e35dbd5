"""Clauses whose cases may let a wrong implementation pass, found by rules about the requests of the cases.

The facts come from reports of runs with `--evidence=all`: the requests of each case that passed, with their dtypes and
sizes. Without a report they come from the index of cases, which has features alone. A mark of a rule proves nothing:
`weaknesses.toml` has the reasons why marked clauses are tested well enough.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import prod
from pathlib import Path
from typing import Any

from tessera_conformance.documents import NoDocument, read_toml
from tessera_conformance.registry.cases import CaseIndex
from tessera_conformance.registry.model import Clause, Registry, judged_by_checks
from tessera_conformance.reports.journal import UnreadableReport, lines_of

FILE_NAME = "weaknesses.toml"

SMALL = 1000
"""The least number of elements for which libraries use other kernels and copies."""
NUMERIC = ("matmul", "numerics-policy", "determinism", "profiles", "copies", "allreduce", "softmax")
"""Topics of clauses about numbers or bytes whose count may matter."""

_COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")
FAMILIES: Mapping[str, Mapping[str, str]] = {
    "collective": {
        spelling: name for name in _COLLECTIVES for spelling in (name, f"tess{name.title().replace('_', '')}")
    },
    "message": {name: name for name in ("MemoryWrite", "MemoryRead", "KernelLaunch")},
}
"""By family, its members by their names in requests."""
SPEAKS_OF = {"collective": ("collective",), "message": ("request", "message")}
"""The words by which the summary of a clause names a whole family."""
DTYPES = frozenset(
    ("fp64 fp32 tf32 fp16 bf16 fp8_e4m3 fp8_e5m2 int64 int32 int16 int8 bool complex64 complex128").split()
)

_TENSOR_TYPE = re.compile(r"\b(?:tensor|memref)<((?:\d+x)+)(\w+)")
_WORD = re.compile(r"\w+")
_OPERATION = re.compile(r"\b(?:op|dist)\.(\w+)|\"tessera\.\w+\.(\w+)\"|\btessera\.collective\.(\w+)")


@dataclass
class Facts:
    """The members, sizes, effects and features of the cases of a clause."""

    cases: int = 0
    plain: int = 0
    """Cases that need no more than the feature of the clause."""
    operations: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    shapes: set[tuple[int, ...]] = field(default_factory=set)
    judged: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        members = ", ".join(f"{len(self.members(family))} of {family}" for family in FAMILIES if self.members(family))
        equal = "" if self.unequal else ", equal axes"
        extents = f"; up to {self.largest} elements{equal}" if self.largest else ""
        dtypes = f"; {' '.join(sorted(self.dtypes & DTYPES))}" if self.dtypes & DTYPES else ""
        judged = " ".join(sorted(self.judged)) or "nothing"
        operations = " ".join(sorted(self.operations))
        return f"{self.cases} cases, {self.plain} without a feature; {judged}; {operations}{dtypes}{extents}; {members}"

    def members(self, family: str) -> set[str]:
        """Return the members of a family that the cases name."""
        return {member for name, member in FAMILIES[family].items() if name in self.words}

    @property
    def largest(self) -> int:
        """Elements of the largest tensor, whose shape is sent or is in a program."""
        return max(map(prod, self.shapes), default=0)

    @property
    def unequal(self) -> bool:
        """True if some tensor has axes of different extents."""
        return any(len(set(shape)) > 1 for shape in self.shapes)


def facts_of(registry: Registry, reports: Iterable[Path]) -> Mapping[str, Facts]:
    """Return the facts of each clause, from all reports together. Raises `UnreadableReport`."""
    facts = {clause.id: Facts() for clause in registry.clauses.values() if clause.active and clause.testable}
    for path in reports:
        for raw in lines_of(path):
            try:
                line = json.loads(raw)
            except ValueError as error:
                raise UnreadableReport(f"{path}: {error}") from None
            if line.get("record") == "observation" and line["verdict"] == "pass":
                if "exchanges" not in line:
                    raise UnreadableReport(f"{path}: {line['case']} has no exchanges: run with --evidence=all")
                _add(line, registry, facts)
    return facts


def facts_of_index(registry: Registry, index: CaseIndex) -> Mapping[str, Facts]:
    """Return the numbers of cases of each clause, with and without a feature."""
    facts = {clause.id: Facts() for clause in registry.clauses.values() if clause.active and clause.testable}
    for case in index.values():
        for name in facts.keys() & {*case.clauses}:
            needed = {*case.features, *(registry.clauses[other].feature for other in case.clauses)} - {"core"}
            facts[name].cases += 1
            facts[name].plain += needed <= {registry.clauses[name].feature}
    return facts


def _add(line: Mapping[str, Any], registry: Registry, facts: Mapping[str, Facts]) -> None:
    judged = line.get("judges") or judged_by_checks(check["kind"] for check in line["checks"])
    case = Facts(judged={*judged})
    for exchange in line["exchanges"]:
        case.operations.add(exchange["method"])
        case.words.add(exchange["method"].rpartition(".")[2])
        _read(exchange["params"], case)
    for name in facts.keys() & {*line["clauses"]}:
        fact = facts[name]
        fact.cases += 1
        fact.plain += {*line.get("needs", ())} <= {registry.clauses[name].feature}
        for part in ("operations", "words", "dtypes", "shapes", "judged"):
            getattr(fact, part).update(getattr(case, part))


def _read(value: Any, case: Facts) -> None:
    """Add the operations, dtypes and shapes in the parameters of a request."""
    if isinstance(value, list):
        for item in value:
            _read(item, case)
    elif isinstance(value, dict):
        if isinstance(tensor := value.get("$tensor"), dict):
            case.dtypes.add(tensor["dtype"])
            case.shapes.add(tuple(tensor["shape"]))
            return
        for name, item in value.items():
            if name == "bytes" and isinstance(item, int):
                case.shapes.add((item,))
            _read(item, case)
    elif isinstance(value, str):
        case.words.update(_WORD.findall(value))
        case.operations.update(next(filter(None, names)) for names in _OPERATION.findall(value))
        for extents, dtype in _TENSOR_TYPE.findall(value):
            case.shapes.add(tuple(map(int, extents.rstrip("x").split("x"))))
            case.dtypes.add(dtype)
        case.dtypes |= DTYPES & {value}


RULES = ("one-member", "acceptance", "small", "square", "feature")


def _marks(clause: Clause, facts: Facts) -> dict[str, str]:
    """Return by rule the weakness of a clause, "" where the rule does not mark it."""
    effect, core = "effect" in facts.judged, clause.level == "MUST" and clause.feature == "core"
    small = effect and clause.topic in NUMERIC and 0 < facts.largest < SMALL
    square = effect and any(len(shape) > 1 for shape in facts.shapes) and not facts.unequal
    return {
        "one-member": _one_member(clause, facts),
        "acceptance": "accepted, no effect is observed" if facts.judged == {"acceptance"} else "",
        "small": f"the largest tensor has {facts.largest} elements" if small else "",
        "square": "all axes have equal extents" if square else "",
        "feature": "every case needs a feature" if core and facts.cases and not facts.plain else "",
    }


def _one_member(clause: Clause, facts: Facts) -> str:
    for family, words in SPEAKS_OF.items():
        members = facts.members(family)
        if len(members) == 1 and _names(clause, *words) and not _names(clause, *members):
            return f"of the family {family} {next(iter(members))} alone"
    numeric = clause.topic in NUMERIC and "effect" in facts.judged
    if numeric and len(facts.dtypes & DTYPES) == 1 and not _names(clause, *facts.dtypes):
        return f"of the dtypes {next(iter(facts.dtypes & DTYPES))} alone"
    return ""


def _names(clause: Clause, *members: str) -> bool:
    """True if the summary of a clause contains one of these members, in any spelling."""
    text = re.sub(r"[\W_]", "", clause.summary).lower()
    return any(re.sub(r"[\W_]", "", member).lower() in text for member in members)


@dataclass(frozen=True)
class Weakness:
    """A clause that a rule marks, and the reason why its cases suffice, if one is recorded."""

    clause: str
    rule: str
    what: str
    reason: str = ""


def weaknesses(registry: Registry, facts: Mapping[str, Facts], reasons: Reasons) -> Iterator[Weakness]:
    """Yield each mark of a rule."""
    for name, fact in facts.items():
        for rule, what in _marks(registry.clauses[name], fact).items():
            if what:
                yield Weakness(name, rule, what, reasons.of(rule, registry.clauses[name]))


@dataclass(frozen=True)
class Reasons:
    """The rows of `weaknesses.toml`: a rule, patterns of clauses, the reason."""

    rows: tuple[Mapping[str, Any], ...]

    @classmethod
    def read(cls, directory: Path) -> Reasons:
        """Return the rows in a folder of the registry. Raises `NoDocument`: a row lacks a member or has another."""
        path = directory / FILE_NAME
        rows = read_toml(path.read_text(encoding="utf-8")).get("weakness", []) if path.exists() else []
        for row in rows:
            if set(row) != {"rule", "clauses", "reason"} or row["rule"] not in RULES or not row["reason"]:
                raise NoDocument(f"{FILE_NAME}: {row}: expected rule, clauses and reason; rules are {', '.join(RULES)}")
        return cls(tuple(rows))

    def of(self, rule: str, clause: Clause) -> str:
        """Return the reason for a mark, "" where there is none."""
        patterns = ((row["reason"], name) for row in self.rows if row["rule"] == rule for name in row["clauses"])
        return next((reason for reason, pattern in patterns if fnmatchcase(clause.id, pattern)), "")

    def idle(self, weaknesses: Iterable[Weakness], rules: Container[str] = RULES) -> list[str]:
        """Return the entries about some rules that explain no mark."""
        marked = {(weakness.rule, weakness.clause) for weakness in weaknesses}
        return [
            f"{row['rule']} {pattern}"
            for row in self.rows
            if row["rule"] in rules
            for pattern in row["clauses"]
            if not any(rule == row["rule"] and fnmatchcase(clause, pattern) for rule, clause in marked)
        ]
