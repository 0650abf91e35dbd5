"""What parses, and as what (language spec sections 2.1, 2.3, 14)."""

from __future__ import annotations

import pytest

from tessera_reference.ir.diagnostics import Span
from tessera_reference.language import parse
from tessera_reference.language import syntax as s
from tessera_reference.language.parser import RESERVED


def expression(text: str) -> s.Expr:
    function = parse(f"module m {{ func f() {{ return {text}; }} }}").modules[0].declarations[0]
    assert isinstance(function, s.FunctionDecl)
    statement = function.body.statements[0]
    assert isinstance(statement, s.Return)
    return statement.values[0]


def shape(expr: s.Expr | s.ListValue) -> str:
    """An expression, fully parenthesized."""
    match expr:
        case s.Binary():
            return f"({shape(expr.left)} {expr.operator} {shape(expr.right)})"
        case s.Unary():
            return f"({expr.operator}{shape(expr.operand)})"
        case s.Group():
            return shape(expr.inner)
        case s.Name() | s.IntLiteral() | s.FloatLiteral():
            return expr.text
        case s.Call():
            return f"{'.'.join(expr.callee)}({', '.join(map(shape, expr.arguments))})"
        case s.Index():
            return f"{shape(expr.operand)}[...]"
    return type(expr).__name__


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("A + B * C", "(A + (B * C))"),
        ("A - B - C", "((A - B) - C)"),
        ("A / B * C", "((A / B) * C)"),
        ("A + B @ C", "((A + B) @ C)"),
        ("A @ B - C", "(A @ (B - C))"),
        ("A @ B @ C", "((A @ B) @ C)"),
        ("A @ B == C + D", "((A @ B) == (C + D))"),
        ("-A * B", "((-A) * B)"),
        ("A - -B", "(A - (-B))"),
        ("- - A", "(-(-A))"),
        ("-A[0]", "(-A[...])"),
        ("-f(A)", "(-f(A))"),
        ("(A + B) * C", "((A + B) * C)"),
        ("A<B", "(A < B)"),
        ("A >= -1.5e-3", "(A >= (-1.5e-3))"),
        ("op.softmax(A, axis=1) @{axis=1} @ B", "(op.softmax(A) @ B)"),
        ("tensor + true", "(tensor + BoolLiteral)"),
        ("tensor<4x?xfp32>", "TensorExpr"),
        ("op.in(A)", "op.in(A)"),
        ("1.", "1."),
        ("1e5", "1e5"),
    ],
)
def test_operators_bind_as_tabled(text: str, reading: str) -> None:
    assert shape(expression(text)) == reading


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "@", "==", "!=", "<", ">", "<=", ">="])
def test_every_operator_is_there(operator: str) -> None:
    binary = expression(f"A {operator} B")
    assert isinstance(binary, s.Binary)
    assert binary.operator == operator


@pytest.mark.parametrize(
    ("text", "dims", "dtype"),
    [
        ("tensor<128x64xbf16>", ["128", "64"], "bf16"),
        ("tensor<?xDxfp8_e4m3>", ["?", "D"], "fp8_e4m3"),
        ("tensor< 128 x 64 /* rows */ x bf16 >", ["128", "64"], "bf16"),
        ("tensor<0x1xcomplex64>", ["0", "1"], "complex64"),
        ("tensor<LxLxcomplex128; layout=col_major>", ["L", "L"], "complex128"),
        ("tensor<axbxfp32>", ["a", "b"], "fp32"),
        ("tensor <4xint8>", ["4"], "int8"),
    ],
)
def test_shapes_are_split_at_every_x(text: str, dims: list[str], dtype: str) -> None:
    found = expression(text)
    assert isinstance(found, s.TensorExpr)
    assert [dim.text for dim in found.type.shape] == dims
    assert found.type.dtype == dtype


def test_a_layout_keeps_its_parameters() -> None:
    found = expression("tensor<4x4xfp32; layout=blocked(bm=128, bn=64)>")
    assert isinstance(found, s.TensorExpr)
    assert found.type.layout is not None
    assert found.type.layout.parameters == (("bm", "128"), ("bn", "64"))


@pytest.mark.parametrize(
    "declaration",
    [
        "type T = tensor<4xfp32>;",
        "let c: fp32 = 1.5;",
        "mesh g = mesh<axes=[dp, tp], shape=[4, 2]>;",
        "kernel k(A: memref<4x4xfp32>[addrspace=shared], f: fn(fp32, int8) -> bool) { A = A + A; }",
        "func f(x: fragment<16,16,16,bf16>, y: fragment<16,16,16,bf16, layout=row_major>) {}",
        "func f(y: fragment<16,16,16,bf16; layout=row_major>, z: int8 = -1) -> fp32 @{} {}",
        '@schedule(m=1) func f() @schedule() @{a=-1, op=[1, [x]], s="t", type=true} @schedule() {}',
        "func f() { for (i in 0:10:2) { X[i, 1:2, :, ::2] = i; } for (i, j in a:b) {} while (true) {} }",
        'func f() { if (a < b) { return; } else { return 1, 2; } barrier(); barrier("x"); assert(c, "no"); }',
        'func f() { schedule.tile(A, m=1) @{k=2}; dist.all_reduce(A, axis=dp); numerics.profile("strict"); }',
        "func axes(shape: fp32, addrspace: fp32, assert: fp32, fn: fp32, memref: fp32) { assert = shape; }",
        "func x(x: tensor<4xfp32>, xx: fp32) { let x64: fp32 = x + xx; }",
        "func letter(inner: fp32, opera: fp32) { format = inner; }",
    ],
)
def test_the_whole_grammar_parses(declaration: str) -> None:
    assert parse(f"module m {{ {declaration} }}").modules[0].declarations


def test_a_program_may_be_empty() -> None:
    assert parse("").modules == ()
    assert parse("// nothing").modules == ()
    assert parse("module a {} module b {}").modules[1].name == "b"


def test_comments_end_where_they_should() -> None:
    assert shape(expression("A // B */ C\n + /* x /* y */ D")) == "(A + D)"


@pytest.mark.parametrize(("spelled", "value"), [(r'"a\"b"', 'a"b'), (r'"\\n\n\t\r"', "\\n\n\t\r"), ('"a\nb"', "a\nb")])
def test_strings_know_five_escapes(spelled: str, value: str) -> None:
    found = expression(f"f({spelled})")
    assert isinstance(found, s.Call)
    assert isinstance(found.arguments[0], s.StringLiteral)
    assert found.arguments[0].value == value


def test_positions_cover_the_construct() -> None:
    found = expression("f(A,\n  (B + C))")
    assert isinstance(found, s.Call)
    assert found.span == Span(1, 30, 2, 11)
    assert found.arguments[1].span == Span(2, 3, 2, 10)


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_may_stand_in_dotted_attribute_and_keyword_names(word: str) -> None:
    parse(f"module m {{ func f() {{ op.{word}(A, {word}=1) @{{{word}=2}}; }} }}")
