"""Tokens: identifiers, literals, comments and white space (language spec, sections 2.1 and 14.1)."""

from decimal import Context
from fractions import Fraction

import pytest

from tessera_conformance.chapters.ir.kit.programs import SYNTAX, declared, syntax_twins, value_of
from tessera_conformance.dsl import func, module, program, returning, tensor_of
from tessera_conformance.marks import clause

IDENTIFIERS = [
    pytest.param("a", id="small-letter"),
    pytest.param("Z", id="capital"),
    pytest.param("_", id="underscore"),
    pytest.param("__", id="underscores"),
    pytest.param("_9", id="underscore-digit"),
    pytest.param("aB_3", id="mixture"),
    pytest.param("x", id="the-letter-x"),
    pytest.param("x64", id="like-a-dimension"),
    pytest.param("e5", id="like-an-exponent"),
    pytest.param("lets", id="begins-like-a-keyword"),
    pytest.param("Module", id="capitalized-keyword"),
    pytest.param("i" * 64, id="long"),
]
CONTEXTUAL_WORDS = ["shape", "axes", "addrspace", "fragment", "memref", "fn", "assert"]


@clause("LANG-02.1-01", "LANG-14.1-01")
@pytest.mark.parametrize("name", IDENTIFIERS)
def test_a_letter_or_underscore_starts_an_identifier(impl, check, name):
    """Letters, digits and underscores after a letter or underscore name a module, a func, a parameter and a value."""
    source = module(
        func(f"let {name}: int32 = a0;", f"return {name};", parameters="a0: int32", result="int32", name=name),
        func(f"return {name};", parameters=f"{name}: int32", result="int32", name="g"),
        name=name,
    )
    check.equal(declared(impl, check, source), {name: [name, "g"]})
    check.bits(value_of(impl, check, source, name, a0=tensor_of("int32", 7)), tensor_of("int32", 7))
    check.bits(value_of(impl, check, source, "g", **{name: tensor_of("int32", 8)}), tensor_of("int32", 8))


@clause("LANG-02.1-01", "LANG-14.1-01")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("9a", id="digit-first"),
        pytest.param("a-b", id="hyphen"),
        pytest.param("a$b", id="dollar"),
        pytest.param("a.b", id="point"),
        pytest.param("a b", id="blank"),
        pytest.param("caf\u00e9", id="accented-letter"),
        pytest.param("a\u0663", id="arabic-digit"),
    ],
)
def test_anything_else_is_no_identifier(impl, check, name):
    """A name with another character, or with a digit in front, is refused; its twin has underscores there."""
    legal = "_" + "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)
    syntax_twins(impl, check, program(f"let {legal}: int32 = 1;"), program(f"let {name}: int32 = 1;"))


@clause("LANG-02.1-01", "LANG-14.1-01")
def test_upper_and_lower_case_differ(impl, check):
    """`a` and `A` are two identifiers."""
    source = program("let a: int32 = 1;", "let A: int32 = 2;", "return a - A;", result="int32")
    check.bits(value_of(impl, check, source), tensor_of("int32", -1))


@clause("LANG-02.1-01", "LANG-14.1-01")
@pytest.mark.parametrize("length", [8, 31, 32, 63, 64, 128, 255, 300])
def test_identifiers_differ_in_every_character(impl, check, length):
    """Values, parameters and funcs whose names share so many characters at the beginning are different ones."""
    begin = "n" * length
    source = module(
        func("return p + 1;", parameters="p: int32", result="int32", name=f"{begin}e"),
        func("return p * 100;", parameters="p: int32", result="int32", name=f"{begin}f"),
        func(
            f"let {begin}: int32 = {begin}a - {begin}b;",
            f"let {begin}c: int32 = {begin}e({begin} * 10);",
            f"return {begin}f({begin}c) - {begin};",
            parameters=f"{begin}a: int32, {begin}b: int32",
            result="int32",
        ),
    )
    inputs = {f"{begin}a": tensor_of("int32", 7), f"{begin}b": tensor_of("int32", 4)}
    check.bits(value_of(impl, check, source, **inputs), tensor_of("int32", 3097))


@clause("LANG-02.1-01", "LANG-14.1-01")
@pytest.mark.parametrize("word", CONTEXTUAL_WORDS)
def test_grammar_words_that_are_not_reserved_are_identifiers(impl, check, word):
    """The list of reserved words is closed: other words of the grammar can name a value (AMB-LANG-02)."""
    source = program(f"let {word}: int32 = 5;", f"return {word};", result="int32")
    check.bits(value_of(impl, check, source), tensor_of("int32", 5))


