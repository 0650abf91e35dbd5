"""From the parameters of a method to the arguments of its C function, and from what its out pointers give to a result.

How follows from the declaration (`interface/published.py`): nothing here knows a function.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from tessera_conformance.adapter import MalformedAnswer, NotSupported, Refusal
from tessera_conformance.interface.published import ABSENT, CFunction, Input, Output
from tessera_conformance.protocol import read_diagnostic
from tessera_conformance.schemas import first_problem
from tessera_conformance.tensors import to_wire
from tessera_conformance.transports.cabi.library import Library

Arguments = tuple[Any, ...]
"""C values of one or two parameters; they own what they point to."""
Carrier = Callable[[Mapping[str, Any]], Arguments]
"""The C values of one parameter of a method, of all that are given by name."""


class OutPointer(NamedTuple):
    """An output: the C type of its out pointer, what the result says of one, and of NULL."""

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
        """The result; outputs named in `null` are NULL pointers, and 0 in the result.

        Raises:
            Refusal: for a status other than TESS_OK.
            NotSupported: an argument cannot be said in C.
            MalformedAnswer: the library gave what no result can be made of.
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
        """A text or data, or the whole result as JSON."""
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
    """Return the outcome of a status other than TESS_OK: of `tessxOutcome`, else the status and the last error."""
    names: Mapping[int, str] = library.ffi.typeof("tessStatus_t").elements
    code = names.get(status, f"the status {status}, which is none of tessStatus_t")
    return _outcome(library, code) or Refusal(code, "call", _last_error(library) or f"{name} gave {code}")


def _last_error(library: Library) -> str:
    if not library.has("tessxLastError"):
        return ""
    status, text = library.call_for_text("tessxLastError", ())
    return text if status == 0 else ""


def _outcome(library: Library, code: str) -> Refusal | NotSupported | None:
    """Return the outcome that `tessxOutcome` gives the call that failed, where it agrees with its status.

    A code that is no status agrees with TESS_ERR_INVALID_VALUE, and what is unsupported with TESS_ERR_UNSUPPORTED.
    """
    if not library.has("tessxOutcome"):
        return None
    status, text = library.call_for_text("tessxOutcome", ())
    if status != 0:
        return None
    outcome = decoded("tessxOutcome", text)
    if first_problem("tessera:protocol/messages", "outcome", outcome) is not None or "returned" in outcome:
        raise MalformedAnswer(f"tessxOutcome gave no outcome of a call that failed: {text[:120]!r}")
    if "unsupported" in outcome:
        return NotSupported(outcome["unsupported"]["feature"]) if code == "TESS_ERR_UNSUPPORTED" else None
    rejected = outcome["rejected"]
    statuses = library.ffi.typeof("tessStatus_t").relements
    if code != (rejected["code"] if rejected["code"] in statuses else "TESS_ERR_INVALID_VALUE"):
        return None
    diagnostics = [read_diagnostic(entry) for entry in rejected.get("diagnostics", ())]
    return Refusal(rejected["code"], rejected["phase"], rejected["message"], diagnostics)


