"""The places of a package that can be changed, a sample of them, and the change made in the running process.

A function is changed by giving it other code, wherever it is held: under its name, in a table, behind a decorator, in a
closure that exists already. What a module works out while it is imported is not changed: tables and default values.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import importlib
import importlib.util
import pkgutil
import re
import sys
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tessera_conformance.strength.mutants.rules import Change, changed, changes

__all__ = ["Line", "Mutant", "code_key", "install", "mutants_of", "sample"]

CLAUSE = re.compile(r"\b(?:RT|LANG|COLL|HIO|WSP)-[0-9A-Z.]+-[0-9]+\b")
CodeKey = tuple[str, str, int]
"""File, qualified name and first line of a code object."""
Line = tuple[str, int]
"""File and number of a line."""


@dataclass(frozen=True)
class Mutant:
    """One change of one function."""

    name: str
    module: str
    room: str
    function: CodeKey
    change: Change
    clauses: frozenset[str] = field(repr=False)
    """What the module names."""

    @property
    def reached(self) -> Line:
        """What a case executes that can tell it."""
        return self.function[0], self.change.reached

    @property
    def description(self) -> str:
        """What it does wrong, on one line."""
        before, after = (" ".join(text.split())[:90] for text in (self.change.before, self.change.after))
        return f"line {self.change.line}: {before!r} becomes {after!r}"


def mutants_of(package: str, rooms: Sequence[str]) -> list[Mutant]:
    """Every mutant of the rooms' modules, which are all imported, in order of name.

    Raises:
        ValueError: the package has no such room.
    """
    found: list[Mutant] = []
    for room in rooms:
        for name in _modules(f"{package}.{room}"):
            found += _of_module(name, room)
    return found


def _modules(room: str) -> list[str]:
    """A package and the modules below it, imported, in order of name."""
    if importlib.util.find_spec(room) is None:
        raise ValueError(f"--rooms: {room.partition('.')[0]} has no room {room.partition('.')[2]!r}")
    path = getattr(importlib.import_module(room), "__path__", [])
    names = sorted(each.name for each in pkgutil.walk_packages(path, f"{room}."))
    for name in names:
        importlib.import_module(name)
    return [room, *names]


def sample(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """So many of them, in order of name: those whose names have the least digests with the seed.

    A change of the package exchanges few of them, and a larger sample contains a smaller one (bottom-k sampling).
    """

    def digest(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.name}".encode()).digest()

    return sorted(sorted(mutants, key=digest)[:count], key=lambda mutant: mutant.name)


def _of_module(name: str, room: str) -> Iterator[Mutant]:
    path = sys.modules[name].__file__
    if path is None:
        return
    text = Path(path).read_text(encoding="utf-8")
    clauses = frozenset(CLAUSE.findall(text))
    for qualified, function in _functions(ast.parse(text)):
        key = path, qualified, _first_line(function)
        for change in changes(function):
            place = f"{name.partition('.')[2]}.{qualified}/{change.rule.replace(' ', '-')}/{change.place}"
            yield Mutant(place, name, room, key, change, clauses)


def _functions(tree: ast.AST, above: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions of a module and of its classes; those within functions belong to them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{above}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{above}{node.name}.")


def _first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([function.lineno, *(each.lineno for each in function.decorator_list)])


def code_key(code: types.CodeType) -> CodeKey:
    """What a code object is known by, in the package and in a changed copy of it."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


def install(mutant: Mutant) -> bool:
    """Change the function in this process, for good; False where it cannot be, since nothing holds it."""
    path, qualified, line = mutant.function
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    function = next(each for name, each in _functions(tree) if name == qualified and _first_line(each) == line)
    changed(function, mutant.change)
    substitutes = {code_key(code): code for code in _codes(compile(tree, path, "exec"), mutant.function)}
    gc.unfreeze()  # collecting the suite froze the functions, which would then not be listed
    held = [each for each in gc.get_objects() if isinstance(each, types.FunctionType)]
    replaced = False
    for each in held:
        substitute = substitutes.get(code_key(each.__code__))
        if substitute is not None and substitute.co_freevars == each.__code__.co_freevars:
            each.__code__ = substitute
            replaced = True
    return replaced


def _codes(code: types.CodeType, wanted: CodeKey, inside: bool = False) -> Iterator[types.CodeType]:
    """The code of a function and of what is within it."""
    within = inside or code_key(code) == wanted
    if within:
        yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant, wanted, within)
