"""Launches with another grid or other arguments, and failures that are lost (runtime spec, 4.5 to 18)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.abi.fatbin import KernelEntry
from tessera_reference.abi.parameters import unpack
from tessera_reference.numerics.array import Array
from tessera_reference.runtime import calls, launches
from tessera_reference.runtime.launches import LaunchWork
from tessera_reference.runtime.streams import Stream, Work

from .changes import INVALID, BuildsOnce, Call, Given, answering, refusing
from .order import broken

LAUNCH = "tessLaunch"


# Grid, block and shared memory


def configured(clause: str, name: str, description: str, change: Callable[[Given], Given]) -> Violation:
    """Return a violation that launches with another configuration than requested."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        return call(**(given | {"cfg": given["cfg"] | change(given["cfg"])}))

    return answering(clause, name, description, LAUNCH, answer)


def chosen_wholly(cfg: Given) -> Given:
    return {"block": [0, 0, 0]} if 0 in cfg["block"] else {}


def refused(clause: str, name: str, description: str, when: Callable[[Given], bool]) -> Violation:
    """Return a violation that refuses some legal configurations as invalid."""
    return refusing(clause, name, description, LAUNCH, lambda given: when(given["cfg"]), INVALID)


CONFIGURATION = [
    configured("RT-04.5-17", "no_depth", "leaves the last extent of the grid out",
        lambda cfg: {"grid": [*cfg["grid"][:2], 1]}),
    configured("RT-04.5-17", "other_block", "launches the block that the compiler would choose",
        lambda cfg: {"block": [0, 0, 0]}),
    configured("RT-04.5-09", "chosen_wholly", "chooses all of a block of which a part is given", chosen_wholly),
    refused("RT-04.5-18", "hint_demanded", "demands shared bytes", lambda cfg: not cfg["shmemBytes"]),
    refused("RT-04.5-18", "small_hints", "takes shared bytes of at most a thousand",
        lambda cfg: (cfg["shmemBytes"] > 1000)),
    refusing("RT-18-04", "not_deterministic", "has no deterministic launches of many blocks", LAUNCH,
        lambda given: (bool(given["cfg"]["flags"] & 1 and given["cfg"]["grid"][0] > 1))),
]  # fmt: skip


# Arguments


def offset_lost(*arguments: Any, right: Any = calls.tensors_of) -> Any:
    found = right(*arguments)
    return {name: replace(argument, region=argument.region._replace(offset=0)) for name, argument in found.items()}


def any_size(kernel: Any, buffer: Any, size: int, stream: Any, right: Any = calls.argument_bytes) -> Any:
    data = bytes(buffer) if isinstance(buffer, bytes | bytearray) else b""
    needed = kernel.entry.layout.end_of_last_argument
    if data and len(data[:size]) < needed:
        return data[:size] + bytes(needed - len(data[:size]))
    return right(kernel, buffer, size, stream)


Read = Callable[[KernelEntry, bytes], tuple[Mapping[str, int], Mapping[str, Array]]]


def reading(clause: str, name: str, description: str, read: Read) -> Violation:
    """Return a violation that reads the argument buffer differently."""
    return broken(clause, name, description, calls, "scalars_of", read)


def big_endian(only: Callable[[Array], bool]) -> Read:
    def read(entry: KernelEntry, buffer: bytes) -> Any:
        pointers, scalars = launches.scalars_of(entry, buffer)
        return pointers, {
            name: Array.from_bits(scalar.dtype, (), bytes(scalar.to_bits())[::-1]) if only(scalar) else scalar
            for name, scalar in scalars.items()
        }

    return read


def in_order(key: Callable[[Any], Any]) -> Read:
    """Return a reader with arguments in another order than declared."""

    def read(entry: KernelEntry, buffer: bytes) -> Any:
        arranged = replace(entry, parameters=tuple(sorted(entry.parameters, key=key)))
        return launches.scalars_of(arranged, buffer + bytes(64))

    return read


