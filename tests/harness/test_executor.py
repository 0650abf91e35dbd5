"""A run in several processes gives what one process gives: on a cluster, and on the processors of a machine."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tessera_conformance.commands import suite_process
from tessera_conformance.commands.suite_process import ALONE, LONG, processes
from tessera_conformance.executor import engine as engines
from tessera_conformance.executor.engine import Engine, ExecutorUnavailable, Lost
from tessera_conformance.executor.worker import Answer, NoAnswer, _complete, read_answer
from tessera_conformance.registry.cases import IndexedCase
from tessera_conformance.reports.journal import Report, read
from tessera_conformance.vectors import files as vector_folder
from tessera_conformance.vectors.files import parse, render

from .conftest import is_alive, pids_in

# A run that is spread over the workers of a cluster gives what one process gives, whatever becomes of the workers.

pytest.importorskip("distributed", reason="pip install -e '.[dask]'")

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Cluster:
    """A scheduler with workers, which run in a checkout as its commands do."""

    executor: str
    directory: Path
    process: subprocess.Popen[str]

    def start(self, *arguments: str, first: Path | None = None) -> subprocess.Popen[str]:
        """A command of the checkout; `first` is looked through for modules before all other folders."""
        return subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=self.directory,
            env=environment(self.directory, first),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __call__(self, *arguments: str, first: Path | None = None) -> tuple[int, str]:
        """Exit code and output of a command."""
        process = self.start(*arguments, first=first)
        output, _ = process.communicate(timeout=300)
        assert "Traceback" not in output, output
        return process.returncode, output

    def run(self, name: str, *options: str, impl: str = "py:echo:Echo", first: Path | None = None) -> CompletedRun:
        """The sample suite against an implementation."""
        report = self.directory / name
        shutil.rmtree(report, ignore_errors=True)
        code, output = self(
            "tessera_conformance", "run", f"--impl={impl}", f"--report-dir={report}", *options, first=first
        )
        return CompletedRun(code, output, report / "report.jsonl")


@dataclass(frozen=True)
class CompletedRun:
    """Exit code and output of a run, and where its report is."""

    code: int
    output: str
    path: Path

    @property
    def report(self) -> Report:
        """The report, which must be whole."""
        report = read(self.path)
        assert report.problem is None, self.output
        return report

    @property
    def digest(self) -> str:
        """Return the parts of a report that are equal in two runs of the same behaviour."""
        assert self.report.footer is not None
        return str(self.report.footer["sha256"])

    def verdicts(self) -> dict[str, str]:
        """The verdict of each case, by the last part of its id."""
        return {line["case"].removeprefix("ir/sample/"): line["verdict"] for line in self.report.observations}


def environment(directory: Path, first: Path | None = None) -> dict[str, str]:
    paths = [*([] if first is None else [first]), directory / "conformance/harness", HERE / "fakes"]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "XDG_CACHE_HOME": str(directory / "cache"),
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
    }


@pytest.fixture(scope="module")
def start_cluster(shared_checkout: Any) -> Iterator[Callable[[int], Cluster]]:
    """Starts a cluster of so many workers, a process each."""
    started: list[subprocess.Popen[str]] = []

    def start(workers: int) -> Cluster:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "cluster.py"), str(workers)],
            cwd=shared_checkout.directory,
            env=environment(shared_checkout.directory),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        return Cluster(f"dask:{address}", shared_checkout.directory, process)

    yield start
    for process in started:
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[[int], Cluster]) -> Cluster:
    """Two workers."""
    return start_cluster(2)


@pytest.fixture
def engine(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Units that are done carelessly, as if this process were one of the checkout."""
    program = "import json; from tessera_conformance.executor import worker; print(json.dumps(worker.own_identity()))"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(cluster.directory), capture_output=True, text=True, check=True
    )
    monkeypatch.setattr(engines, "own_identity", lambda: json.loads(done.stdout))
    with Engine(cluster.executor, "careless_unit", {"result": [1, {"two": 2.5}]}) as engine:
        yield engine


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])


def wait_for(condition: Callable[[], object], seconds: float = 120) -> None:
    limit = time.monotonic() + seconds
    while not condition() and time.monotonic() < limit:
        time.sleep(0.05)
    assert condition()


