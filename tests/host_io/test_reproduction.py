"""The script of a case of the messages asks a running endpoint by itself, and says if its defect is still there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.check import Check
from tessera_conformance.plugin import CASE
from tessera_conformance.protocol import Fault, Returned
from tessera_conformance.registry import load_registry
from tessera_conformance.reports.expected_answers import Search, function_of
from tessera_conformance.reports.reproduce_endpoint import differences, summary
from tessera_conformance.session import Exchange, Implementation
from tessera_conformance.strength.matrix import put, suite_of, transport_of
from tessera_conformance.strength.violation import load_violations
from tessera_conformance.suite_run import SuiteRun
from tessera_conformance.transports.locate import locate

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = Path(__file__).parent / "foreign"
DEFECTS = {
    "no_value": "abi/host-io/agreement/a-fill-without-a-value-is-refused/fill-u8",
    "no_fp16": "abi/host-io/accepted/a-pattern-of-each-kind-is-accepted/fill-fp16",
    "any_cube": "abi/host-io/reads/a-place-that-does-not-exist-cannot-be-read/cube",
    "no_answer": "abi/host-io/completion/a-request-that-succeeds-has-no-error/read",
}
"""Defects of the endpoint, and a case that each fails."""
AS_EXPECTED, DIFFERS, NO_ANSWER = 0, 1, 2


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
    """Exit code 1 while the defect is on, or 2 where it is silence, and 0 from an endpoint without it."""
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
    assert off.returncode == AS_EXPECTED, off.stdout + off.stderr
    assert "tessera_conformance" not in script.read_text(encoding="utf-8")
    nobody = run(*alone, f"unix:{tmp_path / 'none.sock'}", folder=tmp_path)
    assert (nobody.returncode, "no endpoint listens" in nobody.stdout) == (NO_ANSWER, True)
    nowhere = run(*alone, "nowhere", folder=tmp_path)
    assert (nowhere.returncode, "expected unix:PATH or tcp:HOST:PORT" in nowhere.stdout) == (NO_ANSWER, True)


def frame(number: int) -> str:
    return json.dumps({"correlation_id": "c", "request_id": str(number)})


def response(number: int, ok: bool, code: str | None = None, **members: object) -> str:
    ids = {"correlation_id": "c", "request_id": str(number)}
    message = None if ok else "no"
    return json.dumps({**ids, "completion": {"ok": ok, "error_code": code, "error_message": message}, **members})


def succeed_and_fail(impl: Implementation, check: Check) -> None:
    """The first of three requests has to succeed, the second to fail; what becomes of the third is not looked at."""
    told = check.returns(impl.host_io.exchange(frames=[frame(number) for number in range(3)]))
    answers = {answer["request_id"]: answer["completion"] for answer in map(json.loads, told["answers"])}
    check.equal(sorted(answers), ["0", "1", "2"], "the ids")
    check.equal([answers["0"]["ok"], answers["1"]["ok"]], [True, False], "success")


HELLO = {
    "protocol": {"minimum": 1, "maximum": 1},
    "implementation": {"name": "endpoint", "version": "1"},
    "documents": ["host_io"],
}


@pytest.mark.parametrize(
    "answers",
    [
        [response(0, True), response(1, True), response(2, True)],
        [response(2, False, "A"), response(0, False, "B"), response(1, True)],
        [response(0, True), response(1, False, "A")],
        [response(0, True), response(0, True), response(3, False, "A")],
        None,
    ],
    ids=["one-wrong", "two-wrong", "one-missing", "other-ids", "none"],
)
def test_the_answers_with_which_a_case_passes_are_found(answers: list[str] | None) -> None:
    observation = Fault("hang", "no answer") if answers is None else Returned({"answers": answers})
    params = {"frames": [frame(number) for number in range(3)]}
    exchanges = [Exchange("host_io.exchange", params, observation, 0.0)]
    expected = Search(succeed_and_fail, HELLO, exchanges, "strict").expected()
    assert expected is not None
    (first,) = expected
    assert first is not None
    sound = [response(0, True), response(1, False, "ANY"), response(2, True, latency=3)]
    assert [*differences(first, summary([*map(json.loads, sound)]), {})] == []
    wrong = [response(0, True), response(1, True), response(2, False, "ANY")]
    (told,) = differences(first, summary([*map(json.loads, wrong)]), {})
    assert told == 'ids ["c", "1"]: expected ok false, found true (null)'


EVERY_VIOLATOR = 48
"""So many violators of the messages for one that is tried; TESSERA_EVERY=1 tries all."""


@pytest.mark.slow
def test_the_reference_meets_what_the_scripts_of_its_violators_expect() -> None:
    """The answers of a violator are not what its script expects; the reference's to the same frames are."""
    every = int(os.environ.get("TESSERA_EVERY", EVERY_VIOLATOR))
    matrix = json.loads((ROOT / "reports" / "kill-matrix.json").read_text(encoding="utf-8"))["violators"]
    rows = [(row["name"], row["killers"][0]) for row in matrix if row["name"].startswith("abi/host_io/")][::every]
    violations = {violation.name: violation for violation in load_violations()}
    items = {item.stash[CASE].id: item for item in suite_of(["abi/host-io/"]).items}
    registry = load_registry(clauses_directory())
    sound = SuiteRun(locate("reference"), registry)
    tried = 0
    for name, killer in rows:
        with violations[name].broken() as broken:
            run = SuiteRun(transport_of(broken, name), registry)
            case, judgement = put(run, items[killer])
        exchanges = case.exchanges
        if judgement.verdict != "fail" or not all(by_frames(exchange) for exchange in exchanges):
            continue
        expected = Search(function_of(items[killer]), HELLO, exchanges, "strict").expected()
        assert expected is not None, name
        sound.session.reset()
        again = [sound.session.call(exchange.method, exchange.params) for exchange in exchanges]
        assert told_of(expected, [exchange.observation for exchange in exchanges]), name
        assert told_of(expected, again) == [], name
        tried += 1
    sound.session.close()
    assert tried >= len(rows) // 3


def by_frames(exchange: Exchange) -> bool:
    """True of what frames alone can say over a socket."""
    beside = exchange.params.get("buffers") or exchange.params.get("seed") is not None
    return exchange.method in ("host_io.exchange", "host_io.describe") and not beside


def told_of(expected: Sequence[Any], observations: Sequence[Any]) -> list[str]:
    """Return the places of answers that are not as expected."""
    codes: dict[str, Any] = {}
    return [
        difference
        for wanted, observation in zip(expected, observations, strict=True)
        if wanted is not None
        for difference in differences(wanted, summary([*map(json.loads, observation.value["answers"])]), codes)
    ]


def test_what_no_change_mends_is_left_to_the_suite() -> None:
    def never(impl: Implementation, check: Check) -> None:
        check.returns(impl.host_io.exchange(frames=[frame(0)]))
        check.true(False, "the impossible")

    exchanges = [Exchange("host_io.exchange", {"frames": [frame(0)]}, Returned({"answers": [response(0, True)]}), 0.0)]
    assert Search(never, HELLO, exchanges, "strict").expected() is None
