"""The largest elements of a tensor as indices and values (collectives specification 2.5; AMB-COLL-27, -40, -41)."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import pytest

from tessera_conformance.chapters.collectives.kit.questions import OVER_RANKS
from tessera_conformance.chapters.collectives.kit.readings import RARE, is_lacking, recognize_negative_gaps
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.exact import FORMATS, INFINITY, Value, finite, is_infinite, values_of
from tessera_conformance.protocol import Observation, Returned
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted

FLOATS = ["fp32", "fp64", "tf32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2"]
INTEGERS = ["int8", "int16", "int32", "int64"]

TIES: list[tuple[str, list[int | float], int, list[int]]] = [
    ("fp32", [2, -2, 2, -2, 2], 3, [0, 1, 2]),
    ("fp32", [1, 3, -3, 3, 1], 2, [1, 2]),
    ("fp32", [1, -5, 1, 5, -1, 1], 4, [0, 1, 2, 3]),
    ("bf16", [0, 0, 0], 2, [0, 1]),
    ("int8", [-128, 127, -127, 127, -128], 3, [0, 1, 4]),
    ("int8", [127, -127, 126, -128], 2, [0, 3]),
    ("int64", [2**62, -(2**63), 2**63 - 1, 2**62 + 1], 2, [1, 2]),
    ("int64", [2**53, 2**53 + 1, -(2**53) - 2], 1, [2]),
    ("int32", [-3, 3, -3], 1, [0]),
    ("fp64", [1, 1 + 2.0**-40, 1 - 2.0**-40], 1, [1]),
    ("fp32", [2.0**-149, -(2.0**-148), 0, 2.0**-126], 2, [1, 3]),
]
"""A dtype, elements, k, and the indices that are kept."""


@feature("topk-sparsity")
@clause("COLL-02.5-05", "COLL-02.5-09")
@pytest.mark.parametrize(("dtype", "elements", "k", "kept"), TIES)
def test_of_equal_magnitudes_the_lower_index_is_kept(impl, check, dtype, elements, k, kept):
    """Signs do not count, nor does the order of values; indices ascend."""
    judge(impl, check, tensor_of(dtype, elements), k, kept)


@feature("topk-sparsity")
@clause("COLL-02.5-05", "COLL-02.5-09")
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("shape", [(37,), (3, 4, 5), (1,), (2, 0)])
def test_the_largest_elements_are_sent(impl, check, dtype, shape):
    """A tensor of any shape sends none, some or all of its elements; a dtype may be lacking (AMB-RT-59)."""
    x = counted(dtype, shape, seed=481)
    count = prod(shape)
    for k in sorted({0, min(1, count), count // 3, max(count - 1, 0), count}):
        by_size = sorted(range(count), key=lambda place: (-magnitude(values_of(x)[place]), place))
        judge(impl, check, x, k, sorted(by_size[:k]))


@feature("topk-sparsity")
@clause("COLL-02.5-05", "COLL-02.5-09")
@pytest.mark.parametrize("dtype", ["fp32", "fp64", "bf16", "fp16", "fp8_e5m2"])
def test_infinities_are_the_largest_and_zeros_the_smallest(impl, check, dtype):
    """A zero that is sent keeps its sign, and so does one that stays behind; a sent place becomes +0."""
    layout = FORMATS[dtype]
    words = [layout.encode(value, nonfinite=True) for value in (Fraction(7), INFINITY, Fraction(0), Fraction(1))]
    negative = layout.encode(Fraction(-1)) ^ layout.encode(Fraction(1))
    x = Tensor.from_words(
        dtype,
        (7,),
        [words[2] | negative, words[0], words[1] | negative, words[2], words[1], words[3], words[2] | negative],
    )
    judge(impl, check, x, 2, [2, 4])
    judge(impl, check, x, 5, [0, 1, 2, 4, 5])
    judge(impl, check, x, 6, [0, 1, 2, 3, 4, 5])


def sent_places(answer: Observation) -> list[Value]:
    """The indices of a message; none of a refusal."""
    return values_of(answer.value["indices"]) if isinstance(answer, Returned) else []


@feature("topk-sparsity")
@clause("COLL-02.5-05")
@pytest.mark.parametrize("dtype", ["fp32", "fp64", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2"])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_nan_is_refused(impl, check, dtype, place):
    """It has no magnitude; whether few or all elements are sent, it is not passed over (AMB-COLL-40)."""
    layout = FORMATS[dtype]
    words = [layout.encode(Fraction(number)) for number in (1, 2, 3, 4, 5)]
    check.returns(impl.collectives.sparsify(input=Tensor.from_words(dtype, (5,), words), k=2))
    words[place] = layout.sign_bit - 1
    for k in (1, 2, 5):
        call = impl.collectives.sparsify(input=Tensor.from_words(dtype, (5,), words), k=k)
        first = sent_places(call) == [place]
        check.reading("AMB-COLL-40", "NaN is the largest magnitude", first)
        check.status(call, "TESS_ERR_INVALID_VALUE")


@feature("topk-sparsity")
@clause("COLL-02.5-05")
@pytest.mark.parametrize("k", [-1, 7, 1 << 40])
def test_a_number_that_cannot_be_sent_is_refused(impl, check, k):
    """k is from 0 to the number of elements of the whole tensor (AMB-COLL-40)."""
    x = counted("fp32", (2, 3), seed=483)
    check.returns(impl.collectives.sparsify(input=x, k=6))
    call = impl.collectives.sparsify(input=x, k=k)
    check.reading("AMB-COLL-40", "k above n sends everything", k > 6 and sent_places(call) == list(range(6)))
    check.status(call, "TESS_ERR_INVALID_VALUE")


@feature("topk-sparsity")
@clause("COLL-02.5-05")
@pytest.mark.parametrize("dtype", ["bool", "complex64", "complex128"])
def test_what_has_no_magnitude_is_unsupported(impl, check, dtype):
    """Truth values and complex numbers have no order here."""
    x = Tensor(dtype, (3,), bytes(3 * {"bool": 1, "complex64": 8, "complex128": 16}[dtype]))
    check.status(impl.collectives.sparsify(input=x, k=1), "TESS_ERR_UNSUPPORTED")


@feature("topk-sparsity")
@clause("COLL-02.5-09")
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool", "complex64"])
def test_an_omitted_entry_is_zero(impl, check, dtype):
    """A receiver has +0 where no index points; the values are as they were sent; some dtypes may lack (AMB-RT-59)."""
    size = {"bool": 1, "complex64": 8}.get(dtype) or Tensor(dtype, (0,), b"").format.word_bytes
    sent = bytes([1, 0, 1]) if dtype == "bool" else bytes(range(1, 1 + 3 * size))
    call = impl.collectives.densify(
        indices=tensor_of("int64", [0, 3, 5]), values=Tensor(dtype, (3,), sent), shape=[2, 3]
    )
    gap = bytes(size)
    parts = [sent[:size], gap, gap, sent[size : 2 * size], gap, sent[2 * size :]]
    expected = Tensor(dtype, (2, 3), b"".join(parts))
    lacking = dtype in (*RARE, *OVER_RANKS) and is_lacking(call)
    check.given(not lacking, f"messages of {dtype} are there")
    dense = check.returns(call)["output"]
    recognize_negative_gaps(check, dense, expected, (0, 3, 5))
    check.bits(dense, expected, "the dense tensor")
    none = impl.collectives.densify(indices=Tensor("int64", (0,), b""), values=Tensor(dtype, (0,), b""), shape=[4])
    check.bits(check.returns(none)["output"], Tensor(dtype, (4,), bytes(4 * size)), "of an empty message")


@feature("topk-sparsity")
@clause("COLL-02.5-09")
@pytest.mark.parametrize(
    ("indices", "count"),
    [
        *(([0, 6], 2), ([-1, 2], 2), ([2, 1], 2), ([1, 1], 2), ([0, 1, 2], 2), ([0], 2), ([[0], [1]], 2)),
        *(([1 << 62], 1), ([0, 1, 2, 5, 4], 5), ([0, 1, 2, 3, 6], 5)),
    ],
    ids=repr,
)
def test_a_message_that_does_not_hold_together_is_refused(impl, check, indices, count):
    """Indices ascend, are within the shape, and are as many as the values."""
    values = counted("fp32", (count,), seed=485)
    check.returns(impl.collectives.densify(indices=tensor_of("int64", list(range(count))), values=values, shape=[2, 3]))
    call = impl.collectives.densify(indices=tensor_of("int64", indices), values=values, shape=[2, 3])
    if indices == [1, 1] and isinstance(call, Returned):
        first, last = map(finite, values_of(values))
        place = values_of(call.value["output"])[1]
        check.reading("AMB-COLL-41", "later duplicates win", place == last)
        check.reading("AMB-COLL-41", "duplicates add up", place == FORMATS["fp32"].round(first + last))
    if indices in ([2, 1], [0, 1, 2, 5, 4]) and isinstance(call, Returned):
        sent = dict(zip(indices, values.words().tolist(), strict=True))
        scattered = call.value["output"].words().tolist() == [sent.get(place, 0) for place in range(6)]
        check.reading("AMB-COLL-41", "indices in any order", scattered)
    check.status(call, "TESS_ERR_INVALID_VALUE")


@feature("topk-sparsity")
@clause("COLL-02.5-09")
def test_indices_are_of_one_dtype(impl, check):
    """int64, whatever the size of the tensor."""
    values = counted("fp32", (2,), seed=486)
    for dtype in ("int32", "fp32"):
        call = impl.collectives.densify(indices=tensor_of(dtype, [0, 1]), values=values, shape=[4])
        check.status(call, "TESS_ERR_INVALID_VALUE")


def judge(impl, check, x: Tensor, k: int, kept: list[int]) -> None:
    """The message of an element each, what stays behind, and what a receiver makes of it."""
    call = impl.collectives.sparsify(input=x, k=k)
    check.given(x.dtype not in (*RARE, *OVER_RANKS) or not is_lacking(call), f"messages of {x.dtype} are there")
    answer = check.returns(call)
    rows = x.size // x.shape[-1] if x.size else 0
    if k > 0 and rows > 1 and answer["indices"].shape == (rows * k,):
        in_rows = sorted(place // x.shape[-1] for place in answer["indices"].words().tolist())
        each = [row for row in range(rows) for _ in range(k)]
        check.reading("AMB-COLL-40", "k counts for each row", in_rows == each)
    sizes, places = list(map(magnitude, values_of(x))), answer["indices"].words().tolist()
    apart = places == sorted(set(places)) != kept and set(places) <= set(range(x.size))
    tied = apart and sorted(sizes[place] for place in places) == sorted(sizes[place] for place in kept)
    check.reading("AMB-COLL-27", "ties unspecified", tied)
    words = x.words().tolist()
    values = Tensor.from_words(x.dtype, (k,), [words[place] for place in kept])
    check.bits(answer["indices"], Tensor.from_words("int64", (k,), kept), f"k = {k}: indices")
    check.bits(answer["values"], values, f"k = {k}: values")
    left = [0 if place in kept else word for place, word in enumerate(words)]
    check.bits(answer["rest"], Tensor.from_words(x.dtype, x.shape, left), f"k = {k}: what stays behind")
    call = impl.collectives.densify(indices=answer["indices"], values=answer["values"], shape=list(x.shape))
    arrived = check.returns(call)["output"]
    dense = Tensor.from_words(x.dtype, x.shape, [word if place in kept else 0 for place, word in enumerate(words)])
    recognize_negative_gaps(check, arrived, dense, kept)
    check.bits(arrived, dense, f"k = {k}: what arrives")


def magnitude(value: Value) -> Fraction:
    """The size of an element; infinities are beyond every number of a dtype."""
    return Fraction(2) ** 2000 if is_infinite(value) else abs(finite(value))
