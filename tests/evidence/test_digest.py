"""The bits of a fixed workload, at any SIMD level and under any numpy; Philox's known answers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from tessera_reference.numerics.random import philox4x32, words

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COMMITTED = HERE / "workload.sha256"
VECTORS = HERE / "vectors.sha256"
NUMPY_VERSIONS = ("1.26.4" if sys.version_info < (3, 13) else "2.1.0", "2.2.6", "2.4.6")
LEVELS = ("no wide registers", "baseline")
WIDE_REGISTERS = ("AVX512", "X86_V4", "SVE")
EVERY_VECTOR = 13
"""One of this many vectors is computed again under another numpy."""
pytestmark = pytest.mark.slow


def run_workload(environment: Mapping[str, str], *paths: Path) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "NPY_DISABLE_CPU_FEATURES"}
    search = os.pathsep.join(str(path) for path in (*paths, ROOT / "reference"))
    command = [sys.executable, "-W", "error", str(HERE / "digest_workload.py")]
    environment = {**inherited, **environment, "PYTHONPATH": search}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def same_digests(found: str) -> None:
    reason, *expected = COMMITTED.read_text(encoding="utf-8").splitlines()
    assert reason.startswith("# ") and len(reason) > 10
    assert found.splitlines() == expected


@pytest.fixture(scope="module")
def undisturbed() -> subprocess.CompletedProcess[str]:
    return run_workload({})


def dispatched(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The features that numpy dispatched to, as the workload reports them."""
    return done.stderr.partition("dispatching: ")[2].replace("nothing", "").split()


def test_with_every_feature_of_this_processor(undisturbed: subprocess.CompletedProcess[str]) -> None:
    same_digests(undisturbed.stdout)


@pytest.mark.parametrize("level", LEVELS)
def test_with_features_disabled(level: str, undisturbed: subprocess.CompletedProcess[str]) -> None:
    disabled = disabled_at(level, undisturbed)
    done = run_workload({"NPY_DISABLE_CPU_FEATURES": " ".join(disabled)})
    assert not set(disabled) & set(dispatched(done))
    same_digests(done.stdout)


def disabled_at(level: str, undisturbed: subprocess.CompletedProcess[str]) -> list[str]:
    """The features that numpy must do without; skips where this processor has no such level."""
    features = dispatched(undisturbed)
    wide = [feature for feature in features if feature.startswith(WIDE_REGISTERS)]
    disabled = wide if level == "no wide registers" else features
    if not disabled or (level == "no wide registers" and wide == features):
        pytest.skip(f"no such level between others: numpy dispatches to {features} on this processor")
    return disabled


@pytest.mark.sampled(3)
@pytest.mark.parametrize("version", NUMPY_VERSIONS)
def test_under_other_numpy_versions(version: str, peer_folder: Callable[..., Path]) -> None:
    target = peer_folder(f"numpy-{version}", f"numpy=={version}", "--no-deps")
    done = run_workload({"TESSERA_PLAIN_NUMERICS": "1"}, target)
    assert done.stderr.startswith(f"numpy {version},")
    same_digests(done.stdout)


SAMPLED = """
import sys
from tessera_conformance.cases import vectors_directory
from tessera_conformance.commands.vectors import read_all, recompute

vectors = [vector for file in read_all(vectors_directory(), []) for vector in file.vectors][:: int(sys.argv[1])]
print(f"{len(vectors)} vectors", *recompute(vectors))
"""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("change", [*NUMPY_VERSIONS, *LEVELS])
def test_the_answers_of_vectors_have_the_same_bits(
    change: str,
    every: Callable[[int], int],
    peer_folder: Callable[..., Path],
    undisturbed: subprocess.CompletedProcess[str],
) -> None:
    """Those of a sample are the frozen ones. `vectors check --recompute --digest` prints one line for all answers."""
    paths = [ROOT / "reference", ROOT / "conformance" / "harness"]
    disabled = disabled_at(change, undisturbed) if change in LEVELS else []
    if change not in LEVELS:
        paths.insert(0, peer_folder(f"numpy-{change}", f"numpy=={change}", "--no-deps"))
    whole = every(EVERY_VECTOR) == 1
    command = ["-m", "tessera_conformance", "vectors", "check", "--recompute", "--digest"]
    environment = {**os.environ, "TESSERA_PLAIN_NUMERICS": "1", "PYTHONPATH": os.pathsep.join(map(str, paths))}
    environment |= {"NPY_DISABLE_CPU_FEATURES": " ".join(disabled)} if disabled else {}
    command = [sys.executable, *(command if whole else ("-c", SAMPLED, str(every(EVERY_VECTOR))))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    line = VECTORS.read_text(encoding="utf-8").strip()
    number = int(line.rpartition(" the answers of ")[2].split()[0])
    expected = line if whole else f"{-(-number // every(EVERY_VECTOR))} vectors"
    assert done.stdout.splitlines()[-1:] == [expected], done.stdout + done.stderr


KNOWN_ANSWERS = """
00000000 00000000 00000000 00000000 00000000 00000000   6627e8d5 e169c58d bc57ac4c 9b00dbd8
ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff   408f276d 41c83b0e a20bc7c6 6d5451fd
243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0   d16cfe09 94fdcceb 5001e420 24126ea1
"""
ROWS = [[int(word, 16) for word in line.split()] for line in KNOWN_ANSWERS.strip().splitlines()]


@pytest.mark.parametrize("row", ROWS)
def test_known_answers(row):
    counter, (key0, key1), expected = row[:4], row[4:6], row[6:]
    assert philox4x32(np.array(counter, np.uint64), (key0, key1)).tolist() == expected


def test_all_known_answers_in_one_call_with_the_key_of_the_first():
    """Vectorised evaluation gives each counter what it gets alone."""
    counters = np.array([row[:4] for row in ROWS], np.uint32)
    alone = [philox4x32(counter, (0, 0)).tolist() for counter in counters]
    assert philox4x32(counters, (0, 0)).tolist() == alone
    assert alone[0] == ROWS[0][6:]


def test_a_known_answer_by_seed_stream_and_word():
    """Seed and stream are the low word first, and so is the number of the block, when it is below 2**62."""
    c0, c1, c2, c3, k0, k1, *expected = ROWS[0]
    assert words(k0 | k1 << 32, c2 | c3 << 32, 4 * (c0 | c1 << 32), 4).tolist() == expected
    c0, c1, c2, c3, k0, k1, *_ = ROWS[2]
    block = (c0 | c1 << 32) % 2**62
    counter = np.array([block & 0xFFFFFFFF, block >> 32, c2, c3], np.uint64)
    actual = words(k0 | k1 << 32, c2 | c3 << 32, 4 * block, 4).tolist()
    assert actual == philox4x32(counter, (k0, k1)).tolist()
