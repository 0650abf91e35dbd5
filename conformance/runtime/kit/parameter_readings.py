"""Readings by which a compiler refuses parameters of kernels: narrow scalars, scalars before buffers (10.1)."""

from __future__ import annotations

import re

from tessera_conformance.check import Check
from tessera_conformance.protocol import Observation, Rejected, Returned
from tessera_conformance.session import Implementation

__all__ = ["NARROW", "judge_extents", "judge_refusal", "parameters_of"]

NAMED_DIMENSION = re.compile(r"\btensor<(\d+x)*[A-Z][A-Z0-9_]*x")

NARROW = ("int8", "int16", "bool", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2")
"""Scalars of fewer than 32 bits."""


def judge_refusal(impl: Implementation, check: Check, observation: Observation, source: str) -> None:
    """End the case as another reading if a compiler refuses a program for its parameters (AMB-RT-17, -19).

    A small kernel shows it: refused with such a parameter, compiled without.
    """
    if not isinstance(observation, Rejected):
        return
    kernels = parameters_of(source)
    if any(map(_scalar_first, kernels)):
        first = "the compiler refuses kernels that declare a scalar before a buffer"
        check.reading("AMB-RT-19", first, _refuses_first(impl, (f"v: int32, {TENSOR}", f"{TENSOR}, v: int32")))
    narrow = sorted({type_ for types in kernels for type_ in types if type_ in NARROW})
    pairs = [(f"{TENSOR}, v: {type_}", f"{TENSOR}, v: int32") for type_ in narrow]
    check.reading("AMB-RT-17", "refuse narrower scalars", any(_refuses_first(impl, pair) for pair in pairs))


TENSOR = "x: tensor<8xint32>"


def _refuses_first(impl: Implementation, parameters: tuple[str, str]) -> bool:
    """True if the compiler refuses the first of two kernels, and accepts the second."""
    sources = [f"module m {{ kernel k({listed}) {{ x = x + x; }} }}" for listed in parameters]
    return [isinstance(impl.abi.compile(source=source), Returned) for source in sources] == [False, True]


NAMED = "module m { kernel k(N: int32, x: tensor<Nxint32>) { x = x + N; } }"
STATIC = "module m { kernel k(N: int32, x: tensor<8xint32>) { x = x + N; } }"


def judge_extents(impl: Implementation, check: Check, observation: Observation, source: str) -> None:
    """End the case as another reading if a compiler accepts no dimension with a name (AMB-RT-85)."""
    if isinstance(observation, Rejected) and NAMED_DIMENSION.search(source):
        answers = [impl.abi.compile(source=text) for text in (NAMED, STATIC)]
        static = [isinstance(answer, Returned) for answer in answers] == [False, True]
        check.reading("AMB-RT-85", "static shapes only", static)


def parameters_of(source: str) -> list[list[str]]:
    """Return the types of the parameters of each kernel of a program, `*` for a tensor."""
    lists = [found[1] for found in re.finditer(r"kernel \w+\(([^)]*)\)", source)]
    types = [[word.partition(":")[2].strip() for word in one.split(",") if word.strip()] for one in lists]
    return [["*" if type_.startswith("tensor") else type_ for type_ in one] for one in types]


def _scalar_first(types: list[str]) -> bool:
    pointers = [place for place, type_ in enumerate(types) if type_ == "*"]
    return pointers != list(range(len(pointers)))
