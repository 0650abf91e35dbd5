"""Refused launches that run, failures reported or handled wrongly, and queues (D3, D4, D7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.host_io import endpoint, launches
from tessera_reference.host_io.endpoint import Endpoint
from tessera_reference.host_io.frames import ErrorCode, RequestFailed
from tessera_reference.host_io.machine import Kernel, Machine, Place, SparseMemory
from tessera_reference.host_io.messages import KernelLaunch, TensorArgument

from .message_changes import Message, changed, read_as

_launch = launches.launch
_tasks = launches._tasks
_run = launches._run

# Refusals and failures


def run_before_refused(value: Message, **options: Any) -> Any:
    """Return a launch with an unknown member as one that runs without it and is then refused."""
    try:
        return _request_of(value, **options)
    except RequestFailed as refused:
        if value.get("msg_type") != "KernelLaunch":
            raise
        return Refused(refused, value)


class Refused(Exception):
    """A refused launch that runs nevertheless."""

    target_device = "sip:0"

    def __init__(self, failure: RequestFailed, value: Message) -> None:
        self.failure, self.value = failure, value


_request_of = endpoint.request_of
_endpoint_run = Endpoint._run


def known_members(value: Any) -> Any:
    """Return a message without the planted members."""
    if isinstance(value, list):
        return [known_members(element) for element in value]
    if not isinstance(value, dict):
        return value
    planted = {"source", "source_code", "code", "ir", "mlir", "binary", "data", "tensor_data", "payload"}
    return {name: known_members(member) for name, member in value.items() if name not in planted}


def runs_refused(self: Endpoint, request: Any, pair: Any, characters: int) -> Any:
    """Run a refused launch."""
    if not isinstance(request, Refused):
        return _endpoint_run(self, request, pair, characters)
    launched = _endpoint_run(self, _request_of(known_members(request.value)), pair, characters)
    return replace(launched, failure=request.failure)


def planted(clause: str) -> Violation:
    """Return a violation that refuses a planted member too late."""
    return changed(
        clause,
        f"planted_after_running_{clause[-2:]}",
        "a launch with a planted member runs, and is refused",
        ("host_io.endpoint.request_of", run_before_refused),
        ("host_io.endpoint.Endpoint._run", runs_refused),
    )


def policy(clause: str, name: str, description: str, change: Callable[[KernelLaunch], KernelLaunch]) -> Violation:
    """Return a violation that changes the failure policy."""
    return changed(
        clause,
        name,
        description,
        ("host_io.endpoint.launch", lambda machine, request: _launch(machine, change(request))),
    )


def other_policy(given: str, becomes: str) -> Callable[[KernelLaunch], KernelLaunch]:
    """Return a change of one policy to another."""
    return lambda request: replace(request, failure_policy=becomes) if request.failure_policy == given else request  # type: ignore[arg-type]


def none_at_times(machine: Machine, request: KernelLaunch) -> Any:
    places = [
        Place(shard.sip, shard.cube, shard.pe)
        for one in request.args
        if isinstance(one, TensorArgument)
        for shard in one.tensor_pa_map.shards
    ]
    failed = request.failure_policy == "fail_fast" and machine.failing & set(places)
    machine.__dict__["failed"] = machine.__dict__.get("failed", 0) + bool(failed)
    if failed and machine.__dict__["failed"] % 2:
        return _launch(machine, replace(request, args=[]))[0], RequestFailed(ErrorCode.PE_FAULT, "failed")
    return _launch(machine, request)


def fails_after_work(machine: Machine, kernel: Kernel, request: KernelLaunch, task: Any) -> Any:
    failing, machine.failing = machine.failing, frozenset()
    failure = _run(machine, kernel, request, task)
    machine.failing = failing
    return RequestFailed(ErrorCode.PE_FAULT, "failed") if task[0].place in failing else failure


def highest_first(found: Any, *others: Any, **options: Any) -> list[Any]:
    """Return the results in descending order."""
    return sorted(found, *others, **options)[::-1]


def numbered_code(machine: Machine, kernel: Kernel, request: KernelLaunch, task: Any) -> Any:
    failure = _run(machine, kernel, request, task)
    odd = failure is not None and task[0].place.pe % 2
    return RequestFailed(ErrorCode.UNSUPPORTED, "an odd PE failed") if odd else failure


def fault_before_refusal(machine: Machine, request: KernelLaunch) -> Any:
    for argument in request.args:
        if isinstance(argument, TensorArgument):
            for shard in argument.tensor_pa_map.shards:
                if (failure := machine.failure_of(Place(shard.sip, shard.cube, shard.pe))) is not None:
                    raise failure
    return _launch(machine, request)


def sticky(self: Machine, place: Place) -> RequestFailed | None:
    broken = self.__dict__.setdefault("broken", set())
    broken |= self.failing
    return RequestFailed(ErrorCode.PE_FAULT, "failed once") if place in broken else None


FAILURES = [
    *(planted(clause) for clause in ("HIO-D7-14", "HIO-D7-15", "HIO-D7-33")),
    policy("HIO-D7-44", "collect_all_stops", "collect_all stops at a failure",
        other_policy("collect_all", "fail_fast")),
    read_as(
        "HIO-D7-31",
        "collect_all_by_default",
        "the default is collect_all",
        lambda value: (
            value.get("msg_type") == "KernelLaunch"
            and value.get("failure_policy") is None
            and {**value, "failure_policy": "collect_all"}
        ),
    ),
    changed("HIO-D7-43", "nothing_below_at_times", "fail_fast runs nothing in each second launch with a PE that fails",
        ("host_io.endpoint.launch", none_at_times)),
    changed("HIO-D7-44", "fails_after_work", "a PE that fails has worked before",
        ("host_io.launches._run", fails_after_work)),
    changed("HIO-D4-07", "last_faulty_shard", "the highest faulty shard is told",
        ("host_io.launches.sorted", highest_first)),
    changed("HIO-Context-04", "highest_fault_told", "the highest faulty shard is told of a launch",
        ("host_io.launches.sorted", highest_first)),
    changed("HIO-D4-07", "code_of_the_pe", "the code hangs on the PE", ("host_io.launches._run", numbered_code)),
    changed("HIO-D4-07", "fault_before_refusal",
        "runs nothing, and reports a PE that fails instead of a refused address",
        ("host_io.endpoint.launch", fault_before_refusal)),
    changed("HIO-D7-44", "sticky_fault", "a PE that failed once fails for ever",
        ("host_io.machine.Machine.failure_of", sticky)),
]  # fmt: skip

# The queue


def room_for(change: Callable[[int], int]) -> Callable[..., None]:
    """Return a check with another queue depth than the reported one."""
    right = Endpoint._require_room

    def require(self: Endpoint, pair: Any) -> None:
        size = self.machine.size
        self.machine.size = replace(size, queue_depth=change(size.queue_depth))
        try:
            right(self, pair)
        finally:
            self.machine.size = size

    return require


def room_for_each_correlation(self: Endpoint, pair: Any) -> None:
    pending = self._pending
    self._pending = {key: held for key, held in pending.items() if key[0] == pair[0]}
    try:
        _require_room(self, pair)
    finally:
        self._pending = pending


_require_room = Endpoint._require_room
_submit = Endpoint.submit
_exchange = Endpoint.exchange
QUEUES = [
    changed("HIO-D3-12", "one_too_many", "keeps one request more than it tells",
        ("host_io.endpoint.Endpoint._require_room", room_for(lambda depth: depth + 1))),
    changed("HIO-D3-12", "one_too_few", "keeps one request less than it tells, beyond one",
        ("host_io.endpoint.Endpoint._require_room", room_for(lambda depth: max(1, depth - 1)))),
    changed("HIO-D4-06", "depth_of_a_correlation", "keeps as many requests as it tells of each correlation id",
        ("host_io.endpoint.Endpoint._require_room", room_for_each_correlation)),
]  # fmt: skip


# Checks of some arguments, and kernels that are remembered

REQUIRE, EXECUTABLE, DEPLOYED = Machine.require, launches._executable, launches.deployed_kernel
EXTENTS: dict[str, tuple[tuple[str, int], ...]] = {}
KERNELS: dict[tuple[Any, ...], Kernel] = {}


def third_unchecked(self: Machine, place: Place, pa: int, nbytes: int, kind: str = "AUTO", field: str = "") -> None:
    if not field.startswith("args[2]"):
        REQUIRE(self, place, pa, nbytes, kind, field)


def first_extents(fatbin: Any, name: str, extents: tuple[tuple[str, int], ...]) -> Any:
    return EXECUTABLE(fatbin, name, EXTENTS.setdefault(fatbin.ir_hash.hex(), extents))


def first_image(machine: Machine, reference: Any) -> Kernel:
    key = (reference.name, reference.deploy_pa, reference.nbytes_code)
    return KERNELS.setdefault(key, DEPLOYED(machine, reference))


def part_before_refused(machine: Machine, request: KernelLaunch) -> Any:
    try:
        return _launch(machine, request)
    except RequestFailed as failure:
        if failure.code == ErrorCode.ARGUMENT_MISMATCH:
            machine.space(Place(0, 0, 0)).write(machine.memories[0].base + 32, b"\1")
        raise


def kept_images(self: SparseMemory, pa: int, nbytes: int) -> None:
    self._written.add(pa, pa + nbytes)


def built_in_first(machine: Machine, reference: Any) -> Kernel:
    return launches.BUILTINS.get(reference.name) or DEPLOYED(machine, reference)


REMEMBERED = [
    changed("HIO-D7-13", "kept_images", "takes what overwrites an image for a part of it",
        ("host_io.machine.SparseMemory._mark", kept_images)),
    changed("HIO-D7-47", "part_before_refused", "writes before it refuses tensors that do not fit",
        ("host_io.endpoint.launch", part_before_refused)),
    changed("HIO-D7-36", "built_in_first", "runs a built-in kernel of the name of a deployed one",
        ("host_io.launches.deployed_kernel", built_in_first)),
    changed("HIO-D7-22", "third_unchecked", "checks shards of two tensors",
        ("host_io.machine.Machine.require", third_unchecked)),
    changed("HIO-D7-46", "first_extents", "runs a kernel with its first extents",
        ("host_io.launches._executable", first_extents)),
    changed("HIO-D7-36", "first_image", "keeps a kernel by its address",
        ("host_io.launches.deployed_kernel", first_image)),
]  # fmt: skip
