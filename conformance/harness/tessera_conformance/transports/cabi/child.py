"""The process that loads a C library and serves it: its methods, host memory, and the objects that a case leaves."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, NamedTuple, NoReturn

from tessera_conformance.adapter import MalformedAnswer, NotSupported, Refusal
from tessera_conformance.interface.declarations import c_functions
from tessera_conformance.server import serve
from tessera_conformance.transports.cabi.carriers import CMethod, Library, decoded, opened_record, stopped
from tessera_conformance.transports.cabi.options import CabiOptions, constants, laid_over

# Host memory of the process that loads the library: allocated, read and written here, without the library.
#
# An unmapped guard page follows it, so that a library that writes far beyond its end crashes.


LARGEST = 1 << 32
ALIGNMENT = 16
"""The alignment in bytes; the guard page starts within this many bytes of the buffer's end."""
FAILED = (1 << 8 * ctypes.sizeof(ctypes.c_void_p)) - 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)


class HostMemory:
    """Host memory of this process, and blocks of `tessHostAlloc`, which are read and written the same way."""

    def __init__(self) -> None:
        self._pages: dict[int, tuple[int, int]] = {}
        self._sizes: dict[int, int] = {}

    def allocate(self, count: int) -> int:
        """Return the address of `count` zero bytes. Raises `Refusal`."""
        if not 0 <= count <= LARGEST:
            self._refuse(f"tessxHostMemory: bytes = {count}: allowed: 0 to {LARGEST}", "TESS_ERR_OUT_OF_MEMORY")
        reserved = -(-max(count, 1) // ALIGNMENT) * ALIGNMENT
        pages = -(-reserved // mmap.PAGESIZE) * mmap.PAGESIZE
        begin = _libc.mmap(
            None, pages + mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0
        )
        if begin is None or begin == FAILED:
            self._refuse(f"tessxHostMemory: no memory for {count} bytes", "TESS_ERR_OUT_OF_MEMORY")
        _libc.munmap(begin + pages, mmap.PAGESIZE)
        address = int(begin + pages - reserved)
        self._pages[address], self._sizes[address] = (begin, pages), count
        return address

    def add(self, address: int, count: int) -> None:
        """Record memory that the library allocated."""
        self._sizes[address] = count

    def remove(self, address: int) -> None:
        """Forget memory that the library has freed."""
        if address not in self._pages:
            self._sizes.pop(address, None)

    def forget(self) -> None:
        """Free all memory of this process, and forget the library's."""
        for begin, pages in self._pages.values():
            _libc.munmap(begin, pages)
        self._pages.clear()
        self._sizes.clear()

    def read(self, address: int, count: int) -> bytes:
        """Return bytes of memory. Raises `Refusal` beyond the allocation."""
        self._require(address, count, "tessxHostRead")
        return ctypes.string_at(address, count)

    def write(self, address: int, data: bytes) -> None:
        """Write bytes into memory. Raises `Refusal` beyond the allocation."""
        self._require(address, len(data), "tessxHostWrite")
        ctypes.memmove(address, data, len(data))

    def _require(self, address: int, count: int, function: str) -> None:
        is_inside = any(base <= address and address + count <= base + size for base, size in self._sizes.items())
        if count < 0 or not is_inside:
            allowed = "what tessxHostMemory or tessHostAlloc gave"
            self._refuse(f"{function}: hostPtr = {address:#x}, {count} bytes: allowed: {allowed}")

    @staticmethod
    def _refuse(text: str, code: str = "TESS_ERR_INVALID_VALUE") -> None:
        raise Refusal(code, "call", text)


# The live objects of a case: a library without `tessxReset` gets calls that end them in a legal order.
#
# First every stream is synchronized, so that no queued work uses freed memory. Then events, streams, memory, modules
# and meshes end, and contexts last: no library is asked to end an object that still has parts (AMB-RT-50). Kernels end
# with their modules, and profilers with their contexts: stopping one would write a file.


Method = Callable[..., Any]


@dataclass(frozen=True)
class Kind:
    """A kind of object: the functions that create and end one, the parameter that names it, and that of its owner."""

    made_by: str
    ended_by: str
    name: str
    owner: str = ""


KINDS = (
    Kind("tessEventCreate", "tessEventDestroy", "event"),
    Kind("tessStreamCreate", "tessStreamDestroy", "stream", "mesh"),
    Kind("tessMalloc", "tessFree", "devPtr", "mesh"),
    Kind("tessHostAlloc", "tessHostFree", "hostPtr"),
    Kind("tessModuleLoad", "tessModuleUnload", "module", "context"),
    Kind("tessMeshCreate", "tessMeshDestroy", "mesh", "context"),
    Kind("tessInit", "tessShutdown", "context"),
)
"""In the order in which objects are ended."""


class LiveObjects:
    """The live objects of a library, by kind, each with its owner; an owned object ends with its owner."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[int, int]] = {kind.name: {} for kind in KINDS}

    def watched(self, methods: Mapping[str, Method]) -> dict[str, Method]:
        """Return those methods that create or end an object, wrapped to record each success."""
        notes: dict[str, Method] = {}
        for kind in KINDS:
            for function, note in ((kind.made_by, self._made), (kind.ended_by, self._ended)):
                if method := methods.get(f"runtime_{function}"):
                    notes[f"runtime_{function}"] = _noting(method, partial(note, kind))
        return notes

    def _made(self, kind: Kind, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        if handle := result[kind.name]:
            self._owners[kind.name][handle] = arguments.get(kind.owner, 0)

    def _ended(self, kind: Kind, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        self._forget(kind, arguments[kind.name])

    def _forget(self, kind: Kind, handle: int) -> None:
        """Forget an object and all that it owns; a context may own any event and host memory, which name none."""
        self._owners[kind.name].pop(handle, None)
        for part in KINDS:
            if part.owner == kind.name:
                parts = [child_handle for child_handle, owner in self._owners[part.name].items() if owner == handle]
                for child in parts:
                    self._forget(part, child)
        if kind.name == "context":
            self._owners["event"].clear()
            self._owners["hostPtr"].clear()

    def forget(self) -> None:
        """Forget all objects."""
        for owners in self._owners.values():
            owners.clear()

    def end(self, methods: Mapping[str, Method]) -> None:
        """End all objects by these methods of the library.

        Raises `Refusal`: an object could not be ended, so that the process must be restarted.
        """
        for stream in self._owners["stream"]:
            _ask(methods, "tessStreamSynchronize", stream=stream)  # an error of its queued work does not matter here
        for kind in KINDS:
            for handle, owner in reversed(list(self._owners[kind.name].items())):
                arguments = {"mesh": owner} if kind.ended_by == "tessFree" else {}
                refusal = _ask(methods, kind.ended_by, **arguments, **{kind.name: handle})
                if refusal is not None:
                    raise Refusal(refusal.outcome.code, "call", f"{kind.ended_by}, to clean up: {refusal}")
        self.forget()


def _noting(method: Method, note: Callable[[Mapping[str, Any], Mapping[str, Any]], None]) -> Method:
    """Return a method that passes its arguments and result to `note` after each success."""

    def noting(**arguments: Any) -> Any:
        result = method(**arguments)
        note(arguments, result)
        return result

    return noting


def _ask(methods: Mapping[str, Method], function: str, **arguments: Any) -> Refusal | None:
    """Return the refusal of a function, or None; a missing function counts as unsupported."""
    method = methods.get(f"runtime_{function}")
    if method is None:
        return Refusal("TESS_ERR_UNSUPPORTED", "call", "the library does not export it")
    try:
        method(**arguments)
    except NotSupported as reason:
        return Refusal("TESS_ERR_UNSUPPORTED", "call", str(reason))
    except Refusal as refusal:
        return refusal
    return None


# A loaded library as an adapter: its functions are its methods, and its header and description supply the rest.
#
# This module itself answers the Hello, the reset, host memory, the devices of a description, and the header.


HEADER = "c-abi"
"""The feature of implementations with a readable header."""
HOST_MEMORY = "host-memory"
"""The feature of methods that the process provides for every library."""


class CabiAdapter:
    """Answers with a library's functions; `header` is a text, `description` as `read_description` gives it."""

    def __init__(self, library: Library, name: str, header: str | None, description: Mapping[str, Any]) -> None:
        self._library, self._name, self._header = library, name, header
        self._description = dict(description)
        self._devices = self._description.pop("devices", None)
        self._memory = HostMemory()
        self._live = LiveObjects()
        self._methods: dict[str, Callable[..., Any]] = {
            method.replace(".", "_", 1): CMethod(library, function)
            for method, function in c_functions().items()
            if library.has(function.name)
        }
        self._add_own()
        vars(self).update(self._methods)  # where `invoke` looks first

    def _add_own(self) -> None:
        """Add the methods that are no function of the library, and wrap those whose effect is recorded."""
        methods = self._methods
        methods["runtime_tessxHostMemory"] = lambda *, bytes, **_: {"hostPtr": self._memory.allocate(bytes)}
        methods["runtime_tessxHostRead"] = self._host_read
        methods["runtime_tessxHostWrite"] = self._host_write
        if self._devices is not None and "runtime_tessxDevices" not in methods:
            methods["runtime_tessxDevices"] = lambda **_: {"devices": self._devices}
        if self._header is not None:
            methods["abi_header"] = lambda **_: {"text": self._header}
            methods["abi_constants"] = lambda **_: {"constants": constants(self._header or "")}
        methods.update(self._live.watched(methods))
        effects: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], None]] = {
            "runtime_tessHostAlloc": lambda given, result: self._memory.add(result["hostPtr"], given["bytes"]),
            "runtime_tessHostFree": lambda given, result: self._memory.remove(given["hostPtr"]),
        }
        methods.update({name: _noting(methods[name], effect) for name, effect in effects.items() if name in methods})

    # The session

    def hello(self) -> dict[str, Any]:
        """Return the Hello made from the file and its functions, overlaid with the library's own and the description.

        Raises `MalformedAnswer`: `tessxHello` failed or returned no JSON object.
        """
        derived = {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": self._name, "version": "unknown"},
            "documents": ["runtime_abi"],
            "capabilities": dict.fromkeys(self._features(), "enforced"),
        }
        hello = laid_over(laid_over(derived, self._said()), self._description)
        self._remove_methods_without_claim(hello.get("capabilities"))
        return hello

    def _remove_methods_without_claim(self, capabilities: Any) -> None:
        """Remove the methods of features that the library or the description declares unsupported."""
        for method, function in c_functions().items():
            feature, name = function.method.feature, method.replace(".", "_", 1)
            if isinstance(capabilities, dict) and capabilities.get(feature) == "unsupported" and name in self._methods:
                del self._methods[name]
                vars(self).pop(name, None)

    def _features(self) -> list[str]:
        """Return the features all of whose methods exist."""
        by_feature: dict[str, list[str]] = {}
        for name, function in c_functions().items():
            feature = function.method.feature
            if feature and "{" not in feature:
                by_feature.setdefault(feature, []).append(name.replace(".", "_", 1))
        whole = [feature for feature, names in by_feature.items() if all(name in self._methods for name in names)]
        return sorted({*whole, HOST_MEMORY, *([HEADER] if self._header is not None else [])})

    def _said(self) -> Mapping[str, Any]:
        if not self._library.has("tessxHello"):
            return {}
        status, text = self._library.call_for_text("tessxHello", ())
        if status != 0:
            raise MalformedAnswer(f"tessxHello gave {stopped(self._library, 'tessxHello', status)}")
        return decoded("tessxHello", text)

    def session_reset(self, **_: Any) -> dict[str, Any]:
        """Call `tessxReset`, or end all live objects; then free host memory. Return {}.

        Raises `Refusal`: it failed. Nothing was freed, since queued work may use it, and no case may follow.
        """
        if self._library.has("tessxReset"):
            status = self._library.call("tessxReset", ())
            if status != 0:
                raise stopped(self._library, "tessxReset", status)
            self._live.forget()
        else:
            self._live.end(self._methods)
        self._memory.forget()
        return {}

    # Host memory

    def _host_read(self, *, hostPtr: int, bytes: int, **_: Any) -> dict[str, Any]:  # noqa: N803
        return {"data": self._memory.read(hostPtr, bytes).hex()}

    def _host_write(self, *, hostPtr: int, data: str, **_: Any) -> dict[str, Any]:  # noqa: N803
        self._memory.write(hostPtr, bytes.fromhex(data))
        return {}


