"""The process that loads a C library and serves it: its methods, host memory, and the objects that a case leaves."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, NoReturn

from tessera_conformance.adapter import MalformedAnswer, NotSupported, Refusal
from tessera_conformance.interface import c_functions
from tessera_conformance.server import serve
from tessera_conformance.transports.cabi.carriers import CMethod, Library, decoded, opened_record, stopped
from tessera_conformance.transports.cabi.options import CabiOptions, constants, laid_over

# Host memory of the process that loads the library: allocated, read and written here, without the library.
#
# A guard page without access follows it, so that a library that writes far beyond its end crashes.


LARGEST = 1 << 32
ALIGNMENT = 16
"""The alignment in bytes; the guard page starts within this many bytes of the buffer's end."""
_libc = ctypes.CDLL(None)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class HostMemory:
    """Host memory of this process, and blocks of `tessHostAlloc`, which are read and written the same way."""

    def __init__(self) -> None:
        self._pages: dict[int, mmap.mmap] = {}
        self._sizes: dict[int, int] = {}

    def allocate(self, count: int) -> int:
        """Return the address of `count` zero bytes. Raises `Refusal`."""
        if not 0 <= count <= LARGEST:
            self._refuse(f"tessxHostMemory: bytes = {count}: allowed: 0 to {LARGEST}", "TESS_ERR_OUT_OF_MEMORY")
        reserved = -(-max(count, 1) // ALIGNMENT) * ALIGNMENT
        pages = -(-reserved // mmap.PAGESIZE) * mmap.PAGESIZE
        try:
            memory = mmap.mmap(-1, pages + mmap.PAGESIZE, mmap.MAP_PRIVATE)
        except OSError:
            self._refuse(f"tessxHostMemory: no memory for {count} bytes", "TESS_ERR_OUT_OF_MEMORY")
        end = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + pages
        _libc.mprotect(end, mmap.PAGESIZE, 0)
        self._pages[end - reserved], self._sizes[end - reserved] = memory, count
        return end - reserved

    def add(self, address: int, count: int) -> None:
        """Record memory that the library allocated."""
        self._sizes[address] = count

    def remove(self, address: int) -> None:
        """Forget memory that the library has freed."""
        if address not in self._pages:
            self._sizes.pop(address, None)

    def forget(self) -> None:
        """Free all memory of this process, and forget the library's."""
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
    def _refuse(text: str, code: str = "TESS_ERR_INVALID_VALUE") -> NoReturn:
        raise Refusal(code, "call", text)


# The live objects of a case: a library without `tessxReset` gets calls that end them in a legal order.
#
# First every stream is synchronized, so that no queued work uses freed memory. Then events, streams, memory, modules
# and meshes end, and contexts last: no library is asked to end an object that still has parts (AMB-RT-50). Kernels end
# with their modules, and profilers with their contexts: stopping one would write a file.


Method = Callable[..., Any]
Note = Callable[[Mapping[str, Any], Mapping[str, Any]], None]
"""Records a call that succeeded, by its arguments and its result."""


@dataclass(frozen=True)
class Kind:
    """A kind of object: the functions that create and end one, the parameter that names it, and that of its owner.

    The call that creates an event or host memory does not name its context: any may own it.
    """

    made_by: str
    ended_by: str
    name: str
    owner: str = ""


KINDS = (
    Kind("tessEventCreate", "tessEventDestroy", "event", "context"),
    Kind("tessStreamCreate", "tessStreamDestroy", "stream", "mesh"),
    Kind("tessMalloc", "tessFree", "devPtr", "mesh"),
    Kind("tessHostAlloc", "tessHostFree", "hostPtr", "context"),
    Kind("tessModuleLoad", "tessModuleUnload", "module", "context"),
    Kind("tessMeshCreate", "tessMeshDestroy", "mesh", "context"),
    Kind("tessInit", "tessShutdown", "context"),
)
"""In the order in which objects are ended."""


class LiveObjects:
    """The live objects of a library, by kind, each with its owner; an owned object ends with its owner.

    An object that several calls returned ends with the last of as many calls that end it: a library may have one
    context for all (AMB-RT-71).
    """

    def __init__(self) -> None:
        self._owners: dict[str, dict[int, int]] = {kind.name: {} for kind in KINDS}
        self._uses: Counter[tuple[str, int]] = Counter()

    def notes(self) -> Iterator[tuple[str, Note]]:
        """Yield the methods that create or end an object, each with the note to be made of its successes."""
        for kind in KINDS:
            yield f"runtime_{kind.made_by}", partial(self._made, kind)
            yield f"runtime_{kind.ended_by}", partial(self._ended, kind)

    def _made(self, kind: Kind, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        if handle := result[kind.name]:
            self._owners[kind.name][handle] = arguments.get(kind.owner, 0)
            self._uses[kind.name, handle] += 1

    def _ended(self, kind: Kind, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        handle = arguments[kind.name]
        self._uses[kind.name, handle] -= 1
        if self._uses[kind.name, handle] <= 0:
            self._forget(kind, handle)

    def _forget(self, kind: Kind, handle: int) -> None:
        """Forget an object and all that it owns, or may own."""
        self._owners[kind.name].pop(handle, None)
        del self._uses[kind.name, handle]
        for part in KINDS:
            if part.owner == kind.name:
                for child in [child for child, owner in self._owners[part.name].items() if owner in (handle, 0)]:
                    self._forget(part, child)

    def forget(self) -> None:
        """Forget all objects."""
        for owners in self._owners.values():
            owners.clear()
        self._uses.clear()

    def end(self, methods: Mapping[str, Method]) -> None:
        """End all objects by these methods of the library.

        Raises `Refusal`: an object could not be ended, so that the process must be restarted.
        """
        for stream in self._owners["stream"]:
            _ask(methods, "tessStreamSynchronize", stream=stream)  # an error of its queued work does not matter here
        for kind in KINDS:
            for handle, owner in reversed(list(self._owners[kind.name].items())):
                arguments = {"mesh": owner} if kind.ended_by == "tessFree" else {}
                asked = (
                    _ask(methods, kind.ended_by, **arguments, **{kind.name: handle})
                    for _ in range(self._uses[kind.name, handle])
                )
                if refusal := next(filter(None, asked), None):
                    raise Refusal(refusal.outcome.code, "call", f"{kind.ended_by}, to clean up: {refusal}")
        self.forget()


def _noting(method: Method, note: Note) -> Method:
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


FUNCTIONS = {method.replace(".", "_", 1): function for method, function in c_functions().items()}
"""The functions that a library may have, by the name of their method in an adapter."""
HEADER = "c-abi"
"""The feature of implementations with a readable header."""
HOST_MEMORY = "host-memory"
"""The feature of methods that the process provides for every library."""


class CabiAdapter:
    """Answers with a library's functions; `types` and `record` are the files of `create_types` and `create_record`."""

    def __init__(self, options: CabiOptions, types: str, record: str) -> None:
        self._library = library = Library(options.library, types, opened_record(record))
        self._name = options.name
        self._description = dict(options.description)
        header, devices = options.header, self._description.pop("devices", None)
        self._memory = HostMemory()
        self._live = LiveObjects()
        self._methods: dict[str, Method] = {
            name: CMethod(library, function) for name, function in FUNCTIONS.items() if library.has(function.name)
        }
        if devices is not None:
            self._methods.setdefault("runtime_tessxDevices", lambda **_: {"devices": devices})
        if header is not None:
            self._methods["abi_header"] = lambda **_: {"text": header}
            self._methods["abi_constants"] = lambda **_: {"constants": constants(header)}
        notes: list[tuple[str, Note]] = [
            *self._live.notes(),
            ("runtime_tessHostAlloc", lambda given, result: self._memory.add(result["hostPtr"], given["bytes"])),
            ("runtime_tessHostFree", lambda given, result: self._memory.remove(given["hostPtr"])),
        ]
        for name, note in notes:
            if name in self._methods:
                self._methods[name] = _noting(self._methods[name], note)
        vars(self).update(self._methods)  # where `invoke` looks first

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
        for name, function in FUNCTIONS.items():
            if isinstance(capabilities, dict) and capabilities.get(function.method.feature) == "unsupported":
                self._methods.pop(name, None)
                vars(self).pop(name, None)

    def _features(self) -> list[str]:
        """Return the features all of whose methods exist."""
        missing = {function.method.feature for name, function in FUNCTIONS.items() if name not in self._methods}
        features = {function.method.feature for function in FUNCTIONS.values()} - missing
        derived = [feature for feature in features if feature and "{" not in feature]
        return sorted([*derived, HOST_MEMORY, *([HEADER] if "abi_header" in self._methods else [])])

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

    def runtime_tessxHostMemory(self, *, bytes: int, **_: Any) -> dict[str, Any]:  # noqa: N802
        """Return the address of so many zero bytes."""
        return {"hostPtr": self._memory.allocate(bytes)}

    def runtime_tessxHostRead(self, *, hostPtr: int, bytes: int, **_: Any) -> dict[str, Any]:  # noqa: N802, N803
        """Return bytes of memory."""
        return {"data": self._memory.read(hostPtr, bytes).hex()}

    def runtime_tessxHostWrite(self, *, hostPtr: int, data: str, **_: Any) -> dict[str, Any]:  # noqa: N802, N803
        """Write bytes into memory."""
        self._memory.write(hostPtr, bytes.fromhex(data))
        return {}


# The process that loads the library and serves the line protocol: `python -m ...child OPTIONS TYPES CALL_RECORD`.
#
# The protocol has descriptors of its own. The library's standard input is empty, and its standard output goes to
# standard error. The process ends when its parent ends.


PR_SET_PDEATHSIG = 1


def main(line: str, types: str, record: str) -> int:
    """Serve the library until the session is closed."""
    options = CabiOptions(**json.loads(line))
    requests, responses = _own_descriptors()
    _end_with_the_parent()
    return serve(CabiAdapter(options, types, record), requests, responses)


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


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