KNOWN = """
[[deviation]]
cases = "ir/sample/differs-in-one-bit"
mode = "must_fail"
reason = "rounds twice"
owner = "acme"
expires = 2999-01-01
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
def test_two_workers_give_the_report_of_one_process(cluster: Cluster, tmp_path: Path) -> None:
    """Under a selection and known deviations, with verdicts of every kind."""
    (tmp_path / "known.toml").write_text(KNOWN)
    options = [f"--deviations={tmp_path / 'known.toml'}", "-k", "not skipped", "--evidence=all"]
    alone = cluster.run("alone", *options)
    spread = cluster.run("spread", *options, f"--executor={cluster.executor}", "--unit-seconds=0.05")
    assert spread.verdicts() == alone.verdicts()
    assert len(set(spread.verdicts().values())) >= 5
    assert (spread.code, spread.digest) == (alone.code, alone.digest)
    assert (spread.report.footer or {})["dispositions"]["known_deviation"] == 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """Its unit is done by another one, and nothing of the unit outlives it."""
    impl = f"rpc:{sys.executable} {HERE / 'fakes/speaker.py'} waits {tmp_path}"
    chosen = ["-k", "passes or one_bit or no_check or core_feature", "--deadline=300"]
    (tmp_path / "go").touch()
    alone = cluster.run("waiting-alone", *chosen, impl=impl)
    for path in tmp_path.iterdir():
        path.unlink()
    report = cluster.directory / "killed"
    running = cluster.start(
        *("tessera_conformance", "run", f"--impl={impl}", f"--report-dir={report}", *chosen),
        *(f"--executor={cluster.executor}", "--unit-seconds=0.01"),
    )
    try:
        wait_for(lambda: pids_in(tmp_path) or running.poll() is not None)
        implementation = pids_in(tmp_path)[0]
        unit = parent_of(implementation)
        os.kill(parent_of(unit), signal.SIGKILL)
        wait_for(lambda: not is_alive(implementation) and not is_alive(unit), 20)
        (tmp_path / "go").touch()
        output, _ = running.communicate(timeout=120)
    finally:
        running.kill()
    spread = CompletedRun(running.returncode, output, report / "report.jsonl")
    assert (spread.code, spread.digest) == (alone.code, alone.digest), output


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
@pytest.mark.slow
def test_an_implementation_that_ends_its_process_is_a_crash_of_its_case(cluster: Cluster) -> None:
    """The cases after it are judged by another process."""
    done = cluster.run(
        "crashed",
        *("-k", "one_bit or is_broken or no_check or level", f"--executor={cluster.executor}"),
        impl="py:echo:KillsItsProcess",
    )
    assert done.verdicts() == {
        "differs-in-one-bit": "crash",
        "is-broken": "harness_error",
        "judges-another-level": "inapplicable",
        "makes-no-check": "crash",
    }
    lost = next(line for line in done.report.observations if line["case"] == "ir/sample/makes-no-check")
    assert (lost["reason"], lost["clauses"]) == ("the process that ran the case died", ["LANG-02-01"])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
@pytest.mark.slow
def test_an_interrupted_run_seals_its_report_and_ends_its_units(cluster: Cluster, tmp_path: Path) -> None:
    report = cluster.directory / "interrupted"
    running = cluster.start(
        *("tessera_conformance", "run", f"--impl=rpc:{sys.executable} {HERE / 'fakes/speaker.py'} waits {tmp_path}"),
        *("--deadline=300", f"--report-dir={report}", f"--executor={cluster.executor}"),
    )
    try:
        wait_for(lambda: pids_in(tmp_path) or running.poll() is not None)
        (implementation, *_) = pids_in(tmp_path)
        processes = [implementation, parent_of(implementation)]
        running.send_signal(signal.SIGINT)
        output, _ = running.communicate(timeout=60)
    finally:
        running.kill()
    assert "Traceback" not in output, output
    assert "the run was interrupted" in (read(report / "report.jsonl").footer or {})["problems"]
    wait_for(lambda: not any(map(is_alive, processes)), 20)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
@pytest.mark.slow
def test_a_worker_without_the_implementation_or_with_another_one_is_named(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "only_here.py").write_text("from echo import Echo\n")
    (tmp_path / "echo.py").write_text(
        (HERE / "fakes/echo.py").read_text().replace('"version": "1.0"', '"version": "2.0"')
    )
    spread = f"--executor={cluster.executor}"
    for impl, told in (
        ("py:only_here:Echo", "py:only_here:Echo: there is no module only_here"),
        ("py:echo:Echo", "another implementation than this machine: implementation version '1.0', here"),
    ):
        done = cluster.run("refused", spread, impl=impl, first=tmp_path)
        assert done.code == 2
        assert "worker tcp://" in done.output
        assert told in " ".join(done.output.split())
        assert not done.path.exists()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
def test_a_worker_with_another_version_of_the_project_is_named(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers have the suite of the checkout, this process has the real one."""
    with pytest.raises(ExecutorUnavailable, match=r"^worker tcp://\S+ has suite, vectors and harness \w+, where this"):
        Engine(cluster.executor, "careless_unit", {})
    monkeypatch.setattr(engines, "own_identity", lambda: {"tessera-conformance": "0.0.9"})
    with pytest.raises(ExecutorUnavailable, match=r"has tessera-conformance [\d.]+, where this machine has 0.0.9"):
        Engine(cluster.executor, "careless_unit", {})


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
def test_no_task_is_lost_in_silence(engine: Engine) -> None:
    """One that is given up has a reason; a process that dies takes with it its own task alone."""
    units = [("gives a", "dies", "gives b"), ("forgets", "gives c"), ("gives d", "raises")]
    assert dict(engine.results(units)) == {
        **{f"gives {name}": [1, {"two": 2.5}] for name in "abcd"},
        "dies": Lost("", by_task=True),
        "forgets": Lost("its process ended without a result", by_task=False),
        "raises": Lost("RuntimeError: a defect", by_task=False),
    }


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
def test_an_answer_of_a_worker_is_never_unpickled(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command never unpickles an answer, so that a worker cannot run code on the command's machine."""
    monkeypatch.syspath_prepend(HERE / "fakes")
    hostile = importlib.import_module("careless_unit").answer_with_code
    future = engine._client.submit(hostile, str(tmp_path / "made"), pure=False)
    with pytest.raises(ExecutorUnavailable, match="a worker cannot do its work"):
        engine._answer_of(future)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "answer",
    [
        None,
        Answer(),
        b"\xff\n",
        b"[]\n",
        b"{}\n",
        b'["result"]\n',
        b'["moves",1]\n',
        b'["result",7]\n',
        b"[" * 9999 + b"\n",
    ],
)
def test_an_answer_in_another_form_is_refused(answer: object) -> None:
    with pytest.raises(NoAnswer):
        read_answer(answer)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
