"""A table of callables as an adapter: arrays for tensors, and the declarations of the table."""

from __future__ import annotations

import inspect
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.arithmetic import ModelError, NodeArithmetic, canonical
from tessera_conformance.documents import NoDocument
from tessera_conformance.operations import DTYPES, OPERATIONS, Operation, nearest
from tessera_conformance.oracle.trees import Tree, TreeError
from tessera_conformance.schemas import read_valid
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

# Tensors of the protocol as numpy arrays, and back; `ml_dtypes` is imported for bf16 and fp8 alone.


Array = np.ndarray[Any, np.dtype[Any]]
NARROW = "ml_dtypes."


class NoArray(Exception):
    """A callable returned something other than an array of a dtype of the language; the message names it."""


@cache
def numpy_type(dtype: str) -> np.dtype[Any]:
    """Return the numpy dtype for elements of a dtype; tf32 is stored as fp32.

    Raises `NotSupported`: it needs ml_dtypes, which is not installed.
    """
    name = "float32" if dtype == "tf32" else DTYPES[dtype]["numpy"]
    if not name.startswith(NARROW):
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise NotSupported(f"{dtype} without ml_dtypes: pip install ml_dtypes") from None
    narrow: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name.removeprefix(NARROW)))
    return narrow


def array_of(tensor: Tensor) -> Array:
    """Return a fresh array of a tensor's elements, which may be written to."""
    return np.frombuffer(tensor.data, numpy_type(tensor.dtype)).reshape(tensor.shape).copy()


def tensor_of(result: Any, tf32: bool = False) -> Tensor:
    """Return the tensor of a callable's result: an array, a scalar of numpy, or an object that converts to an array.

    With `tf32`, fp32 means tf32. Raises `NoArray`: it is none, or of a dtype that the language lacks.
    """
    if not isinstance(result, np.ndarray | np.generic) and not hasattr(result, "__array__"):
        raise NoArray(f"a {type(result).__name__}, expected a numpy array")
    array = np.asarray(result)
    dtype = _dtype_of(array.dtype)
    data = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).tobytes()
    return Tensor("tf32" if tf32 and dtype == "fp32" else dtype, array.shape, data)


@cache
def _dtype_of(kind: np.dtype[Any]) -> str:
    for dtype, names in DTYPES.items():
        name = names.get("numpy", "").removeprefix(NARROW)
        if name and kind.name == name:
            return dtype
    known = ", ".join(names["numpy"] for names in DTYPES.values() if "numpy" in names)
    raise NoArray(f"an array of {kind.name}, which is no dtype of the language; expected one of {known}")


# The file of orders that an implementation declares, `declared.toml`: written by `probe --write`, read for a table.
#
# `schemas/declared.schema.json` has its form. The last two extents of a product of batches are looked up if the whole
# shapes are not there.


Key = tuple[Any, ...]
Answer = dict[str, Any]


