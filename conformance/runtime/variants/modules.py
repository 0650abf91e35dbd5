"""Modules and kernels where no text says more (AMB-RT-42, -43, -60, -106)."""

from __future__ import annotations

from typing import Any
from unittest import mock

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import varies
from tessera_reference.abi.fatbin.image import CHECKSUM_BYTES, checksum
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.runtime import calls

from .reach import RUNTIME

READ = calls.read


@varies("AMB-RT-42", "gives NULL for a kernel that a module does not have", *RUNTIME)
class NoKernelIsNull(ReferenceAdapter):
    """Returns NULL for an unknown kernel, as dlsym does."""

    def runtime_tessKernelGet(self, *, module: Any, name: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """The kernel, or NULL."""
        try:
            return super().runtime_tessKernelGet(module=module, name=name, **arguments)
        except Refusal:
            if not module or name is None or arguments:
                raise
            return {"kernel": 0}


@varies("AMB-RT-43", "does not look at the checksum of an image that lies in the memory of the host", *RUNTIME)
class WithoutChecksum(ReferenceAdapter):
    """An image does what its bytes say."""

    def runtime_tessModuleLoad(self, *, image: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """The module, its checksum made anew."""
        try:
            return super().runtime_tessModuleLoad(image=image, **arguments)
        except Refusal:
            if not isinstance(image, int) or arguments.get("size", 0) <= CHECKSUM_BYTES:
                raise
            data = bytes.fromhex(super().runtime_tessxHostRead(hostPtr=image, bytes=arguments["size"])["data"])
            content = data[:-CHECKSUM_BYTES]
            return super().runtime_tessModuleLoad(image=(content + checksum(content)).hex(), **arguments)


@varies(
    "AMB-RT-60",
    "loads modules for other devices, and does not launch their kernels",
    "runtime/module*",
    "abi/*images/*",
)
class MismatchAtLaunch(ReferenceAdapter):
    """Reports a device's missing feature at its first use."""

    def runtime_tessModuleLoad(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Load as if it named a device of the machine, and then forget that it did."""
        try:
            return super().runtime_tessModuleLoad(**arguments)
        except Refusal as refusal:
            if refusal.outcome.code != "TESS_ERR_ARCH_MISMATCH":
                raise
        own = tuple(device.target for device in self.runtime.machine.topology.devices)
        named: list[tuple[str, ...]] = []

        def read(data: bytes) -> Any:
            fatbin = READ(data)
            named.append(fatbin.targets)
            object.__setattr__(fatbin, "targets", own)
            return fatbin

        with mock.patch.object(calls, "read", read):
            answer: dict[str, Any] = super().runtime_tessModuleLoad(**arguments)
        module = dict(self.runtime.handles.live("module"))[answer["module"]]
        object.__setattr__(module.fatbin, "targets", named[-1])
        return answer


@varies("AMB-RT-106", "inspects what it would load, and nothing else", "abi/*images/*")
class InspectsWhatItLoads(ReferenceAdapter):
    """A header is read by its own runtime."""

    def abi_inspect(self, *, image: Any) -> dict[str, Any]:
        """Return the inspection of an image."""
        context = super().runtime_tessInit()["context"]
        super().runtime_tessModuleLoad(context=context, image=image, size=len(image) // 2)
        answer: dict[str, Any] = super().abi_inspect(image=image)
        return answer
