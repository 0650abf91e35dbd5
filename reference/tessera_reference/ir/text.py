"""Printing IR in MLIR's generic form (spec section 13.1; AMB-LANG-66: quoted operation names).

At home types read as in the spec, `tensor<128x64xbf16>`. For export they become `!tessera.tensor<128x64xbf16>`, so that
`mlir-opt --allow-unregistered-dialect` takes the text, and every operation carries its location.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..numerics.formats import DType
from .diagnostics import Location
from .module import Function, Instruction, Module, Value
from .operation import AttributeValue
from .types import Type


def print_module(module: Module, *, export: bool = False, locations: bool | None = None) -> str:
    """The text of a module; `locations` defaults to being printed on export only."""
    return _Printer(export, export if locations is None else locations).module(module)


@dataclass(frozen=True)
class _Printer:
    export: bool
    locations: bool

    def module(self, module: Module) -> str:
        lines = ['"builtin.module"() ({'] + ["^bb0:"] * (not module.functions)  # a region has one block, even empty
        for function in module.functions.values():
            lines += self.function(function)
        lines.append(f'}}) {{sym_name = "{module.name}"}} : () -> (){self.place(module.location)}')
        return "\n".join(lines) + "\n"

    def function(self, function: Function) -> list[str]:
        arguments = ", ".join(f"%{value.name}: {self.type(value.type)}" for value in function.parameters)
        signature = f"({self.types(value.type for value in function.parameters)}) -> ({self.types(function.results)})"
        attributes = {"sym_name": function.name, **function.attributes}
        inside = f"{self.attributes(attributes)}, function_type = {signature}"
        returned = ", ".join(f"%{value.name}" for value in function.body.results)
        return [
            '  "tessera.graph.func"() ({',
            f"  ^bb0({arguments}):",
            *(f"    {self.instruction(instruction)}" for instruction in function.body.instructions),
            f'    "tessera.graph.return"({returned}) : ({self.types(function.results)}) -> ()',
            f"  }}) {{{inside}}} : () -> (){self.place(function.location)}",
        ]

    def instruction(self, instruction: Instruction) -> str:
        results = self.names(instruction.results)
        attributes = self.attributes(instruction.operation.attributes)
        inputs = self.types(value.type for value in instruction.operands)
        outputs = self.types(value.type for value in instruction.results)
        return (
            (f"{results} = " if results else "")
            + f'"{instruction.operation.name}"({self.names(instruction.operands)})'
            + (f" {{{attributes}}}" if attributes else "")
            + f" : ({inputs}) -> {outputs if len(instruction.results) == 1 else f'({outputs})'}"
            + self.place(instruction.location)
        )

    def names(self, values: Iterable[Value]) -> str:
        return ", ".join(f"%{value.name}" for value in values)

    def types(self, types: Iterable[Type]) -> str:
        return ", ".join(self.type(type_) for type_ in types)

    def type(self, type_: Type) -> str:
        return f"!tessera.{type_}" if self.export else str(type_)

    def attributes(self, attributes: Mapping[str, AttributeValue]) -> str:
        return ", ".join(f"{name} = {attribute_text(value)}" for name, value in attributes.items())

    def place(self, location: Location) -> str:
        span = location.span
        return f' loc("{_escape(location.filename)}":{span.line}:{span.column})' if self.locations else ""


def attribute_text(value: AttributeValue) -> str:
    """An attribute value as MLIR spells it; a dtype is a string, a float always shows its point."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        mantissa, e, exponent = repr(value).partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent}"
    if isinstance(value, DType):
        return f'"{value.name}"'
    if isinstance(value, tuple):
        return f"[{', '.join(attribute_text(item) for item in value)}]"
    return f'"{_escape(value)}"' if isinstance(value, str) else str(value)


def _escape(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(each if each >= " " else f"\\{ord(each):02X}" for each in escaped)
