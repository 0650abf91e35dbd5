"""Which tests are tagged with which clauses, read from the test files without importing them.

A tag is a call of `clause` with ids written out: as a decorator of a test function or of a class, in a module's or
class's `pytestmark`, or as the mark of a parameter set (`pytest.param(..., marks=clause("RT-19.A-01"))`), written in
the decorator or in a module-level constant that the decorator names. A tag that marks no test, or whose ids are
computed, is reported: it would be counted on and never run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tessera_conformance.registry.errors import RegistryError, UnreadableTag
from tessera_conformance.registry.model import AREAS

Test = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Tags:
    """The cases of each clause id, in file order, and the tags that could not be read."""

    cases: dict[str, list[str]] = field(default_factory=dict)
    problems: list[RegistryError] = field(default_factory=list)


def tagged_cases(suite: Path) -> Tags:
    """The tags of every test file in the suite's chapters; a case is named `ir/test_matmul.py::test_k_tail`."""
    tags = Tags()
    for file in _test_files(suite):
        _File(file.relative_to(suite).as_posix(), tags).read(file)
    return tags


def _test_files(suite: Path) -> list[Path]:
    return sorted(file for area in AREAS for file in (suite / area).rglob("test_*.py"))


class _File:
    """Reads the tags of one test file."""

    def __init__(self, name: str, tags: Tags) -> None:
        self.name = name
        self.tags = tags
        self.constants: dict[str, ast.expr] = {}
        self.used: set[ast.Call] = set()

    def read(self, path: Path) -> None:
        try:
            module = ast.parse(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, SyntaxError) as error:
            line = error.lineno or 1 if isinstance(error, SyntaxError) else 1
            self.tags.problems.append(UnreadableTag(self.name, line, f"the file cannot be parsed: {error}"))
            return
        self.constants = dict(_assignments(module.body))
        self._read_body(module.body, "", [])
        for call in _tags_in([module]):
            if call not in self.used:
                self._report(call, "this tag marks no test")

    def _read_body(self, body: Sequence[ast.stmt], prefix: str, inherited: Iterable[ast.Call]) -> None:
        marks = [value for name, value in _assignments(body) if name == "pytestmark"]
        inherited = [*inherited, *self._tags_reached_from(marks)]
        for statement in body:
            if isinstance(statement, Test) and statement.name.startswith("test"):
                self._tag(f"{self.name}::{prefix}{statement.name}", statement.decorator_list, inherited)
            elif isinstance(statement, ast.ClassDef) and statement.name.startswith("Test"):
                own = self._tags_reached_from(statement.decorator_list)
                self._read_body(statement.body, f"{prefix}{statement.name}::", [*inherited, *own])

    def _tag(self, case: str, decorators: Sequence[ast.expr], inherited: Iterable[ast.Call]) -> None:
        for call in [*inherited, *self._tags_reached_from(decorators)]:
            self.used.add(call)
            for clause_id in self._ids(call):
                cases = self.tags.cases.setdefault(clause_id, [])
                if case not in cases:
                    cases.append(case)

    def _tags_reached_from(self, expressions: Sequence[ast.expr]) -> list[ast.Call]:
        """The tags in some expressions and in the module-level constants they name."""
        reached: list[ast.Call] = []
        waiting: list[ast.AST] = list(expressions)
        followed: set[str] = set()
        while waiting:
            tree = waiting.pop(0)
            reached += _tags_in([tree])
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - followed
            followed |= names
            waiting += [self.constants[name] for name in sorted(names) if name in self.constants]
        return reached

    def _ids(self, call: ast.Call) -> Iterator[str]:
        if not call.args:
            self._report(call, "this tag names no clause")
        for argument in call.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value
            else:
                self._report(call, f"the clause id {ast.unparse(argument)} is computed")

    def _report(self, call: ast.Call, problem: str) -> None:
        report = UnreadableTag(self.name, call.lineno, problem)
        if not any(str(report) == str(earlier) for earlier in self.tags.problems):
            self.tags.problems.append(report)


def _assignments(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id, statement.value
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
            yield statement.target.id, statement.value


def _tags_in(trees: Iterable[ast.AST]) -> list[ast.Call]:
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_tag(node.func)]


def _is_tag(function: ast.expr) -> bool:
    return ast.unparse(function) in ("clause", "pytest.mark.clause")
