"""The canonical spelling of programs and of their comments, and the syntax tree as text (sections 2.3, 14.2)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tessera_reference.ir.diagnostics import Span
from tessera_reference.language import Rejection, parse
from tessera_reference.language import syntax as s
from tessera_reference.language.formatter import format_program
from tessera_reference.language.grammar import RESERVED, Lexer, Token, TreeBuilder
from tessera_reference.language.syntax import print_tree

Bare = Callable[[object], object]
UNTIDY = """\
module   alpha{type Row=tensor< ? x 64 x bf16;layout = row_major >;
let scale:fp32=-1.50e-3;mesh g=mesh<axes=[dp,tp],shape=[4,2]>;
@schedule(m=128)func step(X:tensor<LxDxbf16>,e:fp32=1.)->tensor<LxDxbf16>@{note="a
b",tags=[ -1,[x , true] ],empty=[]}{numerics . profile ( "strict" ) ;
for(i in 0 : 10:2){Y[i,1:2,:,::2]=- X[i]+(Y [i,0]-3)/2;if(i==4){return Y;}else{barrier( );}}
while ( e<1.5 ) { assert ( e >0,"positive" ); return; }
let Z : fragment<16,16,16 , bf16,layout=row_major>;
let M : memref<4x4xint8> [addrspace = shared]; let F: fn( int8 , bool )->fp32;
return Y@W+Z , op.transpose(X,perm=[1,0])@{}@A;}
kernel empty(){}}


module beta{}
"""
TIDY = r"""module alpha {
  type Row = tensor<?x64xbf16; layout=row_major>;
  let scale: fp32 = -1.50e-3;
  mesh g = mesh<axes=[dp, tp], shape=[4, 2]>;

  @schedule(m=128)
  func step(X: tensor<LxDxbf16>, e: fp32 = 1.) -> tensor<LxDxbf16> @{
    note="a\nb",
    tags=[-1, [x, true]],
    empty=[]
  } {
    numerics.profile("strict");
    for (i in 0:10:2) {
      Y[i, 1:2, :, ::2] = -X[i] + (Y[i, 0] - 3) / 2;
      if (i == 4) {
        return Y;
      } else {
        barrier();
      }
    }
    while (e < 1.5) {
      assert(e > 0, "positive");
      return;
    }
    let Z: fragment<16,16,16,bf16; layout=row_major>;
    let M: memref<4x4xint8>[addrspace=shared];
    let F: fn(int8, bool) -> fp32;
    return Y @ W + Z, op.transpose(X, perm=[1, 0]) @ A;
  }

  kernel empty() {}
}