@clause("LANG-02.1-02", "LANG-14.1-02")
@pytest.mark.parametrize(
    ("literal", "dtype", "value"),
    [
        ("0", "int32", 0),
        ("7", "int32", 7),
        ("1234567890", "int32", 1234567890),
        ("010", "int32", 10),
        ("9223372036854775807", "int64", 9223372036854775807),
    ],
)
def test_an_integer_literal_is_decimal_digits(impl, check, literal, dtype, value):
    """One or more digits, read as decimal; leading zeros mean nothing."""
    check.bits(value_of(impl, check, returning(literal, result=dtype)), tensor_of(dtype, value))


@clause("LANG-02.1-02", "LANG-14.1-02")
@pytest.mark.parametrize("literal", ["0x10", "0b10", "0o17", "1_000", "10u", "1 0"])
def test_no_other_spelling_of_an_integer(impl, check, literal):
    """Prefixes, separators and suffixes are refused (AMB-LANG-31); the digits alone are accepted."""
    digits = "".join(letter for letter in literal if letter.isdigit())
    syntax_twins(impl, check, returning(digits, result="int32"), returning(literal, result="int32"))


@clause("LANG-02.1-03")
@pytest.mark.parametrize(("literal", "value"), [("1e5", 1e5), ("2E+3", 2e3), ("25e-2", 0.25)])
def test_a_float_literal_can_have_an_exponent_and_no_point(impl, check, literal, value):
    """An exponent alone makes a float (AMB-LANG-04)."""
    check.bits(value_of(impl, check, returning(literal, result="fp64")), tensor_of("fp64", value))


@clause("LANG-02.1-03", "LANG-14.1-03")
@pytest.mark.parametrize(
    ("literal", "value"),
    [("1.5", 1.5), ("1.", 1.0), ("0.5", 0.5), ("12.5e1", 125.0), ("1.5E+3", 1500.0), ("50.0e-2", 0.5), ("3.e2", 300.0)],
)
def test_a_float_literal_has_digits_and_a_point(impl, check, literal, value):
    """Digits, a point, optional digits and an optional exponent with an optional sign."""
    check.bits(value_of(impl, check, returning(literal, result="fp64")), tensor_of("fp64", value))


EXACTLY = Context(prec=200)

LONG_LITERALS = {
    "small": (f"{EXACTLY.power(2, -60):f}", Fraction(1, 1 << 60)),
    "smaller": (f"{EXACTLY.power(2, -100):f}", Fraction(1, 1 << 100)),
    "zeros-in-front": ("0" * 40 + "1.5", 1.5),
    "zeros-behind": ("1.5" + "0" * 80, 1.5),
    "large": (f"{1 << 100}.0", 1 << 100),
    "large-with-an-exponent": ("25" + "0" * 40 + ".0e-41", 2.5),
    "small-with-an-exponent": ("0." + "0" * 40 + "25e41", 2.5),
    "long-exponent": ("1.5e+00000000000000000000002", 150),
}
"""Literals of many digits, and their values, which fp32 has exactly."""


@clause("LANG-02.1-03", "LANG-14.1-03", "LANG-02.3-72")
@pytest.mark.parametrize(("literal", "value"), LONG_LITERALS.values(), ids=LONG_LITERALS)
@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
def test_every_digit_of_a_float_literal_counts(impl, check, literal, value, dtype):
    """A literal may have more digits than its type, in front of the point, behind it and in the exponent."""
    check.bits(value_of(impl, check, returning(literal, result=dtype)), tensor_of(dtype, value))


@clause("LANG-02.1-03", "LANG-14.1-03")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pytest.param("0.5", ".5", id="no-digit-before-the-point"),
        pytest.param("1.5e1", "1.5e", id="empty-exponent"),
        pytest.param("1.5e+1", "1.5e+", id="sign-without-exponent"),
        pytest.param("1.5", "1.5.5", id="two-points"),
        pytest.param("1.5", "1.5f", id="suffix"),
        pytest.param("1.5", "1 .5", id="blank-inside"),
    ],
)
def test_a_malformed_float_literal_is_refused(impl, check, legal, illegal):
    """A point needs digits before it, an exponent needs digits after it (AMB-LANG-04)."""
    syntax_twins(impl, check, returning(legal, result="fp64"), returning(illegal, result="fp64"))


def annotated(string):
    """A program with a string as the value of an attribute."""
    return program(attributes="{note=" + string + "}")


