"""The standalone script of a case: written from a live case, run as a process of its own."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest

from tessera_conformance.check import CheckFailed, Unanswered
from tessera_conformance.protocol import Diagnostic, Fault, Rejected, Returned, Unsupported
from tessera_conformance.reports.reproduce import bound_requests, given_out, start_command, write_script
from tessera_conformance.reports.wording import reproduce_command
from tessera_conformance.session import Exchange
from tessera_conformance.suite_run import Case
from tessera_conformance.tensors import Tensor, to_wire
from tessera_conformance.verdicts import Judgement

ANSWERING = """
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    answer = {"implementation": {"name": "fake", "version": "1"}}
    if request["method"] != "session.open":
        answer = json.loads(sys.argv[1])
        if "fault" in answer:
            sys.stderr.write("about to die\\n")
            os._exit(7)
        if "garbage" in answer:
            print("hello", flush=True)
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer}), flush=True)
"""


def fp32(*words):
    return Tensor.from_words("fp32", [len(words)], words)


@pytest.fixture
def script(tmp_path):
    """Writes the script of a case that asked once, got `observation` and was judged by `judging`."""

    def make(observation, judging, deadlines=(60.0, 30.0), title="It's a 'case' with \\ and \u2603"):
        case = Case("ir/matmul/k-tail/bf16", title, [], [], judgement=Judgement("fail", "bits differ '''"))
        params = {"source": "it's \"\"\" ''' \\n", "inputs": {"a": fp32(0x3F800000, 0x40000000)}}
        case.exchanges = [Exchange("language.execute", params, observation, 0.1)]
        try:
            judging(case.check, observation)
        except (CheckFailed, Unanswered) as error:
            case.judgement = Judgement("fail", str(error))
        return write_script(tmp_path / "new" / "place", "rpc:no-such-program-anywhere", case, deadlines=deadlines)

    return make


@pytest.fixture
def run(tmp_path):
    """Runs a script against an implementation that gives one answer to everything."""
    fake = tmp_path / "fake.py"
    fake.write_text(ANSWERING, encoding="utf-8")

    def call(script, answer):
        command = [sys.executable, "-W", "error", str(script), sys.executable, str(fake), json.dumps(to_wire(answer))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert done.stderr in ("", "about to die\n")
        return done.returncode, done.stdout

    return call


def bits(expected):
    def judging(check, observation):
        value = check.returns(observation)
        check.equal(len(value["outputs"]), 2, "the number of outputs")
        check.bits(value["outputs"][1], expected)

    return judging


NAN, OTHER_NAN, ONE, NEXT = 0x7FC00000, 0xFFC00001, 0x3F800000, 0x3F800001


def outputs(*words):
    return {"outputs": [fp32(0), fp32(*words)]}


def test_its_name_is_the_case_and_it_holds_whole_tensors(script):
    path = script(Returned(outputs(ONE, NEXT)), bits(fp32(ONE, ONE)))
    assert path.name == "reproduce-ir-matmul-k-tail-bf16.py"
    text = path.read_text(encoding="utf-8")
    assert text.isascii()
    assert "3f80000040000000" in text
    compile(text, str(path), "exec")


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        ({"returned": outputs(ONE, NEXT)}, 1, "element [1]: 0x3f800001, expected 0x3f800000"),
        ({"returned": outputs(ONE, ONE)}, 0, "the bits: as expected"),
        ({"returned": outputs(ONE)}, 1, "expected fp32 of shape [2], found fp32 of shape [1]"),
        ({"returned": {"outputs": []}}, 1, "expected a tensor, found null"),
        ({"rejected": {"code": "types", "phase": "verify", "message": "no"}}, 1, "expected a result"),
        ({"returned": {"outputs": [0, {"$tensor": {"dtype": "fp32", "shape": [2]}}]}}, 1, "malformed tensor"),
        ([], 2, "protocol error: language.execute"),
        ({"fault": 1}, 2, "crash: language.execute: the implementation ended with exit code 7"),
        ({"garbage": 1}, 2, "protocol error: language.execute: b'hello"),
    ],
)
def test_bits_are_compared_again(script, run, answer, code, told):
    got, output = run(script(Returned(outputs(ONE, NEXT)), bits(fp32(ONE, ONE))), answer)
    assert told in output
    assert got == code


def test_half_a_surrogate_pair_ends_no_script(script, run):
    """A script that died of one would exit with 1, as where a difference still shows."""
    path = script(Returned(outputs(ONE, NEXT)), bits(fp32(ONE, ONE)), title="half \ud800")
    assert run(path, {"returned": outputs(ONE, ONE)})[0] == 0
    code, output = run(path, {"rejected": {"code": "\ud800", "phase": "verify", "message": "\udc00"}})
    assert (code, "expected a result" in output) == (1, True)


def test_any_nan_equals_any_nan(script, run):
    path = script(Returned(outputs(ONE, NEXT)), bits(fp32(NAN, ONE)))
    assert run(path, {"returned": outputs(OTHER_NAN, ONE)})[0] == 0
    assert run(path, {"returned": outputs(ONE, ONE)})[0] == 1
    assert run(path, {"returned": outputs(0x7F800000, ONE)})[0] == 1


@pytest.mark.parametrize(
    ("dtype", "nan", "other", "number"),
    [
        ("fp8_e4m3", 0x7F, 0xFF, 0x7E),
        ("fp8_e5m2", 0x7D, 0xFF, 0x7C),
        ("fp16", 0x7C01, 0xFE00, 0x7C00),
        ("bf16", 0x7F81, 0xFFC0, 0x7F80),
        ("fp64", 0x7FF0000000000001, 0xFFF8000000000000, 0x7FF0000000000000),
        ("int32", 0x7FC00000, 0x7FC00000, 0x7FC00001),
    ],
)
def test_each_format_has_its_own_nan(script, run, dtype, nan, other, number):
    def result(word):
        return {"outputs": [fp32(0), Tensor.from_words(dtype, [1], [word])]}

    path = script(Returned(result(number)), bits(Tensor.from_words(dtype, [1], [nan])))
    assert run(path, {"returned": result(other)})[0] == 0
    assert run(path, {"returned": result(number)})[0] == 1


def test_a_plain_value_is_tied_to_its_place(script, run):
    path = script(
        Returned({"size": 20, "align": 8}), lambda check, seen: check.equal(check.returns(seen)["size"], 24, "the size")
    )
    assert run(path, {"returned": {"size": 24, "align": 4}})[0] == 0
    code, output = run(path, {"returned": {"size": 20, "align": 8}})
    assert code == 1
    assert "check    the size: expected 24, found 20" in output


def test_what_only_the_suite_can_judge_is_never_called_gone(script, run):
    path = script(
        Returned({"size": 20}), lambda check, seen: check.true(seen.value["size"] % 8 == 0, "a multiple of 8", 20)
    )
    code, output = run(path, {"returned": {"size": 24}})
    assert code == 3
    assert "a multiple of 8: expected true, found then 20\nresult   the answers are others than then; only" in output
    code, output = run(path, {"returned": {"size": 20}})
    assert code == 1
    assert "result   the same answers as then" in output


def rejection(category, line=None, phase="verify"):
    return Rejected(category, phase, "no", (Diagnostic(category, "no", line=line),))


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (("schedule", "verify", 4), 0),
        (("shapes", "lower", 4), 0),
        (("schedule", "verify", 5), 1),
        (("types", "verify", 4), 1),
        (("schedule", "parse", 4), 1),
    ],
)
def test_a_refusal_is_judged_by_category_phase_and_line(script, run, answer, code):
    path = script(
        rejection("types", 4),
        lambda check, seen: check.rejects(seen, category=["schedule", "shapes"], phase=["verify", "lower"], at_line=4),
    )
    category, phase, line = answer
    diagnostic = {"category": category, "message": "no", "line": line}
    told = {"code": category, "phase": phase, "message": "no", "diagnostics": [diagnostic]}
    assert run(path, {"rejected": told})[0] == code


def test_a_case_without_checks_is_never_called_as_expected(script, run):
    path = script(Returned({"a": 2}), lambda check, seen: None)
    assert run(path, {"returned": {"a": 2}})[0] == 1
    assert run(path, {"returned": {"a": 1}})[0] == 3
    assert run(script(Returned({}), lambda check, seen: None), {"returned": {}})[0] == 3


def test_handles_and_addresses_are_those_of_the_new_answers():
    first, memory = 1 << 40, 1 << 41
    given = [
        ("runtime.tessInit", {}, {"context": first}),
        ("runtime.tessMalloc", {"mesh": 7, "bytes": 300}, {"devPtr": memory}),
        ("runtime.tessLaunch", {"context": first, "dst": memory + 256, "count": 300, "argBuffer": ""}, {}),
    ]
    data = (5).to_bytes(8, "little") + (memory + 8).to_bytes(8, "little")
    given[2][1]["argBuffer"] = data.hex()
    exchanges = [Exchange(method, params, Returned(result), 0.0) for method, params, result in given]
    assert bound_requests(exchanges)[1:] == [
        {"mesh": 7, "bytes": 300},
        {
            "context": {"$from": [0, ["context"]], "$plus": 0},
            "dst": {"$from": [1, ["devPtr"]], "$plus": 256},
            "count": 300,
            "argBuffer": {"$bytes": data.hex(), "$addresses": [[8, {"$from": [1, ["devPtr"]], "$plus": 8}]]},
        },
    ]
    assert given_out(exchanges) == [[("context",)], [("devPtr",)], []]


def test_a_case_with_files_gets_a_new_folder(tmp_path, run):
    """The folder of the run is gone after a few more runs of pytest."""
    gone = tmp_path / "gone"
    case = Case("runtime/a/b", "a case", [], [], folder=str(gone), judgement=Judgement("fail", "the trace is short"))
    case.exchanges = [Exchange("runtime.tessProfilerStop", {"path": str(gone / "trace.json")}, Returned({}), 0.1)]
    script = write_script(tmp_path, "rpc:no-such-program", case)
    assert str(gone) not in script.read_text(encoding="utf-8")
    _, told = run(script, {"returned": {}})
    (sent,) = [line for line in told.splitlines() if "tessProfilerStop" in line]
    place = Path(json.loads(sent.partition("tessProfilerStop ")[2])["path"]).parent
    assert place.is_dir()
    place.rmdir()


def test_a_check_is_tied_to_the_answers_before_it(tmp_path):
    case = Case("runtime/a/b", "a case", [], [], judgement=Judgement("fail", "\udc80 stands in no encoding"))
    case.check.asked = case.exchanges = []
    for value in (1, 2):
        case.exchanges.append(Exchange("runtime.tessInit", {}, Returned({"value": 24}), 0.0))
        if value == 1:
            case.check.returns(case.exchanges[0].observation, "the first succeeds")
            case.check.equal(case.exchanges[0].observation.value["value"], 24, "the first value")
    path = write_script(tmp_path, "rpc:no-such-program", case)
    checks = run_path(str(path))["CASE"]["checks"]
    assert [check["exchange"] for check in checks] == [0, 0]
    done = subprocess.run([sys.executable, str(path)], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"fail: \\udc80 stands in no encoding" in done.stdout


def test_a_legal_program_that_was_refused_and_a_status(script, run):
    refused = script(rejection("types"), lambda check, seen: check.accepts(seen))
    assert run(refused, {"returned": {}})[0] == 0
    assert run(refused, {"rejected": {"code": "types", "phase": "verify", "message": "no"}})[0] == 1
    status = script(rejection("TESS_OK"), lambda check, seen: check.status(seen, "TESS_ERR_INVALID_VALUE"))
    assert run(status, {"rejected": {"code": "TESS_ERR_INVALID_VALUE", "phase": "call", "message": ""}})[0] == 0
    assert run(status, {"rejected": {"code": "TESS_ERR", "phase": "call", "message": ""}})[0] == 1


@pytest.mark.parametrize("observation", [Unsupported("x"), Fault("crash", "SIGSEGV")])
def test_a_request_without_an_answer_must_get_one(script, run, observation):
    path = script(observation, lambda check, seen: check.returns(seen))
    code, output = run(path, {"returned": {}})
    assert code == 3
    assert "result   an answer came this time; only the suite can judge it" in output
    assert run(path, {"unsupported": {"feature": "x"}})[0] == 1
    assert run(path, {"fault": 1})[0] == 2


def test_an_implementation_that_cannot_be_started_is_told(script):
    path = script(Returned(outputs(ONE, NEXT)), bits(fp32(ONE, ONE)))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert "cannot start no-such-program-anywhere: No such file" in done.stdout
    assert done.stderr == ""


SILENT = ["import time; time.sleep(60)"]
OPENS = ['import time; input(); print(\'{"jsonrpc": "2.0", "id": 1, "result": {}}\', flush=True); time.sleep(60)']


@pytest.mark.parametrize(
    ("deadlines", "program", "told"),
    [
        ((0.3, 30.0), SILENT, "hang: session.open: no answer within 0.3 s"),
        ((30.0, 0.4), OPENS, "hang: language.execute: no answer within 0.4 s"),
    ],
)
def test_a_hang_ends_at_the_deadline_of_the_run(script, deadlines, program, told):
    path = script(Returned(outputs(ONE, NEXT)), bits(fp32(ONE, ONE)), deadlines)
    asked = [sys.executable, str(path), sys.executable, "-c", *program]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2
    assert told in done.stdout
    assert done.stderr == ""


def test_the_command_in_a_report_has_the_deadlines_of_its_run(build, observation):
    usual = build([observation("abi/a")], name="usual", deadlines={"start": 60.0, "call": 30.0})
    assert "deadline" not in reproduce_command(usual, "abi/a")
    own = build([observation("abi/a")], name="own", deadlines={"start": 90.0, "call": 2.5})
    assert reproduce_command(own, "abi/a").endswith(" --deadline=2.5 --start-deadline=90")


def test_the_command_follows_from_the_implementation():
    assert start_command("rpc:acme --device 'x 1'") == ["acme", "--device", "x 1"]
    serving = [sys.executable, "-m", "tessera_conformance", "serve"]
    assert start_command("reference") == [*serving, "reference"]
    assert start_command("py:mine:make") == [*serving, "py:mine:make"]


@pytest.mark.parametrize("verdict", ["crash", "hang", "protocol_error"])
def test_a_fault_outside_of_the_requests_is_never_called_gone(tmp_path, run, verdict):
    case = Case("ir/a", "About a", [], [], judgement=Judgement(verdict, "after the case: gone"))
    assert run(write_script(tmp_path, "rpc:acme", case), {"returned": {}})[0] == 3
    case.exchanges = [Exchange("language.verify", {}, Returned({"size": 24}), 0.1)]
    case.check.equal(24, 24, "the size")
    assert run(write_script(tmp_path, "rpc:acme", case), {"returned": {"size": 24}})[0] == 3
    assert run(write_script(tmp_path, "rpc:acme", case), {"returned": {"size": 20}})[0] == 1


AT_TIMES = """
import json, pathlib, sys
place = pathlib.Path("started")
started = len(place.read_text()) + 1 if place.exists() else 1
place.write_text("x" * started)
for line in sys.stdin:
    request = json.loads(line)
    answer = {"implementation": {"name": "fake", "version": "1"}}
    if request["method"] != "session.open":
        answer = {"returned": {"stream": 20 if started == int(sys.argv[1]) else 24}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer}), flush=True)
