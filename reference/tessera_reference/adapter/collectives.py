"""The collectives methods of the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tessera_conformance.tensors import Tensor

from ..collectives import all_reduce, run
from ..collectives.point_to_point import send_recv
from ..collectives.selection import select
from .descriptors import read_descriptor
from .outcomes import array, tensor
from .requests import checked
from .session_state import SessionState
from .statuses import statuses

__all__ = ["CollectivesMethods"]


class CollectivesMethods(SessionState):
    """What all ranks compute together."""

    @checked
    def collectives_all_reduce(
        self,
        *,
        inputs: Sequence[Tensor],
        op: Any,
        level: str = "strict",
        context: int | None = None,
        wire: Any = None,
        descriptors: Sequence[Mapping[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """The same bits on every rank; every level is given the strict ones."""
        with statuses():
            policy = None if context is None else self.policy(context, "tessAllReduce")
            brought = None if descriptors is None else [read_descriptor(each) for each in descriptors]
            result = all_reduce([array(each) for each in inputs], op, policy=policy, wire=wire, descriptors=brought)
        return {"outputs": [tensor(result) for _ in inputs]}

    @checked
    def collectives_run(
        self,
        *,
        operation: str,
        inputs: Sequence[Tensor],
        op: str | None = None,
        root: int | None = None,
        algorithm: str = "ring",
        groups: Sequence[Sequence[int]] | None = None,
        per_node: int | None = None,
        chunk: int | None = None,
        level: str = "strict",
        messages: bool = False,
        wire: str | None = None,
        qscheme: str | None = None,
        block: int | None = None,
        seed: int | None = None,
        partials: Sequence[int] | None = None,
    ) -> dict[str, Any]:
        """What every rank has afterwards, and the messages by which it travelled; fast is given deterministic bits."""
        with statuses():
            chosen = _chosen(operation, inputs, groups) if algorithm == "auto" else algorithm
            result = run(
                operation,
                [array(each) for each in inputs],
                op=op,
                root=root,
                name=chosen,
                groups=groups,
                per_node=per_node,
                chunk=chunk,
                level=level,
                wire=wire,
                qscheme=qscheme,
                block=block,
                seed=seed,
                partials=partials,
            )
        told = {"messages": [each._asdict() for each in result.sent]} if messages else {}
        return {"outputs": [tensor(each) for each in result.outputs], "algorithm": chosen, **told}

    @checked
    def collectives_send_recv(
        self,
        *,
        inputs: Sequence[Tensor],
        pairs: Sequence[Sequence[int]],
        chunk: int | None = None,
        messages: bool = False,
    ) -> dict[str, Any]:
        """What every rank has after all pairs have met."""
        with statuses():
            result = send_recv([array(each) for each in inputs], pairs, chunk)
        told = {"messages": [each._asdict() for each in result.sent]} if messages else {}
        return {"outputs": [tensor(each) for each in result.outputs], **told}


def _chosen(operation: str, inputs: Sequence[Tensor], groups: Sequence[Sequence[int]] | None) -> str:
    """The algorithm for the full buffer of the first group; `run` says what is wrong with groups. Raises `Failure`."""
    group = [rank for rank in (groups[0] if groups else range(len(inputs))) if rank < len(inputs)]
    sizes = [len(inputs[rank].data) for rank in group]
    bytes = sum(sizes) if operation == "all_gather" else max(sizes, default=0)
    return select(operation, bytes, max(len(group), 1)).algorithm
