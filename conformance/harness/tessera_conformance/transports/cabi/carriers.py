"""A loaded C library, and the values of its functions: parameters as arguments, out pointers as results."""

from __future__ import annotations

import ctypes
import json
import mmap
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from operator import itemgetter
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tessera_conformance.adapter import MalformedAnswer, NotSupported, Refusal, stop_of
from tessera_conformance.interface import (
    ABSENT,
    SESSION,
    CFunction,
    Form,
    Input,
    Output,
    c_functions,
    declarations,
)
from tessera_conformance.schemas import first_problem
from tessera_conformance.tensors import to_wire

# The C function that a process was executing when it ended: a record in a file that it shares with the suite's process.
#
# One byte says whether the function had returned; its name follows.


RECORD_BYTES = 64
INSIDE, RETURNED = b"\1", b"\2"


def create_record(folder: Path) -> Path:
    """Return the path of an empty record in a folder."""
    path = folder / "call"
    path.write_bytes(bytes(RECORD_BYTES))
    return path


def opened_record(path: str) -> mmap.mmap:
    """Return the record for writing."""
    with open(path, "r+b") as file:
        return mmap.mmap(file.fileno(), RECORD_BYTES)


def last_call(path: Path) -> str:
    """Return ` in tessLaunch`, ` after tessLaunch had returned`, or "" if no function was called."""
    try:
        record = path.read_bytes()
    except OSError:
        return ""
    name = record[1:].partition(b"\0")[0].decode(errors="replace")
    if record[:1] == INSIDE:
        return f" in {name}"
    return f" after {name} had returned" if record[:1] == RETURNED else ""


# The declarations of a library's functions in the form that cffi loads without parsing C.
#
# Parsing takes a third of the start of a process with a library, so the suite's process does it once for all.


def create_types(folder: Path, exported: Collection[str]) -> Path:
    """Write the declarations of the functions of the runtime and of exported extensions into a folder."""
    path = folder / "c_types.py"
    path.write_bytes(_compiled_types(frozenset(exported)))
    return path


@cache
def _compiled_types(exported: frozenset[str]) -> bytes:
    from cffi import FFI  # the process that loads a library does not need it

    ffi = FFI()
    ffi.cdef(declarations(exported))
    ffi.set_source("c_types", None)
    with TemporaryDirectory(prefix="tessera-types-") as folder:
        return Path(ffi.compile(folder)).read_bytes()


# A loaded C library: its functions, from its table (`tessGetApi`) or its exports, and the results of calls.
#
# Only the process that `child.py` starts loads it, never that of the suite: a crash ends this process only.


TABLE = "tessGetApi"
FIRST_CAPACITY = 1 << 16
"""The size of the first buffer for a library that reports the size it needs."""
LARGEST_ANSWER = 256 << 20


class Library:
    """The functions of the library at `path`, by name, with the types of a file of `c_types`.

    Raises `OSError`: it cannot be loaded.
    """

    def __init__(self, path: str, types: str, record: mmap.mmap) -> None:
        self.ffi = run_path(types)["ffi"]
        self._record = record
        exported, library = ctypes.CDLL(path), self.ffi.dlopen(path)
        table = library.tessGetApi() if hasattr(exported, TABLE) else self.ffi.NULL
        in_table = [function.name for function in c_functions().values() if table and not function.extension]
        names = {*(function.name for function in c_functions().values()), *SESSION}.difference(in_table)
        self._callables: dict[str, Callable[..., int]] = {
            name: getattr(library, name) for name in names if hasattr(exported, name)
        }
        self._callables |= {name: entry for name in in_table if (entry := self._entry(table, name))}
        self._records = {name: INSIDE + name.encode().ljust(RECORD_BYTES - 1, b"\0") for name in self._callables}
        self._buffer = self.ffi.new("char[]", FIRST_CAPACITY)

    def has(self, name: str) -> bool:
        """True if the library has a function."""
        return name in self._callables

    def _entry(self, table: Any, name: str) -> Callable[..., int] | None:
        """Return an entry of the table; None, or NULL, if it has none."""
        end = self.ffi.offsetof("tessApi", name) + self.ffi.sizeof("void*")
        return getattr(table, name) if end <= table.struct_size else None

    def call(self, name: str, arguments: Sequence[Any]) -> int:
        """Return the status of a function; the record names it while it runs, in case the process ends there."""
        function = self._callables[name]
        self._record[:RECORD_BYTES] = self._records[name]
        status = function(*arguments)
        self._record[:1] = RETURNED
        return status

    def call_for_bytes(self, name: str, arguments: Sequence[Any]) -> tuple[int, bytes]:
        """Return the status and the bytes written through `out, capacity, needed`; retry with a buffer of `needed`.

        Raises `MalformedAnswer`: it needs more each time, or more than the limit of an answer.
        """
        buffer, capacity = self._buffer, FIRST_CAPACITY
        needed = self.ffi.new("size_t*")
        for _ in range(4):
            status = self.call(name, (*arguments, buffer, capacity, needed))
            if status != 0:
                return status, b""
            if needed[0] <= capacity:
                return status, bytes(self.ffi.buffer(buffer, needed[0]))
            if needed[0] > LARGEST_ANSWER:
                raise MalformedAnswer(
                    f"{name} says that it needs {needed[0]} bytes; an answer has {LARGEST_ANSWER} at most"
                )
            capacity = needed[0]
            buffer = self.ffi.new("char[]", capacity)
        raise MalformedAnswer(f"{name} needed more than {capacity} bytes, and more again when it was given them")

    def call_for_text(self, name: str, arguments: Sequence[Any]) -> tuple[int, str]:
        """Return the status and the text written the same way, which ends with a NUL."""
        status, data = self.call_for_bytes(name, arguments)
        return status, data.partition(b"\0")[0].decode(errors="replace")


