"""Calls of the functions of the canon: `@tss_exp_f32` and its like, each rounded once (LANG-10-11).

Machines approximate such functions differently, so kernels call a library by these names; the reference's numerics
implements it (AMB-LANG-222). Floats of 16 bits and fp8 are passed in their own dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...ir.operation import Attribute, Hidden, Operands, Shown, operation, require
from ...ir.spelling import did_you_mean
from ...ir.types import Scalar
from ...numerics import activations, elementary
from ...numerics.array import Array
from ...numerics.formats import DTYPES, DType
from ...numerics.rounding import Overflow, cast
from ...tile.block import BlockState
from ..emission.types import NAMES, SUFFIXES
from ..emission.writer import Writer
from ..operation import TargetOperation, scalar_shown

MODES: tuple[Overflow, ...] = ("saturate", "nonfinite")
PREFIX = "tss_"
"""Of every symbol of ours (LANG-16-01)."""


@dataclass(frozen=True)
class Callee:
    """A function of the library."""

    operands: tuple[DType, ...]
    result: DType
    compute: Callable[..., Array]


def symbol(function: str, held: DType) -> str:
    """The name of a function for a dtype: `tss_exp_f32`."""
    return f"{PREFIX}{function}_{SUFFIXES[held.name]}"


def conversion_symbol(source: DType, to: DType, overflow: str = "saturate") -> str:
    """The name of a conversion: `tss_f32_to_e4m3`; the other overflow mode is named."""
    mode = "" if overflow == "saturate" or to.bits != 8 else f"_{overflow}"
    return f"{PREFIX}{SUFFIXES[source.name]}_to_{SUFFIXES[to.name]}{mode}"


def _functions() -> Iterator[tuple[str, Callee]]:
    floats = [DTYPES[name] for name in ("fp64", "fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2")]
    known: dict[str, Callable[..., Array]] = {name: partial(elementary.apply, name) for name in elementary.FUNCTIONS}
    known |= {"sigmoid": activations.sigmoid, "silu": activations.silu, "gelu": activations.gelu}
    known["gelu_tanh"] = partial(activations.gelu, approximate="tanh")
    for name, compute in known.items():
        for held in floats:
            yield symbol(name, held), Callee((held,) * (2 if name == "pow" else 1), held, compute)


def _conversions() -> Iterator[tuple[str, Callee]]:
    small = [DTYPES[name] for name in ("fp8_e4m3", "fp8_e5m2")]
    for source in (DTYPES[name] for name in ("fp64", "fp32")):
        for to in small:
            for mode in MODES:
                yield conversion_symbol(source, to, mode), Callee((source,), to, partial(cast, dtype=to, overflow=mode))
    for source in small:
        wide = DTYPES["fp32"]
        yield conversion_symbol(source, wide), Callee((source,), wide, partial(cast, dtype=wide))
    long = DTYPES["int64"]
    for to in (DTYPES["fp16"], DTYPES["bf16"], *small):
        for mode in MODES[: 2 if to.bits == 8 else 1]:
            yield conversion_symbol(long, to, mode), Callee((long,), to, partial(cast, dtype=to, overflow=mode))


CALLEES: dict[str, Callee] = {**dict(_functions()), **dict(_conversions())}
"""Every function of the library by its symbol. tf32 is fp32 here."""


@operation("llvm.call", clauses=("LANG-08-01", "LANG-10-11"))
class Call(TargetOperation):
    """A function of the library."""

    arguments: Operands[Scalar]
    callee: Attribute[str]
    returns: Hidden[DType]

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """The dtype is that of the result."""
        return {"returns": scalar_shown(cls.name, shown).dtype}

    def infer(self) -> Scalar:
        """The function's result type; checks the operands against its declaration."""
        require(
            self.callee in CALLEES,
            "types",
            f"there is no function @{self.callee}",
            "a function of the library",
            "LANG-08-01",
            did_you_mean(self.callee, CALLEES),
        )
        callee = CALLEES[self.callee]
        given = tuple(type_.dtype.storage for type_ in self.arguments)
        require(
            given == callee.operands and self.returns.storage == callee.result,
            "types",
            f"@{self.callee} is given ({', '.join(map(str, given))}) for {self.returns}",
            f"({', '.join(map(str, callee.operands))}) -> {callee.result}",
            "LANG-11-01",
        )
        return Scalar(self.returns)

    def run(self, block: BlockState, *arguments: Array) -> Array:
        """The function by the canon."""
        plain = (Array(each.dtype.storage, each.values) for each in arguments)
        return Array(self.returns, CALLEES[self.callee].compute(*plain).values)

    def emit(self, text: Writer, *arguments: str) -> str:
        """A call; on a host floats of 16 bits are passed as integers, whose convention is the same everywhere."""
        callee = CALLEES[self.callee]
        if not text.entry.is_host:
            passed = [f"{NAMES[held.name]} {each}" for held, each in zip(callee.operands, arguments, strict=True)]
            return text.call(NAMES[callee.result.name], self.callee, *passed)
        passed = [_as_passed(text, held, each) for held, each in zip(callee.operands, arguments, strict=True)]
        result = text.call(passed_type(callee.result), self.callee, *passed)
        if callee.result.bits != 16:
            return result
        return text.value(f"bitcast i16 {result} to {NAMES[callee.result.name]}")


def passed_type(held: DType) -> str:
    """The LLVM type in which a value of a dtype is passed to a function on a host."""
    return "i16" if held.bits == 16 else NAMES[held.name]


def _as_passed(text: Writer, held: DType, value: str) -> str:
    if held.bits == 16 and held.kind == "float":
        return f"i16 {text.value(f'bitcast {NAMES[held.name]} {value} to i16')}"
    return f"{NAMES[held.name]} {value}"
