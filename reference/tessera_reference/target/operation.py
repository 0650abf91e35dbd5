"""Operations of kernels at the Target level: each executes on the simulated device, and each is LLVM IR (section 8).

They bear the spellings of the LLVM, NVVM and ROCDL dialects. Types are ours: `fp32` is LLVM's float, `bf16` its bfloat,
fp8 its i8, `bool` its i1, which memory holds as a byte; `!llvm.ptr<1>` and vectors are themselves.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..ir.operation import Hidden, Operand, Refusal, Shown, require
from ..ir.types import Scalar, Type, Vector
from ..numerics.formats import DType
from ..tile.operation import KernelOperation
from .emission.writer import Writer

CLAUSES = ("LANG-08-01",)
"""What every operation of this level is there for: lowering ends in the LLVM dialect."""


class TargetOperation(KernelOperation):
    """An operation of a kernel at the Target level."""

    vendor: ClassVar[str] = ""
    """The only vendor whose devices have it (LANG-11-10); nothing for what LLVM has everywhere."""

    @property
    def mnemonic(self) -> str:
        """What LLVM calls the instruction or intrinsic: the last part of the name."""
        return self.name.rpartition(".")[2]

    @abstractmethod
    def emit(self, text: Writer, *operands: Any, **nothing: Any) -> Any:
        """Write it as LLVM IR; the name of its result, or a tuple of names, given those of its operands."""


@dataclass(frozen=True)
class Conversion(TargetOperation):
    """An operation on one scalar whose result's dtype is stated by the printed type only, as in MLIR."""

    x: Operand[Scalar]
    to: Hidden[DType]

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """The dtype is that of the result."""
        return {"to": scalar_shown(cls.name, shown).dtype}


def scalar_shown(name: str, shown: Shown) -> Scalar:
    """The one result that the text states, a scalar. Raises `Refusal`."""
    results = shown.results or ()
    require(
        len(results) == 1 and isinstance(results[0], Scalar),
        "types",
        f"the result of {name} is not stated to be a scalar",
        ": (...) -> fp32",
        "LANG-11-01",
    )
    (result,) = results
    assert isinstance(result, Scalar)
    return result


def held_shown(name: str, shown: Shown) -> Scalar | Vector:
    """The one result that the text states, a scalar or a vector. Raises `Refusal`."""
    results = shown.results or ()
    require(
        len(results) == 1 and isinstance(results[0], Scalar | Vector),
        "types",
        f"the result of {name} is not stated to be a scalar or a vector",
        ": (...) -> vector<4xfp32>",
        "LANG-11-01",
    )
    (result,) = results
    assert isinstance(result, Scalar | Vector)
    return result


def require_dtype(held: DType, allowed: Sequence[str], name: str = "operand") -> None:
    """Refuse a dtype that is not among those allowed."""
    if held.name not in allowed:
        raise Refusal("types", f"the {name} is {held}", f"one of {', '.join(allowed)}", "LANG-11-01", "")


def require_type(given: Type, wanted: Type, name: str) -> None:
    """Refuse a type that is not the wanted one."""
    if given != wanted:
        raise Refusal("types", f"{name} is {given}, not {wanted}", str(wanted), "LANG-11-01", "")


def require_alike(a: Type, b: Type) -> None:
    """Refuse operands of two types."""
    if a != b:
        raise Refusal("types", f"operands are {a} and {b}", "operands of one type", "LANG-11-01", "")
