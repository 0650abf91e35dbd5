"""Printers of IR that lose something in the text (language specification, 1, 5.3 and 14.2)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import ReferenceAdapter

Change = Callable[[re.Match[str]], str]

FLOAT = r"(?<=value = )-?\d+\.\d+(?:e-?\+?\d+)?"
INTEGER = r"(?<=value = )-?\d{8,}(?![\d.])"
EPSILON = r"(?<=eps = )\d+\.\d+(?:e-?\d+)?"


class Printing(ReferenceAdapter):
    """The reference with a change in every text that it prints."""

    def __init__(self, pattern: str, change: Change) -> None:
        super().__init__()
        self.pattern, self.change = pattern, change

    def language_lower(self, **request: Any) -> dict[str, Any]:
        """Return the functions of a level, and the changed text."""
        answer = super().language_lower(**request)
        return answer | {"text": re.sub(self.pattern, self.change, answer["text"], flags=re.MULTILINE)}


def printing(name: str, clause: str, description: str, pattern: str, change: Change) -> Violation:
    """Return a violation that changes the matches of a pattern in the text."""
    return replaced(clause, description, lambda: Printing(pattern, change), name=name)


def digits(count: int) -> Change:
    """Return a change that prints so many digits of a float."""

    def change(found: re.Match[str]) -> str:
        text = f"{float(found[0]):.{count}g}"
        return text if "." in text or "e" in text else f"{text}.0"

    return change


def subnormal_lost(found: re.Match[str]) -> str:
    return "0.0" if abs(float(found[0])) < 2.3e-308 else found[0]


NEGATED_PRODUCT = (
    r"^(?P<in> *)(?P<p>%\w+) = \"tessera.graph.(?P<op>multiply|matmul)\"\((?P<a>%\w+), (?P<b>%\w+)\)(?P<rest>.*)\n"
    r" *(?P<n>%\w+) = \"tessera.graph.negate\"\((?P=p)\)(?P<type>.*)$"
)


def first_factor(found: re.Match[str]) -> str:
    head = f'{found["in"]}{found["p"]} = "tessera.graph.negate"({found["a"]}){found["type"]}\n'
    product = f'"tessera.graph.{found["op"]}"({found["p"]}, {found["b"]}){found["rest"]}'
    return f"{head}{found['in']}{found['n']} = {product}"


def subtraction(found: re.Match[str]) -> str:
    value, operand, kind = found["n"], found["a"], found["type"]
    zero = f'{found["in"]}{value}z = "tessera.graph.constant"() {{value = 0.0}} : () -> {kind}\n'
    return f'{zero}{found["in"]}{value} = "tessera.graph.subtract"({value}z, {operand}) : ({kind}, {kind}) -> {kind}'


CONSTANTS = [
    printing("large_attributes", "LANG-01-07", "prints nine digits of large attributes",
        r"(?<=high = \[0\], value = )-?\d+\.\d+(?:e-?\+?\d+)?",
        lambda found: digits(9)(found) if abs(float(found[0])) > 1e10 else found[0]),
    printing("unsigned_infinity", "LANG-01-03", "prints both infinities alike", "0xFFF0000000000000",
             lambda found: "0x7FF0000000000000"),
    printing("subnormal_lost", "LANG-01-03", "prints subnormal constants as zero", FLOAT, subnormal_lost),
    printing("integers_by_fp64", "LANG-01-03", "prints integers by way of fp64", INTEGER,
        lambda found: str(int(float(found[0])))),
    printing("short_epsilons", "LANG-01-07", "prints eps with no more than one digit", EPSILON,
             lambda found: "0.0" if float(found[0]) < 1e-9 else found[0]),
]  # fmt: skip

SIGNS = [
    printing("sign_of_the_first_factor", "LANG-14.2-02", "prints the sign of a product at its first factor",
             NEGATED_PRODUCT, first_factor),
    printing("negation_as_difference", "LANG-14.2-02", "prints a negation as a difference from zero",
        r"^(?P<in> *)(?P<n>%\w+) = \"tessera.graph.negate\"\((?P<a>%\w+)\) : \(\w+\) -> (?P<type>\w+)$", subtraction),
]  # fmt: skip
