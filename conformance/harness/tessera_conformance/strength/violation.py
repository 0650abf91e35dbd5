"""A violation: the clause it breaks, what it does wrong, and an adapter that does so; and finding all of them."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import pkgutil
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar
from unittest import mock

from tessera_conformance import chapters
from tessera_conformance.adapter import Adapter
from tessera_conformance.cases import chapter_files
from tessera_conformance.terminal import error_text
from tessera_conformance.transports import Transport

# The values that modules of the chapters declare: violators in folders `violators`, variants in `variants`.


def load_whole(implementation: object) -> None:
    """Import all modules of an implementation that imports them late and has a method `load_whole`.

    A module imported while one of its attributes is replaced would keep the substitute afterwards.
    """
    load = getattr(implementation, "load_whole", None)
    if load is not None:
        load()


class Declared(Protocol):
    """A frozen dataclass with a name, which is empty until its module is loaded."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def name(self) -> str:
        """The name alone, or with its file once the module is loaded."""
        ...


Found = TypeVar("Found", bound=Declared)


def load_declared(kind: type[Found], folder: str, mark: str, directory: Path | None = None) -> list[Found]:
    """Return every value of a kind in the files of a directory, or of that folder of every chapter.

    A class has its value under the attribute `mark`. Names of chapters' values are like `runtime/streams.null_stream`.

    Raises `ValueError`: two share a name, a file cannot be imported, or the directory has none.
    """
    if directory is None:
        packages = {name: f"{chapters.__name__}.{name.replace('/', '.')}.{folder}" for name in chapter_files(folder)}
        declared = [(f"{name}/", importlib.import_module(package)) for name, package in packages.items()]
    else:
        package = sys.modules[f"tessera_{folder}"] = types.ModuleType(f"tessera_{folder}")
        package.__path__ = [str(directory)]
        declared = [("", package)]
    violations: dict[str, Found] = {}
    for prefix, package in declared:
        for path in sorted(Path(package.__path__[0]).glob("*.py")):
            try:
                module = importlib.import_module(f"{package.__name__}.{path.stem}")
            except Exception as error:
                problem = f"it cannot be imported: {type(error).__name__}: {error}"
                raise ValueError(error_text(str(path), problem, do=f"run `python {path}` until it works")) from error
            for own, entry in _declared_in(module, kind, mark):
                name = f"{prefix}{path.stem}.{own}"
                if name in violations:
                    raise ValueError(f"{path.name}: two {folder} are called {own}")
                violations[name] = replace(entry, name=name)
    if directory is not None and not violations:
        raise ValueError(error_text(str(directory), f"no file *.py there declares {folder}"))
    return list(violations.values())


def _declared_in(module: types.ModuleType, kind: type[Found], mark: str) -> Iterator[tuple[str, Found]]:
    for name, value in vars(module).items():
        values = value if isinstance(value, list | tuple) else [value]
        for entry in values:
            if isinstance(entry, kind):
                yield entry.name or name, entry
            elif isinstance(entry, type) and entry.__module__ == module.__name__ and mark in vars(entry):
                own = vars(entry)[mark]
                yield own.name, own


# A violation: the clause it breaks, a description of the fault, and how to get an adapter with the fault.
#
# A module in the folder `violators` of a chapter declares violations in one of two ways: an adapter class under
# `@violates`, which changes the adapter itself, or `replaced(...)` at module level, which replaces one function or
# constant of the implementation's code while the violation is in force. It names them by text, and they are looked up
# then.


AdapterClass = TypeVar("AdapterClass", bound=type[Any])


@dataclass(frozen=True)
class Violation:
    """One broken variant of an implementation."""

    name: str
    clause: str
    description: str
    broken: Callable[[], AbstractContextManager[Adapter | Transport]]
    level: str | None = None
    """The numerics level that it claims, where that is known without asking."""
    missing: str = ""
    """The tool that the violator needs and this machine lacks; empty where it lacks none."""


