"""Runtimes and host programs whose calls also reach an endpoint as messages (Host - IO_CPU document, D2)."""

# ruff: noqa: N802, N803, the names are those of the C API
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from ..abi.fatbin import KernelParameter, read, write
from ..abi.parameters import ParameterValue, pack
from ..abi.status import CopyKind, Failure, MemKind, Status, invalid
from ..compilation.extents import as_kernel, shapes_of
from ..compilation.images import BINARIES, Extras, image_of_graph, targets_named
from ..host_io.bridge import Bridge, Code, Exchange, LaunchArguments
from ..host_io.endpoint import Endpoint
from ..host_io.frames import ErrorCode, RequestFailed
from ..ir.operation import Function, Module
from ..ir.targets import DEFAULT
from ..ir.types import Scalar, Tensor
from ..language import compile_source
from ..levels.execution import for_shapes
from ..mesh.topology import MeshAxes
from ..numerics.array import Array
from ..numerics.formats import dtype
from ..schedule.choices import Options
from .api import Runtime
from .launches import Kernel, LaunchConfig, argument_bytes, extents_of, scalars_of, tensors_of
from .streams import capture_of, host_bytes

# A runtime whose calls reach an endpoint as messages, too (Host - IO_CPU document, D2; AMB-HIO-63 to -66).
#
# Each call is first the runtime's own, which checks it and queues its work; one that succeeds is then expressed by
# messages. So a host program runs once, and the bytes it copies to the host can be compared. Messages are sent in the
# order of calls, an order that streams and events allow. A call that messages cannot express answers
# TESS_ERR_UNSUPPORTED and is recorded in `gaps`; from then on the two sides may differ.


NOT_EXPRESSED: Mapping[str, bool] = {
    "tessAllGather": False,
    "tessAllReduce": False,
    "tessBroadcast": False,
    "tessReduceScatter": False,
    "tessxAdoptDevice": True,
    "tessxGraphLaunch": False,
    "tessxIssue": False,
    "tessxPoke": False,
}
"""Calls that change device memory by other means than copies and launches; True for those with an output."""


class BridgedRuntime(Runtime):
    """A runtime that forwards its calls to a bridge."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__()
        self.bridge = Bridge(endpoint)
        self.received: list[bytes] = []
        """The bytes that messages transferred for copies to the host."""
        self.gaps: list[str] = []
        self._code: dict[int, Code] = {}

    def tessMalloc(self, mesh: Any, bytes: int, **options: Any) -> tuple[Status, int | None]:
        """Allocate memory, and reserve a physical address for it."""
        status, pointer = self._own("tessMalloc", mesh, bytes, **options)
        if status is Status.TESS_OK:
            status = self._expressed("tessMalloc", lambda: self.bridge.allocate(pointer, bytes))
            if status is not Status.TESS_OK:
                self._own("tessFree", mesh, pointer)
        return status, pointer if status is Status.TESS_OK else None

    def tessFree(self, mesh: Any, devPtr: Any) -> Status:
        status: Status = self._own("tessFree", mesh, devPtr)
        if status is Status.TESS_OK:
            self.bridge.free(devPtr)
        return status

    def tessMemcpyAsync(self, dst: Any, src: Any, bytes: int, kind: int, stream: Any) -> Status:
        """Queue a copy, and send reads and writes for it."""
        status: Status = self._own("tessMemcpyAsync", dst, src, bytes, kind, stream)
        if status is not Status.TESS_OK or bytes == 0:
            return status
        return self._expressed("tessMemcpyAsync", lambda: self._copy(dst, src, bytes, CopyKind(kind), stream))

    def tessModuleLoad(self, ctx: Any, image: Any, size: int, **options: Any) -> tuple[Status, int | None]:
        """Load a module, and send a write of its image."""
        status, module = self._own("tessModuleLoad", ctx, image, size, **options)
        if status is Status.TESS_OK:
            data = host_bytes(self.machine.memory, "tessModuleLoad", "image", image, size, "size")
            status = self._expressed("tessModuleLoad", lambda: self._code.update({module: self.bridge.load(data)}))
        return status, module if status is Status.TESS_OK else None

    def tessLaunch(
        self, kernel: Any, mesh: Any, cfg: LaunchConfig, argBuffer: Any, argSize: int, stream: Any
    ) -> Status:
        """Queue a launch, and send messages for it."""
        status: Status = self._own("tessLaunch", kernel, mesh, cfg, argBuffer, argSize, stream)
        if status is not Status.TESS_OK:
            return status
        return self._expressed("tessLaunch", lambda: self._launch(kernel, cfg, argBuffer, argSize, stream))

    def _own(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Call the function of the runtime itself."""
        return getattr(super(), name)(*arguments, **options)

    def _copy(self, dst: int, src: int, size: int, kind: CopyKind, stream: Any) -> None:
        self._require_executed(stream)
        places = self.bridge.places(self.stream(stream).mesh.devices)
        match kind:
            case CopyKind.TESS_COPY_H2D:
                self.bridge.write(places, dst, host_bytes(self.machine.memory, "", "src", src, size, "bytes"))
            case CopyKind.TESS_COPY_D2H:
                self.received.append(self.bridge.read(places[0], src, size))
            case CopyKind.TESS_COPY_D2D:
                self.bridge.copy(places, dst, src, size)

    def _launch(self, kernel: Any, cfg: LaunchConfig, buffer: Any, size: int, stream: Any) -> None:
        self._require_executed(stream)
        launched, queue = self.handles.find("kernel", Kernel, kernel), self.stream(stream)
        pointers, scalars = scalars_of(launched.entry, argument_bytes(launched, buffer, size, queue))
        tensors = tensors_of(launched.entry, pointers, extents_of(launched.entry, scalars), queue)
        arguments = LaunchArguments(
            {name: (pointers[name], tensor.bytes) for name, tensor in tensors.items()}, scalars, cfg.grid, cfg.block
        )
        code = self._code[launched.module.handle]
        self.bridge.launch(code, launched.entry, self.bridge.places(queue.mesh.devices), arguments)

    def _require_executed(self, stream: Any) -> None:
        """Require that a stream is not being captured. Raises `RequestFailed` with UNSUPPORTED."""
        if capture_of(self.captures, self.stream(stream)) is not None:
            _inexpressible("work that is captured")

    def _expressed(self, function: str, operation: Callable[[], None]) -> Status:
        """Express a call by messages; return the resulting status."""
        try:
            operation()
        except RequestFailed as failure:
            self.last_error = f"{function}: {failure.code}: {failure}"
            self.gaps.append(self.last_error)
            missing = failure.code is ErrorCode.UNSUPPORTED
            return Status.TESS_ERR_UNSUPPORTED if missing else Status.TESS_ERR_LAUNCH_FAILED
        return Status.TESS_OK


