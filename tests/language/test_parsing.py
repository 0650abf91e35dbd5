"""What parses, and as what (language spec sections 2.1, 2.3, 14)."""

from __future__ import annotations

import logging
import re
from importlib.resources import files

import pytest
from lark import Lark

from tessera_reference.ir.diagnostics import Rejection, Span
from tessera_reference.language import parse
from tessera_reference.language import syntax as s
from tessera_reference.language.grammar import RESERVED, spellings


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


PRODUCTIONS = """
    program module_decl decl type_decl const_decl mesh_decl func_decl kernel_decl param_list param ret_ann attr_block
    attr attr_val block stmt var_decl assign lvalue op_stmt ctrl_stmt if_stmt for_stmt while_stmt iter_decl range_expr
    return_stmt expr_list expr primary call_expr qual_ident arg_list tensor_expr shape dim dtype layout_spec binop
    literal schedule_stmt dist_stmt barrier_stmt assert_stmt type_expr tensor_type memref_type fragment_type mesh_type
    fn_type
""".split()
"""The left sides of section 2.3."""


def test_the_grammar_has_the_productions_of_the_text() -> None:
    """Operators are told apart by precedence (section 14.2); statements of schedule and dist are calls."""
    text = files("tessera_reference.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    rules = set(re.findall(r"^[?_]*([a-z_]+) *:", text, re.MULTILINE))
    assert set(PRODUCTIONS) - rules == {"binop", "schedule_stmt", "dist_stmt"}


def test_the_grammar_is_unambiguous(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lark resolves a conflict of shift and reduce silently, unless asked."""
    text = files("tessera_reference.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    monkeypatch.setattr(logging.getLogger("lark"), "handlers", [caplog.handler])
    with caplog.at_level(logging.DEBUG, "lark"):
        Lark(text, start="program", parser="lalr", debug=True)
        assert [record.message for record in caplog.records if "conflict" in record.message] == []
        Lark('start: "a" start | start "a" | "b"', parser="lalr", debug=True)
    assert [record.message for record in caplog.records if "conflict" in record.message]


def test_every_word_of_the_grammar_is_reserved_or_a_name_elsewhere() -> None:
    """The grammar quotes eleven words beside the reserved ones, which are names elsewhere (AMB-LANG-02)."""
    others = {"tensor", "memref", "fragment", "fn", "assert", "true", "false", "axes", "shape", "addrspace", "x"}
    assert {text for text in spellings().values() if text.isidentifier()} - RESERVED == others


@pytest.mark.parametrize("word", ["tensor", "memref", "fragment", "fn", "assert", "axes", "shape", "addrspace", "x"])
def test_a_word_that_is_not_reserved_is_a_name(word: str) -> None:
    module = parse(
        f"""module {word} {{
          type {word} = {word};
          mesh {word} = mesh<axes=[{word}], shape=[1]>;
          func {word}({word}: {word}) @{{{word}={word}, a=[{word}]}} {{
            let {word}: {word} = {word}.{word}({word}, {word}={word}) + ({word}) < a[{word}:{word}];
            {word} = {word};
            {word}[{word}] = 1;
            {word}.a();
            for ({word}, {word} in {word}:{word}) {{ return {word}; }}
          }}
        }}"""
    ).modules[0]
    assert [declaration.name for declaration in module.declarations] == [word] * 3


@pytest.mark.parametrize("word", ["true", "false"])
def test_true_and_false_are_names_where_no_value_can_stand(word: str) -> None:
    function = parse(
        f"module m {{ func f() {{ let {word}: {word} = {word}; op.{word}({word}={word}) @{{{word}=1}}; }} }}"
    )
    let, call = function.modules[0].declarations[0].body.statements  # type: ignore[union-attr]
    assert (let.name, let.type.name, let.value.value) == (word, word, word == "true")
    assert (call.call.callee, call.call.keywords[0].name) == (("op", word), word)


@pytest.mark.parametrize("text", ["memref < 4 * a", "fragment < a", "fn(a) < 4", "assert(a)", "shape < 4", "x < 4"])
def test_words_of_types_are_names_in_expressions(text: str) -> None:
    assert isinstance(expression(text), s.Binary | s.Call)


@pytest.mark.parametrize("shape", ["in x fp32", "inxfp32", "4xin", "4 x in", "dtypex4xfp32"])
def test_reserved_words_are_no_dimensions(shape: str) -> None:
    with pytest.raises(Rejection) as stop:
        expression(f"tensor<{shape}>")
    assert "the reserved word" in stop.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("text", "callee", "names"),
    [
        ("f", ("f",), []),
        ("op.matmul", ("op", "matmul"), ["a", "b"]),
        ("numerics.profile", ("numerics", "profile"), []),
        ("dist.all_reduce", ("dist", "all_reduce"), ["in"]),
        ("a.b.c.let", ("a", "b", "c", "let"), []),
    ],
)
def test_calls_have_dotted_names_and_keywords(text: str, callee: tuple[str, ...], names: list[str]) -> None:
    call = expression(f"{text}(1{''.join(f', {name}=2' for name in names)})")
    assert isinstance(call, s.Call)
    assert (call.callee, [keyword.name for keyword in call.keywords], len(call.arguments)) == (callee, names, 1)


def test_parts_of_a_function_keep_their_order() -> None:
    heading = "@schedule(a=1) @schedule() func f(p: int8, q: int8 = 1) -> int8 @schedule(b=2) @{c=3} @schedule(d=4)"
    function = parse(f"module m {{ {heading} {{ return; }} }}").modules[0].declarations[0]
    assert isinstance(function, s.FunctionDecl)
    assert [[keyword.name for keyword in each.keywords] for each in function.annotations] == [["a"], [], ["b"], ["d"]]
    assert [(each.name, each.default is None) for each in function.parameters] == [("p", True), ("q", False)]
    assert [each.name for each in function.attributes] == ["c"]
    assert isinstance(function.result, s.NamedType)
    assert function.name_span == Span(1, 44, 1, 45)
    assert len(function.body.statements) == 1


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        (":", (None, None, None)),
        ("a:", ("a", None, None)),
        (":b", (None, "b", None)),
        ("a:b", ("a", "b", None)),
        ("::", (None, None, None)),
        ("a:b:c", ("a", "b", "c")),
        ("::c", (None, None, "c")),
        ("a::c", ("a", None, "c")),
    ],
)
def test_slices_leave_out_what_they_like(text: str, bounds: tuple[str | None, ...]) -> None:
    index = expression(f"A[{text}]")
    assert isinstance(index, s.Index)
    (found,) = index.slices
    assert isinstance(found, s.SliceRange)
    assert tuple(part and shape(part) for part in (found.start, found.stop, found.step)) == bounds


@pytest.mark.parametrize(
    "type_", ["tensor<2x3xfp32>", "tensor<2x3xfp32; layout=row_major>", "tensor</**/2x3xfp32/* >= */>"]
)
def test_a_type_may_end_beside_the_sign_of_a_declaration(type_: str) -> None:
    """`>=` is one token between operands only."""
    (module,) = parse(f"module m {{ func f(v: {type_}) {{ let s: {type_}=v; let b: bool=v[0]>=1; }} }}", "t").modules
    (function,) = module.declarations
    assert [type(each).__name__ for each in function.body.statements] == ["Let", "Let"]  # type: ignore[union-attr]
