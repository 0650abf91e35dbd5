"""Models of one operation for engines of ONNX, from the calls of the table of names.

What the standard's schema of an operator does not allow, a dtype above all, is unsupported before any engine is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from conformance.adapters import expressions
from conformance.adapters.expressions import Call, Compiled, Form, Value, built
from onnx import TensorProto, helper

from tessera_conformance.adapter import NotSupported

OPSET = 24
"""The newest version that both engines have whole."""
IR_VERSION = 11


class _Model:
    """A model that is being built."""

    def __init__(self) -> None:
        self.inputs: list[onnx.ValueInfoProto] = []
        self.constants: list[TensorProto] = []
        self.nodes: list[onnx.NodeProto] = []

    def operand(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Value:
        """The next input of the graph."""
        name = f"in{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape))
        return Value(name, dtype, shape)

    def node(self, operator: str, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """A node; of its operands a list is a constant of int64, and a number one of the first operand's dtype."""
        if not operands:
            raise NotSupported(f"ONNX: {operator} of nothing is the adapter's own constant")
        schema = _schema(operator)
        names = [self._name(operand, operands[0]) for operand in operands]
        least = schema.min_output
        results = [f"v{len(self.nodes)}_{place}" for place in range(least if least == len(schema.outputs) else 1)]
        if operator == "BatchNormalization" and attributes["training_mode"]:
            results = [f"v{len(self.nodes)}_{place}" for place in range(3)]
        made = {name: _attribute(operands[0], name, value) for name, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(operator, names, results, **made))
        values = tuple(map(Value, results))
        return values if len(values) > 1 else values[0]

    def _name(self, operand: Any, first: Any) -> str:
        if isinstance(operand, Value):
            return operand.name
        dtype = np.dtype(np.int64) if isinstance(operand, (list, tuple, range)) else first.dtype
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(operand).astype(dtype), name))
        return name

    def whole(self, results: Sequence[Value]) -> onnx.ModelProto:
        """The model that returns these; types are inferred."""
        outputs = [onnx.ValueInfoProto(name=result.name) for result in results]
        graph = helper.make_graph(self.nodes, "operation", self.inputs, outputs, self.constants)
        model = helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])
        try:
            inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        except onnx.shape_inference.InferenceError as refusal:
            raise NotSupported(f"ONNX: {str(refusal).splitlines()[-1]}") from None
        _require_types(inferred.graph)
        return inferred


def _schema(operator: str) -> Any:
    try:
        return onnx.defs.get_schema(operator, OPSET)
    except onnx.defs.SchemaError:
        raise NotSupported(f"ONNX has no operator {operator}") from None


def _attribute(operand: Value, name: str, value: Any) -> Any:
    """The value of an attribute; dtypes have numbers in ONNX, and numbers are fp32.

    Raises:
        NotSupported: the operand is fp64, and the number has no such value.
    """
    if isinstance(value, float) and operand.dtype == np.float64 and value != float(np.float32(value)):
        raise NotSupported(f"ONNX: the attribute {name} is fp32, which {value} is not")
    if isinstance(value, np.dtype):
        return helper.np_dtype_to_tensor_dtype(value)
    if isinstance(value, str) and value in TensorProto.DataType.keys():  # noqa: SIM118  # no mapping
        return TensorProto.DataType.Value(value)
    return int(value) if isinstance(value, bool) else value


def _require_types(graph: onnx.GraphProto) -> None:
    """Every operand's dtype is one that the schema of its operator allows.

    Raises:
        NotSupported: one is not.
    """
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.value_info)}
    types |= {constant.name: constant.data_type for constant in graph.initializer}
    for node in graph.node:
        schema = _schema(node.op_type)
        allowed = {
            type_constraint.type_param_str: type_constraint.allowed_type_strs
            for type_constraint in schema.type_constraints
        }
        for place, name in enumerate(node.input):
            declared = schema.inputs[min(place, len(schema.inputs) - 1)].type_str
            dtype = f"tensor({TensorProto.DataType.Name(types[name]).lower()})"
            if dtype not in allowed.get(declared, {declared}):
                raise NotSupported(f"ONNX: {node.op_type} of {dtype}")


def table(compile_: Callable[[onnx.ModelProto], Compiled]) -> dict[str, Any]:
    """Every operation that ONNX has a call for, each as a model of its own that an engine compiles."""
    return expressions.table("onnx", lambda *arguments: compile_(_model(*arguments)))


def _model(call: Call, forms: Sequence[Form], attributes: Mapping[str, Any]) -> onnx.ModelProto:
    model = _Model()
    return model.whole(built(model, call, forms, attributes))
