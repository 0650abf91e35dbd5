"""The arithmetic of all-reduce (language specification 9 and 15; runtime specification 6 and 13)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.collectives.kit.readings import RARE, is_lacking, takes_wide_wires
from tessera_conformance.chapters.runtime.kit.policies import set_policy
from tessera_conformance.chapters.runtime.kit.readings import rejected
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.protocol import Returned
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import Question, golden, judge, judge_declared

POLICIES = {"deterministic": (0, 1, 1, 0), "strict": (1, 1, 1, 0)}
BF16 = pytest.param("bf16", marks=feature("bf16-collectives"), id="bf16")
FIELDS = ("stableReductions", "deterministic", "rngStateless", "allowFastMath")


@golden("collectives/all_reduce")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic; infinities are ordered as numbers (AMB-COLL-30).

    A library may lack truth values and others (AMB-RT-59).
    """
    dtype = vector.call.params["inputs"][0].dtype
    if dtype in RARE:
        lacking = is_lacking(impl.collectives.all_reduce(**vector.call.params))
        check.given(not lacking, f"collectives of {dtype} are there")
    judge(impl, check, vector)


@feature("operation-access")
@clause("LANG-15-10", "LANG-15-16", "RT-13-01")
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("dtype", [BF16, "fp32"])
def test_every_rank_gets_the_same_bits(impl, check, ranks, dtype):
    """All ranks use one order, whichever it is (AMB-LANG-109)."""
    inputs = [counted(dtype, (40,), seed=331 + rank, exponents=(-6, 6)) for rank in range(ranks)]
    outputs = check.returns(impl.collectives.all_reduce(inputs=inputs, op="sum"))["outputs"]
    check.equal(len(outputs), ranks, "the number of results")
    for rank, output in enumerate(outputs):
        check.bits(output, outputs[0], f"rank {rank} and rank 0")


@feature("operation-access")
@clause("RT-13-01", "LANG-15-16")
@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("dtype", ["int32", "fp32", BF16])
def test_max_and_min_are_those_of_all_ranks(impl, check, op, dtype):
    """The largest and smallest of exact values are exact at every level."""
    rows = [[1, -2, 3, 5], [4, -5, 6, 5], [0, 7, -8, 5]]
    outputs = check.returns(impl.collectives.all_reduce(inputs=[tensor_of(dtype, row) for row in rows], op=op))[
        "outputs"
    ]
    expected = [max(column) if op == "max" else min(column) for column in zip(*rows, strict=True)]
    for output in outputs:
        check.bits(output, tensor_of(dtype, expected), f"the {op} over ranks")


INFINITE = [[0x7C, 0xFC, 0x7C], [0x3C, 0x3C, 0xFC]]
"""Contributions of two ranks in fp8_e5m2: infinities of both signs, and ones."""
EXTREMES = {"max": [0x7C, 0x3C, 0x7C], "min": [0x3C, 0xFC, 0xFC]}
SATURATED = {"max": [0x7B, 0x3C, 0x7B], "min": [0x3C, 0xFB, 0xFB]}


@feature("operation-access", "fp8-collectives")
@clause("RT-13-01", "LANG-15-16")
@pytest.mark.parametrize("op", EXTREMES)
def test_infinities_are_ordered_as_numbers(impl, check, op):
    """They are the largest and the smallest, and stay infinite (AMB-COLL-30)."""
    inputs = [Tensor.from_words("fp8_e5m2", (3,), row) for row in INFINITE]
    outputs = check.returns(impl.collectives.all_reduce(inputs=inputs, op=op))["outputs"]
    actual = [tensor.words().tolist() for tensor in outputs]
    check.reading("AMB-COLL-30", "saturation", actual == [SATURATED[op]] * 2)
    for output in outputs:
        check.bits(output, Tensor.from_words("fp8_e5m2", (3,), EXTREMES[op]), f"the {op} over ranks")


