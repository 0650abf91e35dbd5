"""Libraries in the manner of NCCL and MPI, with few algorithms, dtypes and features (collectives specification)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.strength import varies
from tessera_conformance.tensors import Tensor

from ...ir.variants.features import EVERY, Without
from ..kit.readings import RARE

COLLECTIVES = "collectives/*"
NAMED = (
    "collectives/algorithms/*-chunk*",
    "collectives/algorithms/messages-bring*",
    "collectives/operations/every-*",
    "collectives/products-and-means/products*",
)


class Library(Without):
    """Collectives by name, with what travels and how it is chosen; without a machine."""

    present: ClassVar[frozenset[str]] = frozenset(
        {"operation-access", "all-to-all", "subgroups", "argument-checks", "collective-messages", "compression"}
        | {"error-feedback", "topk-sparsity", "row-col-chunks", "bf16-collectives"}
        | {"chunk-ranges", "compression-probe"}
    )
    absent = EVERY - present


@varies("AMB-COLL-08", "knows the algorithms ring and tree", COLLECTIVES)
class TwoAlgorithms(Library):
    """Any other algorithm that a program names is unsupported."""

    def collectives_run(self, *, algorithm: str = "auto", **arguments: Any) -> Any:
        """Run by one of two algorithms."""
        if algorithm in ("halving_doubling", "hierarchical", "direct"):
            raise NotSupported(algorithm)
        return super().collectives_run(algorithm=algorithm, **arguments)


@varies("AMB-COLL-33", "halves and doubles among powers of two alone", *NAMED)
class PowersOfTwo(Library):
    """It claims that each algorithm can be named."""

    absent = Library.absent - {"algorithm-control", "hierarchical"}

    def collectives_run(self, *, inputs: Sequence[Tensor], algorithm: str = "auto", **arguments: Any) -> Any:
        """Refuse other numbers of ranks."""
        sizes = [len(group) for group in arguments.get("groups") or [inputs]]
        if algorithm == "halving_doubling" and any(size & (size - 1) for size in sizes):
            raise Refusal("TESS_ERR_UNSUPPORTED", "call", "halving_doubling takes a power of two of ranks")
        return super().collectives_run(inputs=inputs, algorithm=algorithm, **arguments)


@varies("AMB-RT-59", "has the dtypes of NCCL", COLLECTIVES)
class FewDtypes(Library):
    """Neither truth values, int16 nor complex numbers."""

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        if name not in ("collectives_run", "collectives_all_reduce"):
            return method
        return lambda **arguments: method(**common(arguments))


def common(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments, if their tensors are of a common dtype."""
    if any(tensor.dtype in RARE for tensor in arguments["inputs"]):
        raise Refusal("TESS_ERR_UNSUPPORTED", "call", "no such dtype")
    return arguments


@varies("AMB-RT-04", "has shares of one size", COLLECTIVES)
class EvenShares(Library):
    """Ranks gather as many elements each, and each gets as many of a sum."""

    def collectives_run(self, *, operation: str, inputs: Sequence[Tensor], **arguments: Any) -> Any:
        """Refuse uneven shares."""
        named = arguments.get("groups") or [range(len(inputs))]
        groups = [[inputs[rank % len(inputs)] for rank in group] for group in named]
        uneven = operation == "reduce_scatter" and any(group[0].size % len(group) for group in groups)
        if uneven or any(len({tensor.size for tensor in group}) > 1 for group in groups):
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", "the shares differ in size")
        return super().collectives_run(operation=operation, inputs=inputs, **arguments)


@varies("AMB-COLL-97", "has defaults for operator and root, and passes over what it has no use for", COLLECTIVES)
class Defaults(Library):
    """A sum, and the first rank."""

    def collectives_run(self, *, operation: str, **arguments: Any) -> Any:
        """Complete the arguments, or drop some."""
        reduces = operation in ("all_reduce", "reduce_scatter")
        for name, usual, needed in (("op", "sum", reduces), ("root", 0, operation == "broadcast")):
            value = arguments.pop(name, usual)
            arguments |= {name: value} if needed else {}
        return super().collectives_run(operation=operation, **arguments)


@varies("AMB-COLL-35", "makes one chunk of a tensor where no size is given", "collectives/chunks/*")
class OneChunk(Library):
    """As a collective without a chunk attribute is one chunk."""

    def collectives_chunks(self, **arguments: Any) -> Any:
        """Return one chunk, or those of a size."""
        usual = {} if {"chunk", "chunk_bytes"} & arguments.keys() else {"chunk": 1 << 40}
        return super().collectives_chunks(**arguments, **usual)


@varies("AMB-COLL-41", "takes the indices of a message in any order", "collectives/top-k/*")
class AnyOrder(Library):
    """A scatter of the values."""

    def collectives_densify(self, *, indices: Tensor, values: Tensor, **arguments: Any) -> Any:
        """Sort the entries."""
        order = indices.words().tolist() if indices.dtype == "int64" and len(indices.shape) == 1 else []
        if len(order) == values.size and any(first > second for first, second in pairwise(order)):
            pairs = sorted(zip(order, values.words().tolist(), strict=True))
            indices, values = (
                Tensor.from_words(tensor.dtype, tensor.shape, list(column))
                for tensor, column in zip((indices, values), zip(*pairs, strict=True), strict=True)
            )
        return super().collectives_densify(indices=indices, values=values, **arguments)
