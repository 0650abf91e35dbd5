"""The oracle's exact sum, rounded once, in million elements a second, beside `math.fsum`, which is limited to fp64."""

from __future__ import annotations

import math

import numpy as np
from measurement import Measurement, Outcome, in_turns

from tessera_conformance.oracle.exact import ZERO, float_format
from tessera_conformance.oracle.exact_sum import exact_sum
from tessera_conformance.tensors import Tensor

ELEMENTS = 1 << 20
CARRIERS = {"fp32": np.float32, "fp64": np.float64}
SPANS = {"around one": 0, "over 80 binades": 40}


def measure() -> list[Outcome]:
    """Each type, with numbers of few and of many magnitudes."""
    return [_rate(dtype, span) for dtype in CARRIERS for span in SPANS]


def _rate(dtype: str, span: str) -> Measurement:
    random = np.random.Generator(np.random.Philox(3))
    binades = random.integers(-SPANS[span], SPANS[span], ELEMENTS, endpoint=True)
    values = np.ldexp(random.standard_normal(ELEMENTS), binades).astype(CARRIERS[dtype])
    tensor = Tensor(dtype, values.shape, values.tobytes())
    encode = float_format(dtype).encode
    ours, theirs = in_turns(
        lambda: [encode(total or ZERO) for total in exact_sum(tensor)], lambda: math.fsum(values), 5
    )
    rate = ELEMENTS / ours / 1e6
    return Measurement(f"exact sum {dtype}, {span}", ours, "math.fsum", theirs, rate, "Melem/s", 5, at_least=True)
