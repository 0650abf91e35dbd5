"""A table of callables as an adapter: `--impl=ops:MODULE:TABLE`.

TABLE is a mapping in MODULE from names of operations to callables on numpy arrays: operands by position, attributes by
name, their defaults filled in. What is absent is unsupported. The module may also have

    NAME, VERSION   who answers (default: the module's name)
    DTYPES          the dtypes that it takes (default: all but tf32, which numpy does not have)
    LACKS           features that follow from its operations and that it does not claim
    LEVEL           fast, deterministic or strict (default: fast, or deterministic where an order is declared)
    SUBNORMALS      kept or flushed
    DECLARED        the file with its orders (default: declared.toml beside it, if there is one)
"""

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
from tessera_conformance.operations.arrays import Array, NoArray, array_of, numpy_type, tensor_of
from tessera_conformance.operations.declared import BadDeclaration, Declarations
from tessera_conformance.operations.names import OPERATIONS, Operation, nearest
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

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
    """A table that cannot be used; says what is wrong and what was expected."""


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
        brought = [OPERATIONS[name].feature for name in self.table]
        implied = [feature for name in ("core", *brought) for feature in FEATURES.get(name, ())]
        features = {"operation-access", *brought, *implied}
        if "matmul" in self.table and parameters_of(self.table["matmul"]) & {"out", "**"}:
            features.add("matmul-out")
        return sorted(features - {"core", *getattr(self.module, "LACKS", ())})

    def numerics_evaluate(
        self, *, operation: str, inputs: Sequence[Tensor], attributes: Mapping[str, Any], **rest: Any
    ) -> dict[str, Any]:
        """One operation.

        Raises:
            NotSupported: the table lacks it, a dtype or an attribute, or its callable raises NotImplementedError.
            Refusal: the callable raises, or gives what is no array.
        """
        function = self.table.get(operation)
        if function is None:
            raise NotSupported(f"the operation {operation}")
        self._require_dtypes(operation, inputs, attributes)
        arrays = [array_of(tensor) for tensor in inputs]
        result = self._called(function, operation, arrays, arguments_of(function, operation, arrays, attributes))
        tf32 = "tf32" in (_result_dtype(inputs, attributes),)
        try:
            results = result if isinstance(result, tuple | list) else [result]
            return {"outputs": [tensor_of(each, tf32) for each in results]}
        except NoArray as problem:
            raise Refusal("numerics", "execute", f"{operation}: the callable gave {problem}") from None

    def numerics_declared(self, **question: Any) -> dict[str, Any]:
        """The order of a sum, as the file of the module declares it. Raises `NotSupported` where it does not."""
        if self.declarations is None:
            raise NotSupported("a declared order")
        return self.declarations.answer(**question)

    def _require_dtypes(self, operation: str, inputs: Sequence[Tensor], attributes: Mapping[str, Any]) -> None:
        asked = [tensor.dtype for tensor in inputs]
        asked += [attributes[name] for name in DTYPE_ATTRIBUTES if name in attributes]
        for dtype in asked:
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
        """The last line of the module's own file that the exception came through."""
        own = getattr(self.module, "__file__", None)
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own]
        return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""


def _declarations(module: ModuleType) -> Declarations | None:
    """The orders that a module declares: those of the file that it names, or of `declared.toml` beside it."""
    beside = Path(getattr(module, "__file__", None) or ".").parent
    path = beside / getattr(module, "DECLARED", "declared.toml")
    if not path.exists() and not hasattr(module, "DECLARED"):
        return None
    try:
        return Declarations(path)
    except BadDeclaration as problem:
        raise BadTable(str(problem)) from None


def adapter_of(module: ModuleType, name: str) -> TableAdapter:
    """The adapter of a table in a module.

    Raises:
        BadTable: there is none of that name, or it is no table of operations.
    """
    place = f"{module.__name__}:{name}"
    table = getattr(module, name, None)
    if not isinstance(table, Mapping):
        found = "nothing" if table is None else f"a {type(table).__name__}"
        raise BadTable(f"{place}: {found}; expected a mapping from names of operations to callables")
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
    """The attributes as the callable takes them; one that it does not take is left out where it is at its default.

    Raises:
        NotSupported: one that it does not take has another value.
    """
    known = OPERATIONS.get(operation) or Operation(operation)
    said = {name: _value(name, value) for name, value in attributes.items()}
    defaults = {name: _value(name, value) for name, value in known.default_values(said, arrays).items()}
    taken = parameters_of(function)
    arguments = {}
    for name, value in {**defaults, **said}.items():
        if name in taken or "**" in taken:
            arguments[name] = value
        elif name not in defaults or value != defaults[name]:
            raise NotSupported(f"{operation} with {name}={value}: the callable takes no {name}")
    return arguments


@cache
def parameters_of(function: Callable[..., Any]) -> frozenset[str]:
    """The names by which a callable takes attributes, `**` for any; none of a ufunc, whose keywords mean others."""
    if isinstance(function, np.ufunc):
        return frozenset()
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    named = {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    return frozenset(named | ({"**"} if any(each.kind is each.VAR_KEYWORD for each in parameters) else set()))


def _value(name: str, value: Any) -> Any:
    """An attribute as a callable gets it: a dtype of numpy, and a number where its decimal digits travelled as text."""
    if name in DTYPE_ATTRIBUTES and isinstance(value, str):
        return numpy_type(value)
    if isinstance(value, str) and name not in WORDS:
        return _number(value)
    if isinstance(value, list | tuple):
        return [_value(name, each) for each in value]
    return value


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _result_dtype(inputs: Sequence[Tensor], attributes: Mapping[str, Any]) -> str:
    """The dtype that an fp32 result may stand for: what an attribute says, else that of the first floats."""
    for name in DTYPE_ATTRIBUTES:
        if name in attributes:
            return str(attributes[name])
    return next((tensor.dtype for tensor in inputs if tensor.format.is_float), "")


def _last_line(error: BaseException) -> str:
    lines = [line for line in traceback.format_exception_only(error)[-1].strip().splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
