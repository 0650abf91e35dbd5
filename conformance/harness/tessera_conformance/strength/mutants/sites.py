"""The rules by which code is changed, the places of a package that they fit, and a sample of them."""

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
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The rules by which code is changed: each finds the places in a function that it fits, and what stands there instead.
#
# The operators are those of mutation testing as mutmut and cosmic-ray have them. Left alone is what no case can
# judge: texts of errors, annotations, docstrings, and what is evaluated when a module is imported, as default values
# are.


OTHER_OPERATOR: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
"""What an operator becomes."""

Rewrite = Callable[[Any], ast.AST]


@dataclass(frozen=True)
class Change:
    """One place of a function, the number of its node in a walk, and a rule that fits it.

    A case can tell it only where it executes the line `reached`: of the branch that is dropped, or of the place itself.
    """

    rule: str
    place: int
    line: int
    before: str
    after: str
    reached: int


def changes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Change]:
    """Every change that some rule makes of a function."""
    found = []
    for place, node in enumerate(_walk(function)):
        for rule, rewrite in _fitting(node):
            before, after = ast.unparse(node), ast.unparse(ast.fix_missing_locations(rewrite(deepcopy(node))))
            line = getattr(node, "lineno", function.lineno)
            if before != after:
                found.append(Change(rule, place, line, before, after, _reached(node, rule, line)))
    return found


def _reached(node: ast.AST, rule: str, line: int) -> int:
    """The line that is executed where a change makes a difference."""
    branch = {"branch dropped": "body", "else dropped": "orelse"}.get(rule)
    if branch is None:
        return line
    inner = getattr(node, branch)
    return int((inner[0] if isinstance(inner, list) else inner).lineno)


def changed(function: ast.FunctionDef | ast.AsyncFunctionDef, change: Change) -> None:
    """Make a change in the tree of its function."""
    node = next(each for place, each in enumerate(_walk(function)) if place == change.place)
    rewrite = dict(_fitting(node))[change.rule]
    substitute = ast.copy_location(rewrite(deepcopy(node)), node)
    _Substitution(node, substitute).visit(function)
    ast.fix_missing_locations(function)


class _Substitution(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self._new if node is self._old else super().visit(node)


def _walk(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function's body, those left out that no rule may change."""
    waiting: list[ast.AST] = list(reversed(_without_docstring(function.body)))
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(_inner(node))


def _inner(node: ast.AST) -> list[ast.AST]:
    """The children in which changes are looked for."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return list(_without_docstring(node.body))
    if isinstance(node, ast.AnnAssign):
        return [node.value] if node.value is not None else []
    return list(ast.iter_child_nodes(node))


def _without_docstring(body: list[ast.stmt]) -> list[ast.AST]:
    first = body[0]
    has_one = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return list(body[1:] if has_one else body)


def _fitting(node: ast.AST) -> Iterator[tuple[str, Rewrite]]:
    """The rules that fit a node, with what they make of a copy of it."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in OTHER_OPERATOR:
            yield "comparison", _other_comparison
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in OTHER_OPERATOR:
            yield "operator", _other_operator
        case ast.BoolOp():
            yield "operator", _other_operator
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield "unary", lambda copy: copy.operand
        case ast.Constant(value=bool()):
            yield "constant", lambda copy: ast.Constant(not copy.value)
        case ast.Constant(value=int() | float()):
            yield "off by one", lambda copy: ast.Constant(copy.value + 1)
        case ast.If() | ast.IfExp():
            yield "branch dropped", _never
            if node.orelse:
                yield "else dropped", _always
        case ast.Call(func=called, args=[first, second, *_]) if _has_an_order(called, first, second):
            yield "argument order", _swapped
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield "statement removed", lambda copy: ast.Pass()
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Assign) and _stores(node)):
        yield "statement removed", lambda copy: ast.Pass()


def _has_an_order(called: ast.expr, *arguments: ast.expr) -> bool:
    """Whether two arguments may be exchanged, and to another effect: the greater of two is that in any order."""
    symmetric = isinstance(called, ast.Name) and called.id in ("max", "min")
    return not symmetric and not any(isinstance(each, ast.Starred) for each in arguments)


def _stores(node: ast.Assign) -> bool:
    """Whether it stores into an object: a name that is never bound is a crash, which proves nothing."""
    return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)


def _other_comparison(copy: ast.Compare) -> ast.AST:
    copy.ops = [OTHER_OPERATOR[type(copy.ops[0])]()]  # type: ignore[list-item]
    return copy


def _other_operator(copy: Any) -> ast.AST:
    copy.op = OTHER_OPERATOR[type(copy.op)]()
    return copy  # type: ignore[no-any-return]


def _never(copy: ast.If | ast.IfExp) -> ast.AST:
    copy.test = ast.Constant(False)
    return copy


def _always(copy: ast.If | ast.IfExp) -> ast.AST:
    copy.test = ast.Constant(True)
    return copy


def _swapped(copy: ast.Call) -> ast.AST:
    copy.args[:2] = [copy.args[1], copy.args[0]]
    return copy


# The places of a package that can be changed, a sample of them, and the change made in the running process.
#
# A function is changed by giving it other code, wherever it is held: under its name, in a table, behind a decorator,
# in a closure that exists already. What a module works out while it is imported is not changed: tables and default
# values.


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
