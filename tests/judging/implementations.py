"""Implementations over the reference: kernel libraries, and a machine with other ids of devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import ReferenceAdapter

# Kernel libraries over the reference: they have `numerics.evaluate` and nothing else, no parser before all.


class KernelLibrary:
    """Every operation that the reference has, one at a time."""

    def __init__(self) -> None:
        self._reference = ReferenceAdapter()

    def hello(self) -> dict[str, Any]:
        """The claims of the reference, but for the documents that ask for more."""
        return {**self._reference.hello(), "documents": ["language_ir", "runtime_abi"]}

    def numerics_evaluate(self, *, operation: str, **arguments: Any) -> dict[str, Any]:
        """One operation."""
        return self._reference.numerics_evaluate(operation=operation, **arguments)


class WrongProduct(KernelLibrary):
    """Products are a unit in the last place off."""

    def numerics_evaluate(self, *, operation: str, **arguments: Any) -> dict[str, Any]:
        """One operation; of `multiply` every word has its last bit flipped."""
        answer = super().numerics_evaluate(operation=operation, **arguments)
        if operation == "multiply":
            answer["outputs"] = [Tensor(x.dtype, x.shape, _flipped(x)) for x in answer["outputs"]]
        return answer


class FewKernels(KernelLibrary):
    """An implementation that has the sum and no other operation."""

    def numerics_evaluate(self, *, operation: str, **arguments: Any) -> dict[str, Any]:
        """A sum."""
        if operation != "sum":
            raise NotSupported(f"numerics.evaluate {operation}")
        return super().numerics_evaluate(operation=operation, **arguments)


def _flipped(tensor: Tensor) -> bytes:
    data, width = bytearray(tensor.data), tensor.format.word_bytes
    for place in range(0, len(data), width):
        data[place] ^= 1
    return bytes(data)


# A machine that numbers its devices from 16 on (AMB-RT-120): the reference behind other ids.

FIRST = 16


class OtherDevices(ReferenceAdapter):
    """Knows no device by the numbers 0 to 15."""

    def runtime_tessxDevices(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        found = super().runtime_tessxDevices(**arguments)
        return found | {"devices": [device | {"id": device["id"] + FIRST} for device in found["devices"]]}

    def runtime_tessMeshCreate(self, *, deviceIds: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802, N803
        return super().runtime_tessMeshCreate(deviceIds=_own(deviceIds), **arguments)

    def binding_listing(
        self, *, devices: int, device_ids: Sequence[int] | None = None, **arguments: Any
    ) -> dict[str, Any]:
        ids = _own(range(devices) if device_ids is None else device_ids)
        if min(ids) < 0:
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", "there is no such device")
        return super().binding_listing(devices=devices, device_ids=ids, **arguments)


def _own(ids: Any) -> Any:
    return [id_ - FIRST for id_ in ids] if isinstance(ids, Sequence) else ids
