"""ONNX Runtime on the CPU: `--impl=ops:conformance.adapters.onnxruntime_adapter:OPERATIONS`.

One thread, and otherwise a session as it is by default, with its rewriting of graphs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from conformance.adapters.expressions import Compiled, codes
from conformance.adapters.onnx_models import table
from onnx import helper

from tessera_conformance.adapter import NotSupported

OPTIONS = onnxruntime.SessionOptions()
OPTIONS.intra_op_num_threads = 1
OPTIONS.log_severity_level = 4
CPU = "CPUExecutionProvider"
REFUSALS = tuple(
    getattr(onnxruntime.capi.onnxruntime_pybind11_state, name) for name in ("NotImplemented", "InvalidGraph", "Fail")
)
"""The error of a session that cannot be made: no kernel of the operator takes the dtype."""


def _compiled(model: onnx.ModelProto) -> Compiled:
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), OPTIONS, providers=[CPU])
    except REFUSALS as refusal:
        raise NotSupported(f"ONNX Runtime: {str(refusal).splitlines()[0]}") from None
    names = [value.name for value in model.graph.input]
    outputs = [value.name for value in model.graph.output]

    def run(arrays: Sequence[Any]) -> Any:
        operands = {name: _handed(array) for name, array in zip(names, arrays, strict=True)}
        return tuple(map(_taken, session.run_with_ort_values(outputs, operands)))

    return run


def _handed(array: Any) -> onnxruntime.OrtValue:
    number = helper.np_dtype_to_tensor_dtype(array.dtype)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(codes(array), number)


def _taken(value: onnxruntime.OrtValue) -> Any:
    """A result, read from where it lies."""
    dtype = helper.tensor_dtype_to_np_dtype(value.element_type())
    shape = value.shape()
    count = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(value.data_ptr(), count) if count else b"", dtype).reshape(shape)


NAME, VERSION = "onnxruntime", onnxruntime.__version__
OPERATIONS = table(_compiled)
