"""Shared by the tests of outside evidence: a peer that is missing is skipped with the line that installs it."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tessera_reference.numerics.array import Array, decode
from tessera_reference.numerics.formats import dtype

ROOT = Path(__file__).resolve().parents[2]

SHAPES = [(1, 1, 1), (1, 7, 1), (5, 3, 9), (8, 40, 6), (3, 130, 5), (17, 16, 33)]


@pytest.fixture(scope="session")
def load() -> Callable[[str, str], ModuleType]:
    """Import `module` of a peer, or skip, saying how to install `package`."""

    def importing(module: str, package: str) -> ModuleType:
        if importlib.util.find_spec(module.split(".")[0]) is None:
            pytest.skip(f"{package} is not installed: pip install {package}, or 'tessera-conformance[evidence]'")
        return importlib.import_module(module)

    return importing


@pytest.fixture(scope="session")
def peer_folder() -> Callable[..., Path]:
    """A folder with a package of its own, kept for the next run; skips, saying why, where it cannot be had."""

    def installed(name: str, requirement: str, *options: str) -> Path:
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        target = ROOT / "build" / "peers" / f"{name}-python-{python}"
        if not (target / "complete").exists():
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", "--upgrade"]
            command += ["--disable-pip-version-check", *options, "--target", str(target), requirement]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                pytest.skip(f"{requirement} cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
            (target / "complete").touch()
        return target

    return installed


def edges(name: str) -> np.ndarray:
    """Zeros, the bounds of subnormal and normal numbers, infinities, NaN, and one and its neighbours."""
    form = dtype(name)
    ulp = 2.0**-form.fraction_bits
    positive = [0.0, form.min_subnormal, form.min_normal - form.min_subnormal, form.min_normal, 1 - ulp / 2, 1.0]
    positive += [1 + ulp, 3.0, form.max_finite, float("inf")]
    return np.array([*positive, *(-x for x in positive), float("nan")], form.carrier)


def any_codes(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """All codes alike: wide exponents, so that sums cancel, overflow and meet subnormals, infinities and NaN."""
    code = f"u{dtype(name).storage_bytes}"
    return decode(rng.integers(0, np.iinfo(code).max, shape, code, endpoint=True), dtype(name))


def near_one(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Full significands within a few binades, so that most sums are inexact."""
    bits = dtype(name).fraction_bits
    significands = rng.integers(1 << bits, 2 << bits, shape) * rng.choice([-1, 1], shape)
    return np.ldexp(significands.astype(np.float64), rng.integers(-2, 3, shape) - bits).astype(dtype(name).carrier)


def operands_of(name: str) -> list[tuple[Array, Array]]:
    """Pairs of matrices of dtype `name`: every pair of edge values as a product and as two terms, and random ones."""
    rng = np.random.Generator(np.random.Philox(20261121))
    values = edges(name)
    size = len(values)
    pairs: list[tuple[Any, Any]] = [
        (values[:, None], values[None, :]),
        (np.stack([values, np.ones(size, values.dtype)], 1), np.stack([np.ones(size, values.dtype), values])),
        (np.stack([values, values[::-1], values], 1), np.stack([values, np.roll(values, 5), -values])),
        (np.full((2, 3), -0.0, values.dtype), np.ones((3, 2), values.dtype)),
    ]
    for make in (near_one, any_codes):
        pairs += [(make(name, (m, k), rng), make(name, (k, n), rng)) for m, k, n in SHAPES]
    return [
        (Array(dtype(name), np.ascontiguousarray(a)), Array(dtype(name), np.ascontiguousarray(b))) for a, b in pairs
    ]


@pytest.fixture(params=["fp32", "bf16"])
def matrices(request: pytest.FixtureRequest) -> list[tuple[Array, Array]]:
    return operands_of(request.param)


@pytest.fixture
def operands() -> Callable[[str], list[tuple[Array, Array]]]:
    return operands_of


def same_bits(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal float32 bits; every NaN is alike."""
    assert found.shape == expected.shape
    alike = (found.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(found) & np.isnan(expected))
    assert alike.all(), f"first differences: {found[~alike][:4]} for {expected[~alike][:4]}"


@pytest.fixture
def compare() -> Callable[[np.ndarray, np.ndarray], None]:
    return same_bits
