"""Implementations that add in a known way: plain loops, fused nodes, Kahan, exact sums, and one that varies.

Each `make_...` is a factory for `--impl=py:known_orders:make_...`.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.tensors import Tensor

TYPES: dict[str, Any] = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp32": np.float32,
    "fp64": np.float64,
    "fp8_e4m3": ml_dtypes.float8_e4m3fn,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
}
_LIBRARY = ctypes.CDLL(ctypes.util.find_library("m"))
_LIBRARY.fmaf.restype, _LIBRARY.fmaf.argtypes = ctypes.c_float, [ctypes.c_float] * 3

Reduce = Callable[[Any], Any]


def fold(x: Any) -> Any:
    total = x[0]
    for term in x[1:]:
        total = total + term
    return total


def halving(x: Any) -> Any:
    return x[0] if len(x) == 1 else halving(x[: len(x) // 2]) + halving(x[len(x) // 2 :])


def pairwise(x: Any) -> Any:
    rows = list(x)
    while len(rows) > 1:
        rows = [a + b for a, b in zip(rows[::2], rows[1::2], strict=False)] + rows[len(rows) & ~1 :]
    return rows[0]


def lanes(x: Any, width: int = 8) -> Any:
    totals = x[:width]
    for first in range(width, len(x), width):
        totals = totals + x[first : first + width]
    return pairwise(totals)


def ring_from(first: int) -> Reduce:
    return lambda x: fold([x[(first + k) % len(x)] for k in range(len(x))])


def kahan(x: Any) -> Any:
    total = lost = x[0] - x[0]
    for term in x:
        y = term - lost
        t = total + y
        lost = (t - total) - y if np.isfinite(t) else y * 0
        total = t
    return total


def exact(x: Any) -> Any:
    return type(x[0])(math.fsum(float(term) for term in x))


class Varying:
    """Adds in another order each time, as atomics do."""

    def __init__(self) -> None:
        self._chance = np.random.default_rng(5)

    def __call__(self, x: Any) -> Any:
        return fold(x[self._chance.permutation(len(x))])


def blocks(width: int, bits: int | None) -> Reduce:
    """Fused blocks of a matrix unit: terms aligned to the largest, cut, summed exactly, rounded to fp32."""

    def add(x: Any) -> Any:
        total = 0.0
        for first in range(0, len(x), width):
            total = float(joined([total, *(float(term) for term in x[first : first + width])], bits))
        return x.dtype.type(total)

    return add


def joined(terms: Sequence[float], bits: int | None) -> Any:
    """One node on Python floats: two terms an fp32 addition, more an aligned or exact sum."""
    if len(terms) == 2:
        return np.float32(terms[0]) + np.float32(terms[1])
    if bits is None:
        return np.float32(math.fsum(terms))
    largest = max(abs(term) for term in terms)
    if largest == 0:
        return np.float32(0)
    spacing = Fraction(2) ** (math.frexp(largest)[1] - 1 - bits)
    return np.float32(float(sum(int(Fraction(term) / spacing) for term in terms) * spacing))


def nested(tree: Any, bits: int | None) -> Reduce:
    """The sum of a nesting of tuples."""

    def add(x: Any) -> Any:
        def value(part: Any) -> float:
            if isinstance(part, int):
                return float(x[part])
            return float(joined([value(child) for child in part], bits))

        return x.dtype.type(value(tree))

    return add


def in_type(kind: Any, reduce: Reduce) -> Reduce:
    """The sum in another type, rounded to that of the terms at the end."""
    return lambda x: x.dtype.type(reduce(x.astype(kind)))


def rounded_products(left: Any, right: Any) -> Any:
    return fold(np.concatenate([[left.dtype.type(0)], left * right]))


def fused_products(left: Any, right: Any) -> Any:
    total = 0.0
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        total = _LIBRARY.fmaf(a, b, total)
    return left.dtype.type(total)


def wide_products(left: Any, right: Any) -> Any:
    return left.dtype.type(fold(left.astype(np.float64) * right.astype(np.float64)))


def flushed_products(left: Any, right: Any) -> Any:
    def kept(numbers: Any) -> Any:
        return np.where(np.abs(numbers) < np.finfo(np.float32).smallest_normal, numbers * 0, numbers)

    total = np.float32(0)
    for product in kept(kept(left) * kept(right)):
        total = kept(total + product)[()]
    return np.float32(total)


class Summing:
    """The adapter: one sum and one product, a declaration, and calls counted."""

    def __init__(
        self,
        reduce: Reduce = fold,
        products: Callable[[Any, Any], Any] = rounded_products,
        declared: Any = None,
        arithmetic: Any = None,
        hello: dict[str, Any] | None = None,
        by_program: bool = False,
        chunked: bool = False,
    ) -> None:
        self.reduce, self.products, self.declared = reduce, products, declared
        self.arithmetic, self.said, self.by_program, self.chunked = arithmetic, hello or {}, by_program, chunked
        self.calls = 0
        self.programs: list[str] = []

    def hello(self) -> dict[str, Any]:
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "known_orders", "version": "1"},
            "documents": [],
            "arithmetic": {"level": "deterministic"} | self.said,
        }

    def numerics_evaluate(
        self, *, operation: str, inputs: list[Tensor], attributes: dict[str, Any], level: str
    ) -> dict[str, Any]:
        if self.by_program:
            raise NotSupported("numerics.evaluate")
        self.calls += 1
        return {"outputs": [self._evaluated(operation, inputs, attributes)]}

    def numerics_declared(
        self, *, operation: str, dtype: str, shapes: Any, element: int = 0, attributes: Any = None
    ) -> dict[str, Any]:
        if self.declared is None:
            raise NotSupported("numerics.declared")
        model = {
            "product": "rounded",
            "accumulator": "fp64" if dtype == "fp64" else "fp32",
            "rounding": "nearest_even",
            "alignment_bits": None,
            "subnormals": "kept",
        }
        return {"tree": self.declared, "arithmetic": model | (self.arithmetic or {})}

    def language_execute(
        self, *, source: str, function: str, inputs: dict[str, Tensor], level: str = "strict"
    ) -> dict[str, Any]:
        self.programs.append(source)
        operation = "matmul" if "op.matmul(A, B" in source else "sum"
        return {"outputs": [self._evaluated(operation, list(inputs.values()), {"axis": 0})]}

    def collectives_all_reduce(self, *, inputs: list[Tensor], op: str, level: str) -> dict[str, Any]:
        whole = np.stack([_array(tensor) for tensor in inputs])
        ranks, elements = whole.shape
        result = np.empty(elements, whole.dtype)
        for element in range(elements):
            chunk = element * ranks // elements
            result[element] = (ring_from(chunk + 1) if self.chunked else self.reduce)(whole[:, element])
        return {"outputs": [_tensor(result, inputs[0].dtype)] * ranks}

    def _evaluated(self, operation: str, inputs: list[Tensor], attributes: dict[str, Any]) -> Tensor:
        arrays = [_array(tensor) for tensor in inputs]
        if operation == "matmul":
            (rows, _), (_, columns) = (array.shape for array in arrays)
            out = TYPES[attributes.get("out", inputs[0].dtype)]
            result = np.zeros((rows, columns), out)
            for row in range(rows):
                for column in range(columns):
                    result[row, column] = out(self.products(arrays[0][row], arrays[1][:, column]))
            return _tensor(result, attributes.get("out", inputs[0].dtype))
        with np.errstate(all="ignore"):
            rows_first = np.moveaxis(arrays[0], attributes["axis"], 0)
            flat = rows_first.reshape(len(rows_first), -1)
            sums = np.array([self.reduce(column) for column in flat.T], rows_first.dtype)
        return _tensor(sums.reshape(rows_first.shape[1:]), inputs[0].dtype)


def _array(tensor: Tensor) -> Any:
    return np.frombuffer(tensor.data, TYPES[tensor.dtype]).reshape(tensor.shape)


def _tensor(array: Any, dtype: str) -> Tensor:
    return Tensor(dtype, array.shape, array.tobytes())


def make_fold() -> Summing:
    return Summing(declared="fold")


def make_liar() -> Summing:
    """Folds, and declares pairwise."""
    return Summing(declared="pairwise")


def make_silent() -> Summing:
    return Summing(lanes)


class _Bad(Summing):
    """Answers that are of no use."""

    def __init__(self, answer: Callable[[list[Tensor]], Any]) -> None:
        super().__init__()
        self.answer = answer

    def numerics_evaluate(self, *, inputs: list[Tensor], **rest: Any) -> Any:
        return self.answer(inputs)


def make_hanging() -> Summing:
    return _Bad(lambda inputs: time.sleep(60))


def make_crashing() -> Summing:
    return _Bad(lambda inputs: 1 // 0)


def make_refusing() -> Summing:
    def refuse(inputs: Any) -> Any:
        raise Refusal("TESS_ERR_INVALID_VALUE", "call", "not today")

    return _Bad(refuse)


def make_misshapen() -> Summing:
    return _Bad(lambda inputs: {"outputs": inputs})


def make_constant() -> Summing:
    return _Bad(lambda inputs: {"outputs": [Tensor("fp32", (), bytes(4))]})


def make_nan() -> Summing:
    return _Bad(lambda inputs: {"outputs": [Tensor("fp32", (), bytes.fromhex("0000c07f"))]})


class Mute:
    """Implements nothing."""

    def hello(self) -> dict[str, Any]:
        return Summing().hello()


class Dead(Mute):
    """Does not start."""

    def hello(self) -> dict[str, Any]:
        raise OSError("no device")
