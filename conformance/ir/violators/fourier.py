"""Fourier transforms by other algorithms, factors, products and scales (language specification, 5.2; AMB-LANG-116)."""

import numpy as np

from tessera_reference.numerics import arithmetic, fourier
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import cast
from tessera_reference.numerics.trees import fold

from .changes import around, changed


def transform(name, description, place, substitute):
    """Return a violation of the transforms."""
    return changed("LANG-05.2-04", name, description, (f"numerics.{place}", substitute))


def by_recurrence(usual, n, component):
    real, imaginary = usual(n, component)
    turned = [(component.carrier.type(1), component.carrier.type(0))]
    for _ in range(1, n):
        turned.append(arithmetic.product(turned[-1], (real[1], imaginary[1])))
    return np.array([c for c, _ in turned]), np.array([s for _, s in turned])


def fused_product(x, y):
    (a, b), (c, d) = x, y
    if np.result_type(a, c) != np.float32:
        return a * c - b * d, a * d + b * c
    wide = [operand.astype(np.float64) for operand in (a, b, c, d)]
    real = wide[0] * wide[2] - (b * d).astype(np.float64)
    imaginary = wide[0] * wide[3] + (b * c).astype(np.float64)
    return real.astype(np.float32), imaginary.astype(np.float32)


def of_one_batch(usual, x, norm="ortho"):
    result = usual(x, norm)
    rows = result.values.reshape(-1, result.shape[-1])
    batches = int(np.prod(result.shape[:-2]))
    turned = rows.reshape(-1, batches, result.shape[-1]).swapaxes(0, 1)
    return Array(result.dtype, np.ascontiguousarray(turned).reshape(result.shape))


def narrowed(usual, x, norm="ortho"):
    wide = usual(x, norm)
    if x.dtype.kind == "complex":
        return wide
    parts = (cast(Array(wide.dtype.component, part), x.dtype) for part in arithmetic.parts(wide.values))
    real, imaginary = (cast(part, wide.dtype.component).values for part in parts)
    return Array(wide.dtype, arithmetic.join(real, imaginary))


def of_rounded_root(usual, n, norm, component):
    if norm != "ortho":
        return usual(n, norm, component)
    return component.carrier.type(1) / np.sqrt(component.carrier.type(n))


EXCHANGED = {"forward": "backward", "backward": "forward"}
VIOLATIONS = [
    transform("factors_by_recurrence", "multiplies each factor out of the one before", "fourier.twiddles",
        around(by_recurrence)),
    transform("one_batch", "puts the rows of a batch of batches in another order", "fourier.fft", around(of_one_batch)),
    transform("folded_transform", "adds the products from left to right", "fourier.pairwise", fold),
    transform("fused_product", "does not round one of two products", "arithmetic.product", fused_product),
    transform("no_conjugate", "answers the inverse with the transform", "fourier.ifft", fourier.fft),
    transform("complex64_always", "makes complex64 of fp64", "fourier.result_dtype", lambda dtype: DTYPES["complex64"]),
    transform("narrow_results", "rounds results to the operand's dtype", "fourier.fft", around(narrowed)),
    transform("rounded_root", "rounds sqrt(n) before inverting it", "fourier._scale", around(of_rounded_root)),
    transform("exchanged_norms", "takes forward for backward", "fourier.fft",
        around(lambda usual, x, norm="ortho": usual(x, EXCHANGED.get(norm, norm)))),
]  # fmt: skip
