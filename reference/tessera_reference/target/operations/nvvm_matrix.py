"""NVIDIA's matrix instructions: ldmatrix and mma.sync, by the layouts of `target.layouts` (LANG-08.2-05, LANG-08.2-06).

An mma executes by the canon, a left fold over ascending k in which each product and each sum is rounded in the
accumulator; how the hardware rounds within one instruction is not specified (AMB-LANG-223).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.operation import Attribute, Hidden, Operand, Shown, operation, require
from ...ir.types import Pointer, Vector
from ...numerics.array import Array
from ...numerics.formats import DType
from ...numerics.matmul import matmul
from ...tile.block import BlockState
from .. import layouts
from ..addresses import Pointers, elements
from ..addresses import require_dtype as require_held
from ..emission.types import SUFFIXES
from ..emission.writer import Writer
from ..operation import TargetOperation, held_shown, require_dtype, require_type
from .pointers import SHARED, require_space

SHAPES: dict[str, tuple[tuple[int, int, int], ...]] = {
    **dict.fromkeys(("fp16", "bf16"), ((16, 8, 16), (16, 8, 8))),
    "tf32": ((16, 8, 8), (16, 8, 4)),
    "fp64": ((8, 8, 4),),
    "int8": ((16, 8, 32), (16, 8, 16), (8, 8, 16)),
    **dict.fromkeys(("fp8_e4m3", "fp8_e5m2"), ((16, 8, 32),)),
}
"""The shapes of mma.sync that are used, the largest first."""


@operation("nvvm.ldmatrix", clauses=("LANG-08.2-06", "LANG-07.3-01"))
class LoadMatrix(TargetOperation):
    """`ldmatrix`: `num` 8x8 matrices of 16-bit elements, of which lanes 8i to 8i+7 point to the rows of matrix i.

    `layout` is `row`, or `col` for what PTX calls .trans.
    """

    address: Operand[Pointer]
    returns: Hidden[Vector]
    num: Attribute[int]
    layout: Attribute[str] = "row"

    vendor = "nvidia"

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """The type is that of the result."""
        return {"returns": held_shown(cls.name, shown)}

    def infer(self) -> Vector:
        """Two elements of each matrix."""
        require_space(self.address, (SHARED,))
        require(self.num in (1, 2, 4), "tile", f"{self.num} matrices", "1, 2 or 4", "LANG-08.2-06")
        require(self.layout in ("row", "col"), "tile", f"layout {self.layout!r}", "row or col", "LANG-08.2-06")
        require_dtype(self.returns.dtype, ("fp16", "bf16", "int16"), "element")
        require_type(self.returns, Vector(2 * self.num, self.returns.dtype), "the result")
        return self.returns

    def run(self, block: BlockState, address: Pointers) -> Array:
        """Read, each lane what it receives; the rows begin at multiples of 16 bytes."""
        block.whole_warps(self.name)
        memory, begins = elements(block, address, 1)
        require_held(memory, self.returns.dtype)
        lanes, places = layouts.ldmatrix(self.num, self.layout == "col")
        giving = np.flatnonzero(block.every_lane % block.warp < 8 * self.num)
        block.require_aligned(memory, begins[giving], 16, giving)
        received = begins.reshape(-1, block.warp)[:, lanes]
        block.require_within(memory, np.ascontiguousarray(received[:, :, 0]).reshape(-1), 8)
        offsets = (received + places).reshape(block.lanes, -1)
        return Array(self.returns.dtype, block.load(memory, offsets))

    def emit(self, text: Writer, address: str) -> str:
        """The intrinsic, whose 32-bit registers become the vector."""
        trans = ".trans" if self.layout == "col" else ""
        name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{self.num}{trans}.b16.p3"
        packed = "i32" if self.num == 1 else f"{{ {', '.join(['i32'] * self.num)} }}"
        made = text.call(packed, name, f"ptr addrspace(3) {address}")
        words = (made,) if self.num == 1 else tuple(_parts(text, packed, made, self.num))
        return _vector(text, "i32", words, text.type(self.returns))


@operation("nvvm.mma.sync", clauses=("LANG-08.2-05", "LANG-07.3-02", "LANG-11-10"))
class MmaSync(TargetOperation):
    """`mma.sync.aligned.mMnNkK.row.col`: A times B added to C, of which each lane holds its share."""

    a: Operand[Vector]
    b: Operand[Vector]
    c: Operand[Vector]
    m: Attribute[int]
    n: Attribute[int]
    k: Attribute[int]

    vendor = "nvidia"

    def infer(self) -> Vector:
        """The accumulator's type; every operand holds as many elements as the layout spreads to a lane."""
        held = self.a.dtype
        shape = (self.m, self.n, self.k)
        require(
            shape in SHAPES.get(held.name, ()),
            "tile",
            f"there is no mma.sync m{self.m}n{self.n}k{self.k} of {held}",
            ", ".join(f"m{m}n{n}k{k}" for m, n, k in SHAPES.get(held.name, ())) or "another dtype",
            "LANG-11-10",
        )
        for role, given in (("a", self.a), ("b", self.b), ("c", self.c)):
            wanted = held.accumulator if role == "c" else held
            require_type(given, Vector(layouts.nvidia(role, *shape, held).held, wanted), role)
        return self.c

    def run(self, block: BlockState, a: Array, b: Array, c: Array) -> Array:
        """All warps at once."""
        block.whole_warps(self.name)
        shape, held = (self.m, self.n, self.k), self.a.dtype
        spread_c = layouts.nvidia("c", *shape, held)
        product = matmul(
            Array(held, layouts.nvidia("a", *shape, held).gathered(a.values)),
            Array(held, layouts.nvidia("b", *shape, held).gathered(b.values)),
            c.dtype,
            addend=Array(c.dtype, spread_c.gathered(c.values)),
            accumulator=c.dtype,
        )
        return Array(c.dtype, spread_c.scattered(product.values))

    def emit(self, text: Writer, a: str, b: str, c: str) -> str:
        """The intrinsic, on registers."""
        operands = [*_registers(text, a, self.a), *_registers(text, b, self.b), *_elements(text, c, self.c)]
        element = text.type(self.c).rpartition(" ")[2].rstrip(">")
        packed = f"{{ {', '.join([element] * self.c.extent)} }}"
        made = text.call(packed, _intrinsic(self.m, self.n, self.k, self.a.dtype, self.b.dtype), *operands)
        return _vector(text, element, tuple(_parts(text, packed, made, self.c.extent)), text.type(self.c))


