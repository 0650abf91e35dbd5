"""Other readings and constructs that the suite names exist: alternatives letter for letter, control cases by id."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tessera_conformance.interface import interface
from tessera_conformance.locations import clauses_directory, suite_directory
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.case_index import case_index

REGISTRY = load_registry(clauses_directory())


def readings() -> Iterator[tuple[Path, int, str, str]]:
    """Yield every `check.reading("AMB-...", "alternative", ...)` of the suite with its place.

    An alternative that is no literal is one of a table in the same file, which is looked for there. A pair of both
    that is no call, or a `Reading` of the messages between host and IO_CPU, is handed to such a call elsewhere.
    """
    for path in sorted(suite_directory().rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if ".reading(" not in text and "Reading(" not in text and "ACCEPTED_BY" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and path.name == "open_programs.py":
                yield from ((path, node.lineno, *each) for each in alternatives_of(node))
            interpretation, *others = elements_of(node)
            if isinstance(interpretation, ast.Constant) and str(interpretation.value).startswith("AMB-"):
                words = others[0].value if others and isinstance(others[0], ast.Constant) else ""
                yield path, node.lineno, interpretation.value, words


def alternatives_of(call: ast.Call) -> Iterator[tuple[str, str]]:
    """Yield the interpretation of an open program with each alternative, which are the keys of its first mapping."""
    if getattr(call.func, "id", "") != "Question":
        return
    interpretation = ast.literal_eval(call.args[0])
    alternatives = next(each for each in call.args if isinstance(each, ast.Dict))
    yield from ((interpretation, ast.literal_eval(key)) for key in alternatives.keys if key is not None)


def elements_of(node: ast.AST) -> list[ast.AST | None]:
    """Return the arguments of a reading, or the elements of a tuple; else None alone."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return [*node.args] if name in ("reading", "Reading") and node.args else [None]
    return [*node.elts] if isinstance(node, ast.Tuple) and node.elts else [None]


def test_every_reading_names_a_listed_alternative():
    problems = []
    for path, line, name, alternative in readings():
        known = REGISTRY.interpretations[name].alternatives if name in REGISTRY.interpretations else ()
        named = alternative in known if alternative else any(each in path.read_text("utf-8") for each in known)
        if not named:
            problems.append(f"{path.name}:{line}: {name} has no alternative {alternative!r}: {known}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("construct", REGISTRY.constructs, ids=lambda construct: construct.id)
def test_a_construct_has_a_control_case_and_methods_or_a_pattern(construct):
    assert construct.control in case_index(), f"{construct.control} is no case of the suite"
    assert all(method in interface().methods for method in construct.methods)
    re.compile(construct.pattern)


def test_no_two_constructs_have_one_name():
    names = [construct.id for construct in REGISTRY.constructs]
    assert len(names) == len(set(names))
