"""The numerics methods of the reference: single operations by name, and what is declared of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tessera_conformance.adapter import NotSupported
from tessera_conformance.tensors import Tensor

from ..numerics import formats
from ..numerics.catalogue import evaluate
from ..numerics.node_arithmetic import NodeArithmetic
from ..numerics.trees import FOLD, PAIRWISE, Tree
from ..runtime import Descriptor
from .outcomes import array, tensor
from .runtime import RuntimeMethods, read_descriptor, statuses

__all__ = ["NumericsMethods"]

DECLARED: Mapping[str, Tree] = {
    "matmul": FOLD,
    **dict.fromkeys(("sum", "mean", "prod", "logsumexp", "softmax", "all_reduce", "fft", "ifft"), PAIRWISE),
}
"""The order of each reducing operation; every node computes by the canon."""

RANDOM = ("uniform", "normal", "dropout")
ORDERED = ("sum", "mean", "prod", "logsumexp", "matmul")


class NumericsMethods(RuntimeMethods):
    """Operations under contexts and descriptors. Every level is given the strict bits."""

    def numerics_evaluate(
        self,
        *,
        operation: str,
        inputs: Sequence[Tensor],
        attributes: Mapping[str, Any],
        level: str = "strict",
        context: int | None = None,
        flags: int = 0,
        descriptor: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """One operation by name; no policy, flag or level loosens it here."""
        with statuses():
            if context is not None:
                self.contexts.policy(context, "tessLaunch")
            brought = read_descriptor(descriptor or {})
            given = _under(brought, operation, attributes)
            results = evaluate(operation, [array(each) for each in inputs], given)
        order = DECLARED.get(operation, PAIRWISE).to_json()
        used = {
            "reduction_order": given.get("tree", order),
            "seed": given.get("seed", brought.seed),
            "stream": given.get("stream", brought.stream),
            "stable": asdict(brought.stable),
        }
        return {"outputs": [tensor(result) for result in results], "descriptor": used}

    def numerics_declared(
        self,
        *,
        operation: str,
        dtype: str,
        shapes: Sequence[Sequence[int]],
        attributes: Mapping[str, Any] | None = None,
        element: int | None = None,
    ) -> dict[str, Any]:
        """The canon's order and arithmetic, the same for every shape and every element."""
        if operation not in DECLARED:
            raise NotSupported(f"numerics.declared.{operation}")
        with statuses():
            arithmetic = NodeArithmetic.canonical(formats.dtype(dtype))
        return {"tree": DECLARED[operation].to_json(), "arithmetic": arithmetic.to_json()}


def _under(descriptor: Descriptor, operation: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes, completed by what the descriptor fixes."""
    given = dict(attributes)
    if operation in RANDOM:
        given = {"seed": descriptor.seed, "stream": descriptor.stream} | given
    if operation in ORDERED and descriptor.reduction_order is not None and "order" not in given:
        given = {"tree": descriptor.reduction_order.to_json()} | given
    return given
