"""Launches with another grid or other arguments, and failures that are lost (runtime spec, 4.5 to 18)."""

from dataclasses import replace

from tessera_reference.numerics.array import Array
from tessera_reference.runtime import calls, launches
from tessera_reference.runtime.launches import LaunchWork

from .changes import INVALID, UNSUPPORTED, afterwards, answering, broken, executing, only_if, refusing, result, unless

LAUNCH = "tessLaunch"


def configured(clause, name, description, change):
    """Return a violation that launches with another configuration than requested."""
    return answering(clause, name, description, LAUNCH, lambda adapter, call, given:
        call(**(given | {"cfg": given["cfg"] | change(given["cfg"])})))  # fmt: skip


def refused(clause, name, description, when):
    """Return a violation that refuses some legal configurations as invalid."""
    return refusing(clause, name, description, LAUNCH, lambda given: when(given["cfg"]), INVALID)


def without_offset(argument):
    return replace(argument, region=argument.region._replace(offset=0))


def any_size(kernel, buffer, size, stream, right=calls.argument_bytes):
    data = bytes(buffer)[:size] if isinstance(buffer, bytes | bytearray) else b""
    missing = kernel.entry.layout.end_of_last_argument - len(data)
    return data + bytes(missing) if data and missing > 0 else right(kernel, buffer, size, stream)


def reading(clause, name, description, read):
    """Return a violation that reads the argument buffer differently."""
    return broken(clause, name, description, "runtime.calls.scalars_of", read)


def big_endian(scalar):
    floating = scalar.dtype.kind == "float"
    return Array.from_bits(scalar.dtype, (), bytes(scalar.to_bits())[::-1]) if floating else scalar


def floats_big_endian(entry, buffer):
    pointers, scalars = launches.scalars_of(entry, buffer)
    return pointers, {name: big_endian(scalar) for name, scalar in scalars.items()}


def scalars_first(entry, buffer):
    arranged = sorted(entry.parameters, key=lambda parameter: parameter.type == "ptr")
    return launches.scalars_of(replace(entry, parameters=tuple(arranged)), buffer + bytes(64))


def last_pointer_first(entry, buffer):
    pointers, scalars = launches.scalars_of(entry, buffer)
    return dict(zip(pointers, reversed(list(pointers.values())), strict=True)), scalars


def leaking(adapter, call, given):
    memory = adapter.runtime_tessxDevices()["devices"][0]["memory_bytes"]
    adapter.runtime_tessMalloc(mesh=given["mesh"], bytes=memory // 900)


def of_another_context(adapter, given):
    """True if a kernel and a mesh are of two contexts."""
    kernel, mesh = (dict(adapter.runtime.handles.live(kind)).get(given[kind]) for kind in ("kernel", "mesh"))
    return kernel is not None and mesh is not None and kernel.context is not mesh.context


def on_its_first_mesh(adapter, call, given):
    """Launch a kernel on the mesh of its first launch; on others, report success and do nothing."""
    (kernel,) = (live for handle, live in adapter.runtime.handles.live("kernel") if handle == given["kernel"])
    meshes = vars(kernel.module).setdefault("meshes", {})
    return call(**given) if meshes.setdefault(given["kernel"], given["mesh"]) == given["mesh"] else {}


VIOLATORS = [
    configured("RT-04.5-17", "no_depth", "leaves the last extent of the grid out",
        lambda cfg: {"grid": [*cfg["grid"][:2], 1]}),
    configured("RT-04.5-17", "other_block", "launches the block that the compiler would choose",
        lambda cfg: {"block": [0, 0, 0]}),
    configured("RT-04.5-09", "chosen_wholly", "chooses all of a block of which a part is given",
        lambda cfg: {"block": [0, 0, 0]} if 0 in cfg["block"] else {}),
    refused("RT-04.5-18", "hint_demanded", "demands shared bytes", lambda cfg: not cfg["shmemBytes"]),
    refused("RT-04.5-18", "small_hints", "takes shared bytes of at most a thousand",
        lambda cfg: cfg["shmemBytes"] > 1000),
    refusing("RT-18-04", "not_deterministic", "has no deterministic launches of many blocks", LAUNCH,
        lambda given: given["cfg"]["flags"] & 1 and given["cfg"]["grid"][0] > 1),
    answering("RT-04.5-17", "one_mesh", "launches a kernel on its first mesh alone", LAUNCH, on_its_first_mesh),
    answering("RT-19.A-01", "context_unsupported", "does not support a kernel of another context", LAUNCH,
        unless(of_another_context, UNSUPPORTED)),
    broken("RT-10.1-13", "forty_arguments", "gives a kernel 40 arguments, and zeros for those behind them",
        "runtime.launches.unpack",
        result(lambda values: tuple(value if place < 40 else 0 for place, value in enumerate(values)))),
    broken("RT-04.5-17", "offset_lost", "takes a pointer for its allocation", "runtime.calls.tensors_of",
        result(lambda tensors: {name: without_offset(argument) for name, argument in tensors.items()})),
    broken("RT-04.5-17", "any_size", "takes a buffer that is too short", "runtime.calls.argument_bytes", any_size),
    broken("RT-04.5-17", "rank_0_only", "launches on rank 0 only", "runtime.launches.LaunchWork.ranks",
        lambda self: range(1)),
    reading("RT-10.1-02", "floats_big_endian", "reads numbers with the high byte first", floats_big_endian),
    reading("RT-10.1-13", "scalars_first", "expects scalars first", scalars_first),
    reading("RT-10.1-13", "last_pointer_first", "expects the last pointer first", last_pointer_first),
    reading("RT-10.1-01", "eight_words", "reads eight words of the buffer",
        lambda entry, buffer: launches.scalars_of(entry, buffer[:64] + bytes(max(0, len(buffer) - 64)))),
    executing("RT-10.2-02", "one_result", "writes one result", result(lambda made: dict(list(made.items())[:1]))),
    broken("RT-04.3-10", "a_thousand_queued", "drops launches behind a thousand that are queued",
        "runtime.streams.Stream.enqueue",
        only_if(lambda stream, work: not isinstance(work, LaunchWork) or len(stream.queued) < 1000)),
    broken("RT-19.A-01", "without_signs", "takes a negative extent without its sign", "runtime.calls.extents_of",
        lambda entry, scalars: launches.extents_of(
            entry, {name: Array(value.dtype, abs(value.values)) for name, value in scalars.items()})),
    answering("RT-04.4-14", "leaking", "keeps memory for every launch", LAUNCH, afterwards(leaking)),
    answering("RT-06-05", "waiting", "waits for the kernel", LAUNCH,
        afterwards(lambda adapter, call, given: adapter.runtime.stream(given["stream"]).drain())),
    broken("RT-07-07", "traps_lost", "loses traps", "runtime.streams.Stream.fail",
        only_if(lambda stream, failure, number, rank: "trapped" not in str(failure))),
]  # fmt: skip
