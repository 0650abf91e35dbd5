"""The reference, but products in fp32 come out one and a half times too large, as no order of summation explains."""

from __future__ import annotations

from typing import Any

import numpy as np

from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import ReferenceAdapter


class CarelessProducts(ReferenceAdapter):
    def language_execute(self, **params: Any) -> dict[str, Any]:
        result = super().language_execute(**params)
        if "matmul" in params["source"] or "@" in params["source"]:
            result["outputs"] = [_enlarged(output) for output in result["outputs"]]
        return result


def _enlarged(tensor: Tensor) -> Tensor:
    if tensor.dtype != "fp32":
        return tensor
    values = np.frombuffer(tensor.data, "<f4") * np.float32(1.5)
    return Tensor(tensor.dtype, tensor.shape, values.astype("<f4").tobytes())