def test_a_worker_of_another_version_does_no_task_of_its_unit(engine: Engine) -> None:
    """One that comes after the greetings is refused by the process of its first unit, before the first task."""
    engine._identity = {"tessera-conformance": "0.0.9"}
    with pytest.raises(ExecutorUnavailable, match=r"^worker tcp://\S+ has tessera-conformance .* has 0.0.9"):
        list(engine.results([("fells",)]))
    time.sleep(1)
    assert len(engine._client.nthreads()) == 2


ENDS_SUDDENLY = """
import os, sys, time
from tessera_conformance.transports.rpc import ProcessFamily

print(ProcessFamily().start(["sleep", "60"], {}, start_new_session=True).pid, file=open(sys.argv[1], "w"))
time.sleep(0.5)
os._exit(1)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
def test_a_unit_ends_with_all_that_it_started_and_nothing_else(tmp_path: Path) -> None:
    """The worker may do other work of its user meanwhile, which starts processes too."""
    path = tmp_path / "pid"
    with (tmp_path / "output").open("wb") as output, ThreadPoolExecutor(1) as thread:
        unit = [sys.executable, "-c", ENDS_SUDDENLY, str(path)]
        completed = thread.submit(_complete, unit, output.fileno(), "run", str(tmp_path))
        wait_for(lambda: path.exists() and path.read_text().endswith("\n"))
        with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
            completed.result()
            assert other.poll() is None
            other.kill()
    assert not is_alive(int(path.read_text()))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
def test_a_unit_that_a_worker_cannot_do_ends_the_run(engine: Engine) -> None:
    with pytest.raises(ExecutorUnavailable, match=r"^worker tcp://\S+ has no such device$"):
        list(engine.results([("cannot",)]))
    with pytest.raises(ExecutorUnavailable, match=r"^worker tcp://\S+ has another implementation than this machine"):
        list(engine.results([("stranger",)]))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
@pytest.mark.slow
def test_a_task_that_fells_every_worker_is_given_up(engine: Engine) -> None:
    """After as many deaths as the scheduler allows; the other tasks have their results."""
    actual = dict(engine.results([("fells",), ("gives a",), ("gives b",)]))
    assert actual.pop("fells") == Lost("2 workers died one after another while they had it", by_task=False)
    assert sorted(actual) == ["gives a", "gives b"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
@pytest.mark.slow
def test_a_scheduler_that_goes_away_ends_the_run_with_a_sealed_report(
    start_cluster: Callable[[int], Cluster], tmp_path: Path
) -> None:
    cluster, report = start_cluster(1), tmp_path / "report"
    running = cluster.start(
        *("tessera_conformance", "run", f"--impl=rpc:{sys.executable} {HERE / 'fakes/speaker.py'} waits {tmp_path}"),
        *("--deadline=300", f"--report-dir={report}", f"--executor={cluster.executor}", "-p", "impatient_executor"),
    )
    try:
        wait_for(lambda: pids_in(tmp_path) or running.poll() is not None)
        cluster.process.kill()
        output, _ = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 2
    assert "Traceback" not in output, output
    assert re.search(r"the scheduler at \S+ went away", output)
    sealed = read(report / "report.jsonl")
    assert (sealed.problem, sealed.claim) == (None, "failure")
    assert (sealed.footer or {})["problems"][0].startswith("the run was broken off: the scheduler at tcp://")
    wait_for(lambda: not any(map(is_alive, pids_in(tmp_path))), 20)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
@pytest.mark.slow
def test_no_scheduler_and_no_worker_are_told(
    start_cluster: Callable[[int], Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "SCHEDULER_DEADLINE", 0.2)
    monkeypatch.setattr(engines, "WORKERS_DEADLINE", 0.1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(
            ExecutorUnavailable, match=f"^no dask scheduler answers at {address} within 0.2 s.*: start one"
        ):
            Engine(f"dask:{address}", "careless_unit", {})
    with pytest.raises(ExecutorUnavailable, match="expected dask:tcp://HOST:PORT or dask:tls://HOST:PORT"):
        Engine("ray:10.0.0.1", "careless_unit", {})
    monkeypatch.setattr(engines, "SCHEDULER_DEADLINE", 60.0)
    without_workers = start_cluster(0)
    with pytest.raises(ExecutorUnavailable, match=r"^the scheduler at \S+ has had no worker for 0.1 s: start one"):
        Engine(without_workers.executor, "careless_unit", {})


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--shard=1/2"], "--shard is for jobs that share no cluster"),
        (["-n2"], "-n shares the cases out on this machine"),
    ],
)
def test_what_makes_no_sense_beside_a_cluster_is_refused(cluster: Cluster, options: list[str], told: str) -> None:
    done = cluster.run("refused", f"--executor={cluster.executor}", *options)
    assert (done.code, told in done.output, done.path.exists()) == (2, True, False)


VIOLATORS = """
from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import violates
from echo import Echo