"""


@pytest.mark.parametrize(
    ("wrong", "options", "code", "started"), [(2, [], 1, 2), (3, ["--tries=2"], 0, 2), (9, [], 0, 3), (1, [], 1, 1)]
)
def test_a_case_with_streams_is_asked_until_its_difference_shows(tmp_path, wrong, options, code, started):
    case = Case("runtime/a/b", "a case", [], [], judgement=Judgement("fail", "differs"))
    case.check.asked = case.exchanges = [Exchange("runtime.tessStreamCreate", {}, Returned({"stream": 20}), 0.0)]
    with pytest.raises(CheckFailed):
        case.check.equal(20, 24, "the number")
    path = write_script(tmp_path, "rpc:no-such-program", case)
    (tmp_path / "fake.py").write_text(AT_TIMES, encoding="utf-8")
    command = [sys.executable, str(path), *options, sys.executable, "fake.py", str(wrong)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (code, ""), done.stdout
    assert len((tmp_path / "started").read_text(encoding="utf-8")) == started


@pytest.fixture
def from_elsewhere(tmp_path, monkeypatch):
    """Writes the script of a failed case in one directory, as for an implementation there, and runs it in another."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for directory in (here, elsewhere):
        directory.mkdir()
    (here / "fake.py").write_text(ANSWERING, encoding="utf-8")
    (here / "mine.py").write_text("from tessera_reference.adapter import make\n", encoding="utf-8")

    def call(implementation, remove=False):
        case = Case("ir/a", "About a", [], [], judgement=Judgement("fail", "differs"))
        case.exchanges = [Exchange("language.verify", {"source": "no module"}, Returned({}), 0.1)]
        monkeypatch.chdir(here)
        path = write_script(tmp_path / "scripts", implementation, case)
        if remove:
            monkeypatch.chdir(elsewhere)
            shutil.rmtree(here)
        command = [sys.executable, str(path)]
        return subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, timeout=60, check=False)

    return call


def test_an_implementation_is_started_where_it_was_run(from_elsewhere):
    answer = shlex.quote(json.dumps({"returned": {"a": 1}}))
    done = from_elsewhere(f"rpc:{shlex.quote(sys.executable)} fake.py {answer}")
    assert (done.returncode, done.stderr) == (3, "")
    assert 'came     {"returned": {"a": 1}}' in done.stdout
    done = from_elsewhere("rpc:no-such-program-anywhere", remove=True)
    assert done.returncode == 2
    assert "elsewhere\nresult   cannot start no-such-program-anywhere" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("implementation", ["reference", "py:mine:make"])
def test_a_python_adapter_is_served_from_anywhere(from_elsewhere, implementation):
    done = from_elsewhere(implementation)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "tessera-reference" in done.stdout
    assert 'came     {"rejected"' in done.stdout
