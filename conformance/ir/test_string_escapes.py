r"""The meaning of escapes: the text of an assertion, reported when it fails, has their characters (2.1, 14.1).

An escape is read once, from left to right: behind `\\` a letter is a letter, and a quote ends the string. The error
of a failed assertion carries its string (AMB-LANG-56).
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.level_programs import executed_text, lowered, results_of_text
from tessera_conformance.chapters.ir.kit.programs import SYNTAX, value_of
from tessera_conformance.dsl import program, tensor_of
from tessera_conformance.marks import clause, feature

QUOTE, BACKSLASH = clause("LANG-02.1-05"), clause("LANG-14.1-07", "LANG-02.1-05")

STRINGS = [
    pytest.param(r"say \"no\" now", 'say "no" now', id="quotes-inside", marks=QUOTE),
    pytest.param(r"\"first", '"first', id="quote-first", marks=QUOTE),
    pytest.param(r"last\"", 'last"', id="quote-last", marks=QUOTE),
    pytest.param(r"\"both\"", '"both"', id="quotes-around", marks=QUOTE),
    pytest.param(r"two\"\"more", 'two""more', id="quotes-in-a-row", marks=QUOTE),
    pytest.param(r"odd \" one", 'odd " one', id="one-quote", marks=QUOTE),
    pytest.param(r"a\\\"b", 'a\\"b', id="backslash-and-quote", marks=BACKSLASH),
    pytest.param(r"a\\\\b", "a\\\\b", id="two-backslashes", marks=BACKSLASH),
    pytest.param(r"path\\name", "path\\name", id="backslash-before-n", marks=BACKSLASH),
    pytest.param(r"a\\tb\\rc", "a\\tb\\rc", id="backslash-before-t-and-r", marks=BACKSLASH),
    pytest.param(r"a\\\nb", "a\\\nb", id="backslash-and-newline", marks=clause("LANG-02.1-35", "LANG-14.1-07")),
    pytest.param(r"one\ntwo", "one\ntwo", id="newline", marks=clause("LANG-02.1-35")),
    pytest.param(r"one\n\ntwo", "one\n\ntwo", id="two-newlines", marks=clause("LANG-02.1-35")),
    pytest.param(r"a\rb", "a\rb", id="carriage-return", marks=clause("LANG-14.1-08")),
    pytest.param(r"a\tb\t\tc", "a\tb\t\tc", id="tabs", marks=clause("LANG-14.1-09")),
    pytest.param(r"no // \"comment\" /* here */", 'no // "comment" /* here */', id="comment-signs", marks=QUOTE),
    pytest.param(r"100% {0} %s \"{\"", '100% {0} %s "{"', id="signs-of-formats", marks=QUOTE),
    pytest.param(r"; } return 2; \" {", '; } return 2; " {', id="statements", marks=QUOTE),
    pytest.param("one\ntwo\n\nthree", "one\ntwo\n\nthree", id="lines", marks=clause("LANG-02.1-04")),
    pytest.param(
        "na\u00efve\u00a0\u2116\u200b7",
        "na\u00efve\u00a0\u2116\u200b7",
        id="signs-beyond-ascii",
        marks=clause("LANG-02.1-05"),
    ),
]
"""Strings as they are written, and what they say."""

CATEGORIES = ("numerics", "types", "shapes")


def asserting(written):
    """A program that tells a string where its argument is not positive."""
    return program(f'assert(a > 0, "{written}");', "return a;", parameters="a: int32", result="int32")


def tells(check, observation, said):
    """The error says exactly this string, whatever stands around it."""
    rejected = check.rejects(observation, category=CATEGORIES, phase="execute")
    errors = [entry.message for entry in rejected.diagnostics if entry.severity == "error"]
    message = (errors or [rejected.message])[0]
    check.true(said in message, f"the error says {said!r}", message)
    check.true(f"\\{said}" not in message, "the backslash of an escape is not left before it", message)


@pytest.mark.parametrize(("written", "said"), STRINGS)
def test_a_string_says_what_its_escapes_stand_for(impl, check, written, said):
    """The error of a failing assertion has the characters; where the assertion holds nothing is reported (AMB-LANG-05).

    An assertion is checked when the program runs (AMB-LANG-56); a string may have several lines (AMB-LANG-71).
    """
    source = asserting(written)
    check.bits(value_of(impl, check, source, a=tensor_of("int32", 1)), tensor_of("int32", 1))
    tells(check, impl.language.execute(source=source, function="f", inputs={"a": tensor_of("int32", 0)}), said)


@feature("graph-ir-text")
@pytest.mark.parametrize(("written", "said"), STRINGS)
def test_a_string_is_the_same_in_the_printed_ir(impl, check, written, said):
    """Printed as Graph IR and read again, the message is the same (AMB-LANG-05, AMB-LANG-56, AMB-LANG-71)."""
    text = lowered(impl, check, asserting(written), "graph").text
    outputs = results_of_text(impl, check, text, "graph", a=tensor_of("int32", 1))
    check.equal([output.bits() for output in outputs], ["00000001"], "the value")
    tells(check, executed_text(impl, text, "graph", function="f", a=tensor_of("int32", 0)), said)


@clause("LANG-02.1-05", "LANG-14.1-07")
@pytest.mark.parametrize("count", range(1, 7))
def test_a_quote_ends_a_string_behind_pairs_of_backslashes_only(impl, check, count):
    r"""Behind `\`, `\\\` and `\\\\\` a quote is a character and the string goes on; behind pairs it is the end.

    There are five escapes (AMB-LANG-05).
    """
    ended = asserting("a" + "\\" * count)
    if count % 2:
        check.accepts(impl.language.parse(source=asserting("a" + "\\" * count + '"')))
        check.rejects(impl.language.parse(source=ended), **SYNTAX)
    else:
        check.accepts(impl.language.parse(source=ended))
        check.rejects(impl.language.parse(source=asserting("a" + "\\" * count + '"')), **SYNTAX)