module beta {}
"""


def test_a_program_is_spelled_in_one_way() -> None:
    assert format_program(UNTIDY) == TIDY
    assert format_program(TIDY) == TIDY


def test_a_tree_is_spelled_like_its_text() -> None:
    assert format_program(parse(UNTIDY)) == TIDY


def statement(text: str) -> str:
    """A statement in its canonical spelling, without the indentation of its function."""
    program = format_program(f"module m {{ func f() {{ {text} }} }}")
    return "\n".join(line[4:] for line in program.splitlines()[2:-2])


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(
            f"let result: tensor<64x64xfp32> = op.something({', '.join(['argument'] * 6)});",
            "let result: tensor<64x64xfp32> = op.something(\n" + ",\n".join(["  argument"] * 6) + "\n);",
            id="arguments",
        ),
        pytest.param(
            f"x = {' + '.join(['operand * factor'] * 5)} - {'y' * 14};",
            "x = operand * factor\n" + "  + operand * factor\n" * 4 + "  - " + "y" * 14 + ";",
            id="operators-of-the-loosest-level",
        ),
        pytest.param(
            f"return {', '.join(['value' * 5] * 4)};",
            f"return {'value' * 5},\n" + ",\n".join([f"  {'value' * 5}"] * 3) + ";",
            id="values",
        ),
        pytest.param(
            f"f(a, g({', '.join(['b' * 20] * 5)}));",
            "f(\n  a,\n  g(\n" + ",\n".join([f"    {'b' * 20}"] * 5) + "\n  )\n);",
            id="nested",
        ),
        pytest.param(
            f"f(a) @{{one={'b' * 40}, two={'c' * 45}}};",
            f"f(a) @{{\n  one={'b' * 40},\n  two={'c' * 45}\n}};",
            id="attributes",
        ),
        pytest.param(
            f"if ({'a' * 60} == ({'b' * 40} + c)) {{ }}",
            f"if (\n  {'a' * 60}\n    == ({'b' * 40} + c)\n) {{}}",
            id="condition",
        ),
        pytest.param(f"f({'a' * 97});", f"f({'a' * 97});"[:2] + f"\n  {'a' * 97}\n);", id="what-cannot-be-broken"),
    ],
)
def test_long_lines_are_broken(written: str, expected: str) -> None:
    assert statement(written) == expected
    assert statement(expected) == expected


@pytest.mark.parametrize(
    ("written", "tidy"),
    [("K[: :, a]", "K[:, a]"), ("K[0:1:]", "K[0:1]"), ("K[1: /* to the end */ :, ::]", "K[1: /* to the end */, :]")],
)
def test_a_colon_without_a_step_is_not_spelled(written: str, tidy: str) -> None:
    assert f"return {tidy};" in format_program(f"module m {{ func f() {{ return {written}; }} }}")


@pytest.mark.parametrize(("length", "lines"), [(84, 1), (85, 4)])
def test_a_line_has_a_hundred_columns(length: int, lines: int) -> None:
    """Four of indentation, twelve for `f(`, a name of six letters, a comma, a blank and `);`, and the second name."""
    assert len(statement(f"f({'a' * 6}, {'b' * length});").splitlines()) == lines


COMMENTED = """\
// At the top.

/* Before
   the module. */
module m { // behind the brace
  // before a function

  // and directly before it
  func f(
    a: int32, // the first
    // of its own
    b: int32 /* last */
  ) { // begins

    // at the top of a block
    let c: int32 = a; // behind a statement
    /* leading */ c = b;


    // after blank lines
    if (c /* here */ == 1) { /* nothing */ }
    else { // why
      return; /* done */
    } // end of else
    g(/* first= */ a, b /* second */, c /* third */);
    g(a); /* one
    that is long */
    // and one behind it
    // at the end of a block
  }
  // at the end of the module
} // behind it
// at the very end
"""
SETTLED = (
    ("  ) { // begins\n\n", "  ) { // begins\n"),
    ("c = b;\n\n\n", "c = b;\n\n"),
    ("{ /* nothing */ }\n    else {", "{ /* nothing */ } else {"),
)


def test_comments_stay_where_they_stand() -> None:
    """Only blank lines at the beginning of a block, and the second of two, go."""
    expected = COMMENTED
    for before, after in SETTLED:
        assert before in expected
        expected = expected.replace(before, after)
    assert format_program(COMMENTED) == expected
    assert format_program(expected) == expected


def test_a_comment_behind_one_of_several_lines_gets_its_own() -> None:
    before = "module m {\n  let a: int8 = 1; /* one\n  two */ // three\n}\n"
    assert format_program(before) == before.replace("*/ //", "*/\n  //")


def comments_of(text: str) -> list[str]:
    lexer = Lexer(text)
    assert list(lexer)
    return [comment.value.rstrip() for comment in lexer.comments]


def tokens_of(text: str) -> list[Token]:
    return list(Lexer(text))[:-1]


COMMENTS = [
    "/* c */",
    "// c\n",
    "/* two\n   lines */",
    "\n// own\n",
    "\n/* own */\n",
    "\n\n\n// apart\n\n",
    "/**/",
    "//\n",
]


@pytest.mark.parametrize(("seed", "share"), [(seed, share) for seed in range(6) for share in (0.02, 0.2, 0.7)])
def test_comments_anywhere_are_kept(bare: Bare, seed: int, share: float) -> None:
    """Comments and white space between any two tokens: all of them are there, in order, around the same tree; and the
    text that comes out comes out again."""
    choose = random.Random(seed)
    pieces = []
    for number, token in enumerate(tokens_of(TIDY)):
        pieces.append(choose.choice([" ", "\n", "\n\n\n", "\t", "\r\n"]) if number else "")
        while choose.random() < share:
            pieces.append(choose.choice(COMMENTS) + choose.choice(["", " ", "\n", "\n\n"]))
        pieces.append(token.value)
    text = "".join(pieces) + choose.choice(["", "\n", "// end", "\n/* end */\n\n"])
    once = format_program(text)
    assert comments_of(once) == comments_of(text)
    assert bare(parse(once)) == bare(parse(text)) == bare(parse(TIDY))
    assert format_program(once) == once


def test_no_line_ends_with_a_blank() -> None:
    text = format_program("module m { // c  \n  // d \t\n func f() { return a; // e \n\n\n} }")
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert "\n\n\n" not in text


@pytest.mark.parametrize("text", ["", "// nothing\n", "/* nothing */\n"])
def test_a_text_without_modules(text: str) -> None:
    assert format_program(text) == text


def test_annotations_stay_where_they_stand() -> None:
    """Before the function, before its attributes, before its block (AMB-LANG-16)."""
    text = "module m {\n  @schedule(a=1)\n  func f() @schedule(b=1) @{c=1} @schedule(d=1) {}\n}\n"
    assert format_program(text) == text


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(Rejection):
        format_program("module m {")


def test_the_examples_are_tidy() -> None:
    root = Path(__file__).parents[2]
    for path in sorted((root / "examples").glob("*.tsr")):
        text = path.read_text(encoding="utf-8")
        assert comments_of(format_program(text)) == comments_of(text)
        assert max(map(len, format_program(parse(text)).splitlines())) <= 100


def test_deep_programs_are_spelled_too(bare: Bare) -> None:
    deep = f"module m {{ func f() {{ return {'(' * 450}a{')' * 450}; }} }}"
    assert parse(format_program(deep)).modules[0].name == "m"
    long = f"module m {{ func f() {{ return a{' + a' * 5000}; }} }}"
    assert format_program(long).count("+ a") == 5000


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

    What hypothesis draws depends on the modules that are loaded, so fifty programs may lack a rare statement.
    """
    examples = 300 if pytestconfig.getoption("--whole") else 50
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


