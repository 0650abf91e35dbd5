"""Launches with other scalars, with ineffective members that take effect, and with binaries of other PEs (D3, D7)."""

from dataclasses import replace
from decimal import Decimal

from tessera_reference.host_io import machine
from tessera_reference.host_io.frames import ErrorCode, RequestFailed
from tessera_reference.host_io.machine import Place
from tessera_reference.host_io.messages import ScalarArgument

from ....ir.violators.changes import breaks, wrapped
from .message_changes import LAUNCH, refusing

ROUNDED, DEPLOYED = machine.rounded, "host_io.launches.deployed_kernel"


def with_scalars(clause, name, description, dtype, change):
    def other(argument):
        scalar = isinstance(argument, ScalarArgument) and argument.dtype == dtype
        return replace(argument, value=change(argument.value)) if scalar else argument

    def launch(usual, machine, request):
        return usual(machine, replace(request, args=[*map(other, request.args)]))

    return wrapped(clause, name, description, LAUNCH, launch)


def signed(value, bits):
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def obeying(clause, member, obeyed):
    """Return a violation in which a member without effect makes a launch do nothing."""

    def tasks(usual, kernel, request, tensors):
        return [] if obeyed(getattr(request, member)) else usual(kernel, request, tensors)

    description = f"{member} keeps a launch from running"
    return wrapped(clause, f"{member}_obeyed", description, "host_io.launches._tasks", tasks)


def elsewhere(clause, member):
    def deployed(usual, machine, reference):
        return usual(machine, replace(reference, **{f"deploy_{member}": 0}))

    return wrapped(clause, f"binary_{member}_ignored", f"binaries are looked for at {member} 0", DEPLOYED, deployed)


@breaks("HIO-D7-36", "a launch destroys the binary", DEPLOYED)
def binary_once(usual, machine, reference):
    found = usual(machine, reference)
    place = Place(reference.deploy_sip, reference.deploy_cube, reference.deploy_pe)
    machine.space(place).write(reference.deploy_pa or 0, bytes(reference.nbytes_code))
    return found


@breaks("HIO-D7-13", "a binary has to be written at once", DEPLOYED)
def binary_in_one_piece(usual, machine, reference):
    found = usual(machine, reference)
    place = Place(reference.deploy_sip, reference.deploy_cube, reference.deploy_pe)
    data = machine.space(place).read(reference.deploy_pa or 0, reference.nbytes_code)
    if len(set(data)) > 2:
        raise RequestFailed(ErrorCode.KERNEL_NOT_DEPLOYED, "written in pieces")
    return found


VIOLATORS = [
    with_scalars("HIO-D7-38", "i32_of_16_bits", "an i32 is cut to 16 bits", "i32", lambda value: signed(value, 16)),
    with_scalars("HIO-D7-38", "i32_without_sign", "an i32 loses its sign", "i32", lambda value: abs(value) % 2**31),
    with_scalars("HIO-D7-46", "i32_through_fp32", "an i32 passes through fp32", "i32",
        lambda value: max(-(2**31), min(2**31 - 1, int(ROUNDED(value, "fp32"))))),
    with_scalars("HIO-D7-39", "i64_through_fp64", "an i64 passes through fp64", "i64",
        lambda value: signed(int(float(value)), 64)),
    with_scalars("HIO-D7-40", "fp16_of_whole_numbers", "a scalar of fp16 loses its fraction", "fp16",
        lambda value: Decimal(value).to_integral_value()),
    with_scalars("HIO-D7-42", "always_true", "a bool is true", "bool", lambda value: True),
    with_scalars("HIO-D7-48", "scalar_zero", "scalars are zero", "i32", lambda value: 0),
    with_scalars("HIO-D7-41", "fp32_through_fp16", "a scalar of fp32 passes through fp16", "fp32",
        lambda value: Decimal(min(65504.0, ROUNDED(value, "fp16")))),
    refusing("HIO-D7-04", "no_arguments_refused", "refuses a launch without arguments",
        lambda message: message.get("args") == []),
    obeying("HIO-D7-28", "grid", bool),
    obeying("HIO-D7-29", "meta", bool),
    obeying("HIO-D7-32", "debug_label", lambda label: label == "skip"),
    obeying("HIO-D3-09", "timestamp_tag", lambda tag: tag == "skip"),
    elsewhere("HIO-D7-09", "sip"),
    elsewhere("HIO-D7-10", "cube"),
    elsewhere("HIO-D7-11", "pe"),
    refusing("HIO-D7-08", "binary_at_odd_address", "refuses binaries at odd addresses",
        lambda message: (message.get("kernel_ref", {}).get("deploy_pa") or 0) % 2),
]  # fmt: skip
