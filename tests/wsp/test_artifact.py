"""The native artifact gives the executor's result in every field, for a corpus and for random programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.reports.journal import read
from tessera_reference.cli import main
from tessera_reference.wsp import deadlock, policies
from tessera_reference.wsp.builder import Channel, Program
from tessera_reference.wsp.native import FLAGS, BuildFailed, NativeRun, NoCompiler, build
from tessera_reference.wsp.package import Package, TaskWindow, load, package_bytes
from tessera_reference.wsp.run import Run
from tessera_reference.wsp.targets import target

from .deadlocks import DEADLOCKS
from .native import QUICK, SANITIZED, Settings, differences, executed, package_of, result
from .programs import CORPUS, program

RANDOM, BATCH, FEW = 500, 50, 15
TIGHT_SIZES: Settings = {"resources": {"task_window": 2, "ready_queue": 1}}
TIGHT: Settings = {"symbols": {"m": 2, "n": 7}, **TIGHT_SIZES}


def made(name: str) -> Package:
    found = Program(name)
    CORPUS[name](found)
    return load(found.compile().package)


def corpus() -> list[Package]:
    deadlocks = [load(deadlock.program.compile().package) for deadlock in DEADLOCKS.values()]
    return [*map(made, CORPUS), *deadlocks]


@pytest.fixture(scope="module")
def summing(tmp_path_factory: pytest.TempPathFactory) -> tuple[Package, Path]:
    """A program with a symbol, a tensor and tasks, built."""
    given = Program("summing")
    tensor, total = given.tensor("x", "u16", 3, [1, 2, 3]), given.tensor("total", "u16", 1)
    times = given.symbol("times", 2, width=8)
    grow = given.kernel("grow", cycles=2, x="tensor").add("x", "x", 10)
    with given.process("p"):
        with given.repeat(times):
            given.task(grow, tensor)
        given.run(given.kernel("sum", d="tensor", x="tensor").sum("d", "x"), total, tensor)
        given.load("answer", total)
    package, path = load(given.compile().package), tmp_path_factory.mktemp("native") / "summing"
    build(package, path)
    return package, path


def test_symbols_tensors_and_sizes_change_between_runs_without_compiling(summing: tuple[Package, Path]) -> None:
    package, path = summing
    given: dict[str, Any] = {
        "symbols": {"times": 5},
        "tensors": {"x": b"\1\0\0\1\0\0"},
        "resources": {"task_window": 1},
    }
    answers = []
    for settings in ({}, *({symbol: value} for symbol, value in given.items())):
        native = result(package, path, **settings)
        assert native == executed(package, settings)
        answers.append(native["statistics"]["slots"]["answer"])
    assert answers == ["66", "156", str(1 + 256 + 60), "66"]


def test_each_knob_of_a_mitigation_is_one_of_the_native_program(tmp_path: Path) -> None:
    names = ("sends_twice_to_itself", "nested_scopes_hold_the_window", "an_output_is_larger_than_the_heap")
    for name in names:
        package = load(DEADLOCKS[name].program.compile().package)
        build(package, tmp_path / name, QUICK)
        assert DEADLOCKS[name].cures
        for cure in DEADLOCKS[name].cures:
            native = result(package, tmp_path / name, resources=cure)
            assert native["outcome"] == "completed" and native == executed(package, {"resources": cure})


def test_a_built_program_needs_nothing_of_python(summing: tuple[Package, Path]) -> None:
    done = subprocess.run([summing[1]], env={}, cwd="/", capture_output=True, check=True)
    assert json.loads(done.stdout)["outcome"] == "completed"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--symbol", "time=1"], "--symbol time=1: the program has no such input"),
        (["--symbol", "times=256"], "--symbol times=256: expected a number from 0 to 255"),
        (["--symbol", "times=18446744073709551616"], "expected a number from 0 to 255"),
        (["--symbol", "times=-1"], "expected a number from 0 to 255"),
        (["--symbol", "times"], "--symbol times: the program has no such input"),
        (["--resource", "ready_queue=0"], "expected a number from 1 to 4294967295"),
        (["--resource", "pool=1"], "no such input"),
        (["--resource", "channel.c.capacity=1"], "no such input"),
        (["--resource", "scope.p=0"], "expected a number from 1"),
        (["--tensor", "x=/dev/null"], "another number of bytes"),
        (["--tensor", "x=/nowhere"], "its file cannot be read"),
        (["--verbose", "x=1"], "expected --symbol"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    summing: tuple[Package, Path], arguments: list[str], problem: str
) -> None:
    done = subprocess.run([summing[1], *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and problem in done.stderr and done.stdout == ""


def test_the_command_builds_and_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = tmp_path / "package.json"
    package.write_bytes(package_bytes(made("readers_and_writers")))
    text, path = tmp_path / "program.c", tmp_path / "program"
    made_package = made("readers_and_writers")
    assert main(["wsp", "build", str(package), "-o", str(path), "--c", str(text)]) == 0
    native = result(made_package, path)
    assert "int main" in text.read_text(encoding="utf-8")
    for engine in ([], ["--engine", "native"], ["--engine", "executor"]):
        assert main(["wsp", "run", *engine, str(package), "--resource", "task_window=3"]) == 0
        assert json.loads(capsys.readouterr().out) == executed(made_package, {"resources": {"task_window": 3}})
        assert main(["wsp", "run", *engine, str(package), "--symbol", "none=3"]) == 2
        assert capsys.readouterr().err == "error: symbol none: the package has no symbols\n"
    assert native == executed(made_package, {})


def test_packages_of_other_targets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="is for aie, and native programs are for cpu_sim"):
        build(replace(made("nothing"), target="aie"), tmp_path / "program")


def test_without_a_compiler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompiler, match=r"install one.*--engine executor"):
        build(made("nothing"), tmp_path / "program")


def test_a_failing_compiler_is_told(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="ended with"):
        build(made("nothing"), tmp_path / "program", ("-no-such-flag",))


def test_the_text_compiles_without_a_warning(tmp_path: Path) -> None:
    assert differences([made("readers_and_writers"), made("every_operator")], tmp_path / "program", FLAGS) == []


@pytest.mark.slow
def test_the_corpus_gives_equal_results_under_sanitizers(tmp_path: Path) -> None:
    """Deadlocks and errors of every kind among them; the sanitizers look for leaks too."""
    assert differences(corpus(), tmp_path / "program", SANITIZED) == []


@pytest.mark.slow
def test_searches_that_are_cut_off_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both count the same steps: the search for mitigations ends at the same one."""
    monkeypatch.setattr(deadlock, "LEAST_STEPS", 30)
    packages = [*map(package_of, map(program, range(FEW)))]
    packages += [load(deadlock.program.compile().package) for deadlock in DEADLOCKS.values()]
    assert differences(packages, tmp_path / "program", QUICK, ({}, TIGHT_SIZES)) == []


