"""The command line: what cannot be met is refused in words; help, completion, progress, first steps and smoke."""

from __future__ import annotations

import builtins
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.terminal import TerminalReporter

import tessera_conformance.cli
import tessera_reference.cli
from tessera_conformance.adapter import Diagnostic, Refusal
from tessera_conformance.cases import parse_shard
from tessera_conformance.cli import TASKS, main
from tessera_conformance.options import add_options
from tessera_conformance.plugin import refusing
from tessera_conformance.registry.cases import CaseIndex, IndexedCase
from tessera_conformance.report_plugin import PYTEST, WIDEST, Progress, in_minutes
from tessera_conformance.selection import NothingChosen, matching
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import locate
from tessera_conformance.verdicts import Deviations, MalformedDeviations

from .conftest import FAKES

# The command line itself: help that helps, and requests that cannot be met.


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "reproduce"])
def test_help_shows_the_options_of_the_suite(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    printed = capsys.readouterr().out
    assert stop.value.code == 0
    assert all(word in printed for word in ("--impl IMPL", "--deviations FILE", "--start-deadline", "examples:"))


@pytest.mark.slow
def test_help_lists_the_commands_by_task(capsys: pytest.CaptureFixture[str]) -> None:
    """Each task is a heading with its commands below it, each command on one line of at most 80 characters."""
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert stop.value.code == 0
    for task, commands in TASKS.items():
        start = lines.index(f"{task}:") + 1
        listed = lines[start : lines.index("", start)]
        assert [line.split()[0] for line in listed] == list(commands)
        assert [line for line in listed if len(line) > 80] == []


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["run"], ["reproduce", "ir/matmul/golden/fp32/k-13"], ["run", "-k", "x"]])
def test_an_implementation_must_be_named(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """Forgetting it must not praise the reference."""
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(
        "error: tessera-conformance run: no implementation is named; expected --impl"
    )


@pytest.mark.slow
def test_the_process_that_starts_a_run_imports_nothing_that_judges() -> None:
    program = "import sys, tessera_conformance.commands.run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {*done.stdout.split()}.isdisjoint({"pytest", "numpy", "tessera_conformance.diagnosis"})


def test_a_selection_of_nothing_is_said(tmp_path: object) -> None:
    command = [sys.executable, "-m", "tessera_conformance", "run", "--impl=reference", "-k", "no_such_thing"]
    command.append("ir/test_softmax.py")  # to collect the suite takes seconds
    done = subprocess.run(command, cwd=str(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "error: -k no_such_thing: no case has no_such_thing in its name; " in done.stderr


@pytest.mark.slow
def test_cases_are_listed_without_being_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tessera_conformance", "run", "--impl=reference", "--collect-only"]
    done = subprocess.run([*command, "ir/test_softmax.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "tests collected" in done.stdout, done.stderr) == (0, True, "")


@pytest.mark.slow
def test_a_report_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    command = [sys.executable, "-m", "tessera_conformance", "run", "--impl=reference", "--report-dir=taken"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "is a file; name a folder" in done.stderr) == (2, True)


@pytest.mark.slow
def test_no_violator_is_no_proof(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["strength", "--only", "no-such-violator"]) == 2
    assert "no violator" in capsys.readouterr().err


@pytest.mark.slow
def test_a_reader_that_stops_early_is_no_error() -> None:
    command = f"{sys.executable} -m tessera_conformance clauses list | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout.count("\n")) == ("", 1)


@pytest.mark.slow
def test_diagnostics_may_be_given_as_the_protocol_has_them() -> None:
    given = {"category": "types", "message": "no", "line": 3}
    assert Refusal("types", "verify", "no", [given]).outcome.diagnostics == (Diagnostic("types", "no", line=3),)


# A request that cannot be met is refused in words: what was tried, what is wrong, what to do; and no traceback.

USAGE = pytest.ExitCode.USAGE_ERROR


@pytest.mark.slow
@pytest.mark.parametrize(
    ("implementation", "words"),
    [
        ("py:nowhere:make", ["py:nowhere:make: there is no module nowhere, here or on PYTHONPATH; run `python -c"]),
        ("py:echo:Absent", ["module echo has no callable 'Absent'; name a function or class"]),
        ("py:echo", ["module or factory is missing", "use py:module:factory"]),
        (
            "py:broken_import:make",
            ["importing broken_import failed: ", "broken_import.py:", "acme driver 3 or newer", "; run `python -c"],
        ),
        ("rpc:no-such-program --x", ["no program no-such-program is on PATH; give the command"]),
        ("rpc:./nope", ["rpc:./nope: there is no file ./nope; give the command"]),
        ("rpc:/dev/null", ["/dev/null is no program that may be run"]),
        ("referense", ["unknown form; did you mean reference?"]),
        ("rpc:'unbalanced", ["No closing quotation", "balance the quotes"]),
        ("cabi:no/such/libacme.so", ["there is no file no/such/libacme.so; name the shared library"]),
        ("cabi:lib.so,descriptions=d", ["there is no option descriptions; did you mean description?"]),
        ("cabi:lib.so,colour=d", ["there is no option colour; use cabi:/path/lib.so, with ,header=FILE "]),
        (
            "acme",
            ["unknown form", "use reference, py:module:factory, ops:module:table, rpc:command, cabi:/path/lib.so, "],
        ),
    ],
)
def test_an_implementation_that_cannot_be_found(monkeypatch, implementation, words):
    monkeypatch.syspath_prepend(FAKES)
    with pytest.raises(ImplementationUnavailable) as raised:
        locate(implementation)
    assert [word for word in words if word not in str(raised.value)] == []


@pytest.mark.slow
@pytest.mark.parametrize("implementation", ["py:nowhere:make", "acme"])
def test_a_run_without_an_implementation_ends_before_it_begins(shared_checkout, implementation):
    done = shared_checkout.run(f"--impl={implementation}")
    assert done.exit_code == USAGE
    assert done.report is None
    assert f"error: {implementation}: " in done.output
    assert "Traceback" not in done.output


@pytest.mark.slow
@pytest.mark.parametrize("shard", ["0/3", "4/3", "half"])
def test_a_malformed_shard(shard):
    with pytest.raises(ValueError, match="expected k/N"):
        parse_shard(shard)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "words"), [("--deadline=0", "positive number of seconds"), ("--shard=4/3", "expected k/N")]
)
def test_a_malformed_option_is_a_bad_request(shared_checkout, option, words):
    done = shared_checkout.run(option)
    assert (done.exit_code, words in done.output) == (USAGE, True)


@pytest.mark.slow
def test_a_case_to_reproduce_that_does_not_exist(shared_checkout):
    done = shared_checkout.run("--reproduce=ir/sample/passes/3")
    assert done.exit_code == USAGE
    assert "no such case: ir/sample/passes/3; did you mean ir/sample/passes/" in done.output
    assert done.report is None


UNSOUND = {
    "a": ('@clause("LANG-02.1-99")\ndef test_a(check): ...', ["LANG-02.1-99", "LANG-02.1-09"]),
    "b": ('@clause("LANG-02-99")\ndef test_b(check): ...', ["there is no clause LANG-02-99"]),
    "c": ("def test_c(check): ...", ["no clause: every test of the suite names the clauses it judges"]),
    "d": ('@clause("LANG-02-01")\n@level("quick")\ndef test_d(check): ...', ["unknown level 'quick'"]),
    "e": (
        '@clause("LANG-02-01")\n@pytest.mark.parametrize("x", ["a b", "a-b"])\ndef test_e(check, x): ...',
        ["case id ir/more/e/a-b is also that of"],
    ),
}


@pytest.mark.slow
def test_tests_that_are_not_tagged_soundly_stop_the_run(checkout):
    """Unknown clause ids, missing tags and clashing case ids are errors of collection, and all are told."""
    tests = "\n\n".join(text for text, _ in UNSOUND.values())
    text = f"import pytest\nfrom tessera_conformance.marks import clause, level\n\n{tests}\n"
    (checkout.directory / "conformance" / "ir" / "test_more.py").write_text(text)
    done = checkout.run()
    assert done.exit_code == USAGE, done.output
    assert done.report is None
    _, *told = done.output.split("conformance/ir/test_more.py::test_")
    problems = {problem[0]: problem for problem in told if not problem.startswith("e[a b]")}
    assert problems.keys() == UNSOUND.keys(), done.output
    for name, (_, words) in UNSOUND.items():
        assert [word for word in words if word not in problems[name]] == []


# Every error of a command has one form, `error: WHERE: what; expected; do`, and names what may have been meant.


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["rum"], "tessera-conformance: unknown command rum; expected "),
        (["rum"], "; did you mean run?"),
        (["clauses", "lst"], "tessera-conformance clauses: unknown action lst; expected list, "),
        (["new-adapter", "--kind=langage"], "--kind: unknown kind langage; expected runtime, language, "),
        (["new-adapter", "--kid=runtime"], "--kid=runtime: no such argument; did you mean --kind?"),
        (["compare", "one"], "tessera-conformance compare: the following arguments are required: B; `tessera-conf"),
        (["smoke"], "smoke: 0 implementations are named; expected one, --impl and one of reference, "),
        (["smoke", "referense"], "referense: unknown form; did you mean reference?; use reference, "),
        (
            ["clauses", "show", "LANG-10-5"],
            "there is no clause LANG-10-5; expected the id of a clause of the registry; ",
        ),
        (["report", "absent.jsonl"], "absent.jsonl: No such file or directory"),
        (["run"], "tessera-conformance run: no implementation is named; expected --impl and one of "),
    ],
)
def test_a_command_that_cannot_be_done(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = main(arguments)
    except SystemExit as end:
        code = int(str(end.code))
    printed = capsys.readouterr().err
    assert code == 2
    assert printed.startswith("error: ")
    assert printed.count("\n") == 1
    assert error in printed


def test_an_adapter_is_not_written_over_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.py"
    path.write_text("precious")
    assert main(["new-adapter", str(path)]) == 2
    assert capsys.readouterr().err == f"error: {path}: File exists; name a new file in a folder that can be written\n"
    assert path.read_text() == "precious"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1}', "the line has no record"),
        ('{"record": "head"}', "the line has an unknown record 'head'"),
        ("INFO: starting", "is not a JSON object"),
        ("", "the file is empty"),
    ],
)
def test_a_file_that_is_no_report(text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    assert main(["report", str(path)]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"error: {path}:1: not the header of a report: ")
    assert why in printed
    assert printed.endswith("; expected the report.jsonl of a run; run the suite again\n")


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("--level", "exact", "--level: unknown value exact; expected fast, deterministic or strict"),
        ("--level", "strct", "; did you mean strict?"),
        ("--deadline", "-1", "--deadline: -1: expected a positive number of seconds"),
        ("--deadline", "0", "--deadline: 0: expected a positive number of seconds"),
        ("--deadline", "soon", "--deadline: soon: expected a positive number of seconds"),
        ("--start-deadline", "inf", "--start-deadline: inf: expected a positive number of seconds"),
        ("--today", "tomorrow", "--today: tomorrow: expected a day such as 2027-01-31"),
    ],
)
def test_the_value_of_an_option(option: str, value: str, error: str) -> None:
    readers: dict[str, Any] = {}
    add_options(lambda *names, **settings: readers.update({names[0]: refusing(names[0], settings).get("type")}))
    with pytest.raises(pytest.UsageError) as raised:
        readers[option](value)
    assert error in str(raised.value)


