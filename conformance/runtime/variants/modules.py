"""Modules and kernels where no text says more (AMB-RT-42, AMB-RT-43)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import varies
from tessera_reference.abi.fatbin.container import CHECKSUM_BYTES, checksum
from tessera_reference.adapter import ReferenceAdapter

from .reach import RUNTIME


@varies("AMB-RT-42", "gives NULL for a kernel that a module does not have", *RUNTIME)
class NoKernelIsNull(ReferenceAdapter):
    """As dlsym does."""

    def runtime_tessKernelGet(self, *, module: Any, name: Any, **given: Any) -> dict[str, Any]:  # noqa: N802
        """The kernel, or NULL."""
        try:
            return super().runtime_tessKernelGet(module=module, name=name, **given)
        except Refusal:
            if not module or name is None or given:
                raise
            return {"kernel": 0}


@varies("AMB-RT-43", "does not look at the checksum of an image that lies in the memory of the host", *RUNTIME)
class WithoutChecksum(ReferenceAdapter):
    """An image does what its bytes say."""

    def runtime_tessModuleLoad(self, *, image: Any, **given: Any) -> dict[str, Any]:  # noqa: N802
        """The module, its checksum made anew."""
        try:
            return super().runtime_tessModuleLoad(image=image, **given)
        except Refusal:
            if not isinstance(image, int) or given.get("size", 0) <= CHECKSUM_BYTES:
                raise
            data = bytes.fromhex(super().runtime_tessxHostRead(hostPtr=image, bytes=given["size"])["data"])
            content = data[:-CHECKSUM_BYTES]
            return super().runtime_tessModuleLoad(image=(content + checksum(content)).hex(), **given)
