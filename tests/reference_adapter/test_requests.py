"""Requests that are malformed, too large, odd or drawn at random: refused by name, unsupported, or answered at once."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from math import prod
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.numerics.catalogue import OPERATIONS, READERS, attributes_of, operand_counts
from tessera_reference.numerics.errors import MOST_AXES

DEADLINE = 10.0
"""Seconds that no answer takes; those that would never come are what these tests are about."""


@pytest.fixture
def reference() -> ReferenceAdapter:
    return make()


def zeros(*shape: int, dtype: str = "fp32") -> Tensor:
    element = ELEMENT_FORMATS[dtype]
    return Tensor(dtype, shape, bytes(prod(shape) * element.word_bytes * element.words))


ROW = zeros(4)
DEEP: list[Any] = []


for _ in range(5000):
    DEEP = [DEEP]


HUGE = 10**5000


def evaluated(operation: Any, *inputs: Any, **attributes: Any) -> dict[str, Any]:
    return {"operation": operation, "inputs": list(inputs), "attributes": attributes}


SUM = evaluated("sum", ROW, axis=0)
EXP = evaluated("exp", ROW)
RANKS = {"source": "", "function": "f", "ranks": []}
UNIFORM = {"shape": [2], "dtype": "fp32"}
MATRIX, COMPLEX = zeros(2, 2), zeros(2, 2, dtype="complex64")


# What is refused: (method, parameters, what the message says)
REFUSED: list[tuple[str, Mapping[str, Any], str]] = [
    # Parameters of a method
    ("numerics_evaluate", {}, "numerics.evaluate: operation is None, allowed is a value"),
    ("numerics_evaluate", SUM | {"operation": []}, "operation is [], allowed is text"),
    ("numerics_evaluate", SUM | {"operation": "sums"}, "operation is 'sums', allowed is one of exp, "),
    ("numerics_evaluate", SUM | {"inputs": None}, "inputs is None, allowed is a list"),
    ("numerics_evaluate", SUM | {"inputs": [5]}, "inputs[0] is 5, allowed is a tensor"),
    ("numerics_evaluate", SUM | {"attributes": None}, "attributes is None, allowed is an object"),
    ("numerics_evaluate", SUM | {"attributes": ["axis"]}, "attributes is ['axis'], allowed is an object"),
    ("numerics_evaluate", SUM | {"attributes": {5: 0}}, "attributes is {5: 0}, allowed is an object"),
    ("numerics_evaluate", SUM | {"level": "bogus"}, "level is 'bogus', allowed is one of strict, deterministic, fast"),
    ("numerics_evaluate", SUM | {"level": None}, "level is None"),
    ("numerics_evaluate", SUM | {"flags": -5}, "flags is -5, allowed is a whole number"),
    ("numerics_evaluate", SUM | {"flags": "x"}, "flags is 'x'"),
    *[
        ("numerics_evaluate", SUM | {"context": context}, f"context is {context!r}, allowed is a whole number")
        for context in ([-1], True, 1.0)
    ],
    ("numerics_declared", {"operation": [], "dtype": "fp32", "shapes": []}, "operation is []"),
    ("numerics_declared", {"operation": "sum", "dtype": [], "shapes": []}, "dtype is []"),
    ("numerics_declared", {"operation": "sum", "dtype": "fp8", "shapes": []}, "unknown dtype 'fp8'"),
    ("numerics_declared", {"operation": "sum", "dtype": "fp32", "shapes": [[-1]]}, "shapes[0][0] is -1"),
    ("numerics_declared", {"operation": "sum", "dtype": "fp32", "shapes": [], "element": -1}, "element is -1"),
    ("language_verify", {"source": 5}, "source is 5, allowed is text"),
    ("language_verify_ir", {"text": 5}, "text is 5, allowed is text"),
    ("language_lower", {"source": "", "to": []}, "to is [], allowed is one of graph, schedule, tile, target, llvm"),
    ("language_execute", {"source": "", "function": "f", "inputs": {"x": 5}}, "inputs.x is 5, allowed is a tensor"),
    ("language_execute_ranks", RANKS | {"ranks": {}}, "language.execute_ranks: ranks is {}, allowed is a list"),
    ("language_execute_ranks", RANKS | {"ranks": [ROW]}, "ranks[0] is "),
    ("language_execute_ranks", RANKS | {"ranks": [{"x": 5}]}, "ranks[0].x is 5, allowed is a tensor"),
    ("language_execute_ranks", RANKS | {"mesh": 5}, "mesh is 5, allowed is text"),
    ("language_execute_ranks", RANKS | {"level": "exact"}, "level is 'exact'"),
    # Descriptors
    *[
        ("numerics_evaluate", call | {"descriptor": descriptor}, message)
        for call in (SUM, EXP)
        for descriptor, message in [
            (1, "descriptor is 1, allowed is an object"),
            ([], "descriptor is [], allowed is an object"),
            ({"bogus": 1}, "descriptor, a name in it, is 'bogus', allowed is one of reduction_order, seed, "),
            ({"stable": 2}, "descriptor.stable is 2, allowed is an object"),
            ({"stable": {"softmax": "yes"}}, "stable softmax is 'yes'; expected true or false"),
            ({"stable": {"tanh": True}}, "descriptor.stable, a name in it, is 'tanh', allowed is one of softmax, "),
            ({"seed": -1}, "seed is -1; expected a whole number from 0 to 2**64 - 1"),
            ({"seed": "x"}, "seed is 'x'"),
            ({"stream": 1 << 64}, f"stream is {1 << 64}"),
            ({"reduction_order": 1.5}, "descriptor.reduction_order is 1.5, allowed is a tree"),
        ]
    ],
    # Attributes
    ("numerics_evaluate", evaluated("exp", ROW, overflow=[]), "overflow is [], allowed is one of saturate, nonfinite"),
    ("numerics_evaluate", evaluated("exp", ROW, overflow="wrap"), "overflow is 'wrap'"),
    ("numerics_evaluate", evaluated("sqrt", zeros(1, dtype="fp64"), overflow="wrap"), "overflow is 'wrap'"),
    ("numerics_evaluate", evaluated("gelu", ROW, approximate={}), "approximate is {}, allowed is one of none, tanh"),
    ("numerics_evaluate", evaluated("cast", ROW, dtype=[]), "dtype is [], allowed is a dtype: one of fp8_e4m3, "),
    ("numerics_evaluate", evaluated("cast", ROW, dtype=None), "dtype is None, allowed is a dtype"),
    *[
        ("numerics_evaluate", evaluated("sum", ROW, axis=0, keepdims=keepdims), f"keepdims is {keepdims!r}")
        for keepdims in (3, "no", None)
    ],
    ("numerics_evaluate", evaluated("sum", ROW, axis=0.0), "axis is 0.0, allowed is a whole number"),
    ("numerics_evaluate", evaluated("sum", ROW, axis=HUGE), "axis is a value of type int too long to be shown"),
    ("numerics_evaluate", evaluated("sum", ROW, axis=0, tree=DEEP), "sum: tree is "),
    ("numerics_evaluate", evaluated("sum", ROW, axis=0, tree=[0, None]), "tree is [0, None], allowed is a tree"),
    ("numerics_evaluate", evaluated("sum", ROW, axis=0, order=[]), "order is [], allowed is one of tree, kahan"),
    ("numerics_evaluate", evaluated("fft", COMPLEX, norm=[]), "norm is [], allowed is one of ortho, backward, "),
    *[
        ("numerics_evaluate", evaluated("dropout", ROW, rate=rate), message)
        for rate, message in [
            (False, "rate is False, allowed is a finite number"),
            ("c", "rate is 'c', allowed is a finite number"),
            (10**400, "rate is 1000"),
            (float("nan"), "rate is nan"),
            (-0.5, "rate is -0.5, allowed is a number with 0 <= rate < 1"),
        ]
    ],
    *[
        ("numerics_evaluate", evaluated("uniform", **UNIFORM | {"shape": shape}), message)
        for shape, message in [
            *[(shape, f"shape is {shape!r}, allowed is a list of at most") for shape in (5, None, "c", "", {}, {3: 1})],
            ([2.5], "shape[0] is 2.5, allowed is a whole number"),
            ([True], "shape[0] is True"),
            ([0, 1 << 70], f"shape[1] is {1 << 70}"),
            ([1] * (MOST_AXES + 1), "shape is [1, 1, "),
        ]
    ],
    ("numerics_evaluate", evaluated("uniform", **UNIFORM, seed=1.0), "seed is 1.0"),
    ("numerics_evaluate", evaluated("uniform", **UNIFORM, offset=1 << 63), "offset is 92233720"),
    ("numerics_evaluate", evaluated("quantize", ROW, wire="bf16", block=0), "block is 0"),
    ("numerics_evaluate", evaluated("quantize", ROW, wire={}, block=1), "wire is {}, allowed is a dtype"),
    ("numerics_evaluate", evaluated("top_k", ROW, k=True), "k is True, allowed is a whole number"),
    ("numerics_evaluate", evaluated("matmul", MATRIX, MATRIX, out="bool"), "out, of a product of fp32, is 'bool'"),
    ("numerics_evaluate", evaluated("matmul", COMPLEX, COMPLEX, out="fp32"), "allowed is a complex dtype"),
    ("numerics_evaluate", evaluated("exp", zeros(*[1] * 70)), f"a shape of 70 axes, at most {MOST_AXES} are taken"),
    ("numerics_evaluate", evaluated("pow", zeros(2), zeros(3)), "[2] and [3] do not broadcast"),
    # Collectives
    *[
        ("collectives_all_reduce", {"inputs": [ROW], "op": "sum", "wire": wire}, f"unknown dtype {wire!r} as wire")
        for wire in ("bogus", 5, [])
    ],
    ("collectives_all_reduce", {"inputs": [ROW], "op": [], "level": "fast"}, "operator []; expected sum or max or min"),
    ("collectives_all_reduce", {"inputs": [ROW], "op": "sum", "level": "bogus"}, "level is 'bogus'"),
    ("collectives_all_reduce", {"inputs": [], "op": "sum"}, "no rank takes part"),
    ("collectives_all_reduce", {"inputs": ROW, "op": "sum"}, "allowed is a list"),
    ("collectives_all_reduce", {"inputs": [ROW], "op": "sum", "descriptors": [5]}, "descriptors[0] is 5"),
]


@pytest.mark.parametrize(("method", "parameters", "message"), REFUSED)
def test_what_is_malformed_is_refused_by_name(
    reference: ReferenceAdapter, method: str, parameters: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(Refusal) as caught:
        getattr(reference, method)(**parameters)
    assert caught.value.outcome.code == "TESS_ERR_INVALID_VALUE"
    assert message in caught.value.outcome.message


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (None, "policy is NULL; expected a pointer that is not NULL"),
        ([], "policy is []; expected the switches stableReductions, "),
        ({5: 1}, "policy is {5: 1}"),
        ({"bogus": 1}, "policy is {'bogus': 1}; expected the switches stableReductions, "),
        ({"deterministic": 1}, "policy is {'deterministic': 1}; expected the switches "),
        ({"deterministic": 1.0}, "deterministic is 1.0; expected 0 or 1"),
        ({"deterministic": True}, "deterministic is True"),
        ({"deterministic": []}, "deterministic is []"),
    ],
)
def test_a_policy_has_four_switches(reference: ReferenceAdapter, policy: Any, message: str) -> None:
    context = reference.runtime_tessInit()["context"]
    whole = {"stableReductions": 1, "deterministic": 1, "rngStateless": 1, "allowFastMath": 0}
    if isinstance(policy, dict) and isinstance(policy.get("deterministic", 1), float | bool | list):
        policy = whole | policy
    with pytest.raises(Refusal) as caught:
        reference.runtime_tessSetNumericsPolicy(context=context, policy=policy)
    assert caught.value.outcome.code == "TESS_ERR_INVALID_VALUE"
    assert message in caught.value.outcome.message
    assert reference.runtime_tessGetNumericsPolicy(context=context)["policy"] == whole


NARROW = zeros(0, 1 << 40)
"""Nothing, along axes that no loop ends on."""

TOO_LARGE: list[Mapping[str, Any]] = [
    evaluated("uniform", **UNIFORM | {"shape": [1 << 40]}),
    evaluated("normal", **UNIFORM | {"shape": [1 << 62]}),
    evaluated("uniform", **UNIFORM | {"shape": [0, 1 << 62]}),
    evaluated("exp", zeros(0, 1 << 62)),
    evaluated("pow", zeros(1 << 18, 1), zeros(1, 1 << 18)),
    evaluated("pow", zeros(1 << 40, 0, 1), zeros(0, 1 << 40)),
    evaluated("matmul", zeros(1 << 20, 0), zeros(0, 1 << 20)),
    evaluated("matmul", zeros(1 << 40, 1, 0), zeros(1 << 40, 0, 1)),
    evaluated("sum", NARROW, axis=0),
    evaluated("sum", NARROW, axis=0, order="kahan", keepdims=True),
    evaluated("fft", zeros(1 << 18, dtype="complex64")),
]


@pytest.mark.parametrize("parameters", TOO_LARGE)
def test_what_no_machine_holds_is_unsupported(reference: ReferenceAdapter, parameters: Mapping[str, Any]) -> None:
    began = time.monotonic()
    with pytest.raises(NotSupported, match="memory"):
        reference.numerics_evaluate(**parameters)
    assert time.monotonic() - began < DEADLINE


RANKS = (1,) * MOST_AXES

ACCEPTED: list[tuple[Mapping[str, Any], list[tuple[int, ...]]]] = [
    *[(evaluated(name, NARROW, axis=1), [(0,)]) for name in ("sum", "prod", "mean", "max", "argmax", "logsumexp")],
    *[(evaluated("sum", NARROW, axis=1, tree=tree), [(0,)]) for tree in ("fold", {"ring": 1}, "ring(3)")],
    (evaluated("sum", NARROW, axis=1, order="kahan", keepdims=True), [(0, 1)]),
    (evaluated("softmax", NARROW, axis=1), [NARROW.shape]),
    (evaluated("fft", zeros(0, 1 << 40, dtype="complex64")), [NARROW.shape]),
    (evaluated("matmul", NARROW, zeros(1 << 40, 0)), [(0, 0)]),
    (evaluated("matmul", NARROW, zeros(1 << 40, 0), tree={"ring": 1}), [(0, 0)]),
    (evaluated("matmul", zeros(1 << 40, 0, 3), zeros(1 << 40, 3, 0)), [(1 << 40, 0, 0)]),
    (evaluated("quantize", NARROW, wire="fp8_e4m3", block=1 << 40), [NARROW.shape, (0, 1)]),
    (evaluated("quantize", NARROW, wire="fp8_e4m3", block=1), [NARROW.shape, NARROW.shape]),
    (evaluated("quantize", zeros(3, 0), wire="fp8_e5m2", block=2), [(3, 0), (3, 0)]),
    (evaluated("quantize", ROW, wire="fp8_e4m3", block=1 << 63), [(4,), (1,)]),
    (evaluated("dequantize", zeros(4, dtype="bf16"), zeros(1), block=1 << 63), [(4,)]),
    (evaluated("dropout", NARROW, rate=0), [NARROW.shape]),
    (evaluated("uniform", **UNIFORM | {"shape": RANKS}), [RANKS]),
    (evaluated("normal", **UNIFORM | {"shape": RANKS}), [RANKS]),
    (evaluated("pow", zeros(*RANKS), zeros(*RANKS)), [RANKS]),
    (evaluated("sum", zeros(*RANKS), axis=-1, keepdims=True), [RANKS]),
    (evaluated("matmul", zeros(*RANKS), zeros(*RANKS)), [RANKS]),
]


@pytest.mark.parametrize(("parameters", "shapes"), ACCEPTED)
def test_what_is_odd_but_well_formed_is_answered_at_once(
    reference: ReferenceAdapter, parameters: Mapping[str, Any], shapes: list[tuple[int, ...]]
) -> None:
    began = time.monotonic()
    outputs = reference.numerics_evaluate(**parameters)["outputs"]
    assert [output.shape for output in outputs] == shapes
    assert time.monotonic() - began < DEADLINE


def test_buffers_of_many_axes_are_reduced(reference: ReferenceAdapter) -> None:
    outputs = reference.collectives_all_reduce(inputs=[zeros(*RANKS), zeros(*RANKS)], op="sum")["outputs"]
    assert [output.shape for output in outputs] == [RANKS, RANKS]


def test_an_input_of_a_program_with_too_many_axes_is_refused(reference: ReferenceAdapter) -> None:
    source = "module m { func f(x: fp32) -> fp32 { return x; } }"
    with pytest.raises(Refusal, match="a shape of 70 axes"):
        reference.language_execute(source=source, function="f", inputs={"x": zeros(*[1] * 70)})


def test_parameters_that_nobody_knows_are_ignored(reference: ReferenceAdapter) -> None:
    context = reference.runtime_tessInit(later=1)["context"]
    assert reference.runtime_tessGetNumericsPolicy(context=context, later=None)["policy"]["deterministic"] == 1
    assert reference.numerics_evaluate(**EXP, later=[])["outputs"][0].shape == (4,)
    assert reference.collectives_all_reduce(inputs=[ROW], op="max", algorithm="ring")["outputs"] == [ROW]
    assert reference.language_parse(source="module m {}", later={})["modules"][0]["name"] == "m"
    reference.session_reset(later=1)


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("tessMeshCreate", {"deviceIds": [0], "axes": {"xx": 1}}, "axes, a name in it, is 'xx'"),
        ("tessMeshCreate", {"deviceIds": [0], "axes": {"tp": "1"}}, "tp is '1'"),
        ("tessMeshCreate", {"deviceIds": 5, "axes": {}}, "deviceIds is 5"),
        ("tessMeshCreate", {"deviceIds": [0], "axes": {}, "null": 5}, "null is 5"),
        ("tessLaunch", {"kernel": 1, "mesh": 1, "cfg": {}, "argBuffer": "", "stream": 1}, "cfg.grid is None"),
        ("tessLaunch", {"kernel": 1, "mesh": 1, "cfg": 3, "argBuffer": "", "stream": 1}, "cfg is 3"),
        ("tessxSetEnvironment", {"variables": {"TESS_CACHE_DIR": 5}}, "variables.TESS_CACHE_DIR is 5"),
        ("tessxSetSchedule", {"policy": "replay", "choices": [-50]}, "choices is [-50]"),
    ],
)
def test_requests_of_the_runtime_that_make_no_sense(
    reference: ReferenceAdapter, method: str, params: dict[str, Any], message: str
) -> None:
    context = reference.runtime_tessInit()["context"]
    given = {**params, "context": context} if method == "tessMeshCreate" else params
    with pytest.raises(Refusal) as caught:
        getattr(reference, f"runtime_{method}")(**given)
    assert caught.value.outcome.code == "TESS_ERR_INVALID_VALUE"
    assert message in caught.value.outcome.message


@pytest.mark.parametrize("directory", ["a\0b", "\udc80"])
def test_a_cache_directory_that_no_file_system_has(reference: ReferenceAdapter, directory: str) -> None:
    reference.runtime_tessxSetEnvironment(variables={"TESS_CACHE_DIR": directory})
    with pytest.raises(Refusal, match="TESS_CACHE_DIR"):
        reference.runtime_tessInit()


DTYPES = list(ELEMENT_FORMATS)
"""Seconds that no answer takes."""


for _ in range(5000):
    DEEP = [DEEP]


REQUEST_ROW = Tensor("fp32", (4,), bytes(16))
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

ODD = [
    None,
    True,
    False,
    10**400,
    HUGE,
    [],
    {},
    DEEP,
    REQUEST_ROW,
    {"ring": 1},
    {"ring": -1},
    {3: 1},
    [[0, 1], 2],
    ["c", 0, 1],
]

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
    element = ELEMENT_FORMATS[dtype]
    count = prod(shape) * element.words
    top = 1 << (8 * element.word_bytes - 1)
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
    names = list(attributes_of(operation)) if operation in OPERATIONS else ["axis"]
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
    least, most = operand_counts(operation)
    inputs = odd_inputs(draw, most if draw.random() < 0.4 else least, operation)
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
    reference, draw, actual = make(), random.Random(0), dict.fromkeys(("answered", "refused", "unsupported"), 0)
    reference.runtime_tessInit()
    for _ in range(1000):
        actual[answer(reference, *odd_call(draw)).split()[0]] += 1
    assert min(actual["answered"], actual["refused"]) > 250
    assert actual["unsupported"] > 10
