"""Gradients are judged by every bit but the sign of a zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tessera_conformance.adapter import Adapter
from tessera_conformance.chapters.ir.kit.gradient_cases import judge_gradients, without_signed_zeros
from tessera_conformance.check import Check, CheckFailed
from tessera_conformance.dsl import tensor_of, type_of
from tessera_conformance.session import Implementation, Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports.direct import DirectTransport


class Constant(Adapter):
    """Answers every program with the same tensors, and keeps the program."""

    def __init__(self, *outputs: Tensor) -> None:
        self.outputs = list(outputs)
        self.source = ""

    def hello(self) -> dict[str, Any]:
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "constant", "version": "1"},
            "documents": ["language_ir"],
            "capabilities": {},
            "arithmetic": {"level": "strict"},
        }

    def language_execute(
        self, *, source: str, function: str, inputs: Mapping[str, Tensor], level: str = "strict"
    ) -> dict[str, Any]:
        self.source = source
        return {"outputs": self.outputs}


def judged(adapter: Constant, expected: Mapping[str, Any]) -> None:
    implementation = Implementation(Session(DirectTransport(lambda: adapter, "constant")), "strict")
    judge_gradients(implementation, Check(), "A * b", {"A": [1, 2], "b": 3}, expected, before=["A[0] = 1.0;"])


def test_the_program_and_its_types() -> None:
    adapter = Constant(tensor_of("fp32", [3, 3]), tensor_of("fp32", 3))
    judged(adapter, {"A": [3, 3], "b": 3})
    assert adapter.source.split("\n")[1:7] == [
        "  func f(A: tensor<2xfp32>, b: fp32) {",
        "    A[0] = 1.0;",
        "    let GradA: tensor<2xfp32> = op.grad(A * b, A);",
        "    let Gradb: fp32 = op.grad(A * b, b);",
        "    return GradA, Gradb;",
        "  }",
    ]


@pytest.mark.parametrize("found", [[-0.0, 0], [0, -0.0]])
def test_the_sign_of_a_zero_is_left_out(found: list[float]) -> None:
    judged(Constant(tensor_of("fp32", found)), {"A": [0, 0]})


@pytest.mark.parametrize(
    "outputs",
    [
        [tensor_of("fp32", [0, 1])],
        [tensor_of("fp32", [[0, 0]])],
        [tensor_of("bf16", [0, 0])],
        [tensor_of("fp32", [0, 0]), tensor_of("fp32", 0)],
        [],
    ],
    ids=["value", "shape", "dtype", "too-many", "none"],
)
def test_anything_else_is_not(outputs: list[Tensor]) -> None:
    with pytest.raises(CheckFailed):
        judged(Constant(*outputs), {"A": [0, 0]})


def test_only_zeros_lose_their_sign() -> None:
    given = Tensor.from_words("bf16", (4,), [0x8000, 0xBF80, 0x8001, 0])
    assert without_signed_zeros(given).words().tolist() == [0, 0xBF80, 0x8001, 0]
    assert without_signed_zeros(tensor_of("int8", [-128])) == tensor_of("int8", [-128])
    assert without_signed_zeros("nothing") == "nothing"


def test_types_as_they_are_written() -> None:
    assert [type_of(tensor_of("bf16", values)) for values in (1, [1], [[1, 2]])] == [
        "bf16",
        "tensor<1xbf16>",
        "tensor<1x2xbf16>",
    ]
