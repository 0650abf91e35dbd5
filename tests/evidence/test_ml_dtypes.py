"""Narrow formats against ml_dtypes: every code of 8 and 16 bits, and casts from fp32.

Only casts from fp32 are compared: ml_dtypes takes fp64 to bf16 through fp32, which rounds twice.
"""

from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.numerics.array import Array, decode, encode, nan_code
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.rounding import cast

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is missing: pip install 'tessera-conformance[test]'")
FOREIGN = {
    "fp8_e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}


def every_code(name: str) -> np.ndarray:
    bits = dtype(name).bits
    return np.arange(1 << bits, dtype=f"<u{bits // 8}")


@pytest.mark.parametrize("name", FOREIGN)
def test_every_code_decodes_alike_sign_of_zero_and_of_nan_included(name):
    expected = every_code(name).view(FOREIGN[name]).astype(np.float32)
    actual = decode(every_code(name), dtype(name))
    assert np.isnan(actual).tolist() == np.isnan(expected).tolist()
    assert np.signbit(actual).tolist() == np.signbit(expected).tolist()
    number = ~np.isnan(expected)
    assert actual[number].tobytes() == expected[number].tobytes()


@pytest.mark.parametrize("name", FOREIGN)
def test_every_value_encodes_to_the_code_it_came_from_and_every_nan_to_one(name):
    codes = every_code(name)
    values = codes.view(FOREIGN[name]).astype(np.float32)
    expected = np.where(np.isnan(values), nan_code(dtype(name)), codes)
    assert encode(values, dtype(name)).tolist() == expected.tolist()
    assert np.isnan(np.array(nan_code(dtype(name)), codes.dtype).view(FOREIGN[name]).astype(np.float32))


@pytest.mark.parametrize("name", FOREIGN)
def test_casts_from_fp32_agree_at_every_midpoint_and_beside_it(name):
    values = np.unique(decode(every_code(name), dtype(name)))
    values = values[np.isfinite(values)].astype(np.float64)
    middle = ((values[:-1] + values[1:]) / 2).astype(np.float32)
    top = np.float32(values[-1]), np.float32(values[-1]) + np.float32((values[-1] - values[-2]) / 2)
    given = np.concatenate([middle, np.array([*top, -top[0], -top[1], np.inf, -np.inf, 0.0, -0.0], np.float32)])
    with np.errstate(all="ignore"):
        given = np.concatenate(
            [given, np.nextafter(given, np.float32(np.inf)), np.nextafter(given, np.float32(-np.inf))]
        )
        expected = given.astype(FOREIGN[name]).astype(np.float32)
    actual = cast(Array(dtype("fp32"), given), dtype(name), "nonfinite").values
    same = (actual == expected) & (np.signbit(actual) == np.signbit(expected)) | np.isnan(actual) & np.isnan(expected)
    assert given[~same].tolist() == []