def _inexpressible(what: str = "it") -> None:
    raise RequestFailed(ErrorCode.UNSUPPORTED, f"the messages have no way to express {what}")


def _refusing(function: str, has_output: bool) -> Callable[..., Any]:
    """Return a function that refuses a call which messages cannot express."""

    def refuse(runtime: BridgedRuntime, *arguments: Any, **named: Any) -> Any:
        status = runtime._expressed(function, _inexpressible)
        return (status, None) if has_output else status

    return refuse


for _name, _has_output in NOT_EXPRESSED.items():
    setattr(BridgedRuntime, _name, _refusing(_name, _has_output))

# Host programs that run once, by the runtime and by messages, and the comparison of the resulting bytes (D2).
#
# A program allocates, initializes, copies, launches and reads back; each rank has its own inputs. The two examples
# are those of `host_io.runtime_frames`: attention, and fills without a kernel.


RANKS = 2
LENGTH = 13
"""The number of rows of the attention tensors: a prime."""

ATTENTION = """module demo {
  func attention(
    Q: tensor<Lx64xfp32>,
    K: tensor<Lx64xfp32>,
    V: tensor<Lx64xfp32>
  ) -> tensor<Lx64xfp32> {
    let scores: tensor<LxLxfp32> = op.matmul(Q, op.transpose(K)) * 0.125;
    let weights: tensor<LxLxfp32> = op.softmax(scores) @{axis=-1};
    return op.matmul(weights, V);
  }
}
"""
"""`examples/attention.tsr`, without the comment above it."""
EXAMPLES = ("attention", "fill")


@dataclass(frozen=True)
class Output:
    """The data read back to the host through the runtime and through messages."""

    name: str
    own: bytes
    by_messages: bytes


@dataclass(frozen=True)
class Comparison:
    """Exchanged frames, the data read back, and calls that messages did not express."""

    exchanges: Sequence[Exchange]
    outputs: Sequence[Output]
    gaps: Sequence[str]

    @property
    def equal(self) -> bool:
        """True if messages expressed every call and yielded the same bits as the runtime."""
        return not self.gaps and all(output.own == output.by_messages for output in self.outputs)


