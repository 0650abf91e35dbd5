"""What is tried: one program, or two of one meaning, and what is known of them; all follows from the decisions."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from tessera_conformance.fuzz.choices import Chooser, SeededChooser
from tessera_conformance.fuzz.generator import GeneratedProgram, Output, generate, vary
from tessera_conformance.fuzz.mutations import break_program, mutate
from tessera_conformance.tensors import Tensor, from_wire, to_wire

Kind = Literal["legal", "variant", "illegal", "mutant"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SHARES: tuple[Kind, ...] = (*("legal",) * 3, *("variant",) * 2, *("illegal",) * 2, *("mutant",) * 3)

Declarations = list[tuple[str, list[tuple[str, str]]]]


@dataclass(frozen=True)
class Subject:
    """A program, and the function to execute with its inputs; no function means that nothing is executed.

    A program that communicates is executed on so many `ranks`, each with the same inputs.
    """

    source: str
    function: str = ""
    inputs: Mapping[str, Tensor] = field(default_factory=dict)
    ranks: int = 0


@dataclass(frozen=True)
class Trial:
    """What is asked, and what is known beforehand.

    A `legal` program is accepted, declares `declared` and gives `outputs`; a `variant` stands beside its `twin`, which
    has the same meaning; an `illegal` one is refused with one of `categories`; of a `mutant` nothing is known; it
    is executed where it is accepted.
    """

    kind: Kind
    what: str
    subject: Subject
    twin: Subject | None = None
    categories: tuple[str, ...] = ()
    outputs: tuple[Output, ...] = ()
    declared: Declarations | None = None
    thorough: bool = False
    """Whether the program is also parsed, lowered, and executed a second time."""


def chooser_of(seed: int, index: int) -> SeededChooser:
    """The decisions behind trial `index` of a seed."""
    return SeededChooser(f"{seed}/{index}")


def make_trial(chooser: Chooser, features: Collection[str] = (), kinds: Collection[Kind] = KINDS) -> Trial:
    """A trial of one of the kinds, with what the core and the features have."""
    kind = chooser.pick([each for each in SHARES if each in kinds])
    program = generate(chooser, features)
    subject = subject_of(program)
    if kind == "legal":
        return legal(program, thorough=chooser.chance(4))
    if kind == "variant":
        what, source, function, inputs = vary(program, chooser)
        return Trial("variant", what, subject, Subject(source, function, inputs, program.ranks))
    if kind == "illegal":
        what, source, categories = break_program(program, chooser)
        return Trial("illegal", what, replace(subject, source=source), categories=categories)
    source = mutate(program.source, chooser)
    mutated = replace(subject, source=source) if _ends_soon(source) else Subject(source)
    return Trial("mutant", "mutated text", mutated, thorough=chooser.chance(8))


def _ends_soon(source: str) -> bool:
    """Whether a text, should it be a program, is executed in little time: no loops, and no large numbers."""
    return re.search(r"\b(?:for|while)\b|\d{3}", source) is None


def subject_of(program: GeneratedProgram) -> Subject:
    """A generated program as it is asked about."""
    return Subject(program.source, program.function, program.inputs, program.ranks)


def legal(program: GeneratedProgram, *, thorough: bool) -> Trial:
    """The trial of a legal program."""
    return Trial(
        "legal",
        "legal by construction",
        subject_of(program),
        outputs=program.outputs,
        declared=program.declared,
        thorough=thorough,
    )


# As JSON


def trial_message(trial: Trial) -> dict[str, Any]:
    """The trial as JSON values."""
    twin = None if trial.twin is None else _subject_message(trial.twin)
    outputs = [vars(each) for each in trial.outputs]
    return {**vars(trial), "subject": _subject_message(trial.subject), "twin": twin, "outputs": outputs}


def trial_from(message: Mapping[str, Any]) -> Trial:
    """The trial behind such JSON values.

    Raises:
        KeyError, TypeError, ValueError: they have another form.
    """
    if message["kind"] not in KINDS:
        raise ValueError(f"unknown kind {message['kind']!r}")
    declared = message["declared"]
    return Trial(
        message["kind"],
        message["what"],
        _subject_from(message["subject"]),
        None if message["twin"] is None else _subject_from(message["twin"]),
        tuple(message["categories"]),
        tuple(
            Output(each["dtype"], None if each["shape"] is None else tuple(each["shape"]))
            for each in message["outputs"]
        ),
        None if declared is None else [(name, [(kind, each) for kind, each in found]) for name, found in declared],
        bool(message["thorough"]),
    )


def _subject_message(subject: Subject) -> dict[str, Any]:
    return {**vars(subject), "inputs": to_wire(dict(subject.inputs))}


def _subject_from(message: Mapping[str, Any]) -> Subject:
    inputs = dict(from_wire(message["inputs"]))
    return Subject(str(message["source"]), str(message["function"]), inputs, int(message["ranks"]))
