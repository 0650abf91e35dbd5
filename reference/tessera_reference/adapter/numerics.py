"""The numerics, runtime, abi and collectives methods of the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.tensors import Tensor

from ..collectives import all_reduce
from ..numerics.catalogue import evaluate
from ..numerics.errors import NumericsFailure, UnknownDType
from ..numerics.formats import DTYPES, dtype
from ..numerics.node_arithmetic import NodeArithmetic
from ..numerics.trees import FOLD, PAIRWISE, Tree
from ..runtime import Contexts, Descriptor, Failure, NumericsPolicy, StableMath
from .outcomes import array, tensor

__all__ = ["NumericsMethods"]

DECLARED: Mapping[str, Tree] = {
    "matmul": FOLD,
    **dict.fromkeys(("sum", "mean", "prod", "logsumexp", "softmax", "all_reduce", "fft", "ifft"), PAIRWISE),
}
"""The order of each reducing operation; every node computes by the canon."""

RANDOM = ("uniform", "normal", "dropout")
ORDERED = ("sum", "mean", "prod", "logsumexp", "matmul")


class NumericsMethods:
    """Single operations under contexts, and what is declared of them. Every level is given the strict bits."""

    def __init__(self) -> None:
        self.contexts = Contexts()

    def session_reset(self) -> dict[str, Any]:
        """Forget every context."""
        self.contexts = Contexts()
        return {}

    def abi_dtype_ids(self) -> dict[str, Any]:
        """The ids of Appendix B; tf32, a math mode, has none."""
        return {"ids": {each.name: each.abi_id for each in DTYPES.values() if each.abi_id is not None}}

    def runtime_tessInit(self) -> dict[str, Any]:  # noqa: N802, the name of the C function
        """A new context."""
        return {"context": self.contexts.init()}

    def runtime_tessShutdown(self, *, context: int) -> dict[str, Any]:  # noqa: N802
        """End a context."""
        with _statuses():
            self.contexts.shutdown(context)
        return {}

    def runtime_tessSetNumericsPolicy(self, *, context: int, policy: Mapping[str, int]) -> dict[str, Any]:  # noqa: N802
        """Govern what is submitted from now on."""
        with _statuses():
            self.contexts.policy(context, "tessSetNumericsPolicy")
            self.contexts.set_policy(context, NumericsPolicy(**policy))
        return {}

    def runtime_tessGetNumericsPolicy(self, *, context: int) -> dict[str, Any]:  # noqa: N802
        """The policy last set."""
        with _statuses():
            return {"policy": asdict(self.contexts.policy(context))}

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
        with _statuses():
            if context is not None:
                self.contexts.policy(context, "tessLaunch")
            brought = _descriptor(descriptor or {})
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
        with _statuses():
            arithmetic = NodeArithmetic.canonical(_dtype(dtype))
        return {"tree": DECLARED[operation].to_json(), "arithmetic": arithmetic.to_json()}

    def collectives_all_reduce(
        self,
        *,
        inputs: Sequence[Tensor],
        op: Any,
        level: str = "strict",
        context: int | None = None,
        wire: str | None = None,
        descriptors: Sequence[Mapping[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """The same bits on every rank."""
        with _statuses():
            policy = None if context is None else self.contexts.policy(context, "tessAllReduce")
            brought = None if descriptors is None else [_descriptor(each) for each in descriptors]
            buffers = [array(each) for each in inputs]
            result = all_reduce(buffers, op, policy=policy, wire=wire, descriptors=brought)
        return {"outputs": [tensor(result) for _ in inputs]}


_dtype = dtype


def _under(descriptor: Descriptor, operation: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes, completed by what the descriptor fixes."""
    given = dict(attributes)
    if operation in RANDOM:
        given = {"seed": descriptor.seed, "stream": descriptor.stream} | given
    if operation in ORDERED and descriptor.reduction_order is not None and "order" not in given:
        given = {"tree": descriptor.reduction_order.to_json()} | given
    return given


def _descriptor(message: Mapping[str, Any]) -> Descriptor:
    given = dict(message)
    if "reduction_order" in given:
        given["reduction_order"] = Tree.from_json(given["reduction_order"])
    if "stable" in given:
        given["stable"] = StableMath(**given["stable"])
    return Descriptor(**given)


@contextmanager
def _statuses() -> Iterator[None]:
    """Turn failures of the arithmetic and of the runtime into rejections with a status."""
    try:
        yield
    except Failure as failure:
        raise Refusal(failure.status.name, "call", str(failure)) from None
    except UnknownDType as unknown:
        raise Refusal("TESS_ERR_INVALID_VALUE", "call", str(unknown)) from None
    except NumericsFailure as failure:
        raise Refusal("TESS_ERR_INVALID_VALUE", "call", str(failure)) from None
