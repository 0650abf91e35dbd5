"""Bounds on size, words of refusals, and requests with arguments of any kind."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.protocol import Rejected
from tessera_conformance.tensors import Tensor
from tessera_reference.abi.status import Failure, Status
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.collectives.compression import (
    MOST_CHUNKS,
    ChunkSize,
    chunks_of,
    compress,
    feed_back,
    read_compression,
)
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import NonFinite, ShapeMismatch, TooLarge
from tessera_reference.numerics.formats import DTYPES


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


def fp32(values: Any) -> Array:
    return Array(FP32, np.array(values, np.float32))


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
    ("transfers", TRAVEL | {"devices": []}, "one at least"),
    ("run", {"operation": "broadcast", "inputs": [], "root": 0}, "no rank takes part"),
    ("dispatch", {"inputs": [], "experts": [], "count": 2}, "no rank takes part"),
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
