"""Specialization to input shapes: every dimension becomes an extent (sections 3.1, 11; LANG-03.1-04, -11-02).

Result types are inferred again from the parameters on, through regions and calls; a function that is called with
several shapes becomes several functions. An extent that does not follow from the shapes of the inputs is refused, since
Tile IR has no unknown dimensions (AMB-LANG-49). A slice between computed bounds has one, or a value that changes its
shape in a loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..ir.diagnostics import Location, Rejection
from ..ir.module import Block, Function, Instruction, Module, Walk, fields_of, trampoline
from ..ir.operation import Operation, Refusal, Role, Shown, diagnostic_of
from ..ir.types import Dims, Tensor, Type, Value, fits, substituted
from .choices import is_known

Shape = tuple[int, ...]
Known = dict[Value, Value]
"""The specialized value for each of a function."""


def specialize(module: Module, function: str, input_shapes: Mapping[str, Shape]) -> Module:
    """The module with a function, and what it calls, for parameters of these shapes.

    Parameters that are not named have the shapes of their defaults or types. Functions that it does not call stay as
    they are. Raises `Rejection` with phase lower.
    """
    entry = module.functions[function]
    try:
        types = tuple(_type_of(entry, parameter, input_shapes) for parameter in entry.parameters)
        specialized = specialized_alone(module, {function: types})
    except Refusal as refusal:
        raise lowering_refused(refusal, entry.location) from refusal
    return replace(module, functions={**module.functions, **specialized.functions})


def specialized_alone(module: Module, types: Mapping[str, tuple[Type, ...]]) -> Module:
    """The module with these functions, for parameters of these types, and what they call, and nothing else.

    Raises `Refusal` and `Rejection`.
    """
    specializer = _Specializer(module)
    for function, arguments in types.items():
        trampoline(specializer.function(function, arguments))
    return replace(module, functions=specializer.functions)


def lowering_refused(refusal: Refusal, location: Location) -> Rejection:
    """The rejection for a refusal while lowering, at its location."""
    return Rejection([diagnostic_of(refusal, location, phase="lower")])


def _type_of(function: Function, parameter: Value, shapes: Mapping[str, Shape]) -> Type:
    """The type of a parameter with a given shape."""
    default = function.defaults.get(parameter.name)
    shape = shapes.get(parameter.name, default.shape if default is not None else None)
    if not isinstance(parameter.type, Tensor) or shape is None:
        return parameter.type
    return replace(parameter.type, shape=shape)


class _Specializer:
    """Makes the functions of one specialization; `functions` holds them by name."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.functions: dict[str, Function] = {}
        self._named: dict[tuple[str, tuple[Type, ...]], str] = {}
        self._returned: list[tuple[Type, ...]] = []

    def function(self, name: str, types: tuple[Type, ...]) -> Walk[str]:
        """The name of a function for parameters of these types. Raises `Refusal` and `Rejection`."""
        if (name, types) in self._named:
            return self._named[name, types]
        function = self.module.functions[name]
        dims: dict[str, Any] = {}
        for parameter, type_ in zip(function.parameters, types, strict=True):
            _require_known(f"the parameter {parameter.name}", type_)
            if not fits(parameter.type, type_, dims):
                message = f"{parameter.name} is {type_}"
                raise Refusal("shapes", message, f"{parameter.type}, a name standing for one extent", "LANG-11-03")
        around, self._returned = self._returned, []
        body = yield self._block(function.body, types, {})
        results, self._returned = self._results(function, dims), around
        free = name if name not in self.functions else self._clone(name)
        self._named[name, types] = free
        self.functions[free] = replace(function, name=free, body=body, results=results)
        return free

    def _results(self, function: Function, dims: Dims) -> tuple[Type, ...]:
        """The result types of a function, in which every return now has known extents."""
        for types in self._returned:
            if types != self._returned[0]:
                message = f"@{function.name} returns {_listed(self._returned[0])} and {_listed(types)}"
                raise Refusal("shapes", message, "one shape of each result", "LANG-03.1-04")
        return self._returned[0] if self._returned else tuple(substituted(type_, dims) for type_ in function.results)

    def _clone(self, name: str) -> str:
        names = self.module.functions.keys() | self.functions.keys() | self.module.meshes.keys()
        return next(f"{name}_{count}" for count in range(1, len(names) + 2) if f"{name}_{count}" not in names)

    def _block(self, block: Block, types: tuple[Type, ...], values: Known) -> Walk[Block]:
        """A block whose arguments have these types."""
        for argument, type_ in zip(block.arguments, types, strict=True):
            values[argument] = Value(argument.name, type_)
        instructions = []
        for instruction in block.instructions:
            try:
                instructions.append((yield self._instruction(instruction, values)))
            except Refusal as refusal:
                raise lowering_refused(refusal.by(instruction.operation), instruction.location) from refusal
        results = tuple(values[value] for value in block.results)
        if block.exit == "return":
            self._returned.append(tuple(value.type for value in results))
        return Block(tuple(values[argument] for argument in block.arguments), tuple(instructions), results, block.exit)

    def _instruction(self, instruction: Instruction, values: Known) -> Walk[Instruction]:
        """An instruction on specialized operands. Raises `Refusal`."""
        operation = instruction.operation
        operands = tuple(values[value] for value in instruction.operands)
        types = tuple(value.type for value in operands)
        arguments, regions = type(operation).region_arguments(types), []
        for region, takes in zip(instruction.regions, arguments, strict=True):
            regions.append((yield self._block(region, takes, values)))
        built: Operation = replace(operation, **fields_of(type(operation), types))  # type: ignore[type-var]  # a dataclass
        if operation.calls:
            argument_types = operation.arguments_of_callee(types)
            callee = yield self.function(str(operation.attributes[operation.calls]), argument_types)
            built = replace(built, **{operation.calls: callee})  # type: ignore[type-var]
        if operation.roles.get("returns") is Role.HIDDEN:
            shown = Shown(types, built.attributes, None, tuple(regions), self.functions, self.module.meshes)
            built = replace(built, **type(built).hidden(shown))  # type: ignore[type-var]
        results = built.results()
        for type_ in results:
            _require_known("the result", type_)
        _require_same_shapes(built, regions)
        for value, type_ in zip(instruction.results, results, strict=True):
            values[value] = Value(value.name, type_)
        return replace(
            instruction,
            operation=built,
            operands=operands,
            results=tuple(values[value] for value in instruction.results),
            regions=tuple(regions),
        )


def _require_known(subject: str, type_: Type) -> None:
    if isinstance(type_, Tensor) and not is_known(type_):
        message = f"{subject} is {type_}, of which the inputs do not show a dimension"
        raise Refusal("shapes", message, "extents that are known before Tile IR", "LANG-03.1-04")


def _require_same_shapes(operation: Operation, regions: list[Block]) -> None:
    """Require that regions yield the shapes that their operation states: a loop does not change a shape."""
    for region, gives in zip(regions, operation.region_results(), strict=True):
        yields = tuple(value.type for value in region.results)
        if region.exit == "yield" and yields != gives:
            message = f"a region yields {_listed(yields)}, and {_listed(gives)} is wanted"
            raise Refusal("shapes", message, "values of one shape, however often a loop turns", "LANG-03.1-04")


def _listed(types: tuple[Type, ...]) -> str:
    return f"({', '.join(map(str, types))})"
