"""The requests of `collectives.all_reduce`, `collectives.run` and `collectives.send_recv`, as an engine takes them.

Engines leave it undefined what becomes of buffers, roots or groups that do not fit. Such a call is handed to none of
them: it is unsupported, since a refusal here would say nothing of the engine. The algorithm is a hint: an engine
chooses its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tessera_conformance.adapter import NotSupported
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
        NotSupported: no engine is asked: an argument does not fit the others, there are more inputs than ranks,
            messages are to be told, or a sum is to have the order of level strict.
    """
    _require(operation in OPERATIONS, f"operation {operation!r}")
    _require(op in OPERATORS if operation in COMBINING else op is None, f"{op!r} in {operation}")
    _require(op is None or kind_of(inputs[0].dtype) in OPERATORS[op], f"{op} of {inputs[0].dtype}")
    _require(algorithm in (None, *ALGORITHMS), f"algorithm {algorithm!r}")
    _require(per_node is None or len(inputs) % per_node == 0, f"nodes of {per_node} of {len(inputs)} ranks")
    parts = _partition(groups, len(inputs))
    if len(inputs) > most_ranks:
        raise NotSupported(f"{len(inputs)} inputs: there are {most_ranks} ranks")
    for part in parts:
        _require_fit(operation, [inputs[rank] for rank in part], root)
    if messages:
        raise NotSupported("collective-messages")
    if level == "strict" and op in ("sum", "prod", "mean") and kind_of(inputs[0].dtype) != "int":
        raise NotSupported(f"{op} in the canonical order of level strict")
    return Request(operation, op or "", root or 0, parts, chunk or 0)


def all_reduce_of(inputs: Sequence[Tensor], op: str, most_ranks: int, level: str, given: dict[str, Any]) -> Request:
    """The request of `collectives.all_reduce`; `given` are its other arguments.

    Raises:
        NotSupported: as of `request_of`; policies, narrower wires and descriptors belong to a runtime.
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
        NotSupported: a pair that cannot meet, or whose buffers differ; more inputs than ranks, messages told.
    """
    ranks = range(len(inputs))
    received = Counter(target for _, target in pairs)
    for source, target in pairs:
        meets = source in ranks and target in ranks and source != target and received[target] == 1
        _require(meets, f"the pair {[source, target]}")
        sent, own = inputs[source], inputs[target]
        _require((sent.dtype, sent.shape) == (own.dtype, own.shape), "buffers that do not fit")
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
    """Return the number of elements that each rank of a group owns."""
    return [part.stop - part.start for part in (share(count, place, ranks) for place in range(ranks))]


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise NotSupported(f"{problem}, which no engine is asked for")


def _partition(groups: Sequence[Sequence[int]] | None, ranks: int) -> tuple[tuple[int, ...], ...]:
    if groups is None:
        return (tuple(range(ranks)),)
    whole = sorted(rank for group in groups for rank in group) == list(range(ranks)) and all(groups)
    _require(whole, f"groups {list(groups)} of {ranks} ranks")
    return tuple(tuple(group) for group in groups)


def _require_fit(operation: str, brought: Sequence[Tensor], root: int | None) -> None:
    ranks, first = len(brought), brought[0]
    counts = [prod(tensor.shape) for tensor in brought]
    shares = share_sizes(sum(counts), ranks)
    gathers = operation == "all_gather"
    fits = counts == shares if gathers else all(tensor.shape == first.shape for tensor in brought)
    _require(fits and all(tensor.dtype == first.dtype for tensor in brought), "buffers that do not fit")
    _require((root is not None) == (operation == "broadcast") and 0 <= (root or 0) < ranks, f"root {root}")
    _require(operation != "all_to_all" or counts[0] % ranks == 0, f"{counts[0]} elements for {ranks} ranks")
