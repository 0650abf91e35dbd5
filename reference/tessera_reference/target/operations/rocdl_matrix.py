"""AMD's matrix instructions: v_mfma of CDNA2 and CDNA3, by the layouts of `target.layouts` (LANG-08.2-10).

They execute by the canon as mma.sync does (AMB-LANG-223). The fp8 formats of gfx942 are not those of OCP, so no
instruction here takes fp8 (AMB-LANG-224).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...ir.operation import Operand, operation
from ...ir.types import Scalar, Vector
from ...numerics.array import Array
from ...numerics.formats import DTYPES, DType
from ...numerics.matmul import matmul
from ...tile.block import BlockState
from .. import layouts
from ..emission.writer import Writer
from ..operation import TargetOperation, require_type

_BOTH = ("gfx90a", "gfx942")


@dataclass(frozen=True)
class Kind:
    """One instruction: its operands, its shape, the name of LLVM's intrinsic, and the targets that have it."""

    dtype: DType
    m: int
    n: int
    k: int
    intrinsic: str
    targets: tuple[str, ...] = _BOTH

    @property
    def shape(self) -> tuple[int, int, int]:
        """m, n and k."""
        return self.m, self.n, self.k


def _kind(dtype: str, m: int, k: int, intrinsic: str, targets: tuple[str, ...] = _BOTH) -> Kind:
    return Kind(DTYPES[dtype], m, m, k, intrinsic, targets)


KINDS = (
    _kind("fp16", 16, 16, "mfma.f32.16x16x16f16"),
    _kind("fp16", 32, 8, "mfma.f32.32x32x8f16"),
    _kind("bf16", 16, 16, "mfma.f32.16x16x16bf16.1k"),
    _kind("bf16", 32, 8, "mfma.f32.32x32x8bf16.1k"),
    _kind("fp32", 16, 4, "mfma.f32.16x16x4f32"),
    _kind("fp32", 32, 2, "mfma.f32.32x32x2f32"),
    _kind("tf32", 16, 8, "mfma.f32.16x16x8.xf32", ("gfx942",)),
    _kind("tf32", 32, 4, "mfma.f32.32x32x4.xf32", ("gfx942",)),
    _kind("fp64", 16, 4, "mfma.f64.16x16x4f64"),
    _kind("int8", 16, 16, "mfma.i32.16x16x16i8", ("gfx90a",)),
    _kind("int8", 32, 8, "mfma.i32.32x32x8i8", ("gfx90a",)),
    _kind("int8", 16, 32, "mfma.i32.16x16x32.i8", ("gfx942",)),
    _kind("int8", 32, 16, "mfma.i32.32x32x16.i8", ("gfx942",)),
)


class Mfma(TargetOperation):
    """A times B added to C, of which each lane holds its share."""

    a: Operand[Vector]
    b: Operand[Vector]
    c: Operand[Vector]

    vendor = "amd"
    kind: ClassVar[Kind]

    def infer(self) -> Vector:
        """The accumulator's type; every operand holds as many elements as the layout spreads to a lane."""
        held = self.kind.dtype
        a, b, c = (layouts.amd(role, *self.kind.shape, held) for role in ("a", "b", "c"))
        require_type(self.a, Vector(a.held, held), "a")
        require_type(self.b, Vector(b.held, held), "b")
        require_type(self.c, Vector(c.held, held.accumulator), "c")
        return self.c

    def run(self, block: BlockState, a: Array, b: Array, c: Array) -> Array:
        """All warps at once."""
        block.whole_warps(self.name)
        held = self.kind.dtype
        spread_a, spread_b, spread_c = (layouts.amd(role, *self.kind.shape, held) for role in ("a", "b", "c"))
        product = matmul(
            Array(held, spread_a.gathered(a.values)),
            Array(held, spread_b.gathered(b.values)),
            c.dtype,
            addend=Array(c.dtype, spread_c.gathered(c.values)),
            accumulator=c.dtype,
        )
        return Array(c.dtype, spread_c.scattered(product.values))

    def emit(self, text: Writer, a: str, b: str, c: str) -> str:
        """The intrinsic; the three numbers after the operands permute nothing."""
        operands = [_operand(text, value, held) for value, held in ((a, self.a), (b, self.b))]
        result = text.type(self.c)
        plain = ("i32 0",) * 3
        return text.call(result, f"llvm.amdgcn.{self.kind.intrinsic}", *operands, f"{result} {c}", *plain)


def _operand(text: Writer, value: str, held: Vector) -> str:
    """A or B as the intrinsic takes it: bf16 as i16, int8 as one integer, a single element as itself."""
    type_ = text.type(held)
    if held.extent == 1:
        element = text.type(Scalar(held.dtype))
        return f"{element} {text.value(f'extractelement {type_} {value}, i32 0')}"
    wanted = {"bf16": f"<{held.extent} x i16>", "int8": f"i{8 * held.extent}"}.get(held.dtype.name, type_)
    return f"{wanted} {value if wanted == type_ else text.value(f'bitcast {type_} {value} to {wanted}')}"


def _declared(kind: Kind) -> type[Mfma]:
    m, n, k = kind.shape
    namespace: dict[str, Any] = {
        "__doc__": f"v_mfma of {m}x{n}x{k}, operands {kind.dtype}.",
        "__module__": __name__,
        "__annotations__": dict(Mfma.__annotations__),
        "kind": kind,
    }
    namespace["__annotations__"].pop("kind")
    declare: Callable[[type[Mfma]], type[Mfma]] = operation(
        f"rocdl.{kind.intrinsic}", clauses=("LANG-08.2-10", "LANG-07.3-02", "LANG-11-10")
    )
    return declare(type(f"Mfma{m}x{n}x{k}{kind.dtype.name.title()}", (Mfma,), namespace))


MFMA: Mapping[str, type[Mfma]] = {kind.intrinsic: _declared(kind) for kind in KINDS}
"""The operation of each instruction."""
