"""The suite's own messages follow the published schemas, and what a message may hold survives the wire."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_conformance.observations import Diagnostic, Rejected, Returned, Unsupported
from tessera_conformance.protocol import ProtocolViolation, read_hello, read_outcome, write_outcome
from tessera_conformance.schemas import first_problem
from tessera_conformance.tensors import ELEMENT_FORMATS, MalformedTensor, Tensor, from_wire, to_wire

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_messages_of_the_suite_follow_the_schemas(tmp_path):
    problems = tmp_path / "problems"
    paths = [ROOT / "conformance" / "harness", ROOT / "reference", Path(__file__).parent / "fakes"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "validates_messages", "-p", "no:cacheprovider"]
    subprocess.run(
        [*command, f"--report-dir={tmp_path}", "--shard=1/48", "conformance"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "MESSAGE_PROBLEMS": str(problems)},
        check=True,
        capture_output=True,
    )
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
        ({"protocol": {"minimum": 2, "maximum": 3}}, "speaks protocol 2 to 3, the harness 1"),
        ({"capabilities": {"random-ops": "maybe"}}, "capabilities"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_malformed_hello_is_refused(change, complaint):
    with pytest.raises(ProtocolViolation) as caught:
        read_hello({**HELLO, **change})
    assert complaint in str(caught.value)
