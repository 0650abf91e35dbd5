"""Graphs of ONNX in fp32, executed by the package's own evaluator, the specification in numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator


def evaluator(
    nodes: Sequence[tuple[str, Sequence[str], str]], inputs: Mapping[str, Sequence[int]], result: str
) -> Callable[..., Any]:
    """Return the results by name of the inputs; a node is an operation, what it reads and what it gives."""
    made = [helper.make_node(operation, list(read), [given]) for operation, read, given in nodes]
    shapes = [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)) for name, shape in inputs.items()]
    output = helper.make_tensor_value_info(result, TensorProto.FLOAT, None)
    session = ReferenceEvaluator(helper.make_model(helper.make_graph(made, "benchmark", shapes, [output])))
    return lambda **values: session.run(None, values)
