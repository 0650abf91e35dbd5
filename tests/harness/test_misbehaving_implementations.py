"""Implementations and files that misbehave: every fault has its name, and nothing of it outlives the run."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tessera_conformance.check import Check, CheckFailed
from tessera_conformance.cli import main
from tessera_conformance.documents import NoDocument, read_json, read_toml
from tessera_conformance.protocol import METHOD_NOT_FOUND, Diagnostic, Fault, Rejected, Returned, Unsupported
from tessera_conformance.report_plugin import WorkerInterruption
from tessera_conformance.reports.journal import FORMAT, read
from tessera_conformance.server import serve
from tessera_conformance.session import Session
from tessera_conformance.tensors import MalformedTensor, Tensor, from_wire
from tessera_conformance.terminal import Interrupted, visible
from tessera_conformance.transports.locate import DirectTransport
from tessera_conformance.transports.rpc import RpcTransport
from tessera_conformance.verdicts import Deviations, MalformedDeviations, after_running

from .conftest import is_alive, pids_in

# Malformed, endless or forged answers never end a run, never hang it, and never count as a pass.

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
def test_half_a_surrogate_pair_does_not_end_a_worker(shared_checkout):
    pytest.importorskip("xdist", reason="pip install pytest-xdist")
    done = shared_checkout.run("--impl=py:echo:SpeaksSurrogates", "-k", "one_bit", command=["-n", "1"])
    assert done.observation("differs-in-one-bit")["verdict"] == "crash"


@pytest.mark.slow
def test_exit_in_an_adapter_is_no_success(tmp_path: Path):
    """A process that ends itself with code 0 in the middle of the run has not passed."""
    import subprocess
    import sys

    fakes = Path(__file__).parent / "fakes"
    chosen = ["ir/test_matmul.py", "-k", "k_tail or k-13"]
    command = [sys.executable, "-m", "tessera_conformance", "run", "--impl=py:echo:Exits", *chosen]
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


def test_none_is_a_result_without_members():
    resets = []
    session = session_with(lambda params: {"outputs": [ONE]}, reset=lambda: resets.append(1))
    assert isinstance(session.call("language.execute", {"source": "", "function": "f", "inputs": {}}), Returned)
    assert session.reset() is None
    assert resets == [1]


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


# Every fault of an implementation becomes an observation of its own kind, and the session goes on.

OpenSession = Callable[..., Session]

PARSE = ("language.parse", {"source": "module m {}"})


@pytest.mark.parametrize(
    ("fake", "kind", "detail"),
    [
        ("dies_at_start", "crash", "at start: session.open: the implementation ended with exit code 7"),
        ("speaks_another_protocol", "protocol_error", "supports protocol 7 to 9, the harness 1"),
        ("answers_with_wrong_id", "protocol_error", "carries id 3, expected 2"),
        ("splits_a_message_over_lines", "protocol_error", "not JSON"),
        ("sends_text", "protocol_error", "(char 0): 'INFO: compiling ...'"),
        ("crashes_in_a_call", "crash", "signal SIGSEGV"),
        ("dies_with_last_words", "crash", "ended with exit code 9"),
        ("returns_nothing", "protocol_error", "None is not of type 'object'"),
        ("answers_with_expectations", "protocol_error", "language.parse: message"),
        ("answers_with_malformed_tensors", "protocol_error", "takes 8 bytes, but 2 were given"),
        ("closes_its_output", "protocol_error", "closed its output"),
    ],
)
def test_a_fault_is_named(fake_session: OpenSession, fake: str, kind: str, detail: str) -> None:
    observation = fake_session(fake).call(*PARSE)
    assert isinstance(observation, Fault)
    assert (observation.kind, detail in observation.detail) == (kind, True), observation.detail


def test_stderr_of_a_dead_implementation_is_kept(fake_session: OpenSession) -> None:
    observation = fake_session("dies_at_start").call(*PARSE)
    assert isinstance(observation, Fault)
    assert "cannot find libacme.so.3" in observation.stderr


def test_last_words_on_standard_output_are_kept(fake_session: OpenSession) -> None:
    observation = fake_session("dies_with_last_words").call(*PARSE)
    assert isinstance(observation, Fault)
    assert "BAD TERMINATION\nEXIT CODE: 9" in observation.stderr


def test_an_end_between_two_calls_is_a_crash(fake_session: OpenSession) -> None:
    session = fake_session("dies_between_calls")
    assert isinstance(session.call(*PARSE), Unsupported)
    fault = session.call(*PARSE)
    assert isinstance(fault, Fault)
    assert (fault.kind, "BAD TERMINATION\nEXIT CODE: 9" in fault.stderr) == ("crash", True)


def test_a_hang_is_ended_at_its_deadline(fake_session: OpenSession) -> None:
    session = fake_session("hangs", deadline=0.3)
    for _ in range(2):
        observation = session.call(*PARSE)
        assert isinstance(observation, Fault)
        assert (observation.kind, observation.detail) == ("hang", "language.parse: no answer within 0.3 s")


def test_a_hang_at_start_is_tried_twice_and_not_again(fake_session: OpenSession) -> None:
    session = fake_session("hangs_at_start", start_deadline=0.2)
    details = [observation.detail for _ in range(4) if isinstance(observation := session.call(*PARSE), Fault)]
    assert details == ["at start: session.open: no answer within 0.2 s"] * 4


def test_an_extra_answer_is_found_at_the_next_message(fake_session: OpenSession) -> None:
    session = fake_session("answers_twice")
    assert isinstance(session.call(*PARSE), Unsupported)
    fault = session.reset()
    assert fault is not None
    assert fault.kind == "protocol_error"
    assert "unsolicited" in fault.detail


@pytest.mark.parametrize("fake", ["splits_a_message_over_writes", "floods_stderr"])
def test_what_the_protocol_allows_is_no_fault(fake_session: OpenSession, fake: str) -> None:
    session = fake_session(fake)
    for _ in range(3):
        assert session.call(*PARSE) == Rejected("syntax", "parse", "no")
        assert session.reset() is None


def test_a_method_that_is_not_implemented_is_unsupported(fake_session: OpenSession) -> None:
    assert fake_session("implements_no_method").call(*PARSE) == Unsupported("language.parse")


def test_a_crash_that_comes_back_is_told_from_one_that_does_not(
    fake_session: OpenSession, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    always = fake_session("crashes_in_a_call").call(*PARSE)
    monkeypatch.setenv("CRASH_ONCE", f"{tmp_path}/crashed")
    session = fake_session("crashes_once")
    once = session.call(*PARSE)
    assert isinstance(always, Fault)
    assert isinstance(once, Fault)
    assert (always.reproducible, once.reproducible) == (True, False)
    assert session.call(*PARSE) == Rejected("syntax", "parse", "no")


def test_after_a_crash_the_earlier_calls_are_replayed(
    fake_session: OpenSession, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new process is given every call since the last reset before the crashed one is tried again."""
    monkeypatch.setenv("LOG", f"{tmp_path}/log")
    session = fake_session("logs_and_crashes_on_verify")
    session.call("language.parse", {"source": "first"})
    session.call("language.parse", {"source": "second"})
    session.call("language.verify", {"source": "third"})
    with open(f"{tmp_path}/log", encoding="utf-8") as log:
        assert log.read().split() == ["first", "second", "third"] * 2


