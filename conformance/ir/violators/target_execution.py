"""Simulated devices that run Target IR wrongly: lanes, memory, exchanges, entries (8.1, 8.2, 16)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tessera_conformance.strength import Violation, replaced
from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.kernel_machine import block as exchange
from tessera_reference.kernel_machine.block import BlockState
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.target_ir.operations import llvm, vendors
from tessera_reference.target_ir.operations import memory as addresses
from tessera_reference.target_ir.operations import memory as pointers
from tessera_reference.tile.operations import For

MMA, LDMATRIX, COPY, BAR, SHFL = (f"LANG-08.2-{number:02}" for number in range(5, 10))
MFMA, LDS, SWIZZLE = "LANG-08.2-10", "LANG-08.2-11", "LANG-08.2-12"

# Elements of the lanes

Spreads = Callable[[Any], Any]


def holding(name: str, clause: str, description: str, vendor: str, of: str, change: Spreads) -> Violation:
    """Return a violation whose lanes hold one operand differently."""
    plain = getattr(vendors, vendor)

    def spread(role: str, *shape: Any) -> Any:
        found = plain(role, *shape)
        return change(found) if role == of else found

    return replaced(clause, description, make, (vendors, vendor, spread), name=name)


def reordered(rows: Callable[[Any], Any] | None, columns: Callable[[Any], Any] | None = None) -> Spreads:
    """Return a change of the order of rows or columns, [lanes, elements]."""

    def change(spread: Any) -> Any:
        made = vendors.Spread(spread.shape, spread.lanes, spread.width, spread.row, spread.column)
        vars(made)["rows"] = spread.rows if rows is None else rows(spread.rows)
        vars(made)["columns"] = spread.columns if columns is None else columns(spread.columns)
        return made

    return change


def halves(of: Any) -> Any:
    """Exchange the two halves of each lane's elements."""
    middle = of.shape[1] // 2
    return np.concatenate([of[:, middle:], of[:, :middle]], axis=1)


def lanes(of: Any) -> Any:
    """Give each lane the elements of the opposite one."""
    return of[::-1]


PLACES = [
    holding("a_columns", MMA, "takes the halves of A along k for each other", "nvidia", "a", reordered(None, halves)),
    holding("amd_a_rows", MFMA, "swaps the rows of A's share", "amd", "a", reordered(lanes)),
]

_ldmatrix = vendors.ldmatrix


def not_transposed(count: int, transpose: bool) -> Any:
    return _ldmatrix(count, False)


def last_matrix_first(count: int, transpose: bool) -> Any:
    rows, places = _ldmatrix(count, transpose)
    return rows // 8 * -8 + 8 * (count - 1) + rows % 8, places


MATRICES = [
    replaced(LDMATRIX, "never transposes", make, ("target_ir.operations.vendors.ldmatrix", not_transposed),
        name="not_transposed"),
    replaced(LDMATRIX, "reverses the matrices", make, ("target_ir.operations.vendors.ldmatrix", last_matrix_first),
        name="reversed"),
    replaced("LANG-16-06", "loads matrices from any address", make,
             ("kernel_machine.block.BlockState.require_aligned", lambda *ignored: None), name="rows_anywhere"),
]  # fmt: skip

# Barriers, copies, memory


def any_barrier(self: Any, block: BlockState) -> tuple[()]:
    """Pass a barrier without a full set of threads."""
    block.copies.barrier()
    block.clock.tick()
    return ()


def no_wait(self: Any, block: BlockState) -> tuple[()]:
    return ()


def four_bytes(self: vendors.CopyAsync, block: BlockState, destination: Any, source: Any) -> tuple[()]:
    begin, end = vendors.elements(block, source, self.size), vendors.elements(block, destination, self.size)
    block.copy(*begin, *end, 4)
    return ()


