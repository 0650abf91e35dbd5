"""MPI behind the protocol: four processes on this machine, whichever MPI is installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.dsl import tensor_of
from tessera_conformance.observations import Fault, Observation, Returned, Unsupported
from tessera_conformance.probe import Subject, probe
from tessera_conformance.protocol import Hello
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports.locate import locate

RANKS = 4
TOKEN = "TESSERA_TEST_OF_MPI"
"""A variable by which the processes of a test are told from all others."""


@pytest.fixture(scope="module")
def mpirun(at_the_root: Path) -> str:
    """The command that starts so many ranks."""
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed: pip install mpi4py mpich")
    program = shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        pytest.skip("no program mpirun is on PATH: pip install mpich")
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    more = "--oversubscribe " if "Open MPI" in told or "prrte" in told.lower() else ""
    return f"{program} {more}-n {RANKS} {sys.executable} -m conformance.adapters.mpi_adapter"


@pytest.fixture(scope="module")
def session(mpirun: str) -> Iterator[Session]:
    opened = Session(locate(f"rpc:{mpirun}"), deadline=30.0)
    yield opened
    opened.close()


def run(session: Session, inputs: list[Tensor], operation: str = "all_reduce", **arguments: Any) -> Observation:
    return session.call("collectives.run", {"operation": operation, "inputs": inputs, **arguments})


def outputs(observation: Observation) -> list[Tensor]:
    assert isinstance(observation, Returned), observation
    return list(observation.value["outputs"])


def test_collectives_between_processes(session: Session) -> None:
    """Remainders, an order of ranks of its own, fewer inputs than ranks."""
    rows = [tensor_of("int32", [10**rank * place for place in range(6)]) for rank in range(RANKS)]
    total = tensor_of("int32", [1111 * place for place in range(6)])
    assert outputs(run(session, rows, op="sum")) == [total] * RANKS
    assert outputs(run(session, rows[:2], op="max")) == [rows[1]] * 2
    assert outputs(run(session, rows[:3], op="sum", groups=[[2, 0], [1]])) == [
        tensor_of("int32", [101 * place for place in range(6)]),
        rows[1],
        tensor_of("int32", [101 * place for place in range(6)]),
    ]
    scattered = [[0], [1111, 2222], [3333], [4444, 5555]]
    assert outputs(run(session, rows, "reduce_scatter", op="sum")) == [tensor_of("int32", row) for row in scattered]
    shares = [tensor_of("bf16", row) for row in ([0], [1, 2], [3], [4, 5])]
    whole = tensor_of("bf16", [0, 1, 2, 3, 4, 5])
    assert outputs(run(session, shares, "all_gather")) == [whole] * RANKS
    assert outputs(run(session, rows, "broadcast", root=0, groups=[[3, 1], [0, 2]])) == [
        rows[0],
        rows[3],
        rows[0],
        rows[3],
    ]
    blocks = [tensor_of("fp16", [rank * 4 + place for place in range(4)]) for rank in range(RANKS)]
    turned = [tensor_of("fp16", [rank * 4 + place for rank in range(4)]) for place in range(RANKS)]
    assert outputs(run(session, blocks, "all_to_all")) == turned
    assert isinstance(run(session, rows, op="mean"), Unsupported)
    assert outputs(run(session, [tensor_of("fp32", [])] * 3, op="sum")) == [tensor_of("fp32", [])] * 3
    assert outputs(run(session, rows, op="sum", chunk=4)) == [total] * RANKS


def test_a_request_larger_than_a_pipe_arrives_whole(session: Session) -> None:
    """The launcher of MPICH ends a job whose rank 0 does not read at once."""
    inputs = [tensor_of("fp32", [rank + 1] * 16000) for rank in range(RANKS)]
    assert outputs(run(session, inputs, op="prod")) == [tensor_of("fp32", [24] * 16000)] * RANKS


def test_what_mpi_has_not_is_unsupported(session: Session) -> None:
    """More inputs than ranks, a dtype that numpy alone has, the canonical order."""
    for inputs, arguments, told in (
        ([tensor_of("fp32", [1])] * 5, {}, "5 inputs: there are 4 ranks"),
        ([tensor_of("bf16", [1])] * 2, {}, "dtype bf16 in MPI"),
        ([tensor_of("tf32", [1])] * 2, {}, "dtype tf32"),
        ([tensor_of("fp32", [1])] * 2, {"level": "strict"}, "sum in the canonical order of level strict"),
        ([tensor_of("fp32", [1])] * 2, {"messages": True}, "collective-messages"),
    ):
        observed = run(session, inputs, op="sum", **arguments)
        assert observed == Unsupported(told)


def test_its_order_is_the_one_on_file(session: Session) -> None:
    """Where the order of this very version is on file, it is declared and found again; else the level is fast."""
    hello = session.open()
    assert isinstance(hello, Hello)
    found = probe(session, Subject("all_reduce", (3, 24), "fp32"))
    assert found.ranks_agree
    assert (hello.level, found.verdict) in (("deterministic", "agrees"), ("fast", "nothing declared"))


def test_a_rank_that_dies_is_a_crash_and_the_run_goes_on(mpirun: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "1")
    session = Session(locate(f"rpc:{mpirun}"), deadline=30.0)
    inputs = [tensor_of("fp32", [rank]) for rank in range(RANKS)]
    wanted = [tensor_of("fp32", [6])] * RANKS
    assert outputs(run(session, inputs, op="sum")) == wanted
    os.kill(process_of(RANKS - 1), signal.SIGKILL)
    observed = run(session, inputs, op="sum")
    assert isinstance(observed, Fault)
    assert (observed.kind, observed.reproducible) == ("crash", False), observed
    session.reset()
    assert outputs(run(session, inputs, op="sum")) == wanted
    session.close()


def process_of(rank: int) -> int:
    """The process of a rank, by the variables that MPICH and Open MPI give it."""
    for entry in Path("/proc").iterdir():
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except (OSError, ValueError):
            continue
        named = {f"PMI_RANK={rank}".encode(), f"OMPI_COMM_WORLD_RANK={rank}".encode()}
        if f"{TOKEN}=1".encode() in variables and named & set(variables):
            return int(entry.name)
    pytest.skip("needs /proc, to find the process of a rank")


def test_without_mpi4py_it_says_what_to_install(at_the_root: Path, tmp_path: Path) -> None:
    """Shadowed here by a package that cannot be imported."""
    (tmp_path / "mpi4py.py").write_text("raise ImportError('no MPI here')\n", encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "conformance.adapters.mpi_adapter"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdin=subprocess.DEVNULL,
    )
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[0] == "mpi_adapter: mpi4py cannot be used: no MPI here"
    assert "pip install mpi4py mpich" in ended.stderr.splitlines()[1]


def test_what_does_not_fit_is_not_handed_to_mpi(session: Session) -> None:
    first, other = tensor_of("fp32", [1, 2]), tensor_of("fp32", [1, 2, 3])
    for inputs, arguments in (
        ([first, other], {"op": "sum"}),
        ([first, first], {"op": "average"}),
        ([first, first], {"op": "sum", "groups": [[0]]}),
        ([first, first], {"operation": "broadcast", "root": 2}),
    ):
        observed = session.call("collectives.run", {"operation": "all_reduce", "inputs": inputs} | arguments)
        assert isinstance(observed, Unsupported)
