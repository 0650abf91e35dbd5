"""Collectives of others behind the protocol: requests, MPI, gloo and JAX."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tessera_conformance.adapter import NotSupported
from tessera_conformance.arithmetic import NodeArithmetic
from tessera_conformance.dsl import tensor_of
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.probe import Subject, probe
from tessera_conformance.protocol import Fault, Hello, Observation, Returned, Unsupported
from tessera_conformance.session import Session
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor
from tessera_conformance.transports.locate import locate

# Requests that no engine defines reach none, and the orders on file are answered.

PAIR = [tensor_of("fp32", [1, 2]), tensor_of("fp32", [3, 4])]


@pytest.fixture
def requests(at_the_root: Path) -> ModuleType:
    return importlib.import_module("conformance.adapters.collective_requests")


@pytest.fixture
def orders(at_the_root: Path) -> ModuleType:
    return importlib.import_module("conformance.adapters.orders")


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("all_reduced", {"op": "sum"}),
        ("all_reduce", {}),
        ("all_gather", {"op": "sum"}),
        ("all_reduce", {"op": "sum", "algorithm": "rings"}),
        ("all_reduce", {"op": "sum", "root": 0}),
        ("broadcast", {}),
        ("broadcast", {"root": -1}),
        ("broadcast", {"root": 1, "groups": [[0], [1]]}),
        ("all_reduce", {"op": "sum", "groups": [[0, 1], []]}),
        ("all_reduce", {"op": "sum", "per_node": 3}),
    ],
)
def test_no_engine_is_asked_for_arguments_that_do_not_fit(
    requests: ModuleType, operation: str, arguments: Mapping[str, Any]
) -> None:
    with pytest.raises(NotSupported):
        requests.request_of(operation, PAIR, 8, **arguments)


def test_no_engine_is_asked_for_operators_that_a_dtype_has_not(requests: ModuleType) -> None:
    for dtype, op in (("int32", "mean"), ("bool", "sum"), ("complex64", "max")):
        element = ELEMENT_FORMATS[dtype]
        inputs = [Tensor(dtype, (1,), bytes(element.word_bytes * element.words))] * 2
        with pytest.raises(NotSupported):
            requests.request_of("all_reduce", inputs, 8, op=op)


def test_a_sound_request(requests: ModuleType) -> None:
    asked = requests.request_of("broadcast", PAIR, 2, root=0, groups=[[1], [0]], chunk=3, algorithm="tree")
    assert asked == requests.Request("broadcast", "", 0, ((1,), (0,)), 3)


def test_the_canonical_order_is_that_of_integers_alone(requests: ModuleType) -> None:
    requests.request_of("all_reduce", [tensor_of("int32", [1])] * 2, 8, op="sum", level="strict")
    requests.request_of("all_reduce", PAIR, 8, op="max", level="strict")
    with pytest.raises(NotSupported):
        requests.request_of("all_reduce", PAIR, 8, op="sum", level="strict")


def test_what_belongs_to_a_runtime_is_unsupported(requests: ModuleType) -> None:
    for given in ({"context": 1}, {"wire": "bf16"}, {"descriptors": []}):
        with pytest.raises(NotSupported):
            requests.all_reduce_of(PAIR, "sum", 8, "fast", given)


def test_all_orders_on_file_can_be_read(orders: ModuleType) -> None:
    """Each covers all elements once, and each of its trees all ranks."""
    assert {record["engine"] for record in orders.known()} == {"gloo", "jax", "mpich", "openmpi"}
    for order in orders.known():
        NodeArithmetic.from_json(order["arithmetic"])
        covered = [place for run in order["orders"] for place in range(run["first"], run["last"] + 1)]
        assert covered == list(range(order["elements"]))
        for run in order["orders"]:
            assert Tree.from_text(run["tree"]).leaves == order["ranks"]


def test_an_order_is_declared_for_what_was_probed_and_nothing_else(orders: ModuleType) -> None:
    known = next(order for order in orders.known() if len(order["orders"]) > 1)
    engine, version, last = known["engine"], known["version"], known["orders"][-1]
    asked = {"dtype": known["dtype"], "shapes": [[known["elements"]]] * known["ranks"]}
    said = orders.declared(engine, version, "all_reduce", **asked, element=last["first"])
    assert Tree.from_json(said["tree"]) == Tree.from_text(last["tree"])
    assert said["arithmetic"] == known["arithmetic"]
    others = ({"shapes": [[known["elements"] + 1]] * known["ranks"]}, {"attributes": {"op": "prod"}})
    for other in others:
        with pytest.raises(NotSupported):
            orders.declared(engine, version, "all_reduce", **asked | other)
    with pytest.raises(NotSupported):
        orders.declared(engine, f"{version}.1", "all_reduce", **asked)
    assert not orders.are_known(engine, f"{version}.1")


def test_integers_have_every_order(orders: ModuleType) -> None:
    said = orders.declared("none", "0", "all_reduce", dtype="int32", shapes=[[3]] * 3)
    assert Tree.from_json(said["tree"]).leaves == 3


def test_no_engine_is_asked_for_pairs_that_cannot_meet(requests: ModuleType) -> None:
    assert requests.send_recv_of(PAIR, [[0, 1], [1, 0]], 8).pairs == ((0, 1), (1, 0))
    for pairs in ([[0, 0]], [[0, 2]], [[-1, 0]], [[0, 1], [0, 1]]):
        with pytest.raises(NotSupported):
            requests.send_recv_of(PAIR, pairs, 8)


# MPI behind the protocol: four processes on this machine, whichever MPI is installed.

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
    """An order on file for this very version is declared and found again; any other version claims the level fast."""
    hello = session.open()
    assert isinstance(hello, Hello)
    actual = probe(session, Subject("all_reduce", (3, 24), "fp32"))
    assert actual.ranks_agree
    assert (hello.level, actual.verdict) in (("deterministic", "agrees"), ("fast", "nothing declared"))


def test_a_rank_that_dies_is_a_crash_and_the_run_goes_on(mpirun: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "1")
    session = Session(locate(f"rpc:{mpirun}"), deadline=30.0)
    inputs = [tensor_of("fp32", [rank]) for rank in range(RANKS)]
    expected = [tensor_of("fp32", [6])] * RANKS
    assert outputs(run(session, inputs, op="sum")) == expected
    os.kill(process_of(RANKS - 1), signal.SIGKILL)
    observed = run(session, inputs, op="sum")
    assert isinstance(observed, Fault)
    assert (observed.kind, observed.reproducible) == ("crash", False), observed
    session.reset()
    assert outputs(run(session, inputs, op="sum")) == expected
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


# gloo behind the protocol: a process that dies is a crash, and the run goes on.

GLOO_TOKEN = "TESSERA_TEST_OF_GLOO"
GLOO_RANKS = 8


@pytest.mark.slow
def test_a_rank_of_gloo_that_dies_is_a_crash(at_the_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: pip install torch")
    monkeypatch.setenv(GLOO_TOKEN, "1")
    served = f"{sys.executable} -m tessera_conformance serve py:conformance.adapters.torch_adapter:make"
    session = Session(locate(f"rpc:{served}"), deadline=60.0)
    asked = {
        "operation": "all_reduce",
        "inputs": [tensor_of("fp32", [rank]) for rank in range(GLOO_RANKS)],
        "op": "sum",
    }
    expected = Returned({"outputs": [tensor_of("fp32", [28])] * GLOO_RANKS})
    try:
        assert session.call("collectives.run", asked) == expected
        os.kill(a_rank(), signal.SIGKILL)
        observed = session.call("collectives.run", asked)
        assert isinstance(observed, Fault)
        assert observed.kind == "crash"
        assert "RuntimeError: rank " in observed.detail  # that it has died, or what gloo says of it
        session.reset()
        assert session.call("collectives.run", asked) == expected
    finally:
        session.close()


@pytest.mark.slow
def test_a_rank_that_does_not_answer_is_named(at_the_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: pip install torch")
    monkeypatch.setenv(GLOO_TOKEN, "1")
    served = f"{sys.executable} -m tessera_conformance serve py:conformance.adapters.torch_adapter:make"
    session = Session(locate(f"rpc:{served}"), deadline=60.0)
    # send_recv between ranks 0 and 1: the last rank, which is stopped, keeps none of the others waiting
    asked = {"inputs": [tensor_of("fp32", [rank]) for rank in range(GLOO_RANKS)], "pairs": [[0, 1]]}
    try:
        assert isinstance(session.call("collectives.send_recv", asked), Returned)
        os.kill(a_rank(), signal.SIGSTOP)
        session.deadline = 8.0
        observed = session.call("collectives.send_recv", asked)
        assert isinstance(observed, Fault)
        assert observed.kind == "hang"
        assert "gloo: send_recv waits for ranks [7]" in observed.stderr
    finally:
        session.close()


def a_rank() -> int:
    """The process of the last rank: one that the fork server has started, and has its command."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            variables, command = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if f"{TOKEN}=1".encode() in variables.split(b"\0") and b"forkserver" in command:
            found.append(int(entry.name))
    if not found:
        pytest.skip("needs /proc, to find the process of a rank")
    assert len(found) == 1 + GLOO_RANKS
    return max(found)


