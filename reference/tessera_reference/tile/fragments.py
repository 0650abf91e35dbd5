"""Matrix instructions of a warp: ldmatrix, mma.sync, and what begins and ends an accumulation (spec sections 7.1, 7.2).

A fragment type names m, n, k and the dtype of the operands; whether a fragment is A, m by k, B, k by n, or the
accumulator, m by n in another dtype, follows from its use (AMB-LANG-34, AMB-LANG-65).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.operation import Attribute, Hidden, Operand, Operands, Shown, derived, operation, require
from ..ir.types import Fragment, Memref, Scalar
from ..numerics.array import Array
from ..numerics.formats import DType
from ..numerics.matmul import matmul
from .block import BlockState
from .exchange import by_warp
from .matrices import load_matrices, require_aligned, store_matrices
from .operation import KernelOperation, require_indices
from .storage import Storage

ALIGNMENT = 16
"""Bytes to which each row that ldmatrix reads is aligned (LANG-07.3-01, LANG-16-05, LANG-16-06; AMB-LANG-36)."""


def _stated_fragment(shown: Shown, name: str, clause: str) -> dict[str, Any]:
    """The hidden type of an operation whose result is a fragment. Raises `Refusal`."""
    types = shown.results or ()
    require(
        len(types) == 1 and isinstance(types[0], Fragment),
        "types",
        f"the result of {name} is not stated to be a fragment",
        "fragment<16,16,16,bf16>",
        clause,
    )
    return {"returns": types[0]}


def _require_accumulator(accum: DType, fragment: Fragment) -> None:
    canonical = fragment.dtype.accumulator
    require(
        accum.kind == canonical.kind and accum.storage_bytes >= min(2, canonical.storage_bytes),
        "numerics",
        f"{fragment.dtype} does not accumulate in {accum}",
        f"{canonical}, or another {canonical.kind} dtype of at least 16 bits",
        "LANG-07.2-03",
    )


@operation("tessera.tile.ldmatrix", clauses=("LANG-07.2-02", "LANG-07.3-01"))
class LoadMatrix(KernelOperation):
    """The matrix whose corner is at the indices, which are the same in all lanes of a warp; each warp has its own.

    `stride` counts elements from row to row. Transposed, the fragment's columns are the rows in memory.
    """

    memory: Operand[Memref]
    indices: Operands[Scalar]
    returns: Hidden[Fragment]
    transpose: Attribute[bool] = False
    stride: Attribute[int] = derived(lambda self: self.memory.shape[-1] if self.memory.shape else 1)

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """The type is that of the result."""
        return _stated_fragment(shown, "ldmatrix", "LANG-07.2-02")

    def infer(self) -> Fragment:
        """The fragment; its dtype is that of the memory, of an accumulator that of the accumulation."""
        memory, held = self.memory, self.returns.dtype
        require(
            memory.space == "shared",
            "types",
            f"it reads {memory}",
            "a memref in addrspace=shared",
            "LANG-07.2-02",
            "stage the tile in shared memory",
        )
        require(
            memory.dtype in (held, held.accumulator),
            "types",
            f"it reads {memory.dtype} into {self.returns}",
            f"memory of {held}",
            "LANG-11-01",
        )
        require(len(memory.shape) >= 2, "shapes", f"{memory} has no rows", "at least two dimensions", "LANG-07.2-02")
        require_indices(self.indices, len(memory.shape), optional=True)
        require(
            self.stride >= 1 and self.stride * memory.dtype.storage_bytes % ALIGNMENT == 0,
            "tile",
            f"rows of {memory.dtype} lie {self.stride} elements apart",
            f"rows that begin at multiples of {ALIGNMENT} bytes",
            "LANG-07.3-01",
            "pad the rows of the shared tile",
        )
        return self.returns

    def run(self, block: BlockState, memory: Storage, *indices: Array) -> Array:
        """Read the whole matrix of each warp."""
        rows, columns = block.use_of_result.shape(self.returns)
        corners = by_warp(block, "the corner of ldmatrix", block.offsets(memory, indices))
        require_aligned(block, memory, corners, ALIGNMENT)
        shape = (columns, rows) if self.transpose else (rows, columns)
        values = load_matrices(block, memory, corners, shape, self.stride)
        return Array(memory.dtype, values.swapaxes(-1, -2) if self.transpose else values)


@operation("tessera.tile.fragment.zero", clauses=("LANG-07.2-03",))
class FragmentZero(KernelOperation):
    """An accumulator of zeros."""

    returns: Hidden[Fragment]
    accum: Attribute[DType] = derived(lambda self: self.returns.dtype.accumulator)

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """The type is that of the result."""
        return _stated_fragment(shown, "fragment.zero", "LANG-07.2-03")

    def infer(self) -> Fragment:
        """The fragment."""
        _require_accumulator(self.accum, self.returns)
        return self.returns

    def run(self, block: BlockState) -> Array:
        """+0 everywhere."""
        return Array(self.accum, np.zeros((block.warps, self.returns.m, self.returns.n), self.accum.carrier))


@operation("tessera.tile.mma.sync", clauses=("LANG-07.2-03", "LANG-07.3-02", "LANG-11-10"))
class MmaSync(KernelOperation):
    """A times B added to C, a left fold over ascending k; each product and each sum is rounded to `accum`."""

    a: Operand[Fragment]
    b: Operand[Fragment]
    c: Operand[Fragment]
    m: Attribute[int]
    n: Attribute[int]
    k: Attribute[int]
    accum: Attribute[DType] = derived(lambda self: self.c.dtype.accumulator)

    def infer(self) -> Fragment:
        """The type of all three."""
        require(
            self.a == self.b == self.c,
            "types",
            f"the fragments are {self.a}, {self.b} and {self.c}",
            "three fragments of one type",
            "LANG-07.2-03",
        )
        stated, held = (self.m, self.n, self.k), (self.c.m, self.c.n, self.c.k)
        require(
            stated == held,
            "shapes",
            f"m, n and k are {', '.join(map(str, stated))}, the fragments {self.c}",
            "the m, n and k of the fragments",
            "LANG-07.2-03",
        )
        _require_accumulator(self.accum, self.c)
        return self.c

    def run(self, block: BlockState, a: Array, b: Array, c: Array) -> Array:
        """All warps at once."""
        block.whole_warps("mma.sync")
        return matmul(a, b, self.accum, addend=c, accumulator=self.accum)


@operation("tessera.tile.fragment.store", clauses=("LANG-07.2-03", "LANG-08.3-01"))
class FragmentStore(KernelOperation):
    """Writes an accumulator as a matrix whose corner is at the indices, the same in all lanes of a warp."""

    fragment: Operand[Fragment]
    memory: Operand[Memref]
    indices: Operands[Scalar]

    effects = frozenset({"memory"})

    def infer(self) -> tuple[()]:
        """Nothing results."""
        require(
            len(self.memory.shape) >= 2, "shapes", f"{self.memory} has no rows", "at least two dimensions", "LANG-11-01"
        )
        require_indices(self.indices, len(self.memory.shape), optional=True)
        return ()

    def run(self, block: BlockState, fragment: Array, memory: Storage, *indices: Array) -> tuple[()]:
        """Write the whole matrix of each warp."""
        corners = by_warp(block, "the corner of fragment.store", block.offsets(memory, indices))
        store_matrices(block, memory, corners, fragment.values)
        return ()