def violates(clause: str, description: str) -> Callable[[AdapterClass], AdapterClass]:
    """Declare an adapter class as breaking one clause."""

    def declare(adapter: AdapterClass) -> AdapterClass:
        load_whole(adapter)
        adapter.violation = Violation(adapter.__name__, clause, description, lambda: nullcontext(adapter()))
        return adapter

    return declare


PACKAGE = "tessera_reference"
"""The package below which the chapters' violators name what they replace."""
Substitution: TypeAlias = tuple[str, Any] | tuple[Any, str, Any]
"""A name below the package, as `graph.elementwise.cast`, or an owner and its attribute; and the substitute."""


@dataclass(frozen=True)
class Around:
    """A substitute made of what it replaces, when the violation begins to be in force."""

    change: Callable[[Any], Any]


def replaced(
    clause: str, description: str, make: Callable[[], Adapter], *substitutions: Substitution, name: str = ""
) -> Violation:
    """Return a violation that replaces attributes of modules or classes."""
    return Violation(name, clause, description, lambda: substituted(make, substitutions))


def place_of(name: str) -> tuple[Any, str]:
    """Return the module or class and the attribute that a name below the package stands for.

    Raises `ImportError` or `AttributeError`: there is none.
    """
    owner, _, attribute = name.rpartition(".")
    place = pkgutil.resolve_name(f"{PACKAGE}.{owner}")
    if not hasattr(place, attribute) and not hasattr(builtins, attribute):
        raise AttributeError(f"{owner} has no {attribute}")
    return place, attribute


@contextmanager
def substituted(make: Callable[[], Adapter], substitutions: Sequence[Substitution]) -> Iterator[Adapter]:
    """Yield a new adapter, while attributes of modules or classes are replaced."""
    load_whole(make())
    with ExitStack() as stack:
        for substitution in substitutions:
            owner, attribute, value = (
                (*place_of(substitution[0]), substitution[1]) if len(substitution) == 2 else substitution
            )
            if isinstance(value, Around):
                value = value.change(getattr(owner, attribute))
            if attribute == "__code__":  # which no patch can take away again
                stack.callback(setattr, owner, attribute, owner.__code__)
                owner.__code__ = value
            else:
                stack.enter_context(mock.patch.object(owner, attribute, value))
        yield make()


def without_refusals(module: types.ModuleType, chosen: Callable[[str], bool]) -> list[tuple[Any, str, Any]]:
    """Return substitutes for functions of the module that skip the chosen refusals.

    A refusal is an `if` without `else` whose body ends in a `raise`; `chosen` gets the source of the statement.
    """

    class Removal(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST:
            self.generic_visit(node)
            refuses = not node.orelse and isinstance(node.body[-1], ast.Raise)
            return ast.copy_location(ast.Pass(), node) if refuses and chosen(ast.unparse(node)) else node

    tree = Removal().visit(ast.parse(inspect.getsource(module)))
    changed = {code.co_qualname: code for code in codes_in(compile(tree, str(module.__file__), "exec"))}
    substitutions = [
        (function, "__code__", code)
        for function in _functions_of(module)
        if (code := changed.get(function.__qualname__)) is not None and code.co_code != function.__code__.co_code
    ]
    assert substitutions, f"nothing in {module.__name__} is refused so"
    return substitutions


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield the code of everything that is defined within some code."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from codes_in(constant)


def _functions_of(module: types.ModuleType) -> Iterator[types.FunctionType]:
    """Yield every function that the module defines, also behind decorators that keep what they wrap."""
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    values = [value for owner in (module, *classes) for value in vars(owner).values()]
    for value in values:
        function = inspect.unwrap(getattr(value, "fget", None) or getattr(value, "__func__", None) or value)
        if isinstance(function, types.FunctionType) and function.__module__ == module.__name__:
            yield function


def load_violations(directory: Path | None = None) -> list[Violation]:
    """Every violation of the files of a folder, or of every chapter. Raises `ValueError` where two share a name."""
    return load_declared(Violation, "violators", "violation", directory)
