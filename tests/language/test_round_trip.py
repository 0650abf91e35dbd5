"""Printing a tree and parsing it gives the tree: for generated trees of every production (spec sections 2.3, 14.2)."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tessera_reference.ir.diagnostics import Span
from tessera_reference.language import parse
from tessera_reference.language import syntax as s
from tessera_reference.language.formatter import format_program
from tessera_reference.language.grammar import RESERVED, TreeBuilder

HERE = Span(1, 1, 1, 1)
Strategy = st.SearchStrategy[Any]


def made(kind: type[s.Node], *parts: Strategy) -> Strategy:
    """Nodes of a kind, their fields from strategies."""
    return st.builds(kind, st.just(HERE), *parts)


def listed(items: Strategy, smallest: int = 0, most: int = 3) -> Strategy:
    return st.lists(items, min_size=smallest, max_size=most).map(tuple)


def named(strategy: Strategy) -> Strategy:
    """The same, shown as a name: hypothesis would spell out all that it is made of."""
    return st.deferred(lambda: strategy)


def maybe(strategy: Strategy) -> Strategy:
    return st.none() | strategy


# The words of the grammar that are names elsewhere; `tensor` before a `<` and `assert` before a `(` never are.
NAMES = st.sampled_from(
    "a b x X x64 complex64 L_1 _ fn axes shape addrspace memref fragment lets mesh1 xfp32 fp32".split()
) | st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in RESERVED | {"true", "false", "tensor", "assert"}
)
WORDS = NAMES | st.sampled_from(sorted(RESERVED | {"true", "false", "tensor", "assert"}))
SHAPE_NAMES = st.sampled_from(["D", "L_1", "bf16", "fp8_e4m3", "shape", "true"])
DTYPES = SHAPE_NAMES | st.sampled_from(["complex64", "complex128"])
INTEGERS = st.from_regex(r"[0-9]{1,4}", fullmatch=True)
FLOATS = st.from_regex(r"[0-9]{1,3}(\.[0-9]{0,3}([eE][+-]?[0-9]{1,2})?|[eE][+-]?[0-9]{1,2})", fullmatch=True)
SIGNS = st.sampled_from(["", "+", "-"])
STRINGS = st.text(max_size=6) | st.sampled_from(['"', "\\", "a\nb\r\n\t", "\\n", "// no comment", "/*"])

# Types

layouts = made(s.LayoutSpec, NAMES, listed(st.tuples(WORDS, INTEGERS)))
shapes = listed(made(s.Dimension, INTEGERS | st.just("?") | SHAPE_NAMES), smallest=1)
tensor_types = named(made(s.TensorType, shapes, DTYPES, maybe(layouts)))
mesh_types = made(s.MeshType, listed(NAMES, smallest=1), listed(INTEGERS, smallest=1))
types = named(
    st.recursive(
        st.one_of(
            tensor_types,
            made(s.NamedType, NAMES),
            made(s.MemrefType, shapes, DTYPES, maybe(NAMES | st.just("shared"))),
            made(s.FragmentType, INTEGERS, INTEGERS, INTEGERS, NAMES, maybe(layouts)),
            mesh_types,
        ),
        lambda inner: made(s.FunctionType, listed(inner), inner),
        max_leaves=4,
    )
)

# Expressions: an operand that binds more loosely than its place allows stands in parentheses

LEVELS = {"*": 4, "/": 4, "+": 3, "-": 3, "@": 2, "==": 1, "!=": 1, "<": 1, ">": 1, "<=": 1, ">=": 1}


def level(expr: s.Expr) -> int:
    if isinstance(expr, s.Binary):
        return LEVELS[expr.operator]
    return 5 if isinstance(expr, s.Unary) else 6


def fitting(expr: s.Expr, least: int) -> s.Expr:
    return expr if level(expr) >= least else s.Group(HERE, expr)


def binary(operator: str, left: s.Expr, right: s.Expr) -> s.Binary:
    own = LEVELS[operator]
    return s.Binary(HERE, operator, fitting(left, own + (own == 1)), fitting(right, own + 1))


literals = st.one_of(
    made(s.IntLiteral, INTEGERS),
    made(s.FloatLiteral, FLOATS),
    made(s.StringLiteral, STRINGS),
    made(s.BoolLiteral, st.booleans()),
)
attribute_values = named(
    st.recursive(
        st.one_of(
            made(s.IntLiteral, st.builds(str.__add__, SIGNS, INTEGERS)),
            made(s.FloatLiteral, st.builds(str.__add__, SIGNS, FLOATS)),
            made(s.StringLiteral, STRINGS),
            made(s.BoolLiteral, st.booleans()),
            made(s.Name, NAMES),
        ),
        lambda inner: made(s.ListValue, listed(inner)),
        max_leaves=4,
    )
)
attributes = named(listed(made(s.Attribute, WORDS, attribute_values)))
callees = st.builds(
    lambda head, rest: (head, *rest), NAMES.filter(lambda name: name != "fn"), listed(WORDS)
) | st.builds(
    lambda head, rest: (head, *rest), st.sampled_from(["op", "dist", "schedule", "numerics"]), listed(WORDS, smallest=1)
)


def keywords(inner: Strategy) -> Strategy:
    return listed(made(s.Keyword, WORDS, inner | made(s.ListValue, listed(attribute_values))))


def slices(inner: Strategy) -> Strategy:
    return listed(inner | made(s.SliceRange, maybe(inner), maybe(inner), maybe(inner)), smallest=1)


def calls(inner: Strategy) -> Strategy:
    return made(s.Call, callees, listed(inner), keywords(inner), attributes)


expressions = named(
    st.recursive(
        literals | made(s.Name, NAMES) | made(s.TensorExpr, tensor_types),
        lambda inner: st.one_of(
            made(s.Group, inner),
            made(s.Unary, st.sampled_from("+-"), inner.map(lambda expr: fitting(expr, 5))),
            st.builds(binary, st.sampled_from(sorted(LEVELS)), inner, inner),
            made(s.Index, inner.map(lambda expr: fitting(expr, 6)), slices(inner)),
            calls(inner),
        ),
        max_leaves=8,
    )
)

# Statements

simple = named(
    st.one_of(
        made(s.Let, NAMES, types, maybe(expressions)),
        made(s.Assign, NAMES, maybe(slices(expressions)), expressions),
        made(s.CallStatement, calls(expressions)),
        made(s.Return, listed(expressions)),
        made(s.Barrier, maybe(STRINGS)),
        made(s.Assert, expressions, maybe(STRINGS)),
    )
)
blocks = named(
    st.recursive(
        made(s.Block, listed(simple)),
        lambda inner: made(
            s.Block,
            listed(
                st.one_of(
                    simple,
                    made(s.If, expressions, inner, maybe(inner)),
                    made(s.For, listed(NAMES, 1, 2), expressions, expressions, maybe(expressions), inner),
                    made(s.While, expressions, inner),
                )
            ),
        ),
        max_leaves=3,
    )
)

# Declarations

functions = [
    made(
        kind,
        NAMES,
        st.just(HERE),
        listed(made(s.Parameter, NAMES, types, maybe(expressions))),
        maybe(types),
        attributes,
        listed(made(s.Annotation, listed(expressions), keywords(expressions)), most=2),
        blocks,
    )
    for kind in (s.FunctionDecl, s.KernelDecl)
]
declarations = st.one_of(
    *functions,
    made(s.TypeDecl, NAMES, types),
    made(s.Let, NAMES, types, expressions),
    made(s.MeshDecl, NAMES, mesh_types),
)
programs = made(s.Program, listed(made(s.ModuleDecl, NAMES, listed(declarations)), most=2), st.just("t.tsr"))

Bare = Callable[[object], object]
Children = Callable[[s.Node], list[s.Node]]


def generated(examples: int) -> settings:
    """The same examples on every run."""
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )


def test_what_is_printed_parses_to_the_same_tree(bare: Bare, children: Children, pytestconfig: pytest.Config) -> None:
    """Up to places; what is printed prints as itself; and no class of the tree is left out, given examples enough.

    What hypothesis draws depends on the modules that are loaded, so a hundred programs may lack a rare statement.
    """
    examples = 300 if pytestconfig.getoption("--whole") else 100
    seen: set[type] = set()

    @generated(examples)
    @given(program=programs)
    def check(program: s.Program) -> None:
        text = format_program(program)
        assert bare(parse(text, "t.tsr")) == bare(program), text
        assert format_program(text) == text
        pending: list[s.Node] = [program]
        while pending:
            node = pending.pop()
            seen.add(type(node))
            pending.extend(children(node))

    check()
    nodes = {kind for kind in vars(s).values() if isinstance(kind, type) and issubclass(kind, s.Node)} - {s.Node}
    assert seen == nodes if examples >= 300 else len(nodes - seen) <= 2


def test_every_rule_has_a_method() -> None:
    """Lark calls a method by the name of the rule or of its alias; without one it would leave a tree of its own."""
    text = files("tessera_reference.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    rules = set(re.findall(r"^([a-z]\w*) *:", text, re.MULTILINE)) | set(re.findall(r"-> (\w+)", text))
    methods = {name for name in vars(TreeBuilder) if not name.startswith("_")}
    assert methods - rules == {"stmt"}  # with its semicolon
    assert rules - methods == {"matmul", "product", "sum"}  # aliases
