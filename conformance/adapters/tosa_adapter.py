"""TOSA's reference model, of the package tosa-tools: `--impl=ops:conformance.adapters.tosa_adapter:OPERATIONS`.

What the model refuses, and what TOSA calls unpredictable, is unsupported.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tosa_reference_model
from conformance.adapters.expressions import Call, Compiled, Form, built, codes, table
from conformance.adapters.tosa_graphs import Graph

from tessera_conformance.adapter import NotSupported


def _compiled(call: Call, forms: Sequence[Form], attributes: Mapping[str, Any]) -> Compiled:
    graph = Graph()
    results = built(graph, call, forms, attributes)
    for result in results:
        graph.graph.addOutputTensor(graph.graph.currRegion.basicBlocks[0].tensors[result.name])
    binary = graph.graph.serialize()

    def run(arrays: Sequence[Any]) -> Any:
        outputs, status = tosa_reference_model.run(binary, [codes(x) for x in arrays])
        if status != tosa_reference_model.GraphStatus.TOSA_VALID:
            raise NotSupported(f"TOSA: {status}")
        parts = zip(outputs, results, strict=True)
        return tuple(np.frombuffer(np.asarray(x).tobytes(), y.dtype).reshape(y.shape) for x, y in parts)

    return run


NAME, VERSION = "tosa", importlib.metadata.version("tosa-tools")
OPERATIONS = table("tosa", _compiled)