def synchronous(self: vendors.CopyAsync, block: BlockState, destination: Any, source: Any) -> tuple[()]:
    (memory, begin), (to, end) = (
        vendors.elements(block, source, self.size),
        vendors.elements(block, destination, self.size),
    )
    places = np.arange(self.size // memory.dtype.storage_bytes)
    block.store(to, end[:, None] + places, block.load(memory, begin[:, None] + places))
    return ()


def anywhere(block: BlockState, at: Any, alignment: int) -> Any:
    """Require the alignment of one element only."""
    return _elements(block, at, 1)


_elements = addresses.elements

MEETING = [
    replaced(BAR, "lets part of a block pass bar.sync", make, ("target_ir.operations.vendors.Barrier.run", any_barrier),
             name="partial_bar"),
    replaced(LDS, "lets part of a block pass s_barrier", make,
        ("target_ir.operations.vendors.RocdlBarrier.run", any_barrier), name="partial_s_barrier"),
    replaced(COPY, "copies four bytes always", make, ("target_ir.operations.vendors.CopyAsync.run", four_bytes),
        name="four_bytes"),
    replaced(COPY, "finishes every group at a wait", make,
        ("target_ir.operations.vendors.CopyWait.run", lambda self, block: block.copies.wait(block, 0) or ()),
        name="waits_for_all"),
    replaced(COPY, "copies from any address", make, ("target_ir.operations.vendors.elements", anywhere),
             ("kernel_machine.block.BlockState.require_aligned", lambda *ignored: None), name="copies_anywhere"),
    replaced("LANG-16-05", "loads vectors from any address", make, ("target_ir.operations.memory.elements", anywhere),
             name="vectors_anywhere"),
]  # fmt: skip

# Arithmetic of lanes: conversions, comparisons, vectors, addresses

LLVM = "LANG-08-01"


def converting(name: str, description: str, mnemonic: str, change: Callable[[Array, Any], Array]) -> Violation:
    """Return a violation with another conversion."""

    def run(self: llvm.Cast, block: BlockState, x: Array) -> Array:
        return change(x, self.to) if self.name.removeprefix("llvm.") == mnemonic else _cast_run(self, block, x)

    return replaced(LLVM, description, make, ("target_ir.operations.llvm.Cast.run", run), name=name)


def without_signs(x: Array, to: Any) -> Array:
    return Array(to, x.values.view(f"u{x.values.itemsize}").astype(to.carrier))


def without_subnormals(x: Array, to: Any) -> Array:
    found = llvm.cast(x, to)
    return Array(to, np.where(np.abs(x.values) < x.dtype.min_normal, found.values * 0, found.values))


def true_is_one(self: llvm.Comparison, block: BlockState, a: Array, b: Array) -> Array:
    if a.dtype.kind == "bool":
        a, b = (Array(DTYPES["int8"], operand.values.astype(np.int8)) for operand in (a, b))
    return llvm.PREDICATES[self.predicate[-2:]](a, b)


def in_place(self: addresses.InsertElement, block: BlockState, vector: Array, value: Array) -> Array:
    values = np.array(vector.values)
    values[:, self.position] = value.values
    object.__setattr__(vector, "values", values)
    return vector


def words_apart(self: addresses.GetElementPtr, block: BlockState, base: Any, index: Array) -> Any:
    size = 4 if index.dtype.bits == 64 and self.elem_type.bits == 64 else self.elem_type.storage_bytes
    return addresses.moved(block, base, index.values.astype(np.int64) * size)


_cast_run = llvm.Cast.run

SCALARS = [
    converting("integers_of_doubles", "rounds integers to fp64 first", "sitofp",
        lambda x, to: Array(to, x.values.astype(np.float64).astype(to.carrier))),
    converting("narrowed_twice", "rounds fp64 to fp32 before 16 bits", "fptrunc",
        lambda x, to: llvm.cast(llvm.cast(x, DTYPES["fp32"]), to)),
    converting("flushed", "extends subnormal floats as zeros", "fpext", without_subnormals),
    converting("small_integers_wrap", "truncates floats to 64 bits first", "intr.fptosi.sat",
        lambda x, to: llvm.cast(llvm.cast(x, DTYPES["int64"]), to)),
    converting("saturated_integers", "saturates integers of fewer bits", "trunc",
        lambda x, to: Array(to, np.clip(x.values, to.int_min, to.int_max).astype(to.carrier))),
    converting("unsigned_extensions", "fills extended integers with zeros", "sext", without_signs),
    replaced(LLVM, "takes true for 1 where signs count", make,
        ("target_ir.operations.llvm.Comparison.run", true_is_one), name="true_is_one"),
    replaced(LLVM, "inserts into the vector that is given", make,
        ("target_ir.operations.memory.InsertElement.run", in_place), name="vectors_in_place"),
    replaced(LLVM, "counts words by indices of 64 bits", make,
        ("target_ir.operations.memory.GetElementPtr.run", words_apart), name="words_apart"),
]  # fmt: skip

# Exchanges


def shuffles(name: str, description: str, source: Callable[[Any, int, int], Any]) -> Violation:
    """Return a violation whose shfl.sync.down reads another lane."""

    def run(self: vendors.ShuffleDown, block: BlockState, value: Array) -> Array:
        sources = source(block.every_lane % block.warp, self.delta, block.warp)
        return Array(value.dtype, exchange.exchanged(block, value.values, sources, self.mask))

    return replaced(SHFL, description, make, ("target_ir.operations.vendors.ShuffleDown.run", run), name=name)


def permutes(name: str, description: str, source: Callable[[Any, int], Any]) -> Violation:
    """Return a violation whose ds_bpermute reads another lane."""

    def run(self: vendors.BPermute, block: BlockState, index: Array, value: Array) -> Array:
        sources = np.asarray(source(index.values.astype(np.int64), block.warp))
        return Array(value.dtype, exchange.exchanged(block, value.values, sources))

    return replaced(SWIZZLE, description, make, ("target_ir.operations.vendors.BPermute.run", run), name=name)


def inactive_too(block: BlockState, values: Any, sources: Any, mask: int | None = None) -> Any:
    """Read inactive lanes too."""
    places = np.minimum(block.every_lane - block.every_lane % block.warp + sources, block.lanes - 1)
    return values[places]


def low_words(block: BlockState, values: Any, sources: Any, mask: int | None = None) -> Any:
    """Exchange only the lower 32 of 64 bits."""
    found = _exchanged(block, values, sources, mask)
    if found.dtype.itemsize < 8:
        return found
    low, own = found.view(np.uint64) & np.uint64(0xFFFFFFFF), values.view(np.uint64) >> np.uint64(32) << np.uint64(32)
    return (low | own).view(found.dtype)


def down(exchanging: Callable[..., Any]) -> Callable[..., Any]:
    """Return a shuffle down by this exchange."""

    def shuffled(block: BlockState, values: Any, delta: int, mask: int | None = None) -> Any:
        lane = block.every_lane % block.warp
        return exchanging(block, values, np.where(lane + delta < block.warp, lane + delta, lane), mask)

    return shuffled


_exchanged = exchange.exchanged

EXCHANGES = [
    replaced(SHFL, "reads lanes that are not active", make,
        ("target_ir.operations.vendors.shuffled", down(inactive_too)), name="inactive_shfl"),
    replaced(SHFL, "exchanges 32 bits of 64", make, ("target_ir.operations.vendors.shuffled", down(low_words)),
        name="low_words_of_shfl"),
    replaced(SWIZZLE, "reads lanes that are not active", make, ("target_ir.operations.vendors.exchanged", inactive_too),
             name="inactive_permutation"),
    replaced(SWIZZLE, "exchanges 32 bits of 64", make, ("target_ir.operations.vendors.exchanged", low_words),
             name="low_words_of_permutation"),
]  # fmt: skip

# Entries and control flow


class Truncating(ReferenceAdapter):
    """The reference, which passes scalars of 64 bits to kernels without their upper halves."""

    def language_execute_ir(self, *, inputs: Mapping[str, Any], **request: Any) -> dict[str, Any]:
        """Return the outputs for such inputs."""
        given = {name: self._cut(operand) for name, operand in inputs.items()}
        return super().language_execute_ir(inputs=given, **request)

    def _cut(self, given: Any) -> Any:
        if not isinstance(given, Tensor) or given.shape != () or given.format.word_bytes != 8:
            return given
        return Tensor.from_words(given.dtype, (), [int(given.words()[0]) & 0xFFFFFFFF])


class Reversed(ReferenceAdapter):
    """The reference, which returns the buffers of a kernel last to first."""

    def language_execute_ir(self, **request: Any) -> dict[str, Any]:
        """Return the outputs, reversed at Target IR."""
        outputs = super().language_execute_ir(**request)["outputs"]
        return {"outputs": outputs[::-1] if request.get("at") == "target" else outputs}


def turned(quantity: str) -> Any:
    """Return the substitution of a register that returns x for z and z for x."""

    def run(self: vendors.Register, block: BlockState) -> Array:
        if self.quantity != quantity:
            return _register(self, block)
        other = type("Other", (type(self),), {"axis": 2 - self.axis})
        return _register(other(), block)

    return ("target_ir.operations.vendors.Register.run", run)


def bytes_for_elements(self: pointers.GetElementPtr, block: BlockState, base: Any, index: Array) -> Any:
    return addresses.moved(block, base, index.values.astype(np.int64))


def floored(self: llvm.SDiv, block: BlockState, x: Array, y: Array) -> Array:
    found = _divided(self, block, x, y)
    down = (x.values % np.where(y.values == 0, 1, y.values) != 0) & ((x.values < 0) != (y.values < 0))
    return Array(found.dtype, (found.values - down).astype(found.values.dtype))


def one_more(self: For, block: BlockState, start: Array, stop: Array, step: Array, *carried: Any) -> Any:
    return _loop(self, block, start, Array(stop.dtype, (stop.values + 1).astype(np.int32)), step, *carried)


def forwards(self: For, block: BlockState, start: Array, stop: Array, step: Array, *carried: Any) -> Any:
    return carried if int(step.values.flat[0]) < 0 else _loop(self, block, start, stop, step, *carried)


_register, _divided, _loop = vendors.Register.run, llvm.SDiv.run, For.run

ENTRIES = [
    replaced("LANG-08.1-03", "truncates 64-bit scalars to 32", Truncating, name="truncated"),
    replaced("LANG-16-02", "reverses the buffers", Reversed, name="buffers_reversed"),
    replaced("LANG-08.1-07", "takes the grid's z for x", make, turned("grid_dim"), name="grid_turned_at_target"),
    replaced("LANG-08.1-08", "takes the block's z for x", make, turned("block_dim"), name="block_turned"),
    replaced("LANG-08.1-02", "counts addresses in bytes", make,
        ("target_ir.operations.memory.GetElementPtr.run", bytes_for_elements), name="bytes_for_elements"),
    replaced("LANG-08-01", "rounds quotients down", make, ("target_ir.operations.llvm.SDiv.run", floored),
        name="floored"),
    replaced("LANG-08-01", "does not count down", make, ("tile.operations.For.run", forwards), name="only_upwards"),
    replaced("LANG-08-01", "lets accesses leave a buffer", make, ("kernel_machine.block.BlockState.require_within",
        lambda *ignored: None), ("kernel_machine.block.BlockState.load",
        lambda self, memory, at: memory.values.reshape(-1)[np.clip(at, 0, memory.size - 1)]), name="unbounded"),
]  # fmt: skip


def merging(name: str, description: str, merged: Callable[..., Any]) -> Violation:
    """Return a violation that chooses a pointer for each lane differently."""
    return replaced("LANG-08-01", description, make, ("target_ir.operations.memory.Address.merged", merged), name=name)


_merged = addresses.Address.merged
POINTERS = [
    merging("pointers_of_one_side", "has the pointers of the first side in all lanes",
            lambda one, condition, other: _merged(one, condition | True, other)),
]  # fmt: skip


# Comparisons and vectors

COMPARE = llvm.Comparison.run


def ordered_only(self: llvm.Comparison, block: BlockState, a: Array, b: Array) -> Array:
    if self.predicate == "une":
        return Array(llvm.BOOL, np.asarray((a.values < b.values) | (a.values > b.values)))
    return COMPARE(self, block, a, b)


def without_signs(self: llvm.Comparison, block: BlockState, a: Array, b: Array) -> Array:
    if self.a.dtype.kind == "int" and self.a.dtype.bits < 32:
        a, b = (Array(DTYPES["int32"], x.values.astype(np.int32) % (1 << self.a.dtype.bits)) for x in (a, b))
    return COMPARE(self, block, a, b)


def each_once(self: pointers.ShuffleVector, block: BlockState, vector: Array) -> Array:
    mask = list(self.mask)
    plain = [place % vector.values.shape[1] for place in range(len(mask))]
    return Array(vector.dtype, vector.values[:, mask if len(set(mask)) == len(mask) else plain])


LANES = [
    replaced("LANG-08-01", "finds NaN not unequal", make, ("target_ir.operations.llvm.Comparison.run", ordered_only),
        name="ordered_only"),
    replaced("LANG-08-01", "compares narrow integers without their signs", make,
             ("target_ir.operations.llvm.Comparison.run", without_signs), name="without_signs"),
    replaced("LANG-08-01", "shuffles a vector by masks of different positions alone", make,
             ("target_ir.operations.memory.ShuffleVector.run", each_once), name="each_once"),
]  # fmt: skip
