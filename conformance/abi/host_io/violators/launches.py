"""Launches that work on other PEs, with other arguments, or although they are refused (D4, D7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.host_io import endpoint, kernels, launches
from tessera_reference.host_io.endpoint import Endpoint
from tessera_reference.host_io.errors import ErrorCode, RequestFailed
from tessera_reference.host_io.kernels import ANY, BUILTINS, Buffer, Kernel
from tessera_reference.host_io.machine import Machine, Place
from tessera_reference.host_io.messages import KernelLaunch, KernelRef, ScalarArgument, TensorArgument

from .message_changes import Message, changed, read_as, refusing

_launch = launches.launch
_kernel_of = launches._kernel_of
_shards = launches._shards
_tasks = launches._tasks
_given = launches._given
_run = launches._run
_rounded = kernels.rounded
_deployed_kernel = launches.deployed_kernel

# Shards


def arranging(clause: str, name: str, description: str, change: Callable[[Any], Any]) -> Violation:
    """The shards of a tensor, in their order, become others."""
    return changed(
        clause, name, description, (launches, "_shards", lambda argument, tensor: change(_shards(argument, tensor)))
    )


def moved(member: str, to: int | None = None) -> Callable[[Any], Any]:
    """Every shard has the tag of the first one, or a certain one."""

    def change(found: Any) -> Any:
        tag = getattr(found[0].place, member) if to is None else to
        return [each._replace(place=each.place._replace(**{member: tag})) for each in found]

    return change


def with_shards(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The bytes of shards become others."""
    return lambda found: [each._replace(shard=change(each.shard)) for each in found]


def by_address(self: Machine, place: Place) -> Any:
    """The memory of the PE that comes first: addresses do not tell PEs apart."""
    return _space(self, next(self.places()))


_space = Machine.space
SHARDS = [
    arranging("HIO-D7-18", "first_shard", "a launch works on the first shard of each tensor", lambda found: found[:1]),
    arranging("HIO-D7-47", "last_shard_left_out", "a launch leaves out the last shard", lambda found: found[:-1]),
    arranging("HIO-D7-19", "shard_sip_ignored", "all shards are on SIP 0", moved("sip", 0)),
    arranging("HIO-D7-20", "shard_cube_ignored", "all shards are on the cube of the first", moved("cube")),
    arranging("HIO-D7-21", "shard_pe_ignored", "all shards are on the PE of the first", moved("pe")),
    arranging(
        "HIO-D7-22",
        "shards_aligned",
        "shards begin at multiples of 16",
        with_shards(lambda shard: replace(shard, pa=shard.pa - shard.pa % 16)),
    ),
    arranging(
        "HIO-D7-23",
        "shards_of_a_page",
        "of a shard, whole groups of 16 bytes are worked on",
        with_shards(lambda shard: replace(shard, nbytes=max(16, shard.nbytes - shard.nbytes % 16))),
    ),
    arranging(
        "HIO-D7-24",
        "offsets_ignored",
        "shards of one PE come in the order of the list",
        lambda found: sorted(found, key=lambda each: (each.place, each.number)),
    ),
    arranging(
        "HIO-D7-24",
        "order_of_the_list",
        "shards belong together in the order of the lists",
        lambda found: sorted(found, key=lambda each: each.number),
    ),
    arranging(
        "HIO-D7-35",
        "sorted_by_address",
        "shards belong together by their addresses",
        lambda found: sorted(found, key=lambda each: (each.shard.pa, each.number)),
    ),
    changed("HIO-Context-06", "shards_by_address", "the address tells the PE", (Machine, "space", by_address)),
]

# Kernels


def built_in(clause: str, name: str, description: str, **others: Kernel) -> Violation:
    """Kernels that are built in do something else."""
    return changed(clause, name, description, (launches, "BUILTINS", {**BUILTINS, **others}))


def partly(name: str) -> Kernel:
    """A kernel that works on the first word alone."""

    def run(given: Any) -> None:
        BUILTINS[name].run([replace(each, nbytes=4) if isinstance(each, Buffer) else each for each in given])

    return Kernel(BUILTINS[name].parameters, BUILTINS[name].check, run)


def through_double(given: Any) -> None:
    """Scale by the number rounded to double and then to fp32."""
    target, factor = given
    BUILTINS["scale_fp32"].run([target, Decimal(float(factor))])


def unknown_is_nop(machine: Machine, reference: KernelRef) -> Kernel:
    """A kernel that is not known computes nothing."""
    unknown = reference.kind == "builtin" and reference.name not in BUILTINS
    return ANY if unknown else _kernel_of(machine, reference)


