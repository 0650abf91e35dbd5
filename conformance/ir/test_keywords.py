"""The reserved words (language spec, section 2.1)."""

import pytest

from tessera_conformance.chapters.ir.kit.programs import SYNTAX, syntax_twins, value_of
from tessera_conformance.dsl import RESERVED, func, module, program, returning, tensor_of
from tessera_conformance.marks import clause

WORDS = [pytest.param(word, marks=clause(f"LANG-02.1-{number:02}")) for number, word in enumerate(RESERVED, start=8)]
ATTRIBUTES_OF_THE_TEXT = ["layout", "dtype", "precision", "op", "align"]


@pytest.mark.parametrize("word", WORDS)
def test_a_reserved_word_names_no_value(impl, check, word):
    """A reserved word is refused as the name of a local variable; the word with an underscore after it is free.

    The words are reserved although the text uses them in names (AMB-LANG-01).
    """
    syntax_twins(impl, check, program(f"let {word}_: int32 = 1;"), program(f"let {word}: int32 = 1;"))


@pytest.mark.parametrize("word", WORDS)
def test_a_reserved_word_names_no_parameter(impl, check, word):
    """A reserved word is refused as the name of a parameter; with another letter case it is free (AMB-LANG-01)."""
    syntax_twins(impl, check, program(parameters=f"{word.title()}: int32"), program(parameters=f"{word}: int32"))


@pytest.mark.parametrize("word", WORDS)
def test_a_reserved_word_names_no_declaration(impl, check, word):
    """A reserved word is refused as the name of a func and of a module (AMB-LANG-01)."""
    syntax_twins(impl, check, module(func(name=f"{word}s"), name=f"_{word}"), module(func(name=word), name=f"_{word}"))
    check.rejects(impl.language.parse(source=module(func(name=f"{word}s"), name=word)), **SYNTAX)


@pytest.mark.parametrize("word", WORDS)
def test_a_reserved_word_is_no_expression(impl, check, word):
    """A reserved word is refused where a value is wanted; an identifier that begins with it is a value.

    The words are reserved although the text uses them in names (AMB-LANG-01).
    """
    source = returning(f"{word}_1", f"{word}_1: int32", "int32")
    check.bits(value_of(impl, check, source, **{f"{word}_1": tensor_of("int32", 4)}), tensor_of("int32", 4))
    check.rejects(impl.language.parse(source=source.replace(f"return {word}_1", f"return {word}")), **SYNTAX)


@clause("LANG-02.3-13")
@pytest.mark.parametrize("word", ATTRIBUTES_OF_THE_TEXT)
def test_a_reserved_word_can_name_an_attribute(impl, check, word):
    """The attributes that the text itself uses can be written, reserved or not (AMB-LANG-01)."""
    syntax_twins(impl, check, program(attributes="{" + word + "=1}"), program(attributes="{" + word + "}"))
