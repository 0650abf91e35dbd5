"""Messages, tensors and kernels as the protocol has them, and differences between tensors."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_conformance.chapters.ir.kit.kernel_texts import (
    FIRST_OPERATION,
    KernelText,
    buffer,
)
from tessera_conformance.chapters.runtime.kit.calls import CALLS, HANDLES, OUTPUTS, POINTERS
from tessera_conformance.chapters.runtime.kit.encoding import packed
from tessera_conformance.check import first_difference, value_difference
from tessera_conformance.protocol import (
    Diagnostic,
    ProtocolViolation,
    Rejected,
    Returned,
    Unsupported,
    read_hello,
    read_outcome,
    write_outcome,
)
from tessera_conformance.registry.cases import case_index
from tessera_conformance.schemas import first_problem, schemas
from tessera_conformance.tensors import ELEMENT_FORMATS, MalformedTensor, Tensor, from_wire, to_wire

from .conftest import FAKES

# The suite's own messages follow the published schemas, and what a message may hold survives the wire.

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_messages_of_the_suite_follow_the_schemas(run_suite, tmp_path):
    problems = tmp_path / "problems"
    chosen = tmp_path / "cases.txt"
    chosen.write_text("\n".join(name for name in case_index() if zlib.crc32(name.encode()) % 128 == 0))
    variables = {"MESSAGE_PROBLEMS": str(problems), "SMALLER_SUITE": str(chosen)}
    plugins = ("-p", "validates_messages", "-p", "smaller_suite")
    done = run_suite(*plugins, "conformance", folders=(FAKES,), environment=variables)
    assert done.exit_code == 0, done.output
    lines = problems.read_text().splitlines()
    assert len(lines) > 100
    assert sorted(set(lines)) == ["checked"]


def tensors() -> st.SearchStrategy[Tensor]:
    def of(dtype: str, shape: list[int]) -> st.SearchStrategy[Tensor]:
        layout = ELEMENT_FORMATS[dtype]
        size = layout.word_bytes * layout.words
        for extent in shape:
            size *= extent
        return st.binary(min_size=size, max_size=size).map(lambda data: Tensor(dtype, tuple(shape), data))

    shapes = st.lists(st.integers(0, 4), max_size=3)
    return st.tuples(st.sampled_from(sorted(ELEMENT_FORMATS)), shapes).flatmap(lambda pair: of(*pair))


@given(tensors())
@settings(derandomize=True)
def test_a_tensor_survives_the_wire(tensor):
    message = to_wire(tensor)
    assert first_problem("tessera:protocol/messages", "tensor", message) is None
    assert from_wire(message) == tensor


def test_the_most_significant_digit_comes_first():
    assert Tensor.from_words("fp32", (), [0x3F800000]).bits() == "3f800000"
    assert Tensor.from_words("complex64", (1,), [0x3F800000, 0xC0000000]).bits() == "3f800000c0000000"


def test_a_large_tensor_is_a_file_with_its_digest(tmp_path):
    tensor = Tensor.from_words("fp32", (20000,), [1] * 20000)
    message = to_wire(tensor, tmp_path)
    assert first_problem("tessera:protocol/messages", "tensor", message) is None
    assert from_wire(message) == tensor
    Path(message["$tensor"]["file"]).write_bytes(bytes(80000))
    with pytest.raises(MalformedTensor, match="field sha256"):
        from_wire(message)


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ({"dtype": "fp31", "shape": [], "bits": ""}, "unknown dtype 'fp31'"),
        ({"dtype": "bf16", "shape": [2], "bits": "3f80"}, "takes 4 bytes, but 2 were given"),
        ({"dtype": "bf16", "shape": [1], "bits": "3f8"}, "not hexadecimal"),
        ({"dtype": "bf16", "shape": [1], "bits": "3f803f"}, "not a whole number of 4-digit bf16 words"),
        ({"dtype": "bf16", "shape": [-1], "bits": ""}, "negative extent"),
        ({"dtype": "bf16", "shape": "1", "bits": ""}, "field shape"),
        ({"dtype": "bf16", "shape": [True], "bits": "3f80"}, "field shape"),
        ({"shape": [1], "bits": "3f80"}, "field dtype"),
        ({"dtype": "bf16", "shape": [1]}, "either bits, or file"),
        ({"dtype": "bf16", "shape": [1], "file": "/no/such/file", "sha256": ""}, "is no plain file"),
        ("3f80", "expected an object"),
    ],
)
def test_a_malformed_tensor_says_what_is_wrong(message, complaint):
    with pytest.raises(MalformedTensor, match=complaint):
        from_wire({"$tensor": message})


OUTCOMES = [
    Returned({"warnings": []}),
    Rejected("types", "verify", "no", (Diagnostic("types", "no", line=3, column=4, operands=("a is int8",)),)),
    Rejected("TESS_ERR_TIMEOUT", "call", "late"),
    Unsupported("language.tile"),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_an_outcome_survives_the_wire(outcome):
    message = to_wire(write_outcome(outcome))
    assert first_problem("tessera:protocol/messages", "outcome", message) is None
    assert read_outcome("language.verify", message) == outcome


@pytest.mark.parametrize(
    ("outcome", "place"),
    [
        ({}, "message"),
        ({"returned": {"warnings": []}, "unsupported": {"feature": "x"}}, "message"),
        ({"returned": {}}, "'warnings' is a required property"),
        ({"returned": {"warnings": [{"category": "style", "message": "x"}]}}, "warnings[0].category"),
        ({"rejected": {"code": "x", "phase": "later", "message": ""}}, "rejected.phase"),
        ({"unsupported": {}}, "'feature' is a required property"),
        ([], "is not of type 'object'"),
    ],
)
def test_a_malformed_outcome_names_the_place(outcome, place):
    with pytest.raises(ProtocolViolation) as caught:
        read_outcome("language.verify", outcome)
    assert place in str(caught.value)


HELLO = {
    "protocol": {"minimum": 1, "maximum": 2},
    "implementation": {"name": "acme", "version": "2"},
    "documents": ["language_ir"],
    "capabilities": {"random-ops": "recorded", "stateful-ops": "unsupported"},
}


def test_a_hello_says_what_is_claimed():
    hello = read_hello(HELLO)
    assert hello.documents == ("language_ir",)
    assert [hello.has(feature) for feature in ("random-ops", "stateful-ops", "extra-dtypes")] == [True, False, False]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"documents": ["tessera"]}, "documents[0]"),
        ({"implementation": {"name": "acme"}}, "implementation"),
        ({"protocol": {"minimum": 2, "maximum": 3}}, "supports protocol 2 to 3, the harness 1"),
        ({"capabilities": {"random-ops": "maybe"}}, "capabilities"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_malformed_hello_is_refused(change, complaint):
    with pytest.raises(ProtocolViolation) as caught:
        read_hello({**HELLO, **change})
    assert complaint in str(caught.value)


# The schema of the runtime's methods: every method of the documentation, any argument, exact results.

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
    ("tessModuleLoad", {"image": 4096, "size": 0, "null": ["module"]}),
    ("tessLaunch", {"cfg": {**GRID, "flags": 1 << 31, "grid": [0, -1, 1]}, "argBuffer": None, "argSize": 7}),
    ("tessReduceScatter", {"op": 9, "dtype": 255, "axis": None}),
    ("tessSetNumericsPolicy", {"policy": {**POLICY, "deterministic": 255}}),
    ("tessxSetFaults", {"faults": [{"kind": "link_down", "ranks": [0, 1], "mesh": 3}, {"kind": "out_of_memory"}]}),
]


@pytest.mark.parametrize(("method", "change"), BAD)
def test_a_bad_argument_can_be_sent(method, change):
    assert first_problem(RUNTIME, f"{method}.params", LEGAL[method]) is None
    assert first_problem(RUNTIME, f"{method}.params", LEGAL[method] | change) is None


def test_arguments_are_packed_as_in_the_sample_of_the_specification():
    pointers = [("ptr", place) for place in (1, 2, 3, 4)]
    buffer = packed(*pointers, *[("int32", number) for number in (5, 6, 7, 8)], ("fp32", 1.0))
    assert len(buffer) == 0x38
    assert buffer[0x18:0x20] == bytes([4, 0, 0, 0, 0, 0, 0, 0])
    assert buffer[0x2C:0x30] == bytes([8, 0, 0, 0])
    assert buffer[0x30:] == bytes([0, 0, 0x80, 0x3F, 0, 0, 0, 0])


# The kinds of differences of tensors: three defects in one tensor are told apart.


def fp32(*words: int) -> Tensor:
    return Tensor("fp32", (len(words),), np.array(words, dtype="<u4").tobytes())


NAN, INFINITY, LARGEST, UNIT, TINY, ZERO, MINUS_ZERO = (
    *(0x7FC00000, 0x7F800000, 0x7F7FFFFF, 0x3F800000, 0x00000001, 0x00000000, 0x80000000),
)


def test_each_way_of_being_wrong_is_counted_with_its_first_element():
    expected = fp32(UNIT, NAN, INFINITY, TINY, ZERO, UNIT, UNIT, NAN)
    actual = fp32(UNIT, MINUS_ZERO, LARGEST, ZERO, MINUS_ZERO, UNIT + 1, UNIT + 9, UNIT)
    difference = first_difference(actual, expected)
    assert difference is not None
    assert (difference.elements, difference.of) == (7, 8)
    assert [(kind.kind, kind.elements, kind.index) for kind in difference.kinds] == [
        ("where NaN is expected", 2, (1,)),
        ("of infinities", 1, (2,)),
        ("where a subnormal or zero is expected", 1, (3,)),
        ("of the sign of zero", 1, (4,)),
        ("off by 1 ULP", 1, (5,)),
        ("off by several ULP", 1, (6,)),
    ]
    assert "7 of 8 elements differ: 2 where NaN is expected, first [1]: 0x80000000 for 0x7fc00000; " in (
        difference.sentence()
    )


def test_one_way_of_being_wrong_needs_no_list():
    difference = first_difference(fp32(UNIT + 1, UNIT + 1), fp32(UNIT, UNIT))
    assert difference is not None
    assert difference.kinds == ()
    assert difference.sentence().endswith("(2 of 2 elements differ)")


def test_neighbours_of_other_signs_are_not_one_ulp_apart():
    difference = first_difference(fp32(UNIT + 1, 0xBF800001), fp32(UNIT, UNIT))
    assert difference is not None
    assert [kind.kind for kind in difference.kinds] == ["off by 1 ULP", "off by several ULP"]


def test_a_format_without_infinity_and_complex_elements():
    largest, nan = 0x7E, 0x7F
    expected = Tensor("fp8_e4m3", (3,), bytes([nan, largest, 1]))
    difference = first_difference(Tensor("fp8_e4m3", (3,), bytes([largest, nan, 0])), expected)
    assert difference is not None
    assert [kind.kind for kind in difference.kinds] == [
        "where NaN is expected",
        "NaN where a number is expected",
        "where a subnormal or zero is expected",
    ]
    parts = np.array([UNIT, ZERO, UNIT, ZERO], dtype="<u4")
    changed = parts.copy()
    changed[[0, 1]] = [UNIT + 1, MINUS_ZERO]
    both = (Tensor("complex64", (2,), words.tobytes()) for words in (changed, parts))
    difference = first_difference(*both)
    assert difference is not None
    assert (difference.elements, [kind.index for kind in difference.kinds]) == (1, [(0,), (0,)])


@pytest.mark.parametrize(
    ("actual", "expected", "sentence"),
    [
        (
            bytes([*range(63), 0]).hex(),
            bytes(range(64)).hex(),
            "1 of 64 bytes differ, from byte 63 to byte 63; from byte 47 on: "
            f"expected {bytes(range(47, 64)).hex(' ')}, found {bytes([*range(47, 63), 0]).hex(' ')}",
        ),
        (
            bytes(40).hex(),
            bytes(41).hex(),
            f"40 bytes for 41; 0 of 40 bytes differ, from byte 40 to byte 40; from byte 24 on: "
            f"expected {bytes(17).hex(' ')}, found {bytes(16).hex(' ')}",
        ),
        ([*range(30), 7, 8], [*range(32)], "[30]: expected 30, found 7 (2 places differ)"),
        ([*range(31)], [*range(32)], "[31]: expected 31, found nothing"),
        (
            {"a": [1, {"name": "x" * 50, "size": 2}], "b": 3},
            {"a": [1, {"name": "x" * 50, "size": 4}], "b": 3},
            "a[1].size: expected 4, found 2",
        ),
        ([1.0, "x" * 80], [1, "x" * 80], "[0]: expected 1, found 1.0"),
        (
            "\n".join(["a line of a text"] * 5 + ["and an end"]),
            "\n".join(["a line of a text"] * 5 + ["and the end"]),
            "the texts differ:\n@@ -5,2 +5,2 @@\n a line of a text\n-and the end\n+and an end",
        ),
    ],
)
def test_the_first_place_where_values_differ_is_told(actual, expected, sentence):
    difference = value_difference(actual, expected)
    assert difference is not None
    assert difference.sentence() == sentence


def test_short_values_are_shown_whole():
    assert value_difference([1, 2], [1, 3]) is None


# Kernels are written as the protocol shows them.


def test_a_kernel_is_written_as_the_protocol_shows_it() -> None:
    kernel = KernelText({"x": buffer("fp32", 32), "y": buffer("fp32", 32)})
    place = kernel.index("thread_id")
    value = kernel.load(kernel["x"], place)
    kernel.store(kernel.compute("add", value, value), kernel["y"], place)
    page = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    shown = next(block for block in page.split("```") if '= "tss_kernel_k"' in block)
    names = {"%i": "%v1", "%a": "%v2", "%b": "%v3"}
    for written, made in names.items():
        shown = re.sub(rf"{written}\b", made, shown)
    assert kernel.module.split() == shown.split()
    assert kernel.module.splitlines()[FIRST_OPERATION - 1].strip().startswith("%v1 = ")
    assert kernel.line == FIRST_OPERATION + 3
