"""The verifier on modules built by hand: what no text can say too, such as one value in two functions (LANG-05-01)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tessera_reference.graph.collectives import AllReduce
from tessera_reference.graph.constant import Constant
from tessera_reference.graph.control import Call, For, If
from tessera_reference.graph.elementwise import Negate
from tessera_reference.graph.reductions import MatMul
from tessera_reference.ir.diagnostics import Diagnostic, Location, Rejection, Span
from tessera_reference.ir.operation import OPERATIONS, Block, Exit, Function, Instruction, Module, Operation, operation
from tessera_reference.ir.types import Mesh, Scalar, Shard, Tensor, Type, Value
from tessera_reference.ir.verifier import verify
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

FP32, INT32, BOOL = (Scalar(dtype(name)) for name in ("fp32", "int32", "bool"))
MATRIX = Tensor((2, 2), dtype("fp32"))
OPEN = Tensor(("?x.0", 2), dtype("fp32"))


def place(line: int) -> Location:
    return Location("t.tsr", Span(line, 1, line, 2))


def make(operation: Any, *operands: Value, to: tuple[Value, ...] = (), line: int = 5, **rest: Any) -> Instruction:
    return Instruction(operation, operands, to, place(line), **rest)


def negate(x: Value, y: Value, line: int = 5) -> Instruction:
    made: Operation = Negate(x=x.type)  # type: ignore[arg-type]  # whatever the type is
    return make(made, x, to=(y,), line=line)


def block(*instructions: Instruction, takes: tuple[Value, ...] = (), gives: tuple[Value, ...] = ()) -> Block:
    return Block(takes, instructions, gives, "yield")


def function(*instructions: Instruction, takes: tuple[Value, ...] = (), gives: tuple[Value, ...] = ()) -> Function:
    body = Block(takes, instructions, gives)
    return Function("f", body, tuple(value.type for value in gives), place(1))


def module(*functions: Function, meshes: Mapping[str, Mesh] | None = None) -> Module:
    return Module("m", {function.name: function for function in functions}, place(1), meshes or {})


def found(*functions: Function, meshes: Mapping[str, Mesh] | None = None) -> list[Diagnostic]:
    with pytest.raises(Rejection) as caught:
        verify(module(*functions, meshes=meshes))
    return list(caught.value.diagnostics)


def refused(*functions: Function, meshes: Mapping[str, Mesh] | None = None) -> str:
    """The only thing that is said: category, line and message."""
    (diagnostic,) = found(*functions, meshes=meshes)
    assert diagnostic.clause
    assert diagnostic.requirement
    return f"{diagnostic.category}:{diagnostic.span.line}: {diagnostic.message}"


def test_a_value_is_used_where_it_is_defined() -> None:
    x, y, z = (Value(name, FP32) for name in "xyz")
    verify(module(function(negate(x, y), negate(y, z), takes=(x,), gives=(z,))))
    assert refused(function(negate(y, z, 6), negate(x, y, 7), takes=(x,), gives=(z,))) == (
        "types:6: %y is used before it is defined"
    )
    assert refused(function(negate(x, y), takes=(x,), gives=(z,))) == "types:1: %z is not defined"


def test_a_value_and_its_name_are_defined_once() -> None:
    x, y = Value("x", FP32), Value("y", FP32)
    assert refused(function(negate(x, y), negate(x, y, 6), takes=(x,), gives=(y,))) == "types:6: %y is defined twice"
    assert refused(function(negate(x, Value("x", FP32)), takes=(x,), gives=(x,))) == "types:5: %x is defined twice"
    assert "%x is defined twice" in refused(function(takes=(x, x), gives=(x,)))


def branches(
    condition: Value, then: Block, otherwise: Block, returns: tuple[Type, ...], *to: Value, line: int = 5
) -> Instruction:
    return make(If(condition=BOOL, returns=returns), condition, to=to, regions=(then, otherwise), line=line)


def test_what_a_region_defines_does_not_leave_it() -> None:
    c, x, y, z, r = (Value(name, BOOL if name == "c" else FP32) for name in "cxyzr")
    then, otherwise = block(negate(x, y), gives=(y,)), block(gives=(x,))
    sound = branches(c, then, otherwise, (FP32,), r)
    verify(module(function(sound, negate(r, z), takes=(c, x), gives=(z,))))
    leaks = "%y is defined in a region that has ended"
    assert refused(function(sound, negate(y, z, 6), takes=(c, x), gives=(z,))) == f"types:6: {leaks}"
    sibling = branches(c, then, block(gives=(y,)), (FP32,), r)
    assert refused(function(sibling, takes=(c, x), gives=(r,))) == f"types:5: {leaks}"
    own = branches(c, block(negate(r, y, 6), gives=(y,)), otherwise, (FP32,), r)
    assert refused(function(own, takes=(c, x), gives=(r,))) == "types:6: %r is used before it is defined"


@pytest.mark.parametrize(
    ("exit", "gives", "message"),
    [
        ("return", (), "types:5: @f returns (), its signature has (fp32)"),
        ("return", ("n",), "types:5: @f returns (int32), its signature has (fp32)"),
        ("unreachable", ("x",), "types:5: what is not reached has no results"),
    ],
)
def test_a_region_leaves_as_it_may(exit: Exit, gives: tuple[str, ...], message: str) -> None:
    values = {"c": Value("c", BOOL), "x": Value("x", FP32), "n": Value("n", INT32), "r": Value("r", FP32)}
    leaves = Block((), (), tuple(values[name] for name in gives), exit)
    instruction = branches(values["c"], block(gives=(values["x"],)), leaves, (FP32,), values["r"])
    takes = (values["c"], values["x"], values["n"])
    assert refused(function(instruction, takes=takes, gives=(values["r"],))) == message


def loop(body: Block, *carried: Value, to: tuple[Value, ...]) -> list[Instruction]:
    n = Value("n", INT32)
    start = make(Constant(value=3, dtype=dtype("int32")), to=(n,))
    made = For(start=INT32, stop=INT32, step=INT32, carried=tuple(value.type for value in carried))
    return [start, make(made, n, n, n, *carried, to=to, regions=(body,), line=6)]


def test_a_loop_carries_what_it_takes() -> None:
    x, i, a, r = Value("x", FP32), Value("i", INT32), Value("a", FP32), Value("r", FP32)
    sound = loop(block(takes=(i, a), gives=(a,)), x, to=(r,))
    verify(module(function(*sound, takes=(x,), gives=(r,))))
    without = loop(block(takes=(a,), gives=(a,)), x, to=(r,))
    assert refused(function(*without, takes=(x,), gives=(r,))) == "types:6: for: body takes (fp32)"
    strange = loop(block(takes=(i, a), gives=(i,)), x, to=(r,))
    assert refused(function(*strange, takes=(x,), gives=(r,))) == "types:6: for: body yields (int32)"
    twice = loop(block(takes=(i, a), gives=(a,)), x, to=(r,))
    twice[1] = replace(twice[1], regions=(*twice[1].regions, block()))
    assert refused(function(*twice, takes=(x,), gives=(r,))) == "types:6: for has 2 regions"
    none = [twice[0], replace(twice[1], regions=())]
    assert refused(function(*none, takes=(x,), gives=(r,))) == "types:6: for has 0 regions"


def test_an_operation_without_regions_is_given_none() -> None:
    x, y = Value("x", FP32), Value("y", FP32)
    owner = replace(negate(x, y), regions=(block(),))
    assert refused(function(owner, takes=(x,), gives=(y,))) == "types:5: negate has 1 region"


def test_what_an_operation_refuses_is_told_with_its_operands() -> None:
    wide = replace(MATRIX, shape=(2, 3))
    a, b, y = Value("left", wide), Value("right", wide), Value("y", MATRIX)
    (diagnostic,) = found(function(make(MatMul(a=wide, b=wide), a, b, to=(y,)), takes=(a, b), gives=(y,)))
    assert (diagnostic.category, diagnostic.operands) == ("shapes", ("a is tensor<2x3xfp32>", "b is tensor<2x3xfp32>"))
    assert "%right" in diagnostic.remedy


# Symbols


def caller(callee: str, *results: Type, argument: Type = FP32) -> Function:
    x, to = Value("x", argument), tuple(Value(f"r{i}", type_) for i, type_ in enumerate(results))
    made = Call(arguments=(argument,), callee=callee, returns=tuple(results))
    return function(make(made, x, to=to), takes=(x,), gives=to)


def callee(takes: Type, gives: Type, **rest: Any) -> Function:
    p, c = Value("p", takes), Value("c", gives)
    body = (negate(p, c),) if takes == gives else (make(Constant(value=0, dtype=dtype("int32")), to=(c,)),)
    return replace(function(*body, takes=(p,), gives=(c,)), name="g", **rest)


def test_functions_do_not_come_back_to_themselves() -> None:
    g, h = replace(caller("h", FP32), name="g"), replace(caller("g", FP32), name="h")
    message = refused(g, h)
    assert "recursion: @" in message
    assert message.count("calls") == 2
    assert "recursion: @f calls @f" in refused(caller("f", FP32))


def test_a_kernel_returns_its_buffers() -> None:
    n, a, b = Value("n", INT32), Value("a", MATRIX), Value("b", replace(MATRIX, shape=(3, 3)))
    sound = replace(function(takes=(n, a, b), gives=(a, b)), kernel=True)
    verify(module(sound))
    for gives in ((a,), (b, a), (n, a, b)):
        broken = replace(function(takes=(n, a, b), gives=gives), kernel=True)
        assert "the kernel @f has other results than its tensor parameters" in refused(broken)


def reduce(axis: str, group: int, mesh: str | None = None) -> Function:
    x, y = Value("x", FP32), Value("y", FP32)
    made = AllReduce(x=FP32, axis=axis, op="sum", mesh=mesh, group=group, grid=mesh or "", met=Shard((axis,)))
    return function(make(made, x, to=(y,)), takes=(x,), gives=(y,))


def test_a_collective_works_along_an_axis_of_a_mesh() -> None:
    meshes = {"a": Mesh(("dp", "tp"), (4, 2)), "b": Mesh(("dp",), (8,))}
    verify(module(reduce("dp", 4, "a"), meshes=meshes))
    verify(module(reduce("dp", 8, "b"), meshes=meshes))
    assert refused(reduce("tp", 2, "b"), meshes=meshes) == "distributed:5: all_reduce: mesh b has no axis 'tp'"
    assert "its group" in refused(reduce("dp", 4, "b"), meshes=meshes)
    assert "which mesh" in refused(reduce("dp", 4), meshes=meshes)
    assert "the module declares none" in refused(reduce("dp", 4))


def test_symbols_of_a_module_have_names_of_their_own() -> None:
    assert refused(function(), meshes={"f": Mesh(("dp",), (4,))}) == "types:1: @f is a function and a mesh"


def default(name: str, values: Any) -> dict[str, Array]:
    return {"x": Array(dtype(name), np.asarray(values, dtype(name).carrier))}


@pytest.mark.parametrize(
    ("type_", "defaults", "sound"),
    [
        (FP32, default("fp32", 1.5), True),
        (MATRIX, default("fp32", [[1, 2], [3, 4]]), True),
        (OPEN, default("fp32", [[1, 2], [3, 4], [5, 6]]), True),
        (FP32, default("int32", 1), False),
        (FP32, default("fp32", [1.5]), False),
        (MATRIX, default("fp32", [[1, 2]]), False),
        (OPEN, default("fp32", [[1], [3]]), False),
    ],
)
def test_defaults_are_of_the_type_of_their_parameter(type_: Type, defaults: dict[str, Array], sound: bool) -> None:
    x = Value("x", type_)
    made = replace(function(takes=(x,), gives=(x,)), defaults=defaults)
    if sound:
        verify(module(made))
    else:
        assert refused(made).startswith("types:1: the default of x is ")
    strange = replace(function(takes=(x,), gives=(x,)), defaults={"y": defaults["x"]})
    assert "the default of y is " in refused(strange)


def test_everything_wrong_is_told_in_the_order_of_the_source() -> None:
    x, y, z = (Value(name, FP32) for name in "xyz")
    whole = function(negate(z, y, 9), negate(x, Value("w", INT32), 3), negate(x, y, 6), takes=(x,), gives=(y,))
    assert [diagnostic.span.line for diagnostic in found(whole)] == [3, 6, 9]


def test_an_operation_that_lacks_what_its_level_needs_is_not_declared() -> None:
    class Hollow(Operation):
        """Infers nothing and executes nothing."""

    with pytest.raises(TypeError, match=r"operation tessera\.graph\.hollow does not implement execute, infer"):
        operation("tessera.graph.hollow", clauses=())(Hollow)
    assert "tessera.graph.hollow" not in OPERATIONS
