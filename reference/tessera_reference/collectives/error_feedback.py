"""Error feedback: what compression loses of a gradient is added to the next one (COLL-02.5-04, COLL-06-07).

At each step w = g + r is compressed, what is restored of it is sent, and r = w - sent is kept; r begins at zero
(AMB-COLL-25, AMB-COLL-39). The sum of what was sent and the last residual is the sum of the gradients: exactly, where
neither g + r nor w - sent has to be rounded to fp32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..abi.status import invalid
from ..numerics.arithmetic import add, subtract
from ..numerics.array import Array
from .compression import Compression, compress, require_finite, require_fp32

__all__ = ["Step", "feed_back"]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What was sent of a gradient, as a receiver restores it, and what was kept."""

    sent: Array
    residual: Array


def feed_back(function: str, gradients: Sequence[Array], compression: Compression) -> list[Step]:
    """Compress one gradient a step, fp32 tensors of one shape, each with the residual of the step before.

    Raises `Failure` with TESS_ERR_UNSUPPORTED for other dtypes, with TESS_ERR_INVALID_VALUE for no gradient and for
    shapes that differ; `NonFinite` for a sum, or what is sent of it, that is not finite.
    """
    if not gradients:
        raise invalid(function, "no gradients", "one of each step")
    for number, gradient in enumerate(gradients):
        require_fp32(f"{function}: gradients[{number}]", gradient)
        if gradient.shape != gradients[0].shape:
            given = f"gradients[{number}] has the shape {list(gradient.shape)}"
            raise invalid(function, given, f"{list(gradients[0].shape)}, as gradients[0] has")
    residual = Array(gradients[0].dtype, np.zeros_like(gradients[0].values))
    steps: list[Step] = []
    for number, gradient in enumerate(gradients):
        whole = add(gradient, residual)
        require_finite(f"{function}: step {number}, gradient and residual", whole)
        sent = compress(function, whole, compression).restored
        require_finite(f"{function}: step {number}, what is sent as {compression.wire}", sent)
        residual = subtract(whole, sent)
        steps.append(Step(sent, residual))
    return steps
