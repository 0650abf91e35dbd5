"""Refused launches that run, failures reported or handled wrongly, and queues (D3, D4, D7)."""

from dataclasses import replace
from unittest import mock

from tessera_reference.host_io import endpoint, launches
from tessera_reference.host_io.frames import ErrorCode, RequestFailed
from tessera_reference.host_io.machine import Place
from tessera_reference.host_io.messages import TensorArgument

from ....ir.violators.changes import around, breaks, changed, wrapped
from .message_changes import LAUNCH, REQUIRE, RUN, read_as


def run_before_refused(usual, value, **options):
    try:
        return usual(value, **options)
    except RequestFailed as refused:
        if value.get("msg_type") != "KernelLaunch":
            raise
        return Refused(refused, value)


class Refused(Exception):
    """A refused launch that runs nevertheless."""

    target_device = "sip:0"

    def __init__(self, failure, value):
        self.failure, self.value = failure, value


REQUEST_OF = endpoint.request_of


def known_members(value):
    """Return a message without the planted members."""
    if isinstance(value, list):
        return [known_members(element) for element in value]
    if not isinstance(value, dict):
        return value
    planted = {"source", "source_code", "code", "ir", "mlir", "binary", "data", "tensor_data", "payload"}
    return {name: known_members(member) for name, member in value.items() if name not in planted}


def runs_refused(usual, self, request, pair, characters):
    if not isinstance(request, Refused):
        return usual(self, request, pair, characters)
    launched = usual(self, REQUEST_OF(known_members(request.value)), pair, characters)
    return replace(launched, failure=request.failure)


def planted(clause):
    name, description = f"planted_after_running_{clause[-2:]}", "a launch with a planted member runs, and is refused"
    changes = ("host_io.endpoint.request_of", around(run_before_refused)), (RUN, around(runs_refused))
    return changed(clause, name, description, *changes)


def failing_shard(machine, request):
    """Return the first failure of a PE with a shard of a launch, if there is one."""
    tensors = [argument for argument in request.args if isinstance(argument, TensorArgument)]
    shards = [shard for tensor in tensors for shard in tensor.tensor_pa_map.shards]
    failures = [machine.failure_of(Place(shard.sip, shard.cube, shard.pe)) for shard in shards]
    return next(filter(None, failures), None)


@breaks("HIO-D7-43", "fail_fast runs nothing in each second launch with a PE that fails", LAUNCH)
def nothing_below_at_times(usual, machine, request):
    failed = request.failure_policy == "fail_fast" and failing_shard(machine, request) is not None
    machine.__dict__["failed"] = machine.__dict__.get("failed", 0) + failed
    if failed and machine.__dict__["failed"] % 2:
        return usual(machine, replace(request, args=[]))[0], RequestFailed(ErrorCode.PE_FAULT, "failed")
    return usual(machine, request)


@breaks("HIO-D7-44", "a PE that fails has worked before", "host_io.launches._run")
def fails_after_work(usual, machine, kernel, request, task):
    failing, machine.failing = machine.failing, frozenset()
    failure = usual(machine, kernel, request, task)
    machine.failing = failing
    return RequestFailed(ErrorCode.PE_FAULT, "failed") if task[0].place in failing else failure


def highest_first(found, *others, **options):
    return sorted(found, *others, **options)[::-1]


@breaks("HIO-D4-07", "the code hangs on the PE", "host_io.launches._run")
def code_of_the_pe(usual, machine, kernel, request, task):
    failure = usual(machine, kernel, request, task)
    odd = failure is not None and task[0].place.pe % 2
    return RequestFailed(ErrorCode.UNSUPPORTED, "an odd PE failed") if odd else failure


@breaks("HIO-D4-07", "runs nothing, and reports a PE that fails instead of a refused address", LAUNCH)
def fault_before_refusal(usual, machine, request):
    if (failure := failing_shard(machine, request)) is not None:
        raise failure
    return usual(machine, request)


@breaks("HIO-D7-44", "a PE that failed once fails for ever", "host_io.machine.Machine.failure_of")
def sticky_fault(usual, self, place):
    broken = self.__dict__.setdefault("broken", set())
    broken |= self.failing
    return RequestFailed(ErrorCode.PE_FAULT, "failed once") if place in broken else None