SOURCE = """module m {
  func f(a: int32 = -1) -> tensor<4x?xfp32; layout=blocked(bm=2)> {
    barrier();
    return op.sum(a[:, 0], axis=1), "x";
  }
}"""
TREE = """\
Program 1:1-6:2 filename='t.tsr'
  modules: ModuleDecl 1:1-6:2 name='m'
    declarations: FunctionDecl 2:3-5:4 name='f' name_span=2:8-2:9
      parameters: Parameter 2:10-2:23 name='a'
        type: NamedType 2:13-2:18 name='int32'
        default: Unary 2:21-2:23 operator='-'
          operand: IntLiteral 2:22-2:23 text='1'
      result: TensorType 2:28-2:66 dtype='fp32'
        shape: Dimension 2:35-2:36 text='4'
        shape: Dimension 2:37-2:38 text='?'
        layout: LayoutSpec 2:52-2:65 name='blocked' parameters=(('bm', '2'),)
      body: Block 2:67-5:4
        statements: Barrier 3:5-3:14
        statements: Return 4:5-4:40
          values: Call 4:12-4:35 callee=('op', 'sum')
            arguments: Index 4:19-4:26
              operand: Name 4:19-4:20 text='a'
              slices: SliceRange 4:21-4:22
              slices: IntLiteral 4:24-4:25 text='0'
            keywords: Keyword 4:28-4:34 name='axis'
              value: IntLiteral 4:33-4:34 text='1'
          values: StringLiteral 4:37-4:40 value='x'
"""


def test_every_node_has_a_line_with_its_place() -> None:
    assert print_tree(parse(SOURCE, "t.tsr")) == TREE


def test_deep_trees_are_shown_too() -> None:
    tree = parse(f"module m {{ func f() {{ return a{' + a' * 3000}; }} }}")
    assert print_tree(tree).count("Binary") == 3000
