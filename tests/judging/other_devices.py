"""A machine that numbers its devices from 16 on (AMB-RT-120): the reference behind other ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_reference.adapter import ReferenceAdapter

FIRST = 16


class OtherDevices(ReferenceAdapter):
    """Knows no device by the numbers 0 to 15."""

    def runtime_tessxDevices(self, **given: Any) -> dict[str, Any]:  # noqa: N802
        found = super().runtime_tessxDevices(**given)
        return found | {"devices": [each | {"id": each["id"] + FIRST} for each in found["devices"]]}

    def runtime_tessMeshCreate(self, *, deviceIds: Any, **given: Any) -> dict[str, Any]:  # noqa: N802, N803
        return super().runtime_tessMeshCreate(deviceIds=_own(deviceIds), **given)

    def binding_listing(self, *, devices: int, device_ids: Sequence[int] | None = None, **given: Any) -> dict[str, Any]:
        ids = _own(range(devices) if device_ids is None else device_ids)
        if min(ids) < 0:
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", "there is no such device")
        return super().binding_listing(devices=devices, device_ids=ids, **given)


def _own(ids: Any) -> Any:
    return [each - FIRST for each in ids] if isinstance(ids, Sequence) else ids
