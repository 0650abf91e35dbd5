"""The bits of a fixed workload are the committed ones: whatever the level of SIMD dispatch, whatever the numpy.

`aarch64.sh` runs the same workload on another architecture.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COMMITTED = HERE / "workload.sha256"

NUMPY_VERSIONS = ("1.26.4" if sys.version_info < (3, 13) else "2.1.0", "2.2.6", "2.4.6")
WIDE_REGISTERS = ("AVX512", "X86_V4", "SVE")

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


@pytest.mark.parametrize("level", ["no wide registers", "baseline"])
def test_with_features_disabled(level: str, undisturbed: subprocess.CompletedProcess[str]) -> None:
    features = dispatched(undisturbed)
    wide = [feature for feature in features if feature.startswith(WIDE_REGISTERS)]
    disabled = wide if level == "no wide registers" else features
    if not disabled or (level == "no wide registers" and wide == features):
        pytest.skip(f"no such level between others: numpy dispatches to {features} on this processor")
    done = run_workload({"NPY_DISABLE_CPU_FEATURES": " ".join(disabled)})
    assert not set(disabled) & set(dispatched(done))
    same_digests(done.stdout)


@pytest.mark.parametrize("version", NUMPY_VERSIONS)
def test_under_other_numpy_versions(version: str, peer_folder: Callable[..., Path]) -> None:
    target = peer_folder(f"numpy-{version}", f"numpy=={version}", "--no-deps")
    done = run_workload({"TESSERA_PLAIN_NUMERICS": "1"}, target)  # a numba that is there is made for another numpy
    assert done.stderr.startswith(f"numpy {version},")
    same_digests(done.stdout)
