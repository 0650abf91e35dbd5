"""The vendors' registers, barriers, copies, shuffles and matrix instructions (LANG-08.2-05 to -12)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ...ir.operation import Attribute, Operand, Refusal, Stated, operation
from ...ir.types import Pointer, Scalar, Vector
from ...kernel_machine.block import INDEX_TYPE, BlockState, exchanged, shuffled
from ...numerics.array import Array
from ...numerics.formats import DTYPES, DType
from ...tile.operations import AXES, SIZES, BlockBarrier, GroupCommit
from ..operation import NAMES, SUFFIXES, TargetOperation, Writer, declared, require_dtype, require_type
from .memory import GLOBAL, SHARED, Load, Pointers, Store, elements, require_space, require_stored_dtype

# The position of a thread, in the special registers of each vendor (sections 8.1, 8.2; AMB-LANG-220).
#
# NVVM reads special registers of PTX. ROCDL reads the ids; the extents of the block are known when a kernel is
# compiled, and those of the grid are hidden parameters.


_CLAUSES = ("LANG-08.1-07", "LANG-08.1-08")


class Register(TargetOperation):
    """An int32 of a thread's position."""

    quantity: ClassVar[str]
    axis: ClassVar[int]
    intrinsic: ClassVar[str]
    """The name in LLVM; "" for the extents on AMD."""
    is_total = True

    def infer(self) -> Scalar:
        return INDEX_TYPE

    def run(self, block: BlockState) -> Array:
        if self.quantity == "thread":
            return block.threads[self.axis]
        numbers = {"block": block.position, "block_dim": block.extents, "grid_dim": block.grid}
        return block.uniform(numbers[self.quantity][self.axis])

    def emit(self, text: Writer) -> str:
        """Write the intrinsic; without one, return a hidden parameter or a constant of the compiled kernel."""
        if not text.entry.is_host and self.intrinsic:
            return text.call("i32", self.intrinsic)
        return text.entry.hidden.get(f"{self.quantity}_{AXES[self.axis]}", str(text.entry.block[self.axis]))


QUANTITIES = {
    "thread": ("tid", "workitem.id"),
    "block": ("ctaid", "workgroup.id"),
    "block_dim": ("ntid", "workgroup.dim"),
    "grid_dim": ("nctaid", "grid.dim"),
}
"""The registers of a quantity on NVIDIA and on AMD."""


def _every_register() -> Iterator[type[Register]]:
    for axis, letter in enumerate(AXES):
        for quantity, (of_nvidia, of_amd) in QUANTITIES.items():
            facts: dict[str, Any] = {"quantity": quantity, "axis": axis}
            meaning = f"The {quantity.replace('_', ' ')} along {letter}."
            name = f"nvvm.read.ptx.sreg.{of_nvidia}.{letter}"
            yield declared(Register, name, meaning, _CLAUSES, vendor="nvidia", intrinsic=f"llvm.{name}", **facts)
            intrinsic = "" if quantity.endswith("dim") else f"llvm.amdgcn.{of_amd}.{letter}"
            name = f"rocdl.{of_amd}.{letter}"
            yield declared(Register, name, meaning, _CLAUSES, vendor="amd", intrinsic=intrinsic, **facts)


REGISTERS = {(register.vendor, register.quantity, register.axis): register for register in _every_register()}
"""The operation for a vendor, a quantity and an axis."""

# The lane that holds each element of a matrix instruction's operands, for both vendors (LANG-08.2-05, LANG-08.2-10).
#
# NVIDIA: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions", the sections "Matrix Fragments for mma.m8n8k4
# with .f64", "... mma.m8n8k16", "... mma.m16n8k4", "... k8", "... k16 with floating point type", "... k16 with
# integer type" and "... k32"; and "Warp-level matrix load instruction: ldmatrix". AMD: "AMD matrix instruction
# calculator", the layouts of v_mfma_*, which the instruction set documents of MI200 and MI300 draw as tables. A
# `Spread` says for each lane and each element that it holds, in the order of its registers, which row and column it
# is. Lanes count in runs: `quotient` is the number of the run that a lane is in, `remainder` its place there.