# A process that answers too much, or leaves others behind, costs the harness neither its time nor its machine.


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        ("nested", "nested more than 100 levels deep"),
        ("many", "is not of type 'tensor'"),
        ("too many", "an answer of more than 1000000 values"),
        ("wide", "is not of type 'tensor'"),
        ("many keys", "outputs[0]"),
        ("equal keys", "is not of type 'tensor'"),
        ("lone surrogates", "is not of type 'tensor'"),
        ("long numbers", "outputs["),
        ("a long text", "outputs[0]"),
        ("a wide text", "more than 67108864 bytes"),
        ("long extents", "an extent of more than 64 bits"),
        ("many extents", "20000 dimensions"),
        ("a product of extents", "more elements than any tensor"),
        ("too deep", "not JSON"),
        ("a long integer", "not JSON"),
        ("a file of holes", "more than any tensor of the suite has"),
    ],
)
def test_an_answer_that_is_too_much_is_a_protocol_error(
    fake_session: OpenSession, tmp_path: Path, kind: str, detail: str
) -> None:
    session = fake_session("sends_too_much")
    began = time.process_time()
    asked = {"source": kind, "function": str(tmp_path / "holes.bin"), "inputs": {}}
    observation = session.call("language.execute", asked)
    assert time.process_time() - began < 5
    assert isinstance(observation, Fault)
    assert (observation.kind, detail in observation.detail) == ("protocol_error", True), observation.detail[:500]
    assert len(observation.detail) < 1000


