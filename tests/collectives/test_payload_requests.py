"""Requests for payloads with arguments of any kind are answered or refused, and nothing is raised."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import ReferenceAdapter

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
