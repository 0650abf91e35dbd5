"""Malformed, endless or forged answers never end a run, never hang it, and never count as a pass."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tessera_conformance.check import Check, CheckFailed
from tessera_conformance.observations import Diagnostic, Fault, Rejected, Returned
from tessera_conformance.session import Session
from tessera_conformance.tensors import MalformedTensor, Tensor, from_wire
from tessera_conformance.transports.direct import DirectTransport
from tessera_conformance.verdicts import after_running

ONE = Tensor.from_words("bf16", (1,), [0x3F80])
HELLO = {
    "protocol": {"minimum": 1, "maximum": 1},
    "implementation": {"name": "hostile", "version": "0"},
    "documents": ["language_ir"],
}


def session_with(answer, deadline=5.0, reset=None):
    """A session with an adapter whose one method is `answer`."""
    methods = {"hello": lambda self: HELLO, "language_execute": lambda self, **params: answer(params)}
    if reset is not None:
        methods["session_reset"] = lambda self: reset()
    return Session(DirectTransport(type("Hostile", (), methods), "hostile"), deadline)


def ask(answer, **options):
    params = {"source": "", "function": "f", "inputs": {"A": ONE}}
    return session_with(answer, **options).call("language.execute", params), params


def raising(error):
    def answer(params):
        raise error

    return answer


class BrokenText(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    "error",
    [RecursionError("deep"), SystemExit(0), GeneratorExit(), MemoryError(), BrokenText(), UnicodeError("\ud800")],
    ids=lambda error: type(error).__name__,
)
def test_whatever_an_adapter_raises_is_a_crash(error):
    observation, _ = ask(raising(error))
    assert isinstance(observation, Fault)
    assert observation.kind == "crash"


@pytest.mark.parametrize(
    "value",
    [
        {"outputs": [object()]},
        {"outputs": (part for part in [ONE])},
        {"outputs": [ONE], "verdict": "pass"},
        {"outputs": [{"$tensor": {"dtype": "bf16", "shape": [1], "bits": "3f80"}, "passed": True}]},
        {"outputs": [{"$tensor": {"dtype": "bf16", "shape": [1 << 60, 1 << 60], "bits": ""}}]},
        {"outputs": [{"$tensor": {"dtype": "bf16", "shape": [1], "file": "/dev/zero", "sha256": "0" * 64}}]},
        {"outputs": [{"$tensor": {"dtype": "bf16", "shape": [1], "file": "a\0b", "sha256": "0" * 64}}]},
    ],
    ids=["object", "generator", "extra-field", "beside-tensor", "huge-shape", "device", "nul-in-path"],
)
def test_a_value_that_is_no_message_is_a_protocol_error(value):
    observation, _ = ask(lambda params: value)
    assert isinstance(observation, Fault)
    assert observation.kind == "protocol_error"


def test_a_file_that_never_ends_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    body = {"dtype": "bf16", "shape": [1], "file": str(tmp_path / "pipe"), "sha256": "0" * 64}
    with pytest.raises(MalformedTensor, match="no plain file"):
        from_wire({"$tensor": body})


@pytest.mark.parametrize(("shape", "data"), [((1,), bytearray(2)), ([1], bytes(2)), ((True,), bytes(2))])
def test_a_tensor_cannot_change_after_it_was_made(shape, data):
    with pytest.raises(MalformedTensor):
        Tensor("bf16", shape, data)


def test_an_adapter_cannot_change_what_it_was_sent():
    def greedy(params):
        params["inputs"].clear()
        return {"outputs": []}

    _, params = ask(greedy)
    assert params["inputs"] == {"A": ONE}


def test_a_swallowed_interrupt_is_a_hang():
    def stubborn(params):
        import time

        limit = time.monotonic() + 0.4
        while time.monotonic() < limit:
            try:
                time.sleep(0.4)
            except BaseException:
                continue
        return {"outputs": [ONE]}

    observation, _ = ask(stubborn, deadline=0.1)
    assert isinstance(observation, Fault)
    assert observation.kind == "hang"


def test_an_alarm_that_a_case_switches_off_is_on_again_in_the_next():
    import signal
    import time

    answers = iter([lambda: signal.signal(signal.SIGALRM, signal.SIG_IGN), lambda: time.sleep(3)])
    session = session_with(lambda params: next(answers)() and {"outputs": [ONE]}, deadline=0.1, reset=dict)
    params = {"source": "", "function": "f", "inputs": {}}
    session.call("language.execute", params)
    session.reset()
    started = time.monotonic()
    observation = session.call("language.execute", params)
    assert isinstance(observation, Fault)
    assert observation.kind == "hang"
    assert time.monotonic() - started < 3, "it was not interrupted"


def test_an_implementation_that_refuses_a_reset_is_started_anew():
    """Nothing of a case stays for the next one, and the refusal counts against nobody."""
    from tessera_conformance.adapter import Refusal

    session = session_with(lambda params: {"outputs": [ONE]}, reset=lambda: raising(Refusal("no", "call", "no"))({}))
    params = {"source": "", "function": "f", "inputs": {}}
    session.call("language.execute", params)
    before = session.transport._adapter
    assert session.reset() is None
    assert session.transport._adapter is None
    assert isinstance(session.call("language.execute", params), Returned)
    assert session.transport._adapter is not before


def test_a_fault_that_no_check_looked_at_is_no_pass():
    check = Check()
    check.equal(1, 1)
    assert after_running(None, check.records, Fault("crash", "gone")).verdict == "crash"
    assert after_running(None, check.records, None).verdict == "pass"


def test_a_failed_check_that_was_swallowed_is_no_pass():
    check = Check()
    with pytest.raises(CheckFailed):
        check.equal(1, 2)
    assert after_running(None, check.records, None).verdict == "fail"


@pytest.mark.parametrize(("actual", "expected"), [(1, True), (1.0, 1), ([1], [True]), ({"a": 0}, {"a": False})])
def test_values_of_other_types_are_not_equal(actual, expected):
    with pytest.raises(CheckFailed):
        Check().equal(actual, expected)


def test_a_shotgun_of_diagnostics_is_no_rejection_for_the_right_reason():
    told = tuple(Diagnostic(category, "no", line=line) for category in ("types", "shapes") for line in range(1, 9))
    with pytest.raises(CheckFailed):
        Check().rejects(Rejected("types", "verify", "no", told), category="shapes", at_line=3)
    Check().rejects(Rejected("types", "verify", "no", told[:9]), category="shapes", at_line=1)


@pytest.mark.slow
def test_a_module_that_skips_itself_is_a_problem_of_the_run(checkout):
    """A file that is not collected is not in the plan; the claim must not be a success all the same."""
    path = checkout.directory / "conformance" / "ir" / "test_gone.py"
    path.write_text("import pytest\n\npytest.skip('not today', allow_module_level=True)\n")
    (checkout.directory / "unrelated").mkdir()
    (checkout.directory / "unrelated" / "test_elsewhere.py").write_text(path.read_text())
    done = checkout.run("-k", "passes", "unrelated")
    assert len(done.report.footer["problems"]) == 1
    assert any("test_gone.py was not collected" in problem for problem in done.report.footer["problems"])
    assert done.report.claim == "failure"


@pytest.mark.slow
def test_a_lost_case_keeps_its_clauses_and_its_deviation(shared_checkout, tmp_path):
    pytest.importorskip("xdist", reason="pip install pytest-xdist")
    done = shared_checkout.run("--impl=py:kills_its_process:KillsItsProcess", "-k", "one_bit", command=["-n", "1"])
    line = done.observation("differs-in-one-bit")
    assert (line["verdict"], line["clauses"]) == ("crash", ["LANG-02-01", "LANG-10-02"])


@pytest.mark.slow
def test_half_a_surrogate_pair_does_not_end_a_worker(shared_checkout):
    pytest.importorskip("xdist", reason="pip install pytest-xdist")
    done = shared_checkout.run("--impl=py:speaks_surrogates:SpeaksSurrogates", "-k", "one_bit", command=["-n", "1"])
    assert done.observation("differs-in-one-bit")["verdict"] == "crash"


@pytest.mark.slow
def test_exit_in_an_adapter_is_no_success(tmp_path: Path):
    """A process that ends itself with code 0 in the middle of the run has not passed."""
    import subprocess
    import sys

    fakes = Path(__file__).parent / "fakes"
    chosen = ["ir/test_matmul.py", "-k", "k_tail or k-13"]
    command = [sys.executable, "-m", "tessera_conformance", "run", "--impl=py:exits:Exits", *chosen]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(fakes), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "ended before its report" in done.stderr


def test_a_reset_that_does_not_end_is_no_fault():
    """The implementation is started anew, so that nothing of the case stays."""
    import time

    session = session_with(lambda params: {"outputs": [ONE]}, deadline=0.1, reset=lambda: time.sleep(5))
    params = {"source": "", "function": "f", "inputs": {}}
    assert isinstance(session.call("language.execute", params), Returned)
    started = time.monotonic()
    assert session.reset() is None
    assert time.monotonic() - started < 3
    assert isinstance(session.call("language.execute", params), Returned)


def test_after_a_fault_no_case_is_asked_of_what_was_replayed():
    """Handles of the process before may have broken it."""
    made = []

    def answer(params):
        made.append(params)
        return raising(RuntimeError("gone"))(params) if len(made) == 1 else {"outputs": [ONE]}

    resets = []
    session = session_with(answer, reset=lambda: resets.append(1) or {})
    params = {"source": "", "function": "f", "inputs": {}}
    fault = session.call("language.execute", params)
    assert isinstance(fault, Fault)
    assert fault.reproducible is False
    assert session.reset() is None
    assert resets == []
