"""Simulated devices that run Target IR wrongly: lanes, memory, exchanges, entries (8.1, 8.2, 16)."""

import numpy as np

from tessera_conformance.strength import replaced
from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import make
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.target_ir.operations import llvm, vendors
from tessera_reference.target_ir.operations import memory as addresses

from .changes import around, breaks, instead, nothing, wrapped
from .numerics import flushed

MMA, LDMATRIX, COPY, BAR, SHFL = (f"LANG-08.2-{number:02}" for number in range(5, 10))
MFMA, LDS, SWIZZLE = "LANG-08.2-10", "LANG-08.2-11", "LANG-08.2-12"


def holding(clause, name, description, vendor, of, change):
    """Return a violation whose lanes hold other rows or columns of A, [lanes, elements]."""

    def spread(usual, role, *shape):
        found = usual(role, *shape)
        if role != "a":
            return found
        made = vendors.Spread(found.shape, found.lanes, found.width, found.row, found.column)
        vars(made).update({"rows": found.rows, "columns": found.columns} | {of: change(getattr(found, of))})
        return made

    return wrapped(clause, name, description, f"target_ir.operations.vendors.{vendor}", spread)


def halves(of):
    middle = of.shape[1] // 2
    return np.concatenate([of[:, middle:], of[:, :middle]], axis=1)


def last_matrix_first(usual, count, transpose):
    rows, places = usual(count, transpose)
    return rows // 8 * -8 + 8 * (count - 1) + rows % 8, places


def any_barrier(self, block):
    block.copies.barrier()
    block.clock.tick()
    return ()


@breaks(COPY, "copies four bytes always", "target_ir.operations.vendors.CopyAsync.run")
def four_bytes(usual, self, block, destination, source):
    begin, end = vendors.elements(block, source, self.size), vendors.elements(block, destination, self.size)
    block.copy(*begin, *end, 4)
    return ()


ANYWHERE = around(lambda usual, block, at, alignment: usual(block, at, 1))

# Arithmetic of lanes: conversions, comparisons, vectors, addresses

LLVM = "LANG-08-01"


def converting(name, description, mnemonic, change):
    """Return a violation with another conversion."""

    def run(usual, self, block, x):
        return change(x, self.to) if self.name.removeprefix("llvm.") == mnemonic else usual(self, block, x)

    return wrapped(LLVM, name, description, "target_ir.operations.llvm.Cast.run", run)


@breaks(LLVM, "takes true for 1 where signs count", "target_ir.operations.llvm.Comparison.run")
def true_is_one(usual, self, block, a, b):
    if a.dtype.kind == "bool":
        a, b = (Array(DTYPES["int8"], operand.values.astype(np.int8)) for operand in (a, b))
    return llvm.PREDICATES[self.predicate[-2:]](a, b)


@breaks(LLVM, "inserts into the vector that is given", "target_ir.operations.memory.InsertElement.run")
def vectors_in_place(usual, self, block, vector, value):
    values = np.array(vector.values)
    values[:, self.position] = value.values
    object.__setattr__(vector, "values", values)
    return vector


def inactive_too(block, values, sources, mask=None):
    places = np.minimum(block.every_lane - block.every_lane % block.warp + sources, block.lanes - 1)
    return values[places]


def low_words(usual, block, values, sources, mask=None):
    found = usual(block, values, sources, mask)
    if found.dtype.itemsize < 8:
        return found
    low, own = found.view(np.uint64) & np.uint64(0xFFFFFFFF), values.view(np.uint64) >> np.uint64(32) << np.uint64(32)
    return (low | own).view(found.dtype)


@breaks("LANG-08.1-03", "truncates 64-bit scalars to 32", "adapter.ReferenceAdapter.language_execute_ir")
def truncated(usual, self, *, inputs, **request):
    given = {
        name: Tensor.from_words(value.dtype, (), [int(value.words()[0]) & 0xFFFFFFFF])
        if isinstance(value, Tensor) and value.shape == () and value.format.word_bytes == 8
        else value
        for name, value in inputs.items()
    }
    return usual(self, inputs=given, **request)


@breaks("LANG-16-02", "reverses the buffers", "adapter.ReferenceAdapter.language_execute_ir")
def buffers_reversed(usual, self, **request):
    outputs = usual(self, **request)["outputs"]
    return {"outputs": outputs[::-1] if request.get("at") == "target" else outputs}


def turned(clause, name, description, quantity):
    """Return a violation with a register that returns x for z and z for x."""

    def run(usual, self, block):
        if self.quantity != quantity:
            return usual(self, block)
        return usual(type("Other", (type(self),), {"axis": 2 - self.axis})(), block)

    return wrapped(clause, name, description, "target_ir.operations.vendors.Register.run", run)


@breaks("LANG-08-01", "rounds quotients down", "target_ir.operations.llvm.SDiv.run")
def floored(usual, self, block, x, y):
    found = usual(self, block, x, y)
    down = (x.values % np.where(y.values == 0, 1, y.values) != 0) & ((x.values < 0) != (y.values < 0))
    return Array(found.dtype, (found.values - down).astype(found.values.dtype))


@breaks("LANG-08-01", "compares narrow integers without their signs", "target_ir.operations.llvm.Comparison.run")
def without_signs(usual, self, block, a, b):
    if self.a.dtype.kind == "int" and self.a.dtype.bits < 32:
        a, b = (Array(DTYPES["int32"], x.values.astype(np.int32) % (1 << self.a.dtype.bits)) for x in (a, b))
    return usual(self, block, a, b)


def each_once(self, block, vector):
    mask = list(self.mask)
    plain = [place % vector.values.shape[1] for place in range(len(mask))]
    return Array(vector.dtype, vector.values[:, mask if len(set(mask)) == len(mask) else plain])


