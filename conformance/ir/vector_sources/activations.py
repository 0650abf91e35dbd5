"""Activations: compositions of elementary functions, every step rounded in the accumulator type."""

from __future__ import annotations

from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.chapters.ir.kit.elements import every_code, integer_edges, joined, nearest
from tessera_conformance.vectors.building import FLOATS, Question, Topic, counted, float_edges

topic = Topic(__doc__)

ACTIVATIONS = ["sigmoid", "silu", "gelu"]
TAILS = [-88.8, -103.3, -17.4, 17.4, -9.1, 9.1, -5.6, 5.6, -13.2, -709.5, -745.2, 36.9, -36.9]


@topic.vector("{dtype}/{activation}/edges", dtype=FLOATS, activation=ACTIVATIONS)
def edges(dtype: str, activation: str) -> Question:
    """Zeros, subnormals, limits, infinities, NaN, and the tails, where one factor vanishes or overflows first."""
    return questions.activation(activation, joined(float_edges(dtype), nearest(dtype, *TAILS)))


@topic.vector("{dtype}/{activation}/all", dtype=["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"], activation=ACTIVATIONS)
def every_value(dtype: str, activation: str) -> Question:
    """Every code of the type."""
    return questions.activation(activation, every_code(dtype))


@topic.vector("{dtype}/{activation}/counted", dtype=["fp16", "bf16", "fp32", "fp64"], activation=ACTIVATIONS)
def counted_values(dtype: str, activation: str) -> Question:
    """Numbers of both signs with full significands."""
    return questions.activation(activation, counted(dtype, (256,), seed=211, exponents=(-8, 4)))


@topic.vector("{dtype}/gelu-tanh/edges", dtype=FLOATS)
def tanh_form_edges(dtype: str) -> Question:
    """The tanh form of gelu at the edges of the type and in its tails."""
    return questions.activation("gelu", joined(float_edges(dtype), nearest(dtype, *TAILS)), "tanh")


@topic.vector("{dtype}/gelu-tanh/counted", dtype=FLOATS)
def tanh_form(dtype: str) -> Question:
    """The tanh form of gelu, which differs from the exact one in its third digit."""
    return questions.activation("gelu", counted(dtype, (256,), seed=212, exponents=(-6, 3)), "tanh")


@topic.vector("{dtype}/relu/edges", dtype=FLOATS)
def rectified(dtype: str) -> Question:
    """The maximum of each edge value and +0: -0 becomes +0, NaN stays."""
    return questions.relu(float_edges(dtype))


@topic.vector("{dtype}/relu/edges", dtype=["int8", "int64"])
def rectified_integers(dtype: str) -> Question:
    """The maximum of each edge value and 0."""
    return questions.relu(integer_edges(dtype))
