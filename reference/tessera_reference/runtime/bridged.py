"""A runtime whose calls reach an endpoint as messages, too (Host - IO_CPU document, D2; AMB-HIO-63 to -66).

Each call is first the runtime's own, which checks it and queues its work; one that succeeds is then expressed by
messages. So a host program runs once, and what its copies to the host brought can be compared. Messages are sent in the
order of calls, which is one that streams and events allow. A call that messages cannot express answers
TESS_ERR_UNSUPPORTED and is kept in `gaps`; what follows it is no longer the same on both sides.
"""

# ruff: noqa: N802, N803, the names are those of the C API

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..abi.enumerations import CopyKind
from ..abi.status import Status
from ..host_io.bridge import Bridge, Code, LaunchArguments
from ..host_io.endpoint import Endpoint
from ..host_io.errors import ErrorCode, RequestFailed
from ..mesh.topology import Topology
from .api import Runtime
from .capture import capture_of
from .launch_arguments import argument_bytes, extents_of, scalars_of, tensors_of
from .launches import LaunchConfig
from .modules import Kernel
from .pointers import host_bytes

__all__ = ["NOT_EXPRESSED", "BridgedRuntime", "Received"]

NOT_EXPRESSED: Mapping[str, bool] = {
    "tessAllGather": False,
    "tessAllReduce": False,
    "tessBroadcast": False,
    "tessReduceScatter": False,
    "tessxAdoptDevice": True,
    "tessxGraphLaunch": False,
    "tessxIssue": False,
    "tessxPoke": False,
}
"""Calls that change device memory otherwise than by copies and launches, and whether they have an output."""


class Received(NamedTuple):
    """What messages brought for a copy to the host: to which pointer, and the bytes."""

    pointer: int
    data: bytes


class BridgedRuntime(Runtime):
    """A runtime and the bridge that its calls pass."""

    def __init__(
        self, endpoint: Endpoint, topology: Topology | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(topology, environment)
        self.bridge = Bridge(endpoint)
        self.received: list[Received] = []
        self.gaps: list[str] = []
        self._code: dict[int, Code] = {}

    def tessMalloc(self, mesh: Any, bytes: int, **options: Any) -> tuple[Status, int | None]:
        """A pointer, and a physical address for it."""
        status, pointer = self._own("tessMalloc", mesh, bytes, **options)
        if status is Status.TESS_OK:
            status = self._expressed("tessMalloc", lambda: self.bridge.allocate(pointer, bytes))
            if status is not Status.TESS_OK:
                self._own("tessFree", mesh, pointer)
        return status, pointer if status is Status.TESS_OK else None

    def tessFree(self, mesh: Any, devPtr: Any) -> Status:
        """The pointer, and its physical address, are free."""
        status: Status = self._own("tessFree", mesh, devPtr)
        if status is Status.TESS_OK:
            self.bridge.free(devPtr)
        return status

    def tessMemcpyAsync(self, dst: Any, src: Any, bytes: int, kind: int, stream: Any) -> Status:
        """A copy, and reads and writes for it."""
        status: Status = self._own("tessMemcpyAsync", dst, src, bytes, kind, stream)
        if status is not Status.TESS_OK or bytes == 0:
            return status
        return self._expressed("tessMemcpyAsync", lambda: self._copy(dst, src, bytes, CopyKind(kind), stream))

    def tessModuleLoad(self, ctx: Any, image: Any, size: int, **options: Any) -> tuple[Status, int | None]:
        """A module, and a write of its image."""
        status, module = self._own("tessModuleLoad", ctx, image, size, **options)
        if status is Status.TESS_OK:
            data = host_bytes(self.machine.memory, "tessModuleLoad", "image", image, size, "size")
            status = self._expressed("tessModuleLoad", lambda: self._code.update({module: self.bridge.load(data)}))
        return status, module if status is Status.TESS_OK else None

    def tessLaunch(
        self, kernel: Any, mesh: Any, cfg: LaunchConfig, argBuffer: Any, argSize: int, stream: Any
    ) -> Status:
        """A launch, and messages for it."""
        status: Status = self._own("tessLaunch", kernel, mesh, cfg, argBuffer, argSize, stream)
        if status is not Status.TESS_OK:
            return status
        return self._expressed("tessLaunch", lambda: self._launch(kernel, cfg, argBuffer, argSize, stream))

    def _own(self, name: str, *arguments: Any, **options: Any) -> Any:
        """The runtime's own call."""
        return getattr(super(), name)(*arguments, **options)

    def _copy(self, dst: int, src: int, bytes: int, kind: CopyKind, stream: Any) -> None:
        self._require_executed(stream)
        places = self.bridge.places(self.stream(stream).mesh.devices)
        match kind:
            case CopyKind.TESS_COPY_H2D:
                self.bridge.write(places, dst, host_bytes(self.machine.memory, "", "src", src, bytes, "bytes"))
            case CopyKind.TESS_COPY_D2H:
                self.received.append(Received(dst, self.bridge.read(places[0], src, bytes)))
            case CopyKind.TESS_COPY_D2D:
                self.bridge.copy(places, dst, src, bytes)

    def _launch(self, kernel: Any, cfg: LaunchConfig, buffer: Any, size: int, stream: Any) -> None:
        self._require_executed(stream)
        launched, queue = self.handles.find("kernel", Kernel, kernel), self.stream(stream)
        pointers, scalars = scalars_of(launched.entry, argument_bytes(launched, buffer, size, queue))
        tensors = tensors_of(launched.entry, pointers, extents_of(launched.entry, scalars), queue)
        given = LaunchArguments(
            {name: (pointers[name], each.bytes) for name, each in tensors.items()}, scalars, cfg.grid, cfg.block
        )
        code = self._code[launched.module.handle]
        self.bridge.launch(code, launched.entry, self.bridge.places(queue.mesh.devices), given)

    def _require_executed(self, stream: Any) -> None:
        """A stream is not being captured. Raises `RequestFailed` with UNSUPPORTED."""
        if capture_of(self.captures, self.stream(stream)) is not None:
            raise RequestFailed(ErrorCode.UNSUPPORTED, "the messages have no way to express work that is captured")

    def _expressed(self, function: str, operation: Callable[[], None]) -> Status:
        """Express a call by messages; the status that it answers then."""
        try:
            operation()
        except RequestFailed as failure:
            return self._gap(function, failure)
        return Status.TESS_OK

    def _gap(self, function: str, failure: RequestFailed) -> Status:
        """Keep what messages did not express, or the endpoint did not do."""
        self.last_error = f"{function}: {failure.code}: {failure.message}"
        self.gaps.append(self.last_error)
        missing = failure.code is ErrorCode.UNSUPPORTED
        return Status.TESS_ERR_UNSUPPORTED if missing else Status.TESS_ERR_LAUNCH_FAILED


def _refusing(function: str, has_output: bool) -> Callable[..., Any]:
    """A call that messages do not express."""

    def refuse(runtime: BridgedRuntime, *arguments: Any, **named: Any) -> Any:
        reason = "the messages have no way to express it"
        status = runtime._gap(function, RequestFailed(ErrorCode.UNSUPPORTED, reason))
        return (status, None) if has_output else status

    return refuse


for _name, _has_output in NOT_EXPRESSED.items():
    setattr(BridgedRuntime, _name, _refusing(_name, _has_output))
