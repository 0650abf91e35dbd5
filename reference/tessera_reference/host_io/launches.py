"""Launches: kernels in memory, fan-out by tags, one completion (D7; AMB-HIO-44, -49, -56)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from math import prod
from typing import NamedTuple, TypeAlias

from ..abi.fatbin import Fatbin, KernelEntry, read
from ..abi.status import Failure
from ..compilation.executables import Executable, executables_of
from ..compilation.extents import named_dimensions, shapes_of
from ..ir.diagnostics import Rejection, UnsupportedConstruct
from ..numerics.array import Array
from ..numerics.formats import NumericsFailure, dtype
from .frames import ErrorCode, RequestFailed, argument_mismatch, bytes_of
from .machine import ANY, BUILTINS, MAGIC, Branch, Buffer, Given, Journey, Kernel, Machine, Place, require_bearable
from .messages import KernelLaunch, KernelRef, ScalarArgument, TensorArgument, TensorShard

# Kernels whose binary was written to memory: images of modules, or other bytes (D7; AMB-HIO-56).


NAMES = {"ptr": "tensor", "int32": "i32", "int64": "i64", "fp16": "fp16", "fp32": "fp32", "bool": "bool"}
"""The names of a message's arguments, by the parameter's type."""
PROBLEMS = (Failure, Rejection, UnsupportedConstruct, NumericsFailure)


def deployed_kernel(machine: Machine, reference: KernelRef) -> Kernel:
    """Return the kernel whose binary is at the address of a launch.

    Raises `RequestFailed`: UNKNOWN_PLACE, ADDRESS_OUT_OF_RANGE, KERNEL_NOT_DEPLOYED where not all of it was written, or
    it is a broken image, UNKNOWN_KERNEL for a name that the image lacks.
    """
    place = Place(reference.deploy_sip, reference.deploy_cube, reference.deploy_pe)
    pa, nbytes = reference.deploy_pa or 0, reference.nbytes_code
    machine.require(place, pa, nbytes, field="kernel_ref")
    space = machine.space(place)
    if not space.was_written(pa, nbytes):
        raise _absent(f"not all of its {nbytes} bytes from {pa:#x} were written", "HIO-D7-13")
    if nbytes < len(MAGIC) or space.read(pa, len(MAGIC)) != MAGIC:
        if space.holds_image(pa):
            raise _absent("an image of which a part was overwritten", "HIO-D7-13")
        return ANY
    require_bearable(nbytes)
    return _kernel(space.read(pa, nbytes), reference.name)


@lru_cache(maxsize=64)
def _kernel(image: bytes, name: str) -> Kernel:
    try:
        fatbin = read(image)
    except Failure as failure:
        raise _absent(f"a broken image: {failure}") from None
    entry = fatbin.metadata.kernel(name)
    if entry is None:
        names = ", ".join(kernel.name for kernel in fatbin.metadata.kernels)
        raise RequestFailed(ErrorCode.UNKNOWN_KERNEL, f"{name!r} is not in the image: {names}", "kernel_ref.name")
    parameters = tuple(NAMES.get(parameter.type, parameter.type) for parameter in entry.parameters)
    return Kernel(parameters, partial(_check_sizes, entry), partial(_run_image, fatbin, entry))


def _check_sizes(entry: KernelEntry, counts: Sequence[int]) -> None:
    """Require a shard that is the whole tensor of the kernel, where its size is known before the launch."""
    require_bearable(sum(counts))
    if named_dimensions(entry):
        return
    shapes = shapes_of(entry, {})
    pointers = [parameter for parameter in entry.parameters if parameter.type == "ptr"]
    for parameter, count in zip(pointers, counts, strict=True):
        if parameter.dtype is None:  # an opaque pointer, whose memory has no known size
            continue
        expected = prod(shapes[parameter.name]) * dtype(parameter.dtype).storage_bytes
        if count != expected:
            raise argument_mismatch(f"a shard of {count} bytes for {parameter.name}, expected {expected}")


def _run_image(fatbin: Fatbin, entry: KernelEntry, arguments: Sequence[Given]) -> None:
    """Read the shards, run, and write the kernel's results. Raises `RequestFailed` with PE_FAULT."""
    by_name = {parameter.name: value for parameter, value in zip(entry.parameters, arguments, strict=True)}
    try:
        left = _executed(fatbin, entry, by_name)
    except PROBLEMS as problem:
        raise RequestFailed(ErrorCode.PE_FAULT, f"kernel {entry.name}: {problem}") from None
    for name, array in left.items():
        target = by_name[name]
        assert isinstance(target, Buffer)
        target.write(array.to_bits())


def _executed(fatbin: Fatbin, entry: KernelEntry, given: Mapping[str, Given]) -> Mapping[str, Array]:
    """Return the tensors that a kernel of an image writes, run for the first target of it."""
    extents = {name: int(value) for name, value in given.items() if isinstance(value, int)}
    extents = {name: extents[name] for name in named_dimensions(entry) if name in extents}
    executable = _executable(fatbin, entry.name, tuple(extents.items()))
    shapes = shapes_of(entry, extents)
    arguments = {}
    for parameter in entry.parameters:
        value = given[parameter.name]
        if isinstance(value, Buffer):
            shape = (value.nbytes,) if parameter.dtype is None else shapes[parameter.name]
            arguments[parameter.name] = Array.from_bits(dtype(parameter.dtype or "int8"), shape, value.read())
        else:
            bits = bytes_of(value, NAMES[parameter.type])
            arguments[parameter.name] = Array.from_bits(dtype(parameter.type), (), bits)
    return executable.run(arguments)


