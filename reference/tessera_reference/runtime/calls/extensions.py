"""What a suite needs beyond the C functions: single ranks, findings, faults, settings (AMB-RT-05, -67, -79 to -88)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...abi.descriptor import Descriptor
from ...mesh.choice_policies import Choices, FirstCome, Replayed, Seeded
from ...mesh.findings import Finding
from ...mesh.foreign import flat
from ...numerics.errors import shown
from ..arguments import SIZE, integer, invalid, of_type
from ..contexts import ModulePolicy
from ..environment import Environment
from ..faults import read_faults
from ..log import Line
from ..state import entry, entry_giving
from ..work import Carried
from .capturing import CaptureCalls

__all__ = ["ExtensionCalls"]

POLICIES: Mapping[str, Callable[[int, Sequence[int]], Choices]] = {
    "fifo": lambda seed, record: FirstCome(),
    "seeded": lambda seed, record: Seeded(seed),
    "replay": lambda seed, record: Replayed(record),
}


class ExtensionCalls(CaptureCalls):
    """tessx...: extensions of this runtime, for its suite and its binding."""

    @entry_giving("hostPtr")
    def tessxHostMemory(self, bytes: int) -> int:  # noqa: N802
        """Ordinary host memory, not pinned."""
        return self.machine.memory.allocate_host(integer("tessxHostMemory", "bytes", bytes, SIZE), pinned=False)

    @entry_giving("data")
    def tessxHostRead(self, hostPtr: Any, bytes: int) -> Any:  # noqa: N802, N803
        """What host memory holds."""
        function = "tessxHostRead"
        region = self.machine.memory.find(hostPtr, integer(function, "bytes", bytes, SIZE), function, "hostPtr", "host")
        return self.machine.memory.peek(region, 0, bytes)

    @entry
    def tessxHostWrite(self, hostPtr: Any, data: bytes) -> None:  # noqa: N802, N803
        """Put bytes into host memory."""
        held = flat(data, "data")
        region = self.machine.memory.find(hostPtr, len(held), "tessxHostWrite", "hostPtr", "host")
        self.machine.memory.write(region, 0, held)

    @entry_giving("hostPtr")
    def tessxAdoptHost(self, memory: Any) -> int:  # noqa: N802
        """An address for host memory of the caller, used in place."""
        return self.machine.memory.adopt_host(memory)

    @entry_giving("devPtr")
    def tessxAdoptDevice(self, mesh: Any, memory: Any) -> int:  # noqa: N802
        """A device pointer for memory of the caller, which all ranks of a mesh share in place."""
        on = self.mesh(mesh, "tessxAdoptDevice")
        return self.machine.memory.adopt_device(on.devices, memory, owner=mesh)

    @entry_giving("data")
    def tessxPeek(self, mesh: Any, rank: int, devPtr: Any, bytes: int) -> Any:  # noqa: N802, N803
        """What one rank's copy of device memory holds, once all work of the mesh is done (AMB-RT-79)."""
        region = self._of_rank("tessxPeek", mesh, rank, devPtr, integer("tessxPeek", "bytes", bytes, SIZE))
        return self.machine.memory.peek(region, rank, bytes)

    @entry
    def tessxPoke(self, mesh: Any, rank: int, devPtr: Any, data: bytes) -> None:  # noqa: N802, N803
        """Put bytes into one rank's copy of device memory, once all work of the mesh is done (AMB-RT-79)."""
        held = flat(data, "data")
        region = self._of_rank("tessxPoke", mesh, rank, devPtr, len(held))
        self.machine.memory.write(region, rank, held)

    def _of_rank(self, function: str, mesh: Any, rank: int, pointer: Any, bytes: int) -> Any:
        on = self.mesh(mesh, function)
        integer(function, "rank", rank, (0, len(on.devices) - 1))
        on.drain()
        region = self.machine.memory.find(pointer, bytes, function, "devPtr", "device")
        if region.allocation.devices != on.devices:
            given = f"devPtr is memory of devices {list(region.allocation.devices)}"
            raise invalid(function, given, "memory of the mesh")
        return region

    def tessxLastError(self) -> str:  # noqa: N802
        """Why the last call that failed did (AMB-RT-82)."""
        return self.last_error

    def tessxFindings(self) -> Sequence[Finding]:  # noqa: N802
        """What programs did wrong with memory so far (AMB-RT-83)."""
        return tuple(self.machine.memory.findings)

    def tessxLog(self) -> Sequence[Line]:  # noqa: N802
        """The lines that the log level asked for."""
        return tuple(self.log.lines)

    @entry
    def tessxSetSchedule(self, policy: str, seed: int, choices: Sequence[int], untimed: bool) -> None:  # noqa: N802
        """How choices are made, before any work is queued (AMB-RT-80)."""
        function = "tessxSetSchedule"
        if not isinstance(policy, str) or policy not in POLICIES:
            raise invalid(function, f"policy is {shown(policy)}", " or ".join(POLICIES))
        if not isinstance(choices, list | tuple) or not all(type(each) is int and each >= 0 for each in choices):
            raise invalid(function, f"choices is {shown(choices)}", "a list of whole numbers from 0")
        if self.handles.live("stream"):
            raise invalid(function, "a schedule when there are streams already", "a call before tessStreamCreate")
        self.machine.engine.choose_by(POLICIES[policy](integer(function, "seed", seed, SIZE), choices))
        self.machine.timed = not untimed

    @entry
    def tessxSetFaults(self, ctx: Any, faults: Sequence[Mapping[str, Any]]) -> None:  # noqa: N802
        """What is to fail from now on, and nothing else (AMB-RT-81)."""
        self.context(ctx, "tessxSetFaults").faults = read_faults("tessxSetFaults", faults)

    @entry
    def tessxSetTimeout(self, ctx: Any, nanoseconds: int) -> None:  # noqa: N802
        """How long work may take; 0 is for ever (AMB-RT-67)."""
        allowed = integer("tessxSetTimeout", "nanoseconds", nanoseconds, SIZE)
        self.context(ctx, "tessxSetTimeout").timeout = allowed * 1000 or None

    @entry
    def tessxSetDescriptor(self, ctx: Any, descriptor: Descriptor) -> None:  # noqa: N802
        """What is attached to launches and collectives from now on (RT-11-01, AMB-RT-23)."""
        function = "tessxSetDescriptor"
        self.context(ctx, function).descriptor = of_type(function, "descriptor", descriptor, Descriptor)

    @entry_giving("descriptors")
    def tessxDescriptors(self, stream: Any) -> Sequence[Carried]:  # noqa: N802
        """What the launches and collectives queued on a stream carry, in order."""
        return tuple(self.stream(stream, "tessxDescriptors").carried)

    @entry
    def tessxSetModulePolicy(self, ctx: Any, policy: ModulePolicy) -> None:  # noqa: N802
        """What modules and work of a context may do (runtime spec 15, AMB-RT-88)."""
        function = "tessxSetModulePolicy"
        self.context(ctx, function).module_policy = of_type(function, "policy", policy, ModulePolicy)

    @entry
    def tessxSetStreamLimit(self, stream: Any, bytes: int) -> None:  # noqa: N802
        """How much memory queued work may refer to; 0 is any (AMB-RT-87)."""
        self.stream(stream, "tessxSetStreamLimit").limit = integer("tessxSetStreamLimit", "bytes", bytes, SIZE)

    @entry_giving("settings")
    def tessxSettings(self, ctx: Any) -> Environment:  # noqa: N802
        """What the environment said when a context was made."""
        return self.context(ctx, "tessxSettings").environment

    def tessxSetIdentity(  # noqa: N802
        self, driver: str | None = None, abi_hash: str | None = None, arch: str | None = None
    ) -> None:
        """Another driver, ABI hash or revision of the architecture from now on (AMB-RT-69)."""
        self.machine.driver = driver or self.machine.driver
        self.machine.abi_hash = abi_hash or self.machine.abi_hash
        self.machine.revision = arch or self.machine.revision
        for _, module in self.handles.live("module"):
            module.executables.clear()
