"""Clauses, interpretations and features as values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from tessera_conformance.documents import table_of
from tessera_conformance.interface import interface
from tessera_conformance.operations import OPERATIONS
from tessera_conformance.registry.errors import RegistryError

# The part of its clauses that a case judges, and whether that carries a clause.
#
# An **effect** is judged by values: computed, stored, printed or unchanged ones. An **acceptance** is judged if a legal
# input must be accepted, a **refusal** if an input must be refused. The checks that ran decide between them; a test
# says it itself, `@judges("refusal")`, where that would be wrong. A clause is carried by what its row in the registry
# names (`judged_by`), by default an effect: a function that refuses wrong arguments and does nothing else has not shown
# its effect.


Judged = Literal["effect", "acceptance", "refusal"]

JUDGED: tuple[Judged, ...] = get_args(Judged)

_BY_VALUE = frozenset({"equal", "bits", "within"})
_REFUSING = frozenset({"rejects", "status"})


def judged_by_checks(kinds: Iterable[str]) -> tuple[Judged, ...]:
    """Return the parts that checks of these kinds judge together.

    A property (`true`) beside a refusal is about the refusal, such as its message. A call that merely returns is a step
    towards other checks, unless there are none.
    """
    judging = frozenset(kinds) - {"given", "reading"}
    refusing = bool(judging & _REFUSING)
    parts: dict[Judged, bool] = {
        "effect": bool(judging & _BY_VALUE) or ("true" in judging and not refusing),
        "acceptance": "accepts" in judging or judging == {"returns"},
        "refusal": refusing,
    }
    return tuple(part for part in JUDGED if parts[part])


def carries(judged: Collection[str], main: str) -> bool:
    """True if a case that judges these carries a clause of this main part: an effect implies its acceptance."""
    return main in judged or (main == "acceptance" and "effect" in judged)


# The values of the clause registry, frozen and equal by content: documents, clauses, interpretations, chapters.


Level = Literal["MUST", "SHOULD", "MAY", "INFO"]
Kind = Literal["requirement", "declaration", "note", "permission", "impl_defined"]
Verification = Literal["test", "static", "inspection", "untestable"]
Area = Literal["abi", "ir", "runtime", "collectives"]
Profile = Literal["core", "extended"]
Status = Literal["active", "withdrawn"]
Gap = Literal["contradiction", "example", "silence"]

LEVELS: tuple[Level, ...] = get_args(Level)
VERIFICATIONS: tuple[Verification, ...] = get_args(Verification)
AREAS: tuple[Area, ...] = get_args(Area)

DOCUMENTS = ("runtime_abi", "language_ir", "host_io", "collectives", "wsp")
"""The keys of the five documents, in the documents' own order; each has a registry file of that name."""

INTERPRETATION_ID = re.compile(r"\bAMB-[A-Z]+-[0-9]+\b")
"""The id of an interpretation in a text."""

_CITATION = re.compile(r"\b(AMB-[A-Z]+)(-[0-9]+(?:(?:,| and|, and| to) -[0-9]+)*)\b")
_RANGE = re.compile(r"-([0-9]+)(?: to -([0-9]+))?")


def cited_interpretations(text: str) -> tuple[str, ...]:
    """Return the interpretations that a text names, once each, in order.

    `AMB-RT-46, -166` names two, `AMB-HIO-44 to -48` five.
    """
    found = (
        f"{prefix}-{number:0{len(first)}}"
        for prefix, numbers in _CITATION.findall(text)
        for first, last in _RANGE.findall(numbers)
        for number in range(int(first), int(last or first) + 1)
    )
    return tuple(dict.fromkeys(found))


INTERPRETATIONS = "interpretations.toml"
PROFILES = "profiles.toml"
CONSTRUCTS = "constructs.toml"


@dataclass(frozen=True)
class Document:
    """One specification, at the time when its clauses were recorded."""

    key: str
    title: str
    prefix: str
    file: str
    lines: int
    sha256: str
    sections: Mapping[str, str] = field(default_factory=dict)
    """The title of each section that has clauses, as the specification has it."""


