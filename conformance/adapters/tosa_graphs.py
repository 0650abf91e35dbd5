"""Graphs of TOSA of one operation, from the calls of the table of names."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tosa_serializer as tosa
from conformance.adapters.expressions import Value
from conformance.adapters.tosa_dtypes import PRODUCTS, name_of, require

from tessera_conformance.adapter import NotSupported

CLASSES = {"argmax": "ArgMax", "intdiv": "IntDiv", "matmul": "MatMul"}


class Graph:
    """A graph that is being built; what is no value among the operands of a call is a constant."""

    def __init__(self) -> None:
        self.graph = tosa.TosaSerializer(tempfile.gettempdir())
        self.operands = 0

    def operand(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Value:
        """The next input of the graph."""
        if 0 in shape:
            raise NotSupported("TOSA: a tensor without elements")
        name = f"in{self.operands}"
        self.operands += 1
        self.graph.addInputTensor(tosa.TosaSerializerTensor(name, list(shape), _type(dtype)))
        return Value(name, dtype, shape)

    def node(self, operator: str, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Value:
        """An operator; results have the dtype and shape of the first operand where no rule says otherwise."""
        rule = getattr(self, f"_{operator}", None)
        if rule is not None:
            return rule(*operands, **attributes)
        rank = max(operand.ndim for operand in operands)
        operands = [x if x.ndim == rank else self._reshape(x, [1] * (rank - x.ndim) + list(x.shape)) for x in operands]
        options = list(attributes.values())
        if "nan_mode" in attributes:
            options[-1] = getattr(tosa.NanPropagationMode, attributes["nan_mode"])
        dtype, shape = operands[-1].dtype, np.broadcast_shapes(*(x.shape for x in operands))
        if operator in ("equal", "greater", "greater_equal"):
            dtype = np.dtype(bool)
        elif operator.startswith("reduce_"):
            axis = attributes["axis"] % rank
            options[0], shape = axis, (*shape[:axis], 1, *shape[axis + 1 :])
        return self._added(operator, operands, dtype, shape, *options)

    def _added(
        self, operator: str, operands: Sequence[Value], dtype: Any, shape: Sequence[int], *options: Any
    ) -> Value:
        if 0 in shape:
            raise NotSupported("TOSA: a tensor without elements")
        require(operator, operands[-1 if operator == "select" else 0].dtype, dtype)
        kind = CLASSES.get(operator) or "".join(word.capitalize() for word in operator.split("_"))
        attribute = tosa.TosaSerializerAttribute()
        getattr(attribute, f"{kind}Attribute")(*options)
        name = self.graph.addIntermediate([int(extent) for extent in shape], _type(dtype)).name
        operation = getattr(tosa.Op, operator.upper())
        self.graph.addOperator(operation, [operand.name for operand in operands], [name], attribute)
        return Value(name, np.dtype(dtype), tuple(int(extent) for extent in shape))

    def _constant(self, values: Any, dtype: Any) -> Value:
        array = np.asarray(values).reshape(-1).astype(dtype)
        return Value(self.graph.addConst([array.size], _type(dtype), array).name, array.dtype, array.shape)

    def _shape(self, extents: Sequence[int]) -> Value:
        values = np.asarray(list(extents), np.int64)
        return Value(self.graph.addConst([len(values)], tosa.DType.SHAPE, values).name)

    def _reshape(self, x: Value, shape: Sequence[int]) -> Value:
        return self._added("reshape", [x, self._shape(shape)], x.dtype, shape)

    def _cast(self, x: Value, *, to: Any) -> Value:
        return x if x.dtype == to else self._added("cast", [x], to, x.shape)

    def _mul(self, a: Value, b: Value, *, shift: int) -> Value:
        rank = max(a.ndim, b.ndim)
        a, b = (x if x.ndim == rank else self._reshape(x, [1] * rank) for x in (a, b))
        dtype = np.int32 if a.dtype.kind == "i" else a.dtype
        shape = np.broadcast_shapes(a.shape, b.shape)
        return self._added("mul", [a, b, self._constant(shift, np.int8)], dtype, shape)

    def _negate(self, x: Value, *, input1_zp: int, output_zp: int) -> Value:
        return self._added(
            "negate", [x, *(self._constant(zp, x.dtype) for zp in (input1_zp, output_zp))], x.dtype, x.shape
        )

    def _matmul(self, a: Value, b: Value, *, a_zp: int, b_zp: int) -> Value:
        left, right = (x if x.ndim == 3 else self._reshape(x, [1] * (3 - x.ndim) + list(x.shape)) for x in (a, b))
        require("matmul", a.dtype, a.dtype)
        if left.shape[0] != right.shape[0] or left.ndim != 3:
            raise NotSupported("TOSA: a product whose batches differ, or of rank 4")
        zero_points = [self._constant(zp, a.dtype) for zp in (a_zp, b_zp)]
        dtype = np.dtype(PRODUCTS[name_of(a.dtype)])
        product = self._added("matmul", [left, right, *zero_points], dtype, [*left.shape[:2], right.shape[2]])
        return product if a.ndim == 3 else self._reshape(product, (*a.shape[:-1], b.shape[-1]))

    def _argmax(self, x: Value, *, axis: int, nan_mode: str) -> Value:
        axis %= x.ndim
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        return self._added("argmax", [x], np.int32, shape, axis, getattr(tosa.NanPropagationMode, nan_mode))

    def _clamp(self, x: Value, *, min_val: float, max_val: float) -> Value:
        if x.dtype.kind == "i":
            max_val = np.iinfo(x.dtype).max
        bounds = [list(np.asarray(bound).astype(x.dtype).tobytes()) for bound in (min_val, max_val)]
        return self._added("clamp", [x], x.dtype, x.shape, *bounds, tosa.NanPropagationMode.PROPAGATE)

    def _transpose(self, x: Value, *, perms: Sequence[int]) -> Value:
        return self._added("transpose", [x], x.dtype, [x.shape[axis] for axis in perms], list(perms))

    def _tile(self, x: Value, multiples: Sequence[int]) -> Value:
        shape = [extent * times for extent, times in zip(x.shape, multiples, strict=True)]
        return self._added("tile", [x, self._shape(multiples)], x.dtype, shape)

    def _pad(self, x: Value, padding: Sequence[int], value: Any) -> Value:
        shape = [n + low + high for n, low, high in zip(x.shape, padding[::2], padding[1::2], strict=True)]
        return self._added("pad", [x, self._shape(padding), self._constant(value, x.dtype)], x.dtype, shape)

    def _slice(self, x: Value, start: Sequence[int], size: Sequence[int]) -> Value:
        return self._added("slice", [x, self._shape(start), self._shape(size)], x.dtype, size)

    def _concat(self, *parts: Value, axis: int) -> Value:
        axis %= parts[0].ndim
        whole = sum(part.shape[axis] for part in parts)
        shape = (*parts[0].shape[:axis], whole, *parts[0].shape[axis + 1 :])
        return self._added("concat", parts, parts[0].dtype, shape, axis)


def _type(dtype: Any) -> Any:
    return getattr(tosa.DType, name_of(dtype))
