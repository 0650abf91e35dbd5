"""An instance of every operation, found by trying operand types and attributes of the declared kinds.

So a new operation is printed, read and put to mlir-opt without a word about it here; one that takes nothing of what is
tried says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from types import UnionType
from typing import Any, get_args, get_origin

from tessera_reference.ir.diagnostics import Location, Span
from tessera_reference.ir.operation import (
    OPERATIONS,
    Block,
    Function,
    Instruction,
    Module,
    Operation,
    Refusal,
    Role,
    Shown,
    Unimplemented,
    fields_of,
)
from tessera_reference.ir.types import FunctionType, Future, Layout, Mesh, Scalar, Tensor, Type, Value
from tessera_reference.numerics.formats import DType, dtype

PLACE = Location("dir/a file.tsr", Span(3, 7, 3, 9))
MESHES = {"grid": Mesh(("dp", "tp"), (2, 1))}
FP32, INT32, BOOL = (Scalar(dtype(name)) for name in ("fp32", "int32", "bool"))
TYPES: tuple[Type, ...] = (
    Tensor((4, 4), dtype("fp32"), Layout("blocked", (("bm", 2), ("bn", 2)))),
    Tensor((4, 4), dtype("fp32")),
    Tensor((4,), dtype("fp32")),
    FP32,
    Tensor((4,), dtype("int32")),
    INT32,
    Tensor((4, 4), dtype("bool")),
    BOOL,
    Tensor((4,), dtype("complex64")),
    Tensor((4, 4, 4), dtype("fp32")),
    Tensor((2, 3, 4, 4), dtype("fp32")),
    Future(FP32),
    FunctionType((FP32,), INT32),
)
WORDS = ("dp", "sum", "row_major", "col_major", "f", "float", "max", "g")
LISTS: tuple[tuple[Any, ...], ...] = ((4, 4), (0,), (0, 0), (1, 1), (4,), (1, 0), ("0:2",), ("0:2", "$0"), ())


def example(name: str) -> Module:
    """A module in which a function applies the operation `name`. Raises `LookupError` when no example is found."""
    declared = OPERATIONS[name]
    for types, attributes in _candidates(declared):
        operands = tuple(Value(f"a{i}", type_) for i, type_ in enumerate(types))
        taken = declared.region_arguments(types)
        arguments = [
            tuple(Value(f"p{region}_{i}", type_) for i, type_ in enumerate(takes)) for region, takes in enumerate(taken)
        ]
        try:
            made = _made(declared, types, attributes, tuple(Block(values, (), (), "yield") for values in arguments))
            results = tuple(Value(f"r{i}", type_) for i, type_ in enumerate(made.results()))
        except (Refusal, Unimplemented):
            continue
        regions = tuple(map(_region, arguments, made.region_results()))
        body = Block(operands, (Instruction(made, operands, results, PLACE, regions),), results)
        function = Function("f", body, tuple(value.type for value in results), PLACE)
        return Module("m", {"f": function, "g": _callee()}, PLACE, MESHES)
    raise LookupError(f"no example of {name}: add types or values to try to {__file__}")


def _candidates(declared: type[Operation]) -> Iterator[tuple[tuple[Type, ...], dict[str, Any]]]:
    roles = declared.roles.values()
    fixed = sum(role is Role.OPERAND for role in roles)
    counts = [fixed + more for more in (1, 0, 2)] if Role.OPERANDS in roles else [fixed]
    required = {name: list(_values(declared.hints[name])) for name in declared.required_attributes}
    for count in counts:
        for types in _types(count):
            for values in product(*required.values()):
                yield types, dict(zip(required, values, strict=True))


def _types(count: int) -> Iterator[tuple[Type, ...]]:
    """Equal types first, then two of which one is repeated, then any."""
    yield from ((type_,) * count for type_ in TYPES)
    if count > 1:
        for first, second in product(TYPES, TYPES):
            for at in range(1, count):
                yield (first,) * at + (second,) * (count - at)
    if count == 3:
        yield from product(TYPES, repeat=3)


def _values(kind: Any) -> Sequence[Any]:
    if isinstance(kind, UnionType):
        members = [member for member in get_args(kind) if member is not type(None)]
        return [value for member in members for value in _values(member)][:4]
    if (get_origin(kind) or kind) is tuple:
        return LISTS
    return {int: (0, 1), float: (0.5,), bool: (True,), str: WORDS, DType: (dtype("fp32"), dtype("bf16"))}[kind]


def _region(arguments: tuple[Value, ...], gives: tuple[Type, ...]) -> Block:
    """A block that yields its last arguments, or a constant where it is asked for a bool."""
    if gives != (BOOL,):
        return Block(arguments, (), arguments[len(arguments) - len(gives) :], "yield")
    constant: Any = OPERATIONS["tessera.graph.constant"]
    value = Value("c", BOOL)
    instruction = Instruction(constant(value=True, dtype=dtype("bool")), (), (value,), PLACE)
    return Block(arguments, (instruction,), (value,), "yield")


def _made(
    declared: type[Operation], types: tuple[Type, ...], attributes: dict[str, Any], regions: tuple[Block, ...]
) -> Operation:
    stated = (FP32,) if "constant" in declared.name else None
    meshed = {"mesh": "grid"} if "mesh" in declared.roles else {}
    shown = Shown(types, attributes | meshed, stated, regions, {"g": _callee()}, MESHES)
    make: Any = declared
    made: Operation = make(**fields_of(declared, types), **attributes, **meshed, **declared.hidden(shown))
    return made


def _callee() -> Function:
    x = Value("x", TYPES[0])
    return Function("g", Block((x,), (), (x,)), (x.type,), PLACE)


def numbered(text: str) -> list[str]:
    """The lines of a module's text with the values of each function numbered: they may differ in names only."""
    names: dict[str, str] = {}
    lines = []
    for line in text.splitlines():
        if line.startswith('  "tessera.graph.'):
            names.clear()
        lines.append(re.sub(r"%[\w$.-]+", lambda found: names.setdefault(found[0], f"%{len(names)}"), line))
    return lines
