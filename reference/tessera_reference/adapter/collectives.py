"""The collectives methods of the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tessera_conformance.tensors import Tensor

from ..collectives import all_reduce
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
