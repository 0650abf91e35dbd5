"""Fourier transforms by other algorithms, factors, products and scales (language specification, 5.2; AMB-LANG-116)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tessera_conformance.strength import Violation
from tessera_reference.numerics import arithmetic, fourier
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, DType
from tessera_reference.numerics.fourier import Norm
from tessera_reference.numerics.rounding import cast
from tessera_reference.numerics.trees import fold

from .changes import changed

Values: TypeAlias = Any
Parts: TypeAlias = tuple[Values, Values]
FFT, TWIDDLES, SCALE = fourier.fft, fourier.twiddles, fourier._scale


def transform(name: str, description: str, *substitutions: tuple[Any, str, Any]) -> Violation:
    """Return a violation of the transforms."""
    return changed("LANG-05.2-04", name, description, *substitutions)


# Factors


def factors(name: str, description: str, compute: Callable[[int, DType], Parts]) -> Violation:
    """Return a violation with other factors; `compute` takes the length and the type of their parts."""
    return transform(name, description, (fourier, "twiddles", compute))


def of_rounded_angles(n: int, component: DType) -> Parts:
    angle = np.arange(n).astype(component.carrier) * component.carrier.type(-2 * np.pi) / component.carrier.type(n)
    return np.cos(angle), np.sin(angle)


def unrounded(n: int, component: DType) -> Parts:
    return TWIDDLES(n, component if component.bits == 64 else _DOUBLE)


def by_recurrence(n: int, component: DType) -> Parts:
    real, imaginary = TWIDDLES(n, component)
    turned = [(component.carrier.type(1), component.carrier.type(0))]
    for _ in range(1, n):
        turned.append(arithmetic.product(turned[-1], (real[1], imaginary[1])))
    return np.array([c for c, _ in turned]), np.array([s for _, s in turned])


_DOUBLE, _SINGLE = DTYPES["fp64"], DTYPES["complex64"]

FACTORS = [
    factors("rounded_angles", "takes sines and cosines of rounded angles", of_rounded_angles),
    factors("unrounded_factors", "does not round the factors of complex64", unrounded),
    factors("factors_by_recurrence", "multiplies each factor out of the one before", by_recurrence),
]


# Algorithms


def radix_2(x: Values, sign: int) -> Values:
    """Cooley and Tukey's recursion for even lengths, the definition for odd ones, in the type of x."""
    n = x.shape[-1]
    carrier = x.real.dtype
    if n == 1:
        return x
    angles = sign * 2 * np.pi * np.arange(n) / n
    turned = (np.cos(angles) + 1j * np.sin(angles)).astype(np.result_type(carrier, np.complex64))
    if n % 2:
        powers = turned[np.outer(np.arange(n), np.arange(n)) % n]
        return fold(x[..., :, None] * powers, -2)
    even, odd = radix_2(x[..., 0::2], sign), radix_2(x[..., 1::2], sign)
    odd = odd * turned[: n // 2]
    return np.concatenate([even + odd, even - odd], -1)


def by_radix_2(name: str) -> Callable[..., Array]:
    """Return a fast transform, scaled as its definition is."""

    def compute(x: Array, norm: Norm = "ortho") -> Array:
        with np.errstate(all="ignore"):
            result = radix_2(x.values, -1 if name == "fft" else 1)
            if norm != {"fft": "backward", "ifft": "forward"}[name]:
                result = result * result.real.dtype.type(SCALE(x.shape[-1], norm, x.dtype.component))
        return Array(x.dtype, result.astype(x.dtype.carrier))

    return compute


def fused_product(x: Parts, y: Parts) -> Parts:
    (a, b), (c, d) = x, y
    if np.result_type(a, c) != np.float32:
        return a * c - b * d, a * d + b * c
    wide = [operand.astype(np.float64) for operand in (a, b, c, d)]
    real = wide[0] * wide[2] - (b * d).astype(np.float64)
    imaginary = wide[0] * wide[3] + (b * c).astype(np.float64)
    return real.astype(np.float32), imaginary.astype(np.float32)


def product_of_three(x: Parts, y: Parts) -> Parts:
    (a, b), (c, d) = x, y
    common = c * (a + b)
    return common - b * (c + d), common + a * (d - c)


def along_first_axis(x: Array, norm: Norm = "ortho") -> Array:
    return Array(x.dtype, np.moveaxis(FFT(Array(x.dtype, np.moveaxis(x.values, 0, -1)), norm).values, -1, 0))


def of_one_batch(x: Array, norm: Norm = "ortho") -> Array:
    result = FFT(x, norm)
    rows = result.values.reshape(-1, result.shape[-1])
    batches = int(np.prod(result.shape[:-2]))
    turned = rows.reshape(-1, batches, result.shape[-1]).swapaxes(0, 1)
    return Array(result.dtype, np.ascontiguousarray(turned).reshape(result.shape))


ALGORITHMS = [
    transform("one_batch", "puts the rows of a batch of batches in another order", (fourier, "fft", of_one_batch)),
    transform(
        "radix_2", "halves even lengths", (fourier, "fft", by_radix_2("fft")), (fourier, "ifft", by_radix_2("ifft"))
    ),
    transform("folded_transform", "adds the products from left to right", (fourier, "pairwise", fold)),
    transform("fused_product", "does not round one of two products", (arithmetic, "product", fused_product)),
    transform("product_of_three", "multiplies three times instead of four", (arithmetic, "product", product_of_three)),
    transform("first_axis", "transforms along the first axis", (fourier, "fft", along_first_axis)),
    transform("no_conjugate", "answers the inverse with the transform", (fourier, "ifft", FFT)),
]


# Floats


def of_float(compute: Callable[[Array, Norm], Array]) -> Callable[..., Array]:
    """Return a transform that computes differently for floats."""

    def transformed(x: Array, norm: Norm = "ortho") -> Array:
        return FFT(x, norm) if x.dtype.kind == "complex" else compute(x, norm)

    return transformed


def narrowed(x: Array, norm: Norm) -> Array:
    wide = FFT(x, norm)
    parts = (cast(Array(wide.dtype.component, part), x.dtype) for part in arithmetic.parts(wide.values))
    real, imaginary = (cast(part, wide.dtype.component).values for part in parts)
    return Array(wide.dtype, arithmetic.join(real, imaginary))


def with_real_parts_twice(x: Array, norm: Norm) -> Array:
    values = cast(x, fourier.result_dtype(x.dtype)).values
    return FFT(Array(fourier.result_dtype(x.dtype), arithmetic.join(values.real, values.real)), norm)


def half(x: Array, norm: Norm) -> Array:
    found = FFT(x, norm)
    kept = np.array(found.values)
    kept[..., x.shape[-1] // 2 + 1 :] = 0
    return Array(found.dtype, kept)


FLOATS = [
    transform("complex64_always", "makes complex64 of fp64", (fourier, "result_dtype", lambda dtype: _SINGLE)),
    transform("narrow_results", "rounds results to the operand's dtype", (fourier, "fft", of_float(narrowed))),
    transform("parts_twice", "takes floats for both parts", (fourier, "fft", of_float(with_real_parts_twice))),
    transform("half_spectrum", "leaves the mirrored half zero", (fourier, "fft", of_float(half))),
]


# Scale


def of_rounded_root(n: int, norm: Norm, component: DType) -> Any:
    if norm != "ortho":
        return SCALE(n, norm, component)
    one = component.carrier.type(1)
    return one / np.sqrt(component.carrier.type(n))


def divided(x: Array, norm: Norm = "ortho") -> Array:
    plain = FFT(x, "backward").values
    if norm == "backward":
        return Array(x.dtype, plain)
    size = x.values.real.dtype.type(x.shape[-1])
    divisor = np.sqrt(size) if norm == "ortho" else size
    with np.errstate(all="ignore"):
        return Array(x.dtype, arithmetic.join(plain.real / divisor, plain.imag / divisor))


def scaled_first(x: Array, norm: Norm = "ortho") -> Array:
    if norm == "backward":
        return FFT(x, norm)
    factor = SCALE(x.shape[-1], norm, x.dtype.component)
    with np.errstate(all="ignore"):
        scaled_ = Array(x.dtype, arithmetic.join(x.values.real * factor, x.values.imag * factor))
    return FFT(scaled_, "backward")


def unscaled(x: Array, norm: Norm = "ortho") -> Array:
    return FFT(x, "backward" if norm == "ortho" else norm)


def with_exchanged_norms(x: Array, norm: Norm = "ortho") -> Array:
    exchanged: dict[Norm, Norm] = {"forward": "backward", "backward": "forward"}
    return FFT(x, exchanged.get(norm, norm))


SCALES = [
    transform("rounded_root", "rounds sqrt(n) before inverting it", (fourier, "_scale", of_rounded_root)),
    transform("divided", "divides by sqrt(n)", (fourier, "fft", divided)),
    transform("scaled_first", "scales before it adds", (fourier, "fft", scaled_first)),
    transform("backward_by_default", "does not scale", (fourier, "fft", unscaled)),
    transform("exchanged_norms", "takes forward for backward", (fourier, "fft", with_exchanged_norms)),
]