def last_pointer_first(entry: KernelEntry, buffer: bytes) -> Any:
    pointers, scalars = launches.scalars_of(entry, buffer)
    return dict(zip(pointers, reversed(list(pointers.values())), strict=True)), scalars


def first_words(words: int) -> Read:
    """Return a reader of no more than so many words of eight bytes."""
    return lambda entry, buffer: launches.scalars_of(
        entry, buffer[: 8 * words] + bytes(max(0, len(buffer) - 8 * words))
    )


def one_result(self: LaunchWork, *arguments: Any, right: Any = LaunchWork._executed) -> Any:
    return dict(list(right(self, *arguments).items())[:1])


def forty_arguments(layout: Any, buffer: bytes) -> Any:
    return tuple(value if place < 40 else 0 for place, value in enumerate(unpack(layout, buffer)))


ARGUMENTS = [
    broken("RT-10.1-13", "forty_arguments", "gives a kernel 40 arguments, and zeros for those behind them", launches,
           "unpack", forty_arguments),
    broken("RT-04.5-17", "offset_lost", "takes a pointer for its allocation", calls, "tensors_of", offset_lost),
    broken("RT-04.5-17", "any_size", "takes a buffer that is too short", calls, "argument_bytes", any_size),
    broken("RT-04.5-17", "rank_0_only", "launches on rank 0 only", LaunchWork, "ranks", lambda self: range(1)),
    reading("RT-10.1-02", "floats_big_endian", "reads numbers with the high byte first",
            big_endian(lambda scalar: scalar.dtype.kind == "float")),
    reading("RT-10.1-13", "scalars_first", "expects scalars first", in_order(lambda given: given.type == "ptr")),
    reading("RT-10.1-13", "last_pointer_first", "expects the last pointer first", last_pointer_first),
    reading("RT-10.1-01", "eight_words", "reads eight words of the buffer", first_words(8)),
    broken("RT-10.2-02", "one_result", "writes one result", LaunchWork, "_executed", one_result),
]  # fmt: skip


# Queues


def queued_behind_few(self: Stream, work: Work) -> None:
    if not isinstance(work, LaunchWork) or len(self.queued) < 1000:
        ENQUEUE(self, work)


ENQUEUE = Stream.enqueue
QUEUED = broken("RT-04.3-10", "a_thousand_queued", "drops launches behind a thousand that are queued", Stream,
                "enqueue", queued_behind_few)  # fmt: skip


# The call that reports a launch's failure


def waiting(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    answer = call(**given)
    adapter.runtime.stream(given["stream"]).drain()
    return answer


def leaking(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    answer = call(**given)
    memory = adapter.runtime_tessxDevices()["devices"][0]["memory_bytes"]
    adapter.runtime_tessMalloc(mesh=given["mesh"], bytes=memory // 900)
    return answer


def keeping(only: Callable[[Any], bool]) -> Any:
    """Return a stream function that records only some failures."""
    right = Stream.fail
    return lambda self, failure, number, rank: right(self, failure, number, rank) if only(failure) else None


TOLD = [
    answering("RT-04.4-14", "leaking", "keeps memory for every launch", LAUNCH, leaking),
    answering("RT-06-05", "waiting", "waits for the kernel", LAUNCH, waiting),
    broken("RT-07-07", "traps_lost", "loses traps", Stream, "fail",
        keeping(lambda failure: "trapped" not in str(failure))),
]  # fmt: skip

# Extents


def without_sign(entry: KernelEntry, scalars: Mapping[str, Array]) -> dict[str, int]:
    """Return the extents of named dimensions, negative ones without their sign."""
    return EXTENTS(entry, {name: Array(value.dtype, abs(value.values)) for name, value in scalars.items()})


EXTENTS = launches.extents_of
without_signs = replaced(
    "RT-19.A-01", "takes a negative extent without its sign", BuildsOnce, ("runtime.calls.extents_of", without_sign)
)