def strict_place(machine: Machine, reference: KernelRef) -> Kernel:
    """The place of a built-in kernel has to exist."""
    machine.require(Place(reference.deploy_sip, reference.deploy_cube, reference.deploy_pe), 0, 1)
    return _kernel_of(machine, reference)


def strict_tag(clause: str, member: str) -> Violation:
    """A tag of a built-in kernel has to exist."""

    def kernel_of(machine: Machine, reference: KernelRef) -> Kernel:
        if reference.kind == "builtin":
            machine.require(Place(0, 0, 0)._replace(**{member: getattr(reference, f"deploy_{member}")}), 0, 1)
        return _kernel_of(machine, reference)

    return changed(
        clause,
        f"builtin_{member}_looked_at",
        f"the {member} of a built-in kernel has to exist",
        (launches, "_kernel_of", kernel_of),
    )


def kernel_of_size(machine: Machine, reference: KernelRef) -> Kernel:
    """A built-in kernel has a bearable size."""
    if reference.kind == "builtin" and reference.nbytes_code > 2**32:
        raise RequestFailed(ErrorCode.UNSUPPORTED, "too large")
    return _kernel_of(machine, reference)


KERNELS = [
    built_in(
        "HIO-D7-01",
        "nothing_runs",
        "built-in kernels compute nothing",
        **{name: replace(each, run=lambda given: None) for name, each in BUILTINS.items()},
    ),
    built_in(
        "HIO-D7-17",
        "first_words",
        "copies the first word of each shard",
        copy=partly("copy"),
        fill=partly("fill"),
        add_fp32=partly("add_fp32"),
        scale_fp32=partly("scale_fp32"),
    ),
    built_in(
        "HIO-D7-41",
        "scalar_through_double",
        "a scalar of fp32 passes through double",
        scale_fp32=replace(BUILTINS["scale_fp32"], run=through_double),
    ),
    changed(
        "HIO-D7-37",
        "unknown_is_nop",
        "a built-in kernel that does not exist computes nothing",
        (launches, "_kernel_of", unknown_is_nop),
    ),
    changed(
        "HIO-D7-37",
        "place_looked_at",
        "the place of a built-in kernel has to exist",
        (launches, "_kernel_of", strict_place),
    ),
    strict_tag("HIO-D7-09", "sip"),
    strict_tag("HIO-D7-10", "cube"),
    strict_tag("HIO-D7-11", "pe"),
    changed(
        "HIO-D7-12",
        "size_of_builtin_judged",
        "a built-in kernel has to be smaller than 4 GiB",
        (launches, "_kernel_of", kernel_of_size),
    ),
]

# Scalars and members without influence


def with_scalars(clause: str, name: str, description: str, dtype: str, change: Callable[[Any], Any]) -> Violation:
    """Scalars of a dtype become others."""

    def launch(machine: Machine, request: KernelLaunch) -> Any:
        args = [
            replace(each, value=change(each.value))
            if isinstance(each, ScalarArgument) and each.dtype == dtype
            else each
            for each in request.args
        ]
        return _launch(machine, replace(request, args=args))

    return changed(clause, name, description, (endpoint, "launch", launch))


def signed(value: int, bits: int) -> int:
    """The lowest bits of a number, of which the highest is a sign."""
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def obeying(clause: str, member: str, obeyed: Callable[[Any], bool]) -> Violation:
    """A member that says nothing makes a launch do nothing."""

    def launch(machine: Machine, request: KernelLaunch) -> Any:
        return _launch(machine, replace(request, args=[]) if obeyed(getattr(request, member)) else request)

    def tasks(kernel: Kernel, request: KernelLaunch, tensors: Any) -> Any:
        return [] if obeyed(getattr(request, member)) else _tasks(kernel, request, tensors)

    return changed(clause, f"{member}_obeyed", f"{member} keeps a launch from running", (launches, "_tasks", tasks))


def scalars_of(message: Message, dtype: str) -> list[Any]:
    """The values of the scalars of a dtype."""
    return [each["value"] for each in message.get("args", ()) if each.get("dtype") == dtype]


