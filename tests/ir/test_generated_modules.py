"""Modules that nobody wrote: they verify, print, and read as they are printed; a changed text is read or refused.

A module is grown by choosing operations for the values that are visible, regions in regions included.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tessera_reference.graph.collectives import AllReduce
from tessera_reference.graph.constant import Constant
from tessera_reference.graph.control import Assert, Barrier, Call, Directive, For, If, While
from tessera_reference.graph.elementwise import Add, Equal, Negate
from tessera_reference.graph.movement import Transpose
from tessera_reference.graph.reductions import Softmax, Sum
from tessera_reference.ir.diagnostics import Location, Rejection, Span, UnsupportedConstruct
from tessera_reference.ir.module import Block, Function, Instruction, Module
from tessera_reference.ir.operation import Operation, Refusal
from tessera_reference.ir.text import print_module
from tessera_reference.ir.text_reader import read_module, read_modules
from tessera_reference.ir.types import Layout, Mesh, Scalar, Tensor, Type, Value, fits, marked
from tessera_reference.ir.verifier import verify
from tessera_reference.numerics.formats import dtype

BOOL, INT32, FP32 = (Scalar(dtype(name)) for name in ("bool", "int32", "fp32"))
TYPES: tuple[Type, ...] = (
    FP32,
    INT32,
    Tensor((4, 3), dtype("fp32")),
    Tensor(("?", "D"), dtype("bf16")),
    Tensor(("?", "?"), dtype("fp64"), Layout("col_major")),
)
MESHES = {"g": Mesh(("dp", "tp"), (4, 2))}
DEEPEST = 3


@dataclass
class Growth:
    """One function being grown."""

    draw: Any
    signature: tuple[Type, ...]
    helpers: tuple[Function, ...]
    count: int = 0
    visible: list[Value] = field(default_factory=list)

    def value(self, type_: Type) -> Value:
        self.count += 1
        name = self.draw(st.sampled_from(["", "x", "a.b", "$t", "Y_", "-"])) + str(self.count)
        return Value(name, marked(type_, name))

    def pick(self, type_: Type) -> Value | None:
        found = [value for value in self.visible if value.type == type_]
        return self.draw(st.sampled_from(found)) if found else None

    def block(self, arguments: tuple[Value, ...], depth: int) -> list[Instruction]:
        """Instructions; what they define stays visible until the caller ends the block."""
        self.visible += arguments
        made: list[Instruction] = []
        for _ in range(self.draw(st.integers(0, 4))):
            kinds = [self.constant, self.simple, self.marker, self.call]
            kinds += [self.branch, self.loop, self.repeat] if depth < DEEPEST else []
            kind = self.draw(st.sampled_from(kinds))
            made += kind(depth) if kind in (self.branch, self.loop, self.repeat) else kind()
        return made

    def emit(self, operation: Operation, *operands: Value, **rest: Any) -> Instruction:
        line, column = self.draw(st.integers(1, 9)), self.draw(st.integers(1, 9))
        place = Location("grown.tsr", Span(line, column, line, column + 1))
        results = tuple(self.value(type_) for type_ in operation.results())
        self.visible += results
        return Instruction(operation, operands, results, place, **rest)

    # Operations

    def constant(self) -> list[Instruction]:
        choices = [(True, "bool"), (-3, "int32"), (0.1, "fp64"), (-0.0, "fp32"), (float("inf"), "bf16")]
        value, name = self.draw(st.sampled_from(choices))
        return [self.emit(Constant(value=value, dtype=dtype(name)))]

    def simple(self) -> list[Instruction]:
        """An operation on one or two values of one type, with an attribute that any may carry."""
        if not self.visible:
            return self.constant()
        x = self.draw(st.sampled_from(self.visible))
        type_: Any = x.type
        tried: list[Operation] = [
            Negate(x=type_),
            AllReduce(x=type_, axis="dp", op="max", mesh="g", group=4),
            Sum(x=type_, axis=self.draw(st.sampled_from([0, -1]))),
            Softmax(x=type_),
            Transpose(x=type_),
            Add(a=type_, b=type_),
            Equal(a=type_, b=type_),
        ]
        operation = self.draw(st.sampled_from(list(filter(is_legal, tried))))
        operands = (x, self.pick(type_) or x)[: len(operation.operand_types)]
        common = self.draw(st.sampled_from([{}, {}, {"numerics_profile": "fast"}, {"mesh_axes": ("tp",)}]))
        return [self.emit(operation, *operands, attributes=common)]

    def marker(self) -> list[Instruction]:
        """An operation without results."""
        condition = self.pick(BOOL)
        if condition is not None and self.draw(st.booleans()):
            return [self.emit(Assert(condition=BOOL, message=self.draw(st.text(max_size=5))), condition)]
        values = tuple(self.visible[:2])
        settings = (("m", self.draw(st.integers())), ("to", "x"), ("pad", (1, (True, 2.5))))
        made: Any = Directive
        directive = made(subjects=tuple(value.type for value in values), directive="schedule.tile", settings=settings)
        return [self.emit(directive, *values), self.emit(Barrier())]

    def call(self) -> list[Instruction]:
        """Of a function whose parameter takes a value that is visible, and which gives it back."""
        for helper in self.helpers:
            taken = [value for value in self.visible if fits(helper.parameters[0].type, value.type, {})]
            if taken:
                argument = self.draw(st.sampled_from(taken))
                made = Call(arguments=(argument.type,), callee=helper.name, returns=(argument.type,))
                return [self.emit(made, argument)]
        return self.constant()

    # Regions

    def branch(self, depth: int) -> list[Instruction]:
        before = self.condition()
        condition = before[-1].results[0]
        carried = self.draw(st.lists(st.sampled_from(self.visible), max_size=2))
        types = tuple(value.type for value in carried)
        blocks = (self.region((), types, depth), self.region((), types, depth))
        if all(block.exit != "yield" for block in blocks):
            types = ()
        return [*before, self.emit(If(condition=BOOL, returns=types), condition, regions=blocks)]

    def loop(self, depth: int) -> list[Instruction]:
        start = self.emit(Constant(value=1, dtype=dtype("int32")))
        n = start.results[0]
        carried = tuple(self.draw(st.lists(st.sampled_from(self.visible), max_size=2)))
        types = tuple(value.type for value in carried)
        body = self.region((INT32, *types), types, depth)
        made = For(start=INT32, stop=INT32, step=INT32, carried=types)
        return [start, self.emit(made, n, n, n, *carried, regions=(body,))]

    def repeat(self, depth: int) -> list[Instruction]:
        carried = tuple(self.draw(st.lists(st.sampled_from(self.visible), max_size=2))) if self.visible else ()
        types = tuple(value.type for value in carried)
        test, body = self.region(types, (BOOL,), depth), self.region(types, types, depth)
        return [self.emit(While(carried=types), *carried, regions=(test, body))]

    def condition(self) -> list[Instruction]:
        return [self.emit(Constant(value=self.draw(st.booleans()), dtype=dtype("bool")))]

    def region(self, takes: tuple[Type, ...], gives: tuple[Type, ...], depth: int) -> Block:
        """A block that yields values of these types, or leaves early."""
        before = len(self.visible)
        arguments = tuple(self.value(type_) for type_ in takes)
        made = self.block(arguments, depth + 1)
        exit = self.draw(st.sampled_from(["yield", "yield", "yield", "return", "unreachable"]))
        wanted = {"yield": gives, "return": self.signature, "unreachable": ()}[exit]
        results = []
        for type_ in wanted:
            found = self.pick(type_)
            if found is None:
                assert isinstance(type_, Scalar)
                value: Any = True if type_ == BOOL else 1
                made.append(self.emit(Constant(value=value, dtype=type_.dtype)))
                found = made[-1].results[0]
            results.append(found)
        del self.visible[before:]
        return Block(arguments, tuple(made), tuple(results), exit)


def is_legal(operation: Operation) -> bool:
    """Whether an operation takes its operands."""
    try:
        operation.results()
    except Refusal:
        return False
    return True


@st.composite
def modules(draw: Any) -> Module:
    """A module with a function and two that it calls."""
    place = Location("grown.tsr", Span(1, 1, 1, 2))
    helpers = tuple(identity(f"h{i}", type_, place) for i, type_ in enumerate(TYPES[2:4]))
    growth = Growth(draw, (), helpers)
    parameters = tuple(growth.value(type_) for type_ in draw(st.lists(st.sampled_from(TYPES), max_size=4)))
    growth.signature = tuple(value.type for value in parameters[:2])
    body = Block(parameters, tuple(growth.block(parameters, 0)), parameters[:2])
    function = Function("f", body, growth.signature, place, {"numerics_profile": "fast"}, kernel=False)
    return Module("grown", {each.name: each for each in (function, *helpers)}, place, MESHES)


def identity(name: str, type_: Type, place: Location) -> Function:
    """A function that gives back its argument."""
    x = Value("x", marked(type_, "x"))
    return Function(name, Block((x,), (), (x,)), (x.type,), place)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(modules(), st.booleans())
def test_a_module_reads_as_it_is_printed(module: Module, export: bool) -> None:
    verify(module)
    text = print_module(module, export=export)
    again = read_module(text)
    assert print_module(again, export=export) == text
    given = [type(each.operation) for function in module.functions.values() for each in function.body.walk()]
    assert [type(each.operation) for function in again.functions.values() for each in function.body.walk()] == given


TOKEN = re.compile(r'"[^"\n]*"|%[\w$.#-]+|(?:tensor|mesh)<[^>]*>|\[[^\[\]]*\]|-?[0-9][\w.+-]*|[\w.]+|->|\s+|.')
STRANGE = [
    "%x",
    "%none",
    "tensor<?x4xfp32>",
    "fp32",
    "bool",
    "-1",
    "0",
    "9" * 30,
    "1.5",
    "true",
    "[]",
    "[0]",
    '["a"]',
    '""',
]
STRANGE += [
    '"tessera.graph.matmul"',
    '"tessera.graph.for"',
    '"fp32"',
    "{",
    "}",
    "(",
    ")",
    ":",
    ",",
    "->",
    "=",
    "\\",
    '"',
]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(modules(), st.data())
def test_a_text_with_a_few_changes_is_read_or_refused(module: Module, data: st.DataObject) -> None:
    """Tokens are exchanged with others of the text, with strange ones, or taken away; whatever is read is sound."""
    tokens = TOKEN.findall(print_module(module))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(tokens) - 1))
        other = data.draw(st.sampled_from(tokens) | st.sampled_from(STRANGE) | st.just(""))
        tokens[place] = other
    try:
        found = read_modules("".join(tokens))
    except (Rejection, UnsupportedConstruct):
        return
    for each in found:
        assert print_module(read_module(print_module(each))) == print_module(each)


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from('"%abc:,=()[]{}<>-0123x./\\\n#^@!?é\x00'), max_size=60) | st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_modules(text)
    except (Rejection, UnsupportedConstruct):
        return
