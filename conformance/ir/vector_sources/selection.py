"""Choice among elements: select, maximum, minimum, clamp and abs, with every special value of each type."""

from __future__ import annotations

from math import inf, nan

from tessera_conformance.chapters.ir.kit.elements import every_element, integer_edges, pairs
from tessera_conformance.chapters.ir.kit.questions import moved
from tessera_conformance.oracle.exact import float_format
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    Question,
    Topic,
    codes,
    counted,
    float_edges,
    tensor,
)

topic = Topic(__doc__)

NUMBERS = [*FLOATS, *INTEGERS]
EVERY = [*NUMBERS, "bool", *COMPLEX]


def edges(dtype: str) -> Tensor:
    """Every edge value of a type that has an order."""
    return float_edges(dtype) if dtype in FLOATS else integer_edges(dtype)


@topic.vector("{dtype}/{extreme}/edges", dtype=NUMBERS, extreme=["maximum", "minimum"])
def extremes(dtype: str, extreme: str) -> Question:
    """Every edge value beside every other: NaN wins from either side, -0 lies below +0, nothing is rounded."""
    return moved(extreme, *pairs(edges(dtype), edges(dtype)))


@topic.vector("{dtype}/{extreme}/scalar", dtype=["fp8_e4m3", "bf16", "fp32", "int8"], extreme=["maximum", "minimum"])
def scalar(dtype: str, extreme: str) -> Question:
    """A scalar meets every element, from the left and so from the right."""
    return moved(extreme, tensor(dtype, 1), edges(dtype))


@topic.vector("{dtype}/{extreme}/stretched", dtype=["bf16", "int32"], extreme=["maximum", "minimum"])
def stretched(dtype: str, extreme: str) -> Question:
    """A column meets a row: every pair of four and three."""
    return moved(extreme, counted(dtype, (4, 1), seed=301), counted(dtype, (3,), seed=302))


@topic.vector("{dtype}/abs/edges", dtype=NUMBERS)
def magnitudes(dtype: str) -> Question:
    """Signs cleared, of zeros and infinities too; the least integer wraps to itself."""
    return moved("abs", edges(dtype))


@topic.vector("{dtype}/clamp/edges", dtype=NUMBERS)
def clamped(dtype: str) -> Question:
    """Every edge value between -1 and 2."""
    return moved("clamp", edges(dtype), tensor(dtype, -1), tensor(dtype, 2))


@topic.vector("{dtype}/clamp/zeros", dtype=FLOATS)
def clamped_zeros(dtype: str) -> Question:
    """Between -0 and -0, -0 and +0, +0 and +0: -0 lies below +0 here too."""
    x, low, high = [-0.0, 0, -1, 1], [-0.0, -0.0, 0], [-0.0, 0, 0]
    rows = [tensor(dtype, [value for value in x for _ in low]), tensor(dtype, low * 4), tensor(dtype, high * 4)]
    return moved("clamp", *rows)


@topic.vector("{dtype}/clamp/special", dtype=FLOATS)
def clamped_special(dtype: str) -> Question:
    """NaN among the numbers or the bounds is what results; an infinite bound is none."""
    largest = float_format(dtype).largest
    least, most = (-largest, largest) if dtype == "fp8_e4m3" else (-inf, inf)
    return moved(
        "clamp",
        tensor(dtype, [nan, 1, 1, nan, 3, -3, most, least]),
        tensor(dtype, [-1, nan, -1, nan, least, -1, -1, -1]),
        tensor(dtype, [2, 2, nan, nan, 2, most, 2, 2]),
    )


@topic.vector("{dtype}/clamp/crossed", dtype=["fp8_e5m2", "bf16", "fp32", "int16"])
def crossed(dtype: str) -> Question:
    """Where the lower bound lies above the upper one, the upper one results."""
    low, high = tensor(dtype, [3, 3, 3, 2]), tensor(dtype, [1, -1, 3, 1])
    return moved("clamp", tensor(dtype, [2, 5, 3, -4]), low, high)


@topic.vector("{dtype}/clamp/stretched", dtype=["bf16", "fp32", "int32"])
def clamped_rows(dtype: str) -> Question:
    """A lower bound for each row and an upper one for each column."""
    low, high = tensor(dtype, [[-1], [0], [1]]), tensor(dtype, [1, 2, 3, 4])
    return moved("clamp", counted(dtype, (3, 4), seed=303), low, high)


@topic.vector("{dtype}/select/elements", dtype=EVERY)
def selected(dtype: str) -> Question:
    """Elements of either operand as they are, bit by bit: edge values of the first where the condition holds."""
    a, b = every_element(dtype, (3, 4)), every_element(dtype, (3, 4), seed=304)
    return moved("select", codes("bool", (3, 4), [1, 0, 0, 1, 0, 1, 1, 1, 0, 0, 1, 0]), a, b)


@topic.vector("{dtype}/select/all-or-none", dtype=["fp8_e4m3", "fp32", "bool"])
def all_or_none(dtype: str) -> Question:
    """Rows of nothing but the first, and of nothing but the second: what is not chosen is never seen."""
    a, b = every_element(dtype, (2, 5)), every_element(dtype, (2, 5), seed=305)
    return moved("select", codes("bool", (2, 5), [1] * 5 + [0] * 5), a, b)


@topic.vector("{dtype}/select/not-chosen", dtype=FLOATS)
def not_chosen(dtype: str) -> Question:
    """NaN and the limits in the operand that is not chosen leave no trace, where a product with 0 or 1 would."""
    top = float_format(dtype).largest
    spoiled, plain = tensor(dtype, [nan, top, -top, nan]), tensor(dtype, [1, -0.0, 0, 2])
    return moved("select", codes("bool", (4,), [0] * 4), spoiled, plain)


@topic.vector("{dtype}/select/scalars", dtype=["bf16", "int64", "bool"])
def scalars(dtype: str) -> Question:
    """Two scalars, chosen for each element of the condition."""
    low, high = (0, 1) if dtype == "bool" else (-3, 2)
    return moved("select", codes("bool", (5,), [1, 0, 1, 1, 0]), tensor(dtype, high), tensor(dtype, low))


@topic.vector("{dtype}/select/{word}", dtype=["fp16", "int8"], word=["true", "false"])
def one_condition(dtype: str, word: str) -> Question:
    """A scalar condition chooses a whole operand."""
    a, b = every_element(dtype, (2, 3)), every_element(dtype, (2, 3), seed=306)
    return moved("select", codes("bool", (), [int(word == "true")]), a, b)


@topic.vector("{dtype}/select/stretched", dtype=["bf16", "int32"])
def selected_rows(dtype: str) -> Question:
    """A column of conditions, a row of the first operand and a matrix of the second."""
    a, b = every_element(dtype, (4,)), every_element(dtype, (3, 4), seed=307)
    return moved("select", codes("bool", (3, 1), [1, 0, 1]), a, b)


@topic.vector("{dtype}/{operation}/nothing", dtype=["bf16", "int32"], operation=["maximum", "clamp", "select", "abs"])
def nothing(dtype: str, operation: str) -> Question:
    """Tensors without elements give one without elements."""
    x = codes(dtype, (2, 0), [])
    operands = {"maximum": [x, x], "clamp": [x, x, x], "select": [codes("bool", (2, 0), []), x, x], "abs": [x]}
    return moved(operation, *operands[operation])