@clause("LANG-02.1-04")
@pytest.mark.parametrize(
    "string",
    [
        pytest.param('""', id="empty"),
        pytest.param('"text"', id="word"),
        pytest.param('"a b, c; d} // e /* f"', id="punctuation"),
        pytest.param('"it\'s"', id="single-quote"),
        pytest.param('"first\nsecond"', id="newline"),
    ],
)
def test_a_string_stands_between_double_quotes(impl, check, string):
    """All characters between double quotes are text, newlines included (AMB-LANG-71)."""
    check.accepts(impl.language.parse(source=annotated(string)))


@clause("LANG-02.1-04")
@pytest.mark.parametrize(
    "string", [pytest.param("'text'", id="single-quotes"), pytest.param("`text`", id="backquotes")]
)
def test_other_quotes_make_no_string(impl, check, string):
    """Single quotes and backquotes are refused; double quotes around the same text are accepted."""
    syntax_twins(impl, check, annotated('"text"'), annotated(string))


@clause("LANG-02.1-04")
@pytest.mark.parametrize("string", [pytest.param('"text', id="no-end"), pytest.param(r'"text\"', id="escaped-end")])
def test_an_unterminated_string_is_refused(impl, check, string):
    """A string that is never closed is refused (AMB-LANG-71); its twin has the closing quote."""
    syntax_twins(impl, check, annotated(string + '"'), annotated(string))


@pytest.mark.parametrize(
    "escape",
    [
        pytest.param(r"\"", id="quote", marks=clause("LANG-02.1-05")),
        pytest.param(r"\n", id="newline", marks=clause("LANG-02.1-35")),
        pytest.param(r"\\", id="backslash", marks=clause("LANG-14.1-07")),
        pytest.param(r"\r", id="carriage-return", marks=clause("LANG-14.1-08")),
        pytest.param(r"\t", id="tab", marks=clause("LANG-14.1-09")),
    ],
)
def test_an_escape_is_accepted_anywhere_in_a_string(impl, check, escape):
    """The five escapes are accepted at the start, in the middle, at the end and twice in a row (AMB-LANG-05)."""
    for string in (f'"{escape}"', f'"{escape}a"', f'"a{escape}b"', f'"a{escape}"', f'"{escape}{escape}"'):
        check.accepts(impl.language.parse(source=annotated(string)), f"the string {string} is legal")
    check.rejects(impl.language.parse(source=annotated(f'"{escape}" a')), **SYNTAX)


@clause("LANG-14.1-04")
@pytest.mark.parametrize(
    "letter",
    [
        pytest.param("a", id="a"),
        pytest.param("b", id="b"),
        pytest.param("0", id="zero"),
        pytest.param("x", id="x"),
        pytest.param("u", id="u"),
        pytest.param("N", id="capital-n"),
        pytest.param("'", id="single-quote"),
        pytest.param(" ", id="blank"),
    ],
)
def test_another_escape_is_refused(impl, check, letter):
    r"""A backslash before anything but a backslash, a quote, n, r or t is refused; `\t` in its place is accepted.

    There are five escapes (AMB-LANG-05). Nor is a string with another one passed over where no string belongs.
    """
    syntax_twins(impl, check, annotated(r'"a\t b"'), annotated(rf'"a\{letter} b"'))
    twins = (program(*between, "return a;", parameters="a: int32") for between in ([], [rf'"a\{letter} b"']))
    syntax_twins(impl, check, *twins)


@clause("LANG-02.1-06", "LANG-14.1-06")
@pytest.mark.parametrize(
    "comment",
    [
        pytest.param("//", id="empty"),
        pytest.param("// return 0;", id="code"),
        pytest.param("//// /* not a block", id="block-opening"),
        pytest.param('// "not a string', id="quote"),
        pytest.param("// \u2192 caf\u00e9", id="other-letters"),
        pytest.param("// one\r let a: int32 = 5;", id="carriage-return"),
        pytest.param("// C:\\", id="backslash"),
    ],
)
def test_a_line_comment_runs_to_the_end_of_its_line(impl, check, comment):
    """The text from two slashes to the end of the line is skipped, and no more."""
    source = program(f"let a: int32 = 1; {comment}", comment, "return a;", result="int32")
    check.bits(value_of(impl, check, source), tensor_of("int32", 1))


@clause("LANG-02.1-06", "LANG-14.1-06")
def test_the_end_of_the_text_ends_a_line_comment(impl, check):
    """No newline is needed after the last comment (AMB-LANG-30)."""
    syntax_twins(impl, check, program() + "// the end", program() + "/ the end")


@clause("LANG-02.1-06", "LANG-14.1-06")
def test_code_after_two_slashes_is_not_read(impl, check):
    """A closing brace in a line comment closes nothing; without the slashes it does."""
    syntax_twins(impl, check, "module m { // }\n}", "module m { }\n}")


