"""The results of a collective on the ranks, in place, along each axis, for each dtype (runtime specification, 4.6)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.collectives import (
    DTYPE_OPERATORS,
    FUNCTIONS,
    MESH_AXES,
    OPERATORS,
    asking,
    contributions,
    done,
    filled,
    gathered,
    groups,
    held,
    judge_reduced,
    parts_of,
)
from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import BYTES, COUNT, MAX, MIN, SUM, opened
from tessera_conformance.chapters.runtime.kit.readings import rejected, wrong_argument
from tessera_conformance.marks import clause, feature
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

REDUCTION_CLAUSE = {SUM: "RT-04.6-08", MAX: "RT-04.6-09", MIN: "RT-04.6-10"}
REDUCED = [pytest.param(op, marks=clause(REDUCTION_CLAUSE[op]), id=name) for op, name in OPERATORS.items()]
ALL_REDUCED = [
    pytest.param(dtype, op, marks=clause(REDUCTION_CLAUSE[op]), id=name)
    for name, (dtype, op) in DTYPE_OPERATORS.items()
]


def judge_all_reduce(session, actual: list[Tensor], inputs: list[Tensor], op: int, lists: list[list[int]]) -> None:
    """Every member of a group holds the reduction over the group, with the same bits."""
    for group in lists:
        for rank in group:
            members = [inputs[member] for member in group]
            if len(group) == 1:
                session.check.bits(actual[rank], inputs[rank], f"what rank {rank}, alone, has")
            else:
                judge_reduced(session.impl, session.check, actual[rank], members, op, f"what rank {rank} has")
            session.check.bits(actual[rank], actual[group[0]], f"what ranks {rank} and {group[0]} have")


# All-reduce


@feature("rank-memory")
@clause("RT-04.6-15")
@pytest.mark.parametrize(("dtype", "op"), ALL_REDUCED)
def test_all_reduce_combines_every_dtype(impl, check, dtype, op):
    """On three ranks, in place; integers wrap, truth values are or and and (AMB-RT-57, AMB-RT-59)."""
    session = gathered(impl, check, dp=3)
    inputs = contributions(dtype, 11, 3, seed=700)
    pointer = filled(session, inputs)
    done(session, "all_reduce", pointer, 11, dtype, op=op, axis="dp")
    judge_all_reduce(session, held(session, pointer, inputs), inputs, op, [[0, 1, 2]])


@feature("rank-memory")
@pytest.mark.parametrize("op", REDUCED)
@pytest.mark.parametrize(("sizes", "axis"), MESH_AXES)
def test_all_reduce_runs_along_its_axis(impl, check, sizes, axis, op):
    """Ranks that differ in that coordinate alone form a group (AMB-RT-02, AMB-RT-03)."""
    session = gathered(impl, check, **sizes)
    inputs = contributions("fp32", 5, session.ranks, seed=720)
    pointer = filled(session, inputs)
    done(session, "all_reduce", pointer, 5, "fp32", op=op, axis=axis)
    judge_all_reduce(session, held(session, pointer, inputs), inputs, op, groups(axis, **sizes))


@feature("rank-memory")
@pytest.mark.parametrize("op", REDUCED)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 1000])
def test_all_reduce_of_any_count(impl, check, count, op):
    """A count of zero changes nothing (AMB-RT-40); elements behind the count are not touched."""
    session = gathered(impl, check, dp=4)
    inputs = contributions("fp32", max(count, 1) + 3, 4, seed=740)
    pointer = filled(session, inputs)
    done(session, "all_reduce", pointer, count, "fp32", op=op, axis="dp")
    actual = held(session, pointer, inputs)
    for rank, tensor in enumerate(actual):
        rest = tensor.data[4 * count :].hex()
        check.equal(rest, inputs[rank].data[4 * count :].hex(), f"what stands behind the elements of rank {rank}")
    begun = [Tensor("fp32", (count,), operand.data[: 4 * count]) for operand in inputs]
    if count:
        results = [Tensor("fp32", (count,), buffer.data[: 4 * count]) for buffer in actual]
        judge_all_reduce(session, results, begun, op, [[0, 1, 2, 3]])


def special(dtype):
    """Infinities, but of fp8 (AMB-COLL-30), NaN, both zeros, a subnormal, one, the largest: as words."""
    layout = ELEMENT_FORMATS[dtype]
    one, top = 1 << layout.fraction_bits, (1 << layout.exponent_bits) - 1
    sign = 1 << layout.exponent_bits + layout.fraction_bits
    zeros, ones = [0, sign, 1], (1 << layout.exponent_bits - 1) - 1 << layout.fraction_bits
    if dtype == "fp8_e4m3":
        return [sign - 1, *zeros, ones, sign - 2]
    infinity = top * one
    numbers = [infinity + one // 2, *zeros, ones, infinity - 1]
    return numbers if dtype == "fp8_e5m2" else [infinity, sign + infinity, *numbers]


@feature("rank-memory")
@pytest.mark.parametrize("op", REDUCED)
@pytest.mark.parametrize("dtype", ["fp32", "fp64", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"])
def test_all_reduce_of_special_values(impl, check, dtype, op):
    """NaN spreads, -0 is below +0, infinities of both signs have no sum; subnormals are for strict (AMB-RT-59)."""
    session = gathered(impl, check, dp=2)
    words = special(dtype)
    rows = [[word for word in words for _ in words], words * len(words)]
    places = range(len(words) ** 2)
    kept = [place for place in places if impl.level == "strict" or 1 not in (rows[0][place], rows[1][place])]
    inputs = [Tensor.from_words(dtype, (len(kept),), [row[place] for place in kept]) for row in rows]
    pointer = filled(session, inputs)
    done(session, "all_reduce", pointer, len(kept), dtype, op=op, axis="dp")
    judge_all_reduce(session, held(session, pointer, inputs), inputs, op, [[0, 1]])


@feature("rank-memory")
@clause("RT-13-01")
@pytest.mark.parametrize("op", REDUCED)
def test_all_reduce_combines_every_element_of_a_large_buffer(impl, check, op):
    """Past a page and a block, with a remainder: three ranks bring whole numbers that differ from place to place."""
    session = gathered(impl, check, dp=3)
    count, factors = 5003, (3, -2, 7)
    rows = [[factor * place % 1009 - 500 for place in range(count)] for factor in factors]
    inputs = [Tensor("int32", (count,), elements("int32", *row)) for row in rows]
    pointer = filled(session, inputs)
    done(session, "all_reduce", pointer, count, "int32", op=op, axis="dp")
    combine = {SUM: sum, MAX: max, MIN: min}[op]
    expected = Tensor("int32", (count,), elements("int32", *map(combine, zip(*rows, strict=True))))
    for rank, actual in enumerate(held(session, pointer, inputs)):
        check.bits(actual, expected, f"what rank {rank} has")


@feature("rank-memory")
@clause("RT-04.6-08", "RT-04.6-15")
@pytest.mark.parametrize(("dtype", "bits"), [("int8", 8), ("int16", 16), ("int32", 32), ("int64", 64)])
def test_sums_of_integers_wrap(impl, check, dtype, bits):
    """The sum of the largest and of ones is the smallest, modulo a power of two (AMB-RT-57)."""
    session = gathered(impl, check, dp=3)
    largest = (1 << (bits - 1)) - 1
    rows = [[largest, -largest - 1, largest, 5], [1, -1, largest, -9], [0, 0, largest, 3]]
    expected = [-largest - 1, largest, largest - 2, -1]
    inputs = [Tensor(dtype, (4,), elements(dtype, *row)) for row in rows]
    pointer = filled(session, inputs)
    done(session, "all_reduce", pointer, 4, dtype, op=SUM, axis="dp")
    for rank, tensor in enumerate(held(session, pointer, inputs)):
        check.equal(values_of(dtype, tensor.data), expected, f"what rank {rank} has")


@clause("RT-04.6-08", "RT-04.6-09", "RT-04.6-10")
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("op", OPERATORS, ids=OPERATORS.values())
def test_all_reduce_of_what_a_kernel_left(impl, check, ranks, op):
    """Every rank holds sevens, which needs no access to single ranks; work behind it sees the result (AMB-RT-58)."""
    session = opened(impl, check, ranks=ranks)
    pointer, digit = session.allocate(BYTES), session.kernel("digit")
    session.launch(session.kernel("fill"), packed(("int32", 7), ("ptr", pointer)))
    done(session, "all_reduce", pointer, COUNT, "int32", op=op, axis="dp")
    session.launch(digit, packed(("int32", 4), ("ptr", pointer)))
    total = 7 * ranks if op == SUM else 7
    check.equal(session.integers(pointer), [10 * total + 4] * COUNT, "what rank 0 has")


@clause("RT-04.6-08")
def test_all_reduce_sums_every_element_of_more_than_a_mebibyte(impl, check):
    """Two ranks have the same whole numbers, which needs no access to single ranks; each is doubled."""
    session = opened(impl, check, ranks=2)
    count = (1 << 18) + 1001
    pointer = session.upload(elements("int32", *range(-1000, count - 1000)))
    done(session, "all_reduce", pointer, count, "int32", op=SUM, axis="dp")
    actual = values_of("int32", session.download(pointer, 4 * count))
    wrong = next((place for place, value in enumerate(actual) if value != 2 * (place - 1000)), None)
    check.equal(wrong, None, "the first place whose element is not doubled")


# Nothing to do, and nothing that can be done


CLAUSES = {
    "all_reduce": "RT-04.6-08",
    "reduce_scatter": "RT-04.6-11",
    "all_gather": "RT-04.6-12",
    "broadcast": "RT-04.6-13",
}
EVERY = [pytest.param(function, marks=clause(CLAUSES[function]), id=function) for function in FUNCTIONS]
WITH_AXIS = EVERY[:3]


@feature("rank-memory")
@pytest.mark.parametrize("collective", EVERY)
@pytest.mark.parametrize("null", [False, True], ids=["a buffer", "NULL"])
def test_a_collective_of_nothing_changes_nothing(impl, check, collective, null):
    """It succeeds; what a NULL buffer of nothing gives is not asserted, but nothing changes (AMB-RT-40)."""
    session = gathered(impl, check, dp=2)
    inputs = contributions("int32", 4, 2, seed=900)
    pointer = filled(session, inputs)
    answer = asking(session, collective, 0 if null else pointer, 0, "int32", **parts_of(collective))
    if not null:
        check.reading("AMB-RT-40", "INVALID_VALUE everywhere", rejected(answer, "TESS_ERR_INVALID_VALUE"))
        check.returns(answer, "a collective of nothing succeeds")
    session.synchronize()
    for rank, tensor in enumerate(held(session, pointer, inputs)):
        check.bits(tensor, inputs[rank], f"what rank {rank} has")


@feature("rank-memory")
@pytest.mark.parametrize("collective", WITH_AXIS)
@pytest.mark.parametrize("axis", ["tp", "pp", "ep"])
def test_an_axis_of_one_changes_nothing(impl, check, collective, axis):
    """Also one that was left at zero, and counts that no larger group would divide (AMB-RT-01, AMB-RT-03)."""
    session = gathered(impl, check, tp=1, dp=2, ep=0)
    inputs = contributions("fp32", 7, 2, seed=920)
    pointer = filled(session, inputs)
    answer = asking(session, collective, pointer, 7, "fp32", **parts_of(collective, axis))
    absent = axis == "ep" and rejected(answer, "TESS_ERR_INVALID_VALUE")
    check.reading("AMB-RT-03", "an absent axis is an error", absent)
    check.returns(answer, f"{collective} succeeds")
    for rank, tensor in enumerate(held(session, pointer, inputs)):
        check.bits(tensor, inputs[rank], f"what rank {rank} has")


@pytest.mark.parametrize(
    "collective",
    [
        pytest.param("reduce_scatter", marks=clause("RT-04.6-11")),
        pytest.param("all_gather", marks=clause("RT-04.6-12")),
    ],
)
@pytest.mark.parametrize(("ranks", "count"), [(2, 1), (2, 7), (3, 8), (8, 12), (4, 2)])
def test_a_count_that_the_ranks_do_not_divide_is_refused(impl, check, collective, ranks, count):
    """TESS_ERR_INVALID_VALUE at once (AMB-RT-04); all-reduce takes the same count."""
    session = opened(impl, check, ranks=ranks)
    pointer = session.upload(bytes(4 * count))
    answer = asking(session, collective, pointer, count, "fp32", **parts_of(collective))
    check.status(answer, "TESS_ERR_INVALID_VALUE")
    session.synchronize()
    done(session, "all_reduce", pointer, count, "fp32", op=SUM, axis="dp")
    session.synchronize()


@clause("RT-04.6-15")
@pytest.mark.parametrize("collective", FUNCTIONS)
@pytest.mark.parametrize("number", [0, 14, 15, -1, 100, 1 << 30])
def test_an_unknown_dtype_is_refused(impl, check, collective, number):
    """Ids are 1 to 13 (AMB-RT-59)."""
    session = opened(impl, check)
    answer = asking(session, collective, session.upload(bytes(64)), 4, number, **parts_of(collective))
    wrong_argument(check, FUNCTIONS[collective], {"dtype": number}, answer)
    check.status(answer, "TESS_ERR_INVALID_VALUE")
    session.synchronize()


@feature("rank-memory")
@clause("RT-04.6-08", "RT-04.6-11", "RT-04.6-12", "RT-04.6-13")
def test_a_collective_may_use_a_part_of_an_allocation(impl, check):
    """The buffer begins at an offset that suits its elements; bytes before it stay."""
    session = gathered(impl, check, dp=2)
    inputs = contributions("int32", 12, 2, seed=940)
    pointer = filled(session, inputs)
    done(session, "all_reduce", pointer + 16, 4, "int32", op=MAX, axis="dp")
    done(session, "broadcast", pointer + 32, 4, "int32", root=1)
    actual = held(session, pointer, inputs)
    rows = [values_of("int32", operand.data) for operand in inputs]
    middle = [max(pair) for pair in zip(rows[0][4:8], rows[1][4:8], strict=True)]
    for rank, tensor in enumerate(actual):
        expected = rows[rank][:4] + middle + rows[1][8:]
        check.equal(values_of("int32", tensor.data), expected, f"what rank {rank} has")