@dataclass(frozen=True, kw_only=True)
class Clause:
    """One testable statement of a specification.

    `lines` are the first and last source line, counted from one; `source` is the digest of their normalised text.
    `judged_by` is what a case must judge to carry it, if that is no effect. A clause that repeats another names it in
    `duplicate_of`. A withdrawn clause keeps its id forever.
    """

    document: str
    id: str
    section: str
    lines: tuple[int, int]
    source: str
    level: Level
    kind: Kind
    summary: str
    verify: Verification
    judged_by: Judged | None = None
    reason: str | None = None
    area: Area
    topic: str
    feature: str
    profile: Profile
    duplicate_of: str | None = None
    interpretations: tuple[str, ...] = ()
    since: str
    status: Status

    @property
    def file(self) -> str:
        """The registry's file that holds the row."""
        return f"{self.document}.toml"

    @property
    def active(self) -> bool:
        """True if the clause is still in force."""
        return self.status == "active"

    @property
    def testable(self) -> bool:
        """True if a case of the suite can decide it: by a call, or statically from a header, container or trace."""
        return self.verify in ("test", "static")

    def within(self, section: str) -> bool:
        """True if the clause is in this section or a subsection of it."""
        return f"{self.section}.".startswith(f"{section}.")


@dataclass(frozen=True)
class Interpretation:
    """A decision where the specifications are silent or contradict each other.

    The reference follows `decision`; tests judge only `asserted`.
    """

    document: str
    id: str
    sections: tuple[str, ...]
    issue: str
    decision: str
    why: str
    alternatives: tuple[str, ...]
    affects: tuple[str, ...]
    asserted: str
    since: str
    status: Status
    excluded: tuple[str, ...] = ()
    """Readings that are not legal, since a document's words or the meaning of a feature of this suite exclude them. A
    case may fail an implementation that follows one."""
    feature: str | None = None
    """The feature to claim in order to be judged by the part that is not core."""
    kind: Gap = "silence"
    """A contradiction: one place demands, grants or prints as grammar what another rules out. An example: a printed
    sample or listing does not follow the text. A silence: all else, including slips of notation."""
    wording: str | None = None
    """A proposed sentence for the specification, where the decision does not read as one."""
    file: ClassVar[str] = INTERPRETATIONS
    """The registry's file that holds the row."""

    @property
    def active(self) -> bool:
        """True if the decision is still in force."""
        return self.status == "active"


@dataclass(frozen=True)
class Chapter:
    """A part of a document whose untested clauses are errors: a section with its subsections, some topics, or both."""

    document: str
    section: str | None = None
    topics: tuple[str, ...] = ()

    def holds(self, clause: Clause) -> bool:
        """True if the clause belongs to this chapter."""
        return (
            clause.document == self.document
            and (self.section is None or clause.within(self.section))
            and (not self.topics or clause.topic in self.topics)
        )


@dataclass(frozen=True)
class NamedProfile:
    """Features of a document without which some of its core MUST clauses cannot be judged.

    An implementation claims the profile by claiming all of its features; its claim shows those it leaves out. `clauses`
    are the core MUST clauses that no case carries without one of the features.
    """

    id: str
    document: str
    summary: str
    features: tuple[str, ...]
    clauses: tuple[str, ...]
    file: ClassVar[str] = PROFILES
    """The registry's file that holds the row."""


@dataclass(frozen=True)
class Product:
    """A kind of implementation that people build, such as a parser, and the cases that judge it alone.

    Its cases are those whose ids begin with one of `cases` and with none of `without`, that need only its features, and
    that call only its methods. `methods` are those of the protocol that it has, `area.*` all of an area. For a product
    with `single_device`, a presumption that does not hold is no loss.
    """

    id: str
    summary: str
    needs: str
    documents: tuple[str, ...]
    methods: tuple[str, ...]
    cases: tuple[str, ...]
    without: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    single_device: bool = False


@dataclass(frozen=True)
class Construct:
    """A method or language feature that many cases need for what they judge, and the case that judges it alone.

    It is a method of the protocol, or a regular expression that matches the text of a program.
    """

    id: str
    summary: str
    control: str
    methods: tuple[str, ...] = ()
    pattern: str = ""