def image_of(module: Module, function: Function, shapes: Mapping[str, tuple[int, ...]]) -> bytes:
    """Return the image of one function as a kernel, for parameters of these shapes. Raises `Rejection`.

    The image has no machine code: no PE of an endpoint runs it, and it exists only where LLVM is installed.
    """
    specialized = for_shapes(module, function, shapes)
    kernel, _ = as_kernel(specialized, specialized.functions[function.name])
    fatbin = read(image_of_graph([kernel], targets_named([DEFAULT]), Options(), Extras()))
    sections = tuple(section for section in fatbin.sections if section.kind not in BINARIES.values())
    return write(replace(fatbin, sections=sections))


def counted(function: Function, extents: Mapping[str, int], rank: int) -> dict[str, Array]:
    """Return inputs of one rank that every dtype of 8 bits or more represents exactly; `extents` fix open dimensions.

    Raises `NumericsFailure` for a dtype without these numbers, and `Failure` for a dimension without an extent.
    """
    counts = {}
    for place, parameter in enumerate(function.parameters):
        type_ = parameter.type
        if isinstance(type_, Tensor):
            shape = tuple(_extent(function, extent, extents) for extent in type_.shape)
            numbers = (np.arange(prod(shape)) * 7919 + 104729 * rank + 31 * place) % 251 - 125
            scaled = numbers / 64 if type_.dtype.kind in ("float", "complex") else numbers
            counts[parameter.name] = Array.checked(
                type_.dtype, (numbers > 0 if type_.dtype.kind == "bool" else scaled).reshape(shape)
            )
        elif isinstance(type_, Scalar):
            counts[parameter.name] = Array.checked(type_.dtype, extents.get(parameter.name, 1))
    return counts


def _extent(function: Function, extent: int | str, extents: Mapping[str, int]) -> int:
    if isinstance(extent, int):
        return extent
    if extent not in extents:
        raise invalid("host-io", f"no extent {extent} of {function.name}", "a number for each of its open dimensions")
    return extents[extent]


def run_example(name: str, endpoint: Endpoint) -> Comparison:
    """Run an example. Raises `Failure` for an unknown name."""
    if name == "fill":
        return _fill(endpoint)
    if name != "attention":
        raise invalid("host_io.runtime_frames", f"program {name!r:.100}", " or ".join(EXAMPLES))
    module = compile_source(ATTENTION).module
    function = module.functions["attention"]
    image = image_of(module, function, dict.fromkeys("QKV", (LENGTH, 64)))
    inputs = [counted(function, {"L": LENGTH}, rank) for rank in range(RANKS)]
    return run_kernel(endpoint, image, "attention", inputs)


def run_kernel(endpoint: Endpoint, image: bytes, name: str, inputs: Sequence[Mapping[str, Array]]) -> Comparison:
    """Launch a kernel with the inputs of each rank, and read back the tensors it writes.

    Missing tensors are zeros, and scalars are those of rank 0. Raises `Failure` for a call of the runtime that fails.
    """
    program = _HostProgram(endpoint, len(inputs))
    with suppress(_NotExpressed):
        module = program.call("tessModuleLoad", program.context, image, len(image))
        kernel = program.call("tessKernelGet", module, name)
        entry = next(candidate for candidate in read(image).metadata.kernels if candidate.name == name)
        extents = {
            name: int(array.values)
            for name, array in inputs[0].items()
            if not array.shape and array.dtype.kind == "int"
        }
        shapes = shapes_of(entry, extents)
        contents = {
            parameter.name: _contents(parameter, shapes, inputs)
            for parameter in entry.parameters
            if parameter.type == "ptr"
        }
        pointers = {name: program.tensor(array) for name, array in contents.items()}
        values = [pointers.get(parameter.name) or _scalar(inputs[0][parameter.name]) for parameter in entry.parameters]
        buffer = pack(entry.layout, values)
        config = LaunchConfig((1, 1, 1))
        program.call("tessLaunch", kernel, program.mesh, config, buffer, len(buffer), program.stream)
        program.call("tessStreamSynchronize", program.stream)
        for parameter in entry.parameters:
            if parameter.written:
                program.read_back(parameter.name, pointers[parameter.name], len(contents[parameter.name][0]))
    return program.comparison()


def _contents(
    parameter: KernelParameter, shapes: Mapping[str, tuple[int, ...]], inputs: Sequence[Mapping[str, Array]]
) -> list[bytes]:
    """Return the bytes of a tensor on each rank before the launch."""
    nbytes = prod(shapes[parameter.name]) * dtype(str(parameter.dtype)).storage_bytes
    return [operand[parameter.name].to_bits() if parameter.name in operand else bytes(nbytes) for operand in inputs]


