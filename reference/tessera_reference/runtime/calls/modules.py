"""Modules, kernels and launches (runtime spec 4.5, 6, 8, 10, 15, 16)."""

# ruff: noqa: N802, N803, the names are those of the C API

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...abi.enumerations import LaunchFlag
from ...abi.fatbin import read, verify
from ...abi.policy import NumericsPolicy
from ...abi.status import Failure, Status
from ...ir.diagnostics import Rejection, UnsupportedConstruct
from ...numerics.errors import shown
from ..arguments import invalid, required
from ..capture import begin_capture
from ..entries import entry
from ..launch_arguments import (
    argument_bytes,
    configuration_of,
    extents_of,
    flags_of,
    require_order,
    require_place,
    require_targets,
    require_together,
    scalars_of,
    tensors_of,
)
from ..launches import LaunchConfig, LaunchWork
from ..modules import Kernel, LoadedModule
from ..pointers import host_bytes
from ..state import State
from ..submission import submit

if TYPE_CHECKING:
    from ...compilation.executable import Executable


@entry("module")
def tessModuleLoad(state: State, ctx: Any, image: bytes | int | None, size: int) -> int:
    """A module of a fatbin: well formed, then of our ABI, then for a device of the machine (AMB-RT-43, -60)."""
    context = state.context(ctx)
    data = host_bytes(state.machine.memory, "tessModuleLoad", "image", required("image", image), size, "size")
    keys = context.module_policy.trusted_keys
    fatbin = read(data)
    if keys is not None:
        verify(data, keys)
    known = {each.target for each in state.machine.topology.devices}
    if not known & set(fatbin.targets):
        given = f"a module for {', '.join(fatbin.targets) or 'no target'}"
        allowed = f"one for a device of this machine: {', '.join(sorted(known))}"
        raise Failure(Status.TESS_ERR_ARCH_MISMATCH, "", given, allowed)
    given, allowed = "a module whose policy allows fast math", "one without, as the context demands"
    context.require_no_fast_math(given, allowed, fatbin.metadata.policy)
    module = LoadedModule(0, context, fatbin)
    module.handle = state.handles.give("module", module)
    context.plans[module.handle] = fatbin.metadata.collective_plans
    return module.handle


@entry()
def tessModuleUnload(state: State, module: Any) -> None:
    """End a module once all work is done that could use it (RT-04.5-15, AMB-RT-35, AMB-RT-50)."""
    ended = state.module(module)
    state.drain(ended.context)
    for kernel in ended.kernels.values():
        state.handles.end(kernel)
    del ended.context.plans[module]
    state.handles.end(module)


@entry("kernel")
def tessKernelGet(state: State, module: Any, name: str | None) -> int:
    """The kernel of a public name (RT-04.5-16, AMB-RT-18, AMB-RT-42)."""
    of = state.module(module)
    wanted = required("name", name)
    found = of.entry(wanted) if isinstance(wanted, str) else None
    if found is None:
        known = ", ".join(each.name for each in of.fatbin.metadata.kernels)
        raise invalid(f"name is {shown(wanted)}", f"a kernel of the module: {known or 'it has none'}")
    if found.name not in of.kernels:
        kernel = Kernel(0, of, found)
        of.kernels[found.name] = kernel.handle = state.handles.give("kernel", kernel)
    return of.kernels[found.name]


@entry()
def tessLaunch(
    state: State,
    kernel: Any,
    mesh: Any,
    cfg: LaunchConfig,
    argBuffer: bytes | int | None,
    argSize: int,
    stream: Any,
) -> None:
    """Queue a launch on every rank; the arguments are read now (RT-04.5-17, RT-06-05, AMB-RT-72)."""
    launched = state.handles.find("kernel", Kernel, kernel)
    on, queue = state.mesh(mesh), state.stream(stream)
    require_together(launched, on, queue)
    flags = flags_of(cfg)
    grid, block, shared = configuration_of(cfg)
    require_targets(on, launched.module.fatbin.targets)
    policy = on.context.governing(
        launched.module.fatbin.metadata.policy, bool(flags & LaunchFlag.TESS_LAUNCH_DETERMINISTIC)
    )
    on.context.require_policy("tessLaunch", policy)
    require_order(launched, on, on.context.descriptor.reduction_order)
    pointers, scalars = scalars_of(launched.entry, argument_bytes(launched, argBuffer, argSize, queue))
    extents = extents_of(launched.entry, scalars)
    tensors = tensors_of(launched.entry, pointers, extents, queue)
    executables = {name: _executable(state, launched, name, extents, policy) for name in on.targets}
    for executable in executables.values():
        executable.require_configuration(grid, block, shared)
    if flags & LaunchFlag.TESS_LAUNCH_PERSISTENT:
        require_place(queue, [stream for _, stream in state.handles.live("stream")])
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
    queue_launch(state, work)


def queue_launch(state: State, work: LaunchWork) -> None:
    """Capture a launch that asks for it, which begins a capture; queue any other (AMB-RT-86)."""
    captured = bool(work.flags & LaunchFlag.TESS_LAUNCH_CAPTURE)
    if captured:
        begin_capture(state.captures, work.stream)
    submit(state, work, captured=captured)


def _executable(
    state: State, kernel: Kernel, target: str, extents: Mapping[str, int], policy: NumericsPolicy
) -> Executable:
    try:
        return state.code.executable(kernel.module, kernel.entry, target, extents, policy)
    except Rejection as rejection:
        given = f"kernel {kernel.entry.name} with {dict(extents)}: {rejection.diagnostics[0].message}"
        raise invalid(given, "extents that the kernel can be compiled for") from None
    except UnsupportedConstruct as construct:
        given = f"kernel {kernel.entry.name} needs {construct.feature}"
        raise Failure(Status.TESS_ERR_UNSUPPORTED, "", given, "what the device can do") from None
