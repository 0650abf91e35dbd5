"""StableHLO's interpreter, as jaxlib has it: `--impl=ops:conformance.adapters.stablehlo_adapter:OPERATIONS`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jaxlib
import numpy as np
from conformance.adapters.expressions import Call, Compiled, Form, built, table
from conformance.adapters.stablehlo_modules import CONTEXT, Module, attribute_of
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from tessera_conformance.adapter import NotSupported


def _compiled(call: Call, forms: Sequence[Form], attributes: Mapping[str, Any]) -> Compiled:
    with CONTEXT, ir.Location.unknown():
        module = Module(forms)
        with ir.InsertionPoint(module.block):
            try:
                results = built(module, call, forms, attributes)
                module.whole(results)
            except (ir.MLIRError, ValueError) as refusal:
                raise NotSupported(f"StableHLO: {' '.join(str(refusal).split())[:300]}") from None

    def run(arrays: Sequence[Any]) -> Any:
        with CONTEXT, ir.Location.unknown():
            answers = stablehlo.eval_module(module.module, [attribute_of(array) for array in arrays])
        return tuple(np.array(x).view(result.dtype) for x, result in zip(answers, results, strict=True))

    return run


NAME, VERSION = "stablehlo", f"{stablehlo.get_current_version()} of jaxlib {jaxlib.__version__}"
OPERATIONS = table("stablehlo", _compiled)
