"""The table of names agrees with its schema, with the operations of the language, and with the golden vectors."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator

import jsonschema
import pytest

import tessera_reference.graph  # noqa: F401  # declares every operation
from tessera_conformance.locations import clauses_directory, vectors_directory
from tessera_conformance.operations.names import LIBRARIES, OPERATIONS, TABLE, calls, nearest
from tessera_conformance.registry import load_registry
from tessera_conformance.schemas import schemas
from tessera_conformance.vectors import Vector, load
from tessera_conformance.vectors.judging import PROGRAMS
from tessera_reference.ir.operation import OPERATIONS as DECLARED
from tessera_reference.ir.operation import Derived

NAMES_IN_THE_IR = {"less_or_equal": "less_equal", "greater_or_equal": "greater_equal", "slice": "strided_slice"}


def vectors() -> Iterator[Vector]:
    for path in sorted((vectors_directory() / "ir").glob("*.jsonl")):
        yield from load(f"ir/{path.stem}")


def test_it_follows_its_schema() -> None:
    jsonschema.validate(tomllib.loads(TABLE.read_text(encoding="utf-8")), schemas()["tessera:names"])
    assert {row.feature for row in OPERATIONS.values()} <= {"core", *load_registry(clauses_directory()).features}


def test_every_operation_of_a_golden_vector_has_its_line() -> None:
    asked = {vector.provenance.check.function.removeprefix("oracle.") for vector in vectors()}
    asked |= {step.operation for steps in PROGRAMS.values() for step in steps}
    assert asked - set(PROGRAMS) == set(OPERATIONS)


def test_defaults_are_those_of_the_language() -> None:
    for name, row in OPERATIONS.items():
        declared = DECLARED[f"tessera.graph.{NAMES_IN_THE_IR.get(name, name)}"]
        for attribute, value in row.defaults.items():
            default = declared.__dataclass_fields__[attribute].default
            assert getattr(default, "name", default) == value, (name, attribute)
        for attribute in row.derived:
            default = declared.__dataclass_fields__[attribute].default
            assert default is None or isinstance(default, Derived), (name, attribute)


def test_derived_defaults() -> None:
    np = pytest.importorskip("numpy")
    assert OPERATIONS["transpose"].with_defaults({}, [np.zeros((2, 3, 4))]) == {"perm": [2, 1, 0]}
    assert OPERATIONS["slice"].with_defaults({"starts": [0, 1], "stops": [2, 2]}, [np.zeros((4, 4))])["steps"] == [1, 1]
    assert OPERATIONS["flash_attention"].with_defaults({}, [np.zeros((1, 4))] * 3)["scale"] == 0.5


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_call_is_an_expression_of_known_names(library: str) -> None:
    known = {"np", "torch", "F", "jax", "jnp", "lax", "inf"} | set(dir(__builtins__)) | {"slice", "map", "range"}
    for row in OPERATIONS.values():
        if library in row.calls:
            nodes = list(ast.walk(ast.parse(row.calls[library], mode="eval")))
            names = {node.id for node in nodes if isinstance(node, ast.Name)}
            bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
            own = {name.lstrip("*") for name in row.operands} | {*row.attributes}
            operators = {
                node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            builtin = {
                "all",
                "list",
                "zip",
                "reversed",
                "map",
                "slice",
                "range",
                "len",
                "float",
                "tuple",
                "accumulator",
                "reduced",
                "resolved",
            }
            assert names - own - bound - builtin - known - (operators if library in LIBRARIES[3:] else set()) == set()


def test_numpy_is_made_from_it() -> None:
    np = pytest.importorskip("numpy")
    table = calls("numpy", {"np": np})
    assert table["sum"](np.ones((2, 3), np.float32), axis=0, keepdims=True).tolist() == [[2, 2, 2]]
    assert "erf" not in table


def test_a_misspelt_name() -> None:
    assert nearest("soft_max")[0] == "softmax"
