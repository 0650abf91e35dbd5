"""The rules by which code is changed: what each makes of a function, and what they leave alone."""

from __future__ import annotations

import ast
import textwrap

import pytest

from tessera_conformance.strength.mutants import Change, changed, changes


def function(text: str) -> ast.FunctionDef:
    """The function of a text."""
    (node,) = ast.parse(textwrap.dedent(text)).body
    assert isinstance(node, ast.FunctionDef)
    return node


def made(text: str) -> set[tuple[str, str, str]]:
    """Rule, before and after of every change of a function with this body."""
    body = textwrap.indent(textwrap.dedent(text), "    ")
    return {(each.rule, each.before, each.after) for each in changes(function(f"def f(a, b):\n{body}"))}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return a < b", {("comparison", "a < b", "a <= b")}),
        ("return a in b", {("comparison", "a in b", "a not in b")}),
        ("return a << b", {("operator", "a << b", "a >> b")}),
        ("return a and b", {("operator", "a and b", "a or b")}),
        ("return not a", {("unary", "not a", "a")}),
        ("return -a", {("unary", "-a", "a")}),
        ("return a[7]", {("off by one", "7", "8")}),
        ("return True", {("constant", "True", "False")}),
        ("return b(a, b)", {("argument order", "b(a, b)", "b(b, a)")}),
        ("return b(*a, b)", set()),
        ("return b(a, a)", set()),
        ("return max(a, b)", set()),
        ("a.clear()", {("statement removed", "a.clear()", "pass")}),
        ("a.size = b", {("statement removed", "a.size = b", "pass")}),
        ("c = a", set()),
    ],
)
def test_a_rule_makes_its_change(body: str, expected: set[tuple[str, str, str]]) -> None:
    assert made(body) == expected


def test_a_branch_is_never_taken_or_always() -> None:
    found = made("if a: return b\nelse: return a")
    assert {rule for rule, _, _ in found} == {"branch dropped", "else dropped"}
    assert {after.splitlines()[0] for _, _, after in found} == {"if False:", "if True:"}


@pytest.mark.parametrize(
    "body",
    [
        '"""A docstring."""\nreturn a',
        'raise ValueError(f"{a + 1} is below {b < 2}")',
        "c: dict[int, 2] = a\nreturn c",
        'def inner(c=1):\n    """Of 2."""\n    return c\nreturn inner',
    ],
)
def test_what_no_case_can_judge_is_left_alone(body: str) -> None:
    assert made(body) == set()


def test_a_change_is_made_in_its_place_only() -> None:
    node = function("def f(a):\n    return a + 1 < a + 1")
    second = [each for each in changes(node) if each.rule == "off by one"][1]
    changed(node, second)
    assert ast.unparse(node) == "def f(a):\n    return a + 1 < a + 2"


def test_every_change_can_be_made_and_differs() -> None:
    text = "def f(a, b):\n    if a < 3 and not b:\n        a.append(b)\n    b[0] -= 1\n    return max(a, b) % 2"
    found: list[Change] = changes(function(text))
    texts = set()
    for change in found:
        node = function(text)
        changed(node, change)
        texts.add(ast.unparse(node))
    assert len(texts) == len(found)
    assert text not in texts


@pytest.mark.parametrize(("rule", "line"), [("branch dropped", 4), ("else dropped", 6), ("comparison", 3)])
def test_a_change_says_which_line_must_be_executed(rule: str, line: int) -> None:
    node = function("def f(a, b):\n    a.append(b)\n    if a < b:\n        a.clear()\n    else:\n        b.clear()")
    assert [each.reached for each in changes(node) if each.rule == rule] == [line]
