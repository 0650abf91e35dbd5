"""The runtime and abi methods of the reference: contexts, policies, dtype ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from tessera_conformance.adapter import Refusal

from ..numerics.errors import NumericsFailure
from ..numerics.formats import DTYPES
from ..numerics.trees import Tree
from ..runtime import Contexts, Descriptor, Failure, NumericsPolicy, StableMath

__all__ = ["RuntimeMethods", "read_descriptor", "statuses"]


class RuntimeMethods:
    """Contexts under their handles."""

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
        with statuses():
            self.contexts.shutdown(context)
        return {}

    def runtime_tessSetNumericsPolicy(self, *, context: int, policy: Mapping[str, int]) -> dict[str, Any]:  # noqa: N802
        """Govern what is submitted from now on."""
        with statuses():
            self.contexts.policy(context, "tessSetNumericsPolicy")
            self.contexts.set_policy(context, NumericsPolicy(**policy))
        return {}

    def runtime_tessGetNumericsPolicy(self, *, context: int) -> dict[str, Any]:  # noqa: N802
        """The policy last set."""
        with statuses():
            return {"policy": asdict(self.contexts.policy(context))}


def read_descriptor(message: Mapping[str, Any]) -> Descriptor:
    """A determinism descriptor from its message. Raises `Failure` and what reading a tree raises."""
    given = dict(message)
    if "reduction_order" in given:
        given["reduction_order"] = Tree.from_json(given["reduction_order"])
    if "stable" in given:
        given["stable"] = StableMath(**given["stable"])
    return Descriptor(**given)


@contextmanager
def statuses() -> Iterator[None]:
    """Turn failures of the runtime and of the arithmetic into rejections with a status."""
    try:
        yield
    except Failure as failure:
        raise Refusal(failure.status.name, "call", str(failure)) from None
    except NumericsFailure as failure:
        raise Refusal("TESS_ERR_INVALID_VALUE", "call", str(failure)) from None