SCALARS = [
    with_scalars("HIO-D7-38", "i32_of_16_bits", "an i32 is cut to 16 bits", "i32", lambda value: signed(value, 16)),
    with_scalars("HIO-D7-38", "i32_without_sign", "an i32 loses its sign", "i32", lambda value: abs(value) % 2**31),
    with_scalars(
        "HIO-D7-46",
        "i32_through_fp32",
        "an i32 passes through fp32",
        "i32",
        lambda value: max(-(2**31), min(2**31 - 1, int(_rounded(value, "fp32")))),
    ),
    with_scalars("HIO-D7-48", "scalar_zero", "scalars are zero", "i32", lambda value: 0),
    with_scalars(
        "HIO-D7-41",
        "fp32_through_fp16",
        "a scalar of fp32 passes through fp16",
        "fp32",
        lambda value: Decimal(min(65504.0, _rounded(value, "fp16"))),
    ),
    refusing(
        "HIO-D7-39",
        "i64_of_53_bits",
        "refuses i64 that a double does not hold",
        lambda message: any(int(float(each)) != each for each in scalars_of(message, "i64")),
    ),
    refusing("HIO-D7-39", "least_i64", "refuses the least i64", lambda message: -(2**63) in scalars_of(message, "i64")),
    refusing("HIO-D7-38", "least_i32", "refuses the least i32", lambda message: -(2**31) in scalars_of(message, "i32")),
    refusing(
        "HIO-D7-40",
        "fp16_below_65504",
        "refuses the largest fp16",
        lambda message: 65504 in scalars_of(message, "fp16"),
    ),
    refusing("HIO-D7-42", "false_refused", "refuses false", lambda message: False in scalars_of(message, "bool")),
    refusing(
        "HIO-D7-04",
        "no_arguments_refused",
        "refuses a launch without arguments",
        lambda message: message.get("args") == [],
    ),
    refusing(
        "HIO-D7-48",
        "scalars_alone_refused",
        "refuses scalars without tensors",
        lambda message: bool(message.get("args")) and all(each["arg_kind"] == "scalar" for each in message["args"]),
    ),
    obeying("HIO-D7-28", "grid", lambda grid: bool(grid)),
    obeying("HIO-D7-29", "meta", lambda meta: bool(meta)),
    obeying("HIO-D7-32", "debug_label", lambda label: label == "skip"),
    obeying("HIO-D3-09", "timestamp_tag", lambda tag: tag == "skip"),
]

# Binaries


def elsewhere(clause: str, member: str) -> Violation:
    """The binary is looked for at another PE."""

    def deployed_kernel(machine: Machine, reference: KernelRef) -> Kernel:
        return _deployed_kernel(machine, replace(reference, **{f"deploy_{member}": 0}))

    description = f"binaries are looked for at {member} 0"
    return changed(clause, f"binary_{member}_ignored", description, (launches, "deployed_kernel", deployed_kernel))


def writing_kernel(machine: Machine, reference: KernelRef) -> Kernel:
    """A kernel that clears what it is given."""
    _deployed_kernel(machine, reference)
    return Kernel(
        None,
        lambda counts: None,
        lambda given: [each.write(bytes(each.nbytes)) for each in given if isinstance(each, Buffer)] and None,
    )


def overwritten(machine: Machine, reference: KernelRef) -> Kernel:
    """The binary is gone once it was launched."""
    found = _deployed_kernel(machine, reference)
    place = Place(reference.deploy_sip, reference.deploy_cube, reference.deploy_pe)
    machine.space(place).write(reference.deploy_pa or 0, bytes(reference.nbytes_code))
    return found


def in_one_piece(machine: Machine, reference: KernelRef) -> Kernel:
    """A binary has to begin where memory was written first."""
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
    changed(
        "HIO-D7-13",
        "kernel_that_clears",
        "a kernel that is no image clears its tensors",
        (launches, "deployed_kernel", writing_kernel),
    ),
    changed("HIO-D7-36", "binary_once", "a launch destroys the binary", (launches, "deployed_kernel", overwritten)),
    changed(
        "HIO-D7-13",
        "binary_in_one_piece",
        "a binary has to be written at once",
        (launches, "deployed_kernel", in_one_piece),
    ),
    refusing(
        "HIO-D7-12",
        "large_binaries_refused",
        "refuses binaries of more than 64 KiB",
        lambda message: (
            message.get("kernel_ref", {}).get("kind") == "deployed" and message["kernel_ref"]["nbytes_code"] > 65536
        ),
    ),
    refusing(
        "HIO-D7-08",
        "binary_at_odd_address",
        "refuses binaries at odd addresses",
        lambda message: (message.get("kernel_ref", {}).get("deploy_pa") or 0) % 2,
    ),
    refusing(
        "HIO-D7-36",
        "no_deployed_kernels",
        "refuses kernels that were deployed",
        lambda message: message.get("kernel_ref", {}).get("kind") == "deployed",
    ),
]