@lru_cache(maxsize=64)
def _executable(fatbin: Fatbin, name: str, extents: tuple[tuple[str, int], ...]) -> Executable:
    """Return a kernel for the first target of its image. Raises `RequestFailed` for collectives, and `PROBLEMS`."""
    executable = executables_of(fatbin, name, fatbin.targets[0], dict(extents))
    if executable.needs_mesh:
        raise RequestFailed(ErrorCode.UNSUPPORTED, f"kernel {name} has collectives", "kernel_ref.name")
    return executable


def _absent(reason: str, clause: str = "") -> RequestFailed:
    return RequestFailed(ErrorCode.KERNEL_NOT_DEPLOYED, reason, "kernel_ref.deploy_pa", clause)


# Launches: fan-out by the tags of the shards, and one completion from the results of the PEs (D7; AMB-HIO-44, -49).
#
# All refusals precede the run: of the kernel, then of places and addresses of the shards in order, then of the kernel's
# arguments. Shards run in the order of SIP, cube, PE and offset.


class Shard(NamedTuple):
    """A shard with its sort key: by place and offset, then by argument and place in the list."""

    place: Place
    offset: int
    argument: int
    number: int
    shard: TensorShard

    @property
    def field(self) -> str:
        """The shard's path in the message."""
        return f"args[{self.argument}].tensor_pa_map.shards[{self.number}]"


Task: TypeAlias = tuple[Shard, ...]
"""The work of one PE at a time: a shard of each tensor, or a single one where nothing ties them together."""


def launch(machine: Machine, request: KernelLaunch) -> tuple[Journey, RequestFailed | None]:
    """Run a launch; return its journey, and the failure of the lowest shard that failed.

    Raises `RequestFailed` for a refused launch, of which nothing ran (AMB-HIO-47).
    """
    kernel = _kernel_of(machine, request.kernel_ref)
    tensors = [_shards(place, x) for place, x in enumerate(request.args) if isinstance(x, TensorArgument)]
    for shard in sorted(chain(*tensors)):
        machine.require(shard.place, shard.shard.pa, shard.shard.nbytes, field=shard.field)
    tasks = _tasks(kernel, request, tensors)
    branches: list[Branch] = []
    failure: RequestFailed | None = None
    for task in tasks:
        works = task[0].place not in machine.failing
        branches += (Branch(part.place, part.shard.nbytes if works else None) for part in task)
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
    """Return the place of the binary and its bytes; None for a built-in kernel."""
    if reference.kind == "builtin":
        return None
    return Branch(Place(reference.deploy_sip, reference.deploy_cube, reference.deploy_pe), reference.nbytes_code)


def _shards(argument: int, tensor: TensorArgument) -> list[Shard]:
    """Return the shards of a tensor in order."""
    return sorted(
        Shard(Place(shard.sip, shard.cube, shard.pe), shard.offset_bytes, argument, number, shard)
        for number, shard in enumerate(tensor.tensor_pa_map.shards)
    )


def _tasks(kernel: Kernel, request: KernelLaunch, tensors: Sequence[Sequence[Shard]]) -> list[Task]:
    """Return the tasks of each PE, in order. Raises `RequestFailed` with ARGUMENT_MISMATCH (AMB-HIO-57)."""
    if kernel.parameters is None:
        return [(piece,) for piece in sorted(chain(*tensors))]
    _require_kinds(kernel.parameters, request)
    counts = [len(shards) for shards in tensors]
    if len(set(counts)) > 1:
        raise argument_mismatch(f"tensors of {', '.join(map(str, counts))} shards, expected equal counts", "args")
    tasks = list(zip(*tensors, strict=True))
    for task in tasks:
        for shard in task[1:]:
            if shard.place != task[0].place:
                raise argument_mismatch(f"is on another PE than {task[0].field}", shard.field)
        kernel.check([part.shard.nbytes for part in task])
    return tasks


def _require_kinds(parameters: Sequence[str], request: KernelLaunch) -> None:
    """Require as many arguments as parameters, of their kinds. Raises `RequestFailed`."""
    kinds = [argument.dtype if isinstance(argument, ScalarArgument) else "tensor" for argument in request.args]
    if kinds != list(parameters):
        reason = f"are ({', '.join(kinds)}), kernel {request.kernel_ref.name} takes ({', '.join(parameters)})"
        raise argument_mismatch(reason, "args")


def _run(machine: Machine, kernel: Kernel, request: KernelLaunch, task: Task) -> RequestFailed | None:
    """Run a task on its PE; return its failure, or None."""
    if failed := machine.failure_of(task[0].place):
        return failed
    try:
        kernel.run(list(_given(machine, request, task)))
    except RequestFailed as failure:
        return failure
    return None


def _given(machine: Machine, request: KernelLaunch, task: Task) -> Iterator[Given]:
    """Yield the arguments of a task, in the order of the parameters."""
    space = machine.space(task[0].place)
    shards = {shard.argument: shard.shard for shard in task}
    for place, argument in enumerate(request.args):
        if isinstance(argument, ScalarArgument):
            yield argument.value
        elif place in shards:
            yield Buffer(space, shards[place].pa, shards[place].nbytes)
