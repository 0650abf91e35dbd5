"""TOSA's reference model (of the package tosa-tools) as a peer: matrix products and softmax, run in this process.

Importing this module raises `ImportError` where the package is missing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import tosa_reference_model
import tosa_serializer as tosa

INSTALL = "pip install tosa-tools"

_ZEROS = {"fp32": np.zeros(1, np.float32), "bf16": np.zeros(1, ml_dtypes.bfloat16)}


def matmul(dtype: str, m: int, k: int, n: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """MATMUL, (m, k) x (k, n) -> (m, n), of "fp32" or of "bf16", given as codes in uint16; float32 comes back."""
    element = getattr(tosa.DType, dtype.upper())
    graph = tosa.TosaSerializer(tempfile.gettempdir())
    for name, shape in (("a", [1, m, k]), ("b", [1, k, n])):
        graph.addInputTensor(tosa.TosaSerializerTensor(name, shape, element))
    zero_points = [graph.addConst([1], element, _ZEROS[dtype]).name for _ in range(2)]
    result = graph.addOutput([1, m, n], tosa.DType.FP32).name
    graph.addOperator(tosa.Op.MATMUL, ["a", "b", *zero_points], [result], _attribute("MatMul"))
    run = _runner(graph, (m, n))
    return lambda a, b: run(a[None], b[None])


def softmax(rows: int, columns: int) -> Callable[[np.ndarray], np.ndarray]:
    """Softmax of fp32 over the last axis, of the operators that TOSA has for it."""
    graph = tosa.TosaSerializer(tempfile.gettempdir())
    whole, column = [rows, columns], [rows, 1]
    graph.addInputTensor(tosa.TosaSerializerTensor("x", whole, tosa.DType.FP32))

    def operator(op: str, attribute: str, inputs: list[str], shape: list[int], *options: Any) -> str:
        add = graph.addOutput if op == "MUL" else graph.addIntermediate
        name = add(shape, tosa.DType.FP32).name
        graph.addOperator(getattr(tosa.Op, op), inputs, [name], _attribute(attribute, *options))
        return str(name)

    largest = operator("REDUCE_MAX", "ReduceMax", ["x"], column, 1, tosa.NanPropagationMode.PROPAGATE)
    shifted = operator("SUB", "Sub", ["x", largest], whole)
    exponentials = operator("EXP", "Exp", [shifted], whole)
    total = operator("REDUCE_SUM", "ReduceSum", [exponentials], column, 1)
    scale = operator("RECIPROCAL", "Reciprocal", [total], column)
    no_shift = graph.addConst([1], tosa.DType.INT8, np.zeros(1, np.int8)).name
    operator("MUL", "Mul", [exponentials, scale, no_shift], whole)
    return _runner(graph, (rows, columns))


def _attribute(kind: str, *options: Any) -> Any:
    attribute = tosa.TosaSerializerAttribute()
    getattr(attribute, f"{kind}Attribute")(*options)
    return attribute


def _runner(graph: Any, shape: tuple[int, int]) -> Callable[..., np.ndarray]:
    binary = graph.serialize()

    def run(*inputs: np.ndarray) -> np.ndarray:
        outputs, status = tosa_reference_model.run(binary, [np.ascontiguousarray(operand) for operand in inputs])
        if status != tosa_reference_model.GraphStatus.TOSA_VALID:
            raise RuntimeError(f"TOSA's reference model refused the graph: {status}")
        return np.frombuffer(np.asarray(outputs[0]).tobytes(), np.float32).reshape(shape)

    return run
