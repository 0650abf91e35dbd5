"""The schema of the runtime's methods: every method of the documentation, any argument, exact results."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.chapters.runtime.kit.calls import CALLS, HANDLES, OUTPUTS, POINTERS
from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, values_of
from tessera_conformance.schemas import first_problem, schemas

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = "tessera:protocol/runtime"
AXES = {"tp": 2, "pp": 1, "dp": 4, "ep": 0}
POLICY = {"stableReductions": 1, "deterministic": 1, "rngStateless": 1, "allowFastMath": 0}
GRID = {"grid": [1, 1, 1], "block": [0, 0, 0], "shmemBytes": 0, "flags": 0}


def documented() -> list[str]:
    """The methods in the tables of docs/protocol.md."""
    page = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(tess\w+)\(", page, re.MULTILINE)


def test_the_schema_has_the_methods_of_the_page_and_no_others():
    named = {name.partition(".")[0] for name in schemas()[RUNTIME]["$defs"] if "." in name}
    assert named == set(documented())
    assert all(f"{name}.{part}" in schemas()[RUNTIME]["$defs"] for name in named for part in ("params", "result"))


def test_every_method_takes_null_outputs():
    definitions = schemas()[RUNTIME]["$defs"]
    assert all("null" in definitions[f"{name}.params"]["properties"] for name in documented())


def test_the_table_of_legal_calls_covers_every_c_function():
    functions = {name for name in documented() if not name.startswith("tessx")}
    assert functions - set(CALLS) == {"tessProfilerStop"}
    assert {*HANDLES, *POINTERS, *OUTPUTS} <= set(CALLS)


LEGAL = {
    "tessMeshCreate": {"context": 1, "deviceIds": [0, 1], "axes": AXES},
    "tessHostAlloc": {"bytes": 64, "kind": 1},
    "tessMemcpyAsync": {"dst": 1, "src": 2, "bytes": 3, "kind": 0, "stream": 4},
    "tessModuleLoad": {"context": 1, "image": "00ff"},
    "tessLaunch": {"kernel": 1, "mesh": 2, "cfg": GRID, "argBuffer": "", "stream": 3},
    "tessReduceScatter": {"mesh": 1, "inout": 2, "count": 3, "dtype": 5, "op": 0, "axis": "dp", "stream": 4},
    "tessSetNumericsPolicy": {"context": 1, "policy": POLICY},
    "tessxSetFaults": {"context": 1, "faults": [{"kind": "kernel_trap", "kernel": "k", "nth": 1}]},
}

BAD = [
    ("tessMeshCreate", {"nDevices": -1, "deviceIds": None, "axes": {"tp": -(1 << 31), "pp": 0, "dp": 0, "ep": 0}}),
    ("tessHostAlloc", {"kind": 7, "bytes": (1 << 64) - 1}),
    ("tessMemcpyAsync", {"stream": -1, "dst": 0, "kind": 9}),
    ("tessModuleLoad", {"image": None, "size": 1 << 64}),
    ("tessModuleLoad", {"image": 4096, "size": 0, "null": ["module"]}),
    ("tessLaunch", {"cfg": {**GRID, "flags": 1 << 31, "grid": [0, -1, 1]}, "argBuffer": None, "argSize": 7}),
    ("tessReduceScatter", {"op": 9, "dtype": 255, "axis": None}),
    ("tessSetNumericsPolicy", {"policy": None}),
    ("tessSetNumericsPolicy", {"policy": {**POLICY, "deterministic": 255}}),
    ("tessxSetFaults", {"faults": [{"kind": "link_down", "ranks": [0, 1], "mesh": 3}, {"kind": "out_of_memory"}]}),
]


@pytest.mark.parametrize(("method", "change"), BAD)
def test_a_bad_argument_can_be_sent(method, change):
    assert first_problem(RUNTIME, f"{method}.params", LEGAL[method]) is None
    assert first_problem(RUNTIME, f"{method}.params", LEGAL[method] | change) is None


MALFORMED = [
    ("tessModuleLoad", {"image": "0"}, "image"),
    ("tessModuleLoad", {"image": "0F"}, "image"),
    ("tessMeshCreate", {"axes": {"tp": 1}}, "axes"),
    ("tessHostAlloc", {"bytes": 1.5}, "bytes"),
    ("tessHostAlloc", {"kind": True}, "kind"),
    ("tessLaunch", {"cfg": {**GRID, "grid": [1, 1]}}, "cfg.grid"),
    ("tessxSetFaults", {"faults": [{"kind": "boom"}]}, "faults[0]"),
    ("tessReduceScatter", {"buffer": 2}, "buffer"),
]


@pytest.mark.parametrize(("method", "change", "place"), MALFORMED)
def test_a_malformed_request_is_none(method, change, place):
    assert place in str(first_problem(RUNTIME, f"{method}.params", LEGAL[method] | change))


RESULTS: list[tuple[str, Any, bool]] = [
    ("tessInit", {"context": 1}, True),
    ("tessInit", {}, False),
    ("tessInit", {"context": "1"}, False),
    ("tessShutdown", {}, True),
    ("tessShutdown", {"context": 1}, False),
    ("tessMalloc", {"devPtr": (1 << 64) - 1}, True),
    ("tessMalloc", {"devPtr": -1}, False),
    ("tessxHostRead", {"data": "00ff"}, True),
    ("tessxHostRead", {"data": "0"}, False),
    ("tessxFindings", {"findings": [{"kind": "overrun", "text": "x"}]}, True),
    ("tessxFindings", {"findings": [{"kind": "odd", "text": "x"}]}, False),
    ("tessxGetSchedule", {"choices": [0], "widths": [2]}, True),
    ("tessxGetSchedule", {"choices": [-1], "widths": [2]}, False),
]


@pytest.mark.parametrize(("method", "result", "legal"), RESULTS)
def test_results_are_exact(method, result, legal):
    assert (first_problem(RUNTIME, f"{method}.result", json.loads(json.dumps(result))) is None) is legal


def test_arguments_are_packed_as_in_the_sample_of_the_specification():
    pointers = [("ptr", place) for place in (1, 2, 3, 4)]
    buffer = packed(*pointers, *[("int32", number) for number in (5, 6, 7, 8)], ("fp32", 1.0))
    assert len(buffer) == 0x38
    assert buffer[0x18:0x20] == bytes([4, 0, 0, 0, 0, 0, 0, 0])
    assert buffer[0x2C:0x30] == bytes([8, 0, 0, 0])
    assert buffer[0x30:] == bytes([0, 0, 0x80, 0x3F, 0, 0, 0, 0])


def test_an_argument_is_aligned_to_its_size():
    assert (
        packed(("int8", 1), ("int32", 2), ("int16", 3), ("fp64", 0.0)).hex() == "0100000002000000"
        "0300000000000000" + "00" * 8
    )
    assert packed() == b""


def test_elements_are_read_as_they_were_written():
    assert elements("int32", 1, -1).hex() == "01000000ffffffff"
    assert values_of("int32", elements("int32", 1, -1)) == [1, -1]
    assert values_of("fp32", elements("fp32", 0.5)) == [0.5]