# Refusals and failures


def begun_before_checked(machine: Machine, request: KernelLaunch) -> Any:
    """Shards run one after the other, each as it is checked."""
    kernel = _kernel_of(machine, request.kernel_ref)
    if kernel.parameters != ("tensor", "i32"):
        return _launch(machine, request)
    tensor = next(each for each in request.args if isinstance(each, TensorArgument))
    for each in tensor.tensor_pa_map.shards:
        one = replace(tensor, tensor_pa_map=replace(tensor.tensor_pa_map, shards=[each]))
        _launch(machine, replace(request, args=[one, *request.args[1:]]))
    return _launch(machine, request)


def run_before_refused(value: Message, **options: Any) -> Any:
    """A launch with a member that is not known runs without it, and is refused."""
    try:
        return _request_of(value, **options)
    except RequestFailed as refused:
        if value.get("msg_type") != "KernelLaunch":
            raise
        return Refused(refused, value)


class Refused(Exception):
    """A launch that is refused, though what it says is done."""

    target_device = "sip:0"

    def __init__(self, failure: RequestFailed, value: Message) -> None:
        self.failure, self.value = failure, value


_request_of = endpoint.request_of
_endpoint_run = Endpoint._run


def known_members(value: Any) -> Any:
    """A message without the planted members."""
    if isinstance(value, list):
        return [known_members(each) for each in value]
    if not isinstance(value, dict):
        return value
    planted = {"source", "source_code", "code", "ir", "mlir", "binary", "data", "tensor_data", "payload"}
    return {name: known_members(each) for name, each in value.items() if name not in planted}


def runs_refused(self: Endpoint, request: Any, pair: Any, characters: int) -> Any:
    """Do what a launch says that is refused."""
    if not isinstance(request, Refused):
        return _endpoint_run(self, request, pair, characters)
    launched = _endpoint_run(self, _request_of(known_members(request.value)), pair, characters)
    return replace(launched, failure=request.failure)


def planted(clause: str) -> Violation:
    """A planted member is refused too late."""
    return changed(
        clause,
        f"planted_after_running_{clause[-2:]}",
        "a launch with a planted member runs, and is refused",
        (endpoint, "request_of", run_before_refused),
        (Endpoint, "_run", runs_refused),
    )


def policy(clause: str, name: str, description: str, change: Callable[[KernelLaunch], KernelLaunch]) -> Violation:
    """The failure policy is another one."""
    return changed(
        clause, name, description, (endpoint, "launch", lambda machine, request: _launch(machine, change(request)))
    )


def other_policy(given: str, becomes: str) -> Callable[[KernelLaunch], KernelLaunch]:
    """A policy is taken for another."""
    return lambda request: replace(request, failure_policy=becomes) if request.failure_policy == given else request  # type: ignore[arg-type]


def none_below(machine: Machine, request: KernelLaunch) -> Any:
    """With a PE that fails, nothing runs."""
    places = [
        Place(each.sip, each.cube, each.pe)
        for one in request.args
        if isinstance(one, TensorArgument)
        for each in one.tensor_pa_map.shards
    ]
    if request.failure_policy == "fail_fast" and machine.failing & set(places):
        return _launch(machine, replace(request, args=[]))[0], RequestFailed(ErrorCode.PE_FAULT, "failed")
    return _launch(machine, request)


def in_order_of_the_list(kernel: Kernel, request: KernelLaunch, tensors: Any) -> Any:
    """Shards run in the order in which they are listed."""
    return sorted(_tasks(kernel, request, tensors), key=lambda task: task.shards[0].number)


def fails_after_work(machine: Machine, kernel: Kernel, request: KernelLaunch, task: Any) -> Any:
    """A PE fails after its work."""
    failing, machine.failing = machine.failing, frozenset()
    failure = _run(machine, kernel, request, task)
    machine.failing = failing
    return RequestFailed(ErrorCode.PE_FAULT, "failed") if task.place in failing else failure


def highest_first(found: Any, *others: Any, **options: Any) -> list[Any]:
    """The highest first."""
    return sorted(found, *others, **options)[::-1]


def numbered_code(machine: Machine, kernel: Kernel, request: KernelLaunch, task: Any) -> Any:
    """The code tells whether the PE is odd."""
    failure = _run(machine, kernel, request, task)
    odd = failure is not None and task.place.pe % 2
    return RequestFailed(ErrorCode.UNSUPPORTED, "an odd PE failed") if odd else failure


