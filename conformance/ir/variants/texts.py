"""Other texts of IR: names of values, white space, comments, order of attributes, names of loops (sections 1, 13)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from unittest import mock

from tessera_conformance.strength import altered, varies
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.adapter import language as adapter_language
from tessera_reference.adapter import messages as adapter_levels
from tessera_reference.ir import text
from tessera_reference.ir.attributes import string_text
from tessera_reference.ir.diagnostics import Location
from tessera_reference.ir.operation import Function, Module
from tessera_reference.ir.types import ROW_MAJOR, Tensor, Value

TEXTS = (
    *(f"ir/{room}/*" for room in ("annotations", "collectives", "constants", "control-flow", "declarations")),
    *(f"ir/{room}/*" for room in ("directives", "fuzz", "graph-ir", "indexing", "ir-text", "kernels", "layouts")),
    *(f"ir/{room}/*" for room in ("ir-modules", "printed-ir")),
    *(f"collectives/{room}/*" for room in ("futures", "futures-as-values", "send-recv-refusals")),
    *(f"ir/{room}/*" for room in ("levels", "meshes", "profiles", "schedule", "target", "tile", "types")),
    "abi/module-images/*",
    "runtime/explain/*",
)
"""Cases that read IR."""

PRINTED, MESSAGE = text.print_module, adapter_levels.function_message
PRINTER: Any = text._Printer
SHOWN = Tensor.__str__
FUNCTION = PRINTER.function


def prefixed(printer: Any, value: Value) -> str:
    """A name of its own, but for parameters, by whose names a function is called."""
    computed = len(printer.names) >= printer.parameters
    name = printer.names[value] = printer.free.unique(f"v.{value.name}" if computed else value.name)
    return str(name)


def counting(printer: Any, function: Function) -> Any:
    """Print a function, knowing how many parameters it has."""
    printer.parameters = len(function.parameters)
    return FUNCTION(printer, function)


def in_messages(function: Function) -> dict[str, Any]:
    """A function whose values have the same names."""
    found = MESSAGE(function)
    own = {f"%{value.name}" for value in function.parameters}
    for operation in found["operations"]:
        for part in ("operands", "results"):
            operation[part] = [name if name in own else f"%v.{name[1:]}" for name in operation[part]]
    return found


NAMES = altered(
    "LANG-01-03",
    "has names of its own for what a function computes",
    TEXTS,
    ReferenceAdapter,
    (PRINTER, "define", prefixed),
    (PRINTER, "function", counting),
    (adapter_language, "function_message", in_messages),
    name="value_names",
)


def backwards(attributes: Mapping[str, Any]) -> str:
    """Attributes from the last to the first, with room between them."""
    return " ,  ".join(f"{name}  =  {text.attribute_text(value)}" for name, value in [*attributes.items()][::-1])


def spacious(module: Module, **options: Any) -> str:
    """The text with comments, empty lines, tabs and margins of its own."""
    lines = PRINTED(module, **options).splitlines()
    return "// a module\n\n" + "".join(f"\t {line.lstrip()}   // %0 = comment {{\n\n" for line in lines)


SPACE = altered(
    "LANG-13.1-04",
    "prints IR with comments, empty lines and tabs, and attributes backwards",
    TEXTS,
    ReferenceAdapter,
    (text, "entries", backwards),
    (adapter_language, "print_module", spacious),
    name="white_space",
)


def place_of(printer: Any, location: Location) -> str:
    """Return the place of an operation in the program, as a text with locations shows it."""
    return f" loc({string_text(location.filename)}:{location.span.line}:{location.span.column})"


def located(module: Module, **options: Any) -> str:
    """The text with the place of each operation in the program."""
    with mock.patch.object(PRINTER, "place", place_of):
        return PRINTED(module, **options)


LOCATIONS = altered(
    "LANG-01-04",
    "prints the location of every operation",
    TEXTS,
    ReferenceAdapter,
    (adapter_language, "print_module", located),
    name="locations",
)


def with_layout(type_: Tensor) -> str:
    """A tensor type that always states its layout."""
    shown = SHOWN(type_)
    return shown if type_.layout != ROW_MAJOR else f"{shown[:-1]}; layout=row_major>"


LAYOUTS = altered(
    "AMB-LANG-67",
    "prints the layout of a tensor type where it is the default, too",
    TEXTS,
    ReferenceAdapter,
    (Tensor, "__str__", with_layout),
    name="layouts",
)


@varies("AMB-LANG-85", "calls branches and loops by names of its own", *TEXTS)
class OwnControl(ReferenceAdapter):
    """Reads its own names alone."""

    own: Mapping[str, str] = {"if": "branch", "for": "count", "while": "repeat"}

    def translated(self, written: str, names: Mapping[str, str]) -> str:
        """A text or name with other names."""
        return re.sub(r"(?<=tessera\.graph\.)(\w+)", lambda found: names.get(found[1], found[1]), written)

    def language_lower(self, **arguments: Any) -> dict[str, Any]:
        """The IR, in its own names."""
        answer = super().language_lower(**arguments)
        for function in answer["functions"]:
            for operation in function["operations"]:
                operation["name"] = self.translated(operation["name"], self.own)
        return answer | {"text": self.translated(answer["text"], self.own)}

    def language_verify_ir(self, *, text: str, **arguments: Any) -> dict[str, Any]:
        """The warnings of a text."""
        return self.of_own(super().language_verify_ir, text, **arguments)

    def language_execute_ir(self, *, text: str, **arguments: Any) -> dict[str, Any]:
        """The results of a text."""
        return self.of_own(super().language_execute_ir, text, **arguments)

    def of_own(self, call: Callable[..., dict[str, Any]], written: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer to a text in the implementation's own names."""
        return call(text=self.translated(written, {own: usual for usual, own in self.own.items()}), **arguments)
