"""Functions as values: held in variables, passed, returned and called (language spec, 2.3; AMB-LANG-187)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.programs import returns, takes_in_funcs, value_of, verified_twins
from tessera_conformance.dsl import func, integers, kernel, module, tensor_of
from tessera_conformance.marks import clause, title
from tessera_conformance.protocol import Rejected

UNARY = "fn(int32) -> int32"
FUNCTIONS = (
    func("return x * 2;", parameters="x: int32", result="int32", name="twice"),
    func("return x + 1;", parameters="x: int32", result="int32", name="next"),
    func("return g(g(x));", parameters=f"g: {UNARY}, x: int32", result="int32", name="apply"),
    func("return b - a;", parameters="a: int32, b: int32", result="int32", name="minus"),
    func("if (c) { return twice; }", "return next;", parameters="c: bool", result=UNARY, name="pick"),
    func("if (c) { return twice; }", "return next;", parameters="c: bool", name="choose"),
)


def program_of(*statements):
    """A func of x with these statements, in a module with the functions above."""
    return module(*FUNCTIONS, func(*statements, parameters="x: int32"))


PROGRAMS = {
    "let": ([f"let g: {UNARY} = twice;", "return g(x);"], 10),
    "let-then-assign": ([f"let g: {UNARY};", "g = next;", "return g(x);"], 6),
    "assigned-again": ([f"let g: {UNARY} = twice;", "x = g(x);", "g = next;", "return g(x);"], 11),
    "copied": ([f"let g: {UNARY} = twice;", f"let h: {UNARY} = g;", "g = next;", "return h(g(x));"], 12),
    "passed": (["return apply(twice, x);"], 20),
    "passed-by-name": (["return apply(x=x, g=next);"], 7),
    "passed-on": ([f"let g: {UNARY} = next;", "return apply(g, apply(twice, x));"], 22),
    "two-parameters": (["let g: fn(int32, int32) -> int32 = minus;", "return g(x, 3);"], -2),
    "returned": ([f"let g: {UNARY} = pick(x > 3);", "return g(x);"], 10),
    "returned-without-annotation": ([f"let g: {UNARY} = choose(x < 3);", "return g(x);"], 6),
    "in-an-expression": ([f"let g: {UNARY} = twice;", "return g(x) * g(x + 1) - x;"], 115),
    "behind-an-alias": (["let g: unary = twice;", "return g(x);"], 10),
}

BY_NAME = "A function is passed by the name of the parameter (AMB-LANG-14)"


@clause("LANG-02.3-51", "LANG-02.3-47")
@pytest.mark.parametrize(
    ("statements", "value"),
    [
        pytest.param(*program, id=name, marks=[title(BY_NAME)] if name == "passed-by-name" else [])
        for name, program in PROGRAMS.items()
    ],
)
def test_a_function_is_held_passed_and_called(impl, check, statements, value):
    """`twice` doubles, `next` adds one, `apply` calls what it is given twice; x is 5."""
    takes_in_funcs(impl, check, UNARY)
    source = module(f"  type unary = {UNARY};", *FUNCTIONS, func(*statements, parameters="x: int32"))
    check.bits(value_of(impl, check, source, **integers(x=5)), tensor_of("int32", value))


@clause("LANG-02.3-51", "LANG-02-08")
@pytest.mark.parametrize(("x", "value"), [(3, 4), (4, 8)])
def test_which_function_is_called_may_show_only_when_it_runs(impl, check, x, value):
    """A branch assigns the variable: above 3 it is `twice`, else `next`."""
    takes_in_funcs(impl, check, UNARY)
    statements = [f"let g: {UNARY} = next;", "if (x > 3) { g = twice; }", "return g(x);"]
    check.bits(value_of(impl, check, program_of(*statements), **integers(x=x)), tensor_of("int32", value))


@clause("LANG-02.3-51", "LANG-02-08")
def test_a_loop_carries_a_function(impl, check):
    """The first turn adds one, the others double (AMB-LANG-29)."""
    takes_in_funcs(impl, check, UNARY)
    statements = [f"let g: {UNARY} = next;", "for (i in 0:3) { x = g(x); g = twice; }", "return x;"]
    check.bits(value_of(impl, check, program_of(*statements), **integers(x=5)), tensor_of("int32", 24))


@clause("LANG-02.3-51")
def test_a_function_of_tensors_is_a_value(impl, check):
    """A product or a sum of matrices, whichever is passed."""
    takes_in_funcs(impl, check, UNARY)
    matrix = "tensor<2x2xint32>"
    binary = f"fn({matrix}, {matrix}) -> {matrix}"
    pair = f"A: {matrix}, B: {matrix}"
    source = module(
        func("return g(g(A, B), B);", parameters=f"g: {binary}, {pair}", result=matrix, name="fold"),
        func("return A @ B;", parameters=pair, result=matrix, name="product"),
        func("return A + B;", parameters=pair, result=matrix, name="sum"),
        func("return fold(product, A, B), fold(sum, A, B);", parameters=pair),
    )
    given = integers(A=[[1, 2], [3, 4]], B=[[0, 1], [1, 1]])
    returns(impl, check, source, [[[3, 5], [7, 11]], [[1, 4], [5, 6]]], **given)


@clause("LANG-02.3-51", "LANG-11-01")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        (f"let g: {UNARY} = twice;", f"let g: {UNARY} = minus;"),
        (f"let g: {UNARY} = twice;", "let g: fn(int32) -> fp32 = twice;"),
        (f"let g: {UNARY} = twice;", f"let g: {UNARY} = x;"),
        (f"let g: {UNARY} = twice;", "let g: int32 = twice;"),
        (f"let g: {UNARY} = twice; x = g(x);", f"let g: {UNARY} = twice; x = g(x, x);"),
        (f"let g: {UNARY} = twice; x = g(x);", f"let g: {UNARY} = twice; x = g();"),
        (f"let g: {UNARY} = twice; x = g(x);", f"let g: {UNARY} = twice; x = g(1.5);"),
        (f"let g: {UNARY} = twice; x = g(x);", f"let g: {UNARY}; x = g(x);"),
        ("x = apply(twice, x);", "x = apply(minus, x);"),
        ("x = apply(twice, x);", "x = apply(x, x);"),
    ],
    ids=[
        "parameters", "result", "no-function", "no-number", "too-many", "too-few", "literal", "no-value", "passed",
        "passed-a-number",
    ],
)  # fmt: skip
def test_a_function_value_has_its_type(impl, check, legal, illegal):
    """A value of another type is none, a call has the arguments of the type, and a variable needs a value first."""
    takes_in_funcs(impl, check, UNARY)
    first, second = (module(*FUNCTIONS, func(body, parameters="x: int32")) for body in (legal, illegal))
    verified_twins(impl, check, first, second, ("types", "numerics"))


@clause("LANG-02.3-51")
@pytest.mark.parametrize("illegal", ["f", "k", "nowhere"], ids=["itself", "kernel", "unknown"])
def test_what_is_no_callable_function_is_no_value(impl, check, illegal):
    """A function that refers to itself, a kernel, and a name that nothing declares."""
    takes_in_funcs(impl, check, UNARY)
    sources = [
        module(*FUNCTIONS, kernel("", parameters="x: int32"),
               func(f"let g: {UNARY} = {name};", "return x;", parameters="x: int32", result="int32"))
        for name in ("twice", illegal)
    ]  # fmt: skip
    verified_twins(impl, check, *sources, ("types",))


UNUSED = {
    "memref": "memref<4x4xfp32>[addrspace=shared]",
    "fragment": "fragment<16, 16, 16, bf16>",
}


@clause("LANG-02.3-47")
@pytest.mark.parametrize("type_", UNUSED.values(), ids=UNUSED)
def test_a_kernel_is_warned_of_what_no_operation_takes(impl, check, type_):
    """A tile or a fragment that a kernel of the language does not use gets a warning, or is refused, at its line.

    Silence is a listed reading (AMB-LANG-187).
    """
    source = f"module m {{\n  kernel k(\n    x: tensor<4xfp32>,\n    unused: {type_}) {{ x = x + x; }}\n}}\n"
    check.accepts(impl.language.verify(source=source.replace(type_, "fp32")))
    observation = impl.language.verify(source=source)
    if isinstance(observation, Rejected):
        lines = [diagnostic.line for diagnostic in observation.diagnostics]
    else:
        lines = [warning.get("line") for warning in check.accepts(observation)["warnings"]]
    check.reading("AMB-LANG-187", "a kernel's parameter that nothing uses is passed over", not lines)
    check.true(4 in lines, "a diagnostic is at the line of the parameter", lines)
