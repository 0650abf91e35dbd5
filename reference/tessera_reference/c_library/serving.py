"""The functions that `library.c` calls (runtime spec 4, 18).

They read values from C, call the runtime, and write the outputs."""

# ruff: noqa: N802, N803, the names are those of the C API
from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ..abi.policy import NumericsPolicy
from ..abi.status import Failure, Status, invalid
from ..compilation.compiler import Compiler
from ..mesh.topology import MeshAxes
from ..numerics.environment import check_environment
from ..runtime import Runtime
from ..runtime.launches import LaunchConfig
from ..runtime.state import report

if TYPE_CHECKING:
    from ..adapter import ReferenceAdapter
    from ..adapter.runtime import CFunction, Input, Output

# The memory and the environment of the process that has loaded the library, asked through `library.c`.


class Process:
    """The `ProcessMemory` of a machine; `ffi` and `lib` are those of the library."""

    def __init__(self, ffi: Any, lib: Any) -> None:
        self._ffi = ffi
        self._lib = lib
        size = ffi.new("uint64_t*")
        first = lib.process_reserve(size)
        self.reserved = range(first, first + size[0])
        self._opened: dict[int, int] = {}

    def open(self, address: int, size: int) -> None:
        """Map zeros at reserved addresses. Raises `MemoryError`."""
        if not self._lib.process_open(address, size):
            raise MemoryError(f"{size} bytes of the host")
        self._opened[address] = size

    def close(self, address: int, size: int) -> None:
        """Unmap memory."""
        del self._opened[address]
        self._lib.process_close(address, size)

    def close_all(self) -> None:
        """Unmap all reserved addresses."""
        for address, size in tuple(self._opened.items()):
            self.close(address, size)

    def holds(self, address: int, size: int) -> bool:
        """True if something is mapped at all of these addresses, which are those of a process."""
        return bool(self._lib.process_holds(address, size))

    def view(self, address: int, size: int) -> memoryview:
        """Return the bytes there, in place."""
        return memoryview(self._ffi.buffer(self._ffi.cast("char*", address), size)).cast("B")


def variables(ffi: Any, lib: Any) -> dict[str, str]:
    """Return the current environment variables, including those that the program has set since it began."""
    environment: dict[str, str] = {}
    place = 0
    while (entry := lib.process_variable(place)) != ffi.NULL:
        name, _, value = ffi.string(entry).decode("utf-8", "surrogateescape").partition("=")
        environment[name] = value
        place += 1
    return environment


# The state of the library between calls: a runtime, the failure of the last call, and the adapter of extensions.


Outcome = Mapping[str, Any]
"""An outcome of the protocol: `rejected` or `unsupported`, with its details."""


class Session:
    """A runtime on the memory of the process, replaced at every reset."""

    def __init__(self, process: Process, environment: Callable[[], dict[str, str]]) -> None:
        self.process = process
        self._environment = environment
        self._compiler = Compiler()
        self._last: tuple[str, Outcome] = ("", {})
        """The text of a failure of an extension, and its whole outcome."""
        self.runtime = self._new_runtime()

    def _new_runtime(self) -> Runtime:
        runtime = Runtime(compiler=self._compiler, process=self.process)
        self._found = runtime.environment
        return runtime

    @cached_property
    def adapter(self) -> ReferenceAdapter:
        """The adapter for extensions, created at the first call, since other programs need not wait for it."""
        from ..adapter import make

        server = make()
        server.runtime = self.runtime
        return server

    def read_environment(self) -> None:
        """Let the next context read the variables of the process, unless an extension has set them."""
        if self.runtime.environment is self._found:
            self.runtime.environment = self._found = self._environment()

    def reset(self) -> None:
        """Forget all state."""
        self.runtime.close()
        self.runtime = self._new_runtime()
        self.process.close_all()
        self._last = ("", {})
        if "adapter" in self.__dict__:
            self.adapter.session_reset()
            self.adapter.runtime = self.runtime

    def fail(self, status: Status, text: str, outcome: Outcome) -> Status:
        """Record the failure of an extension, and return its status."""
        self._last = (text, outcome)
        return report(self.runtime, status, text)

    @property
    def outcome(self) -> Outcome:
        """The outcome of the last call that failed; empty where none did."""
        runtime = self.runtime
        if runtime.last_status is Status.TESS_OK:
            return {}
        if runtime.last_error is self._last[0]:
            return self._last[1]
        return {"rejected": {"code": runtime.last_status.name, "phase": "call", "message": runtime.last_error}}


# The functions of `tessera.h` as `library.c` calls them: their arguments read, their results written (runtime spec
# 4).
#
# Handles and pointers arrive as numbers, structures by their address, enumerations as int; the call reads the memory
# behind a pointer. A function returns its status.


