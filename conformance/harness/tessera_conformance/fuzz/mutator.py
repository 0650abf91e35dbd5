"""Mutated texts: tokens and characters dropped, doubled, exchanged, put in, cut off and piled up.

All that is known of such a text is that a front end must answer it, with a result or with diagnostics.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tessera_conformance.dsl import DTYPES, RESERVED
from tessera_conformance.fuzz.choices import Chooser
from tessera_conformance.fuzz.texts import BRACKETS, FRAGMENTS

LONGEST = 20_000
"""Characters; a text is cut here, so that piling up does not make one text as slow as a thousand."""

WORDS = (*RESERVED, *DTYPES, "tensor", "memref", "fragment", "fn", "axes", "addrspace", "true", "assert", "row_major")
SIGNS = (*"{}()[]<>;:,.=@+-*/?x\"'\\!&|%^~#$`_", "@{", "->", "==", "<=", "!=", "//", "/*", "*/", "&&", "**", "::")
STRINGS = ('"', '"\\', '"\\q"', '"a\nb"', '"unfinished', '""""', "/* unfinished", "'a'", '"\\u0041"')
CHARACTERS = ("\x00", "\x01", "\x7f", "\x0b", "\x0c", "\u00e9", "\u2028", "\ufeff", "\U0001f600", "\u0663", "\u00a0")

EXTRAS: dict[str, tuple[str, ...]] = {
    "name": (*DTYPES, "true", "false", "nowhere", "matmul", "softmax", "sum", "row_major", "col_major"),
    "number": ("0", "1", "2", "3", "7", "1.5", "1e3"),
    "shape": ("1xfp32", "2x2xint32", "3x1x2xbf16", "0xfp16", "2x2xbool", "4xcomplex64"),
    "operator": ("+", "-", "*", "/", "@", "<", ">", "=="),
}
_TOKEN = re.compile(r'"[^"]*"|[A-Za-z_]\w*|\d[\w.]*|\s+|.', re.DOTALL)


def mutate(source: str, chooser: Chooser) -> str:
    """The text after one small change, or after one to four of any kind."""
    text = source
    if chooser.chance(2):
        return _of_its_sort(text, chooser)[:LONGEST]
    for _ in range(chooser.pick((1, 1, 2, 1, 3, 4))):
        text = chooser.pick(MUTATIONS)(text, chooser)[:LONGEST]
    return text


def tokens_of(text: str) -> list[str]:
    """A text as rough tokens, which joined give it back."""
    return _TOKEN.findall(text)


def _drop(text: str, choose: Chooser) -> str:
    tokens = tokens_of(text)
    start, count = choose.below(len(tokens) + 1), choose.pick((1, 1, 1, 2, 5, 20))
    return "".join(tokens[:start] + tokens[start + count :])


def _double(text: str, choose: Chooser) -> str:
    tokens = tokens_of(text)
    start, count = choose.below(len(tokens) + 1), choose.pick((1, 1, 2, 5, 20))
    return "".join(tokens[: start + count] + tokens[start:])


def _exchange(text: str, choose: Chooser) -> str:
    tokens = tokens_of(text)
    if len(tokens) < 2:
        return text
    left, right = choose.below(len(tokens)), choose.below(len(tokens))
    tokens[left], tokens[right] = tokens[right], tokens[left]
    return "".join(tokens)


def _of_its_sort(text: str, choose: Chooser) -> str:
    """A name for a name, a number for a number, an operator for an operator: what is left is often well formed."""
    tokens = tokens_of(text)
    places = [place for place, token in enumerate(tokens) if _sort(token) is not None]
    if not places:
        return text
    place = choose.pick(places)
    sort = _sort(tokens[place])
    others = [token for token in tokens if _sort(token) == sort] + list(EXTRAS[str(sort)])
    tokens[place] = choose.pick(others)
    return "".join(tokens)


def _sort(token: str) -> str | None:
    if token[0].isalpha() or token[0] == "_":
        return "name"
    if token[0].isdigit():
        return "shape" if "x" in token else "number"
    return "operator" if token in "+-*/@<>" else None


def _put_in(text: str, choose: Chooser) -> str:
    tokens = tokens_of(text)
    start, count = choose.below(len(tokens) + 1), choose.below(2)
    options = choose.pick((SIGNS, WORDS, *FRAGMENTS.values(), STRINGS, CHARACTERS))
    return "".join([*tokens[:start], choose.pick(options), *tokens[start + count :]])


def _change_character(text: str, choose: Chooser) -> str:
    start, count = choose.below(len(text) + 1), choose.below(2)
    character = choose.pick(CHARACTERS) if choose.chance(3) else chr(choose.between(32, 126))
    return text[:start] + character + text[start + count :]


def _cut(text: str, choose: Chooser) -> str:
    return text[: choose.below(len(text) + 1)]


def _cut_front(text: str, choose: Chooser) -> str:
    return text[choose.below(len(text) + 1) :]


def _move(text: str, choose: Chooser) -> str:
    tokens = tokens_of(text)
    first, second = sorted((choose.below(len(tokens) + 1), choose.below(len(tokens) + 1)))
    place = choose.below(len(tokens) - (second - first) + 1)
    rest = tokens[:first] + tokens[second:]
    return "".join(rest[:place] + tokens[first:second] + rest[place:])


def _pile_up(text: str, choose: Chooser) -> str:
    """Brackets, signs or words around or before a token, a few times or a great many."""
    tokens = tokens_of(text)
    place = choose.below(len(tokens) + 1)
    before, after = choose.pick(BRACKETS)
    times = choose.pick((2, 5, 30, 2, 300, 2))
    middle = "".join(tokens[place : place + 1])
    return "".join(tokens[:place]) + before * times + middle + after * times + "".join(tokens[place + 1 :])


def _repeat(text: str, choose: Chooser) -> str:
    tokens = tokens_of(text)
    place, length = choose.below(len(tokens) + 1), choose.pick((1, 3, 8, 2))
    part = tokens[place : place + length]
    return "".join(tokens[:place] + part * choose.pick((3, 10, 3, 100)) + tokens[place + length :])


MUTATIONS: tuple[Callable[[str, Chooser], str], ...] = (
    _of_its_sort,
    _drop,
    _put_in,
    _exchange,
    _double,
    _put_in,
    _change_character,
    _cut,
    _move,
    _pile_up,
    _repeat,
    _cut_front,
)