@dataclass(frozen=True)
class Registry:
    """Every clause and interpretation by id, in the order of the documents."""

    documents: Mapping[str, Document]
    clauses: Mapping[str, Clause]
    interpretations: Mapping[str, Interpretation]
    enforced: tuple[Chapter, ...] = ()
    profiles: tuple[NamedProfile, ...] = ()
    constructs: tuple[Construct, ...] = ()
    """The simplest construct first: the control case of one uses no construct after it."""
    products: tuple[Product, ...] = ()

    @cached_property
    def rows(self) -> Mapping[str, Clause | Interpretation]:
        """The clauses and the interpretations, by id."""
        return {**self.clauses, **self.interpretations}

    @cached_property
    def features(self) -> Sequence[str]:
        """Every feature that an implementation can claim beyond the core, in alphabetical order.

        A feature belongs to a clause, to a part of an interpretation, or to a method that no document has.
        """
        clauses = {clause.feature for clause in self.clauses.values()}
        interpretations = {row.feature for row in self.interpretations.values() if row.feature}
        methods = {method.feature for method in interface().methods.values() if "{" not in method.feature}
        return sorted((clauses | interpretations | methods) - {"core", ""})

    def clause(self, clause_id: str) -> Clause:
        """Return the clause with an id. Raises `RegistryError`, which suggests the nearest ids."""
        if clause_id not in self.clauses:
            raise RegistryError(
                "unknown clause", id=clause_id, suggestions=nearest(clause_id, self.clauses), cited_by=()
            )
        return self.clauses[clause_id]

    def carried_by(self, clause: Clause) -> Judged:
        """Return the part that a case must judge for a clause to pass; a repeated clause decides for its repetition."""
        original = self.clauses[clause.duplicate_of] if clause.duplicate_of else clause
        return original.judged_by or "effect"

    def interpretation(self, interpretation_id: str) -> Interpretation:
        """Return the interpretation with an id. Raises `RegistryError`, which suggests the nearest ids."""
        if interpretation_id not in self.interpretations:
            suggestions = nearest(interpretation_id, self.interpretations)
            raise RegistryError("unknown interpretation", id=interpretation_id, suggestions=suggestions)
        return self.interpretations[interpretation_id]

    def clauses_of(self, document: str) -> Sequence[Clause]:
        """Return the clauses of one document, in its order."""
        return [clause for clause in self.clauses.values() if clause.document == document]


def nearest(name: str, names: Mapping[str, object]) -> tuple[str, ...]:
    """Return up to three known names that a misspelt one may mean, the likeliest first."""
    asked = name.strip().upper()
    found = difflib.get_close_matches(asked, names, n=3, cutoff=0.7)
    return tuple(sorted(found, key=lambda known: _unpadded(known) != _unpadded(asked)))


def _unpadded(name: str) -> str:
    return re.sub(r"-0+(?=\d)", "-", name)


# The features that can be claimed beyond the core, each with a sentence and its methods, operations and clauses.
#
# `conformance/clauses/features.toml` has the sentences; methods come from the interface, operations from the table of
# names, clauses and interpretations from the registry.


FILE = "features.toml"
IR_LEVELS = ("graph", "schedule", "tile", "target")
"""The levels of IR on which a method's feature may depend."""


@dataclass(frozen=True)
class Feature:
    """A feature, and its meaning; `through` are the shared methods of a feature without methods of its own."""

    id: str
    summary: str
    methods: Sequence[str]
    through: Sequence[str]
    operations: Sequence[str]
    clauses: Sequence[str]
    interpretations: Sequence[str]


def features(registry: Registry, directory: Path) -> Sequence[Feature]:
    """Return every feature of a registry, in alphabetical order; without the file of sentences they are empty."""
    file = directory / FILE
    table: Mapping[str, Any] = table_of(file)["features"] if file.exists() else {}
    own: dict[str, list[str]] = {}
    for method in interface().methods.values():
        for feature in dict.fromkeys(method.feature.format(at=level) for level in IR_LEVELS):
            own.setdefault(feature, []).append(method.full_name)
    return [
        Feature(
            name,
            table.get(name, {}).get("summary", ""),
            own.get(name, ()),
            table.get(name, {}).get("methods", ()),
            [operation.name for operation in OPERATIONS.values() if operation.feature == name],
            [clause.id for clause in registry.clauses.values() if clause.feature == name],
            [row.id for row in registry.interpretations.values() if row.feature == name],
        )
        for name in registry.features
    ]
