"""Short programs on tensors of the harness, so that results can be held to its oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera_conformance.tensors import Tensor
from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Diagnostic, Rejection
from tessera_reference.ir.module import Module
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES

NAMES = {np.dtype(kind): name for kind, name in (("<f4", "fp32"), ("<f8", "fp64"), ("<f2", "fp16"), ("<i4", "int32"))}


class Programs:
    """Functions of one body, whose parameters have the names and types of their inputs."""

    @staticmethod
    def tensor(values: Any, kind: str = "<f4") -> Tensor:
        """Numbers as a tensor; kinds are numpy's."""
        array = np.asarray(values, kind)
        return Tensor(NAMES[array.dtype], array.shape, array.tobytes())

    @staticmethod
    def array(given: Tensor) -> Any:
        """A tensor of one of those kinds as a numpy array."""
        kinds = {name: kind for kind, name in NAMES.items()}
        return np.frombuffer(given.data, kinds[given.dtype]).reshape(given.shape)

    @staticmethod
    def compile(body: str, signature: str) -> Module:
        """A module with the function f; a body without a semicolon is what it returns."""
        statements = body if ";" in body else f"return {body};"
        return compile_source(f"module m {{ func f({signature}) {{ {statements} }} }}", "t.tsr").module

    @classmethod
    def run(cls, body: str, signature: str | None = None, **inputs: Tensor) -> tuple[Tensor, ...]:
        """The results of a body on inputs."""
        declared = ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items())
        arrays = {name: Array.from_bits(DTYPES[x.dtype], x.shape, x.data) for name, x in inputs.items()}
        found = execute(cls.compile(body, declared if signature is None else signature), "f", arrays)
        return tuple(Tensor(each.dtype.name, each.shape, each.to_bits()) for each in found)

    @classmethod
    def refused(cls, body: str, signature: str) -> Diagnostic:
        """The one thing that is wrong with a body."""
        with pytest.raises(Rejection) as caught:
            cls.compile(body, signature)
        (diagnostic,) = caught.value.diagnostics
        return diagnostic

    @classmethod
    def failed(cls, body: str, signature: str | None = None, **inputs: Tensor) -> Diagnostic:
        """Return the diagnostic with which a body fails when it runs."""
        with pytest.raises(Rejection) as caught:
            cls.run(body, signature, **inputs)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.phase == "execute"
        return diagnostic


def type_of(value: Tensor) -> str:
    return f"tensor<{'x'.join(map(str, value.shape))}x{value.dtype}>" if value.shape else value.dtype


@pytest.fixture
def programs() -> type[Programs]:
    return Programs


class Differences:
    """Gradients of fp64 programs beside exact ones: central differences in 60 digits of a model of what is computed."""

    @staticmethod
    def agree(programs: type[Programs], expression: str, model: Any, weights: Any, wrt: str, **inputs: Any) -> bool:
        """Return True if the gradient of sum(expression * weights) is that of the model, as far as fp64 goes.

        A few hundred roundings lie between the two, each of 2**-53 of a number no larger than the largest derivative
        times the numbers of the model, which are near 1.
        """
        import mpmath

        given = {name: programs.tensor(value, "<f8") for name, value in inputs.items()}
        weighted = f"let Y: {type_of(programs.tensor(weights, '<f8'))} = {expression}; return op.grad(Y * W, {wrt});"
        (found,) = programs.run(weighted, W=programs.tensor(weights, "<f8"), **given)
        with mpmath.workdps(60):
            step = mpmath.mpf("1e-20")
            exactly = np.vectorize(mpmath.mpf, otypes=[object])

            def total(index: tuple[int, ...], shift: Any) -> Any:
                moved = {name: exactly(value) for name, value in inputs.items()}
                moved[wrt][index] += shift
                return (model(**moved) * exactly(weights)).sum()

            expected = np.empty(np.shape(inputs[wrt]))
            for index in np.ndindex(expected.shape):
                expected[index] = float((total(index, step) - total(index, -step)) / (2 * step))
        largest = abs(expected).max()
        assert largest > 1e-3
        return bool(abs(programs.array(found) - expected).max() <= 1e-13 * max(largest, 1))


@pytest.fixture
def differences() -> type[Differences]:
    return Differences
