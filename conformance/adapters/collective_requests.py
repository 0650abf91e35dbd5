"""What is asked of an engine by `collectives.all_reduce` and `collectives.run`, checked before any rank takes part.

Engines leave it undefined what becomes of buffers, roots or groups that do not fit; here they are refused first. The
algorithm is a hint: an engine chooses its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")
COMBINING = ("all_reduce", "reduce_scatter")
OPERATORS = {
    "sum": ("float", "int", "complex"),
    "prod": ("float", "int", "complex"),
    "mean": ("float", "complex"),
    "max": ("float", "int", "bool"),
    "min": ("float", "int", "bool"),
}
"""The kinds of dtypes that each operator takes."""

ALGORITHMS = ("ring", "tree", "halving_doubling", "hierarchical", "direct")


@dataclass(frozen=True)
class Request:
    """A collective that is sound: `root` is a place in each group, every rank stands in one of the `groups`.

    `chunk` is how many elements of a buffer an engine is given at a time, 0 all of them; `pairs` are the senders and
    receivers of send_recv.
    """

    operation: str
    op: str
    root: int
    groups: tuple[tuple[int, ...], ...]
    chunk: int = 0
    pairs: tuple[tuple[int, int], ...] = ()


def request_of(
    operation: str,
    inputs: Sequence[Tensor],
    most_ranks: int,
    *,
    op: str | None = None,
    root: int | None = None,
    algorithm: str | None = None,
    groups: Sequence[Sequence[int]] | None = None,
    per_node: int | None = None,
    chunk: int | None = None,
    level: str = "deterministic",
    messages: bool = False,
) -> Request:
    """The request of these arguments of `collectives.run`.

    Raises:
        Refusal: an argument is none that the protocol has, or does not fit the others.
        NotSupported: no engine does it: more inputs than ranks, messages told, sums in the order of level strict.
    """
    _require(operation in OPERATIONS, f"operation {operation!r}", f"one of {', '.join(OPERATIONS)}")
    _require_operator(operation, op, inputs)
    _require_algorithm(operation, algorithm, per_node, len(inputs))
    parts = _partition(groups, len(inputs))
    if len(inputs) > most_ranks:
        raise NotSupported(f"{len(inputs)} inputs: there are {most_ranks} ranks")
    for part in parts:
        _require_fit(operation, [inputs[rank] for rank in part], part, root)
    if messages:
        raise NotSupported("collective-messages")
    if level == "strict" and op in ("sum", "prod", "mean") and kind_of(inputs[0].dtype) != "int":
        raise NotSupported(f"{op} in the canonical order of level strict")
    return Request(operation, op or "", root or 0, parts, chunk or 0)


def all_reduce_of(inputs: Sequence[Tensor], op: str, most_ranks: int, level: str, given: dict[str, Any]) -> Request:
    """The request of `collectives.all_reduce`; `given` are its other arguments.

    Raises:
        Refusal, NotSupported: as of `request_of`; policies, narrower wires and descriptors belong to a runtime.
    """
    for name in ("context", "wire", "descriptors"):
        if given.get(name) is not None:
            raise NotSupported(f"the argument {name} of all_reduce")
    return request_of("all_reduce", inputs, most_ranks, op=op, level=level)


def send_recv_of(
    inputs: Sequence[Tensor],
    pairs: Sequence[Sequence[int]],
    most_ranks: int,
    chunk: int | None = None,
    messages: bool = False,
) -> Request:
    """The request of these arguments of `collectives.send_recv`.

    Raises:
        Refusal: a pair that cannot meet, or whose buffers differ.
        NotSupported: more inputs than ranks, messages told.
    """
    ranks = range(len(inputs))
    received = Counter(target for _, target in pairs)
    for source, target in pairs:
        meets = source in ranks and target in ranks and source != target and received[target] == 1
        _require(meets, f"the pair {[source, target]}", "two different ranks; a rank receives from one")
        sent, own = inputs[source], inputs[target]
        given = f"rank {source} sends {sent.dtype}{list(sent.shape)}"
        same = (sent.dtype, sent.shape) == (own.dtype, own.shape)
        _require(same, given, f"{own.dtype}{list(own.shape)}", "TESS_ERR_COLLECTIVE_MISMATCH")
    if len(inputs) > most_ranks:
        raise NotSupported(f"{len(inputs)} inputs: there are {most_ranks} ranks")
    if messages:
        raise NotSupported("collective-messages")
    meeting = tuple((source, target) for source, target in pairs)
    return Request("send_recv", "", 0, (tuple(ranks),), chunk or 0, meeting)


def kind_of(dtype: str) -> str:
    """float, int, complex or bool."""
    if dtype == "bool":
        return "bool"
    element = ELEMENT_FORMATS[dtype]
    return "complex" if element.words > 1 else "float" if element.is_float else "int"


def share(count: int, place: int, ranks: int) -> slice:
    """The elements of so many that a rank of a group owns (AMB-RT-04)."""
    return slice(place * count // ranks, (place + 1) * count // ranks)


def share_sizes(count: int, ranks: int) -> list[int]:
    """How many elements each rank of a group owns."""
    return [each.stop - each.start for each in (share(count, place, ranks) for place in range(ranks))]


def _require(holds: bool, given: str, allowed: str, code: str = "TESS_ERR_INVALID_VALUE") -> None:
    if not holds:
        raise Refusal(code, "call", f"{given}; expected {allowed}")


def _require_operator(operation: str, op: str | None, inputs: Sequence[Tensor]) -> None:
    combines = operation in COMBINING
    allowed = f"one of {', '.join(OPERATORS)}" if combines else f"no operator of {operation}"
    _require((op in OPERATORS) if combines else op is None, f"operator {op!r}", allowed)
    if op is None:
        return
    for tensor in inputs:
        kinds = OPERATORS[op]
        _require(kind_of(tensor.dtype) in kinds, f"{op} of {tensor.dtype}", " or ".join(kinds), "TESS_ERR_UNSUPPORTED")


def _require_algorithm(operation: str, algorithm: str | None, per_node: int | None, ranks: int) -> None:
    _require(algorithm in (None, *ALGORITHMS), f"algorithm {algorithm!r}", f"one of {', '.join(ALGORITHMS)}")
    fits = per_node is None or ranks % per_node == 0
    _require(fits, f"{ranks} ranks, {per_node} a node", "whole nodes", "TESS_ERR_UNSUPPORTED")


def _partition(groups: Sequence[Sequence[int]] | None, ranks: int) -> tuple[tuple[int, ...], ...]:
    if groups is None:
        return (tuple(range(ranks)),)
    whole = sorted(rank for group in groups for rank in group) == list(range(ranks)) and all(groups)
    _require(whole, f"groups {list(groups)}", f"each of 0 to {ranks - 1} once")
    return tuple(tuple(group) for group in groups)


def _require_fit(operation: str, brought: Sequence[Tensor], group: Sequence[int], root: int | None) -> None:
    ranks, first = len(group), brought[0]
    counts = [_count(each) for each in brought]
    shares = share_sizes(sum(counts), ranks)
    for place, tensor in enumerate(brought):
        wanted = (shares[place],) if operation == "all_gather" else first.shape
        found = (counts[place],) if operation == "all_gather" else tensor.shape
        given = f"rank {group[place]} brings {tensor.dtype}{list(tensor.shape)}"
        same = (tensor.dtype, found) == (first.dtype, wanted)
        _require(same, given, f"{first.dtype}{list(wanted)}", "TESS_ERR_COLLECTIVE_MISMATCH")
    rooted = operation == "broadcast"
    _require((root is not None) == rooted, f"root {root}", "a root of a broadcast, and of nothing else")
    _require(0 <= (root or 0) < ranks, f"root {root}", f"0 to {ranks - 1}")
    whole = operation != "all_to_all" or counts[0] % ranks == 0
    _require(whole, f"{counts[0]} elements for {ranks} ranks", "blocks of one size (AMB-COLL-34)")


def _count(tensor: Tensor) -> int:
    element = ELEMENT_FORMATS[tensor.dtype]
    return len(tensor.data) // (element.word_bytes * element.words)
