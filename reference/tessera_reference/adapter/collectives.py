"""The collectives methods of the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tessera_conformance.tensors import Tensor

from ..collectives import all_reduce, run
from .extensions import ExtensionMethods
from .outcomes import array, tensor
from .requests import checked
from .runtime import read_descriptor, statuses

__all__ = ["CollectivesMethods"]


class CollectivesMethods(ExtensionMethods):
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
    ) -> dict[str, Any]:
        """What every rank has afterwards, and the messages by which it travelled; fast is given deterministic bits."""
        with statuses():
            result = run(
                operation,
                [array(each) for each in inputs],
                op=op,
                root=root,
                name=algorithm,
                groups=groups,
                per_node=per_node,
                chunk=chunk,
                level=level,
            )
        told = {"messages": [asdict(each) for each in result.sent]} if messages else {}
        return {"outputs": [tensor(each) for each in result.outputs], **told}
