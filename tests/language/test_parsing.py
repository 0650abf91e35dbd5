"""The grammar, its kept tables, and golden programs by the printed grammar (sections 2.1, 2.3, 14)."""

from __future__ import annotations

import gzip
import json
import logging
import re
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from lark import Lark, UnexpectedInput

from tessera_conformance.cases import vectors_directory
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.language import parse
from tessera_reference.language import parser as lexer
from tessera_reference.language import parser as parse_tables
from tessera_reference.language import parser as tree
from tessera_reference.language import syntax as s
from tessera_reference.language.parser import RESERVED, spellings
from tessera_reference.language.values import floating
from tessera_reference.numerics.formats import dtype


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


@pytest.mark.parametrize(
    "type_", ["tensor<2x3xfp32>", "tensor<2x3xfp32; layout=row_major>", "tensor</**/2x3xfp32/* >= */>"]
)
def test_a_type_may_end_beside_the_sign_of_a_declaration(type_: str) -> None:
    """`>=` is one token between operands only."""
    (module,) = parse(f"module m {{ func f(v: {type_}) {{ let s: {type_}=v; let b: bool=v[0]>=1; }} }}", "t").modules
    (function,) = module.declarations
    assert [type(statement).__name__ for statement in function.body.statements] == ["Let", "Let"]  # type: ignore[union-attr]


def test_a_comma_before_the_layout_gets_its_own_remedy():
    with pytest.raises(Rejection) as stop:
        parse("module m { func f(A: tensor<2x3xfp32, layout=row_major>) { return A; } }")
    assert "after a semicolon" in stop.value.diagnostics[0].remedy


PROGRAM = (Path(__file__).parents[2] / "examples" / "transformer.tsr").read_text(encoding="utf-8")


def choices_on_the_way(parser: Lark, source: str) -> list[list[str]]:
    reading = parser.parse_interactive("")
    found = [sorted(reading.choices())]
    for token in lexer.Lexer(source):
        token = lexer.as_accepted(token, reading.choices())
        reading.feed_token(token)
        found.append(sorted(reading.choices()))
    return found


@pytest.fixture(scope="module")
def computed() -> Lark:
    return parse_tables.new_parser(tree.TreeBuilder())


def test_the_kept_tables_are_of_this_grammar() -> None:
    """Whatever version of Lark is installed here."""
    kept = Path(parse_tables.__file__).with_name(parse_tables.FILE)
    first = gzip.decompress(kept.read_bytes()).split(b"\n")[0].decode()
    now = parse_tables.made_from().decode().strip()
    assert first.partition("grammar ")[2] == now.partition("grammar ")[2], "run reference/write_parse_tables.py"


def test_kept_tables_lead_the_same_way_as_computed_ones(computed: Lark) -> None:
    kept = parse_tables.kept_parser()
    if kept is None:
        pytest.skip("the tables that are kept are of another version of Lark")
    on_the_way = choices_on_the_way(kept, PROGRAM)
    assert on_the_way == choices_on_the_way(computed, PROGRAM)
    assert len(on_the_way) > 100
    assert [str(rule) for rule in kept.rules] == [str(rule) for rule in computed.rules]


def test_what_is_written_is_read_again(computed: Lark, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / parse_tables.FILE).write_bytes(parse_tables.written(computed))
    grammar = Path(parse_tables.__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    (tmp_path / "grammar.lark").write_text(grammar, encoding="utf-8")
    monkeypatch.setattr(parse_tables, "files", lambda package: tmp_path)
    read = parse_tables.kept_parser()
    assert read is not None
    assert choices_on_the_way(read, PROGRAM) == choices_on_the_way(computed, PROGRAM)


@pytest.mark.parametrize("changed", ["the grammar", "the version of Lark"])
def test_tables_of_something_else_are_not_used(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if changed == "the grammar":
        monkeypatch.setattr(parse_tables, "_grammar", lambda: "start: START\nSTART: /x/")
    else:
        monkeypatch.setattr(parse_tables.lark, "__version__", "0.0")
    assert parse_tables.kept_parser() is None


GRAMMAR = Path(__file__).parent / "printed_grammar.lark"
SIGN = re.compile(r"(?<=[=\[,(])\s*-\d|= -[A-Z]")
"""A signed number, or a sign before an operand: section 14.2 has it, the productions of section 2.3 do not."""

SIGNED = 113
"""Golden programs that ask for a sign."""


@cache
def parser() -> Lark:
    return Lark(GRAMMAR.read_text(encoding="utf-8"), start="program", parser="lalr", maybe_placeholders=False)


def is_derivable(source: str) -> bool:
    try:
        parser().parse(source)
    except UnexpectedInput:
        return False
    return True


def programs() -> list[str]:
    lines = [
        json.loads(line)
        for path in sorted((vectors_directory() / "ir").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return [line["call"]["params"]["source"] for line in lines if "source" in line.get("call", {}).get("params", {})]


@pytest.mark.slow
def test_golden_programs_use_only_the_printed_grammar():
    others = [source for source in programs() if not is_derivable(source)]
    assert all(SIGN.search(source) for source in others)
    assert len(others) == SIGNED


@pytest.mark.parametrize(
    ("statement", "derivable"),
    [
        ("return op.softmax(A) @{axis=0};", True),
        ("return op.softmax(A, axis=0);", False),
        ("return op.softmax(A) @{axis=-1};", False),
        ("return -A;", False),
        ("return A[0];", False),
        ("return A @ A + A;", True),
        ("A[0, 1:2] = B; return A;", True),
        ("for (i in 0:4:2) { A = A + A; } return A;", True),
        ("if (a < 2) { return A; } else { return B; }", True),
        ("let x: fp32 = 1.5e-3; return A;", True),
        ("let x: fp32 = 1e5; return A;", False),
        ('dist.all_reduce(A) @{axis=dp, op="sum"}; return A;', True),
        ("return A", False),
        ("return A; }", False),
    ],
)
def test_the_grammar_is_the_printed_one(statement, derivable):
    source = f"module m {{ func f(A: tensor<2x?xbf16; layout=row_major>) -> tensor<2x?xbf16> {{ {statement} }} }}"
    assert is_derivable(source) == derivable


@pytest.mark.parametrize(
    "text", ["0.1", "1e-45", "7e-46", "3.4028235e38", "1e-310", "16777217", "0.3333333333333333333"]
)
@pytest.mark.parametrize(("name", "parsed"), [("fp32", np.float32), ("fp64", np.float64)])
def test_ieee_formats_agree_with_the_platforms_parser(text: str, name: str, parsed: type) -> None:
    assert np.array(floating(text, False, dtype(name)), parsed).tobytes() == parsed(text).tobytes()
