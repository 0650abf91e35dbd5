"""Programs that must be refused, each beside a twin that differs in one token and is accepted (`rejections/*.toml`).

Sections 2.1 to 3.3, 9 to 11, 14 and 15, by phase; a case names the mistake.
"""

from tessera_conformance.chapters.ir.kit.rejection_cases import judge, rejected


@rejected("lex")
def test_lex(impl, check, rejection):
    """A text with a token that is none is refused as syntax; with a token in its place it parses."""
    judge(impl, check, rejection)


@rejected("parse")
def test_parse(impl, check, rejection):
    """A text with a token out of place is refused as syntax; without it, or with another, it parses."""
    judge(impl, check, rejection)


@rejected("type")
def test_type(impl, check, rejection):
    """A program whose names, operands or types do not fit is refused; its twin, one token away, is accepted."""
    judge(impl, check, rejection)


@rejected("shape")
def test_shape(impl, check, rejection):
    """A program whose dimensions, axes or indices do not fit is refused; its twin is accepted."""
    judge(impl, check, rejection)


@rejected("layout")
def test_layout(impl, check, rejection):
    """A program with an unknown or silently changed layout is refused; its twin is accepted."""
    judge(impl, check, rejection)


@rejected("distributed")
def test_distributed(impl, check, rejection):
    """A program with a malformed mesh, or a collective that says too little or too much, is refused."""
    judge(impl, check, rejection)


@rejected("numerics")
def test_numerics(impl, check, rejection):
    """A program that asks for an arithmetic that there is not, or that its profile forbids, is refused."""
    judge(impl, check, rejection)
