"""ONNX's reference evaluator: `--impl=ops:conformance.adapters.onnx_reference_adapter:OPERATIONS`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from conformance.adapters.expressions import Compiled
from conformance.adapters.onnx_models import table
from onnx.reference import ReferenceEvaluator


def _compiled(model: onnx.ModelProto) -> Compiled:
    evaluator = ReferenceEvaluator(model)
    names = [value.name for value in model.graph.input]

    def run(arrays: Sequence[Any]) -> Any:
        return tuple(evaluator.run(None, dict(zip(names, arrays, strict=True))))

    return run


NAME, VERSION = "onnx-reference", onnx.__version__
OPERATIONS = table(_compiled)