# JAX behind the protocol: sends that are a permutation go by ppermute, and others are unsupported with the reason.


@pytest.fixture(scope="module")
def jax(at_the_root: Path) -> Iterator[Session]:
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed: pip install 'jax[cpu]'")
    served = f"{sys.executable} -m tessera_conformance serve py:conformance.adapters.jax_adapter:make"
    session = Session(locate(f"rpc:{served}"), deadline=120.0)
    yield session
    session.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [([[0, 1], [1, 2], [2, 0]], [3, 1, 2]), ([[0, 2]], [1, 2, 1]), ([[2, 1], [1, 2]], [1, 3, 2])],
    ids=["around", "one", "exchange"],
)
def test_a_permutation_is_sent(jax: Session, pairs: list[list[int]], wanted: list[int]) -> None:
    """A rank that receives nothing keeps its own, of dtypes that JAX cannot add too: moved data travel as bytes."""
    for dtype in ("fp32", "fp8_e4m3"):
        inputs = [tensor_of(dtype, [value] * 3) for value in (1, 2, 3)]
        observed = jax.call("collectives.send_recv", {"inputs": inputs, "pairs": pairs})
        assert observed == Returned({"outputs": [tensor_of(dtype, [value] * 3) for value in wanted]})


@pytest.mark.slow
def test_one_sender_of_several_ranks_is_unsupported(jax: Session) -> None:
    inputs = [tensor_of("fp32", [rank]) for rank in range(3)]
    observed = jax.call("collectives.send_recv", {"inputs": inputs, "pairs": [[0, 1], [0, 2]]})
    assert isinstance(observed, Unsupported)
    assert "permutation" in observed.feature
