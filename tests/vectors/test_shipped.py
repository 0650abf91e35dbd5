"""The vectors of this checkout: sound, confirmed again, in step with their sources, readable by others."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance import cases
from tessera_conformance.commands.vectors import default_sources, recompute
from tessera_conformance.vectors import load
from tessera_conformance.vectors.building import counted, counter_bits

CHECKOUT = Path(__file__).resolve().parents[2]
TOPICS = sorted(
    f"{chapter}/{path.stem}" for chapter, folder in default_sources().items() for path in folder.rglob("*.py")
)


@pytest.mark.slow
def test_the_shipped_vectors_are_sound_and_in_step(project: Any) -> None:
    code, said = type(project)(cases.vectors_directory(), None, project.capsys)("check")
    assert code == 0, said


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("topic", TOPICS)
def test_every_shipped_vector_is_confirmed_again(topic: str, drawn: Callable[[int], int]) -> None:
    """A quarter of each topic, by a hash of the name; all with --whole, as by `vectors check --recompute`."""
    by_hash = sorted(load(topic), key=lambda vector: zlib.crc32(vector.id.encode()))
    assert [str(problem) for problem in recompute(by_hash[: drawn(len(by_hash))])] == []


def test_the_reference_would_freeze_the_same_bytes(project: Any) -> None:
    shipped = cases.vectors_directory() / "ir" / "selection.jsonl"
    again = type(project)(project.vectors, None, project.capsys)
    code, said = again("fill", "--impl=reference", "ir/selection")
    assert code == 0, said
    assert (project.vectors / "ir" / "selection.jsonl").read_bytes() == shipped.read_bytes()


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_loads(topic: str) -> None:
    vectors = load(topic)
    assert vectors
    assert {vector.topic for vector in vectors} == {topic}


def test_every_clause_is_registered() -> None:
    registered = "".join(path.read_text(encoding="utf-8") for path in cases.clauses_directory().glob("*.toml"))
    cited = {clause for topic in TOPICS for vector in load(topic) for clause in vector.clauses}
    assert [clause for clause in sorted(cited) if f'id = "{clause}"' not in registered] == []


def test_the_counter_is_splitmix64() -> None:
    """The first outputs from state 0, as published with the algorithm."""
    assert counter_bits(0, 3) == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert set(counter_bits(0, 100)).isdisjoint(counter_bits(1, 100))


@pytest.mark.parametrize("dtype", ["fp8_e4m3", "bf16", "fp32", "fp64"])
def test_counted_floats_stay_within_their_exponents(dtype: str) -> None:
    layout = counted(dtype, (1,), 0).format
    words = counted(dtype, (500,), seed=3, exponents=(-1, 2)).words().tolist()
    fields = {word >> layout.fraction_bits & ((1 << layout.exponent_bits) - 1) for word in words}
    bias = (1 << (layout.exponent_bits - 1)) - 1
    assert fields == set(range(bias - 1, bias + 3))
    assert len({word >> (8 * layout.word_bytes - 1) for word in words}) == 2


def read_by_node(topic: str) -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: apt-get install nodejs")
    path = cases.vectors_directory() / f"{topic}.jsonl"
    command = [node, str(CHECKOUT / "examples" / "read_vectors.mjs"), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_reader_in_another_language_agrees() -> None:
    title, *lines = read_by_node("ir/softmax").splitlines()
    vectors = load("ir/softmax")
    assert title == f"ir/softmax: {len(vectors)} vectors"
    assert [line.split("  ")[0] for line in lines] == [vector.name for vector in vectors]
    place = next(i for i, vector in enumerate(vectors) if vector.name == "fp32/small")
    expected = struct.unpack("<4f", vectors[place].expected[0].data[:16])
    assert [float(number) for number in lines[place].split("  ")[2].split()] == list(expected)
    narrow = next(i for i, vector in enumerate(vectors) if vector.name == "bf16/equal")
    assert lines[narrow] == "bf16/equal  bf16[2x4]  0.25 0.25 0.25 0.25"


def test_the_reader_in_another_language_reads_large_tensors() -> None:
    expected = "fp8_e4m3/subtract/all  fp8_e4m3[65536]  0x00 0x81 0x82 0x83"
    assert expected in read_by_node("ir/elementwise")