# The C arguments of a function from the parameters of its method, and the result from its out pointers.
#
# The declaration determines both (`interface`): this module has no code for single functions.


Arguments = tuple[Any, ...]
"""C values of one or two parameters; they own what they point to."""
Carrier = Callable[[Mapping[str, Any]], Arguments]
"""Returns the C values of one parameter from all parameters of a request, by name."""


class OutPointer(NamedTuple):
    """An output: the C type of its out pointer, the function that reads it, and its result for NULL."""

    name: str
    c_type: Any
    read: Callable[[Any], Any]
    null: Any


class CMethod:
    """A method of the protocol, answered by one C function."""

    def __init__(self, library: Library, function: CFunction) -> None:
        self._library, self._ffi = library, library.ffi
        self._name = function.name
        *others, last = function.positions or (None,)
        self._buffered = last.form if isinstance(last, Output) and last.form in ("data", "text", "json") else None
        self._output = last.name if isinstance(last, Output) else ""
        self._steps: list[Carrier | OutPointer] = []
        before = None
        for position in others if self._buffered else function.positions:
            if isinstance(position, Output):
                self._steps.append(_out_pointer(self._ffi, position))
            else:
                self._steps.append(_carrier(self._ffi, position, before if not function.extension else None))
                before = position.name

    def __call__(self, *, null: Sequence[str] = (), **request: Any) -> Any:
        """Return the result; outputs named in `null` are NULL pointers, and 0 in the result.

        Raises `Refusal`: the status is not TESS_OK; `NotSupported`: an argument has no C value; or `MalformedAnswer`:
        the library's output makes no result.
        """
        arguments: list[Any] = []
        pointers: list[tuple[OutPointer, Any]] = []
        for step in self._steps:
            if isinstance(step, OutPointer):
                pointer = self._ffi.NULL if step.name in null else self._ffi.new(step.c_type)
                pointers.append((step, pointer))
                arguments.append(pointer)
            else:
                arguments.extend(step(request))
        if self._buffered:
            return self._through_a_buffer(arguments)
        status = self._library.call(self._name, arguments)
        if status != 0:
            raise stopped(self._library, self._name, status)
        return {output.name: output.read(pointer) if pointer else output.null for output, pointer in pointers}

    def _through_a_buffer(self, arguments: Sequence[Any]) -> Any:
        """Return the result of a function that writes text, data or JSON into a buffer."""
        if self._buffered == "data":
            status, data = self._library.call_for_bytes(self._name, arguments)
            answer: Any = {self._output: data.hex()}
        else:
            status, text = self._library.call_for_text(self._name, arguments)
            answer = {self._output: text} if self._buffered == "text" else text
        if status != 0:
            raise stopped(self._library, self._name, status)
        return decoded(self._name, answer) if self._buffered == "json" else answer


def stopped(library: Library, name: str, status: int) -> Refusal | NotSupported:
    """Return the outcome of a status other than TESS_OK: that of `tessxOutcome`, else the status and the last error."""
    names: Mapping[int, str] = library.ffi.typeof("tessStatus_t").elements
    code = names.get(status, f"the status {status}, which is none of tessStatus_t")
    return _outcome(library, code) or Refusal(code, "call", _last_error(library) or f"{name} gave {code}")


def _last_error(library: Library) -> str:
    if not library.has("tessxLastError"):
        return ""
    status, text = library.call_for_text("tessxLastError", ())
    return text if status == 0 else ""


def _outcome(library: Library, code: str) -> Refusal | NotSupported | None:
    """Return the outcome that `tessxOutcome` reports for the failed call, if it agrees with the status.

    A code that is no status agrees with TESS_ERR_INVALID_VALUE, and an unsupported feature with TESS_ERR_UNSUPPORTED.
    """
    if not library.has("tessxOutcome"):
        return None
    status, text = library.call_for_text("tessxOutcome", ())
    if status != 0:
        return None
    outcome = decoded("tessxOutcome", text)
    if first_problem("tessera:protocol/messages", "outcome", outcome) is not None or "returned" in outcome:
        raise MalformedAnswer(f"tessxOutcome gave no outcome of a call that failed: {text[:120]!r}")
    reported = stop_of(outcome)
    if isinstance(reported, NotSupported):
        return reported if code == "TESS_ERR_UNSUPPORTED" else None
    assert reported is not None  # the outcome is valid, and not `returned`
    statuses = library.ffi.typeof("tessStatus_t").relements
    stated = reported.outcome.code
    return reported if code == (stated if stated in statuses else "TESS_ERR_INVALID_VALUE") else None


