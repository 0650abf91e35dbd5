"""The extensions of the C interface, `tessx...`, as methods of the adapter (tessera_ext.h).

Who holds the values in C reads and writes them; here they become the parameters of a method, and its result becomes
what the out pointers get, so that an extension answers what the protocol does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tessera_conformance.adapter import Adapter, Refusal, invoke
from tessera_conformance.interface.published import ABSENT, CFunction, Input, Output, c_functions
from tessera_conformance.protocol import Rejected, Returned, Unsupported, write_outcome
from tessera_conformance.tensors import MalformedTensor, from_wire, to_wire

from ..ir.documents import read_json

__all__ = ["CFunction", "Failed", "Input", "Output", "answer", "extensions"]

NULL = 0


class Failed(Exception):
    """A method did not return a value: its outcome as the protocol has it, and the code and the text of it."""

    def __init__(self, outcome: Mapping[str, Any], code: str, text: str) -> None:
        super().__init__(text)
        self.outcome = outcome
        self.code = code


def extensions() -> Mapping[str, CFunction]:
    """The extensions by their names in C."""
    return {c_function.name: c_function for c_function in c_functions().values() if c_function.extension}


def answer(adapter: Adapter, function: CFunction, inputs: Sequence[Any]) -> list[Any]:
    """Return the outputs of a function: whole numbers, texts and bytes.

    Inputs are whole numbers, texts and bytes, None for NULL. Raises `Failed`.
    """
    try:
        parameters = from_wire(dict(_parameters(function, inputs)))
        outcome = invoke(adapter, function.method.full_name, parameters)
    except Refusal as refusal:
        outcome = refusal.outcome
    except MalformedTensor as malformed:
        outcome = Rejected("TESS_ERR_INVALID_VALUE", "call", f"{function.name}: {malformed}")
    match outcome:
        case Returned(value):
            returned = to_wire(value, None)
            return [_written(position, returned) for position in function.positions if isinstance(position, Output)]
        case Rejected(code, _, message):
            raise Failed(to_wire(write_outcome(outcome), None), code, message)
        case Unsupported(feature):
            raise Failed(write_outcome(outcome), "TESS_ERR_UNSUPPORTED", f"{function.name}: {feature} is not supported")


def _parameters(function: CFunction, inputs: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The parameters that are given, by name. Raises `Refusal`."""
    declared = [position for position in function.positions if isinstance(position, Input)]
    for parameter, value in zip(declared, inputs, strict=True):
        left_out = (
            value is None
            or (parameter.form == "integer" and value == ABSENT)
            or (parameter.form == "handle" and not value)
        )
        if not (parameter.optional and left_out):
            yield parameter.name, _read(function.name, parameter, value)


def _read(function: str, declared: Input, value: Any) -> Any:
    match declared.form:
        case "data":
            return (value or b"").hex()
        case "bool":
            return bool(value)
        case "json" if value is not None:
            try:
                return read_json(value)
            except ValueError as error:
                text = f"{function}: {declared.name} is {value!r:.100}, no JSON ({error}); expected a JSON text"
                raise Refusal("TESS_ERR_INVALID_VALUE", "call", text) from None
    return value


def _written(declared: Output, returned: Mapping[str, Any]) -> Any:
    match declared.form:
        case "json":
            return json.dumps(returned, separators=(",", ":"))
        case "data":
            return bytes.fromhex(returned[declared.name])
    return returned[declared.name]
