"""Printers of IR that lose something in the text (language specification, 1, 5.3 and 14.2)."""

import re

from .changes import wrapped

FLOAT = r"(?<=value = )-?\d+\.\d+(?:e-?\+?\d+)?"
INTEGER = r"(?<=value = )-?\d{8,}(?![\d.])"
EPSILON = r"(?<=eps = )\d+\.\d+(?:e-?\d+)?"


def printing(clause, name, description, pattern, change):
    """Return a violation that changes the matches of a pattern in the text."""

    def lower(usual, self, **request):
        answer = usual(self, **request)
        return answer | {"text": re.sub(pattern, change, answer["text"], flags=re.MULTILINE)}

    return wrapped(clause, name, description, "adapter.ReferenceAdapter.language_lower", lower)


def nine_digits(found):
    if abs(float(found[0])) <= 1e10:
        return found[0]
    text = f"{float(found[0]):.9g}"
    return text if "." in text or "e" in text else f"{text}.0"


NEGATED_PRODUCT = (
    r"^(?P<in> *)(?P<p>%\w+) = \"tessera.graph.(?P<op>multiply|matmul)\"\((?P<a>%\w+), (?P<b>%\w+)\)(?P<rest>.*)\n"
    r" *(?P<n>%\w+) = \"tessera.graph.negate\"\((?P=p)\)(?P<type>.*)$"
)


def first_factor(found):
    head = f'{found["in"]}{found["p"]} = "tessera.graph.negate"({found["a"]}){found["type"]}\n'
    product = f'"tessera.graph.{found["op"]}"({found["p"]}, {found["b"]}){found["rest"]}'
    return f"{head}{found['in']}{found['n']} = {product}"


def subtraction(found):
    value, operand, kind = found["n"], found["a"], found["type"]
    zero = f'{found["in"]}{value}z = "tessera.graph.constant"() {{value = 0.0}} : () -> {kind}\n'
    return f'{zero}{found["in"]}{value} = "tessera.graph.subtract"({value}z, {operand}) : ({kind}, {kind}) -> {kind}'


VIOLATIONS = [
    printing("LANG-01-07", "large_attributes", "prints nine digits of large attributes",
        r"(?<=high = \[0\], value = )-?\d+\.\d+(?:e-?\+?\d+)?", nine_digits),
    printing("LANG-01-03", "unsigned_infinity", "prints both infinities alike", "0xFFF0000000000000",
        lambda found: "0x7FF0000000000000"),
    printing("LANG-01-03", "subnormal_lost", "prints subnormal constants as zero", FLOAT,
        lambda found: "0.0" if abs(float(found[0])) < 2.3e-308 else found[0]),
    printing("LANG-01-03", "greatest_for_least", "prints the greater of two integers as the less",
        r"llvm\.intr\.smax", lambda found: "llvm.intr.smin"),
    printing("LANG-01-03", "momentum_lost", "prints steps without their momentum", r"(?<=momentum = )[0-9.e+-]+",
        lambda found: "0.0"),
    printing("LANG-01-03", "integers_by_fp64", "prints integers by way of fp64", INTEGER,
        lambda found: str(int(float(found[0])))),
    printing("LANG-01-07", "short_epsilons", "prints eps with no more than one digit", EPSILON,
        lambda found: "0.0" if float(found[0]) < 1e-9 else found[0]),
    printing("LANG-14.2-02", "sign_of_the_first_factor", "prints the sign of a product at its first factor",
        NEGATED_PRODUCT, first_factor),
    printing("LANG-14.2-02", "negation_as_difference", "prints a negation as a difference from zero",
        r"^(?P<in> *)(?P<n>%\w+) = \"tessera.graph.negate\"\((?P<a>%\w+)\) : \(\w+\) -> (?P<type>\w+)$", subtraction),
]  # fmt: skip
