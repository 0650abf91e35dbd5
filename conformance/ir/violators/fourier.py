"""Fourier transforms by other algorithms, factors, products and scales (language specification, 5.2; AMB-LANG-116)."""

from typing import Any

import numpy as np

from tessera_reference.numerics import arithmetic, fourier
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import cast
from tessera_reference.numerics.trees import fold

from .changes import changed

Values = Any
FFT, TWIDDLES, SCALE = fourier.fft, fourier.twiddles, fourier._scale


def transform(name, description, *substitutions):
    """Return a violation of the transforms."""
    return changed("LANG-05.2-04", name, description, *substitutions)


# Factors


def factors(name, description, compute):
    """Return a violation with other factors; `compute` takes the length and the type of their parts."""
    return transform(name, description, ("numerics.fourier.twiddles", compute))


def unrounded(n, component):
    return TWIDDLES(n, component if component.bits == 64 else _DOUBLE)


def by_recurrence(n, component):
    real, imaginary = TWIDDLES(n, component)
    turned = [(component.carrier.type(1), component.carrier.type(0))]
    for _ in range(1, n):
        turned.append(arithmetic.product(turned[-1], (real[1], imaginary[1])))
    return np.array([c for c, _ in turned]), np.array([s for _, s in turned])


_DOUBLE, _SINGLE = DTYPES["fp64"], DTYPES["complex64"]

FACTORS = [factors("factors_by_recurrence", "multiplies each factor out of the one before", by_recurrence)]


# Algorithms


def fused_product(x, y):
    (a, b), (c, d) = x, y
    if np.result_type(a, c) != np.float32:
        return a * c - b * d, a * d + b * c
    wide = [operand.astype(np.float64) for operand in (a, b, c, d)]
    real = wide[0] * wide[2] - (b * d).astype(np.float64)
    imaginary = wide[0] * wide[3] + (b * c).astype(np.float64)
    return real.astype(np.float32), imaginary.astype(np.float32)


def of_one_batch(x, norm="ortho"):
    result = FFT(x, norm)
    rows = result.values.reshape(-1, result.shape[-1])
    batches = int(np.prod(result.shape[:-2]))
    turned = rows.reshape(-1, batches, result.shape[-1]).swapaxes(0, 1)
    return Array(result.dtype, np.ascontiguousarray(turned).reshape(result.shape))


ALGORITHMS = [
    transform("one_batch", "puts the rows of a batch of batches in another order",
        ("numerics.fourier.fft", of_one_batch)),
    transform("folded_transform", "adds the products from left to right", ("numerics.fourier.pairwise", fold)),
    transform("fused_product", "does not round one of two products", ("numerics.arithmetic.product", fused_product)),
    transform("no_conjugate", "answers the inverse with the transform", ("numerics.fourier.ifft", FFT)),
]  # fmt: skip


# Floats


def of_float(compute):
    """Return a transform that computes differently for floats."""

    def transformed(x, norm="ortho"):
        return FFT(x, norm) if x.dtype.kind == "complex" else compute(x, norm)

    return transformed


def narrowed(x, norm):
    wide = FFT(x, norm)
    parts = (cast(Array(wide.dtype.component, part), x.dtype) for part in arithmetic.parts(wide.values))
    real, imaginary = (cast(part, wide.dtype.component).values for part in parts)
    return Array(wide.dtype, arithmetic.join(real, imaginary))


def half(x, norm):
    found = FFT(x, norm)
    kept = np.array(found.values)
    kept[..., x.shape[-1] // 2 + 1 :] = 0
    return Array(found.dtype, kept)


FLOATS = [
    transform("complex64_always", "makes complex64 of fp64", ("numerics.fourier.result_dtype", lambda dtype: _SINGLE)),
    transform("narrow_results", "rounds results to the operand's dtype", ("numerics.fourier.fft", of_float(narrowed))),
]


# Scale


def of_rounded_root(n, norm, component):
    if norm != "ortho":
        return SCALE(n, norm, component)
    one = component.carrier.type(1)
    return one / np.sqrt(component.carrier.type(n))


def divided(x, norm="ortho"):
    plain = FFT(x, "backward").values
    if norm == "backward":
        return Array(x.dtype, plain)
    size = x.values.real.dtype.type(x.shape[-1])
    divisor = np.sqrt(size) if norm == "ortho" else size
    with np.errstate(all="ignore"):
        return Array(x.dtype, arithmetic.join(plain.real / divisor, plain.imag / divisor))


def unscaled(x, norm="ortho"):
    return FFT(x, "backward" if norm == "ortho" else norm)


def with_exchanged_norms(x, norm="ortho"):
    exchanged = {"forward": "backward", "backward": "forward"}
    return FFT(x, exchanged.get(norm, norm))


SCALES = [
    transform("rounded_root", "rounds sqrt(n) before inverting it", ("numerics.fourier._scale", of_rounded_root)),
    transform("divided", "divides by sqrt(n)", ("numerics.fourier.fft", divided)),
    transform("exchanged_norms", "takes forward for backward", ("numerics.fourier.fft", with_exchanged_norms)),
]
