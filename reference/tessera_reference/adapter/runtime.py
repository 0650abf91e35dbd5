"""The runtime and abi methods of the reference: contexts, policies, dtype ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any

from tessera_conformance.adapter import Refusal

from ..abi import Descriptor, Failure, NumericsPolicy, StableMath
from ..numerics.attributes import tree
from ..numerics.errors import InvalidArgument, NumericsFailure
from ..numerics.formats import DTYPES
from ..runtime import Contexts
from .reading import HANDLE, mapping, read_by

__all__ = ["RuntimeMethods", "read_descriptor", "statuses"]


class RuntimeMethods:
    """Contexts under their handles."""

    def __init__(self) -> None:
        self.contexts = Contexts()

    @read_by()
    def session_reset(self) -> dict[str, Any]:
        """Forget every context."""
        self.contexts = Contexts()
        return {}

    @read_by()
    def abi_dtype_ids(self) -> dict[str, Any]:
        """The ids of Appendix B; tf32, a math mode, has none."""
        return {"ids": {each.name: each.abi_id for each in DTYPES.values() if each.abi_id is not None}}

    @read_by()
    def runtime_tessInit(self) -> dict[str, Any]:  # noqa: N802, the name of the C function
        """A new context."""
        return {"context": self.contexts.init()}

    @read_by(context=HANDLE)
    def runtime_tessShutdown(self, *, context: int) -> dict[str, Any]:  # noqa: N802
        """End a context."""
        with statuses():
            self.contexts.shutdown(context)
        return {}

    @read_by(context=HANDLE, policy=mapping)
    def runtime_tessSetNumericsPolicy(self, *, context: int, policy: Mapping[str, int]) -> dict[str, Any]:  # noqa: N802
        """Govern what is submitted from now on."""
        with statuses():
            self.contexts.policy(context, "tessSetNumericsPolicy")
            self.contexts.set_policy(context, read_policy(policy))
        return {}

    @read_by(context=HANDLE)
    def runtime_tessGetNumericsPolicy(self, *, context: int) -> dict[str, Any]:  # noqa: N802
        """The policy last set."""
        with statuses():
            return {"policy": asdict(self.contexts.policy(context))}


def read_policy(message: Mapping[str, Any]) -> NumericsPolicy:
    """A numerics policy from its message, which has every switch. Raises `Failure` and `InvalidArgument`."""
    names = [field.name for field in fields(NumericsPolicy)]
    _require_names("tessSetNumericsPolicy", "policy", message, names)
    for name in names:
        if name not in message:
            raise InvalidArgument("tessSetNumericsPolicy", f"policy.{name}", None, "0 or 1, since it has no default")
    return NumericsPolicy(**message)


def read_descriptor(message: Mapping[str, Any]) -> Descriptor:
    """A determinism descriptor from its message. Raises `Failure` and `InvalidArgument`."""
    given = dict(message)
    _require_names("tessLaunch", "descriptor", given, [field.name for field in fields(Descriptor)])
    if "reduction_order" in given:
        given["reduction_order"] = tree("tessLaunch", "descriptor.reduction_order", given["reduction_order"])
    if "stable" in given:
        toggles = mapping("tessLaunch", "descriptor.stable", given["stable"])
        _require_names("tessLaunch", "descriptor.stable", toggles, [field.name for field in fields(StableMath)])
        given["stable"] = StableMath(**toggles)
    return Descriptor(**given)


def _require_names(function: str, argument: str, message: Mapping[str, Any], names: list[str]) -> None:
    for name in message:
        if name not in names:
            raise InvalidArgument(function, f"{argument}, a name in it,", name, "one of " + ", ".join(names))


@contextmanager
def statuses() -> Iterator[None]:
    """Turn failures of the runtime and of the arithmetic into rejections with a status."""
    try:
        yield
    except Failure as failure:
        raise Refusal(failure.status.name, "call", str(failure)) from None
    except NumericsFailure as failure:
        raise Refusal("TESS_ERR_INVALID_VALUE", "call", str(failure)) from None
