"""Mutants that no author of a case chose: small rule-based changes of the implementation's code."""

from __future__ import annotations

import argparse
import ast
import gc
import hashlib
import importlib
import importlib.util
import json
import os
import pkgutil
import re
import resource
import sys
import time
import types
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

from tessera_conformance.adapter import Adapter
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.documents import read_file
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import Registry
from tessera_conformance.reports.summary import table
from tessera_conformance.strength.matrix import DEADLINE, judge, write_results
from tessera_conformance.strength.sharing import available_processes, isolated
from tessera_conformance.strength.violation import codes_in, load_whole
from tessera_conformance.suite_run import SuiteRun
from tessera_conformance.terminal import print_error
from tessera_conformance.transports.locate import DirectTransport, load_adapter
from tessera_conformance.verdicts import FAULTY

# The rules by which code is changed: each finds the places in a function to which it applies, and rewrites them.
#
# The operators are those of mutation testing as mutmut and cosmic-ray have them. The rules leave alone what no case can
# judge: texts of errors, annotations, docstrings, and code evaluated at import, such as default values.


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
"""The replacement of each operator."""

Rewrite = Callable[[Any], ast.AST]


@dataclass(frozen=True)
class Change:
    """One place in a function, the number of its node in a walk, and a rule that applies to it.

    A case can kill it only if it executes the line `reached`: of the dropped branch, or of the place itself.
    """

    rule: str
    place: int
    line: int
    before: str
    after: str
    reached: int


def changes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Change]:
    """Return every change that a rule can make in a function."""
    mutations = []
    for place, node in enumerate(_walk(function)):
        for rule, rewrite in _fitting(node):
            rewritten = ast.fix_missing_locations(rewrite(deepcopy(node)))
            before, after = (ast.unparse(_part(whole, rule)) for whole in (node, rewritten))
            line = getattr(node, "lineno", function.lineno)
            if before != after:
                mutations.append(Change(rule, place, line, before, after, _reached(node, rule, line)))
    return mutations


def _part(node: Any, rule: str) -> Any:
    """Return the member of a node that a rule changes, or the whole node."""
    word, _, number = rule.partition(" ")
    if word != "member":
        return node
    return (node.values if isinstance(node, ast.Dict) else node.cases)[int(number)]


def _reached(node: Any, rule: str, line: int) -> int:
    """Return the line of the branch or member that a rule changes, or of the node itself."""
    branches = {"branch dropped": "body", "else dropped": "orelse"}
    part = getattr(node, branches[rule]) if rule in branches else _part(node, rule)
    if isinstance(part, ast.match_case):
        part = part.body
    first: int = getattr(part[0] if isinstance(part, list) else part, "lineno", line)
    return first


def changed(function: ast.FunctionDef | ast.AsyncFunctionDef, change: Change) -> None:
    """Apply a change to the syntax tree of its function."""
    node = next(candidate for place, candidate in enumerate(_walk(function)) if place == change.place)
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
    """Yield the nodes of a function's body that a rule may change."""
    waiting: list[ast.AST] = list(reversed(_without_docstring(function.body)))
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(_inner(node))