VIOLATIONS = [
    holding(MMA, "a_columns", "takes the halves of A along k for each other", "nvidia", "columns", halves),
    holding(MFMA, "amd_a_rows", "swaps the rows of A's share", "amd", "rows", lambda of: of[::-1]),
    wrapped(LDMATRIX, "not_transposed", "never transposes", "target_ir.operations.vendors.ldmatrix",
        lambda usual, count, transpose: usual(count, False)),
    wrapped(LDMATRIX, "reversed", "reverses the matrices", "target_ir.operations.vendors.ldmatrix", last_matrix_first),
    instead("LANG-16-06", "rows_anywhere", "loads matrices from any address",
        "kernel_machine.block.BlockState.require_aligned", nothing),
    instead(BAR, "partial_bar", "lets part of a block pass bar.sync", "target_ir.operations.vendors.Barrier.run",
        any_barrier),
    instead(LDS, "partial_s_barrier", "lets part of a block pass s_barrier",
        "target_ir.operations.vendors.RocdlBarrier.run", any_barrier),
    instead(COPY, "waits_for_all", "finishes every group at a wait", "target_ir.operations.vendors.CopyWait.run",
        lambda self, block: block.copies.wait(block, 0) or ()),
    replaced(COPY, "copies from any address", make, ("target_ir.operations.vendors.elements", ANYWHERE),
        ("kernel_machine.block.BlockState.require_aligned", nothing), name="copies_anywhere"),
    instead("LANG-16-05", "vectors_anywhere", "loads vectors from any address", "target_ir.operations.memory.elements",
        ANYWHERE),
    converting("integers_of_doubles", "rounds integers to fp64 first", "sitofp",
        lambda x, to: Array(to, x.values.astype(np.float64).astype(to.carrier))),
    converting("narrowed_twice", "rounds fp64 to fp32 before 16 bits", "fptrunc",
        lambda x, to: llvm.cast(llvm.cast(x, DTYPES["fp32"]), to)),
    converting("flushed", "extends subnormal floats as zeros", "fpext", lambda x, to: llvm.cast(flushed(x), to)),
    converting("small_integers_wrap", "truncates floats to 64 bits first", "intr.fptosi.sat",
        lambda x, to: llvm.cast(llvm.cast(x, DTYPES["int64"]), to)),
    converting("saturated_integers", "saturates integers of fewer bits", "trunc",
        lambda x, to: Array(to, np.clip(x.values, to.int_min, to.int_max).astype(to.carrier))),
    converting("unsigned_extensions", "fills extended integers with zeros", "sext",
        lambda x, to: Array(to, x.values.view(f"u{x.values.itemsize}").astype(to.carrier))),
    instead(LLVM, "words_apart", "counts words by indices of 64 bits", "target_ir.operations.memory.GetElementPtr.run",
        lambda self, block, base, index: addresses.moved(block, base, index.values.astype(np.int64) * (4
            if index.dtype.bits == 64 and self.elem_type.bits == 64 else self.elem_type.storage_bytes))),
    instead(SHFL, "inactive_shfl", "reads lanes that are not active", "kernel_machine.block.exchanged", inactive_too),
    wrapped(SHFL, "low_words_of_shfl", "exchanges 32 bits of 64", "target_ir.operations.vendors.shuffled", low_words),
    instead(SWIZZLE, "inactive_permutation", "reads lanes that are not active",
        "target_ir.operations.vendors.exchanged", inactive_too),
    wrapped(SWIZZLE, "low_words_of_permutation", "exchanges 32 bits of 64", "target_ir.operations.vendors.exchanged",
        low_words),
    turned("LANG-08.1-07", "grid_turned_at_target", "takes the grid's z for x", "grid_dim"),
    turned("LANG-08.1-08", "block_turned", "takes the block's z for x", "block_dim"),
    instead("LANG-08.1-02", "bytes_for_elements", "counts addresses in bytes",
        "target_ir.operations.memory.GetElementPtr.run",
        lambda self, block, base, index: addresses.moved(block, base, index.values.astype(np.int64))),
    wrapped("LANG-08-01", "only_upwards", "does not count down", "tile.operations.For.run",
        lambda usual, self, block, start, stop, step, *carried:
        carried if int(step.values.flat[0]) < 0 else usual(self, block, start, stop, step, *carried)),
    replaced("LANG-08-01", "lets accesses leave a buffer", make,
        ("kernel_machine.block.BlockState.require_within", nothing), ("kernel_machine.block.BlockState.load",
            lambda self, memory, at: memory.values.reshape(-1)[np.clip(at, 0, memory.size - 1)]), name="unbounded"),
    wrapped("LANG-08-01", "pointers_of_one_side", "has the pointers of the first side in all lanes",
        "target_ir.operations.memory.Address.merged",
        lambda usual, one, condition, other: usual(one, condition | True, other)),
    wrapped("LANG-08-01", "ordered_only", "finds NaN not unequal", "target_ir.operations.llvm.Comparison.run",
        lambda usual, self, block, a, b: Array(llvm.BOOL, np.asarray((a.values < b.values) | (a.values > b.values)))
        if self.predicate == "une" else usual(self, block, a, b)),
    instead("LANG-08-01", "each_once", "shuffles a vector by masks of different positions alone",
        "target_ir.operations.memory.ShuffleVector.run", each_once),
    wrapped("LANG-08-01", "or_for_xor", "takes or for exclusive or", "target_ir.operations.llvm.Xor.run",
        lambda usual, self, block, a, b: llvm.Or.run(self, block, a, Array(b.dtype, b.values & ~a.values))),
]  # fmt: skip