# The process that loads the library and serves the line protocol: `python -m ...child OPTIONS TYPES CALL_RECORD`.
#
# The protocol has descriptors of its own. The library's standard input is empty, and its standard output goes to
# standard error. The process ends when its parent ends.
#
# With `fresh=1` this process never loads the library: for every case it forks a child that does, and it ends as that
# child ends.


PR_SET_PDEATHSIG = 1


class Files(NamedTuple):
    """Files shared by the process that loads the library and the one that starts it: `c_types` and `call_record`."""

    types: str
    record: str


def main(arguments: list[str]) -> int:
    """Serve the library until the session is closed."""
    options, files = CabiOptions.read(arguments[0]), Files(*arguments[1:])
    requests, responses = _own_descriptors()
    _end_with_the_parent()
    if options.fresh:
        return _serve_in_forks(options, files, requests, responses)
    return serve(_adapter(options, files), requests, responses)


def _adapter(options: CabiOptions, files: Files) -> CabiAdapter:
    library = Library(options.library, files.types, opened_record(files.record))
    return CabiAdapter(library, options.name, options.header, options.description)


def _own_descriptors() -> tuple[BinaryIO, BinaryIO]:
    """Return the descriptors of the protocol, duplicated so that the library does not use them."""
    requests, responses = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, responses


