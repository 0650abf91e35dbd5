"""Launches: fan-out by the tags of the shards, and one completion made of what the PEs say (D7; AMB-HIO-44, -49).

All that can be refused is refused before anything runs: the kernel, then places and addresses of the shards in their
order, then what the kernel takes. Shards run in the order of SIP, cube, PE and offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .deployed import deployed_kernel
from .errors import ErrorCode, RequestFailed
from .kernels import BUILTINS, Buffer, Given, Kernel
from .latency import Branch, Journey
from .machine import Machine, Place
from .messages import KernelLaunch, KernelRef, ScalarArgument, TensorArgument, TensorShard

__all__ = ["launch"]


class Shard(NamedTuple):
    """A shard with the order in which it comes: by place and offset, then by argument and place in the list."""

    place: Place
    offset: int
    argument: int
    number: int
    shard: TensorShard

    @property
    def field(self) -> str:
        """Its path in the message."""
        return f"args[{self.argument}].tensor_pa_map.shards[{self.number}]"


class Task(NamedTuple):
    """What one PE is given at a time: a shard of each tensor, or one alone where nothing ties them together."""

    shards: tuple[Shard, ...]

    @property
    def place(self) -> Place:
        """The PE."""
        return self.shards[0].place


def launch(machine: Machine, request: KernelLaunch) -> tuple[Journey, RequestFailed | None]:
    """Run a launch; what it passed, and the failure of the lowest shard that failed.

    Raises `RequestFailed` for one that is refused: nothing ran (AMB-HIO-47).
    """
    kernel = _kernel_of(machine, request.kernel_ref)
    tensors = [_shards(place, each) for place, each in enumerate(request.args) if isinstance(each, TensorArgument)]
    for shard in sorted(each for tensor in tensors for each in tensor):
        machine.require(shard.place, shard.shard.pa, shard.shard.nbytes, field=shard.field)
    tasks = _tasks(kernel, request, tensors)
    branches: list[Branch] = []
    failure: RequestFailed | None = None
    for task in tasks:
        works = task.place not in machine.failing
        branches += (Branch(each.place, each.shard.nbytes if works else None) for each in task.shards)
        failed = _run(machine, kernel, request, task)
        failure = failure or failed
        if failed is not None and request.failure_policy == "fail_fast":
            break
    return Journey(branches=tuple(branches), code=_code(request.kernel_ref)), failure


def _kernel_of(machine: Machine, reference: KernelRef) -> Kernel:
    if reference.kind == "deployed":
        return deployed_kernel(machine, reference)
    if reference.name not in BUILTINS:
        reason = f"is {reference.name!r:.100}, built in are {', '.join(BUILTINS)}"
        raise RequestFailed(ErrorCode.UNKNOWN_KERNEL, reason, "kernel_ref.name")
    return BUILTINS[reference.name]


def _code(reference: KernelRef) -> Branch | None:
    """Where the binary is fetched, and its bytes; a kernel that is built in has none."""
    if reference.kind == "builtin":
        return None
    return Branch(Place(reference.deploy_sip, reference.deploy_cube, reference.deploy_pe), reference.nbytes_code)


def _shards(argument: int, tensor: TensorArgument) -> list[Shard]:
    """The shards of a tensor in their order."""
    found = [
        Shard(Place(each.sip, each.cube, each.pe), each.offset_bytes, argument, number, each)
        for number, each in enumerate(tensor.tensor_pa_map.shards)
    ]
    found.sort(key=lambda each: each[:4])
    return found


def _tasks(kernel: Kernel, request: KernelLaunch, tensors: Sequence[Sequence[Shard]]) -> list[Task]:
    """What each PE is given, in order. Raises `RequestFailed` with ARGUMENT_MISMATCH (AMB-HIO-57)."""
    if kernel.parameters is None:
        return [Task((each,)) for each in sorted(shard for tensor in tensors for shard in tensor)]
    _require_kinds(kernel.parameters, request)
    counts = [len(each) for each in tensors]
    if len(set(counts)) > 1:
        reason = f"tensors of {', '.join(map(str, counts))} shards, expected equal counts"
        raise RequestFailed(ErrorCode.ARGUMENT_MISMATCH, reason, "args")
    tasks = [Task(together) for together in zip(*tensors, strict=True)]
    for task in tasks:
        for shard in task.shards[1:]:
            if shard.place != task.place:
                reason = f"is on another PE than {task.shards[0].field}"
                raise RequestFailed(ErrorCode.ARGUMENT_MISMATCH, reason, shard.field)
        kernel.check([each.shard.nbytes for each in task.shards])
    return tasks


def _require_kinds(parameters: Sequence[str], request: KernelLaunch) -> None:
    """The arguments are as many as the parameters, and of their kinds. Raises `RequestFailed`."""
    given = [each.dtype if isinstance(each, ScalarArgument) else "tensor" for each in request.args]
    if given != list(parameters):
        reason = f"are ({', '.join(given)}), kernel {request.kernel_ref.name} takes ({', '.join(parameters)})"
        raise RequestFailed(ErrorCode.ARGUMENT_MISMATCH, reason, "args")


def _run(machine: Machine, kernel: Kernel, request: KernelLaunch, task: Task) -> RequestFailed | None:
    """Run a task on its PE; why it failed."""
    try:
        machine.require_working(task.place)
        kernel.run(list(_given(machine, request, task)))
    except RequestFailed as failure:
        return failure
    return None


def _given(machine: Machine, request: KernelLaunch, task: Task) -> Iterator[Given]:
    """The arguments of a task, in the order of the parameters."""
    space = machine.space(task.place)
    shards = {each.argument: each.shard for each in task.shards}
    for place, each in enumerate(request.args):
        if isinstance(each, ScalarArgument):
            yield each.value
        elif place in shards:
            yield Buffer(space, shards[place].pa, shards[place].nbytes)
