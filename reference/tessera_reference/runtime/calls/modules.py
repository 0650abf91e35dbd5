"""Modules, kernels and launches (runtime spec 4.5, 6, 8, 10, 15, 16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...abi.enumerations import LaunchFlag
from ...abi.fatbin import read, verify
from ...abi.status import Failure, Status
from ...compilation.executables import Executable
from ...ir.diagnostics import Rejection, UnsupportedConstruct
from ...mesh.foreign import flat
from ...numerics.errors import shown
from ...numerics.formats import dtype
from ..arguments import SIZE, integer, invalid, required
from ..capture import GraphWork, begin_capture
from ..contexts import Context
from ..launch_arguments import configuration_of, extents_of, flags_of, require_targets, scalars_of, tensor_bytes
from ..launches import LaunchConfig, LaunchWork, Tensor
from ..machine import KERNELS_AT_ONCE
from ..meshes import Mesh
from ..modules import Kernel, LoadedModule
from ..state import entry, entry_giving
from ..streams import Stream
from .memory import MemoryCalls

__all__ = ["ModuleCalls"]


class ModuleCalls(MemoryCalls):
    """tessModuleLoad, tessModuleUnload, tessKernelGet, tessLaunch."""

    @entry_giving("module")
    def tessModuleLoad(self, ctx: Any, image: bytes | int | None, size: int) -> int:  # noqa: N802
        """A module of a fatbin: well formed, then of our ABI, then for a device of the machine (AMB-RT-43, -60)."""
        function = "tessModuleLoad"
        context = self.context(ctx, function)
        data = self.bytes_at(function, "image", required(function, "image", image), size)
        keys = context.module_policy.trusted_keys
        fatbin = read(data)
        if keys is not None:
            verify(data, keys)
        known = {each.target for each in self.machine.topology.devices}
        if not known & set(fatbin.targets):
            given = f"a module for {', '.join(fatbin.targets) or 'no target'}"
            allowed = f"one for a device of this machine: {', '.join(sorted(known))}"
            raise Failure(Status.TESS_ERR_ARCH_MISMATCH, function, given, allowed)
        if context.module_policy.forbid_fast_math and fatbin.metadata.policy and fatbin.metadata.policy.allowFastMath:
            raise _violation(function, "a module whose policy allows fast math", "one without, as the context demands")
        module = LoadedModule(0, context, fatbin)
        module.handle = self.handles.give("module", module)
        context.plans[module.handle] = fatbin.metadata.collective_plans
        return module.handle

    @entry
    def tessModuleUnload(self, module: Any) -> None:  # noqa: N802
        """End a module once all work is done that could use it (RT-04.5-15, AMB-RT-35, AMB-RT-50)."""
        ended = self.loaded(module, "tessModuleUnload")
        self.drain(ended.context)
        for kernel in ended.kernels.values():
            self.handles.end(kernel)
        del ended.context.plans[module]
        self.handles.end(module)

    @entry_giving("kernel")
    def tessKernelGet(self, module: Any, name: str | None) -> int:  # noqa: N802
        """The kernel of a public name (RT-04.5-16, AMB-RT-18, AMB-RT-42)."""
        function = "tessKernelGet"
        of = self.loaded(module, function)
        wanted = required(function, "name", name)
        found = of.entry(wanted) if isinstance(wanted, str) else None
        if found is None:
            known = ", ".join(each.name for each in of.fatbin.metadata.kernels)
            raise invalid(function, f"name is {shown(wanted)}", f"a kernel of the module: {known or 'it has none'}")
        if found.name not in of.kernels:
            kernel = Kernel(0, of, found)
            of.kernels[found.name] = kernel.handle = self.handles.give("kernel", kernel)
        return of.kernels[found.name]

    @entry
    def tessLaunch(  # noqa: N802
        self,
        kernel: Any,
        mesh: Any,
        cfg: LaunchConfig,
        argBuffer: bytes | int | None,  # noqa: N803
        argSize: int,  # noqa: N803
        stream: Any,
    ) -> None:
        """Queue a launch on every rank; the arguments are read now (RT-04.5-17, RT-06-05, AMB-RT-72)."""
        function = "tessLaunch"
        launched = self.handles.find("kernel", Kernel, kernel, function)
        on, queue = self.mesh(mesh, function), self.stream(stream, function)
        _require_together(launched, on, queue)
        flags = flags_of(cfg)
        grid, block, shared = configuration_of(cfg)
        require_targets(on, launched.module.fatbin.targets)
        policy = on.context.governing(
            launched.module.fatbin.metadata.policy, bool(flags & LaunchFlag.TESS_LAUNCH_DETERMINISTIC)
        )
        self.require_policy(on.context, function, policy)
        pointers, scalars = scalars_of(launched.entry, self._argument_bytes(launched, argBuffer, argSize))
        extents = extents_of(launched.entry, scalars)
        tensors = self._tensors(launched, pointers, extents, queue)
        executables = {name: self._executable(launched, name, extents, policy) for name in on.targets}
        for executable in executables.values():
            executable.require_configuration(grid, block, shared)
        if flags & LaunchFlag.TESS_LAUNCH_PERSISTENT:
            _require_room(queue, [mesh for _, mesh in self.handles.live("mesh")])
        work = LaunchWork(
            name=launched.entry.name,
            stream=queue,
            executables=executables,
            tensors=tensors,
            scalars=scalars,
            grid=grid,
            block=block,
            flags=flags,
            descriptor=on.context.descriptor,
            policy=policy,
        )
        self._queue_launch(work)

    def _queue_launch(self, work: LaunchWork) -> None:
        """Capture a launch that asks for it, which begins a capture; queue any other (AMB-RT-86)."""
        captured = bool(work.flags & LaunchFlag.TESS_LAUNCH_CAPTURE)
        if captured:
            begin_capture(work.stream)
        self.submit(work, captured=captured)

    def _argument_bytes(self, kernel: Kernel, buffer: bytes | int | None, size: int) -> bytes:
        function = "tessLaunch"
        count = integer(function, "argSize", size, SIZE)
        needed = kernel.entry.layout.end_of_last_argument
        if count < needed:
            allowed = f"at least {needed}, where the last argument of {kernel.entry.name} ends"
            raise invalid(function, f"argSize is {count}", allowed)
        if needed == 0:
            return b""
        return self.bytes_at(function, "argBuffer", required(function, "argBuffer", buffer), needed)

    def _tensors(
        self, kernel: Kernel, pointers: Mapping[str, int], extents: Mapping[str, int], stream: Stream
    ) -> dict[str, Tensor]:
        """What lies behind the pointers. Raises `Failure` for one that is NULL, misaligned or too short."""
        function = "tessLaunch"
        sizes = tensor_bytes(kernel.entry, extents)
        found: dict[str, Tensor] = {}
        for each in kernel.entry.parameters:
            if each.type != "ptr":
                continue
            pointer = pointers[each.name]
            if each.dtype is None:
                found[each.name] = self._opaque(each.name, pointer, each.written, stream)
                continue
            held, (shape, size) = dtype(each.dtype), sizes[each.name]
            if size == 0 and pointer == 0:  # nothing is read or written there (AMB-RT-172)
                found[each.name] = Tensor(None, held, shape, 0, each.written)
                continue
            required(function, f"argument {each.name}", pointer)
            step = min(held.storage_bytes, 8)
            if pointer % step:
                raise invalid(
                    function, f"argument {each.name} is {pointer:#x}", f"a multiple of {step}, as {held} needs"
                )
            region = self.region(function, f"argument {each.name}", pointer, size, "device", stream, each.written)
            found[each.name] = Tensor(region, held, shape, size, each.written)
        return found

    def _opaque(self, name: str, pointer: int, written: bool, stream: Stream) -> Tensor:
        """Of a pointer without a tensor, the bytes from there to the end of the allocation."""
        required("tessLaunch", f"argument {name}", pointer)
        region = self.region("tessLaunch", f"argument {name}", pointer, 1, "device", stream)
        size = region.allocation.bytes - region.offset
        return Tensor(region, dtype("int8"), (size,), size, written)

    def _executable(self, kernel: Kernel, target: str, extents: Mapping[str, int], policy: Any) -> Executable:
        try:
            return self.code.executable(kernel.module, kernel.entry, target, extents, policy)
        except Rejection as rejection:
            given = f"kernel {kernel.entry.name} with {dict(extents)}: {rejection.diagnostics[0].message}"
            raise invalid("tessLaunch", given, "extents that the kernel can be compiled for") from None
        except UnsupportedConstruct as construct:
            given = f"kernel {kernel.entry.name} needs {construct.feature}"
            raise Failure(Status.TESS_ERR_UNSUPPORTED, "tessLaunch", given, "what the device can do") from None

    def require_policy(self, context: Context, function: str, policy: Any) -> None:
        """Work under a policy that the context lets happen (AMB-RT-88). Raises `Failure`."""
        if context.module_policy.enforce_determinism and not policy.deterministic:
            raise _violation(function, "work without determinism", "deterministic work, as the context demands")
        if context.module_policy.forbid_fast_math and policy.allowFastMath:
            raise _violation(function, "work with fast math", "work without, as the context demands")

    def bytes_at(self, function: str, argument: str, given: bytes | int, size: int) -> bytes:
        """The first `size` bytes of host memory, given as it is or by its address. Raises `Failure`."""
        count = integer(function, "size" if argument == "image" else "argSize", size, SIZE)
        if isinstance(given, int):
            region = self.machine.memory.find(given, count, function, argument, "host")
            return bytes(self.machine.memory.read(region, 0, count, function))
        data = flat(given, argument)
        if count > len(data):
            raise invalid(function, f"size {count} of {argument}, which has {len(data)} bytes", f"at most {len(data)}")
        return bytes(data[:count])

    def loaded(self, handle: Any, function: str) -> LoadedModule:
        """A live module. Raises `Failure`."""
        return self.handles.find("module", LoadedModule, handle, function)


def _require_together(kernel: Kernel, mesh: Mesh, stream: Stream) -> None:
    if stream.mesh is not mesh:
        given = f"stream {stream.handle}, which is of mesh {stream.mesh.handle}, for mesh {mesh.handle}"
        raise invalid("tessLaunch", given, "a stream of the mesh")
    if kernel.context is not mesh.context:
        given = f"a kernel of context {kernel.context.handle} on a mesh of context {mesh.context.handle}"
        raise invalid("tessLaunch", given, "a kernel and a mesh of one context")


def _require_room(stream: Stream, meshes: Sequence[Mesh]) -> None:
    """On each device a place is left beside the kernels that may stay resident, one a stream (AMB-RT-65)."""
    others = [each for mesh in meshes for each in mesh.streams.values() if each is not stream and _may_stay(each)]
    for device in stream.mesh.devices:
        count = sum(device in each.mesh.devices for each in others)
        if count >= KERNELS_AT_ONCE - 1:
            given = f"one more stream with persistent kernels beside {count} on device {device}"
            allowed = f"at most {KERNELS_AT_ONCE - 1} at a time"
            raise Failure(Status.TESS_ERR_UNSUPPORTED, "tessLaunch", given, allowed)


def _may_stay(stream: Stream) -> bool:
    """Whether a stream has persistent kernels that have not ended."""
    works = [each for work in stream.queued for each in (work.works if isinstance(work, GraphWork) else (work,))]
    return any(isinstance(each, LaunchWork) and each.flags & LaunchFlag.TESS_LAUNCH_PERSISTENT for each in works)


def _violation(function: str, given: str, allowed: str) -> Failure:
    return Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, function, given, allowed)