class Declarations:
    """The orders in a file. Raises `NoDocument`: it cannot be read, or an order is malformed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._orders: dict[Key, list[tuple[str, Answer]]] = {}
        """The orders of each question, by their elements, with the answer of `numerics.declared`."""
        self._arithmetic: dict[tuple[str, str], Any] = {}
        """That of the first order of an operation and a dtype, for sums of one term."""
        try:
            for row in read_valid(path, "tessera:declared", "file").get("order", []):
                answer = _answer(row["tree"], NodeArithmetic.from_json(row["arithmetic"]).to_json())
                self._arithmetic.setdefault((row["operation"], row["dtype"]), answer["arithmetic"])
                for shapes in row["shapes"]:
                    key = key_of(row["operation"], row["dtype"], shapes, row)
                    self._orders.setdefault(key, []).append((row.get("elements", ""), answer))
        except (TreeError, ModelError) as error:
            raise NoDocument(f"{path}: {error}") from None

    def answer(
        self,
        *,
        operation: str,
        dtype: str,
        shapes: Sequence[Sequence[int]],
        attributes: Mapping[str, Any] | None = None,
        element: int = 0,
    ) -> Answer:
        """Return the answer to `numerics.declared`.

        Raises `NotSupported`: no order of this operation, dtype and shape is declared.
        """
        stated = attributes or {}
        whole = self._orders.get(key_of(operation, dtype, shapes, stated))
        if whole is None and operation == "matmul":
            whole = self._orders.get(key_of(operation, dtype, [shape[-2:] for shape in shapes], stated))
        if whole is None and terms_of(operation, shapes, stated) < 2:
            return _answer("fold", self._arithmetic.get((operation, dtype)) or canonical(dtype).to_json())
        for elements, answer in whole or ():
            if _contains(elements, element):
                return answer
        raise NotSupported(f"a declared order for this shape: `tessera-conformance probe --write {self.path.name}`")


def key_of(operation: str, dtype: str, shapes: Sequence[Sequence[int]], attributes: Mapping[str, Any]) -> Key:
    """Return the key under which an order is stored."""
    extents = tuple(tuple(shape) for shape in shapes)
    if operation == "sum":
        return (operation, dtype, extents, int(attributes.get("axis", -1)) % max(len(extents[0]), 1))
    return (operation, dtype, extents, attributes.get("out") or dtype)


def terms_of(operation: str, shapes: Sequence[Sequence[int]], attributes: Mapping[str, Any]) -> int:
    """Return the number of terms of an element of the result."""
    return int(shapes[0][-1] if operation == "matmul" else shapes[0][attributes.get("axis", -1)])


def _answer(tree: str, arithmetic: Any) -> Answer:
    """Return the answer to `numerics.declared`."""
    return {"tree": Tree.from_text(tree).to_json(), "arithmetic": arithmetic}


def _contains(elements: str, element: int) -> bool:
    """True if a list of elements such as `0-3,8` has this one; an empty list has all."""
    runs = (run.partition("-") for run in elements.split(",") if run)
    return not elements or any(int(first) <= element <= int(last or first) for first, _, last in runs)


# A table of callables as an adapter: `--impl=ops:MODULE:TABLE`.
#
# TABLE is a mapping in MODULE from names of operations to callables on numpy arrays: operands by position, attributes
# by name, their defaults filled in. What is absent is unsupported. `docs/adapters.md` lists what else the module has.


DTYPE_ATTRIBUTES = ("dtype", "out", "accum")
"""Attributes that name a dtype; a callable gets the numpy dtype."""
WORDS = frozenset({"approximate", "norm", "overflow", "to", "order"})
"""Attributes whose text is a word; another text is a decimal number."""
FEATURES: Mapping[str, Sequence[str]] = {
    "core": ["zero-sizes"],
    "tensor-ops": ["broadcasting-ops"],
    "random-ops": ["philox"],
}
"""The features that an operation implies beside its own."""


class BadTable(Exception):
    """An unusable table; the message has the fault and what was expected."""


class TableAdapter:
    """Answers `numerics.evaluate` with the callables of a table."""

    def __init__(self, module: ModuleType, table: Mapping[str, Callable[..., Any] | None]) -> None:
        self.module = module
        self.table = {name: function for name, function in table.items() if function is not None}
        self.declarations = _declarations(module)
        self.dtypes = tuple(getattr(module, "DTYPES", [name for name in ELEMENT_FORMATS if name != "tf32"]))

    def hello(self) -> Mapping[str, Any]:
        """Return the identity of the library, and claim the features of the operations in the table."""
        name = getattr(self.module, "NAME", self.module.__name__.rpartition(".")[2])
        level = "deterministic" if self.declarations else "fast"
        arithmetic = {"level": getattr(self.module, "LEVEL", level)}
        if hasattr(self.module, "SUBNORMALS"):
            arithmetic["subnormals"] = self.module.SUBNORMALS
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": name, "version": str(getattr(self.module, "VERSION", "unknown"))},
            "documents": ["language_ir"],
            "capabilities": dict.fromkeys(self.features(), "enforced"),
            "arithmetic": arithmetic,
            "parallel": bool(getattr(self.module, "PARALLEL", False)),
        }

    def features(self) -> Sequence[str]:
        """Return the features that follow from the operations in the table, less those that the module lacks."""
        features_of_table = [OPERATIONS[name].feature for name in self.table]
        implied = [feature for name in ("core", *features_of_table) for feature in FEATURES.get(name, ())]
        features = {"operation-access", *features_of_table, *implied}
        if "matmul" in self.table and parameters_of(self.table["matmul"]) & {"out", "**"}:
            features.add("matmul-out")
        return sorted(features - {"core", *getattr(self.module, "LACKS", ())})

    def numerics_evaluate(
        self, *, operation: str, inputs: Sequence[Tensor], attributes: Mapping[str, Any], **rest: Any
    ) -> dict[str, Any]:
        """Evaluate one operation.

        Raises `NotSupported`: the table lacks it, a dtype or an attribute, or its callable raises NotImplementedError;
        or `Refusal`: the callable raises, or returns no array.
        """
        function = self.table.get(operation)
        if function is None:
            raise NotSupported(f"the operation {operation}")
        self._require_dtypes(operation, inputs, attributes)
        arrays = [array_of(tensor) for tensor in inputs]
        result = self._called(function, operation, arrays, arguments_of(function, operation, arrays, attributes))
        tf32 = _result_dtype(inputs, attributes) == "tf32"
        try:
            results = result if isinstance(result, tuple | list) else [result]
            return {"outputs": [tensor_of(output, tf32) for output in results]}
        except NoArray as problem:
            raise Refusal("numerics", "execute", f"{operation}: the callable gave {problem}") from None

    def numerics_declared(self, **question: Any) -> dict[str, Any]:
        """Return the order of a sum that the module's file declares. Raises `NotSupported`: it declares none."""
        if self.declarations is None:
            raise NotSupported("a declared order")
        return self.declarations.answer(**question)

    def _require_dtypes(self, operation: str, inputs: Sequence[Tensor], attributes: Mapping[str, Any]) -> None:
        dtypes = [tensor.dtype for tensor in inputs]
        dtypes += [attributes[name] for name in DTYPE_ATTRIBUTES if name in attributes]
        for dtype in dtypes:
            if dtype not in self.dtypes:
                raise NotSupported(f"{operation} of {dtype}")

    def _called(
        self, function: Callable[..., Any], operation: str, arrays: Sequence[Array], arguments: Mapping[str, Any]
    ) -> Any:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return function(*arrays, **arguments)
        except NotSupported:
            raise
        except NotImplementedError as error:
            dtypes = ", ".join(dict.fromkeys(array.dtype.name for array in arrays))
            raise NotSupported(f"{operation} of {dtypes}: {_last_line(error)}") from None
        except Exception as error:
            raise Refusal("numerics", "execute", f"{operation}: {_last_line(error)}{self._place_of(error)}") from None

    def _place_of(self, error: Exception) -> str:
        """Return the last line of the module's own file in the traceback of the exception."""
        own = getattr(self.module, "__file__", None)
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own]
        return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""


