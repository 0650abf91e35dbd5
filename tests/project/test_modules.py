"""The modules of both packages: whom they may import, and the operations of numpy that the reference may use."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import tessera_reference

# Who may import whom (DESIGN: arrows run one way, and the suite never sees the reference).

SUITE = ("abi", "ir", "runtime", "collectives", "harness")
BRIDGES = {"tessera_reference.adapter", "tessera_reference.commands.tools"}
CHAPTERS = "tessera_conformance.chapters"
PACKAGES = tuple(
    """
    numerics ir graph language schedule tile target levels abi mesh collectives compilation host_io wsp
    runtime binding adapter c_library commands cli
    """.split()
)
"""The packages of the reference in the order in which each may import only those before it."""


def imported_names(tree: ast.Module, module: str = "", package: bool = False) -> Iterator[str]:
    """Every dotted name that a module imports, to run or only for its types, wherever the statement stands; resolved.

    What only `if TYPE_CHECKING` imports counts: a circle that does not show when Python starts is a circle to a reader.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                keep = len(parts) - node.level + (1 if package else 0)
                base = ".".join([*parts[:keep], *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def graph_of(modules: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Return the modules that each module imports; a package imports itself through its members' names only."""
    packages = {name for name in modules if any(other.startswith(name + ".") for other in modules)}
    graph = {}
    for name, tree in modules.items():
        names = set(imported_names(tree, name, name in packages))
        exact = {found for found in names if found in modules}
        graph[name] = {found for found in exact if found != name and not _only_a_parent(found, names, modules)}
    return graph


def _only_a_parent(found: str, names: set[str], modules: Mapping[str, ast.Module]) -> bool:
    """`from package import module` depends on the module; the package is named only on the way to it."""
    members = {name for name in names if name.startswith(found + ".") and name.count(".") == found.count(".") + 1}
    return bool(members) and all(member in modules for member in members)


def circle_in(graph: Mapping[str, set[str]]) -> list[str]:
    """The modules of a circle, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.fixture(scope="module")
def graph(modules: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    return graph_of(modules)


def test_no_circles(graph: Mapping[str, set[str]]) -> None:
    assert circle_in(graph) == []


@pytest.mark.parametrize("back", ["def f():\n    from .a import x", "if TYPE_CHECKING:\n    from .a import x"])
def test_a_circle_would_be_found(back: str) -> None:
    sources = {"p": "", "p.a": "from p import b", "p.b": back}
    assert set(circle_in(graph_of({name: ast.parse(text) for name, text in sources.items()}))) == {"p.a", "p.b"}


@pytest.mark.parametrize("folder", SUITE)
def test_suite_and_harness_do_not_import_the_reference(root: Path, folder: str) -> None:
    offenders = [
        str(path.relative_to(root))
        for path in [*sorted((root / "conformance" / folder).rglob("*.py")), root / "conformance" / "conftest.py"]
        if folder == "harness" or path.parent.name not in ("violators", "variants")
        if "tessera_reference" in (text := path.read_text(encoding="utf-8"))  # few are worth parsing
        if any(name.split(".")[0] == "tessera_reference" for name in imported_names(ast.parse(text)))
    ]
    assert offenders == []


def test_kits_import_the_harness_and_other_kits_only(root: Path) -> None:
    suite = root / "conformance"
    offenders = []
    for path in sorted(suite.rglob("kit/**/*.py")):
        package = path.name == "__init__.py"
        name = ".".join([CHAPTERS, *path.relative_to(suite).with_suffix("").parts]).removesuffix(".__init__")
        imported = imported_names(ast.parse(path.read_text(encoding="utf-8")), name, package)
        of_chapters = [found for found in imported if found.startswith(f"{CHAPTERS}.")]
        offenders += [f"{name} imports {found}" for found in of_chapters if "kit" not in found.split(".")]
    assert offenders == []


def test_the_harness_knows_no_chapter(modules: Mapping[str, ast.Module]) -> None:
    """Strength alone names the package, from which it loads the violators and variants."""
    offenders = [
        f"{name} imports {found}"
        for name, tree in modules.items()
        if name.startswith("tessera_conformance.") and name != CHAPTERS
        for found in imported_names(tree, name)
        if f"{found}.".startswith(f"{CHAPTERS}.") and (found != CHAPTERS or ".strength." not in name)
    ]
    assert offenders == []


def test_the_reference_meets_the_harness_only_at_the_bridges(modules: Mapping[str, ast.Module]) -> None:
    offenders = [
        name
        for name, tree in modules.items()
        if name.startswith("tessera_reference") and not BRIDGES & {name, *_parents(name)}
        if any(found.split(".")[0] == "tessera_conformance" for found in imported_names(tree, name))
    ]
    assert offenders == []


def test_imports_between_the_packages_run_one_way(graph: Mapping[str, set[str]]) -> None:
    offenders = []
    for name, imported in graph.items():
        package = _package(name)
        later = PACKAGES[PACKAGES.index(package) + 1 :] if package in PACKAGES else ()
        offenders += [f"{name} imports {found}" for found in sorted(imported) if _package(found) in later]
    assert offenders == []


def _parents(name: str) -> list[str]:
    """The packages that a module lies in."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _package(module: str) -> str:
    parts = module.split(".")
    return parts[1] if parts[0] == "tessera_reference" and len(parts) > 1 else ""


# The reference uses only numpy operations whose bits are the same everywhere (DESIGN section 5).

EXACT = frozenset(
    """
    add subtract multiply divide sqrt negative abs absolute copysign rint floor ceil trunc ldexp frexp nextafter
    equal not_equal less less_equal greater greater_equal isnan isinf isfinite signbit where array_equal
    logical_and logical_or logical_not any all count_nonzero flatnonzero nonzero argwhere
    bitwise_and bitwise_or bitwise_xor invert left_shift right_shift floor_divide remainder
    array asarray ascontiguousarray empty empty_like zeros zeros_like ones full full_like eye arange reshape transpose
    concatenate stack repeat broadcast_to broadcast_arrays broadcast_shapes expand_dims squeeze moveaxis swapaxes take
    split frombuffer from_dlpack frompyfunc ndindex unravel_index load save copyto shape ndim
    dtype ndarray generic number integer floating complexfloating unsignedinteger signedinteger inexact bool_ bool
    int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 intp
    iinfo finfo errstate newaxis nan inf issubdtype result_type typing lib
    """.split()
)
INEXACT_METHODS = frozenset("sum mean dot prod cumsum cumprod std var trace round matmul reduce accumulate".split())
"""Inexact methods of numpy's arrays. A module that neither imports numpy nor takes the `values` of ours holds none;
there `x.sum(axis=0)` builds an operation of Graph IR."""

OUR_MODULES = frozenset({"reductions"})
"""Functions of these bear the names of methods of arrays."""

INTEGERS_ONLY = frozenset({"maximum", "minimum"})
"""Exact on integers; on floats the sign of a zero may differ. A line that uses one says `# integers`."""


def violations(source: str) -> Iterator[str]:
    """Every use of numpy in a module that the reference arithmetic does not allow."""
    tree, lines = ast.parse(source), source.splitlines()
    aliases = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name.split(".")[0] == "numpy" and alias.name != "numpy.typing"
    }
    holds_arrays = aliases or any(isinstance(node, ast.Attribute) and node.attr == "values" for node in ast.walk(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            on_integers = node.attr in INTEGERS_ONLY and lines[node.lineno - 1].endswith("# integers")
            if node.attr not in EXACT and not on_integers:
                yield f"line {node.lineno}: np.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "numpy":
            yield from (
                f"line {node.lineno}: from {node.module} import {alias.name}"
                for alias in node.names
                if node.module != "numpy.typing" and alias.name not in EXACT
            )
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if holds_arrays and node.func.attr in INEXACT_METHODS and not _is_module_call(node.func):
                yield f"line {node.lineno}: .{node.func.attr}()"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield f"line {node.lineno}: the operator @"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow) and not _is_exact_power(node):
            yield f"line {node.lineno}: the operator **"


def _is_module_call(function: ast.Attribute) -> bool:
    """`reductions.sum(...)` calls our own module, not an array."""
    return isinstance(function.value, ast.Name) and function.value.id in OUR_MODULES


def _is_exact_power(node: ast.AST) -> bool:
    """A power of a written-out number or of a fraction is Python's own and exact: 2 ** n, Fraction(2) ** n."""
    base = node.left if isinstance(node, ast.BinOp) else None
    is_fraction = isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "Fraction"
    return isinstance(base, ast.Constant) or is_fraction


def test_only_exact_numpy_operations(root: Path) -> None:
    actual = [
        f"{path.relative_to(root)} {problem}"
        for path in sorted((root / "reference").rglob("*.py"))
        for problem in violations(path.read_text(encoding="utf-8"))
    ]
    assert actual == []


INEXACT = "np.exp(x); np.sum(x); x.sum(); a @ b; np.fft.fft(x); np.add.reduce(x); np.einsum('i,i->', x, y); x ** 2.5"


@pytest.mark.parametrize("source", INEXACT.split("; "))
def test_an_inexact_operation_would_be_found(source: str) -> None:
    assert list(violations(f"import numpy as np\n{source}\n"))


def test_a_sum_of_the_values_of_an_array_would_be_found_without_numpy() -> None:
    assert list(violations("def total(x):\n    return x.values.sum()\n"))
    assert list(violations("def total(x):\n    return x.sum(axis=0)\n")) == []


# Docstrings of the reference: those of an override are its first declaration's.


def test_public_methods_are_described_where_they_are_declared_first() -> None:
    bare = []
    for module in pkgutil.walk_packages(tessera_reference.__path__, "tessera_reference."):
        if module.name.endswith("__main__"):
            continue
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind.__module__ == module.name and not kind.__name__.startswith("_"):
                bare += [
                    f"{kind.__qualname__}.{name}"
                    for name, member in vars(kind).items()
                    if isinstance(member, property) or (inspect.isfunction(member) and "<" not in member.__qualname__)
                    if not name.startswith("_") and not inspect.getdoc(getattr(kind, name))
                ]
    assert not bare