def decoded(name: str, text: str) -> dict[str, Any]:
    """Return the JSON object that a function wrote. Raises `MalformedAnswer`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedAnswer(f"{name} gave no JSON: {error}: {text[:120]!r}") from None
    if not isinstance(value, dict):
        raise MalformedAnswer(f"{name} gave no JSON object: {text[:120]!r}")
    return value


def _type(parameter: str) -> str:
    """Return the type in `const char* name`."""
    return parameter.rpartition(" ")[0]


# Inputs


def _carrier(ffi: Any, position: Input, before: str | None) -> Carrier:
    """Return the carrier of an input; the length of the input `before` is the value of an omitted integer."""
    c_type, name = _type(position.parameters[0]), position.name
    read = _reader(ffi, position.form, c_type)
    sized = len(position.parameters) == 2
    zeros: Mapping[Form, Any] = {"integer": ABSENT, "bool": 0, "number": 0}
    absent = (ffi.NULL, 0) if sized else (zeros.get(position.form, ffi.NULL),)

    def carry(request: Mapping[str, Any]) -> Arguments:
        if name not in request:
            return (ffi.cast(c_type, _length(request.get(before))),) if before is not None else absent
        value = request[name]
        try:
            carried = read(value)
            return (carried, _length(value)) if sized else (carried,)
        except (TypeError, ValueError, KeyError, AttributeError):
            raise NotSupported(f"{name} = {value!r}: in C it is a {c_type}") from None

    return carry


def _length(value: Any) -> int:
    """Return the number of items of a list, or of bytes in hexadecimal digits; 0 of a pointer."""
    if isinstance(value, str):
        return len(value) // 2
    return len(value) if isinstance(value, list) else 0


def _reader(ffi: Any, form: Form, c_type: str) -> Callable[[Any], Any]:
    """Return the function that converts a value of the protocol to its C value."""

    def memory(value: Any) -> Any:
        return ffi.cast("void*", value) if isinstance(value, int) else ffi.new("char[]", bytes.fromhex(value))

    match form:
        case "handle" | "pointer":
            return lambda value: ffi.cast("void*", value)
        case "integer":
            return lambda value: ffi.cast(c_type, value)
        case "bool":
            return lambda value: int(bool(value))
        case "number":
            return float
        case "text":
            return _or_null(ffi, lambda value: ffi.new("char[]", value.encode("utf-8", "surrogatepass")))
        case "data" | "memory":
            return _or_null(ffi, memory)
        case "integers":
            return _or_null(ffi, lambda value: ffi.new("int[]", [int(ffi.cast("int", number)) for number in value]))
        case "structure":
            return _structure(ffi, c_type)
        case "json":
            return lambda value: ffi.new("char[]", json.dumps(to_wire(value, None), separators=(",", ":")).encode())


def _or_null(ffi: Any, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: ffi.NULL if value is None else read(value)


def _structure(ffi: Any, c_type: str) -> Callable[[Any], Any]:
    """Return the function that makes a structure, or the pointer to one."""
    by_value = not c_type.endswith("*")
    bare = c_type.removeprefix("const ").rstrip("*").strip()
    members = dict(ffi.typeof(bare).fields)

    def read(value: Any) -> Any:
        if value is None and not by_value:
            return ffi.NULL
        data = ffi.new(f"{bare}*", {name: _fitted(ffi, members[name].type, member) for name, member in value.items()})
        return data[0] if by_value else data

    return read


def _fitted(ffi: Any, kind: Any, value: Any) -> Any:
    """Return a number converted to the C type of its member; of an array, each element."""
    if kind.kind == "array":
        return [int(ffi.cast(kind.item, number)) for number in value]
    return int(ffi.cast(kind, value))


# Outputs


def _out_pointer(ffi: Any, output: Output) -> OutPointer:
    """Return the pointer of an output; its value or members are 0 if the pointer is NULL."""
    c_type = ffi.typeof(_type(output.parameters[0]))
    match output.form:
        case "structure":
            zeros = dict.fromkeys((name for name, _ in c_type.item.fields), 0)
            return OutPointer(
                output.name, c_type, lambda pointer: {name: int(getattr(pointer, name)) for name in zeros}, zeros
            )
        case "handle" | "pointer":
            return OutPointer(output.name, c_type, lambda pointer: int(ffi.cast("uintptr_t", pointer[0])), 0)
        case "bool":
            return OutPointer(output.name, c_type, lambda pointer: bool(pointer[0]), 0)
    return OutPointer(output.name, c_type, itemgetter(0), 0)