def test_an_answer_that_is_read_after_the_deadline_is_a_hang(
    fake_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = fake_session("returns_nothing", deadline=0.5)
    session.open()
    monkeypatch.setattr("json.loads", lambda text: time.sleep(0.6) or {"jsonrpc": "2.0", "id": 2, "result": {}})
    observation = session.call("language.parse", {"source": ""})
    assert isinstance(observation, Fault)
    assert observation.kind == "hang"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
def test_what_an_implementation_started_ends_with_it(fake_session: OpenSession) -> None:
    """Also in a session of its own, as an orphan, and without the environment that it was given."""
    observation = fake_session("leaves_daemons").call("language.parse", {"source": ""})
    assert isinstance(observation, Fault)
    assert observation.kind == "crash"
    (line,) = (printed for printed in observation.stderr.splitlines() if printed.startswith("pids "))
    pids = [int(word) for word in line.split()[1:]]
    assert len(pids) == 3
    assert [pid for pid in pids if is_alive(pid)] == []


def test_a_call_that_is_interrupted_ends_the_process(fake_command: Callable[[str], str], tmp_path: Path) -> None:
    """It is at work, and would not hear that it is to close."""
    session = Session(RpcTransport(f"{fake_command('waits')} {tmp_path}"), deadline=300)
    session.open()

    def interrupt(number: int, frame: object) -> None:
        if pids_in(tmp_path):
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Interrupted(number)

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        with pytest.raises(Interrupted):
            session.call("language.parse", {"source": ""})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    (pid,) = pids_in(tmp_path)
    ended = not is_alive(pid)
    session.close()
    assert ended


def test_other_children_of_the_harness_live_on(fake_session: OpenSession) -> None:
    sleeping = [sys.executable, "-c", "import time; time.sleep(600)"]
    before = subprocess.Popen(sleeping, start_new_session=True)
    session = fake_session("hangs", deadline=0.2)
    session.open()
    during = subprocess.Popen(sleeping)
    try:
        session.call("language.parse", {"source": ""})
        session.close()
        assert (before.poll(), during.poll()) == (None, None)
    finally:
        before.kill()
        during.kill()
        before.wait()
        during.wait()


def test_two_sessions_do_not_end_each_other(fake_command: Callable[[str], str]) -> None:
    first, second = (Session(RpcTransport(fake_command("splits_a_message_over_writes"))) for _ in range(2))
    assert not isinstance(first.open(), Fault)
    assert not isinstance(second.open(), Fault)
    first.close()
    assert not isinstance(second.call("language.parse", {"source": ""}), Fault)
    second.close()


class Busy:
    """An adapter with more attributes than methods of the protocol."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def hello(self) -> dict[str, object]:
        return {}

    def language_parse(self, **params: object) -> dict[str, object]:
        self.asked.append("language.parse")
        return {"modules": []}

    def delete_everything(self, **params: object) -> dict[str, object]:
        self.asked.append("delete.everything")
        return {}


@pytest.mark.parametrize("method", ["delete.everything", "delete_everything", "hello", ".__init__", "language.tidy"])
def test_serve_answers_declared_methods_alone(method: str) -> None:
    adapter, answers = Busy(), io.BytesIO()
    asked = [{"jsonrpc": "2.0", "id": number, "method": name} for number, name in enumerate((method, "language.parse"))]
    serve(adapter, io.BytesIO(b"".join(json.dumps(message).encode() + b"\n" for message in asked)), answers)
    refused, answered = map(json.loads, answers.getvalue().splitlines())
    assert refused["error"]["code"] == METHOD_NOT_FOUND
    assert answered["result"] == {"returned": {"modules": []}}
    assert adapter.asked == ["language.parse"]


# Files of others: whatever is wrong with one is told in a sentence, and none of its characters acts on a terminal.

TEXTS = {
    "deep": "[" * 100_000 + "]" * 100_000,
    "deeper than any of ours": "[" * 300 + "]" * 300,
    "a long integer": "9" * 10_000,
    "cut short": '{"a": [',
}
ACTING = "\x1b[2J\x9b2K\u202egnp\u2066\u200b\x07"
"""Clears a screen in two ways, turns the reading order in two, hides a space, rings."""


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_document_that_cannot_be_read_is_one_error(text: str) -> None:
    with pytest.raises(NoDocument, match="not JSON: "):
        read_json(text)
    with pytest.raises(NoDocument, match="not TOML: "):
        read_toml(f"a = {text}")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_each_command_says_it_in_a_sentence(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, table = tmp_path / "report.jsonl", tmp_path / "known.toml"
    report.write_text(text)
    table.write_text(f"deviation = {text}\n")
    assert main(["report", str(report)]) == 2
    assert main(["compare", str(report), str(report)]) == 2
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    assert told.err.count("error: ") >= 2
    with pytest.raises(MalformedDeviations, match="not TOML"):
        Deviations.read(table)


def test_a_report_without_a_name_is_invalid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.jsonl"
    hello = {"protocol": {"minimum": 1, "maximum": 1}, "implementation": {"version": "1"}, "documents": []}
    header = {
        "record": "header",
        "format": FORMAT,
        "harness": "tessera-conformance 0",
        "registry": {"clauses": 1, "sha256": "0" * 64},
        "implementation": {"label": "reference", "hello": hello, "fault": None},
        "selection": {
            "profile": "core",
            "level": "strict",
            "shard": None,
            "complete": True,
            "today": None,
            "deviations": [],
        },
        "run": {},
    }
    path.write_text(json.dumps(header) + "\n")
    for command in (["report", str(path)], ["compare", str(path), str(path)], ["merge", str(path), "--output", "x"]):
        assert main(command) == 2
        told = capsys.readouterr().err
        assert "Traceback" not in told
        assert "'name' is a required property" in told


def test_no_hidden_character_reaches_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert visible(f"a\tb\n{ACTING}é") == "a\tb\n\\x1b[2J\\x9b2K\\u202egnp\\u2066\\u200b\\x07é"
    assert main(["report", str(tmp_path / f"missing{ACTING}.jsonl")]) == 2
    told = capsys.readouterr().err
    assert "\\x1b[2J" in told
    assert not set("\x1b" + "\x9b\u202e\u2066\u200b\x07") & set(told)


def test_no_hidden_character_reaches_report_or_markdown(checkout: Any) -> None:
    done = checkout.run("--impl=py:echo:Acting")
    assert done.report is not None, done.output
    markdown = (done.path.parent / "summary.md").read_text(encoding="utf-8")
    for shown in (done.output, markdown):
        assert not set("\x1b\x9b\u202e\u2066\u200b\x07") & set(shown)
        assert "\\u202e" in shown


@pytest.mark.slow
def test_a_full_disk_is_said_to_be_one(checkout: Any) -> None:
    """Wherever the report is written: at the start, in its first lines, after a case, or as it is sealed."""
    for moment in ("start", "plan", "observation", "finish"):
        done = checkout.run(f"--impl=py:full_disk:{moment}", command=("-p", "full_disk"))
        assert done.exit_code not in (0, 1), done.output
        assert (
            "error: report.jsonl: the report cannot be written: No space left on device; free the disk" in done.output
        )
        assert "Traceback" not in done.output
        assert "INTERNALERROR" not in done.output


# Ctrl-C and SIGTERM: any front end seals its report, says that it was interrupted, and leaves no process behind.

ROOT = Path(__file__).resolve().parents[2]
TOOL = [sys.executable, "-m", "tessera_conformance"]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "conformance/ir/test_grammar.py"]
PARALLEL = ["-p", "xdist", "-n2"]
SUITE = ("ir/test_grammar.py", "--deadline=300")

FRONT_ENDS = {
    "run": ([*TOOL, "run", *SUITE], True),
    "run in parallel": ([*TOOL, "run", *SUITE, *PARALLEL], True),
    "pytest": ([*PYTEST, "--deadline=300"], True),
    "pytest in parallel": ([*PYTEST, "--deadline=300", *PARALLEL], True),
    "reproduce": ([*TOOL, "reproduce", "ir/grammar/only-modules-stand-at-the-top/func", "--deadline=300"], True),
    "smoke": ([*TOOL, "smoke"], False),
}

QUICK = {("smoke", signal.SIGINT)}
LEFT_OUT = {("run in parallel", signal.SIGTERM), ("pytest in parallel", signal.SIGINT)}
"""The signals come alike to both front ends, and to both where they run in parallel."""


@pytest.mark.sampled(3)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(
            name, number, id=f"{name}-{number.name}", marks=[] if (name, number) in QUICK else pytest.mark.slow
        )
        for name in FRONT_ENDS
        for number in (signal.SIGINT, signal.SIGTERM)
        if (name, number) not in LEFT_OUT
    ],
)
def test_an_interrupted_front_end_seals_and_cleans_up(
    name: str, number: signal.Signals, tmp_path: Path, fake_command: Callable[[str], str]
) -> None:
    interrupt(name, lambda running: running.send_signal(number), tmp_path, fake_command)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
@pytest.mark.slow
def test_a_terminal_interrupts_every_process_of_a_parallel_run(
    tmp_path: Path, fake_command: Callable[[str], str]
) -> None:
    """The workers, which are interrupted by the first process too, put in order what they have all the same."""
    interrupt("run in parallel", lambda running: os.killpg(running.pid, signal.SIGINT), tmp_path, fake_command)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
def test_the_workers_of_a_parallel_run_are_interrupted_at_once() -> None:
    """Left to itself, xdist would let them be at their cases for some seconds."""
    execnet = pytest.importorskip("execnet", reason="pip install pytest-xdist")
    gateway = execnet.makegateway("popen//execmodel=main_thread_only")
    try:
        channel = gateway.remote_exec(WAITS)
        assert channel.receive(60) == "waits"
        interruption = WorkerInterruption()
        interruption.pytest_testnodeready(SimpleNamespace(gateway=gateway))
        interruption.pytest_keyboard_interrupt()
        assert channel.receive(60) == "interrupted"
    finally:
        gateway.exit()


WAITS = """
import time
try:
    channel.send("waits")
    time.sleep(600)
except KeyboardInterrupt:
    channel.send("interrupted")
"""


def interrupt(
    name: str,
    give_signal: Callable[[subprocess.Popen[bytes]], None],
    tmp_path: Path,
    fake_command: Callable[[str], str],
) -> None:
    """Give a front end a signal while an implementation hangs, and look at what is left of them."""
    command, seals = FRONT_ENDS[name]
    implementation = f"rpc:{fake_command('hangs_with_a_daemon')} {tmp_path}"
    given = [f"--impl={implementation}", f"--report-dir={tmp_path / 'report'}"] if seals else [implementation]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {
        **os.environ,
        "TMPDIR": str(scratch),
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "conformance/harness", ROOT / "reference"))),
    }
    running = subprocess.Popen(
        [*command, *given],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        limit = time.monotonic() + 120
        while not pids_in(tmp_path) and time.monotonic() < limit and running.poll() is None:
            time.sleep(0.02)
        assert len(pids_in(tmp_path)) >= 2, running.communicate(timeout=1)
        give_signal(running)
        output, _ = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode != 0
    assert b"Traceback" not in output
    pids = pids_in(tmp_path)
    limit = time.monotonic() + 5
    while any(map(is_alive, pids)) and time.monotonic() < limit:
        time.sleep(0.1)
    assert [pid for pid in pids if is_alive(pid)] == []
    assert [path.name for path in scratch.glob("tessera-*")] == []
    if seals:
        report = read(tmp_path / "report" / "report.jsonl")
        assert (report.problem, report.claim) == (None, "failure")
        assert report.footer is not None
        assert "the run was interrupted" in report.footer["problems"]