@violates("LANG-02-01", "gives nothing back")
class Silent(Echo):
    def language_execute(self, **params):
        return {"outputs": []}


@violates("LANG-03.1-01", "refuses nothing")
class Permissive(Echo):
    def language_execute(self, *, inputs, **params):
        return {"outputs": list(inputs.values())}


@violates("LANG-03.1-01", "echoes")
class Survivor(Echo):
    pass
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
@pytest.mark.whole
@pytest.mark.slow
def test_the_kill_matrix_is_that_of_one_process(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "violators").mkdir()
    (tmp_path / "violators/sample.py").write_text(VIOLATORS)
    command = ["tessera_conformance", "strength", "--control=py:echo:Echo", f"--violators={tmp_path / 'violators'}"]
    command += ["--cases=ir/sample/passes", "--cases=ir/sample/is-refused"]
    code, output = cluster(*command, "--jobs=1", f"--output={tmp_path / 'alone'}")
    spread = cluster(
        *command, f"--executor={cluster.executor}", "--unit-seconds=0.02", f"--output={tmp_path / 'spread'}"
    )
    assert spread == (code, output)
    assert "3 violators against" in output
    names = ("kill-matrix.json", "kill-matrix.md")
    assert [(tmp_path / "spread" / name).read_text() for name in names] == [
        (tmp_path / "alone" / name).read_text() for name in names
    ]
    assert cluster(*command, f"--executor={cluster.executor}", "--jobs=2")[0] == 2


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
@pytest.mark.whole
@pytest.mark.slow
def test_recomputed_vectors_have_the_problems_that_one_process_finds(cluster: Cluster, tmp_path: Path) -> None:
    vectors, sources = tmp_path / "vectors", tmp_path / "sources"
    for topic in ("ir/softmax", "ir/reductions"):
        path = f"{topic}.jsonl"
        file = parse(path, vector_folder.reader(ROOT / "vectors"))
        wrong = replace(file.vectors[1], expected=file.vectors[0].expected)
        changed = replace(file, vectors=(file.vectors[0], wrong, *file.vectors[2:]))
        vector_folder.write(vectors, render(changed))
        (sources / path).parent.mkdir(parents=True, exist_ok=True)
        source = ROOT / "conformance/ir/vector_sources" / f"{topic.removeprefix('ir/')}.py"
        shutil.copy(source, (sources / topic).with_suffix(".py"))
    command = ["tessera_conformance", "vectors", "check", f"--vectors={vectors}", f"--sources={sources}"]
    alone = cluster(*command, "--recompute")
    assert (alone[0], alone[1].count("and the frozen answer differ")) == (1, 2), alone[1]
    assert cluster(*command, "--recompute", f"--executor={cluster.executor}", "--unit-seconds=0.2") == alone
    assert cluster(*command, f"--executor={cluster.executor}")[0] == 2