Role: TypeAlias = Literal["a", "b", "c"]
Indices: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Along:
    """A coordinate: a multiple of the quotient or remainder of the lane, plus a number for each element."""

    factor: int
    of: Literal["quotient", "remainder"]
    offsets: tuple[int, ...]

    def of_lanes(self, lanes: int, width: int) -> Indices:
        """Return the coordinate for each lane and element."""
        lane = np.arange(lanes)[:, None]
        part = lane // width if self.of == "quotient" else lane % width
        return np.asarray(self.factor * part + np.asarray(self.offsets)[None, :])


@dataclass(frozen=True)
class Spread:
    """The places of a matrix's elements in each lane; lanes count in runs of `width`."""

    shape: tuple[int, int]
    lanes: int
    width: int
    row: Along
    column: Along

    @property
    def held(self) -> int:
        """The number of elements in each lane."""
        return len(self.row.offsets)

    @cached_property
    def rows(self) -> Indices:
        """The row of each element, [lanes, elements]."""
        return self.row.of_lanes(self.lanes, self.width)

    @cached_property
    def columns(self) -> Indices:
        """The column of each element, [lanes, elements]."""
        return self.column.of_lanes(self.lanes, self.width)

    def transposed(self) -> Spread:
        """Return the same lanes and elements for the transposed matrix."""
        return Spread(self.shape[::-1], self.lanes, self.width, self.column, self.row)

    @cached_property
    def places(self) -> Indices:
        """The place of each element in its matrix, the elements of lane 0 first."""
        return np.asarray(self.rows * self.shape[1] + self.columns).reshape(-1)

    @cached_property
    def holders(self) -> Indices:
        """The inverse of `places`."""
        holders = np.zeros(self.shape[0] * self.shape[1], np.int64)
        holders[self.places] = np.arange(self.places.size)
        return holders

    def gathered(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the matrices [warps, rows, columns] of the lanes' `values`, [lanes of the block, elements]."""
        by_warp = values.reshape(-1, self.lanes * self.held)
        return by_warp.take(self.holders, axis=1).reshape(-1, *self.shape)

    def scattered(self, matrices: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the elements that each lane of the block holds of matrices [warps, rows, columns]."""
        by_warp = matrices.reshape(-1, self.shape[0] * self.shape[1])
        return by_warp.take(self.places, axis=1).reshape(-1, self.held)


@cache
def nvidia(role: Role, m: int, n: int, k: int, dtype: DType) -> Spread:
    """Return the spread of an operand of mma.sync over 32 lanes, which count in groups of four.

    A register holds as many elements of a row of A, or of a column of B, as fit into 32 bits; an fp64 takes two. An
    accumulator holds pairs. Registers cover blocks of 8 rows first, then continue along k.
    """
    if role == "c":
        every = range(2 * m // 8)
        row = Along(1, "quotient", tuple(8 * (lane // 2) for lane in every))
        return Spread((m, n), 32, 4, row, Along(2, "remainder", tuple(lane % 2 for lane in every)))
    packed = max(1, 4 // dtype.storage_bytes)
    blocks = m // 8 if role == "a" else 1
    every = range(blocks * k // 4)
    across = Along(1, "quotient", tuple(8 * (lane // packed % blocks) for lane in every))
    steps = tuple(lane % packed + 4 * packed * (lane // packed // blocks) for lane in every)
    along = Along(packed, "remainder", steps)
    return Spread((m, k), 32, 4, across, along) if role == "a" else Spread((k, n), 32, 4, along, across)


@cache
def nvidia_swapped(role: Role, m: int, n: int, k: int, dtype: DType) -> Spread:
    """Return the spread of the transposed problem, B as A and A as B: for shapes whose m is less than its n."""
    swapped: dict[Role, Role] = {"a": "b", "b": "a", "c": "c"}
    return nvidia(swapped[role], n, m, k, dtype).transposed()


@cache
def amd(role: Role, m: int, n: int, k: int, dtype: DType) -> Spread:
    """Return the spread of an operand of v_mfma over 64 lanes: a row of A, or a column of B, and a stretch of k each.

    An accumulator's lane holds one column; its rows come in fours, for fp64 singly, which the lanes take in turn.
    """
    if role == "c":
        turns, run = 64 // n, 1 if dtype.name == "fp64" else 4
        steps = tuple(run * turns * (index // run) + index % run for index in range(m * n // 64))
        line = Along(1, "remainder", (0,) * len(steps))
        return Spread((m, n), 64, n, Along(run, "quotient", steps), line)
    extent = m if role == "a" else n
    per_lane = k * extent // 64
    line, along = Along(1, "remainder", (0,) * per_lane), Along(per_lane, "quotient", tuple(range(per_lane)))
    return Spread((m, k), 64, m, line, along) if role == "a" else Spread((k, n), 64, n, along, line)


@cache
def ldmatrix(count: int, transpose: bool) -> tuple[Indices, Indices]:
    """Return the place of each element of `count` 8x8 matrices: the lane of its row, and its place in the row.

    Both are [32 lanes, 2 * count]. Lanes 8i to 8i+7 give the addresses of the rows of matrix i. A lane receives two
    neighbours of a row of each matrix; transposed, two neighbours of a column.
    """
    lane, element = np.arange(32)[:, None], np.arange(2 * count)[None, :]
    group, pair = lane // 4, 2 * (lane % 4) + element % 2
    row, place = (pair, group) if transpose else (group, pair)
    rows, places = np.broadcast_arrays(8 * (element // 2) + row, place)
    return np.ascontiguousarray(rows), np.ascontiguousarray(places)


# NVIDIA's instructions for cooperating threads: barrier, asynchronous copies, shuffle (LANG-08.2-06 to -09).


FULL = 0xFFFFFFFF
"""A mask of all lanes of a warp."""


@operation("nvvm.barrier0", clauses=("LANG-08.2-08", "LANG-08.3-02"))
class Barrier(BlockBarrier, TargetOperation):
    """`bar.sync 0`: synchronizes all threads of the block."""

    vendor = "nvidia"

    def emit(self, text: Writer) -> None:
        text.call("void", "llvm.nvvm.barrier.cta.sync.aligned.all", "i32 0")


@operation("nvvm.cp.async.shared.global", clauses=("LANG-08.2-07", "LANG-07.2-04"))
class CopyAsync(TargetOperation):
    """`cp.async`: each lane copies `size` bytes from global to shared memory."""

    destination: Operand[Pointer]
    source: Operand[Pointer]
    size: Attribute[int]

    vendor = "nvidia"
    effects = frozenset({"memory"})

    def infer(self) -> None:
        require_space(self.destination, (SHARED,), "destination")
        require_space(self.source, (GLOBAL,), "source")
        if self.size not in SIZES:
            raise Refusal("tile", f"it copies {self.size} bytes", "4, 8 or 16", "LANG-07.2-04")

    def run(self, block: BlockState, destination: Pointers, source: Pointers) -> None:
        begin, end = elements(block, source, self.size), elements(block, destination, self.size)
        require_stored_dtype(end[0], begin[0].dtype)
        block.copy(*begin, *end, self.size)

    def emit(self, text: Writer, destination: str, source: str) -> None:
        """Write the intrinsic; copies of 16 bytes may bypass the first-level cache."""
        kind = "cg" if self.size == 16 else "ca"
        name = f"llvm.nvvm.cp.async.{kind}.shared.global.{self.size}"
        text.call("void", name, f"ptr addrspace(3) {destination}", f"ptr addrspace(1) {source}")


@operation("nvvm.cp.async.commit.group", clauses=("LANG-08.2-07",))
class CopyCommit(GroupCommit, TargetOperation):
    """`cp.async.commit_group`: closes each thread's group of the copies that it has begun since its last commit."""

    vendor = "nvidia"

    def emit(self, text: Writer) -> None:
        text.call("void", "llvm.nvvm.cp.async.commit.group")


@operation("nvvm.cp.async.wait.group", clauses=("LANG-08.2-07",))
class CopyWait(TargetOperation):
    """`cp.async.wait_group`: waits until at most `n` of the thread's newest groups are unfinished."""

    n: Attribute[int]

    vendor = "nvidia"
    effects = frozenset({"memory"})

    def infer(self) -> None:
        if self.n < 0:
            raise Refusal("types", f"n is {self.n}", "at least 0", "LANG-07.2-04")

    def run(self, block: BlockState) -> None:
        block.copies.wait(block, self.n)

    def emit(self, text: Writer) -> None:
        text.call("void", "llvm.nvvm.cp.async.wait.group", f"i32 {self.n}")


@operation("nvvm.shfl.sync.down", clauses=("LANG-08.2-09", "LANG-07.2-06"))
class ShuffleDown(TargetOperation):
    """`shfl.sync.down.b32`: lane i reads the value of lane i + delta, its own beyond the end of the warp."""

    value: Operand[Scalar]
    delta: Attribute[int]
    mask: Attribute[int] = FULL

    vendor = "nvidia"
    moved = (0,)

    def infer(self) -> Scalar:
        if not 0 <= self.delta < 32:
            raise Refusal("types", f"delta is {self.delta}", "from 0 to 31", "LANG-07.2-06")
        if not 0 <= self.mask <= FULL:
            raise Refusal("types", f"the mask is {self.mask}", "32 bits", "LANG-07.2-06")
        return self.value

    def run(self, block: BlockState, value: Array) -> Array:
        return Array(value.dtype, shuffled(block, value.values, self.delta, self.mask))

    def emit(self, text: Writer, value: str) -> str:
        """Write the intrinsic, on each 32 bits of the value."""

        def exchange(word: str) -> str:
            arguments = (f"i32 {self.mask}", f"i32 {word}", f"i32 {self.delta}", "i32 31")
            return text.call("i32", "llvm.nvvm.shfl.sync.down.i32", *arguments)

        words = words_of(text, value, self.value)
        return value_of(text, tuple(map(exchange, words)), self.value)


def words_of(text: Writer, value: str, scalar: Scalar) -> tuple[str, ...]:
    """Return a value as 32-bit words, the lowest first."""
    type_, bits = NAMES[scalar.dtype.name], 1 if scalar.dtype.kind == "bool" else scalar.dtype.bits
    whole = value if type_ == f"i{bits}" else text.value(f"bitcast {type_} {value} to i{bits}")
    if bits == 64:
        low = text.value(f"trunc i64 {whole} to i32")
        high = text.value(f"lshr i64 {whole}, 32")
        return low, text.value(f"trunc i64 {high} to i32")
    return (whole,) if bits == 32 else (text.value(f"zext i{bits} {whole} to i32"),)


def value_of(text: Writer, words: tuple[str, ...], scalar: Scalar) -> str:
    """Return the value that `words_of` split into the words."""
    type_, bits = NAMES[scalar.dtype.name], 1 if scalar.dtype.kind == "bool" else scalar.dtype.bits
    whole = words[0]
    if bits == 64:
        low, high = (text.value(f"zext i32 {word} to i64") for word in words)
        shifted = text.value(f"shl i64 {high}, 32")
        whole = text.value(f"or i64 {low}, {shifted}")
    elif bits < 32:
        whole = text.value(f"trunc i32 {whole} to i{bits}")
    return whole if type_ == f"i{bits}" else text.value(f"bitcast i{bits} {whole} to {type_}")


# NVIDIA's matrix instructions: ldmatrix and mma.sync, by the layouts of `target.layouts` (LANG-08.2-05, LANG-08.2-06).
#
# An mma executes by the reference, a left fold over ascending k in which each product and each sum is rounded in the
# accumulator; the hardware's rounding within one instruction is not specified (AMB-LANG-223).


SHAPES: dict[str, tuple[tuple[int, int, int], ...]] = {
    **dict.fromkeys(("fp16", "bf16"), ((16, 8, 16), (16, 8, 8))),
    "tf32": ((16, 8, 8), (16, 8, 4)),
    "fp64": ((8, 8, 4),),
    "int8": ((16, 8, 32), (16, 8, 16), (8, 8, 16)),
    **dict.fromkeys(("fp8_e4m3", "fp8_e5m2"), ((16, 8, 32),)),
}
"""The supported shapes of mma.sync, the largest first."""


@operation("nvvm.ldmatrix", clauses=("LANG-08.2-06", "LANG-07.3-01"))
class LoadMatrix(TargetOperation):
    """`ldmatrix`: `num` 8x8 matrices of 16-bit elements; lanes 8i to 8i+7 point to the rows of matrix i.

    `layout` is `row`, or `col`, which PTX calls .trans.
    """

    address: Operand[Pointer]
    returns: Stated[Vector]
    num: Attribute[int]
    layout: Attribute[str] = "row"

    vendor = "nvidia"

    def infer(self) -> Vector:
        require_space(self.address, (SHARED,))
        if self.num not in (1, 2, 4):
            raise Refusal("tile", f"{self.num} matrices", "1, 2 or 4", "LANG-08.2-06")
        if self.layout not in ("row", "col"):
            raise Refusal("tile", f"layout {self.layout!r}", "row or col", "LANG-08.2-06")
        require_dtype(self.returns.dtype, ("fp16", "bf16", "int16"), "element")
        require_type(self.returns, Vector(2 * self.num, self.returns.dtype), "the result")
        return self.returns

    def run(self, block: BlockState, address: Pointers) -> Array:
        """Return each lane's elements; the rows begin at multiples of 16 bytes."""
        block.whole_warps(self.name)
        memory, begins = elements(block, address, 1)
        require_stored_dtype(memory, self.returns.dtype)
        lanes, places = ldmatrix(self.num, self.layout == "col")
        giving = np.flatnonzero(block.every_lane % block.warp < 8 * self.num)
        block.require_aligned(memory, begins[giving], 16, giving)
        received = begins.reshape(-1, block.warp)[:, lanes]
        block.require_within(memory, np.ascontiguousarray(received[:, :, 0]).reshape(-1), 8)
        offsets = (received + places).reshape(begins.size, -1)
        return Array(self.returns.dtype, block.load(memory, offsets))

    def emit(self, text: Writer, address: str) -> str:
        """Write the intrinsic, whose 32-bit registers become the vector."""
        trans = ".trans" if self.layout == "col" else ""
        name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{self.num}{trans}.b16.p3"
        packed = "i32" if self.num == 1 else f"{{ {', '.join(['i32'] * self.num)} }}"
        packed_words = text.call(packed, name, f"ptr addrspace(3) {address}")
        words = (packed_words,) if self.num == 1 else tuple(_parts(text, packed, packed_words, self.num))
        return _vector(text, "i32", words, text.type(self.returns))


@dataclass(frozen=True)
class MatrixProduct(TargetOperation):
    """Base of the vendors' matrix instructions: A times B added to C, each lane with its share."""

    a: Operand[Vector]
    b: Operand[Vector]
    c: Operand[Vector]

    moved = (0, 1, 2)

    @abstractmethod
    def spread(self, role: Role) -> Spread:
        """Return the layout of an operand over the lanes."""

    @property
    def factors(self) -> DType:
        """The dtype of A and B."""
        return self.a.dtype

    def infer(self) -> Vector:
        """Return the accumulator's type; every operand has as many elements as the layout spreads to a lane."""
        operands: tuple[tuple[Role, Vector], ...] = (("a", self.a), ("b", self.b), ("c", self.c))
        for role, actual in operands:
            expected = self.factors.accumulator if role == "c" else self.factors
            require_type(actual, Vector(self.spread(role).held, expected), role)
        return self.c

    def run(self, block: BlockState, a: Array, b: Array, c: Array) -> Array:
        block.whole_warps(self.name)
        sums = self.spread("c")
        left = Array(self.factors, self.spread("a").gathered(a.values))
        right = Array(self.factors, self.spread("b").gathered(b.values))
        addend = Array(c.dtype, sums.gathered(c.values))
        product = block.program.product(left, right, c.dtype, addend=addend, accumulator=c.dtype)
        return Array(c.dtype, sums.scattered(product.values))


@operation("nvvm.mma.sync", clauses=("LANG-08.2-05", "LANG-07.3-02", "LANG-11-10"))
class MmaSync(MatrixProduct):
    """`mma.sync.aligned.mMnNkK.row.col`: A times B added to C, each lane with its share."""

    m: Attribute[int]
    n: Attribute[int]
    k: Attribute[int]

    vendor = "nvidia"

    def spread(self, role: Role) -> Spread:
        return nvidia(role, self.m, self.n, self.k, self.factors)

    def infer(self) -> Vector:
        shapes = SHAPES.get(self.factors.name, ())
        if (self.m, self.n, self.k) not in shapes:
            message = f"there is no mma.sync m{self.m}n{self.n}k{self.k} of {self.factors}"
            requirement = ", ".join(f"m{m}n{n}k{k}" for m, n, k in shapes) or "another dtype"
            raise Refusal("tile", message, requirement, "LANG-11-10")
        return super().infer()

    def emit(self, text: Writer, a: str, b: str, c: str) -> str:
        operands = [*_registers(text, a, self.a), *_registers(text, b, self.b), *_elements(text, c, self.c)]
        element = text.type(self.c).rpartition(" ")[2].rstrip(">")
        packed = f"{{ {', '.join([element] * self.c.extent)} }}"
        result = text.call(packed, _intrinsic(self.m, self.n, self.k, self.a.dtype, self.b.dtype), *operands)
        return _vector(text, element, tuple(_parts(text, packed, result, self.c.extent)), text.type(self.c))


def _intrinsic(m: int, n: int, k: int, a: DType, b: DType) -> str:
    """Return the name of LLVM's intrinsic, which leaves out the types that the shape implies."""
    kinds = {"fp16": "f32.f32", "bf16": "bf16", "tf32": "tf32", "fp64": "f64", "int8": "s8"}
    kind = kinds.get(a.name, f"f32.{SUFFIXES[a.name]}.{SUFFIXES[b.name]}.f32")
    return f"llvm.nvvm.mma.m{m}n{n}k{k}.row.col.{kind}"


def _registers(text: Writer, value: str, type_: Vector) -> list[str]:
    """Return the operands of A or B: 32-bit registers, which for fp16 are pairs, or doubles."""
    if type_.dtype.name == "fp64":
        return _elements(text, value, type_)
    count = type_.extent * type_.dtype.storage_bytes // 4
    words = value
    if type_.dtype.name == "tf32":
        words = _rounded_to_tf32(text, value, count)
    elif count > 1:
        words = text.value(f"bitcast {text.type(type_)} {value} to <{count} x i32>")
    else:
        return _as_pairs(text, [text.value(f"bitcast {text.type(type_)} {value} to i32")], type_)
    parts = [text.value(f"extractelement <{count} x i32> {words}, i32 {i}") for i in range(count)]
    return _as_pairs(text, parts, type_)


def _as_pairs(text: Writer, words: list[str], type_: Vector) -> list[str]:
    if type_.dtype.name != "fp16":
        return [f"i32 {word}" for word in words]
    return [f"<2 x half> {text.value(f'bitcast i32 {word} to <2 x half>')}" for word in words]


def _rounded_to_tf32(text: Writer, value: str, count: int) -> str:
    """Return fp32 elements as codes of 10 fraction bits, to nearest even, as in the reference; a NaN stays a NaN."""
    codes = f"<{count} x i32>"

    def every(number: int) -> str:
        return f"splat (i32 {number})"

    code = text.value(f"bitcast <{count} x float> {value} to {codes}")
    upper = text.value(f"lshr {codes} {code}, {every(13)}")
    even = text.value(f"and {codes} {upper}, {every(1)}")
    half = text.value(f"add {codes} {even}, {every(4095)}")
    rounded = text.value(f"add {codes} {code}, {half}")
    cut = text.value(f"and {codes} {rounded}, {every(-8192)}")
    is_nan = text.value(f"fcmp uno <{count} x float> {value}, {value}")
    return text.value(f"select <{count} x i1> {is_nan}, {codes} {every(2143289344)}, {codes} {cut}")


def _elements(text: Writer, value: str, vector: Vector) -> list[str]:
    element = text.type(vector).rpartition(" ")[2].rstrip(">")
    type_ = text.type(vector)
    return [f"{element} {text.value(f'extractelement {type_} {value}, i32 {i}')}" for i in range(vector.extent)]


def _parts(text: Writer, packed: str, value: str, count: int) -> list[str]:
    return [text.value(f"extractvalue {packed} {value}, {i}") for i in range(count)]


def _vector(text: Writer, element: str, parts: tuple[str, ...], type_: str) -> str:
    """Return parts as one vector of a type."""
    packed = f"<{len(parts)} x {element}>"
    result = "poison"
    for i, part in enumerate(parts):
        result = text.value(f"insertelement {packed} {result}, {element} {part}, i32 {i}")
    return result if packed == type_ else text.value(f"bitcast {packed} {result} to {type_}")


# AMD's instructions for cooperating threads: barrier, LDS, permutations (LANG-08.2-11, -12).


@operation("rocdl.barrier", clauses=("LANG-08-01", "LANG-08.3-02"))
class RocdlBarrier(BlockBarrier, TargetOperation):
    """`s_barrier` between fences: synchronizes all threads of the block."""

    vendor = "amd"

    def emit(self, text: Writer) -> None:
        """Write the barrier with a fence on either side, so that earlier writes are visible after it."""
        text.do('fence syncscope("workgroup") release')
        text.call("void", "llvm.amdgcn.s.barrier")
        text.do('fence syncscope("workgroup") acquire')


@operation("rocdl.ds_read", clauses=("LANG-08.2-11",))
class DsRead(Load):
    """A load from the LDS."""

    vendor, spaces = "amd", (SHARED,)


@operation("rocdl.ds_write", clauses=("LANG-08.2-11",))
class DsWrite(Store):
    """A store to the LDS."""

    vendor, spaces = "amd", (SHARED,)


@operation("rocdl.ds_bpermute", clauses=("LANG-08.2-12", "LANG-07.2-06"))
class BPermute(TargetOperation):
    """`ds_bpermute_b32`: each lane reads the value of the lane at byte address `index`, four bytes a lane."""

    index: Operand[Scalar]
    value: Operand[Scalar]

    vendor = "amd"
    moved = (1,)

    def infer(self) -> Scalar:
        require_type(self.index, INDEX_TYPE, "the index")
        return self.value

    def run(self, block: BlockState, index: Array, value: Array) -> Array:
        """Return the exchanged values; addresses wrap at the end of the warp."""
        sources = np.asarray(index.values // 4 % block.warp, np.int64)
        return Array(value.dtype, exchanged(block, value.values, sources))

    def emit(self, text: Writer, index: str, value: str) -> str:
        """Write the intrinsic, on each 32 bits of the value."""
        words = words_of(text, value, self.value)
        moved = [text.call("i32", "llvm.amdgcn.ds.bpermute", f"i32 {index}", f"i32 {word}") for word in words]
        return value_of(text, tuple(moved), self.value)


# AMD's matrix instructions: v_mfma of CDNA2 and CDNA3, by the layouts of `target.layouts` (LANG-08.2-10).
#
# They execute by the reference as mma.sync does (AMB-LANG-223). The fp8 formats of gfx942 are not those of OCP, so no
# instruction here takes fp8 (AMB-LANG-224).


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
        """The extents m, n and k."""
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


@dataclass(frozen=True)
class Mfma(MatrixProduct):
    """`v_mfma` of one kind."""

    vendor = "amd"
    kind: ClassVar[Kind]

    @property
    def factors(self) -> DType:
        return self.kind.dtype

    def spread(self, role: Role) -> Spread:
        return amd(role, *self.kind.shape, self.factors)

    def emit(self, text: Writer, a: str, b: str, c: str) -> str:
        """Write the intrinsic; the three numbers after the operands permute nothing."""
        operands = [_operand(text, value, vector) for value, vector in ((a, self.a), (b, self.b))]
        result = text.type(self.c)
        plain = ("i32 0",) * 3
        return text.call(result, f"llvm.amdgcn.{self.kind.intrinsic}", *operands, f"{result} {c}", *plain)


def _operand(text: Writer, value: str, vector: Vector) -> str:
    """Return A or B as the intrinsic takes it: bf16 as i16, int8 as one integer, a single element unchanged."""
    type_ = text.type(vector)
    if vector.extent == 1:
        element = text.type(Scalar(vector.dtype))
        return f"{element} {text.value(f'extractelement {type_} {value}, i32 0')}"
    word_type = {"bf16": f"<{vector.extent} x i16>", "int8": f"i{8 * vector.extent}"}.get(vector.dtype.name, type_)
    return f"{word_type} {value if word_type == type_ else text.value(f'bitcast {type_} {value} to {word_type}')}"


MFMA: Mapping[str, type[Mfma]] = {
    kind.intrinsic: declared(
        Mfma,
        f"rocdl.{kind.intrinsic}",
        f"v_mfma of {kind.m}x{kind.n}x{kind.k}, operands {kind.dtype}.",
        ("LANG-08.2-10", "LANG-07.3-02", "LANG-11-10"),
        kind=kind,
    )
    for kind in KINDS
}
"""The operation of each instruction."""
