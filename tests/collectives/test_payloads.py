"""Chunks, compression, top-k messages and tokens: properties, and requests with arguments of any kind."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.protocol import Rejected
from tessera_conformance.tensors import Tensor
from tessera_reference.abi import Failure, Status
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.collectives.chunks import MOST, MOST_CHUNKS, Chunk, ChunkSize, chunks_of, read_chunk_size
from tessera_reference.collectives.compression import WIRES, compress, densify, feed_back, read_compression, sparsify
from tessera_reference.collectives.queues import dispatch
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import NonFinite, ShapeMismatch, TooLarge
from tessera_reference.numerics.formats import DTYPES, DType, dtype

SHAPES = st.lists(st.integers(0, 9), max_size=4).map(tuple)
SIZES = st.builds(ChunkSize, st.sampled_from(["bytes", "rows", "columns"]), st.integers(1, 200))
TILES = st.tuples(st.integers(1, 5), st.integers(1, 5))


def elements(chunk: Chunk) -> list[int]:
    """The places that a chunk holds."""
    return [chunk.first + run * chunk.stride + i for run in range(chunk.runs) for i in range(chunk.count)]


@given(SHAPES, st.sampled_from(list(DTYPES.values())), SIZES, TILES)
def test_every_element_is_in_exactly_one_chunk(
    shape: tuple[int, ...], dtype: DType, size: ChunkSize, tile: tuple[int, int]
) -> None:
    found = chunks_of("f", shape, dtype, size, tile)
    places = [place for each in found for place in elements(each)]
    assert sorted(places) == list(range(prod(shape)))
    assert [each.first for each in found] == sorted(each.first for each in found)
    if size.measure != "columns":
        assert places == sorted(places)


@given(SHAPES, st.sampled_from(list(DTYPES.values())), SIZES, TILES)
def test_all_chunks_but_the_last_are_the_largest_that_fit(
    shape: tuple[int, ...], dtype: DType, size: ChunkSize, tile: tuple[int, int]
) -> None:
    found = chunks_of("f", shape, dtype, size, tile)
    width = prod(shape[-1:])
    unit = {"bytes": prod(tile), "rows": tile[0] * width, "columns": tile[1]}[size.measure]
    limit = {"bytes": size.amount // dtype.storage_bytes, "rows": size.amount * width, "columns": size.amount}
    for each, following in pairwise(found):
        assert each.count % unit == 0
        assert following.first == each.first + each.count
        assert each.count == unit or each.count <= limit[size.measure] < each.count + unit
        assert following.count <= each.count


@pytest.mark.parametrize(
    ("chunk", "chunk_bytes", "message"),
    [
        (None, None, "neither chunk nor chunk_bytes is given"),
        (0, None, "chunk is 0; expected bytes, as a whole number from 1 to 9223372036854775807"),
        (None, -1, "chunk_bytes is -1; expected bytes"),
        (True, None, "chunk is True"),
        (1.0, None, "chunk is 1.0"),
        (MOST + 1, None, "chunk is 9223372036854775808"),
        ("8589934592GiB", None, "chunk is 9223372036854775808; expected a whole number from 1 to 9223372036854775807"),
        ("0MiB", None, "chunk is 0"),
        ("0.3B", None, "chunk is '0.3B', 0.3 bytes; expected a whole number"),
        ("512KB", None, "in B, KiB, MiB, GiB"),
        ("9" * 21 + "B", None, "text like 512KiB"),
        ("1 KiB", None, "text like 512KiB"),
        ("٣KiB", None, "text like 512KiB"),
        ("1KiB\n", None, "text like 512KiB"),
        ([], None, "chunk is []"),
        ({"rows": 0}, None, "chunk.rows is 0; expected a whole number from 1"),
        ({"columns": "2"}, None, "chunk.columns is '2'"),
        ({"rows": 1, "columns": 1}, None, "members ['rows', 'columns']; expected rows or columns, one of the two"),
        ({}, None, "members []"),
        ({"rows": 2}, 64, "one of them, or the same number of bytes in both"),
        (64, 65, "chunk is 64 and chunk_bytes is 65"),
    ],
)
def test_sizes_that_are_refused(chunk: Any, chunk_bytes: Any, message: str) -> None:
    with pytest.raises(Failure, match=re.escape(message)) as caught:
        read_chunk_size("f", chunk, chunk_bytes)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_tensors_that_are_too_large_to_slice() -> None:
    small, fp32 = ChunkSize("bytes", 4), DTYPES["fp32"]
    assert len(chunks_of("f", (MOST_CHUNKS,), fp32, small)) == MOST_CHUNKS
    with pytest.raises(TooLarge, match="65537 chunks are too many"):
        chunks_of("f", (MOST_CHUNKS + 1,), fp32, small)
    with pytest.raises(TooLarge):
        chunks_of("f", (1 << 32, 1 << 32), fp32, small)
    with pytest.raises(ShapeMismatch):
        chunks_of("f", (1,) * 100, fp32, small)
    assert chunks_of("f", (0, 1 << 40), fp32, small) == []


FP32 = DTYPES["fp32"]
NUMBERS = st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=30)
WIRE_NAMES = st.sampled_from(list(WIRES))


def fp32(values: Any) -> Array:
    return Array(FP32, np.array(values, np.float32))


@given(NUMBERS, WIRE_NAMES, st.integers(1, 9))
def test_blocks_do_not_depend_on_the_shape(values: list[float], name: str, block: int) -> None:
    values = values[: len(values) // 2 * 2] or values * 2
    given_ = read_compression("f", name, "blockwise", block)
    flat, square = (compress("f", fp32(np.reshape(values, shape)), given_) for shape in ((-1,), (2, -1)))
    assert flat.payload.to_bits() == square.payload.to_bits()
    assert flat.restored.to_bits() == square.restored.to_bits()
    assert flat.scales is not None and square.scales is not None
    assert flat.scales.to_bits() == square.scales.to_bits()
    assert square.payload.shape == square.restored.shape == (2, len(values) // 2)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (("int8",), "wire dtype 'int8'; expected one of bf16, fp16, fp8, fp8_e4m3, fp8_e5m2"),
        ((None,), "wire dtype None"),
        (([],), "wire dtype []"),
        (("fp8", "rowwise"), "qscheme 'rowwise'; expected one of blockwise"),
        (("fp8", 5), "qscheme 5"),
        (("fp8", []), "qscheme []"),
        (("fp8", None, 4), "block 4 without a qscheme; expected qscheme = blockwise, or no block"),
        (("fp8", "blockwise", 0), "block 0; expected a whole number of elements from 1"),
        (("fp8", "blockwise", True), "block True"),
        (("fp8", "blockwise", 1 << 63), "block 9223372036854775808"),
    ],
)
def test_attributes_that_are_refused(attributes: tuple[Any, ...], message: str) -> None:
    with pytest.raises(Failure, match=re.escape(message)) as caught:
        read_compression("f", *attributes)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_an_element_without_a_scale_is_named_by_its_place() -> None:
    with pytest.raises(NonFinite, match=re.escape("nan at [1, 2] is not finite")):
        compress("f", fp32([[1, 2, 3], [4, 5, np.nan]]), read_compression("f", "fp8", "blockwise", 4))


def test_feedback_names_the_step_and_the_gradient_that_it_refuses() -> None:
    cast, one = read_compression("f", "fp16"), fp32([1.0])
    with pytest.raises(Failure, match="no gradients; expected one of each step"):
        feed_back("f", [], cast)
    with pytest.raises(Failure, match=re.escape("gradients[1] has the shape [2]; expected [1], as gradients[0] has")):
        feed_back("f", [one, fp32([1.0, 2.0])], cast)
    with pytest.raises(Failure, match=re.escape("gradients[1]: data of fp64")) as caught:
        feed_back("f", [one, Array(DTYPES["fp64"], np.ones(1))], cast)
    assert caught.value.status is Status.TESS_ERR_UNSUPPORTED
    with pytest.raises(NonFinite, match=re.escape("step 1, gradient and residual: inf at [0]")):
        feed_back("f", [one, fp32([np.inf])], cast)
    with pytest.raises(NonFinite, match="step 0, what is sent as fp16: inf"):
        feed_back("f", [fp32([70000.0])], cast)


def test_empty_tensors_and_scalars() -> None:
    for shape in ((), (0,), (2, 0)):
        for given_ in (read_compression("f", "fp8"), read_compression("f", "fp8", "blockwise", 2)):
            assert compress("f", fp32(np.ones(shape)), given_).payload.shape == shape
            assert feed_back("f", [fp32(np.ones(shape))] * 2, given_)[1].residual.shape == shape


def of(name: str, values: Any) -> Array:
    return Array(DTYPES[name], np.array(values, DTYPES[name].carrier))


@given(st.lists(st.integers(-3, 3), max_size=20), st.integers(0, 20), st.sampled_from(["fp32", "int8", "fp64"]))
def test_message_and_rest_are_the_tensor(values: list[int], k: int, name: str) -> None:
    x, k = of(name, values), min(k, len(values))
    found = sparsify("f", x, k)
    indices = found.indices.values.tolist()
    assert indices == sorted(sorted(range(len(values)), key=lambda i: (-abs(values[i]), i))[:k])
    dense = densify("f", found.indices, found.values, x.shape)
    assert (dense.values + found.rest.values).tolist() == values
    assert not dense.values[found.rest.values != 0].any()


@pytest.mark.parametrize("k", [-1, 4, True, 1.0, "2", None])
def test_k_has_a_range(k: Any) -> None:
    with pytest.raises(Failure, match="expected a whole number from 0 to 3") as caught:
        sparsify("f", of("fp32", [1, 2, 3]), k)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


@pytest.mark.parametrize(
    ("indices", "values", "message"),
    [
        (of("int32", [0]), of("fp32", [1]), "indices of int32; expected int64"),
        (of("int64", [0, 1]), of("fp32", [1]), "indices of shape [2] and values of shape [1]; expected one flat shape"),
        (of("int64", [[0]]), of("fp32", [[1]]), "one flat shape"),
        (of("int64", 0), of("fp32", 1), "one flat shape"),
        (of("int64", [0, 6]), of("fp32", [1, 2]), "indices[1] is 6; expected from 0 to 5"),
        (of("int64", [-1]), of("fp32", [1]), "indices[0] is -1; expected from 0 to 5"),
        (of("int64", [0, 3, 3]), of("fp32", [1, 2, 3]), "indices[2] is 3; expected more than 3, before it"),
    ],
)
def test_messages_that_are_refused(indices: Array, values: Array, message: str) -> None:
    with pytest.raises(Failure, match=re.escape(message)) as caught:
        densify("f", indices, values, [2, 3])
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


FLOATS = dtype("fp32")


def tokens(counts: list[int], features: int = 2) -> list[Array]:
    """Rows of a number of their own, from 1."""
    found, first = [], 1
    for count in counts:
        rows = np.arange(first, first + count, dtype=np.float32)
        found.append(Array(FLOATS, np.repeat(rows, features).reshape(count, features)))
        first += count
    return found


@given(data=st.data(), ranks=st.integers(1, 5), each=st.integers(1, 3))
def test_every_token_arrives_once_where_its_expert_is(data: st.DataObject, ranks: int, each: int) -> None:
    chosen = [data.draw(st.lists(st.integers(0, ranks * each - 1), max_size=6)) for _ in range(ranks)]
    inputs = tokens([len(own) for own in chosen])
    wanted = Counter(
        (float(row[0]), e)
        for brought, own in zip(inputs, chosen, strict=True)
        for row, e in zip(brought.values, own, strict=True)
    )
    arrived: Counter[tuple[float, int]] = Counter()
    for bucket in dispatch(inputs, chosen, ranks * each):
        for rank, output in enumerate(bucket.outputs):
            assert output.shape == (ranks * bucket.rows, 2)
            arrived.update((float(row[0]), bucket.experts[rank]) for row in output.values if row[0])
    assert arrived == wanted


ODD = [None, True, -1, 0, 1.5, 1 << 70, "", "fp8", "blockwise", "1KiB", [], [2, 2], {}, {"rows": 1}, {"rows": []}]
TENSORS = [
    Tensor("fp32", (4,), bytes(16)),
    Tensor("fp32", (), b"\x00\x00\xc0\x7f"),
    Tensor("int64", (2, 2), bytes(32)),
    Tensor("bool", (3,), bytes(3)),
    Tensor("complex64", (0,), b""),
]
METHODS = {
    "chunks": ("shape", "dtype", "chunk", "chunk_bytes", "tile"),
    "compress": ("input", "dtype", "qscheme", "block"),
    "feedback": ("gradients", "dtype", "qscheme", "block"),
    "sparsify": ("input", "k"),
    "densify": ("indices", "values", "shape"),
}


@pytest.mark.parametrize("method", METHODS)
def test_any_request_is_answered_or_refused(method: str) -> None:
    draw, reference = random.Random(17), ReferenceAdapter()
    codes: list[str] = []
    for _ in range(400):
        call: dict[str, Any] = {}
        for name in METHODS[method]:
            if draw.random() < 0.9:
                tensors = draw.choices(TENSORS, k=2)
                call[name] = draw.choice([*ODD, *TENSORS, tensors]) if draw.random() < 0.6 else sensible(draw, name)
        try:
            getattr(reference, f"collectives_{method}")(**call)
        except Refusal as refusal:
            codes.append(refusal.outcome.code)
        except NotSupported as construct:
            codes.append(str(construct))
    assert set(codes) <= {"TESS_ERR_INVALID_VALUE", "TESS_ERR_UNSUPPORTED"}
    assert 50 < len(codes) < 400


def sensible(draw: random.Random, name: str) -> Any:
    """A value that mostly fits."""
    return {
        "shape": [4],
        "dtype": draw.choice(["fp8", "bf16", "fp32"]),
        "chunk": draw.choice([8, "8B", {"columns": 2}]),
        "chunk_bytes": 8,
        "tile": [1, 2],
        "input": TENSORS[0],
        "qscheme": "blockwise",
        "block": 2,
        "gradients": [TENSORS[0]] * 2,
        "k": 1,
        "indices": Tensor("int64", (1,), bytes(8)),
        "values": Tensor("fp32", (1,), bytes(4)),
    }[name]


KNOBS = {"chunk_bytes": 8192, "max_inflight": 2}
MEASUREMENT = {"bytes": 1, "latency": 0, "picoseconds": 1}
TRAVEL = {"operation": "all_reduce", "algorithm": "ring", "count": 8, "element_bytes": 4, "topology": "eight-sm90"}
BUFFER = Tensor("int8", (1,), b"\1")
MALFORMED: list[tuple[str, dict[str, Any], str]] = [
    ("topology", {"topology": 1}, "topology"),
    ("topology", {"topology": "{" * 100_000}, "not JSON"),
    ("route", {"topology": "two-nodes", "source": True, "target": 1}, "source"),
    ("route", {"topology": "two-nodes", "source": 0, "target": 1.0}, "target"),
    ("route", {"topology": "two-nodes", "source": 0}, "target"),
    ("route", {"topology": "two-nodes", "source": 0, "target": 1, "down": [0]}, "down"),
    ("route", {"topology": "two-nodes", "source": 0, "target": 1, "environment": {"TESSERA_COLL_PATH": 1}}, "PATH"),
    ("select", {"collective": "all_reduce", "bytes": -1, "ranks": 1}, "bytes"),
    ("select", {"collective": "all_reduce", "bytes": 1, "ranks": 0}, "ranks"),
    ("select", {"collective": "all_reduce", "bytes": 1, "ranks": 1, "environment": ["x"]}, "environment"),
    ("check_chunks", {"topology": "single", "chunk_bytes": "1", "max_inflight": 1}, "chunk_bytes"),
    ("estimate", {"alpha": 1 << 63, "hops": 1, "bytes": 1, "bandwidth": 1}, "alpha"),
    ("overlap_score", {"compute": [[1]], "communication": []}, r"compute\[0\]"),
    ("overlap_score", {"compute": [], "communication": [[1, None]]}, r"communication\[0\]\[1\]"),
    ("tune", {"measurements": [MEASUREMENT | {"bytes": 1.5}], "knobs": KNOBS}, "bytes"),
    ("tune", {"measurements": [{"bytes": 1, "latency": 0}], "knobs": KNOBS}, "picoseconds"),
    ("tune", {"measurements": [], "knobs": {"chunk_bytes": 1}}, "max_inflight"),
    ("tune", {"measurements": [], "knobs": KNOBS | {"algos": "ring"}}, "algos"),
    ("tune", {"measurements": [], "knobs": KNOBS | {"algo": 1}}, "algo"),
    ("tune", {"measurements": [], "knobs": KNOBS, "limits": {"chunk_bytes": [1, 2, 3]}}, "chunk_bytes"),
    ("transfers", TRAVEL | {"cuts": [{"link": "nvlink0"}]}, r"cuts\[0\].at"),
    ("transfers", TRAVEL | {"cuts": [{"link": "nvlink0", "at": "5"}]}, r"cuts\[0\].at"),
    ("transfers", TRAVEL | {"cuts": [{"link": "nvlink0", "at": True}]}, r"cuts\[0\].at"),
    ("transfers", TRAVEL | {"cuts": [{"link": "nvlink0", "at": -1}]}, "-1"),
    ("transfers", TRAVEL | {"cuts": [{"link": "nvlink0", "at": 1, "for": 1}]}, "for"),
    ("send_recv", {"inputs": [BUFFER] * 3, "pairs": [[0]]}, r"pairs\[0\]"),
    ("send_recv", {"inputs": [BUFFER] * 3, "pairs": [[0, 1, 2]]}, r"pairs\[0\]"),
    ("send_recv", {"inputs": [BUFFER] * 3, "pairs": [["0", 1]]}, r"pairs\[0\]\[0\]"),
]


@pytest.mark.parametrize(("method", "given", "word"), MALFORMED)
def test_a_malformed_request_is_refused_by_name(method: str, given: dict[str, Any], word: str) -> None:
    with pytest.raises(Refusal, match=word) as caught:
        getattr(make(), f"collectives_{method}")(**given)
    assert isinstance(caught.value.outcome, Rejected)
    assert caught.value.outcome.code == "TESS_ERR_INVALID_VALUE"
