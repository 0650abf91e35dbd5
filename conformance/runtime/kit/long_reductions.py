"""Long and odd reductions in launches: products and sums whose bits depend on their order, and their judgement.

Inner dimensions and rows have some hundred elements, with remainders for every usual tile; data spread over 2**16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import pytest

from tessera_conformance.check import Check
from tessera_conformance.dsl import type_of
from tessera_conformance.marks import feature
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.elementwise import UNARY
from tessera_conformance.oracle.reductions import matmul, sum_
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors import load
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.files import Vector
from tessera_conformance.vectors.judging import Question, judge_declared

from .encoding import packed
from .mesh_session import MeshSession

REDUCING = """module m {
  kernel product(a: tensor<3x301xfp32>, b: tensor<301x2xfp32>, c: tensor<3x2xfp32>) { c = a @ b; }
  kernel longer(a: tensor<2x517xfp32>, b: tensor<517x1xfp32>, c: tensor<2x1xfp32>) { c = a @ b; }
  kernel narrow(a: tensor<3x263xbf16>, b: tensor<263x2xbf16>, c: tensor<3x2xbf16>) { c = a @ b; }
  kernel sums(x: tensor<4x301xfp32>, y: tensor<4xfp32>) { y = op.sum(x) @{axis=1}; }
  kernel longest(x: tensor<2x1031xfp32>, y: tensor<2xfp32>) { y = op.sum(x) @{axis=1}; }
}
"""


@dataclass(frozen=True)
class Reduction:
    """A kernel of `REDUCING`: its operation, the shapes of operands and result, and their dtype."""

    kernel: str
    operation: str
    shapes: Sequence[tuple[int, ...]]
    result: tuple[int, ...]
    dtype: str = "fp32"

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The arguments beside the operands."""
        return {"axis": 1} if self.operation == "sum" else {}

    def operands(self, seed: int) -> list[Tensor]:
        """Return numbers of very different sizes."""
        return [
            counted(self.dtype, shape, seed=seed + place, exponents=(-8, 8)) for place, shape in enumerate(self.shapes)
        ]


REDUCTIONS = {
    "product": Reduction("product", "matmul", [(3, 301), (301, 2)], (3, 2)),
    "longer product": Reduction("longer", "matmul", [(2, 517), (517, 1)], (2, 1)),
    "product of bf16": Reduction("narrow", "matmul", [(3, 263), (263, 2)], (3, 2), "bf16"),
    "sums": Reduction("sums", "sum", [(4, 301)], (4,)),
    "longer sums": Reduction("longest", "sum", [(2, 1031)], (2,)),
}

LARGE = {
    "ir/matmul": ("fp16/33x47x65", "bf16/70x36x58", "fp32/33x47x65", "fp32/70x36x58", "fp64/33x47x65"),
    "ir/long_reductions": ("fp32/matmul/k-1025", "fp32/sum/n-4097", "bf16/sum/n-300", "fp32/softmax/n-1000"),
}
"""By topic, golden vectors beyond the thresholds of libraries, including one with three large extents of a product."""

FUNCTIONS = {
    "ir/functions": (
        *(f"fp32/{name}/counted" for name in (*UNARY, "pow")),
        *(f"{dtype}/{name}/counted" for dtype in ("fp16", "bf16", "fp64") for name in ("exp", "log", "tanh", "rsqrt")),
    ),
    "ir/activations": ("fp32/sigmoid/counted", "fp32/silu/counted", "fp32/gelu/counted", "bf16/gelu/counted"),
    "ir/elementwise": ("fp16/divide/counted", "fp32/divide/counted", "fp64/divide/counted"),
}
"""By topic, golden vectors of functions and quotients over a wide range, which fast arithmetic estimates."""

LAUNCHED_FUNCTIONS = {
    "ir/functions": tuple(
        f"{name}/counted" for name in ("fp32/exp", "fp32/log", "fp32/tanh", "fp32/rsqrt", "bf16/exp")
    ),
    "ir/activations": ("fp32/sigmoid/counted",),
    "ir/elementwise": ("fp16/divide/counted", "fp32/divide/counted"),
}
"""Vectors that are launched too."""


