"""Whatever a request holds, the reference answers with a result, a refusal or "unsupported", and soon."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from math import prod
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.numerics.catalogue import OPERATIONS, READERS

DTYPES = list(ELEMENT_FORMATS)
DEADLINE = 10.0
"""Seconds that no answer takes."""

DEEP: list[Any] = []
for _ in range(5000):
    DEEP = [DEEP]
HUGE = 10**5000
ROW = Tensor("fp32", (4,), bytes(16))

WORDS = ["", "c", "sum", "fold", "pairwise", "ring(2)", "((c 0 1) 2)", "kahan", "nonfinite", "fp8_e4m3", "\ud800", "0"]
NUMBERS = [
    0,
    1,
    2,
    3,
    -1,
    -2,
    7,
    63,
    64,
    2**31,
    2**32,
    2**48,
    2**53,
    2**63 - 1,
    2**63,
    2**64 - 1,
    2**64,
    2**70,
    -(2**63),
]
FLOATS = [0.0, -0.0, 0.5, 1.0, 2.5, -1.0, 1e308, 5e-324, float("inf"), float("nan")]
ODD = [None, True, False, 10**400, HUGE, [], {}, DEEP, ROW, {"ring": 1}, {"ring": -1}, {3: 1}, [[0, 1], 2], ["c", 0, 1]]
EXTENTS = [0, 1, 1, 2, 2, 3, 3, 4, 5, 9, 2**16, 2**40, 2**47, 2**62]


def odd_value(draw: random.Random, depth: int = 2) -> Any:
    """A JSON value of any kind, or a tensor."""
    kind = draw.randrange(7)
    if kind < 4:
        return draw.choice((WORDS, NUMBERS, FLOATS, ODD)[kind])
    if kind == 4 or depth == 0:
        return draw.choice(DTYPES)
    if kind == 5:
        return [odd_value(draw, depth - 1) for _ in range(draw.randrange(4))]
    return {draw.choice(WORDS): odd_value(draw, depth - 1) for _ in range(draw.randrange(3))}


SENSIBLE: Mapping[str, list[Any]] = {
    "axis": [0, -1, 1, 2],
    "keepdims": [True, False],
    "tree": ["fold", "pairwise", {"ring": 0}, {"ring": 10**8}, [0, 1], [[0, 2], 1], "(c 0 1 2)", "((0 1) 2)", 0],
    "order": ["tree", "kahan"],
    "norm": ["ortho", "backward", "forward"],
    "approximate": ["none", "tanh"],
    "overflow": ["saturate", "nonfinite"],
    **dict.fromkeys(("dtype", "out", "accum", "wire"), DTYPES),
    **{name: [0, 1, 2, 3, 1 << 20, 1 << 63] for name in ("seed", "stream", "offset", "k", "block")},
    "rate": [0, 0.25, 0.5, 1 - 2**-53],
    "shape": [[], [2], [2, 3], [0, 4], [1] * 40, [0, 1 << 40], [1 << 20, 1 << 20]],
}


LEFT_OUT = ("tree", "order", "out", "accum", "overflow", "offset")
"""Attributes that are seldom given."""

TAKEN: Mapping[str, list[str]] = {
    "fft": ["complex64", "complex128"],
    "ifft": ["complex64", "complex128"],
    "quantize": ["fp32"],
    "error_feedback": ["fp32"],
    "dequantize": ["bf16", "fp8_e4m3"],
}
"""The dtypes of operations that take few."""


def odd_shape(draw: random.Random) -> tuple[int, ...]:
    """Any shape, of few elements where there are any."""
    shape = tuple(draw.choice(EXTENTS) for _ in range(draw.choice([0, 1, 1, 1, 2, 2, 2, 3, 4])))
    shape = draw.choice([shape, shape, shape, (1,) * draw.choice([33, 63, 64, 65, 70]) + shape[:1]])
    return shape if prod(shape) < 200 else (*shape[:-1], 0)


def odd_tensor(draw: random.Random, shape: tuple[int, ...], dtype: str) -> Tensor:
    """Bits of any kind: a quarter at random, and whatever is special."""
    each = ELEMENT_FORMATS[dtype]
    count = prod(shape) * each.words
    top = 1 << (8 * each.word_bytes - 1)
    special = [0, top, 1, top - 1, 2 * top - 1, *([] if dtype == "bool" else [top >> 1, 3 * top >> 1, top >> 2])]
    codes = [draw.choice(special) if draw.random() < 0.75 else draw.randrange(2 * top) for _ in range(count)]
    return Tensor.from_words(dtype, shape, [code % 2 if dtype == "bool" else code for code in codes])


def odd_inputs(draw: random.Random, count: int, operation: str = "") -> Any:
    """Tensors that mostly fit each other, and the operation."""
    shape, dtype = odd_shape(draw), draw.choice(TAKEN.get(operation, [*DTYPES, "fp32", "fp32", "fp64"]))
    if operation == "matmul" and draw.random() < 0.7:
        shape = (*shape[:-1], *shape[-1:] * 2)
    alike = draw.random() < 0.7
    made = []
    for _ in range(count):
        made.append(odd_tensor(draw, shape, dtype))
        if not alike:
            shape, dtype = odd_shape(draw), draw.choice(DTYPES)
    if operation == "dequantize" and made and draw.random() < 0.7:
        made[-1] = odd_tensor(draw, (*shape[:-1], *(min(extent, 1) for extent in shape[-1:])), "fp32")
    return made if draw.random() < 0.98 else draw.choice([*made, None, [None], [5], made * 2, {}, "x"])


def odd_attributes(draw: random.Random, operation: str) -> Any:
    """Attributes of an operation, most of them sensible."""
    entry = OPERATIONS.get(operation)
    names = list(entry.attributes) if entry else ["axis"]
    given = {
        name: draw.choice(SENSIBLE[name]) if draw.random() < 0.92 else odd_value(draw)
        for name in names
        if draw.random() < (0.3 if name in LEFT_OUT else 0.95)
    }
    if draw.random() < 0.03:
        given[draw.choice([*READERS, *WORDS])] = odd_value(draw)
    return given if draw.random() < 0.98 else odd_value(draw)


def odd_descriptor(draw: random.Random) -> Any:
    given: dict[str, Any] = {"seed": draw.choice([0, 7, 2**64 - 1]), "stable": {"softmax": True}}
    if draw.random() < 0.5:
        given["reduction_order"] = draw.choice(SENSIBLE["tree"])
    if draw.random() < 0.3:
        given[draw.choice(["reduction_order", "seed", "stream", "stable", "bogus"])] = odd_value(draw)
    return given if draw.random() < 0.9 else odd_value(draw)


def odd_call(draw: random.Random) -> tuple[str, dict[str, Any]]:
    """A call of a method of numerics, collectives or runtime."""
    kind = draw.random()
    if kind < 0.75:
        method, call, optional = evaluation(draw)
    elif kind < 0.83:
        method, call, optional = declaration(draw)
    elif kind < 0.95:
        method, call, optional = collective(draw)
    else:
        method, call, optional = policy_of_context(draw)
    for name in (*optional, "operation", "later"):
        if draw.random() < 0.02:
            call[name] = odd_value(draw)
    return method, call


Call = tuple[str, dict[str, Any], tuple[str, ...]]
"""A method, its parameters, and which of them may become anything at all."""


def evaluation(draw: random.Random) -> Call:
    operation = draw.choice(list(OPERATIONS))
    entry = OPERATIONS[operation]
    inputs = odd_inputs(draw, entry.operands + (entry.optional_operand and draw.random() < 0.4), operation)
    call = {"operation": operation, "inputs": inputs, "attributes": odd_attributes(draw, operation)}
    if draw.random() < 0.2:
        call["descriptor"] = odd_descriptor(draw)
    return "numerics_evaluate", call, ("level", "context", "flags")


def declaration(draw: random.Random) -> Call:
    operation = draw.choice([*OPERATIONS, "all_reduce", "sum", "matmul"])
    shapes = [list(odd_shape(draw)) for _ in range(draw.choice([1, 2]))]
    call = {"operation": operation, "dtype": draw.choice(DTYPES), "shapes": shapes}
    call["attributes"] = odd_attributes(draw, operation)
    return "numerics_declared", call, ("element", "dtype", "shapes")


def collective(draw: random.Random) -> Call:
    ranks = draw.choice([0, 1, 2, 3])
    call = {"inputs": odd_inputs(draw, ranks), "op": draw.choice(["sum", "max", "min"])}
    if draw.random() < 0.3:
        call["descriptors"] = [odd_descriptor(draw)] * ranks
    return "collectives_all_reduce", call, ("op", "level", "context", "wire", "descriptors")


def policy_of_context(draw: random.Random) -> Call:
    call = {"context": draw.choice([1, 1, 0, -1, odd_value(draw)])}
    names = ("stableReductions", "deterministic", "rngStateless", "allowFastMath")
    call["policy"] = {name: draw.choice([0, 1, 1, odd_value(draw)]) for name in names if draw.random() < 0.95}
    method = draw.choice(["runtime_tessSetNumericsPolicy", "runtime_tessGetNumericsPolicy", "runtime_tessInit"])
    return method, call, ("policy", "context")


def answer(reference: ReferenceAdapter, method: str, call: Mapping[str, Any]) -> str:
    """The kind of answer. Anything but a result, a refusal or "unsupported" is raised."""
    try:
        getattr(reference, method)(**call)
    except Refusal as refusal:
        return f"refused with {refusal.outcome.code}: {refusal.outcome.message}"
    except NotSupported as lack:
        return f"unsupported {lack}"
    return "answered"


@settings(max_examples=600, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(draw=st.randoms(use_true_random=False))
def test_any_request_is_answered_refused_or_unsupported(draw: random.Random) -> None:
    reference = make()
    reference.runtime_tessInit()
    method, call = odd_call(draw)
    began = time.monotonic()
    assert answer(reference, method, call).startswith(("answered", "refused with TESS_ERR_", "unsupported "))
    assert time.monotonic() - began < DEADLINE


def test_what_is_drawn_is_of_every_sort() -> None:
    """The requests above are neither all refused nor all harmless."""
    reference, draw, found = make(), random.Random(0), dict.fromkeys(("answered", "refused", "unsupported"), 0)
    reference.runtime_tessInit()
    for _ in range(1000):
        found[answer(reference, *odd_call(draw)).split()[0]] += 1
    assert min(found["answered"], found["refused"]) > 250
    assert found["unsupported"] > 10
