"""The canonical spelling of programs and of their comments, and the syntax tree as text (sections 2.3, 14.2)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from tessera_conformance.fuzz.trials import chooser_of, make_trial
from tessera_reference.language import Rejection, parse
from tessera_reference.language.formatter import format_program
from tessera_reference.language.parser import Lexer, Token, TreeBuilder
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


@pytest.mark.parametrize("text", [TIDY, UNTIDY], ids=["tidy", "untidy"])
def test_a_text_is_printed_as_one_of_the_same_tree(bare: Bare, text: str) -> None:
    """Up to places; the text that is printed is printed as itself."""
    once = format_program(text)
    assert bare(parse(once)) == bare(parse(text))
    assert format_program(once) == once


def test_generated_programs_are_printed_as_the_same_trees(bare: Bare, drawn: Callable[[int], int]) -> None:
    """Programs of the suite's generator, in any spelling: four hundred with `--whole`."""
    for index in range(drawn(400)):
        source = make_trial(chooser_of(7, index)).subject.source
        try:
            tree = parse(source)
        except Rejection:
            continue
        once = format_program(source)
        assert bare(parse(once)) == bare(tree), source
        assert format_program(once) == once


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
