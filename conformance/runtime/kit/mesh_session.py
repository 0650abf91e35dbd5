"""A context with its mesh and one stream: memory written and read, kernels loaded and launched (runtime spec, 4).

A case opens a `MeshSession` with `opened(impl, check)`. Every step that must succeed for the case to be valid is itself
a check; calls that a case expects to be refused are made with `attempt`, or on `impl.runtime`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from tessera_conformance.check import Check
from tessera_conformance.protocol import Observation, Rejected, Returned, Unsupported
from tessera_conformance.session import Implementation

from .encoding import values_of
from .parameter_readings import judge_extents, judge_refusal
from .policies import set_policy

H2D, D2H, D2D = 0, 1, 2
"""tessCopyKind."""
GLOBAL, PINNED_HOST = 0, 1
"""tessMemKind."""
SUM, MAX, MIN = 0, 1, 2
"""tessCollOp."""
DETERMINISTIC, CAPTURE, PERSISTENT, LOW_LATENCY = 1, 2, 4, 8
"""Launch flags."""
DTYPE_IDS = {
    name: number
    for number, name in enumerate(
        "fp8_e4m3 fp8_e5m2 fp16 bf16 fp32 fp64 int8 int16 int32 int64 bool complex64 complex128".split(), 1
    )
}
"""The ids of Appendix B."""

COUNT = 64
"""The elements of every tensor of `KERNELS`."""
BYTES = 4 * COUNT
"""The bytes of such a tensor."""

KERNELS = """module kernels {
  kernel fill(v: int32, x: tensor<64xint32>) { x[0:64] = v; }
  kernel digit(v: int32, x: tensor<64xint32>) { x = x * 10 + v; }
  kernel copy(x: tensor<64xint32>, y: tensor<64xint32>) { y = x; }
  kernel axpy(a: fp32, x: tensor<64xfp32>, y: tensor<64xfp32>) { y = x * a + y; }
  kernel divide(n: int32, x: tensor<64xint32>) { x[0] = 64 / n; }
  kernel index(n: int32, x: tensor<64xint32>) { x[n] = 1; }
  kernel steps(n: int32, x: tensor<64xint32>) { for (i in 0:64:n) { x[i] = 1; } }
  kernel nothing() { }
}
"""
"""`digit` appends a decimal digit, which shows the order of launches; `divide`, `index` and `steps` fail for n = 0, n =
64 and n = 0 (AMB-LANG-55, AMB-RT-61)."""


def alone(name: str) -> str:
    """Return the program of one kernel of `KERNELS`."""
    (line,) = [line.strip() for line in KERNELS.splitlines() if line.strip().startswith(f"kernel {name}(")]
    return f"module kernels {{ {line} }}"


@dataclass(frozen=True)
class MeshSession:
    """A context, a mesh of some ranks and a stream, in use by one case."""

    impl: Implementation
    check: Check
    context: int
    mesh: int
    stream: int
    ranks: int = 1
    streams: list[int] = field(default_factory=list, compare=False)
    """The streams of the mesh that the case has opened."""
    uploads: list[tuple[int, bytes]] = field(default_factory=list, compare=False)
    """The device memory that the case has filled, with the bytes written there."""
    errors: dict[int, str] = field(default_factory=dict, compare=False)
    """The errors of their work that streams of the mesh have reported."""
    recovered: list[int] = field(default_factory=list, compare=False)
    """Streams that reported no error when they were synchronized after an error."""

    def attempt(self, function: str, **arguments: Any) -> Observation:
        """Call a function of the runtime and leave the verdict to the caller."""
        observation: Observation = getattr(self.impl.runtime, function)(**arguments)
        return observation

    def ask(self, function: str, **arguments: Any) -> Any:
        """Call a function of the runtime, which must succeed; return its result."""
        return self.succeeds(self.attempt(function, **arguments), function)

    def succeeds(self, answer: Observation, function: str) -> Any:
        """Return the result of a call; a status that a stream has reported and still reports is another reading."""
        if isinstance(answer, Rejected) and answer.code in self.errors.values():
            reported = [stream for stream, status in self.errors.items() if status == answer.code]
            failed = [stream for stream in reported if stream not in self.recovered]
            again = [self.attempt("tessStreamSynchronize", stream=stream) for stream in failed]
            lasts = any(isinstance(status, Rejected) and status.code == answer.code for status in again)
            self.check.reading("AMB-RT-14", "poisons the stream", lasts and self.stream in failed)
            self.check.reading("AMB-RT-14", "sticky until the context is destroyed", lasts)
        return self.check.returns(answer, f"{function} succeeds")

    def another_stream(self, priority: int = 0) -> Self:
        """Return the same session with a new stream of the mesh."""
        stream = int(self.ask("tessStreamCreate", mesh=self.mesh, priority=priority)["stream"])
        self.streams.append(stream)
        return replace(self, stream=stream)

    def synchronize(self) -> None:
        """Wait for the stream, which must report no error."""
        self.ask("tessStreamSynchronize", stream=self.stream)
        if self.stream in self.errors:
            self.recovered.append(self.stream)

    def reports(self, status: str) -> None:
        """Check that the next synchronization of the stream reports an error with this status."""
        answer = self.attempt("tessStreamSynchronize", stream=self.stream)
        if status == "TESS_ERR_LAUNCH_FAILED" and isinstance(answer, Returned):
            unclaimed = isinstance(self.attempt("tessxSetFaults", context=self.context, faults=[]), Unsupported)
            self.check.reading("AMB-RT-127", "only where fault-injection is claimed", unclaimed)
        self.check.status(answer, status)
        self.errors[self.stream] = status

    def set_policy(self, policy: Mapping[str, int]) -> None:
        """Set the numerics policy of the context."""
        set_policy(self.impl, self.check, self.context, policy)

    def destroy_mesh(self) -> None:
        """Destroy the mesh, with its streams and memory."""
        self.ask("tessMeshDestroy", mesh=self.mesh)

    def close_mesh(self) -> None:
        """Synchronize and destroy the streams, then the mesh; remaining memory may keep it alive (AMB-RT-50)."""
        for stream in self.streams:
            self.attempt("tessStreamSynchronize", stream=stream)
            self.attempt("tessStreamDestroy", stream=stream)
        self.streams.clear()
        self.attempt("tessMeshDestroy", mesh=self.mesh)

    def close(self) -> None:
        """Close the mesh, then end the context."""
        self.close_mesh()
        self.ask("tessShutdown", context=self.context)

    # Events

    def event(self) -> int:
        """Return a new event."""
        return int(self.ask("tessEventCreate")["event"])

    def record(self, event: int) -> None:
        """Queue: record an event."""
        self.ask("tessEventRecord", event=event, stream=self.stream)

    def wait(self, event: int) -> None:
        """Queue: wait for an event."""
        self.ask("tessStreamWaitEvent", stream=self.stream, event=event)

    def wait_stream(self, other: MeshSession) -> None:
        """Queue: wait, by an event, for all work that is queued on another stream now."""
        event = self.event()
        other.record(event)
        self.wait(event)

    # Memory

    def allocate(self, count: int) -> int:
        """Device memory of so many bytes."""
        return int(self.ask("tessMalloc", mesh=self.mesh, bytes=count)["devPtr"])

    def host(self, data: bytes) -> int:
        """Return ordinary host memory with these bytes; it exists until the case ends."""
        pointer = int(self.ask("tessxHostMemory", bytes=len(data))["hostPtr"])
        self.host_write(pointer, data)
        return pointer

    def host_write(self, pointer: int, data: bytes) -> None:
        """Write host memory at once."""
        self.ask("tessxHostWrite", hostPtr=pointer, data=data.hex())

    def host_bytes(self, pointer: int, count: int) -> bytes:
        """Return the contents of host memory."""
        return bytes.fromhex(self.ask("tessxHostRead", hostPtr=pointer, bytes=count)["data"])

    def copy(self, dst: int, src: int, count: int, kind: int) -> None:
        """Queue a copy on the stream."""
        self.ask("tessMemcpyAsync", dst=dst, src=src, bytes=count, kind=kind, stream=self.stream)

    def write(self, pointer: int, data: bytes) -> None:
        """Queue a copy of these bytes into device memory."""
        self.copy(pointer, self.host(data), len(data), H2D)

    def upload(self, data: bytes) -> int:
        """Return new device memory; queue a copy of these bytes into it on the stream."""
        pointer = self.allocate(len(data))
        self.write(pointer, data)
        self.uploads.append((pointer, data))
        return pointer

    def unchanged(self, uploads: Sequence[tuple[int, bytes]]) -> None:
        """Check that device memory holds the uploaded bytes, after a refused call."""
        for pointer, data in uploads:
            self.check.equal(self.download(pointer, len(data)).hex(), data.hex(), "memory after the refusal")

    def download(self, pointer: int, count: int) -> bytes:
        """Return the contents of device memory (of rank 0) when everything queued on the stream is done."""
        target = self.host(bytes(count))
        self.copy(target, pointer, count, D2H)
        self.synchronize()
        return self.host_bytes(target, count)

    def round_trip(self, data: bytes) -> int:
        """Queue copies of these bytes to the device, on it, and back; return the host memory of the result."""
        source, pointer, target = self.upload(data), self.allocate(len(data)), self.host(bytes(len(data)))
        self.copy(pointer, source, len(data), D2D)
        self.copy(target, pointer, len(data), D2H)
        return target

    def integers(self, pointer: int, count: int = COUNT) -> list[float]:
        """Return the int32 elements of a tensor (of rank 0) when everything queued on the stream is done."""
        return values_of("int32", self.download(pointer, 4 * count))

    def integers_of_rank(self, rank: int, pointer: int, count: int = COUNT) -> list[float]:
        """Return the int32 elements of a tensor of one rank; needs the feature rank-memory."""
        return values_of("int32", self.peek(rank, pointer, 4 * count))

    def poke(self, rank: int, pointer: int, data: bytes) -> None:
        """Write the memory of one rank; needs the feature rank-memory."""
        self.ask("tessxPoke", mesh=self.mesh, rank=rank, devPtr=pointer, data=data.hex())

    def peek(self, rank: int, pointer: int, count: int) -> bytes:
        """Read the memory of one rank; needs the feature rank-memory."""
        return bytes.fromhex(self.ask("tessxPeek", mesh=self.mesh, rank=rank, devPtr=pointer, bytes=count)["data"])

    # Modules and launches

    def load(self, source: str = KERNELS, **options: Any) -> int:
        """Compile a program, and load and return its module."""
        image = compiled(self.impl, self.check, source, **options)
        return int(self.ask("tessModuleLoad", context=self.context, image=image)["module"])

    def kernel(self, name: str, source: str = KERNELS, **options: Any) -> int:
        """Return a kernel of a program; one of `KERNELS` is alone in it, so that a compiler needs nothing else."""
        return self.kernel_of(self.load(alone(name) if source is KERNELS else source, **options), name)

    def kernel_of(self, module: int, name: str) -> int:
        """Return a kernel of a loaded module."""
        return int(self.ask("tessKernelGet", module=module, name=name)["kernel"])

    def launching(self, kernel: int, arguments: bytes = b"", **stated: Any) -> Observation:
        """Launch on the stream and return the answer; `stated` replaces fields of the configuration and parameters."""
        cfg = {name: stated.pop(name, default) for name, default in CONFIGURATION.items()}
        whole = {"kernel": kernel, "mesh": self.mesh, "cfg": cfg, "argBuffer": arguments.hex(), "stream": self.stream}
        return self.attempt("tessLaunch", **(whole | stated))

    def launch(self, kernel: int, arguments: bytes = b"", **stated: Any) -> None:
        """Queue a launch on the stream."""
        self.succeeds(self.launching(kernel, arguments, **stated), "tessLaunch")

    def reducing(self, buffer: int, count: int = COUNT, dtype: str = "int32", axis: str = "dp") -> Observation:
        """Return the answer to a sum over the ranks along an axis."""
        whole = {"mesh": self.mesh, "buffer": buffer, "count": count, "dtype": DTYPE_IDS[dtype], "op": SUM}
        return self.attempt("tessAllReduce", **whole, axis=axis, stream=self.stream)

    def all_reduce(self, buffer: int, count: int = COUNT, dtype: str = "int32", axis: str = "dp") -> None:
        """Queue a sum over the ranks along an axis."""
        self.check.returns(self.reducing(buffer, count, dtype, axis), "tessAllReduce succeeds")


CONFIGURATION: Mapping[str, Any] = {"grid": [1, 1, 1], "block": [0, 0, 0], "shmemBytes": 0, "flags": 0}
"""tessLaunchConfig with every field at its default."""


def machine(impl: Implementation, check: Check) -> list[int] | None:
    """Return the ids of the devices of the machine; None if it does not list them."""
    answer = impl.runtime.tessxDevices()
    if isinstance(answer, Unsupported):
        return None
    return [device["id"] for device in check.returns(answer, "tessxDevices succeeds")["devices"]]


def devices(impl: Implementation, check: Check, count: int) -> list[int]:
    """Return the ids of the first devices of the machine, which is presumed to have so many (AMB-RT-120).

    Without a list of devices they are those of the sample, from 0 on.
    """
    known = machine(impl, check)
    if known is None:
        return list(range(count))
    check.given(len(known) >= count, f"the machine has {count} devices", len(known))
    return known[:count]


def presume_devices(impl: Implementation, check: Check, count: int, created: Observation) -> None:
    """Presume enough devices: a machine without a list of them that refuses a mesh of several has fewer."""
    if count > 1 and isinstance(created, Rejected):
        check.given(machine(impl, check) is not None, f"the machine has {count} devices", created.code)


def axes_of(**sizes: int) -> dict[str, int]:
    """Return tessMeshAxes with some axes; the others have one rank."""
    return {name: sizes.get(name, 1) for name in ("tp", "pp", "dp", "ep")}


def opened(impl: Implementation, check: Check, ranks: int = 1, **sizes: int) -> MeshSession:
    """Return a new context with a mesh of the first `ranks` devices and a stream: by default along dp, else `sizes`."""
    context = check.returns(impl.runtime.tessInit(), "tessInit succeeds")["context"]
    return meshed(impl, check, context, devices(impl, check, ranks), **sizes)


def meshed(impl: Implementation, check: Check, context: int, ids: Sequence[int], **sizes: int) -> MeshSession:
    """Return a mesh of these devices with a stream in a context."""
    axes = axes_of(**(sizes or {"dp": len(ids)}))
    created = impl.runtime.tessMeshCreate(context=context, deviceIds=list(ids), axes=axes)
    absent = isinstance(created, Rejected) and 0 in sizes.values() and created.code == "TESS_ERR_INVALID_VALUE"
    presume_devices(impl, check, max(ids) + 1, created)
    check.reading("AMB-RT-01", "refuse 0 and call the sample wrong", absent)
    mesh = check.returns(created, "tessMeshCreate succeeds")["mesh"]
    stream = check.returns(impl.runtime.tessStreamCreate(mesh=mesh, priority=0), "tessStreamCreate succeeds")["stream"]
    return MeshSession(impl, check, context, mesh, stream, len(ids), [stream])


def two_contexts(impl: Implementation, check: Check, ranks: int = 1) -> tuple[MeshSession, MeshSession]:
    """Two contexts, each with a mesh of the first `ranks` devices and a stream."""
    first, second = opened(impl, check, ranks), opened(impl, check, ranks)
    judge_contexts(check, first.context, second.context)
    return first, second


def judge_contexts(check: Check, *contexts: int) -> None:
    """End the case if tessInit returns a context that it returned before (AMB-RT-71)."""
    check.reading("AMB-RT-71", "second call returns the same context", len(set(contexts)) < len(contexts))


def compiled(impl: Implementation, check: Check, source: str = KERNELS, **options: Any) -> str:
    """Return the image of a program, as data; without `targets`, for every device of the machine."""
    answer = impl.abi.compile(source=source, **options)
    judge_extents(impl, check, answer, source)
    judge_refusal(impl, check, answer, source)
    image = check.returns(answer, "the program is compiled")["image"]
    assert isinstance(image, str)
    return image


def refused(check: Check, observation: Observation, *statuses: str) -> None:
    """Check that the call reports one of these statuses."""
    found = observation.code if isinstance(observation, Rejected) else ""
    check.status(observation, found if found in statuses else statuses[0])