def fault_before_refusal(machine: Machine, request: KernelLaunch) -> Any:
    """A PE that fails is told although the launch is refused."""
    for argument in request.args:
        if isinstance(argument, TensorArgument):
            for each in argument.tensor_pa_map.shards:
                machine.require_working(Place(each.sip, each.cube, each.pe))
    return _launch(machine, request)


def sticky(self: Machine, place: Place) -> None:
    """Once a PE failed, it fails for ever."""
    broken = self.__dict__.setdefault("broken", set())
    broken |= self.failing
    if place in broken:
        raise RequestFailed(ErrorCode.PE_FAULT, "failed once")


FAILURES = [
    *(
        changed(
            clause,
            f"begun_before_checked_{clause[-2:]}",
            "shards run before all are checked",
            (endpoint, "launch", begun_before_checked),
        )
        for clause in ("HIO-D7-19", "HIO-D7-22", "HIO-D7-23")
    ),
    *(planted(clause) for clause in ("HIO-D7-14", "HIO-D7-15", "HIO-D7-33")),
    policy(
        "HIO-D7-43", "fail_fast_runs_all", "fail_fast begins the shards above", other_policy("fail_fast", "collect_all")
    ),
    policy(
        "HIO-D7-44", "collect_all_stops", "collect_all stops at a failure", other_policy("collect_all", "fail_fast")
    ),
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
    changed("HIO-D7-43", "nothing_below", "fail_fast runs nothing where a PE fails", (endpoint, "launch", none_below)),
    changed(
        "HIO-D7-43",
        "run_in_order_of_the_list",
        "shards run in the order of the list",
        (launches, "_tasks", in_order_of_the_list),
    ),
    changed("HIO-D7-44", "fails_after_work", "a PE that fails has worked before", (launches, "_run", fails_after_work)),
    changed("HIO-D4-07", "last_faulty_shard", "the highest faulty shard is told", (launches, "sorted", highest_first)),
    changed(
        "HIO-Context-04",
        "highest_fault_told",
        "the highest faulty shard is told of a launch",
        (launches, "sorted", highest_first),
    ),
    changed("HIO-D4-07", "code_of_the_pe", "the code hangs on the PE", (launches, "_run", numbered_code)),
    changed(
        "HIO-D4-07",
        "fault_before_refusal",
        "a fault is told before a refusal",
        (endpoint, "launch", fault_before_refusal),
    ),
    changed("HIO-D7-44", "sticky_fault", "a PE that failed once fails for ever", (Machine, "require_working", sticky)),
]

# The queue


def room_for(change: Callable[[int], int]) -> Callable[..., None]:
    """A queue of another depth than is told."""
    right = Endpoint._require_room

    def require(self: Endpoint, pair: Any) -> None:
        size = self.machine.size
        self.machine.size = replace(size, queue_depth=change(size.queue_depth))
        try:
            right(self, pair)
        finally:
            self.machine.size = size

    return require


def full_but_done(self: Endpoint, frame: Any) -> str | None:
    """A request that is refused since the queue is full acts all the same."""
    answer = _submit(self, frame)
    if answer is not None and "QUEUE_FULL" in answer:
        value = endpoint.read_frame(frame)
        _endpoint_run(self, _request_of(value), endpoint.ids_of(value), len(frame))
    return answer


def refusals_wait(self: Endpoint, frames: Any, choices: Any = None) -> list[str]:
    """What is refused at once is answered last."""
    found = _exchange(self, frames, choices)
    return [each for each in found if "QUEUE_FULL" not in each] + [each for each in found if "QUEUE_FULL" in each]


_submit = Endpoint.submit
_exchange = Endpoint.exchange
QUEUES = [
    changed(
        "HIO-D4-06",
        "no_bound",
        "keeps any number of requests",
        (Endpoint, "_require_room", room_for(lambda depth: 2**30)),
    ),
    changed(
        "HIO-D3-12",
        "one_too_many",
        "keeps one request more than it tells",
        (Endpoint, "_require_room", room_for(lambda depth: depth + 1)),
    ),
    changed(
        "HIO-D3-12",
        "one_too_few",
        "keeps one request less than it tells, beyond one",
        (Endpoint, "_require_room", room_for(lambda depth: max(1, depth - 1))),
    ),
    changed(
        "HIO-D4-06",
        "full_but_done",
        "does what it refuses since the queue is full",
        (Endpoint, "submit", full_but_done),
    ),
    changed(
        "HIO-D3-12",
        "refusals_wait",
        "answers refusals after the requests that wait",
        (Endpoint, "exchange", refusals_wait),
    ),
]
