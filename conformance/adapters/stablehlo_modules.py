"""Modules of StableHLO of one operation, from the calls of the table of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from conformance.adapters.expressions import Form, Value
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import func, stablehlo

from tessera_conformance.adapter import NotSupported

REGISTRY = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(REGISTRY)
CONTEXT = ir.Context()
CONTEXT.append_dialect_registry(REGISTRY)
stablehlo.register_dialect(CONTEXT)
stablehlo.register_interpreter_dialect(CONTEXT)
CONTEXT.load_all_available_dialects()

TYPES = {
    **{np.dtype(f"float{bits}"): f"f{bits}" for bits in (16, 32, 64)},
    **{np.dtype(f"int{bits}"): f"i{bits}" for bits in (8, 16, 32, 64)},
    np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(ml_dtypes.float8_e4m3fn): "f8E4M3FN",
    np.dtype(ml_dtypes.float8_e5m2): "f8E5M2",
    np.dtype(bool): "i1",
}
NAMES = {name: dtype for dtype, name in TYPES.items()}
AS_THEY_ARE = ("clamp", "select", "pad")
"""Operators that take scalars beside tensors."""


class Module:
    """A module that is being built; the name of a value is its MLIR value. StableHLO broadcasts nothing by itself."""

    def __init__(self, forms: Sequence[Form]) -> None:
        self.module = ir.Module.create()
        with ir.InsertionPoint(self.module.body):
            self.function = func.FuncOp("main", ([_type(*form) for form in forms], []))
        self.block = self.function.add_entry_block()
        self.taken = 0

    def operand(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Value:
        """The next argument of the function."""
        self.taken += 1
        return Value(self.block.arguments[self.taken - 1], dtype, shape)

    def node(self, operator: str, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Value:
        """An operation; numbers among its operands are constants of the first one's dtype."""
        values = [self._value(operand, operands[0]) for operand in operands]
        rule = getattr(self, f"_{operator}", None)
        if rule is not None:
            return _named(rule(*values, **attributes))
        shape = max((value.shape for value in values), key=len)
        if operator not in AS_THEY_ARE:
            values = [value if value.shape == shape else self._spread(value, shape) for value in values]
        if operator == "compare":
            order = ir.Attribute.parse(f"#stablehlo<comparison_direction {attributes['comparison_direction']}>")
            attributes = {"comparison_direction": order}
        return _named(getattr(stablehlo, operator)(*(value.name for value in values), **attributes))

    def _value(self, operand: Any, first: Value) -> Value:
        if isinstance(operand, Value):
            return operand
        return _named(stablehlo.constant(attribute_of(np.asarray(_number(operand, first.dtype)).astype(first.dtype))))

    def _spread(self, value: Value, shape: Sequence[int]) -> Value:
        dimensions = list(range(len(shape) - value.ndim, len(shape)))
        return _named(stablehlo.broadcast_in_dim(_type(value.dtype, shape), value.name, dimensions))

    def _convert(self, x: Value, *, to: np.dtype[Any]) -> Any:
        return stablehlo.convert(_type(to, x.shape), x.name)

    def _reshape(self, x: Value, *, shape: Sequence[int]) -> Any:
        return stablehlo.reshape(_type(x.dtype, shape), x.name)

    def _broadcast_in_dim(self, x: Value, *, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Any:
        return stablehlo.broadcast_in_dim(_type(x.dtype, shape), x.name, list(broadcast_dimensions))

    def _iota(self, *, shape: Sequence[int], to: np.dtype[Any], iota_dimension: int) -> Any:
        return stablehlo.iota(_type(to, shape), iota_dimension)

    def _concatenate(self, *parts: Value, dimension: int) -> Any:
        return stablehlo.concatenate([part.name for part in parts], dimension)

    def _dot_general(self, a: Value, b: Value, *, batching: Sequence[int], contracting: Sequence[int], to: Any) -> Any:
        left, right = contracting
        pairs = f"lhs_batching_dimensions = {list(batching)}, rhs_batching_dimensions = {list(batching)}"
        pairs += f", lhs_contracting_dimensions = [{left}], rhs_contracting_dimensions = [{right}]"
        shape = (*a.shape[:-1], b.shape[-1])
        return stablehlo.dot_general(_type(to, shape), a.name, b.name, ir.Attribute.parse(f"#stablehlo.dot<{pairs}>"))

    def _reduce(self, x: Value, start: Value, *, dimensions: Sequence[int], body: str) -> Any:
        shape = [extent for axis, extent in enumerate(x.shape) if axis not in dimensions]
        made = stablehlo.ReduceOp([_type(x.dtype, shape)], [x.name], [start.name], list(dimensions))
        scalar = _type(x.dtype, ())
        block = made.regions[0].blocks.append(scalar, scalar)
        with ir.InsertionPoint(block):
            stablehlo.return_([getattr(stablehlo, body)(*block.arguments)])
        return made.result

    def whole(self, results: Sequence[Value]) -> None:
        """End the function: floats leave it as their codes."""
        codes = [
            result.name
            if result.dtype.kind in "bi"
            else stablehlo.bitcast_convert(_type(np.dtype(f"i{result.dtype.itemsize}"), result.shape), result.name)
            for result in results
        ]
        func.return_(codes)
        types = ir.FunctionType.get([argument.type for argument in self.block.arguments], [code.type for code in codes])
        self.function.attributes["function_type"] = ir.TypeAttr.get(types)
        self.module.operation.verify()


def _type(dtype: Any, shape: Sequence[int]) -> ir.Type:
    if dtype not in TYPES:
        raise NotSupported(f"{dtype} in StableHLO")
    return ir.RankedTensorType.get(list(shape), ir.Type.parse(TYPES[dtype]))


def _named(value: Any) -> Value:
    return Value(value, NAMES[str(value.type.element_type)], tuple(value.type.shape))


def _number(number: Any, dtype: Any) -> Any:
    """The number, or the least or greatest of a dtype without infinities."""
    limits = np.iinfo if dtype.kind == "i" else ml_dtypes.finfo
    if abs(number) != np.inf or (dtype.kind != "i" and np.isinf(np.asarray(np.inf).astype(dtype))):
        return number
    return limits(dtype).max if number > 0 else limits(dtype).min


def attribute_of(array: Any) -> ir.Attribute:
    """An array as an attribute, an operand of the interpreter."""
    type_ = _type(array.dtype, array.shape)
    if array.dtype.kind in "bi":
        return ir.DenseElementsAttr.get(np.array(array, order="C"), type=type_.element_type, shape=array.shape)
    codes = np.array(array, order="C").view(f"u{array.itemsize}")
    return ir.DenseElementsAttr.get(codes, type=type_.element_type, shape=array.shape)
