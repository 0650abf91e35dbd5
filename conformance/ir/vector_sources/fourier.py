"""Fourier transforms: for each output the canonical tree over products with correctly rounded factors, scaled last."""

from __future__ import annotations

from math import inf, nan

from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.vectors.building import COMPLEX, Question, Topic, complex_of, counted, tensor

topic = Topic(__doc__)


@topic.vector(
    "{dtype}/{transform}/n-{n}",
    dtype=list(COMPLEX),
    transform=["fft", "ifft"],
    n=["1", "2", "3", "4", "5", "8", "12", "31"],
)
def lengths(dtype: str, transform: str, n: str) -> Question:
    """Any length, prime ones too."""
    real, imaginary = (counted(COMPLEX[dtype], (2, int(n)), seed) for seed in (241, 242))
    return questions.fourier(transform, complex_of(dtype, real, imaginary))


@topic.vector(
    "{dtype}/{transform}/{norm}", dtype=list(COMPLEX), transform=["fft", "ifft"], norm=["ortho", "backward", "forward"]
)
def norms(dtype: str, transform: str, norm: str) -> Question:
    """The three ways to scale a transform of seven."""
    real, imaginary = (counted(COMPLEX[dtype], (7,), seed) for seed in (243, 244))
    return questions.fourier(transform, complex_of(dtype, real, imaginary), norm)


@topic.vector(
    "{dtype}/{transform}/real-{n}",
    dtype=["fp64", "fp32", "tf32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2"],
    transform=["fft", "ifft"],
    n=["1", "4", "7", "12"],
)
def floats(dtype: str, transform: str, n: str) -> Question:
    """A float is a complex number of imaginary part +0: complex128 of fp64, complex64 of others (AMB-LANG-116)."""
    return questions.fourier(transform, counted(dtype, (2, int(n)), 245))


@topic.vector("{dtype}/fft/real-{norm}", dtype=["fp64", "fp32"], norm=["ortho", "backward", "forward"])
def norms_of_floats(dtype: str, norm: str) -> Question:
    """The three ways to scale a transform of six floats."""
    return questions.fourier("fft", counted(dtype, (6,), 246), norm)


@topic.vector("{dtype}/{transform}/batches", dtype=list(COMPLEX), transform=["fft", "ifft"])
def batches(dtype: str, transform: str) -> Question:
    """A batch of batches: each row in its own place."""
    real, imaginary = (counted(COMPLEX[dtype], (2, 3, 4), seed) for seed in (247, 248))
    return questions.fourier(transform, complex_of(dtype, real, imaginary))


@topic.vector("{dtype}/fft/real-special", dtype=["fp64", "fp32", "bf16"])
def special_floats(dtype: str) -> Question:
    """Rows of signed zeros, of one impulse, with an infinity and with a NaN."""
    rows = [[0, -0.0, 0, -0.0], [-0.0, -0.0, -0.0, -0.0], [0, 1, 0, 0], [1, inf, 2, 3], [nan, 1, 2, 3]]
    return questions.fourier("fft", tensor(dtype, rows))


@topic.vector("{dtype}/fft/special", dtype=list(COMPLEX))
def special(dtype: str) -> Question:
    """Rows of signed zeros, of one impulse, with an infinity and with a NaN, which spoil their own row only."""
    part = COMPLEX[dtype]
    real = tensor(part, [[0, -0.0, 0, -0.0], [1, 0, 0, 0], [0, 1, 0, 0], [1, inf, 2, 3], [nan, 1, 2, 3]])
    imaginary = tensor(part, [[-0.0, -0.0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    return questions.fourier("fft", complex_of(dtype, real, imaginary))