def _inner(node: ast.AST) -> list[ast.AST]:
    """Return the children that may contain changes."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return list(_without_docstring(node.body))
    if isinstance(node, ast.AnnAssign):
        return [node.value] if node.value is not None else []
    return list(ast.iter_child_nodes(node))


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    has_one = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return body[1:] if has_one else body


def _fitting(node: ast.AST) -> Iterator[tuple[str, Rewrite]]:
    """Yield the rules that apply to a node, each with the function that rewrites a copy of it."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in OTHER_OPERATOR:
            yield "comparison", _with(ops=[OTHER_OPERATOR[type(operator)]()])
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in OTHER_OPERATOR:
            yield "operator", _with(op=OTHER_OPERATOR[type(operator)]())
        case ast.BoolOp(op=operator):
            yield "operator", _with(op=OTHER_OPERATOR[type(operator)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield "unary", lambda copy: copy.operand
        case ast.Constant(value=bool()):
            yield "constant", lambda copy: ast.Constant(not copy.value)
        case ast.Constant(value=int() | float()):
            yield "off by one", lambda copy: ast.Constant(copy.value + 1)
        case ast.If() | ast.IfExp():
            yield "branch dropped", _with(test=ast.Constant(False))
            if node.orelse:
                yield "else dropped", _with(test=ast.Constant(True))
        case ast.Call(func=called, args=[first, second, *rest]) if _has_an_order(called, first, second):
            yield "argument order", _with(args=[second, first, *rest])
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield "statement removed", lambda copy: ast.Pass()
        case ast.Dict(values=[_, _, *_] as members):
            for number, neighbour in enumerate(_neighbours(members)):
                yield f"member {number}", _with_member("values", number, neighbour)
        case ast.Match(cases=[_, _, *_] as arms):
            for number, neighbour in enumerate(_neighbours(arms)):
                if _bound(neighbour.pattern) <= _bound(arms[number].pattern):
                    arm = ast.match_case(arms[number].pattern, arms[number].guard, neighbour.body)
                    yield f"member {number}", _with_member("cases", number, arm)
        # dropping the binding of a name only makes the code crash
        case ast.Assign(targets=targets) if all(isinstance(it, ast.Attribute | ast.Subscript) for it in targets):
            yield "statement removed", lambda copy: ast.Pass()
    if isinstance(node, ast.AugAssign):
        yield "statement removed", lambda copy: ast.Pass()


def _neighbours(members: Sequence[Any]) -> Sequence[Any]:
    """Return the member after each, and the first after the last."""
    return [*members[1:], *members[:1]]


def _bound(pattern: ast.pattern) -> set[str]:
    """Return the names that a pattern binds."""
    return {node.name for node in ast.walk(pattern) if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name}


def _with_member(family: str, number: int, member: ast.AST) -> Rewrite:
    """Return the rewrite that replaces one member of a node."""

    def rewrite(copy: ast.AST) -> ast.AST:
        getattr(copy, family)[number] = deepcopy(member)
        return copy

    return rewrite


def _has_an_order(called: ast.expr, *arguments: ast.expr) -> bool:
    """Return True if exchanging two arguments changes the result; for `max` and `min` it does not."""
    symmetric = isinstance(called, ast.Name) and called.id in ("max", "min")
    return not symmetric and not any(isinstance(argument, ast.Starred) for argument in arguments)


def _with(**fields: Any) -> Rewrite:
    """Return the rewrite that sets fields of a node."""

    def rewrite(copy: ast.AST) -> ast.AST:
        for name, value in fields.items():
            setattr(copy, name, value)
        return copy

    return rewrite


# The places of a package that can be changed, a sample of them, and the change made in the running process.
#
# A function is changed by replacing its code, wherever the function is referenced: by name, in a table, behind a
# decorator, in an existing closure. Tables and classes are changed in the object itself. Other values computed at
# import, such as default values, stay as they are.


CLAUSE = re.compile(r"\b(?:RT|LANG|COLL|HIO|WSP)-[0-9A-Z.]+-[0-9]+\b")
CodeKey = tuple[str, str, int]
"""File, qualified name and first line of a code object."""
Line = tuple[str, int]
"""File and number of a line."""


@dataclass(frozen=True)
class MemberChange:
    """One member of a table or of a class, and the member of its neighbour that replaces it."""

    owner: Any
    key: Any
    substitute: Any
    reached: Sequence[Line]

    def shows(self) -> bool:
        """Return True if a case could see the exchange: the members differ, and a line uses them."""
        member = vars(self.owner)[self.key] if isinstance(self.owner, type) else self.owner[self.key]
        return repr(member) != repr(self.substitute) and bool(self.reached)

    def watch(self, use: Callable[[], None]) -> None:
        """Call a function whenever the member is read in this process from now on, as far as that can be known."""
        if isinstance(self.owner, type):
            member = vars(self.owner)[self.key]
            if not hasattr(member, "__get__"):
                setattr(self.owner, self.key, _Watched(member, use))
        elif type(self.key) in (str, int, tuple):
            entries = [(_watched_key(key, use) if key is self.key else key, self.owner[key]) for key in self.owner]
            self.owner.clear()
            self.owner.update(entries)

    def make(self) -> None:
        """Replace the member in this process, for good, in the very object that others refer to."""
        if isinstance(self.owner, type):
            setattr(self.owner, self.key, self.substitute)
        else:
            self.owner[self.key] = self.substitute


@dataclass(frozen=True)
class _Watched:
    """An attribute of a class that says when it is read."""

    member: Any
    use: Callable[[], None]

    def __get__(self, instance: object, owner: type) -> Any:
        self.use()
        return self.member


def _watched_key(key: Any, use: Callable[[], None]) -> Any:
    """Return an equal key of a table, which says when a look-up finds it."""
    kind: Any = type(key)

    def equals(self: Any, other: object) -> Any:
        found = kind.__eq__(self, other)
        if found is True:
            use()
        return found

    return type(kind.__name__, (kind,), {"__eq__": equals, "__hash__": kind.__hash__})(key)


@dataclass(frozen=True)
class Mutant:
    """One change of one function, table or class."""

    name: str
    module: str
    package: str
    function: CodeKey
    change: Change
    clauses: frozenset[str] = field(repr=False)
    """The clauses that the module names."""
    exchange: MemberChange | None = field(default=None, repr=False, compare=False)
    """The member to replace, where the change is of a table or a class and not of code."""

    @property
    def reached(self) -> Sequence[Line]:
        """The lines of which a case must execute one to distinguish it from the control."""
        return self.exchange.reached if self.exchange else [(self.function[0], self.change.reached)]

    @property
    def used(self) -> Line:
        """A line that stands for reading the changed member, wherever that is."""
        return self.name, 0

    @property
    def description(self) -> str:
        """The change, on one line."""
        before, after = (" ".join(text.split())[:90] for text in (self.change.before, self.change.after))
        return f"line {self.change.line}: {before!r} becomes {after!r}"


def mutants_of(package: str, parts: Sequence[str]) -> list[Mutant]:
    """Return every mutant of the modules of some of its packages, which are all imported, in order of name.

    Raises `ValueError`: no package of this name is in it.
    """
    modules = [(name, part) for part in parts for name in _modules(f"{package}.{part}")]
    uses = _uses(package)
    mutants: list[Mutant] = []
    for name, part in modules:
        path = sys.modules[name].__file__
        if path is not None:
            text = Path(path).read_text(encoding="utf-8")
            module = _Module(name, part, path, ast.parse(text), frozenset(CLAUSE.findall(text)))
            mutants += [*_code_mutants(module), *_member_mutants(module, uses)]
    return mutants


def _modules(package: str) -> list[str]:
    """Return a package and the modules below it, imported, in order of name."""
    if importlib.util.find_spec(package) is None:
        raise ValueError(f"--packages: {package.partition('.')[0]} has no package {package.partition('.')[2]!r}")
    path = getattr(importlib.import_module(package), "__path__", [])
    names = sorted(below.name for below in pkgutil.walk_packages(path, f"{package}."))
    for name in names:
        importlib.import_module(name)
    return [package, *names]


def sample(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return `count` mutants in order of name: those whose names have the least digests with the seed.

    A change of the package exchanges few of them, and a larger sample contains a smaller one (bottom-k sampling).
    """

    def digest(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.name}".encode()).digest()

    return sorted(sorted(mutants, key=digest)[:count], key=lambda mutant: mutant.name)


@dataclass(frozen=True)
class _Module:
    name: str
    package: str
    path: str
    tree: ast.Module
    clauses: frozenset[str]

    def mutant(self, holder: str, line: int, change: Change, exchange: MemberChange | None = None) -> Mutant:
        place = f"{self.name.partition('.')[2]}.{holder}/{change.rule.replace(' ', '-')}/{change.place}"
        return Mutant(place, self.name, self.package, (self.path, holder, line), change, self.clauses, exchange)


def _code_mutants(module: _Module) -> Iterator[Mutant]:
    for qualified, function in _functions(module.tree):
        for change in changes(function):
            yield module.mutant(qualified, _first_line(function), change)


def _member_mutants(module: _Module, uses: Mapping[int | str, Sequence[Line]]) -> Iterator[Mutant]:
    """Yield the changes of one member of a family: an entry of a table, or what a class defines as its siblings do."""
    live = vars(sys.modules[module.name])
    siblings: dict[tuple[type, str], list[tuple[str, ast.stmt]]] = {}
    for statement in module.tree.body:
        name = _defined(statement)
        reached = uses.get(id(live.get(name)), ())
        table = _entries_of(live.get(name))
        for number, (key, neighbour) in enumerate(zip(table, _neighbours([*table]), strict=True)):
            exchange = MemberChange(table, key, table[neighbour], reached)
            change = Change("member", number, statement.lineno, f"{name}[{key!r}]", f"{name}[{neighbour!r}]", 0)
            if exchange.shows():
                yield module.mutant(name, statement.lineno, change, exchange)
        if isinstance(statement, ast.ClassDef):
            cls = live[statement.name]
            for inner in statement.body:
                # the default of a field has no effect after import
                if not _defined(inner).startswith("__") and not (
                    is_dataclass(cls) and isinstance(inner, ast.AnnAssign)
                ):
                    siblings.setdefault((cls.__base__, _defined(inner)), []).append((statement.name, inner))
    for (_, name), members in siblings.items():
        for (victim, inner), (neighbour, _) in zip(members, _neighbours(members), strict=True):
            reached = uses.get(name, ())
            if isinstance(inner, ast.FunctionDef):
                reached = [(module.path, first.lineno) for first in _without_docstring(inner.body)[:1]]
            exchange = MemberChange(live[victim], name, vars(live[neighbour])[name], reached)
            change = Change("member", 0, inner.lineno, f"{victim}.{name}", f"{neighbour}.{name}", 0)
            if exchange.shows():
                yield module.mutant(f"{victim}.{name}", inner.lineno, change, exchange)


def _defined(statement: ast.stmt) -> str:
    """Return the name that a statement of a module or class binds to a value or a function, or `__none__`."""
    match statement:
        case ast.FunctionDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return name
    return "__none__"


def _entries_of(table: object) -> dict[Any, Any]:
    """Return a table, or the one behind a read-only view; an empty one where the object is neither."""
    if isinstance(table, types.MappingProxyType):
        (table,) = gc.get_referents(table)
    return table if type(table) is dict else {}


def _uses(package: str) -> Mapping[int | str, Sequence[Line]]:
    """Return the lines of the package's functions that use each global object, by its id, and each attribute."""
    uses: dict[int | str, list[Line]] = {}
    for name, module in sorted(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if path is not None and name.partition(".")[0] == package:
            for _, function in _functions(ast.parse(Path(path).read_text(encoding="utf-8"))):
                for node in ast.walk(function):
                    if isinstance(node, ast.Name):
                        uses.setdefault(id(vars(module).get(node.id)), []).append((path, node.lineno))
                    elif isinstance(node, ast.Attribute):
                        uses.setdefault(node.attr, []).append((path, node.lineno))
                        of_module = vars(module).get(node.value.id) if isinstance(node.value, ast.Name) else None
                        uses.setdefault(id(getattr(of_module, node.attr, None)), []).append((path, node.lineno))
    return uses


def _functions(tree: ast.AST, above: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the functions of a module and of its classes; those within functions belong to them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{above}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{above}{node.name}.")


def _first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def code_key(code: types.CodeType) -> CodeKey:
    """Return a key of a code object, in the package and in a changed copy of it."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


def install(mutant: Mutant) -> bool:
    """Change the function in this process, for good; False where it cannot be, since nothing holds it."""
    if mutant.exchange is not None:
        mutant.exchange.make()
        return True
    path, qualified, line = mutant.function
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    function = next(
        candidate for name, candidate in _functions(tree) if name == qualified and _first_line(candidate) == line
    )
    changed(function, mutant.change)
    outer = [code for code in codes_in(compile(tree, path, "exec")) if code_key(code) == mutant.function]
    substitutes = {code_key(code): code for whole in outer for code in (whole, *codes_in(whole))}
    gc.unfreeze()  # collecting the suite froze the functions, which would then not be listed
    functions = [candidate for candidate in gc.get_objects() if isinstance(candidate, types.FunctionType)]
    replaced = False
    for holder in functions:
        substitute = substitutes.get(code_key(holder.__code__))
        if substitute is not None and substitute.co_freevars == holder.__code__.co_freevars:
            holder.__code__ = substitute
            replaced = True
    return replaced


# The cases that execute each line of a package: only they can kill a mutant of that line.


TraceFunction = Callable[[types.FrameType, str, object], Any]
CHUNK = 60
"""Cases that a process runs: each new process begins without what an implementation keeps between cases."""
SLOWED = 10
"""The factor by which a traced case may exceed the deadline."""
TRACE_PATIENCE = 3600.0
"""Seconds for a chunk of traced cases."""


@dataclass(frozen=True)
class Executions:
    """The control's run: what each case took, and the cases that execute each line, by place in the suite."""

    seconds: Mapping[int, float]
    cases: Mapping[Line, Sequence[int]]


def executions(
    items: Sequence[pytest.Function],
    registry: Registry,
    control: Callable[[], Adapter],
    mutants: Sequence[Mutant],
    jobs: int,
) -> Executions:
    """Run every case against the control in separate processes; leave out cases that it does not pass."""
    numbers_of: dict[str, set[int]] = {}
    for path, number in (line for mutant in mutants for line in mutant.reached):
        numbers_of.setdefault(path, set()).add(number)

    def trace(first: int) -> tuple[dict[int, float], dict[Line, list[int]]]:
        transport = DirectTransport(control, "control")
        run = SuiteRun(transport, registry, deadlines=(SLOWED * DEADLINE, SLOWED * DEADLINE))
        seconds: dict[int, float] = {}
        cases: dict[Line, list[int]] = {}
        read: dict[Line, None] = {}
        for mutant in mutants:
            if mutant.exchange is not None:
                mutant.exchange.watch(partial(read.setdefault, mutant.used))
        for place in range(first, min(first + CHUNK, len(items))):
            read.clear()
            start = time.monotonic()
            with _Trace(numbers_of) as tracer:
                verdict = judge(run, items[place]).verdict
            if verdict == "pass":
                seconds[place] = time.monotonic() - start
                for line in (*tracer, *read):
                    cases.setdefault(line, []).append(place)
        return seconds, cases

    seconds: dict[int, float] = {}
    cases: dict[Line, list[int]] = {}
    for number, traced in isolated(jobs, trace, range(0, len(items), CHUNK), patience=TRACE_PATIENCE):
        if traced is None:
            print_error(f"the control did not end {CHUNK} cases from {items[number * CHUNK].nodeid}: they are left out")
        of_cases, of_lines = traced or ({}, {})
        seconds |= of_cases
        for line, places in of_lines.items():
            cases.setdefault(line, []).extend(places)
    return Executions(seconds, cases)


class _Trace:
    """The lines of interest that this thread executes within the context."""

    def __init__(self, numbers: Mapping[str, Collection[int]]) -> None:
        self._wanted = numbers
        self._seen: dict[Line, None] = {}
        self._of_interest: dict[types.CodeType, bool] = {}

    def __enter__(self) -> dict[Line, None]:
        sys.settrace(self._called)
        return self._seen

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)

    def _called(self, frame: types.FrameType, event: str, argument: object) -> TraceFunction | None:
        code = frame.f_code
        if code not in self._of_interest:
            numbers = self._wanted.get(code.co_filename, ())
            self._of_interest[code] = any(line in numbers for _, _, line in code.co_lines())
        return self._executed if self._of_interest[code] else None

    def _executed(self, frame: types.FrameType, event: str, argument: object) -> TraceFunction:
        path, line = frame.f_code.co_filename, frame.f_lineno
        if event == "line" and line in self._wanted[path]:
            self._seen[path, line] = None
        return self._executed


# A mutant against the suite: the case that catches it, if any.
#
# A mutant is judged in a forked process that has run no case, so that no value computed by the unchanged code remains.
# The cases that execute the changed line run in an order that finds a killer soon: the killer of an earlier run, then
# cases of clauses that the mutant's module names, and quick cases before slow ones.


Fate = Literal["killed", "survived", "not executed", "not installed"]
MEMORY = 6 << 30
"""Bytes that the process of a mutant may use: a mutant that allocates without end is caught before memory runs out."""


@dataclass(frozen=True)
class Result:
    """The fate of a mutant: the case that caught it and its verdict, or the number of cases that did not."""

    fate: Fate
    killer: str = ""
    verdict: str = ""
    near: bool = False
    """True if the case judges a clause that the mutant's module names."""
    cases: int = 0


@dataclass(frozen=True)
class Trials:
    """The suite, and the lines that its cases execute.

    At most `most` cases of each kind run before a mutant counts as survived. `known` has, by the name of a mutant, the
    case that caught it in an earlier run.
    """

    items: Sequence[pytest.Function]
    registry: Registry
    control: Callable[[], Adapter]
    executions: Executions
    most: int
    known: Mapping[str, str] = field(default_factory=dict)

    def judge(self, mutant: Mutant) -> Result:
        """Change this process for good, and run cases until one catches the mutant."""
        places = self._in_order(mutant)
        if not places:
            return Result("not executed")
        if not install(mutant):
            return Result("not installed")
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        run = SuiteRun(DirectTransport(self.control, mutant.name), self.registry, deadlines=(DEADLINE, DEADLINE))
        for number, place in enumerate(places, 1):
            judgement = judge(run, self.items[place])
            verdict = judgement.verdict
            if verdict in FAULTY and not judgement.interpretation:
                case = self.items[place].stash[CASE].id
                return Result("killed", case, verdict, self._is_near(mutant, place), number)
        return Result("survived", cases=len(places))

    def _in_order(self, mutant: Mutant) -> list[int]:
        """Return the cases that execute its line: near ones first, then quick ones, at most `most` of each kind.

        Cases that read a changed member come before both.
        """
        seconds = self.executions.seconds
        reaching = {place for line in mutant.reached for place in self.executions.cases.get(line, ())}
        executing = sorted(reaching, key=lambda place: (seconds[place], place))
        near = [place for place in executing if self._is_near(mutant, place)]
        others = [place for place in executing if not self._is_near(mutant, place)]
        caught = [place for place in executing if self.items[place].stash[CASE].id == self.known.get(mutant.name)]
        using = self.executions.cases.get(mutant.used, ())
        chosen = [*caught, *_spread(using, self.most), *_spread(near, self.most), *_spread(others, self.most)]
        return list(dict.fromkeys(chosen))

    def _is_near(self, mutant: Mutant, place: int) -> bool:
        return not mutant.clauses.isdisjoint(self.items[place].stash[CASE].clause_ids)


def _spread(places: Sequence[int], most: int) -> list[int]:
    """Return at most `most` of the places, evenly spaced: neighbouring cases often ask the same."""
    if len(places) <= most:
        return list(places)
    return [places[index * len(places) // most] for index in range(most)]


# Equivalent mutants, which no case can kill, each with the reason: people list them in files.


def read_equivalents(path: Path) -> Mapping[str, str]:
    """Return the reasons in a file, or in every `.toml` file of a folder, by subject.

    The subject is one mutant (`name`, and what its place `becomes`), every mutant of a `function` whose result no case
    may judge, such as a diagnostic's words, or every mutant of a `module` that no case can call.

    Raises `ValueError`: the file is no TOML, or an entry lacks its subject or its reason.
    """
    files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    return {about: reason for file in files for about, reason in _entries(file)}


def _entries(file: Path) -> Iterable[tuple[str, str]]:
    for number, entry in enumerate(read_file(file).get("mutant", []), 1):
        about = next(([kind] for kind in ("function", "module") if kind in entry), ["name", "becomes"])
        missing = [name for name in (*about, "reason") if not entry.get(name)]
        if missing:
            raise ValueError(f"{file.name}: entry {number} lacks {', '.join(missing)}")
        yield " ".join(word for name in about for word in entry[name].split()), entry["reason"]


def explained(mutant: Mutant, equivalents: Mapping[str, str]) -> bool:
    """Return True if an entry is about the mutant."""
    return not equivalents.keys().isdisjoint(_known_by(mutant))


def stale(equivalents: Mapping[str, str], mutants: Iterable[Mutant]) -> Sequence[str]:
    """Return the entries about packages of the mutants that match none, since the code has changed."""
    chosen = list(mutants)
    packages = {mutant.package for mutant in chosen}
    names = {name for mutant in chosen for name in _known_by(mutant)}
    return [entry for entry in equivalents if entry.partition(".")[0] in packages and entry not in names]


def _known_by(mutant: Mutant) -> tuple[str, str, str]:
    """Return the keys under which an entry can name a mutant: itself with its new code, its function, its module."""
    function = mutant.name.partition("/")[0]
    becomes = " ".join(mutant.change.after.split())
    return f"{mutant.name} {becomes}", function, mutant.module.partition(".")[2]


# The journal of an earlier run of mutants, one a line: the case that caught a mutant then runs first.


def read_killers(path: Path) -> Mapping[str, str]:
    """Return the case that caught each mutant, by the mutant's name.

    Raises `ValueError`: the file cannot be read, or a line is no object with `name` and `killer`.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name}: {error}") from None
    killers: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            killers[entry["name"]] = entry["killer"]
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"{path.name}, line {number}: no object with name and killer") from None
    return killers


# The result of a run of mutants: for the terminal, as Markdown and as JSON.


Judged = Sequence[tuple[Mutant, Result]]


def survivors(judged: Judged, equivalents: Mapping[str, str]) -> list[tuple[Mutant, Result]]:
    """Mutants that no case caught and no entry explains."""
    return [
        (mutant, result)
        for mutant, result in judged
        if result.fate in ("survived", "not executed") and not explained(mutant, equivalents)
    ]


def text(judged: Judged, equivalents: Mapping[str, str]) -> str:
    """Return the figure of each package, and every survivor."""
    lines = [
        f"{package:10} {figures['mutants']:5} mutants  {figures['killed']:5} killed ({figures['near']} near)  "
        f"{figures['explained']:4} explained  {figures['survived']:4} survived  "
        f"{figures['not executed']:4} not executed  {100 * figures['share']:.1f} %"
        for package, figures in _figures(judged, equivalents).items()
    ]
    lines += [
        f"  {result.fate}: {mutant.name} {mutant.description}" for mutant, result in survivors(judged, equivalents)
    ]
    return "\n".join(lines)


def as_json(judged: Judged, equivalents: Mapping[str, str], seed: int) -> dict[str, Any]:
    """Return the figures, and every mutant that survived."""
    return {
        "format": 1,
        "seed": seed,
        "packages": {package: dict(figures) for package, figures in _figures(judged, equivalents).items()},
        "survivors": [
            {
                "name": mutant.name,
                "line": mutant.change.line,
                "before": mutant.change.before,
                "after": mutant.change.after,
            }
            | {"fate": result.fate, "cases": result.cases}
            for mutant, result in survivors(judged, equivalents)
        ],
    }


def markdown(judged: Judged, equivalents: Mapping[str, str], seed: int) -> str:
    """Return the figures by package, and the survivors."""
    head = ("package", "mutants", "killed", "by cases of the module's clauses", "explained", "survived", "not executed")
    counted = ("mutants", "killed", "near", "explained", "survived", "not executed")
    rows = [
        (package, *(str(figures[name]) for name in counted), f"{100 * figures['share']:.1f} %")
        for package, figures in _figures(judged, equivalents).items()
    ]
    left = "\n".join(f"- `{mutant.name}`, {mutant.description}" for mutant, _ in survivors(judged, equivalents))
    return f"""\
# Mutants

Changes of the reference by rule, sampled by seed {seed}, each against the cases that execute it.

{table((*head, "killed or explained"), rows, numbers=True)}

Survivors:

{left or "none"}
"""


def _figures(judged: Judged, equivalents: Mapping[str, str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the counts of each package, and those of all packages together."""
    by_package = {
        mutant.package: [pair for pair in judged if pair[0].package == mutant.package] for mutant, _ in judged
    }
    return {package: _counted(pairs, equivalents) for package, pairs in {**by_package, "all": list(judged)}.items()}


def _counted(judged: Judged, equivalents: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the counts of some mutants, and the share of those killed or explained, from 0 to 1."""
    left = Counter(result.fate for _, result in survivors(judged, equivalents))
    fates = Counter(result.fate for _, result in judged)
    total = len(judged) - fates["not installed"]
    return {
        "mutants": total,
        "killed": fates["killed"],
        "near": sum(result.near for _, result in judged),
        "explained": total - fates["killed"] - left["survived"] - left["not executed"],
        "survived": left["survived"],
        "not executed": left["not executed"],
        "share": round(1 - left.total() / total if total else 0.0, 4),
    }


# `tessera-conformance strength --mutants N`: sample mutants of the control's code, and say which survive.


ROOMS = "numerics,ir,graph,language,schedule,tile,target_ir,collectives,wsp,runtime,abi,host_io"
PATIENCE = 600.0
"""Seconds for a mutant: its calls have deadlines of their own."""


def configure_mutants(parser: argparse.ArgumentParser) -> None:
    """The options of `strength` for mutants."""
    group = parser.add_argument_group("mutants", "changes of the control's own code, made by rule")
    group.add_argument("--mutants", type=int, metavar="N", help="judge so many mutants instead of the violators")
    group.add_argument("--seed", type=int, default=0, help="which are sampled (0)")
    group.add_argument("--packages", default=ROOMS, metavar="NAMES", help=f"packages of the control ({ROOMS})")
    most_help = "cases of each kind, of the module's clauses and others, before a mutant counts as survived (60)"
    group.add_argument("--most", type=int, default=60, metavar="N", help=most_help)
    equivalents_help = "TOML, or a folder of it: mutants that no case can kill, and why"
    group.add_argument("--equivalents", type=Path, metavar="FILE", help=equivalents_help)


def chosen_mutants(arguments: argparse.Namespace) -> list[Mutant]:
    """Every mutant of the packages that the options name. Raises `ValueError` where the control has no such package.

    The control is loaded whole, so that the process of each mutant has it and need not import it.
    """
    control = load_adapter(arguments.control)
    load_whole(control)
    package = type(control).__module__.partition(".")[0]
    return mutants_of(package, arguments.packages.split(","))


def judge_mutants(
    arguments: argparse.Namespace, every: Sequence[Mutant], suite: CollectedSuite, registry: Registry
) -> int:
    """Return 0 if every mutant is killed or explained, 1 if one survives, 2 if they cannot be run."""
    try:
        equivalents = {} if arguments.equivalents is None else read_equivalents(arguments.equivalents)
        killers = {} if arguments.known is None else read_killers(arguments.known)
    except ValueError as error:
        print_error(error)
        return 2
    chosen = [
        mutant for mutant in sample(every, arguments.mutants, arguments.seed) if (arguments.only or "") in mutant.name
    ]
    jobs = arguments.jobs or available_processes()

    def control() -> Adapter:
        return load_adapter(arguments.control)

    executed = executions(suite.items, registry, control, chosen, jobs)
    trials = Trials(suite.items, registry, control, executed, arguments.most, killers)
    output = Path(os.devnull) if arguments.output is None else arguments.output / "mutants.jsonl"
    output.parent.mkdir(parents=True, exist_ok=True)
    results: dict[int, Result] = {}
    with output.open("w", encoding="utf-8") as journal:
        for place, result in isolated(jobs, trials.judge, chosen, PATIENCE):
            results[place] = result or Result("killed", "", "crash")  # of a process that died
            journal.write(json.dumps({"name": chosen[place].name} | asdict(results[place])) + "\n")
            journal.flush()
    judged = [(mutant, results[place]) for place, mutant in enumerate(chosen)]
    print(text(judged, equivalents))
    for entry in stale(equivalents, every):
        print(f"  matches no mutant (the code has changed): {entry}")
    if arguments.output is not None:
        page = markdown(judged, equivalents, arguments.seed)
        write_results(arguments.output, "mutants", as_json(judged, equivalents, arguments.seed), page)
    return 1 if survivors(judged, equivalents) else 0
