"""Collectives judged by what rank 0 reads, with nothing but the functions of the text (runtime specification, 4.6, 13).

Every rank begins with the same bytes, which a copy or a kernel has put there. What a reduce-scatter leaves is of each
rank its own share. So an all-gather behind it has to bring every share to rank 0, and a broadcast that of its root.
Cases that fill and read ranks one by one are in `test_collective_results.py` (feature rank-memory).
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.collectives import done, gathered, groups, share
from tessera_conformance.chapters.runtime.kit.encoding import packed, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import BYTES, COUNT, DTYPE_IDS, MAX, SUM, MeshSession
from tessera_conformance.marks import clause
from tessera_conformance.tensors import Tensor

MESHES = {
    "four along dp": ({"dp": 4}, "dp"),
    "tp of two axes": ({"tp": 2, "dp": 2}, "tp"),
    "ep of two axes": ({"pp": 2, "ep": 2}, "ep"),
}
ON_MESHES = pytest.mark.parametrize(("sizes", "axis"), MESHES.values(), ids=MESHES)

ONE_TO_FOUR = {
    "fp8_e4m3": [0x38, 0x40, 0x44, 0x48],
    "fp8_e5m2": [0x3C, 0x40, 0x42, 0x44],
    "fp16": [0x3C00, 0x4000, 0x4200, 0x4400],
    "bf16": [0x3F80, 0x4000, 0x4040, 0x4080],
    "fp32": [0x3F800000, 0x40000000, 0x40400000, 0x40800000],
    "fp64": [0x3FF0 << 48, 0x4000 << 48, 0x4008 << 48, 0x4010 << 48],
    **{name: [1, 2, 3, 4] for name in ("int8", "int16", "int32", "int64")},
}
"""The words of 1, 2, 3 and 4; twice 1 is 2 and twice 2 is 4, so that sums over two ranks are words of this list."""
DOUBLED = {1: 2, 2: 4}


def words(dtype: str, *numbers: int) -> Tensor:
    """A tensor of numbers from 1 to 4; those of a complex dtype have the same imaginary part."""
    if dtype.startswith("complex"):
        part = words("fp32" if dtype == "complex64" else "fp64", *(number for number in numbers for _ in range(2)))
        return Tensor(dtype, (len(numbers),), part.data)
    return Tensor.from_words(dtype, (len(numbers),), [ONE_TO_FOUR[dtype][number - 1] for number in numbers])


def held_by_first(session: MeshSession, pointer: int, like: Tensor) -> Tensor:
    """Return rank 0's tensor when everything queued is done."""
    return Tensor(like.dtype, like.shape, session.download(pointer, len(like.data)))


def doubled(dtype: str, *numbers: int) -> Tensor:
    """The sum over two ranks that hold the same."""
    return words(dtype, *(DOUBLED[number] for number in numbers))


@clause("RT-04.6-11")
@ON_MESHES
def test_reduce_scatter_leaves_rank_0_its_share(impl, check, sizes, axis):
    """Behind a kernel, and before one that reads what is there: sevens times the ranks of the axis (AMB-RT-04)."""
    session = gathered(impl, check, **sizes)
    pointer = session.allocate(BYTES)
    session.launch(session.kernel("fill"), packed(("int32", 7), ("ptr", pointer)))
    done(session, "reduce_scatter", pointer, COUNT, "int32", op=SUM, axis=axis)
    session.launch(session.kernel("digit"), packed(("int32", 4), ("ptr", pointer)))
    ranks = len(groups(axis, **sizes)[0])
    own = session.integers(pointer)[: COUNT // ranks]
    check.equal(own, [10 * 7 * ranks + 4] * (COUNT // ranks), "the share of rank 0")


@clause("RT-04.6-11", "RT-04.6-12")
@ON_MESHES
def test_a_gather_brings_the_share_of_every_rank(impl, check, sizes, axis):
    """All of what the ranks of the axis have reduced is on rank 0, in order of the ranks (AMB-RT-04)."""
    session = gathered(impl, check, **sizes)
    begun = [1 + place for place in range(COUNT)]
    data = b"".join(number.to_bytes(4, "little") for number in begun)
    pointer = session.upload(data)
    done(session, "reduce_scatter", pointer, COUNT, "int32", op=SUM, axis=axis)
    done(session, "all_gather", pointer, COUNT, "int32", axis=axis)
    ranks = len(groups(axis, **sizes)[0])
    check.equal(session.integers(pointer), [ranks * number for number in begun], "what rank 0 has")


@clause("RT-04.6-13")
@pytest.mark.parametrize("root", range(4))
def test_a_broadcast_brings_what_its_root_has(impl, check, root):
    """The share that a reduce-scatter has left the root is on rank 0 then (AMB-RT-04)."""
    session = gathered(impl, check, dp=4)
    begun = Tensor("int32", (COUNT,), b"".join((3 + index).to_bytes(4, "little") for index in range(COUNT)))
    pointer = session.upload(begun.data)
    done(session, "reduce_scatter", pointer, COUNT, "int32", op=SUM, axis="dp")
    done(session, "broadcast", pointer, COUNT, "int32", root=root)
    actual = share(held_by_first(session, pointer, begun), root, 4)
    expected = [4 * value for value in values_of("int32", share(begun, root, 4).data)]
    check.equal(values_of("int32", actual.data), expected, f"what rank 0 has of rank {root}")


@clause("RT-04.6-15")
@pytest.mark.parametrize("dtype", [name for name in DTYPE_IDS if name != "bool"])
def test_elements_are_added_as_the_dtype_says(impl, check, dtype):
    """One and two, doubled by two ranks: in every dtype but that of truth values other bits than any other's sum."""
    session = gathered(impl, check, dp=2)
    begun, expected = words(dtype, 1, 2, 2, 1), doubled(dtype, 1, 2, 2, 1)
    pointer = session.upload(begun.data)
    done(session, "all_reduce", pointer, 4, dtype, op=SUM, axis="dp")
    check.bits(held_by_first(session, pointer, begun), expected, "what rank 0 has")


@clause("RT-04.6-15")
def test_the_maximum_of_truth_values_is_or(impl, check):
    """Their maximum is or, which leaves what is the same on every rank (AMB-RT-57)."""
    session = gathered(impl, check, dp=2)
    begun = Tensor("bool", (4,), bytes([1, 0, 0, 1]))
    pointer = session.upload(begun.data)
    done(session, "all_reduce", pointer, 4, "bool", op=MAX, axis="dp")
    check.bits(held_by_first(session, pointer, begun), begun, "what rank 0 has")


@clause("RT-13-09")
@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_no_bit_of_a_sum_is_lost_on_the_wire(impl, check, dtype, ranks):
    """Numbers of full precision, added by a power of two of ranks: the sum is exact, whatever its order."""
    session = gathered(impl, check, dp=ranks)
    width, exponent = (32, 23) if dtype == "fp32" else (64, 52)
    one = ((1 << (width - exponent - 2)) - 1) << exponent
    lowest = [one + addend for addend in (1, 3, 0x155555, (1 << exponent) - 1)]
    begun = Tensor.from_words(dtype, (4,), lowest)
    step = (ranks.bit_length() - 1) << exponent
    pointer = session.upload(begun.data)
    done(session, "all_reduce", pointer, 4, dtype, op=SUM, axis="dp")
    expected = Tensor.from_words(dtype, (4,), [word + step for word in lowest])
    check.bits(held_by_first(session, pointer, begun), expected, "what rank 0 has")