@clause("LANG-02.1-07")
@pytest.mark.parametrize(
    "comment",
    [
        pytest.param("/**/", id="empty"),
        pytest.param("/* return 0; */", id="code"),
        pytest.param("/* one\n two\n three */", id="lines"),
        pytest.param("/* // */", id="slashes"),
        pytest.param("/***/", id="stars"),
        pytest.param("/*/ */", id="overlapping-ends"),
        pytest.param('/* "open */', id="quote"),
    ],
)
def test_a_block_comment_stands_between_any_two_tokens(impl, check, comment):
    """The text between slash-star and star-slash separates tokens and has no meaning, over lines too."""
    source = program(f"let{comment}a:{comment}int32 = 1{comment};", f"{comment}return{comment}a;", result="int32")
    check.bits(value_of(impl, check, source), tensor_of("int32", 1))


@clause("LANG-02.1-07")
def test_an_unterminated_block_comment_is_refused(impl, check):
    """A block comment that is never closed is refused (AMB-LANG-71), also where only `/*/` follows."""
    syntax_twins(impl, check, program() + "/* the end */", program() + "/* the end")
    check.rejects(impl.language.parse(source=program() + "/*/"), **SYNTAX)


@clause("LANG-14.1-10", "LANG-02.1-07")
def test_the_first_star_slash_ends_a_block_comment(impl, check):
    """The code between two block comments is alive."""
    source = program("let a: int32 = 1 /* one */ + 2 /* three */;", "return a;", result="int32")
    check.bits(value_of(impl, check, source), tensor_of("int32", 3))


@clause("LANG-14.1-10")
def test_block_comments_do_not_nest(impl, check):
    """A second slash-star opens nothing (AMB-LANG-71): one star-slash ends the comment, a second is stray."""
    syntax_twins(impl, check, program() + "/* outer /* inner */", program() + "/* outer /* inner */ */")


@clause("LANG-14.1-05")
@pytest.mark.parametrize(
    "space",
    [
        pytest.param(" ", id="space"),
        pytest.param("\t", id="tab"),
        pytest.param("\n", id="newline"),
        pytest.param("\r", id="carriage-return"),
        pytest.param("\r\n", id="crlf"),
        pytest.param(" \t\r\n \n\t", id="mixture"),
    ],
)
def test_white_space_separates_tokens_and_means_nothing_else(impl, check, space):
    """The same tokens with any white space between them are the same program."""
    tokens = "module m { func f ( a : tensor < 2 x int32 > ) -> tensor < 2 x int32 > { return a + a ; } }"
    source = space + tokens.replace(" ", space) + space
    check.bits(value_of(impl, check, source, a=tensor_of("int32", [1, 2])), tensor_of("int32", [2, 4]))


@clause("LANG-14.1-05", "LANG-02.1-06", "LANG-02.1-07")
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["newline", "crlf"])
def test_a_line_may_end_in_a_carriage_return_and_a_newline(impl, check, end):
    """Such an end stands between statements, behind a line comment, which it ends, and inside a block comment."""
    source = program(
        "// adds two numbers",
        "let d: int32 = a // the first",
        '  + b; // and the second, of which " begins no string',
        "/* nothing",
        "   // of this",
        "   d = 0; */ d = d * 10;",
        "return d; //",
        parameters="a: int32, b: int32",
        result="int32",
    ).replace("\n", end)
    check.bits(value_of(impl, check, source, a=tensor_of("int32", 3), b=tensor_of("int32", 4)), tensor_of("int32", 70))


@clause("LANG-14.1-05")
def test_no_white_space_is_needed_beside_punctuation(impl, check):
    """A program without any avoidable blank is accepted; one without a needed blank is not."""
    check.accepts(impl.language.parse(source="module m{func f(a:int32)->int32{return a+a;}}"))
    check.rejects(impl.language.parse(source="modulem{func f(a:int32)->int32{return a+a;}}"), **SYNTAX)


@clause("LANG-14.1-05")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [("a <= b", "a < = b"), ("a == b", "a = = b"), ("a != b", "a ! = b"), ("a >= b", "a > = b")],
    ids=["le", "eq", "ne", "ge"],
)
def test_white_space_inside_a_token_splits_it(impl, check, legal, illegal):
    """An operator of two characters takes no blank between them."""
    check.accepts(impl.language.parse(source=returning(legal, "a: int32, b: int32", "bool")))
    check.rejects(impl.language.parse(source=returning(illegal, "a: int32, b: int32", "bool")), **SYNTAX)
