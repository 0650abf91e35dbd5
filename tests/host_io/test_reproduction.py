"""The script of a case of the messages asks a running endpoint by itself, and says if it answers as it did."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tessera_conformance.reports import reproduce_endpoint

FOREIGN = Path(__file__).parent / "foreign"
DEFECTS = {
    "no_value": "abi/host-io/agreement/a-fill-without-a-value-is-refused/fill-u8",
    "no_fp16": "abi/host-io/accepted/a-pattern-of-each-kind-is-accepted/fill-fp16",
    "any_cube": "abi/host-io/reads/a-place-that-does-not-exist-cannot-be-read/cube",
    "no_answer": "abi/host-io/completion/a-request-that-succeeds-has-no-error/read",
}
"""Defects of the endpoint, and a case that each fails."""
AS_EXPECTED, DIFFERS, NO_ANSWER, UNDECIDED = 0, 1, 2, 3


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts an endpoint with some defects; returns its address."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*defects: str) -> str:
        path = tmp_path / f"{len(started)}.sock"
        started.append(subprocess.Popen([sys.executable, str(FOREIGN / "endpoint.py"), str(path), *defects]))
        while not path.exists():
            time.sleep(0.01)
        return f"unix:{path}"

    yield start
    for process in started:
        process.terminate()
        process.wait()


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_script_needs_the_standard_library_alone_and_tells_the_truth(
    endpoint: Callable[..., str], tmp_path: Path, defect: str
) -> None:
    """Exit code 1 while the defect is on, or 2 where it is silence, and 3 from an endpoint without it."""
    broken, sound = endpoint(defect), endpoint()
    implementation = f"--impl=hostio:{broken},description={FOREIGN / 'endpoint.toml'}"
    command = ["-m", "tessera_conformance", "reproduce", DEFECTS[defect], implementation]
    command += ["--deadline=4"] if defect == "no_answer" else []
    written = run(sys.executable, *command, folder=tmp_path)
    assert written.returncode == 1, written.stdout + written.stderr
    (script,) = (tmp_path / "reproduction").glob("*.py")
    alone = [sys.executable, "-I", "-S", "-W", "error", str(script)]
    on, off = run(*alone, folder=tmp_path), run(*alone, sound, folder=tmp_path)
    assert on.returncode == (NO_ANSWER if defect == "no_answer" else DIFFERS), on.stdout + on.stderr
    assert off.returncode == UNDECIDED, off.stdout + off.stderr
    assert "tessera_conformance" not in script.read_text(encoding="utf-8")
    nobody = run(*alone, f"unix:{tmp_path / 'none.sock'}", folder=tmp_path)
    assert (nobody.returncode, "no endpoint listens" in nobody.stdout) == (NO_ANSWER, True)
    nowhere = run(*alone, "nowhere", folder=tmp_path)
    assert (nowhere.returncode, "expected unix:PATH or tcp:HOST:PORT" in nowhere.stdout) == (NO_ANSWER, True)


def response(number: int, code: str | None, message: str | None = None, **members: object) -> dict[str, object]:
    completion = {"ok": code is None, "error_code": code, "error_message": message}
    return {"correlation_id": "c", "request_id": str(number), "completion": completion, **members}


def test_answers_are_the_same_in_another_order_and_with_other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    then = [response(0, None), response(1, "REFUSED", "no")]
    case = {"answers": [None, then], "verdict": "fail"}
    monkeypatch.setattr(reproduce_endpoint, "CASE", case)
    assert reproduce_endpoint.judge_all([None, [response(1, "REFUSED", "never"), response(0, None)]])[0] == DIFFERS
    for now in ([then[0]], [then[0], response(1, "OTHER", "no")], [then[1], response(0, None, latency=3)], None):
        assert reproduce_endpoint.judge_all([None, now])[0] == UNDECIDED
    case["verdict"] = "pass"
    assert reproduce_endpoint.judge_all([None, then])[0] == AS_EXPECTED