def _scalar(array: Array) -> ParameterValue:
    kinds: Mapping[str, Any] = {"bool": bool, "int": int, "float": float, "complex": complex}
    value: ParameterValue = kinds[array.dtype.kind](array.values)
    return value


def _fill(endpoint: Endpoint) -> Comparison:
    """Run fills and a copy on the devices, without a kernel, and read the tensors back."""
    program = _HostProgram(endpoint, RANKS)
    with suppress(_NotExpressed):
        count, nbytes = 1009, 4 * 1009
        first = program.tensor([np.full(count, 1.5 + rank, "<f4").tobytes() for rank in range(RANKS)])
        second = program.tensor([bytes(nbytes)] * RANKS)
        program.write(first + 7, b"\x2a" * 31)
        program.call("tessMemcpyAsync", second + 400, first + 400, 1200, int(CopyKind.TESS_COPY_D2D), program.stream)
        program.call("tessStreamSynchronize", program.stream)
        program.read_back("first", first, nbytes)
        program.read_back("second", second + 396, 1208)
    return program.comparison()


class _NotExpressed(Exception):
    """Messages did not express a call, so the program ends."""


class _HostProgram:
    """A host with one mesh of all ranks, and one mesh per rank through which it writes that rank's own bytes."""

    def __init__(self, endpoint: Endpoint, ranks: int) -> None:
        self.runtime = BridgedRuntime(endpoint)
        self.context = self.call("tessInit")
        self.mesh = self.call("tessMeshCreate", self.context, list(range(ranks)), ranks, MeshAxes(dp=ranks))
        self.stream = self.call("tessStreamCreate", self.mesh, 0)
        alone = [self.call("tessMeshCreate", self.context, [rank], 1, MeshAxes(dp=1)) for rank in range(ranks)]
        self._alone: list[int] = [self.call("tessStreamCreate", mesh, 0) for mesh in alone]
        self._outputs: list[Output] = []

    def call(self, name: str, *arguments: Any) -> Any:
        """Return a call's output. Raises `Failure` if it failed, `_NotExpressed` if only its messages failed."""
        answer = getattr(self.runtime, name)(*arguments)
        status, value = answer if isinstance(answer, tuple) else (answer, None)
        if self.runtime.gaps:
            raise _NotExpressed
        if status is not Status.TESS_OK:
            subject, _, allowed = self.runtime.last_error.removeprefix(f"{name}: ").rpartition("; expected ")
            raise Failure(status, name, subject, allowed)
        return value

    def tensor(self, contents: Sequence[bytes]) -> int:
        """Allocate memory, and write these bytes to each rank."""
        pointer: int = self.call("tessMalloc", self.mesh, len(contents[0]))
        if len(set(contents)) == 1:
            self.write(pointer, contents[0])
        else:
            for stream, data in zip(self._alone, contents, strict=True):
                self.write(pointer, data, stream)
        return pointer

    def write(self, pointer: int, data: bytes, stream: int | None = None) -> None:
        """Write bytes to the ranks of a stream, or to every rank."""
        on = self.stream if stream is None else stream
        host = self.call("tessHostAlloc", len(data), int(MemKind.TESS_MEM_PINNED_HOST))
        self.call("tessxHostWrite", host, data)
        self.call("tessMemcpyAsync", pointer, host, len(data), int(CopyKind.TESS_COPY_H2D), on)
        self.call("tessStreamSynchronize", on)
        self.call("tessHostFree", host)

    def read_back(self, name: str, pointer: int, nbytes: int) -> None:
        """Transfer the bytes of every rank to the host."""
        for rank, stream in enumerate(self._alone):
            host = self.call("tessHostAlloc", nbytes, int(MemKind.TESS_MEM_PINNED_HOST))
            self.call("tessMemcpyAsync", host, pointer, nbytes, int(CopyKind.TESS_COPY_D2H), stream)
            self.call("tessStreamSynchronize", stream)
            own = bytes(self.call("tessxHostRead", host, nbytes))
            self._outputs.append(Output(f"{name} of rank {rank}", own, self.runtime.received[-1]))
            self.call("tessHostFree", host)

    def comparison(self) -> Comparison:
        """End the program, and return the comparison of both runs."""
        self.runtime.tessShutdown(self.context)
        return Comparison(self.runtime.bridge.exchanges, self._outputs, self.runtime.gaps)