INT_BYTES = 4
SWITCHES = ("stableReductions", "deterministic", "rngStateless", "allowFastMath")
TEXTS = {"tessKernelGet": 1, "tessAllReduce": 5, "tessReduceScatter": 5, "tessAllGather": 4, "tessProfilerStop": 1}
"""The place of the text argument, by function."""
OUTPUTS = {
    "tessStreamCreate": ("stream", 2),
    "tessEventCreate": ("event", 0),
    "tessMalloc": ("devPtr", 2),
    "tessHostAlloc": ("hostPtr", 1),
    "tessModuleLoad": ("module", 3),
    "tessKernelGet": ("kernel", 2),
    "tessProfilerStart": ("profiler", 1),
}
"""The name and the place of the output, by function; without a row there is none, or a method writes it."""


class Functions:
    """The functions of the specification: a method where structures are read or written, else one by the tables."""

    def __init__(self, session: Session, ffi: Any) -> None:
        self._session = session
        self._string = ffi.string
        self._unpack = ffi.unpack
        self._cast = ffi.cast

    def function(self, name: str) -> Callable[..., int]:
        """Return the function of a name by the tables."""
        text, (output, place) = TEXTS.get(name), OUTPUTS.get(name, ("", 0))

        def call(*arguments: Any) -> int:
            values = list(arguments)
            if text is not None:
                values[text] = self._text(values[text])
            return self._made(values.pop(place), output, name, *values) if output else self._call(name, *values)

        return call

    def tessInit(self, ctx: Any) -> int:
        """Make a context."""
        self._session.read_environment()
        return self._made(ctx, "context", "tessInit")

    def tessGetVersion(self, major: Any, minor: Any, patch: Any) -> int:
        """Write the version."""
        runtime = self._session.runtime
        if not (major and minor and patch):
            version = {"major": major, "minor": minor, "patch": patch}
            status, _ = runtime.tessGetVersion(null=tuple(name for name, out in version.items() if not out))
            return int(status)
        status, (major[0], minor[0], patch[0]) = runtime.tessGetVersion()
        return status  # type: ignore[no-any-return]

    def tessMeshCreate(self, ctx: int, deviceIds: Any, nDevices: int, axes: Any, outMesh: Any) -> int:
        """Make a mesh."""
        runtime = self._session.runtime
        try:
            arranged = MeshAxes(axes.tp, axes.pp, axes.dp, axes.ep)
        except Failure as failure:
            return report(runtime, failure.status, str(failure))
        return self._made(outMesh, "mesh", "tessMeshCreate", ctx, self._ints(deviceIds, nDevices), nDevices, arranged)

    def tessLaunch(self, kernel: int, mesh: int, cfg: Any, argBuffer: int, argSize: int, stream: int) -> int:
        """Queue a launch."""
        grid, block = tuple(cfg.grid), tuple(cfg.block)
        config = LaunchConfig(grid, block, cfg.shmemBytes, cfg.flags)
        return self._call("tessLaunch", kernel, mesh, config, argBuffer, argSize, stream)

    def tessSetNumericsPolicy(self, ctx: int, policy: Any) -> int:
        """Set the policy."""
        switches = {name: getattr(policy, name) for name in SWITCHES} if policy else None
        return self._call("tessSetNumericsPolicy", ctx, switches)

    def tessGetNumericsPolicy(self, ctx: int, policy: Any) -> int:
        """Write the policy."""
        current: NumericsPolicy | None
        status, current = self._session.runtime.tessGetNumericsPolicy(ctx, null=() if policy else ("policy",))
        if current is not None:
            for name in SWITCHES:
                setattr(policy, name, getattr(current, name))
        return int(status)

    def _call(self, name: str, *arguments: Any) -> int:
        """Call a function without outputs."""
        return int(getattr(self._session.runtime, name)(*arguments))

    def _made(self, out: Any, output: str, name: str, *arguments: Any) -> int:
        """Call a function with one output, and write it to its destination."""
        status, result = getattr(self._session.runtime, name)(*arguments, null=() if out else (output,))
        if result is not None:
            out[0] = result
        return int(status)

    def _text(self, pointer: Any) -> str | None:
        """Return a C text as Python text; None for NULL."""
        return self._string(pointer).decode("utf-8", "surrogateescape") if pointer else None

    def _ints(self, pointer: Any, count: int) -> list[int] | None:
        """Return up to `count` numbers, fewer where the process has no memory for them; None for NULL."""
        if not pointer:
            return None
        there = count > 0 and self._session.process.holds(int(self._cast("uintptr_t", pointer)), count * INT_BYTES)
        return list(self._unpack(pointer, count)) if there else []


# The functions of `tessera_ext.h` as `library.c` calls them: C values read, the adapter called, its answer written.
#
# Handles and pointers arrive as numbers, bytes as their address and their size.


HELLO = ("implementation", "documents", "capabilities", "arithmetic")
WITHOUT_C = frozenset({"python-binding"})
"""The features that no C function reaches."""