ROOM = "host_io.endpoint.Endpoint._require_room"


def room_for(clause, name, description, change):
    def require(usual, self, pair):
        size = self.machine.size
        with mock.patch.object(self.machine, "size", replace(size, queue_depth=change(size.queue_depth))):
            usual(self, pair)

    return wrapped(clause, name, description, ROOM, require)


@breaks("HIO-D4-06", "keeps as many requests as it tells of each correlation id", ROOM)
def depth_of_a_correlation(usual, self, pair):
    with mock.patch.object(self, "_pending", {key: held for key, held in self._pending.items() if key[0] == pair[0]}):
        usual(self, pair)


EXTENTS = {}
KERNELS = {}


@breaks("HIO-D7-22", "checks shards of two tensors", REQUIRE)
def third_unchecked(usual, self, place, pa, nbytes, kind="AUTO", field=""):
    if not field.startswith("args[2]"):
        usual(self, place, pa, nbytes, kind, field)


@breaks("HIO-D7-36", "keeps a kernel by its address", "host_io.launches.deployed_kernel")
def first_image(usual, machine, reference):
    key = (reference.name, reference.deploy_pa, reference.nbytes_code)
    return KERNELS.setdefault(key, usual(machine, reference))


@breaks("HIO-D7-47", "writes before it refuses tensors that do not fit", LAUNCH)
def part_before_refused(usual, machine, request):
    try:
        return usual(machine, request)
    except RequestFailed as failure:
        if failure.code == ErrorCode.ARGUMENT_MISMATCH:
            machine.space(Place(0, 0, 0)).write(machine.memories[0].base + 32, b"\1")
        raise


VIOLATORS = [
    *(planted(clause) for clause in ("HIO-D7-14", "HIO-D7-15", "HIO-D7-33")),
    wrapped("HIO-D7-44", "collect_all_stops", "collect_all stops at a failure", LAUNCH,
        lambda usual, machine, request: usual(machine, replace(request, failure_policy="fail_fast"))),
    read_as("HIO-D7-31", "collect_all_by_default", "the default is collect_all",
        lambda value: value.get("msg_type") == "KernelLaunch" and value.get("failure_policy") is None
        and {**value, "failure_policy": "collect_all"}),
    changed("HIO-D4-07", "last_faulty_shard", "the highest faulty shard is told",
        ("host_io.launches.sorted", highest_first)),
    changed("HIO-Context-04", "highest_fault_told", "the highest faulty shard is told of a launch",
        ("host_io.launches.sorted", highest_first)),
    room_for("HIO-D3-12", "one_too_many", "keeps one request more than it tells", lambda depth: depth + 1),
    room_for("HIO-D3-12", "one_too_few", "keeps one request less than it tells, beyond one",
        lambda depth: max(1, depth - 1)),
    wrapped("HIO-D7-36", "built_in_first", "runs a built-in kernel of the name of a deployed one",
        "host_io.launches.deployed_kernel",
        lambda usual, machine, reference: launches.BUILTINS.get(reference.name) or usual(machine, reference)),
    wrapped("HIO-D4-06", "nothing_fails_nowhere", "computes nothing with success on a PE that fails",
        "host_io.launches._run", lambda usual, machine, kernel, *of: kernel.parameters and usual(machine, kernel, *of)),
    wrapped("HIO-D7-05", "first_name", "runs the kernel that an image was launched with first",
        "host_io.launches._kernel", lambda usual, image, name: usual(image, KERNELS.setdefault(image, name))),
    wrapped("HIO-D7-46", "first_extents", "runs a kernel with its first extents", "host_io.launches._executable",
        lambda usual, fatbin, name, extents: usual(fatbin, name, EXTENTS.setdefault(fatbin.ir_hash.hex(), extents))),
    wrapped("HIO-D7-13", "kept_images", "takes what overwrites an image for a part of it",
        "host_io.machine.SparseMemory._mark", lambda usual, self, pa, nbytes: self._written.add(pa, pa + nbytes)),
]  # fmt: skip