@pytest.mark.slow
def test_random_programs_give_equal_results(tmp_path: Path, drawn: Callable[[int], int]) -> None:
    """Five hundred programs with `--whole`, each with two settings; the seed of one that differs is shown."""
    for first in range(0, drawn(drawn(RANDOM)), BATCH):
        packages = [package_of(program(seed)) for seed in range(first, first + BATCH)]
        actual = differences(packages, tmp_path / f"program{first}", QUICK, ({}, TIGHT))
        assert not actual, f"seed {first + actual[0][0]}, {actual[0][1]}"
        os.remove(tmp_path / f"program{first}")


@pytest.mark.parametrize("engine", [Run, NativeRun])
def test_a_send_waits_though_the_issue_before_it_completed_a_task(engine: type[Run] | type[NativeRun]) -> None:
    """The task that is issued last takes a token for whose place another task waits, which completes and frees."""
    program = Program("p")
    c, d = program.channel("c"), program.channel("d")
    kernels = {cycles: program.kernel(f"k{cycles}", cycles=cycles) for cycles in (1, 5, 10, 100)}
    program.dispatch("round_robin", workers=2)
    program.task_window(TaskWindow(2))
    with program.process("p"):
        program.task(kernels[1], signals=[c, c])
        program.task(kernels[5])
        program.task(kernels[1], waits=[c])
        program.send(d)
        program.send(d)
        program.run(kernels[10])
    with program.process("q"):
        program.run(kernels[100])
        with program.consume(d, into="x"):
            pass
    result = engine(load(program.compile().package)).finish().result()
    assert result["outcome"] == "completed" and result["statistics"]["processes"]["p"] == 110