@feature("operation-access", "collective-policy")
@clause("RT-13-09")
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("wire", ["fp8_e4m3", "bf16"])
def test_a_lossy_wire_is_refused_where_the_policy_is_deterministic(impl, check, policy, wire):
    """fp32 data over a narrower wire would lose bits, which deterministic and strict do not allow (AMB-RT-27)."""
    context = check.returns(impl.runtime.tessInit())["context"]
    given = dict(zip(FIELDS, policy, strict=True))
    set_policy(impl, check, context, given)
    inputs = [counted("fp32", (8,), seed=341 + rank) for rank in range(2)]
    check.returns(impl.collectives.all_reduce(inputs=inputs, op="sum", context=context))
    check.status(
        impl.collectives.all_reduce(inputs=inputs, op="sum", context=context, wire=wire),
        "TESS_ERR_DETERMINISM_VIOLATION",
    )


LOSSLESS = [
    *((dtype, dtype) for dtype in ("fp64", "fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "int16", "int64")),
    *((dtype, "fp32") for dtype in ("bf16", "fp16", "fp8_e4m3", "fp8_e5m2")),
    ("fp32", "fp64"),
    ("fp8_e4m3", "bf16"),
    ("fp8_e5m2", "fp16"),
    ("int8", "int32"),
]
"""Data, and a wire that holds every value of theirs."""

LOST = {
    ("bf16", "fp16"): 1 << 20,
    ("fp16", "bf16"): 1 + 1 / 1024,
    ("fp8_e5m2", "fp8_e4m3"): 1 << 12,
    ("fp8_e4m3", "fp8_e5m2"): 1 + 1 / 8,
    ("fp64", "fp32"): 1 + 1 / (1 << 40),
    ("int32", "int16"): 1 << 20,
    ("int32", "fp32"): (1 << 24) + 1,
}
"""Data, a wire that lacks some of their values, and such a value."""


@feature("operation-access", "collective-policy")
@clause("RT-13-09")
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize(("dtype", "wire"), LOSSLESS)
def test_a_wire_that_holds_the_data_is_allowed_under_every_policy(impl, check, policy, dtype, wire):
    """The data's own dtype, or a wider one: nothing is quantized, and no bit changes (AMB-COLL-54)."""
    context = check.returns(impl.runtime.tessInit())["context"]
    given = dict(zip(FIELDS, policy, strict=True))
    set_policy(impl, check, context, given)
    spread = {} if dtype.startswith("int") else {"exponents": (-6, 6)}
    inputs = [counted(dtype, (23,), seed=381 + rank, **spread) for rank in range(5)]
    call = {"inputs": inputs, "op": "sum", "context": context}
    plain = check.returns(impl.collectives.all_reduce(**call))["outputs"]
    observed = impl.collectives.all_reduce(**call, wire=wire)
    if rejected(observed, "TESS_ERR_DETERMINISM_VIOLATION"):
        own = impl.collectives.all_reduce(**call, wire=dtype)
        check.reading("AMB-COLL-54", "only the data's own dtype loses nothing", isinstance(own, Returned))
        every = rejected(own, "TESS_ERR_DETERMINISM_VIOLATION")
        check.reading("AMB-COLL-54", "every wire is lossy", every)
    for rank, output in enumerate(check.returns(observed)["outputs"]):
        check.bits(output, plain[rank], f"rank {rank}, with the wire and without one")


@feature("operation-access", "collective-policy")
@clause("RT-13-09")
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize(("dtype", "wire"), LOST)
def test_a_wire_that_lacks_a_value_of_the_data_is_lossy_whatever_its_width(impl, check, policy, dtype, wire):
    """fp16 has fewer binades than bf16, bf16 fewer digits than fp16: neither holds the other (AMB-COLL-54, -62)."""
    context = check.returns(impl.runtime.tessInit())["context"]
    given = dict(zip(FIELDS, policy, strict=True))
    set_policy(impl, check, context, given)
    call = {"inputs": [tensor_of(dtype, [1, 2, 0, 4])] * 2, "op": "sum", "context": context}
    plain = check.returns(impl.collectives.all_reduce(**call))["outputs"]
    observed = impl.collectives.all_reduce(**call, wire=wire)

    def changed(data, over):
        """Return the answer to data that this wire does not carry."""
        inputs = [tensor_of(data, [1, LOST[data, over]])] * 2
        return impl.collectives.all_reduce(inputs=inputs, op="sum", context=context, wire=over)

    wide = takes_wide_wires(observed, wire, dtype, lambda: changed("fp64", "fp32"))
    check.reading("AMB-COLL-62", "widths are compared", wide)
    same = isinstance(observed, Returned) and observed.value["outputs"] == plain
    harmless = same and rejected(changed(dtype, wire))
    check.reading("AMB-COLL-62", "refused only where the values at hand change", harmless)
    check.status(observed, "TESS_ERR_DETERMINISM_VIOLATION")


@feature("operation-access", "collective-policy")
@clause("RT-13-09")
def test_nothing_is_lost_on_the_wire_where_the_policy_is_strict(impl, check):
    """Numbers that fp8 and bf16 do not have arrive whole: their sum with zero has all their bits."""
    context = check.returns(impl.runtime.tessInit())["context"]
    given = dict(zip(FIELDS, POLICIES["strict"], strict=True))
    set_policy(impl, check, context, given)
    x = tensor_of("fp32", [1 + 2.0**-23, 3 - 2.0**-22, 2.0**-100, 16777215])
    zero = tensor_of("fp32", [0, 0, 0, 0])
    for output in check.returns(impl.collectives.all_reduce(inputs=[x, zero], op="sum", context=context))["outputs"]:
        check.bits(output, x, "the sum with zero")


@feature("operation-access", "per-rank-issue")
@clause("RT-11-08", "RT-11-09", "RT-11-01")
@pytest.mark.parametrize(
    "other",
    [{"seed": 2}, {"stream": 1}, {"reduction_order": "fold"}, {"reduction_order": {"ring": 1}}],
    ids=["seed", "stream", "fold", "ring"],
)
def test_ranks_with_different_descriptors_are_refused(impl, check, other):
    """The same descriptor on every rank completes; a difference is TESS_ERR_DETERMINISM_VIOLATION."""
    inputs = [counted("fp32", (8,), seed=351 + rank) for rank in range(3)]
    common = {"seed": 1, "stream": 0, "reduction_order": "pairwise"}
    check.returns(impl.collectives.all_reduce(inputs=inputs, op="sum", descriptors=[common] * 3))
    for odd in range(3):
        brought = [common | other if rank == odd else common for rank in range(3)]
        check.status(
            impl.collectives.all_reduce(inputs=inputs, op="sum", descriptors=brought), "TESS_ERR_DETERMINISM_VIOLATION"
        )


@feature("operation-access", "per-rank-issue")
@pytest.mark.parametrize(
    "other",
    [
        pytest.param(counted("fp32", (9,), seed=361), marks=clause("LANG-15-11", "LANG-11-12"), id="count"),
        pytest.param(counted("bf16", (8,), seed=361), marks=clause("LANG-15-12"), id="dtype"),
    ],
)
def test_ranks_with_different_buffers_are_refused(impl, check, other):
    """A difference in count or dtype is TESS_ERR_COLLECTIVE_MISMATCH (AMB-RT-13)."""
    inputs = [counted("fp32", (8,), seed=362 + rank) for rank in range(2)]
    check.returns(impl.collectives.all_reduce(inputs=inputs, op="sum"))
    check.status(impl.collectives.all_reduce(inputs=[*inputs, other], op="sum"), "TESS_ERR_COLLECTIVE_MISMATCH")


@feature("operation-access")
@clause("LANG-15-10", "RT-06-03", "RT-06-04", "RT-13-01")
@level("deterministic")
@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
@pytest.mark.parametrize("dtype", ["fp32", BF16])
def test_ranks_are_combined_as_declared(impl, check, dtype, ranks):
    """The declared tree and arithmetic, replayed; on every rank, and the same bits on every run."""
    inputs = [counted(dtype, (48,), seed=371 + rank, exponents=(-7, 7)) for rank in range(ranks)]
    question = Question("all_reduce", inputs, {"op": "sum"})
    first = check.returns(impl.collectives.all_reduce(inputs=inputs, op="sum", level=impl.level))["outputs"]
    judge_declared(impl, check, question, first[0])
    for _ in range(4):
        outputs = check.returns(impl.collectives.all_reduce(inputs=inputs, op="sum", level=impl.level))["outputs"]
        for rank, output in enumerate(outputs):
            check.bits(output, first[0], f"deterministic: rank {rank}, the same bits on another run")
