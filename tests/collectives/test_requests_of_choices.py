"""Requests that are malformed: refused with TESS_ERR_INVALID_VALUE by the name of what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_conformance.adapter import Refusal
from tessera_conformance.observations import Rejected
from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import make

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