def _declarations(module: ModuleType) -> Declarations | None:
    """Return the orders that a module declares: those of the file that it names, or of `declared.toml` beside it."""
    beside = Path(getattr(module, "__file__", None) or ".").parent
    path = beside / getattr(module, "DECLARED", "declared.toml")
    if not path.exists() and not hasattr(module, "DECLARED"):
        return None
    try:
        return Declarations(path)
    except NoDocument as problem:
        raise BadTable(str(problem)) from None


def adapter_of(module: ModuleType, name: str) -> TableAdapter:
    """Return the adapter of a table in a module.

    Raises `BadTable`: there is none of that name, or it is no table of operations.
    """
    place = f"{module.__name__}:{name}"
    table = getattr(module, name, None)
    if not isinstance(table, Mapping):
        description = "nothing" if table is None else f"a {type(table).__name__}"
        raise BadTable(f"{place}: {description}; expected a mapping from names of operations to callables")
    for operation, function in table.items():
        if operation not in OPERATIONS:
            near = nearest(str(operation))
            hint = f"did you mean {' or '.join(near)}?" if near else "docs/names.md lists them"
            raise BadTable(f"{place}: {operation!r} is no operation; {hint}")
        if function is not None and not callable(function):
            raise BadTable(f"{place}: {operation!r} is a {type(function).__name__}; expected a callable or None")
    return TableAdapter(module, table)


def arguments_of(
    function: Callable[..., Any], operation: str, arrays: Sequence[Array], attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the attributes that the callable takes; one that it does not take is omitted if it has its default.

    Raises `NotSupported`: one that it does not take has another value.
    """
    description = OPERATIONS.get(operation) or Operation(operation)
    stated = {name: _value(name, value) for name, value in attributes.items()}
    defaults = {name: _value(name, value) for name, value in description.default_values(stated, arrays).items()}
    parameters = parameters_of(function)
    arguments = {}
    for name, value in {**defaults, **stated}.items():
        if name in parameters or "**" in parameters:
            arguments[name] = value
        elif name not in defaults or value != defaults[name]:
            raise NotSupported(f"{operation} with {name}={value}: the callable takes no {name}")
    return arguments


@cache
def parameters_of(function: Callable[..., Any]) -> frozenset[str]:
    """Return the attribute names that a callable takes, `**` for any; a ufunc takes none: its keywords mean others."""
    if isinstance(function, np.ufunc):
        return frozenset()
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [parameter.name for parameter in parameters if parameter.kind in kinds]
    variadic = ["**" for parameter in parameters if parameter.kind is parameter.VAR_KEYWORD]
    return frozenset([*named, *variadic])


def _value(name: str, value: Any) -> Any:
    """Return an attribute as a callable gets it: a dtype of numpy, or a number for decimal text."""
    if name in DTYPE_ATTRIBUTES and isinstance(value, str):
        return numpy_type(value)
    if isinstance(value, str) and name not in WORDS:
        return _number(value)
    if isinstance(value, list | tuple):
        return [_value(name, element) for element in value]
    return value


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _result_dtype(inputs: Sequence[Tensor], attributes: Mapping[str, Any]) -> str:
    """Return the dtype that an fp32 result may mean: that of an attribute, else that of the first float operand."""
    stated = (str(attributes[name]) for name in DTYPE_ATTRIBUTES if name in attributes)
    return next(stated, None) or next((tensor.dtype for tensor in inputs if tensor.format.is_float), "")


def _last_line(error: BaseException) -> str:
    lines = [line for line in traceback.format_exception_only(error)[-1].strip().splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
