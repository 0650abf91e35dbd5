"""Launches with other scalars, with ineffective members that take effect, and with binaries of other PEs (D3, D7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.host_io import launches
from tessera_reference.host_io import machine as kernels
from tessera_reference.host_io.frames import ErrorCode, RequestFailed
from tessera_reference.host_io.machine import Kernel, Machine, Place
from tessera_reference.host_io.messages import KernelLaunch, KernelRef, ScalarArgument

from .message_changes import Message, changed, refusing

_launch = launches.launch
_tasks = launches._tasks
_rounded = kernels.rounded
_deployed_kernel = launches.deployed_kernel

# Scalars and members without influence


def with_scalars(clause: str, name: str, description: str, dtype: str, change: Callable[[Any], Any]) -> Violation:
    """Return a violation that changes scalars of a dtype."""

    def launch(machine: Machine, request: KernelLaunch) -> Any:
        args = [
            replace(argument, value=change(argument.value))
            if isinstance(argument, ScalarArgument) and argument.dtype == dtype
            else argument
            for argument in request.args
        ]
        return _launch(machine, replace(request, args=args))

    return changed(clause, name, description, ("host_io.endpoint.launch", launch))


def signed(value: int, bits: int) -> int:
    """Return the lowest bits of a number as a signed one."""
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def obeying(clause: str, member: str, obeyed: Callable[[Any], bool]) -> Violation:
    """Return a violation in which a member without effect makes a launch do nothing."""

    def tasks(kernel: Kernel, request: KernelLaunch, tensors: Any) -> Any:
        return [] if obeyed(getattr(request, member)) else _tasks(kernel, request, tensors)

    return changed(
        clause, f"{member}_obeyed", f"{member} keeps a launch from running", ("host_io.launches._tasks", tasks)
    )


def scalars_of(message: Message, dtype: str) -> list[Any]:
    """Return the values of the scalars of a dtype."""
    return [argument["value"] for argument in message.get("args", ()) if argument.get("dtype") == dtype]


SCALARS = [
    with_scalars("HIO-D7-38", "i32_of_16_bits", "an i32 is cut to 16 bits", "i32", lambda value: signed(value, 16)),
    with_scalars("HIO-D7-38", "i32_without_sign", "an i32 loses its sign", "i32", lambda value: abs(value) % 2**31),
    with_scalars("HIO-D7-46", "i32_through_fp32", "an i32 passes through fp32", "i32",
        lambda value: max(-(2**31), min(2**31 - 1, int(_rounded(value, "fp32"))))),
    with_scalars("HIO-D7-39", "i64_through_fp64", "an i64 passes through fp64", "i64",
        lambda value: signed(int(float(value)), 64)),
    with_scalars("HIO-D7-40", "fp16_of_whole_numbers", "a scalar of fp16 loses its fraction", "fp16",
        lambda value: Decimal(value).to_integral_value()),
    with_scalars("HIO-D7-42", "always_true", "a bool is true", "bool", lambda value: True),
    with_scalars("HIO-D7-48", "scalar_zero", "scalars are zero", "i32", lambda value: 0),
    with_scalars("HIO-D7-41", "fp32_through_fp16", "a scalar of fp32 passes through fp16", "fp32",
        lambda value: Decimal(min(65504.0, _rounded(value, "fp16")))),
    refusing("HIO-D7-04", "no_arguments_refused", "refuses a launch without arguments",
        lambda message: message.get("args") == []),
    obeying("HIO-D7-28", "grid", lambda grid: bool(grid)),
    obeying("HIO-D7-29", "meta", lambda meta: bool(meta)),
    obeying("HIO-D7-32", "debug_label", lambda label: label == "skip"),
    obeying("HIO-D3-09", "timestamp_tag", lambda tag: tag == "skip"),
]  # fmt: skip

# Binaries


def elsewhere(clause: str, member: str) -> Violation:
    """Return a violation that looks up the binary at another PE."""

    def deployed_kernel(machine: Machine, reference: KernelRef) -> Kernel:
        return _deployed_kernel(machine, replace(reference, **{f"deploy_{member}": 0}))

    description = f"binaries are looked for at {member} 0"
    return changed(
        clause, f"binary_{member}_ignored", description, ("host_io.launches.deployed_kernel", deployed_kernel)
    )


def overwritten(machine: Machine, reference: KernelRef) -> Kernel:
    found = _deployed_kernel(machine, reference)
    place = Place(reference.deploy_sip, reference.deploy_cube, reference.deploy_pe)
    machine.space(place).write(reference.deploy_pa or 0, bytes(reference.nbytes_code))
    return found


def in_one_piece(machine: Machine, reference: KernelRef) -> Kernel:
    found = _deployed_kernel(machine, reference)
    place = Place(reference.deploy_sip, reference.deploy_cube, reference.deploy_pe)
    data = machine.space(place).read(reference.deploy_pa or 0, reference.nbytes_code)
    if len(set(data)) > 2:
        raise RequestFailed(ErrorCode.KERNEL_NOT_DEPLOYED, "written in pieces")
    return found


BINARIES = [
    elsewhere("HIO-D7-09", "sip"),
    elsewhere("HIO-D7-10", "cube"),
    elsewhere("HIO-D7-11", "pe"),
    changed("HIO-D7-36", "binary_once", "a launch destroys the binary",
        ("host_io.launches.deployed_kernel", overwritten)),
    changed("HIO-D7-13", "binary_in_one_piece", "a binary has to be written at once",
        ("host_io.launches.deployed_kernel", in_one_piece)),
    refusing("HIO-D7-08", "binary_at_odd_address", "refuses binaries at odd addresses",
        lambda message: (message.get("kernel_ref", {}).get("deploy_pa") or 0) % 2),
]  # fmt: skip
