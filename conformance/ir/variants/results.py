"""Other bits where every bit is free: the payloads and signs of NaN (language specification, 3.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tessera_conformance.strength import varies
from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import ReferenceAdapter

from .levels import COMPUTING

NEGATIVE_NAN = {"fp64": 0xFFF8_0000_0BAD_0001, "fp32": 0xFFC0_0BAD, "tf32": 0xFFC0_0BAD, "fp16": 0xFE0D, "bf16": 0xFFCD}
EXPONENT = {"fp64": (52, 11), "fp32": (23, 8), "tf32": (23, 8), "fp16": (10, 5), "bf16": (7, 8)}


@varies("AMB-LANG-90", "has negative NaN with a payload of its own for results", *COMPUTING, "ir/selection/*")
class OtherNaN(ReferenceAdapter):
    """A NaN may have any bits."""

    def __getattribute__(self, name: str) -> Any:
        answer = super().__getattribute__(name)
        computes = name.startswith(("language_execute", "numerics_evaluate", "collectives_"))
        return with_other_nan(answer) if computes else answer


def with_other_nan(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose results have other NaN."""
    return lambda **arguments: other_nan(method(**arguments))


def other_nan(answer: Any) -> Any:
    """An answer with other NaN in its tensors."""
    if isinstance(answer, dict):
        return {name: other_nan(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [other_nan(value) for value in answer]
    return of_tensor(answer) if isinstance(answer, Tensor) else answer


def of_tensor(tensor: Tensor) -> Tensor:
    """A tensor with other NaN, if it has any."""
    name = {"complex64": "fp32", "complex128": "fp64"}.get(tensor.dtype, tensor.dtype)
    if name not in NEGATIVE_NAN:
        return tensor
    fraction, exponent = EXPONENT[name]
    bits = np.frombuffer(tensor.data, f"<u{(1 + fraction + exponent) // 8}").copy()
    magnitude = bits & bits.dtype.type((1 << (fraction + exponent)) - 1)
    bits[magnitude > ((1 << exponent) - 1) << fraction] = NEGATIVE_NAN[name]
    return Tensor(tensor.dtype, tensor.shape, bits.tobytes())