def test_a_policy_is_one_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the module is added: matrices list it, the executor and the native program place by it."""
    text = """from ..statements import Leaf, Operation


def worker(workers, shift):
    sum = Operation("add", (Leaf("input", "task"), shift))
    return Operation("mod", (Operation("not", (sum,)), workers))
"""
    (tmp_path / "last_come.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(policies, "__path__", [*policies.__path__, str(tmp_path)])
    policies.found.cache_clear()
    target.cache_clear()
    try:
        program = Program("p")
        kernel = program.kernel("k", cycles=3)
        program.dispatch("last_come", workers=3, shift=program.symbol("shift", 1))
        with program.process("p"), program.repeat(5):
            program.task(kernel)
        package = load(program.compile().package)
        executed = Run(package).finish().result()
        assert executed["statistics"]["assignments"] == [(~(index + 1) % 2**64) % 3 for index in range(5)]
        assert NativeRun(package).finish().result() == executed
    finally:
        policies.found.cache_clear()
        target.cache_clear()


@pytest.mark.parametrize("name", ["readers_and_writers", "every_operator"])
def test_the_native_program_shows_each_instant(name: str) -> None:
    """Statistics, current stalls and what waits are those of the executor, instant by instant."""
    package = made(name)
    native, executor = NativeRun(package, resources={"task_window": 1}), Run(package, resources={"task_window": 1})
    goes_on = True
    while goes_on:
        goes_on = executor.step()
        assert native.step() == goes_on
        assert native.result() == executor.result()


@pytest.mark.slow
def test_the_suite_judges_the_native_program(tmp_path: Path) -> None:
    """Every case on packages and networks that it claims passes; the simulated device is another implementation."""
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "conformance/runtime/wsp/test_seeds.py"]
    command += ["conformance/runtime/wsp/test_predicates.py", "conformance/runtime/wsp/test_network_deadlocks.py"]
    serve = f"rpc:{sys.executable} -m tessera_reference.cli wsp serve"
    subprocess.run(
        [sys.executable, *command, f"--impl={serve}", f"--report-dir={tmp_path}"],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        check=False,
        timeout=300,
    )
    verdicts = {line["verdict"] for line in read(tmp_path / "report.jsonl").observations}
    assert verdicts == {"pass"}


def endless(progress: bool) -> Package:
    """Turns of a loop that are too many, each with or without a token that is sent and taken."""
    program = Program("p")
    channel, tensor = program.channel("c"), program.tensor("t", "i32", 1)
    with program.process("q"):
        program.receive(program.channel("d"), "x")
    with program.process("s"), program.scope(), program.repeat(2**64 - 1):
        if progress:
            program.send(channel)
            program.receive(channel, "y")
        program.load("z", tensor)
    with program.process("r"):
        program.send(Channel("d"))
    return load(program.compile().package)


@pytest.mark.parametrize("progress", [True, False])
def test_a_loop_without_end_ends_at_the_bound(tmp_path: Path, progress: bool) -> None:
    """With progress by STEP_LIMIT; without, as a deadlock that names the process; equal in the native program."""
    package = endless(progress)
    build(package, tmp_path / "program", QUICK)
    for most, scopes in product((1, 7, 150, 20_000, 400_001), ({}, {"scope.s": 1})):
        executed = Run(package, resources=scopes, max_steps=most).finish().result()
        assert result(package, tmp_path / "program", resources=scopes, max_steps=most) == executed
        if most > 1000:
            assert executed["outcome"] == ("error" if progress else "deadlock")
            assert progress or executed["deadlock"]["spinning"] == "s"
            assert not progress or executed["error"]["code"] == "STEP_LIMIT"


def test_the_bound_on_steps_is_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "package.json"
    path.write_bytes(package_bytes(endless(True)))
    assert main(["wsp", "explain", str(path), "--max-steps", "3000"]) == 1
    assert capsys.readouterr().out.startswith("error STEP_LIMIT at 0: s at body/0/body/0")
    path.write_bytes(package_bytes(endless(False)))
    assert main(["wsp", "explain", str(path), "--max-steps", "3000"]) == 1
    assert "spinning: process s goes on without a kernel, a token or a task" in capsys.readouterr().out