def vectors_of(table: Mapping[str, Sequence[str]]) -> Any:
    """Parametrize a test over golden vectors, named by their topics."""
    chosen = [vector for topic, names in table.items() for vector in load(topic) if vector.name in names]
    cases = [pytest.param(vector, id=vector.name, marks=feature(*vector.features)) for vector in chosen]
    return pytest.mark.parametrize("vector", cases)


def question_of(vector: Vector) -> Question:
    """Return the operation of a vector, its operands and attributes."""
    checked = vector.provenance.check
    operation = checked.function.removeprefix("oracle.")
    return Question(operation, [vector.call.inputs[name] for name in checked.operands], checked.arguments)


OPERATORS = {"matmul": "a @ b", "divide": "a / b"}


def launched_kernel(session: MeshSession, vector: Vector) -> Tensor:
    """Launch the operation of a vector in a kernel of its own, and return its result."""
    question, (expected,) = question_of(vector), vector.expected
    names = ("a", "b")[: len(question.inputs)]
    attributes = ", ".join(f"{name}={value}" for name, value in question.arguments.items())
    formula = OPERATORS.get(question.operation, f"op.{question.operation}({', '.join(names)})")
    formula += f" @{{{attributes}}}" if attributes else ""
    typed = [f"{name}: {type_of(x)}" for name, x in zip((*names, "y"), (*question.inputs, expected), strict=True)]
    kernel = session.kernel("large", f"module m {{ kernel large({', '.join(typed)}) {{ y = {formula}; }} }}")
    result = session.upload(bytes(len(expected.data)))
    pointers = (*(session.upload(operand.data) for operand in question.inputs), result)
    session.launch(kernel, packed(*(("ptr", pointer) for pointer in pointers)))
    return Tensor(expected.dtype, expected.shape, session.download(result, len(expected.data)))


def of_each(*names: str) -> Any:
    """Parametrize a test over the reductions of a table."""
    features = {name: feature("reductions") if REDUCTIONS[name].operation == "sum" else () for name in names}
    cases = [pytest.param(REDUCTIONS[name], id=name, marks=features[name]) for name in names]
    return pytest.mark.parametrize("reduction", cases)


@dataclass(frozen=True)
class Launched:
    """A reduction that was launched: its operands, and the address of its result."""

    reduction: Reduction
    operands: Sequence[Tensor]
    pointer: int

    def result(self, session: MeshSession) -> Tensor:
        """Return the kernel's result, once the stream is done."""
        size = len(self.operands[0].data) // self.operands[0].size * prod(self.reduction.result)
        return Tensor(self.reduction.dtype, self.reduction.result, session.download(self.pointer, size))


def launched(session: MeshSession, kernel: int, reduction: Reduction, seed: int, flags: int = 0) -> Launched:
    """Queue a launch of a reduction on operands of its own."""
    operands = reduction.operands(seed)
    pointers = [session.upload(operand.data) for operand in operands]
    result = session.upload(bytes(4 * prod(reduction.result)))
    session.launch(kernel, packed(*(("ptr", pointer) for pointer in (*pointers, result))), flags=flags)
    return Launched(reduction, operands, result)


@lru_cache(maxsize=32)  # cases launch the same data in several ways
def canonical(operation: str, *operands: Tensor) -> Tensor:
    """Return the result in the canonical order."""
    return sum_(operands[0], 1) if operation == "sum" else matmul(operands[0], operands[1])


def judge_launched(impl: Implementation, check: Check, of: Launched, found: Tensor) -> None:
    """Check a launch under a deterministic policy: canonical bits at strict, the declared order, or at fast a bound."""
    question = Question(of.reduction.operation, of.operands, of.reduction.attributes)
    expected = canonical(of.reduction.operation, *of.operands) if impl.level == "strict" else None
    judge_reduction(impl, check, question, found, expected)


def judge_reduction(
    impl: Implementation, check: Check, question: Question, found: Tensor, expected: Tensor | None
) -> None:
    """Check a result under a deterministic policy; `expected` are its canonical bits, which strict requires."""
    if impl.level == "strict":
        assert expected is not None
        check.bits(found, expected, f"strict: the canonical order of {question.operation}")
    elif impl.level == "fast":
        enclosures = bounds.enclose(f"oracle.{question.operation}", list(question.inputs), dict(question.arguments))
        check.enclosed(found, enclosures, f"the bound of {question.operation}")
    else:
        judge_declared(impl, check, question, found)
