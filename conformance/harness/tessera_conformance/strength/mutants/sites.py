"""The places of a package that can be changed, a sample of them, and the change made in the running process.

A function is changed by giving it other code, wherever it is held: under its name, in a table, behind a decorator, in a
closure that exists already. What a module works out while it is imported is not changed: tables and default values.
"""

from __future__ import annotations

import ast
import gc
import random
import re
import sys
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tessera_conformance.strength.mutants.rules import Change, changed, changes

__all__ = ["Mutant", "code_key", "install", "mutants_of", "sample"]

CLAUSE = re.compile(r"\b(?:RT|LANG|COLL|HIO|WSP)-[0-9A-Z.]+-[0-9]+\b")
CodeKey = tuple[str, str, int]
"""File, qualified name and first line of a code object."""


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
    def description(self) -> str:
        """What it does wrong, on one line."""
        before, after = (" ".join(text.split())[:90] for text in (self.change.before, self.change.after))
        return f"line {self.change.line}: {before!r} becomes {after!r}"


def mutants_of(package: str, rooms: Sequence[str]) -> list[Mutant]:
    """Every mutant of the modules that are imported, in order of name.

    Raises:
        ValueError: a room has no module that is imported.
    """
    found: list[Mutant] = []
    for room in rooms:
        prefix = f"{package}.{room}"
        names = sorted(name for name in sys.modules if name == prefix or name.startswith(f"{prefix}."))
        if not names:
            raise ValueError(f"--rooms: {package} has no room {room!r} that is imported")
        for name in names:
            found += _of_module(name, room)
    return found


def sample(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """So many of them, as a seed chooses, each room with the share that it has of them all; in order of name."""
    chosen = random.Random(seed).sample(list(mutants), min(count, len(mutants)))
    return sorted(chosen, key=lambda mutant: mutant.name)


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
