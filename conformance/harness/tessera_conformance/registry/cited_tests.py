"""The tests of the suite that name an interpretation, found in their source: decorators, docstring and body.

A name outside of the tests of a module, in a table or a helper, is the module's. The suite need not be collected.
Violators and legal variants are no tests.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tessera_conformance import locations
from tessera_conformance.registry.model import INTERPRETATION_ID

NO_TESTS = {"violators", "variants"}


def naming_tests(suite: Path) -> Mapping[str, tuple[str, ...]]:
    """The tests that name each interpretation, `runtime/test_streams.py::test_order`, and after them the modules."""
    found: dict[str, dict[str, None]] = {}
    for chapter in locations.CHAPTERS:
        for path in sorted((suite / chapter).rglob("*.py")):
            if not NO_TESTS & {*path.parts}:
                for name, place in _named_in(path.read_text(encoding="utf-8"), path.relative_to(suite).as_posix()):
                    found.setdefault(name, {})[place] = None
    return {name: tuple(sorted(places, key=lambda place: "::" not in place)) for name, places in sorted(found.items())}


def _named_in(source: str, module: str) -> Iterator[tuple[str, str]]:
    """Each interpretation that a module names, with the test or, where no test of it does, the module."""
    everywhere = dict.fromkeys(INTERPRETATION_ID.findall(source))
    if not everywhere:
        return
    lines = source.splitlines()
    in_tests = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            for name in INTERPRETATION_ID.findall("\n".join(lines[first - 1 : node.end_lineno])):
                in_tests.add(name)
                yield name, f"{module}::{node.name}"
    for name in everywhere:
        if name not in in_tests:
            yield name, module
