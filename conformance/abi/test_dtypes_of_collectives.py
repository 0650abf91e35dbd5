"""The ids of dtypes where they are used: tessAllReduce by number, with golden bits (runtime spec, 19.B).

Every dtype has numbers whose sum as another dtype of its width has other bits. Sums of what all ranks hold alike need
the functions of the text alone; the golden vectors of all-reduce differ by rank (feature rank-memory).
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.collectives import asking, filled, gathered, held, judge_reduced
from tessera_conformance.chapters.runtime.kit.mesh_session import DTYPE_IDS, MAX, SUM
from tessera_conformance.marks import clause, feature, judges
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors import load
from tessera_conformance.vectors.building import counted

PARTS = {"complex64": "fp32", "complex128": "fp64"}
GOLDEN = {
    **{dtype: f"{dtype}/sum/ranks-3" for dtype in DTYPE_IDS if dtype.startswith(("fp", "bf"))},
    **{dtype: f"{dtype}/sum/wrapping" for dtype in DTYPE_IDS if dtype.startswith("int")},
    **{dtype: f"{dtype}/sum/counted" for dtype in PARTS},
    "bool": "bool/max",
}
"""The vector of `collectives/all_reduce` for each dtype."""

BEHIND = bytes([0x12, 0x34]) * 8
"""Bytes behind the last element, which a wider dtype would change."""

EACH = pytest.mark.parametrize(
    "dtype",
    [pytest.param(dtype, marks=clause(f"RT-19.B-{number:02}"), id=dtype) for dtype, number in DTYPE_IDS.items()],
)


def numbers(dtype: str) -> Tensor:
    """Numbers of many sizes, none of which is lost in a sum of four."""
    if dtype == "bool":
        return Tensor("bool", (4,), bytes([0, 1, 1, 0]))
    if dtype in PARTS:
        return Tensor(dtype, (16,), counted(PARTS[dtype], (32,), seed=811, exponents=(-5, 5)).data)
    if dtype.startswith("int"):
        return counted(dtype, (64,), seed=812)
    return counted(dtype, (64,), seed=813, exponents=(-5, 5))


@EACH
@pytest.mark.parametrize("ranks", [2, 4])
def test_a_sum_over_equal_ranks_is_that_of_the_dtype(impl, check, dtype, ranks):
    """The id of the table, numbers that all ranks hold alike: a power of two, which is exact (AMB-RT-59)."""
    session = gathered(impl, check, dp=ranks)
    x = numbers(dtype)
    pointer = session.upload(x.data + BEHIND)
    op = MAX if dtype == "bool" else SUM
    answer = asking(session, "all_reduce", pointer, x.shape[0], dtype, op=op, axis="dp")
    check.returns(answer, f"an all-reduce of dtype {DTYPE_IDS[dtype]}")
    data = session.download(pointer, len(x.data + BEHIND))
    check.equal(data[len(x.data) :].hex(), BEHIND.hex(), "the bytes behind the last element")
    actual = Tensor(dtype, x.shape, data[: len(x.data)])
    judge_reduced(impl, check, actual, [x] * ranks, op, f"the sum of {ranks} ranks, as {dtype}")


@EACH
@judges("acceptance")
def test_an_id_of_the_table_is_taken(impl, check, dtype):
    """Among one rank, as one device has it: the collective succeeds, and changes nothing (AMB-RT-03, AMB-RT-59)."""
    session = gathered(impl, check, dp=1)
    x = numbers(dtype)
    pointer = session.upload(x.data + BEHIND)
    op = MAX if dtype == "bool" else SUM
    answer = asking(session, "all_reduce", pointer, x.shape[0], dtype, op=op, axis="dp")
    check.accepts(answer, f"an all-reduce of dtype {DTYPE_IDS[dtype]}")
    check.equal(session.download(pointer, len(x.data + BEHIND)).hex(), (x.data + BEHIND).hex(), "the buffer")


@EACH
@feature("rank-memory")
def test_the_golden_sum_of_a_dtype_has_its_id(impl, check, dtype):
    """The frozen bits at strict, by the id of the table; at the other levels the declared order or the bound.

    A machine may lack a dtype, or round at each step (AMB-RT-57, AMB-RT-59).
    """
    (vector,) = [golden for golden in load("collectives/all_reduce") if golden.name == GOLDEN[dtype]]
    inputs = list(vector.call.inputs.values())
    session = gathered(impl, check, dp=len(inputs))
    pointer = filled(session, inputs)
    op = MAX if dtype == "bool" else SUM
    answer = asking(session, "all_reduce", pointer, inputs[0].shape[0], dtype, op=op, axis="dp")
    check.returns(answer, f"an all-reduce of dtype {DTYPE_IDS[dtype]}")
    for rank, actual in enumerate(held(session, pointer, inputs)):
        judge_reduced(impl, check, actual, inputs, op, f"the sum on rank {rank}")
        if impl.level == "strict":
            check.bits(actual, vector.expected[0], f"the golden sum on rank {rank}")