# A long run is shared out to processes where the implementation allows it and the user says nothing else.

FAKES = Path(__file__).parent / "fakes"


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run of the whole suite of two long cases on four processors, with xdist."""
    monkeypatch.syspath_prepend(FAKES)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(4)), raising=False)
    index = {f"ir/a/{name}": IndexedCase(f"ir/test_a.py::test_{name}", (), (), ()) for name in "bc"}
    monkeypatch.setattr(suite_process, "current_index", lambda: index)
    monkeypatch.setattr(suite_process, "seconds_of_case", lambda case: LONG / 2)
    option = dict.fromkeys(ALONE) | {"impl": "reference", "compiler": None, "shard": None, "dist": "no"}
    option |= {"deadline": 5.0, "start_deadline": 5.0, "maxfail": 0}
    return SimpleNamespace(
        option=SimpleNamespace(**option),
        pluginmanager=SimpleNamespace(hasplugin=lambda name: name == "xdist"),
        args_source=pytest.Config.ArgsSource.TESTPATHS,
        args=[],
    )


def test_the_reference_runs_on_every_processor(config: Any) -> None:
    assert processes(config) == 4


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("numprocesses", 0),
        ("numprocesses", 3),
        ("list_cases", True),
        ("maxfail", 1),
        ("cases", ["ir/*"]),
        ("keyword", "a"),
        ("reproduce", "ir/a/b"),
        ("shard", "1/2"),
        ("dist", "loadfile"),
        ("impl", "py:nowhere:make"),
        ("impl", "py:echo:Echo"),
    ],
)
def test_it_stays_in_one_process(config: Any, option: str, value: Any) -> None:
    """A run is not shared out if the user says so, asks for a part, if it is short, or if the Hello forbids it."""
    setattr(config.option, option, value)
    assert processes(config) == 0


def test_a_hello_allows_it(config: Any) -> None:
    config.option.impl = "py:echo:Parallel"
    assert processes(config) == 4


def test_one_processor_is_one_process(config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0}, raising=False)
    assert processes(config) == 0


def test_a_short_place_is_one_process(config: Any, tmp_path: Path) -> None:
    config.args_source, config.args = pytest.Config.ArgsSource.ARGS, ["ir/test_sums.py"]
    config.invocation_params = SimpleNamespace(dir=tmp_path)
    assert processes(config) == 0