def test_every_problem_of_the_deviations_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    entry = '[[deviation]]\ncases = "ir/*"\nreason = "x"\nmode = "may_fail"\nowner = "me"\nexpires = 2027-01-31\n\n'
    wrong = '[[deviation]]\ncases = "ir/*"\nowner = "me"\nmode = "mustfail"\nexpires = 2027-01-31\n'
    path.write_text(entry + wrong)
    with pytest.raises(MalformedDeviations) as raised:
        Deviations.read(path)
    first, second = raised.value.args
    assert first.startswith(f"{path}:8: 'reason' is a required property; ")
    assert second.startswith(f"{path}:11: mode: 'mustfail' is not one of ['must_fail', 'may_fail']; ")


NODES = (
    "ir/test_matmul.py::test_golden[fp32-k-13]",
    "ir/test_sums.py::test_golden[fp16]",
    "abi/test_images.py::test_a",
)
INDEX: CaseIndex = {node: IndexedCase(node, (), (), ()) for node in NODES}


@pytest.mark.parametrize(
    ("expression", "nodes"),
    [
        ("matmul", NODES[:1]),
        ("GOLDEN and not fp16", NODES[:1]),
        ("ir or images", NODES),
        ("(matmul or sums) and fp16", NODES[1:2]),
        ("clause", None),
        ("matmul and and", None),
    ],
)
def test_keywords_are_matched_by_the_index(expression: str, nodes: tuple[str, ...] | None) -> None:
    kept = matching(expression, INDEX)
    assert (None if kept is None else tuple(kept)) == nodes


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("matmull", "-k matmull: no case has matmull in its name; did you mean matmul?"),
        ("golden and summs", "no case has summs in its name; did you mean sums?"),
        ("zzzz", "no case has zzzz in its name; `--list` shows the cases"),
        ("matmul and fp16", "-k matmul and fp16: no case has all of these names; leave out one of them"),
    ],
)
def test_a_keyword_of_no_case_names_one_that_is_near(expression: str, error: str) -> None:
    with pytest.raises(NothingChosen) as raised:
        matching(expression, INDEX)
    assert error in str(raised.value)


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["-n", "two"], "-n/--numprocesses: 'two' is not what it takes; `tessera-conformance run --help` shows "),
        (["--nosuch"], "--nosuch: no such argument; `tessera-conformance run --help` shows what it takes"),
        (["--level", "exact"], "--level: unknown value exact; expected fast, deterministic or strict"),
        (["--report-dir=/proc/x", "ir/test_softmax.py"], "/proc/x: the report cannot be written: "),
    ],
)
def test_a_run_that_pytest_does_not_understand(options: list[str], error: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tessera_conformance", "run", "--impl=reference", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout
    assert f"error: {error}" in done.stderr
    assert done.stderr.count("\n") == 1


# The completions of a shell: those of bash are asked for words, those of the others are written.

PROGRAMS: dict[str, Callable[[list[str]], int]] = {
    "tessera-conformance": tessera_conformance.cli.main,
    "tessera-reference": tessera_reference.cli.main,
}
COMPLETED = [
    ("tessera-conformance", "r", {"run", "reproduce", "report"}),
    ("tessera-conformance", "run --lev", {"--level"}),
    ("tessera-conformance", "run --level d", {"deterministic"}),
    ("tessera-conformance", "clauses sh", {"show"}),
    ("tessera-conformance", "new-adapter --language g", {"go"}),
    ("tessera-reference", "ver", {"verify"}),
    ("tessera-reference", "fmt --c", {"--check"}),
    ("tessera-reference", "fmt prog", {"program.tsr"}),
]


@pytest.mark.parametrize(("program", "typed", "completed"), COMPLETED)
def test_bash_completes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str, typed: str, completed: set[str]
) -> None:
    pytest.importorskip("shtab", reason="pip install shtab")
    bash = shutil.which("bash")
    assert bash is not None, "every test machine has bash"
    (tmp_path / "program.tsr").touch()
    assert PROGRAMS[program](["completion", "bash"]) == 0
    script = capsys.readouterr().out
    words = [program, *typed.split()]
    asked = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _shtab_{program.replace('-', '_')}"
    told = subprocess.run(
        [bash, "-c", f"{script}\n{asked}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(told.stdout.split()) == completed, told.stderr


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_the_other_shells_have_a_script(capsys: pytest.CaptureFixture[str], program: str, shell: str) -> None:
    pytest.importorskip("shtab", reason="pip install shtab")
    assert PROGRAMS[program](["completion", shell]) == 0
    script = capsys.readouterr().out
    assert program in script and "completion" in script


@pytest.mark.parametrize("program", PROGRAMS)
def test_without_the_extra_the_remedy_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: str
) -> None:
    imported = builtins.__import__

    def without_shtab(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "shtab":
            raise ImportError(name)
        return imported(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_shtab)
    assert PROGRAMS[program](["completion", "bash"]) == 2
    assert "pip install 'tessera-conformance[completion]'" in capsys.readouterr().err


# How far a run is: by the seconds that cases take, and what is left of them.


class Reporter:
    """The part of pytest's interface that is replaced."""

    def __init__(self) -> None:
        self._screen_width, self._show_progress_info = 80, "progress"

    def _get_progress_information_message(self) -> str:
        return " [ 50%]"


@pytest.fixture
def begun() -> tuple[Progress, Reporter, list[float]]:
    """A run of four cases, of which the last takes nine tenths of the time; and its clock."""
    reporter, clock = Reporter(), [0.0]
    plugins = SimpleNamespace(get_plugin=lambda name: reporter)
    config: Any = SimpleNamespace(pluginmanager=plugins)
    seconds = {"a": 1.0, "b": 1.0, "c": 1.0, "long": 27.0}
    progress = Progress(config, lambda nodes: {node: seconds[node] for node in nodes}, lambda: clock[0])
    items = [SimpleNamespace(nodeid=name) for name in seconds]
    progress.pytest_collection_finish(SimpleNamespace(items=items))  # type: ignore[arg-type]
    return progress, reporter, clock


def ends(progress: Progress, node: str, outcome: str = "passed") -> None:
    for when in ("setup", "call", "teardown"):
        skipped = outcome == "skipped" and when == "call"
        progress.pytest_runtest_logreport(SimpleNamespace(nodeid=node, when=when, skipped=skipped))  # type: ignore[arg-type]


def test_the_time_left_follows_from_the_seconds_of_the_cases(begun: Any) -> None:
    progress, reporter, clock = begun
    ends(progress, "a")
    clock[0] = 5.0
    ends(progress, "b")
    ends(progress, "c")
    assert reporter._get_progress_information_message() == " [ 10%, 1/s, 0:45 left]"
    clock[0] = 30.0
    ends(progress, "long")
    assert progress.message() == " [100%, 0/s, 0:30]"


def test_a_case_that_does_not_apply_takes_no_time(begun: Any) -> None:
    progress, _, clock = begun
    ends(progress, "a")
    clock[0] = 2.0
    ends(progress, "long", "skipped")
    assert progress.message() == " [ 33%, 1/s, 0:04 left]"


def test_nothing_is_said_of_the_rate_at_first(begun: Any) -> None:
    progress, reporter, _ = begun
    ends(progress, "a")
    assert progress.message() == " [  3%]"
    assert reporter._screen_width == 80 - WIDEST + PYTEST


def test_a_run_with_other_tests_keeps_the_percentage_of_pytest() -> None:
    reporter = Reporter()
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda name: reporter))
    Progress(config, lambda nodes: {})._begin(["tests/test_a.py::test_b"])
    assert reporter._get_progress_information_message() == " [ 50%]"
    assert reporter._screen_width == 80


