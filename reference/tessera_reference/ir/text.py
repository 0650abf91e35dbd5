"""Printing IR in MLIR's generic form (spec section 13.1; AMB-LANG-66: quoted operation names).

At home types read as in the spec, `tensor<128x64xbf16>`. For export they become `!tessera.tensor<128x64xbf16>`, so that
`mlir-opt --allow-unregistered-dialect` takes the text. Every operation then carries its location, and a function the
names of its parameters, which other tools do not keep. `text_reader` reads both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .attributes import COMMON_ATTRIBUTES, ByteCount, array_value, attribute_text, string_text
from .diagnostics import Location
from .module import Block, Exit, Function, Instruction, Module, Names, Walk, trampoline
from .operation import AttributeValue
from .type_text import exported
from .types import Type, Value

__all__ = ["attribute_text", "print_module"]

MODULE = "builtin.module"
FUNCTION = "tessera.graph.func"
KERNEL = "tessera.graph.kernel"
DEVICE_KERNELS = {"tile": "tessera.tile.kernel", "target": "tessera.target.kernel"}
"""The name of a device's kernel at each level that has them."""
MESH = "tessera.graph.mesh"
TERMINATORS: Mapping[str, Exit] = {
    "tessera.graph.return": "return",
    "tessera.graph.yield": "yield",
    "tessera.graph.unreachable": "unreachable",
}
"""The operations that end a block, by the way in which it is left."""

DEEPEST_MARGIN = 32
"""Nesting beyond which lines are not indented any further, so that the text grows with the program only."""


def print_module(module: Module, *, export: bool = False, locations: bool | None = None) -> str:
    """The text of a module; `locations` defaults to being printed on export only."""
    return _Printer(export, export if locations is None else locations).module(module)


class _Printer:
    """Prints; within a function, `names` has the name of each value so far."""

    def __init__(self, export: bool, locations: bool) -> None:
        self.export = export
        self.locations = locations
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.free = Names()
        self.known: dict[Type, str] = {}

    def module(self, module: Module) -> str:
        """The whole text."""
        self.lines = ['"builtin.module"() ({']
        if not module.functions and not module.meshes:
            self.lines.append("^bb0:")  # a region has one block, even empty
        for name, mesh in module.meshes.items():
            inside = entries({"sym_name": name, "axes": mesh.axes, "shape": mesh.shape})
            self.lines.append(f'  "{MESH}"() {{{inside}}} : () -> (){self.place(module.location)}')
        for function in module.functions.values():
            trampoline(self.function(function))
        self.lines.append(f"}}) {{{entries({'sym_name': module.name})}}} : () -> (){self.place(module.location)}")
        return "\n".join(self.lines) + "\n"

    def function(self, function: Function) -> Walk[None]:
        """A function or kernel."""
        self.names, self.free = {}, Names()
        kind = DEVICE_KERNELS.get(function.device, KERNEL if function.kernel else FUNCTION)
        self.lines.append(f'  "{kind}"() ({{')
        parameters = [self.define(parameter) for parameter in function.parameters]
        yield self.block(function.body, 2)
        attributes: dict[str, Any] = {"sym_name": function.name, **in_order(function.attributes)}
        if function.defaults:
            of_value = dict(zip(function.parameters, parameters, strict=True))
            attributes["defaults"] = {
                name: array_value(function.defaults[value.name])
                for value, name in of_value.items()
                if value.name in function.defaults
            }
        if self.export:
            attributes["parameters"] = tuple(parameters)
        signature = (
            f"({self.types(parameter.type for parameter in function.parameters)}) -> ({self.types(function.results)})"
        )
        inside = f"{entries(attributes)}, function_type = {signature}"
        self.lines.append(f"  }}) {{{inside}}} : () -> (){self.place(function.location)}")

    def block(self, block: Block, depth: int) -> Walk[None]:
        """The lines of a block: its arguments, which are named, its instructions, and how it is left."""
        margin = "  " * min(depth, DEEPEST_MARGIN)
        if block.arguments:
            arguments = ", ".join(f"%{self.names[value]}: {self.type(value.type)}" for value in block.arguments)
            self.lines.append(f"{margin[2:]}^bb0({arguments}):")
        elif depth == 2:
            self.lines.append(f"{margin[2:]}^bb0():")
        for instruction in block.instructions:
            if instruction.regions:
                yield self.owner(instruction, depth, margin)
            else:
                self.lines.append(f"{margin}{self.head(instruction)}{self.tail(instruction)}")
        name = next(name for name, exit in TERMINATORS.items() if exit == block.exit)
        types = self.types(value.type for value in block.results)
        self.lines.append(f'{margin}"{name}"({self.used(block.results)}) : ({types}) -> ()')

    def owner(self, instruction: Instruction, depth: int, margin: str) -> Walk[None]:
        """An instruction with regions. Its results are named before what is inside, and visible only behind it."""
        self.lines.append(f"{margin}{self.head(instruction)} ({{")
        for position, region in enumerate(instruction.regions):
            if position:
                self.lines.append(f"{margin}}}, {{")
            for argument in region.arguments:
                self.define(argument)
            yield self.block(region, depth + 1)
        self.lines.append(f"{margin}}}){self.tail(instruction)}")

    def head(self, instruction: Instruction) -> str:
        """Results, name and operands."""
        operands = self.used(instruction.operands)
        results = ", ".join(f"%{self.define(result)}" for result in instruction.results)
        return f'{results}{results and " = "}"{instruction.operation.name}"({operands})'

    def tail(self, instruction: Instruction) -> str:
        """Attributes, types and location; those that any operation may carry follow its own."""
        own, common = instruction.operation.attributes, instruction.attributes
        if self.export:  # other tools know no unit of bytes
            own = {name: int(value) if isinstance(value, ByteCount) else value for name, value in own.items()}
        assert not common or own.keys().isdisjoint(common), f"{instruction.operation.name}: an attribute has two values"
        inside = entries({**own, **in_order(common)} if common else own)
        attributes = f" {{{inside}}}" if inside else ""
        inputs = self.types([value.type for value in instruction.operands])
        outputs = self.types([value.type for value in instruction.results])
        outputs = outputs if len(instruction.results) == 1 else f"({outputs})"
        return f"{attributes} : ({inputs}) -> {outputs}{self.place(instruction.location)}"

    def define(self, value: Value) -> str:
        """The name that a value is given."""
        name = self.names[value] = self.free.unique(value.name)
        return name

    def used(self, values: Iterable[Value]) -> str:
        """Values by name; one that nothing has defined, which no verified module has, by a name of its own."""
        return ", ".join([f"%{self.names.get(value) or self.define(value)}" for value in values])

    def types(self, types: Iterable[Type]) -> str:
        """Types between commas."""
        return ", ".join([self.type(type_) for type_ in types])

    def type(self, type_: Type) -> str:
        """A type at home or abroad."""
        text = self.known.get(type_)
        if text is None:
            text = self.known[type_] = exported(type_) if self.export else str(type_)
        return text

    def place(self, location: Location) -> str:
        """Return the printed location of an operation."""
        if not self.locations:
            return ""
        return f" loc({string_text(location.filename)}:{location.span.line}:{location.span.column})"


def entries(attributes: Mapping[str, Any]) -> str:
    """Attributes between commas."""
    return ", ".join([f"{name} = {attribute_text(value)}" for name, value in attributes.items()])


def in_order(attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    """Attributes that any operation may carry in the order of section 5.3, others behind them by name."""
    common = {name: attributes[name] for name in COMMON_ATTRIBUTES if name in attributes}
    return common | {name: attributes[name] for name in sorted(attributes.keys() - common.keys())}
