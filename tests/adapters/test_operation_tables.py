"""Kernel libraries as tables of operations: their names, arguments and errors."""

from __future__ import annotations

import ast
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import tessera_reference.graph  # noqa: F401  # declares every operation
from tessera_conformance.cases import clauses_directory, vectors_directory
from tessera_conformance.operations import LIBRARIES, OPERATIONS, TABLE, calls, nearest
from tessera_conformance.protocol import Rejected, Returned, Unsupported
from tessera_conformance.registry import load_registry
from tessera_conformance.schemas import schemas
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import locate, via_of
from tessera_conformance.vectors import Vector, load
from tessera_conformance.vectors.judging import PROGRAMS
from tessera_reference.ir.operation import OPERATIONS as DECLARED
from tessera_reference.ir.operation import Derived

# A kernel library as a table of callables, `--impl=ops:MODULE:TABLE`: its arguments, and a bad one's errors.

X = Tensor("fp32", (2, 3), np.arange(6, dtype="<f4").tobytes())
NARROW = Tensor("bf16", (2,), bytes.fromhex("803f0040"))
LIBRARY = """
import numpy as np
from tessera_conformance.adapter import NotSupported

SEEN = []

def softmax(x, axis):
    raise ValueError(f"no softmax over {axis}")

def matmul(a, b, **attributes):
    SEEN.append(attributes)
    return a @ b

def gelu(x):
    return x

def erf(x):
    raise NotImplementedError("erf of float32")

TABLE = {
    "add": np.add,
    "sum": lambda x, axis, keepdims: np.sum(x, axis=axis, keepdims=keepdims),
    "transpose": lambda x, perm: np.transpose(x, perm),
    "softmax": softmax,
    "matmul": matmul,
    "gelu": gelu,
    "erf": erf,
    "exp": lambda x: x.astype(np.float64),
    "log": lambda x: [1.0, 2.0],
    "sqrt": lambda x: x.astype(np.uint16),
    "cast": lambda x, dtype: x.astype(dtype),
    "batch_norm": lambda x, gamma, beta, mean, variance, *, axis, momentum, eps, training: (x, mean, variance),
    "concat": lambda *parts, axis: np.concatenate(parts, axis),
    "sin": None,
}
NO_TABLE = [1]
MISSPELT = {"soft_max": softmax}
NO_CALLABLE = {"add": 3}
"""


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Asks the table of that library for an operation."""
    (tmp_path / "kernels_of_a_test.py").write_text(textwrap.dedent(LIBRARY))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "kernels_of_a_test", raising=False)
    session = Session(locate("ops:kernels_of_a_test:TABLE"))

    def evaluate(operation: str, *inputs: Tensor, **attributes: Any) -> Any:
        params = {"operation": operation, "inputs": list(inputs), "attributes": attributes, "level": "fast"}
        observation = session.call("numerics.evaluate", params)
        return observation.value["outputs"] if isinstance(observation, Returned) else observation

    evaluate.hello = session.open()  # type: ignore[attr-defined]
    return evaluate


def test_attributes_are_explicit(ask: Callable[..., Any]) -> None:
    (total,) = ask("sum", X, axis=0)
    assert (total.shape, total.data) == ((3,), np.array([3, 5, 7], "<f4").tobytes())
    (moved,) = ask("transpose", X)
    assert moved.shape == (3, 2)
    ask("matmul", X, moved)
    seen = __import__("kernels_of_a_test").SEEN
    assert seen == [{"out": np.dtype("float32")}]


def test_dtypes_are_those_of_numpy_and_ml_dtypes(ask: Callable[..., Any]) -> None:
    pytest.importorskip("ml_dtypes")
    (wide,) = ask("cast", NARROW, dtype="fp32")
    assert (wide.dtype, wide.words().tolist()) == ("fp32", [0x3F800000, 0x40000000])
    (narrow,) = ask("cast", X, dtype="fp8_e4m3")
    assert narrow.dtype == "fp8_e4m3"
    (joined,) = ask("concat", NARROW, NARROW, NARROW, axis=0)
    assert (joined.dtype, joined.shape) == ("bf16", (6,))
    assert len(ask("batch_norm", X, NARROW, NARROW, NARROW, NARROW)) == 3


def test_what_is_absent_is_unsupported(ask: Callable[..., Any]) -> None:
    tf32 = Tensor("tf32", (1,), bytes(4))
    assert ask("cos", X) == Unsupported("the operation cos")
    assert ask("sin", X) == Unsupported("the operation sin")
    assert ask("add", tf32, tf32) == Unsupported("add of tf32")
    assert ask("gelu", X)[0].data == X.data
    refused = "gelu with approximate=tanh: the callable takes no approximate"
    assert ask("gelu", X, approximate="tanh") == Unsupported(refused)
    assert ask("erf", X) == Unsupported("erf of float32: NotImplementedError: erf of float32")


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("softmax", "softmax: ValueError: no softmax over -1 (kernels_of_a_test.py:8, in softmax)"),
        ("log", "log: the callable gave a float, expected a numpy array"),
        ("sqrt", "sqrt: the callable gave an array of uint16, which is no dtype of the language"),
    ],
)
def test_what_goes_wrong_fails_its_own_case(ask: Callable[..., Any], operation: str, message: str) -> None:
    observation = ask(operation, X)
    assert isinstance(observation, Rejected)
    assert observation.message.startswith(message)
    assert ask("add", X, X)[0].shape == (2, 3)


def test_only_what_follows_from_the_table_is_claimed(ask: Callable[..., Any]) -> None:
    hello = ask.hello  # type: ignore[attr-defined]
    assert (hello.name, hello.documents, hello.level) == ("kernels_of_a_test", ("language_ir",), "fast")
    claimed = "activations broadcasting-ops casts elementary-functions matmul-out operation-access reductions"
    assert set(hello.capabilities) == {*claimed.split(), "tensor-ops", "stateful-ops", "zero-sizes"}


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("MISSPELT", "'soft_max' is no operation; did you mean softmax"),
        ("NO_TABLE", "a list; expected a mapping from names of operations to callables"),
        ("NO_CALLABLE", "'add' is a int; expected a callable or None"),
        ("LACKING", "nothing; expected a mapping"),
    ],
)
def test_a_bad_table_is_refused_at_once(ask: Callable[..., Any], table: str, problem: str) -> None:
    with pytest.raises(ImplementationUnavailable, match=f"kernels_of_a_test:{table}: {problem}"):
        locate(f"ops:kernels_of_a_test:{table}")


def test_a_table_has_no_programs() -> None:
    assert via_of("ops:kernels:TABLE", "programs") == "operations"
    assert via_of("reference", "programs") == "programs"


# The table of names agrees with its schema, with the operations of the language, and with the golden vectors.

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
    assert OPERATIONS["transpose"].default_values({}, [np.zeros((2, 3, 4))]) == {"perm": [2, 1, 0]}
    sliced = {"starts": [0, 1], "stops": [2, 2]}
    assert OPERATIONS["slice"].default_values(sliced, [np.zeros((4, 4))])["steps"] == [1, 1]
    assert OPERATIONS["flash_attention"].default_values({}, [np.zeros((1, 4))] * 3)["scale"] == 0.5


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