def _end_with_the_parent() -> None:
    """Ask the system to kill this process when its parent dies: during a hanging call it reads no end of input."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class _FreshStart(BaseException):
    """A reset was requested: another process must answer it."""


class _FreshAdapter:
    """The adapter of one case: it leaves a reset to the next process."""

    def __init__(self, adapter: CabiAdapter) -> None:
        self._adapter = adapter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapter, name)

    def session_reset(self, **_: Any) -> NoReturn:
        raise _FreshStart


class _Remembered:
    """The requests; it remembers the last one."""

    def __init__(self, requests: BinaryIO) -> None:
        self._requests = requests
        self.last = b""

    def __iter__(self) -> Iterator[bytes]:
        while line := self._requests.readline():
            self.last = line
            yield line


def _serve_in_forks(options: CabiOptions, files: Files, requests: BinaryIO, responses: BinaryIO) -> int:
    """Run each case in a child process; return, or end by a signal, as the last child did."""
    due: int | None = None
    while True:
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reading)
            _end_with_the_parent()
            _serve_case(options, files, requests, responses, due, writing)
        os.close(writing)
        message = os.read(reading, 64)
        os.close(reading)
        _, status = os.waitpid(process, 0)
        if message:
            due = int(message)
            continue
        if os.WIFSIGNALED(status):
            _end_by(os.WTERMSIG(status))
        return os.waitstatus_to_exitcode(status)


def _serve_case(
    options: CabiOptions, files: Files, requests: BinaryIO, responses: BinaryIO, due: int | None, tell: int
) -> NoReturn:
    """Answer the pending reset, then requests up to the next reset, whose id goes to the parent process."""
    adapter = _FreshAdapter(_adapter(options, files))
    if due is not None:
        adapter.hello()  # removes the methods that it declares unsupported
        answer = {"jsonrpc": "2.0", "id": due, "result": {"returned": {}}}
        responses.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
        responses.flush()
    remembered = _Remembered(requests)
    code = 1
    try:
        code = serve(adapter, remembered, responses)  # type: ignore[arg-type]
    except _FreshStart:
        os.write(tell, str(json.loads(remembered.last)["id"]).encode())
        code = 0
    os._exit(code)


def _end_by(number: int) -> NoReturn:
    """End this process by a signal, so that the suite sees it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
