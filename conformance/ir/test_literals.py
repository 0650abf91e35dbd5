"""Literals of numbers, strings and truth values as expressions (language spec, section 2.3)."""

import pytest

from tessera_conformance.chapters.ir.kit.programs import syntax_twins, value_of
from tessera_conformance.dsl import parameters_of, program, returning, tensor_of
from tessera_conformance.marks import clause

SCALARS = parameters_of("ab", "int32")


@clause("LANG-02.3-42")
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "fp16", "bf16", "fp32", "fp64", "fp8_e4m3"])
def test_an_integer_literal_takes_the_type_its_place_asks_for(impl, check, dtype):
    """`let a: fp32 = 3` and `a + 1` need no cast: a literal is of the type of its place or partner (AMB-LANG-54)."""
    source = program(f"let a: {dtype} = 3;", "return a + 1;", result=dtype)
    check.bits(value_of(impl, check, source), tensor_of(dtype, 4))


@clause("LANG-02.3-42")
def test_an_integer_literal_without_a_type_of_its_own_is_int32(impl, check):
    """An integer literal in a place without a type is an int32 (AMB-LANG-54)."""
    check.bits(value_of(impl, check, returning("3")), tensor_of("int32", 3))


@clause("LANG-02.3-42")
@pytest.mark.parametrize(
    ("dtype", "fits", "too_large"),
    [
        ("int8", "127", "128"),
        ("int16", "32767", "32768"),
        ("int32", "2147483647", "2147483648"),
        ("int64", "9223372036854775807", "9223372036854775808"),
    ],
)
def test_an_integer_literal_that_does_not_fit_is_refused(impl, check, dtype, fits, too_large):
    """The largest value of the type is accepted and the next one refused (AMB-LANG-54)."""
    check.bits(value_of(impl, check, returning(fits, result=dtype)), tensor_of(dtype, int(fits)))
    check.rejects(impl.language.verify(source=returning(too_large, result=dtype)), category=("types", "numerics"))


@clause("LANG-02.3-42")
@pytest.mark.parametrize(
    ("dtype", "literal", "value"),
    [
        ("fp64", 2**53 + 1, 2**53),
        ("fp64", 2**70 + 2**17 + 1, 2**70 + 2**18),
        ("fp32", 2**53 + 2**29 + 1, 2**53 + 2**30),
        ("bf16", 2**32 + 2**24 + 1, 2**32 + 2**25),
        ("bf16", 2**60 + 2**52 + 1, 2**60 + 2**53),
    ],
    ids=["fp64-tie", "fp64-beyond-int64", "fp32", "bf16", "bf16-beyond-fp64"],
)
def test_an_integer_literal_is_rounded_once_into_a_float(impl, check, dtype, literal, value):
    """A little more than half way it goes up, also where a wider float has the middle itself (AMB-LANG-87)."""
    source = program(f"let a: {dtype} = {literal};", "return a;", result=dtype)
    check.bits(value_of(impl, check, source), tensor_of(dtype, value))


@clause("LANG-02.3-72")
@pytest.mark.parametrize(
    ("dtype", "bits"),
    [("fp64", "3fb999999999999a"), ("fp32", "3dcccccd"), ("bf16", "3dcd"), ("fp16", "2e66"), ("fp8_e4m3", "1d")],
)
def test_a_float_literal_takes_the_type_its_place_asks_for(impl, check, dtype, bits):
    """0.1 is rounded once, to nearest, into the type of its place (AMB-LANG-87)."""
    value = value_of(impl, check, returning("0.1", result=dtype))
    check.equal((value.dtype, value.shape, value.bits()), (dtype, (), bits))


@clause("LANG-02.3-72")
def test_a_float_literal_without_a_type_of_its_own_is_fp32(impl, check):
    """A float literal in a place without a type is an fp32, with a sign or without (AMB-LANG-54)."""
    for literal in ("1.5", "-1.5"):
        check.bits(value_of(impl, check, returning(literal)), tensor_of("fp32", float(literal)))


@clause("LANG-02.3-73")
def test_a_string_is_a_literal(impl, check):
    """The grammar accepts a string in the place of an expression; an unterminated one is refused."""
    syntax_twins(impl, check, program('g(a, "text");', parameters=SCALARS), program('g(a, "text);', parameters=SCALARS))
    syntax_twins(impl, check, program('g(a, "");', parameters=SCALARS), program('g(a, ");', parameters=SCALARS))


@pytest.mark.parametrize(
    ("word", "value"),
    [
        pytest.param("true", True, id="true", marks=clause("LANG-02.3-74")),
        pytest.param("false", False, id="false", marks=clause("LANG-02.3-75")),
    ],
)
def test_the_two_words_of_truth_are_literals(impl, check, word, value):
    """`true` and `false` are bool literals; with a capital they are unknown names."""
    check.bits(value_of(impl, check, returning(word, result="bool")), tensor_of("bool", value))
    check.bits(
        value_of(impl, check, returning(f"{word} == b", "b: bool"), b=tensor_of("bool", value)), tensor_of("bool", True)
    )
    check.rejects(impl.language.verify(source=returning(word.title(), result="bool")), category="types")
