"""Devices under other numbers (runtime specification, 4.2; AMB-RT-120)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import varies
from tessera_reference.adapter import ReferenceAdapter

from .reach import RUNTIME, Lacking

IDS = (1009, 3, 40, 77, 8, 12, 2**31 - 1, 500)
"""The ids of the first devices; the others follow from 2000 on."""


def own(device: int) -> int:
    """The number of a device of the reference."""
    return IDS[device] if device < len(IDS) else 2000 + device


@varies("AMB-RT-120", "has devices that are numbered in no order and not from 0", *RUNTIME, "collectives/program*")
class OtherDevices(ReferenceAdapter):
    """Its devices are those of the reference, in their order."""

    def runtime_tessxDevices(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """The devices, each with its own number."""
        answer = super().runtime_tessxDevices(**arguments)
        return answer | {"devices": [device | {"id": own(device["id"])} for device in answer["devices"]]}

    def runtime_tessMeshCreate(self, *, deviceIds: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802, N803
        """A mesh of devices of those numbers."""
        return super().runtime_tessMeshCreate(deviceIds=self.of_the_reference(deviceIds), **arguments)

    def binding_listing(
        self, *, devices: int, device_ids: Sequence[int] | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """The program of section 5; without ids, on the first devices."""
        ids = None if device_ids is None else self.of_the_reference(device_ids)
        if ids is not None and -1 in ids:
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", "there is no such device")
        return super().binding_listing(devices=devices, device_ids=ids, **arguments)

    def of_the_reference(self, ids: Any) -> Any:
        """Those numbers by which the reference knows the devices; -1, which it refuses, for what is none."""
        if not isinstance(ids, Sequence) or isinstance(ids, str | bytes):
            return ids
        known = {own(device["id"]): device["id"] for device in super().runtime_tessxDevices()["devices"]}
        return [known.get(id_, -1) if type(id_) is int else id_ for id_ in ids]


class FewDevices(ReferenceAdapter):
    """The first devices of the reference are all that there are."""

    count = 1

    def runtime_tessxDevices(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Those that there are."""
        answer = super().runtime_tessxDevices(**arguments)
        return answer | {"devices": answer["devices"][: self.count]}

    def runtime_tessMeshCreate(self, *, deviceIds: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802, N803
        """A mesh of these."""
        asked = list(deviceIds or ())[: arguments.get("nDevices")]
        if any(type(device) is int and device >= self.count for device in asked):
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", "tessMeshCreate: there is no such device")
        return super().runtime_tessMeshCreate(deviceIds=deviceIds, **arguments)


@varies("AMB-RT-120", "has one device", *RUNTIME)
class OneDevice(FewDevices):
    """A machine of a single device."""


@varies("AMB-RT-120", "has two devices", *RUNTIME)
class TwoDevices(FewDevices):
    """A machine of two."""

    count = 2


@varies("AMB-RT-120", "has four devices", *RUNTIME)
class FourDevices(FewDevices):
    """A machine of four."""

    count = 4


@varies("AMB-RT-120", "does not tell its devices, and has one", *RUNTIME)
class UntoldDevice(Lacking, FewDevices):
    """A mesh of more devices than one is refused."""

    absent = ("device-list",)

    def __getattribute__(self, name: str) -> Any:
        if name == "runtime_tessxDevices":
            raise AttributeError(name)
        return super().__getattribute__(name)