@pytest.mark.parametrize(("seconds", "text"), [(4.4, "0:04"), (70, "1:10"), (3599, "59:59"), (7300, "2 h")])
def test_minutes(seconds: float, text: str) -> None:
    assert in_minutes(seconds) == text


def test_pytest_has_what_is_replaced() -> None:
    """Another version that calls it otherwise keeps its percentage; this says so."""
    source = inspect.getsource(TerminalReporter)
    for name in ("def _get_progress_information_message(", "self._screen_width = ", "self._show_progress_info ="):
        assert name in source


# The skeleton of an adapter works as it is, and `smoke` says what the harness sees.


def test_the_skeleton_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert main(["new-adapter", "skeleton_adapter.py"]) == 0
    assert main(["smoke", "py:skeleton_adapter:make"]) == 0
    printed = capsys.readouterr().out
    assert "my-implementation 0.1, claims language_ir" in printed
    assert "language.verify        answered that it does not support language.verify" in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fake", "code", "words"),
    [
        ("claims_nothing", 1, "nothing was asked, since nothing is claimed"),
        ("hangs", 1, "no answer within 2 s"),
        ("dies_at_start", 1, "| cannot find libacme.so.3"),
        ("sends_text", 1, "(char 0): 'INFO: compiling ...'"),
        (
            "claims_what_it_lacks",
            0,
            "language.verify        answered that it does not support language.verify: the core of language_ir",
        ),
    ],
)
def test_smoke_says_what_the_harness_sees(
    fake_command: Callable[[str], str], capsys: pytest.CaptureFixture[str], fake: str, code: int, words: str
):
    """Two questions show that the next one is asked after a fault; each fault takes its time limit."""
    documents = " host_io wsp" if fake in ("hangs", "sends_text") else ""
    assert main(["smoke", f"rpc:{fake_command(fake)}{documents}", "--deadline=2"]) == code
    printed = capsys.readouterr().out
    assert words in printed
    assert not documents or printed.count(words) == 2


