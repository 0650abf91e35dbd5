"""A program of the corpus, the function that writes one, and its data.

Inputs are counter bits from seeds that follow from the names, `"bf16 20x24"`; after `wide` the exponents spread so far
that sums depend on their order, after `edges` some elements are zeros of either sign, subnormals, limits, infinities
and NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from tessera_conformance.dsl import module, type_of
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor
from tessera_conformance.vectors.building import COMPLEX, complex_of, counted, float_edges

from ..elements import integer_edges

SCHEDULES: tuple[Mapping[str, Any], ...] = (
    {"tile": [16, 16, 16], "depth": 2},
    {"tile": [12, 20, 9], "depth": 1, "prefetch": "none"},
    {},
    {"tile": [32, 16, 16], "depth": 3},
    {"tile": [16, 8, 32], "depth": 4, "prefetch": "global"},
)
"""Sizes that divide the extents, that do not, that are larger, and those that the implementation chooses."""


@dataclass(frozen=True)
class Program:
    """A program and the inputs of its function `f`; `expected` is None if Graph IR gives the right result."""

    name: str
    about: str
    source: str
    inputs: Mapping[str, Tensor]
    features: tuple[str, ...] = ()
    expected: tuple[Tensor, ...] | None = None

    def schedule(self, turn: int) -> Mapping[str, Any]:
        """Return one of `SCHEDULES`, a different one each turn; programs begin with different ones."""
        return SCHEDULES[(crc32(self.name.encode()) + turn) % len(SCHEDULES)]


def composed(
    name: str,
    about: str,
    body: str,
    features: str = "",
    *others: str,
    attributes: str = "",
    **inputs: str | Tensor,
) -> Program:
    """Return a program of one function `f` with these statements, beside other members of its module."""
    given = {key: _data(value, f"{name}/{key}") if isinstance(value, str) else value for key, value in inputs.items()}
    parameters = ", ".join(f"{key}: {type_of(value)}" for key, value in given.items())
    head = f"func f({parameters})" + (f" @{attributes}" if attributes else "")
    source = module(*others, f"  {head} {{", f"    {body}", "  }")
    return Program(name, about, source, given, tuple(features.split()))


def _data(described: str, name: str) -> Tensor:
    """`"fp32 5x7 wide edges"` as a tensor; no shape for a scalar."""
    dtype, *rest = described.split()
    words = {word for word in rest if word in ("wide", "edges")}
    shape = tuple(int(extent) for word in rest if word not in words for extent in word.split("x"))
    exponents = (-2, 2) if "wide" not in words else (-6, 6) if dtype in ("fp8_e4m3", "fp8_e5m2", "fp16") else (-9, 9)
    if dtype in COMPLEX:
        return complex_of(dtype, *(_data(f"{COMPLEX[dtype]} {' '.join(rest)}", f"{name}/{part}") for part in "ri"))
    found = counted(dtype, shape, crc32(name.encode()), exponents)
    if "edges" not in words:
        return found
    codes = (float_edges if ELEMENT_FORMATS[dtype].is_float else integer_edges)(dtype).words().tolist()
    mixed = found.words().tolist()
    for place, code in enumerate(codes):
        mixed[(7 * place + 3) % len(mixed)] = code
    return Tensor.from_words(dtype, shape, mixed)