def decoded(name: str, text: str) -> dict[str, Any]:
    """The JSON object that a function gave. Raises `MalformedAnswer`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedAnswer(f"{name} gave no JSON: {error}: {text[:120]!r}") from None
    if not isinstance(value, dict):
        raise MalformedAnswer(f"{name} gave no JSON object: {text[:120]!r}")
    return value


def _type(parameter: str) -> str:
    """The type in `const char* name`."""
    return parameter.rpartition(" ")[0]


# Inputs


def _carrier(ffi: Any, position: Input, before: str | None) -> Carrier:
    """Return the carrier of an input; `before` is the one before it, whose length an optional integer gives."""
    c_type, name = _type(position.parameters[0]), position.name
    read = _READERS[position.form](ffi, c_type)
    sized = len(position.parameters) == 2
    absent = _absent(ffi, position, c_type, sized)

    def carry(request: Mapping[str, Any]) -> Arguments:
        if name not in request:
            return (ffi.cast(c_type, _length(request.get(before))),) if before is not None else absent
        value = request[name]
        try:
            carried = read(value)
            return (carried, len(value) // 2 if isinstance(value, str) else 0) if sized else (carried,)
        except (TypeError, ValueError, KeyError, AttributeError):
            raise NotSupported(f"{name} = {value!r}: in C it is a {c_type}") from None

    return carry


def _absent(ffi: Any, position: Input, c_type: str, sized: bool) -> Arguments:
    if sized:
        return (ffi.NULL, 0)
    if position.form == "integer":
        return (ABSENT,)
    return (0,) if position.form in ("bool", "number") else (ffi.NULL,)


def _length(value: Any) -> int:
    """The items of a list, the bytes of data in hexadecimal digits, 0 of a pointer."""
    if isinstance(value, str):
        return len(value) // 2
    return len(value) if isinstance(value, list) else 0


def _pointer(ffi: Any, c_type: str) -> Callable[[Any], Any]:
    return lambda value: ffi.cast("void*", value)


def _integer(ffi: Any, c_type: str) -> Callable[[Any], Any]:
    return lambda value: ffi.cast(c_type, value)


def _number(ffi: Any, c_type: str) -> Callable[[Any], Any]:
    return float


def _text(ffi: Any, c_type: str) -> Callable[[Any], Any]:
    return lambda value: ffi.NULL if value is None else ffi.new("char[]", value.encode("utf-8", "surrogatepass"))


def _memory(ffi: Any, c_type: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if value is None:
            return ffi.NULL
        return ffi.cast("void*", value) if isinstance(value, int) else ffi.new("char[]", bytes.fromhex(value))

    return read


def _integers(ffi: Any, c_type: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        return ffi.NULL if value is None else ffi.new("int[]", [int(ffi.cast("int", number)) for number in value])

    return read


def _structure(ffi: Any, c_type: str) -> Callable[[Any], Any]:
    """A structure by value, or the pointer to one."""
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
    """A number as its member holds it, cut as C cuts it; of an array, each."""
    if kind.kind == "array":
        return [int(ffi.cast(kind.item, number)) for number in value]
    return int(ffi.cast(kind, value))


def _json(ffi: Any, c_type: str) -> Callable[[Any], Any]:
    return lambda value: ffi.new("char[]", json.dumps(to_wire(value, None), separators=(",", ":")).encode())


_READERS: Mapping[str, Callable[[Any, str], Callable[[Any], Any]]] = {
    "handle": _pointer,
    "pointer": _pointer,
    "integer": _integer,
    "bool": lambda ffi, c_type: lambda value: int(bool(value)),
    "number": _number,
    "text": _text,
    "data": _memory,
    "memory": _memory,
    "integers": _integers,
    "structure": _structure,
    "json": _json,
}


# Outputs


def _out_pointer(ffi: Any, output: Output) -> OutPointer:
    """Return the pointer of an output; a member, or the output itself, is 0 where the pointer is NULL."""
    c_type = ffi.typeof(_type(output.parameters[0]))
    if output.form == "structure":
        members = [name for name, _ in c_type.item.fields]
        return OutPointer(
            output.name,
            c_type,
            lambda pointer: {name: int(getattr(pointer, name)) for name in members},
            dict.fromkeys(members, 0),
        )
    return OutPointer(output.name, c_type, _OUTPUTS.get(output.form, _whole_number)(ffi), 0)


def _address(ffi: Any) -> Callable[[Any], Any]:
    return lambda pointer: int(ffi.cast("uintptr_t", pointer[0]))


def _truth(ffi: Any) -> Callable[[Any], Any]:
    return lambda pointer: bool(pointer[0])


def _whole_number(ffi: Any) -> Callable[[Any], Any]:
    return itemgetter(0)


_OUTPUTS: Mapping[str, Callable[[Any], Callable[[Any], Any]]] = {
    "handle": _address,
    "pointer": _address,
    "bool": _truth,
}