def test_smoke_of_nothing(capsys: pytest.CaptureFixture[str]):
    assert main(["smoke", "rpc:no-such-program"]) == 2
    assert capsys.readouterr().err.startswith("error: rpc:no-such-program: no program no-such-program is on PATH; ")


# `smoke` asks about what is claimed, and says of each answer whether it is right.


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FAKES)


def smoke(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, list[str]]]:
    """The exit code, and what was said of each method."""
    code = main(["smoke", *options])
    told: dict[str, list[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        method, _, what = line.partition(" ")
        told.setdefault(method, []).append(what.strip())
    return code, told


def test_every_document_that_is_claimed_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    code, told = smoke(capsys, "--impl=reference")
    assert code == 0
    assert {"language.execute", "abi.parameter_layout", "tessGetVersion", "tessxHostRead"} < told.keys()
    assert {"collectives.all_reduce", "host_io.exchange", "wsp.execute"} < told.keys()
    assert all(
        answer.startswith("right, ")
        for method, answers in told.items()
        for answer in answers[method == "session.open" :]
    )


def test_what_is_not_claimed_is_not_asked(capsys: pytest.CaptureFixture[str]) -> None:
    _, told = smoke(capsys, "py:echo:Echo")
    assert set(told) == {"session.open", "language.parse", "language.verify", "language.lower", "language.execute"}


def test_a_wrong_answer_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Echo hands back its inputs, where their sum was asked for."""
    code, told = smoke(capsys, "py:echo:Echo")
    assert code == 1
    (answer,) = told["language.execute"]
    assert answer == "wrong, an addition: the number of results: expected 1, found 2"


def test_what_an_adapter_raises_is_told_without_the_frames_of_the_harness(capsys: pytest.CaptureFixture[str]) -> None:
    _, told = smoke(capsys, f"py:{__name__}:Short")
    assert told["language.execute"] == [
        "crash, an addition: MalformedTensor: fp32 of shape [2] takes 8 bytes, but 3 were given"
    ]
    (frames,) = (lines for method, lines in told.items() if not method)
    assert [line for line in frames if "File" in line and Path(__file__).name not in line] == []


class Short:
    """Answers with fewer bytes than the shape has."""

    def hello(self) -> dict[str, object]:
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "short", "version": "1"},
            "documents": ["language_ir"],
            "capabilities": {"execution": "enforced"},
        }

    def language_execute(self, **_: object) -> dict[str, object]:
        return {"outputs": [Tensor("fp32", (2,), b"abc")]}


def test_an_unknown_feature_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code, told = smoke(capsys, "py:echo:ClaimsATypo", "--via=operations")
    assert code == 1
    assert re.search(
        "wrong: .*'extra_dtypes', which is no feature; did you mean extra-dtypes.; `tessera-conformance clauses",
        told["session.open"][1],
    )


def test_by_operations_no_program_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    _, told = smoke(capsys, "--impl=reference", "--via=operations")
    assert not [method for method in told if method.startswith("language.")]
    assert told["numerics.evaluate"] == ["right, an addition"]


@pytest.mark.parametrize("options", [[], ["reference", "--impl=reference"]])
def test_one_implementation_is_named(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    assert main(["smoke", *options]) == 2
    assert "implementations are named; expected one, --impl and one of reference, " in capsys.readouterr().err