def _intrinsic(m: int, n: int, k: int, a: DType, b: DType) -> str:
    """The name of LLVM's intrinsic, which leaves out the types that the shape implies."""
    kinds = {"fp16": "f32.f32", "bf16": "bf16", "tf32": "tf32", "fp64": "f64", "int8": "s8"}
    kind = kinds.get(a.name, f"f32.{SUFFIXES[a.name]}.{SUFFIXES[b.name]}.f32")
    return f"llvm.nvvm.mma.m{m}n{n}k{k}.row.col.{kind}"


def _registers(text: Writer, value: str, held: Vector) -> list[str]:
    """The operands of A or B: 32-bit registers, which for fp16 are pairs, or doubles."""
    if held.dtype.name == "fp64":
        return _elements(text, value, held)
    count = held.extent * held.dtype.storage_bytes // 4
    words = value
    if held.dtype.name == "tf32":
        words = _rounded_to_tf32(text, value, count)
    elif count > 1:
        words = text.value(f"bitcast {text.type(held)} {value} to <{count} x i32>")
    else:
        return _as_pairs(text, [text.value(f"bitcast {text.type(held)} {value} to i32")], held)
    return _as_pairs(text, [text.value(f"extractelement <{count} x i32> {words}, i32 {i}") for i in range(count)], held)


def _as_pairs(text: Writer, words: list[str], held: Vector) -> list[str]:
    if held.dtype.name != "fp16":
        return [f"i32 {word}" for word in words]
    return [f"<2 x half> {text.value(f'bitcast i32 {word} to <2 x half>')}" for word in words]


def _rounded_to_tf32(text: Writer, value: str, count: int) -> str:
    """fp32 elements as codes of 10 fraction bits, to nearest even, as the canon has it; a NaN stays one."""
    codes, bits = f"<{count} x i32>", f"<{count} x i32> splat (i32 "
    code = text.value(f"bitcast <{count} x float> {value} to {codes}")
    kept = text.value(f"lshr {codes} {code}, {bits.partition('> ')[2]}13)")
    even = text.value(f"and {codes} {kept}, {bits.partition('> ')[2]}1)")
    half = text.value(f"add {codes} {even}, {bits.partition('> ')[2]}4095)")
    rounded = text.value(f"add {codes} {code}, {half}")
    cut = text.value(f"and {codes} {rounded}, {bits.partition('> ')[2]}-8192)")
    is_nan = text.value(f"fcmp uno <{count} x float> {value}, {value}")
    return text.value(f"select <{count} x i1> {is_nan}, {bits}2143289344), {codes} {cut}")


def _elements(text: Writer, value: str, held: Vector) -> list[str]:
    element = text.type(held).rpartition(" ")[2].rstrip(">")
    type_ = text.type(held)
    return [f"{element} {text.value(f'extractelement {type_} {value}, i32 {i}')}" for i in range(held.extent)]


def _parts(text: Writer, packed: str, value: str, count: int) -> list[str]:
    return [text.value(f"extractvalue {packed} {value}, {i}") for i in range(count)]


def _vector(text: Writer, element: str, parts: tuple[str, ...], type_: str) -> str:
    """Parts put together, as a vector of some type."""
    packed = f"<{len(parts)} x {element}>"
    made = "poison"
    for i, part in enumerate(parts):
        made = text.value(f"insertelement {packed} {made}, {element} {part}, i32 {i}")
    return made if packed == type_ else text.value(f"bitcast {packed} {made} to {type_}")
