"""The canonical spelling of programs: what `fmt` makes of them, and that comments stay where they stand."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tessera_reference.language import Rejection, parse
from tessera_reference.language.formatter import format_program
from tessera_reference.language.grammar import Lexer, Token

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