class Extensions:
    """The three functions of the session, and `function` for the others."""

    def __init__(self, session: Session, ffi: Any) -> None:
        self._session = session
        self._ffi = ffi

    @cached_property
    def _declared(self) -> Any:
        from ..adapter.runtime import extensions  # with the adapter: see `Session.adapter`

        return extensions()

    def tessxReset(self) -> int:
        """Forget all state."""
        self._session.reset()
        return Status.TESS_OK

    def tessxHello(self, *buffer: Any) -> int:
        """Write the Hello of the implementation."""
        answer = self._session.adapter.hello()
        hello = {name: answer[name] for name in HELLO}
        hello["capabilities"] = {name: state for name, state in answer["capabilities"].items() if name not in WITHOUT_C}
        return self._written("tessxHello", hello, buffer)

    def tessxOutcome(self, *buffer: Any) -> int:
        """Write the error of the last call that failed."""
        return self._written("tessxOutcome", self._session.outcome, buffer)

    def _written(self, name: str, value: Any, buffer: Sequence[Any]) -> int:
        try:
            self._require_buffer(name, buffer)
        except Failure as failure:
            return self._failed(failure)
        self._fill(buffer, json.dumps(value).encode() + b"\0")
        return Status.TESS_OK

    def function(self, name: str) -> Callable[..., int]:
        """Return the function of a name; its parameters are looked up when it is called."""

        def call(*arguments: Any) -> int:
            from ..adapter.runtime import Failed, Input, answer

            declared: CFunction = self._declared[name]
            rest = list(arguments)
            try:
                groups = [(position, [rest.pop(0) for _ in position.parameters]) for position in declared.positions]
                inputs = [
                    self._read(name, position, values) for position, values in groups if isinstance(position, Input)
                ]
                outputs = [(position, values) for position, values in groups if not isinstance(position, Input)]
                for output, values in outputs:
                    self._require(name, output, values)
                answers = answer(self._session.adapter, declared, inputs)
            except Failed as failed:
                status = Status.__members__.get(failed.code, Status.TESS_ERR_INVALID_VALUE)
                return self._session.fail(status, str(failed), failed.outcome)
            except Failure as failure:
                return self._failed(failure)
            for (output, values), value in zip(outputs, answers, strict=True):
                self._write(output, values, value)
            return Status.TESS_OK

        return call

    def _failed(self, failure: Failure) -> int:
        rejected = {"code": failure.status.name, "phase": "call", "message": str(failure)}
        return self._session.fail(failure.status, str(failure), {"rejected": rejected})

    def _read(self, name: str, declared: Input, values: Sequence[Any]) -> Any:
        """Return a value as Python has it; None for NULL. Raises `Failure`."""
        if declared.form in ("text", "json"):
            return self._ffi.string(values[0]).decode("utf-8", "surrogateescape") if values[0] else None
        if declared.form not in ("data", "memory"):
            return values[0]
        address, size = values
        if size == 0:
            return b"" if address else None
        if not address or not self._session.process.holds(address, size):
            subject = f"{declared.name} is {address:#x}, from where there are less than {size} bytes"
            raise invalid(name, subject, "the address of as many")
        return bytes(self._session.process.view(address, size))

    def _require(self, name: str, declared: Output, values: Sequence[Any]) -> None:
        """Require a place for an output. Raises `Failure`."""
        if len(values) == 1 and not values[0]:
            raise invalid(name, f"{declared.name} is NULL", "a pointer to where the result goes")
        if len(values) == 3:
            self._require_buffer(name, values)

    def _require_buffer(self, name: str, buffer: Sequence[Any]) -> None:
        out, capacity, needed = buffer
        if not needed:
            raise invalid(name, "needed is NULL", "a pointer to where the size goes")
        if capacity and not out:
            raise invalid(name, f"out is NULL with a capacity of {capacity}", "a buffer, or a capacity of 0")

    def _write(self, declared: Output, values: Sequence[Any], value: Any) -> None:
        if len(values) == 1:
            values[0][0] = int(value)
        elif isinstance(value, bytes):
            self._fill(values, value)
        else:
            self._fill(values, value.encode("utf-8", "backslashreplace") + b"\0")

    def _fill(self, buffer: Sequence[Any], data: bytes) -> None:
        """Write bytes into a buffer of the caller that is large enough, and their number."""
        out, capacity, needed = buffer
        needed[0] = len(data)
        if len(data) <= capacity and data:
            self._ffi.memmove(out, data, len(data))


# Registration of each function of the headers under its name, so that `library.c` can call Python.


def serve(ffi: Any, lib: Any) -> None:
    """Register the functions that a library declares. Raises `UnsuitableEnvironment`."""
    check_environment()
    session = Session(Process(ffi, lib), partial(variables, ffi, lib))
    functions, extensions = Functions(session, ffi), Extensions(session, ffi)
    for declared in dir(lib):
        name = declared.removeprefix("py_")
        if declared == name or name == "alive":
            continue
        answering = extensions if name.startswith("tessx") else functions
        function = getattr(answering, name, None) or answering.function(name)
        ffi.def_extern(declared, onerror=_reporting(session, name))(function)


def _reporting(session: Session, name: str) -> Callable[..., int]:
    """Return a function that turns an exception, which none should raise, into the status of a failed launch."""

    def report_defect(kind: Any, error: BaseException, traceback: Any) -> int:
        text = f"{name}: a defect of the reference: {type(error).__name__}: {error}"
        return report(session.runtime, Status.TESS_ERR_LAUNCH_FAILED, text)

    return report_defect
