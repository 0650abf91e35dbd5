"""Every error of a command has one form, `error: WHERE: what; expected; do`, and names what may have been meant."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cli import main
from tessera_conformance.deviations import Deviations, MalformedDeviations
from tessera_conformance.options import add_options
from tessera_conformance.plugin import refusing
from tessera_conformance.registry.case_index import CaseIndex, IndexedCase
from tessera_conformance.selection.choice import NothingChosen
from tessera_conformance.selection.narrowing import matching

from .conftest import Checkout


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
    path.touch()
    assert main(["new-adapter", str(path)]) == 2
    assert capsys.readouterr().err == f"error: {path}: File exists; name a new file in a folder that can be written\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1}', "the line has no record"),
        ('{"record": "head"}', "the line has an unknown record 'head'"),
        ("INFO: starting", "is not a JSON object"),
        ("", "is not a JSON object"),
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
        ("--deadline", "soon", "--deadline: soon: expected a positive number of seconds"),
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


def test_an_unsuitable_option_of_pytest_itself(shared_checkout: Checkout) -> None:
    done = shared_checkout.run("--level=exact")
    assert done.exit_code == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: --level: unknown value exact; expected fast, deterministic or strict" in done.output
    assert "usage:" not in done.output
