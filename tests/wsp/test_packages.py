"""Packages and targets: hostile bytes and values, the schema, a process that has no builder (sections 1.3, 5, 7.2)."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tessera_conformance.schemas import schemas, validator
from tessera_reference.wsp.builder import Expr, Program, TaskWindow, compile_program
from tessera_reference.wsp.errors import ArgumentRefused, PackageRefused, ProgramRefused, WspFailure
from tessera_reference.wsp.networks import execute
from tessera_reference.wsp.package import canonical_bytes, content_hash, load, package_bytes
from tessera_reference.wsp.run import Run
from tessera_reference.wsp.targets import NAMES, stated, target

SCHEMA = Draft202012Validator(schemas()["tessera:wsp-package"])


def everything() -> Program:
    """Every statement, every kind of expression, every table."""
    program = Program("everything")
    c, d, go = program.channel("c"), program.channel("d", capacity=0, latency=2), program.channel("go", capacity=4)
    t, n = program.tensor("t", "fp32", 3, [1.0, 2.0, -0.0]), program.symbol("n", 2, width=8)
    kernel = program.kernel("k", cycles=5, per_element=1, executor="matrix", x="tensor", by="scalar")
    kernel.add("x", "x", "by").mul("x", "x", 3)
    program.dispatch("hash", workers=2)
    program.task_window(TaskWindow(3))
    program.resources(heap_arena=64)
    program.directive("placement", "near t")
    program.directive("prefetch", "t")
    program.directive("prefetch", "again")
    with program.process("a"), program.repeat(n, index="i") as i:
        with program.scope():
            with program.cond((i + 1).lt(n)):
                program.task(kernel, t, i * 2, key=~i, waits=[go], signals=[c])
            with program.otherwise():
                program.send(c, i.select(1, 2))
        program.wait()
    with program.process("b"):
        with program.consume(c, into="x") as x:
            program.run(kernel, t, x)
            program.send(d, program.load("s", t, 1))
        program.close(d)
    with program.process("e"):
        program.send(go)
        program.receive(d, "y")
        with program.consume(d, into="y"):
            pass
    return program


def changed(data: bytes, change: Any) -> bytes:
    """A package whose content is another, with the hash of that content."""
    document = json.loads(data)
    change(document)
    return canonical_bytes(document | {"hash": content_hash(document)})


def test_a_package_follows_its_schema_and_reads_back_the_same() -> None:
    data = everything().compile().package
    assert [error.message for error in SCHEMA.iter_errors(json.loads(data))] == []
    assert package_bytes(load(data)) == data
    assert package_bytes(load(changed(data, lambda document: None))) == data
    assert data == everything().compile().package
    assert Run(load(data)).finish().outcome == "completed"


def put(path: str, value: Any) -> Any:
    """A change that sets a member deep in a document."""

    def change(document: Any) -> None:
        *way, last = (int(part) if part.isdigit() else part for part in path.split("/"))
        for part in way:
            document = document[part]
        document[last] = value

    return change


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"[]\n", "MALFORMED"),
        (b"{}\n", "UNKNOWN_ABI"),
        (b'{"a":1,"a":2}\n', "MALFORMED"),
        (b'{"a":NaN}\n', "MALFORMED"),
        (b"\xff}\n", "MALFORMED"),
        (b'{"a":' + b"[" * 100000 + b"]" * 100000 + b"}\n", "MALFORMED"),
        (b'{"wsp_runtime_abi":"v10.0","a":"\\ud800"}\n', "MISSING_PAYLOAD"),
        (b'{"a":' + b"[" * 500 + b"]" * 500 + b"}\n", "MALFORMED"),
        (b'{"a":' + b"9" * 5000 + b"}\n", "MALFORMED"),
    ],
)
def test_what_is_no_package_is_refused(text: bytes, code: str) -> None:
    with pytest.raises(PackageRefused) as refused:
        load(text)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("start", "repeated", "count", "end"), [(b"[", b"[],", 3_000_000, b"0]"), (b'"', b"x", 40_000_000, b'"')]
)
def test_a_package_with_too_much_is_refused(start: bytes, repeated: bytes, count: int, end: bytes) -> None:
    with pytest.raises(PackageRefused) as refused:
        load(b'{"a":' + start + repeated * count + end + b"}\n")
    assert refused.value.code == "MALFORMED"


ODD = (None, True, -1, 1.5, 2**70, "", "\u00e9", "x" * 2000, [], [[]], {}, {"op": []}, {"constant": {}}, {"tensor": []})


def places(node: Any, path: str = "") -> list[str]:
    """The paths of all members of a document."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [found for key, value in items for found in (f"{path}{key}", *places(value, f"{path}{key}/"))]


def test_odd_values_anywhere_are_refused_or_mean_something() -> None:
    """In the package and in the program that it is made of; nothing but the errors of this package is raised."""
    data, program = everything().compile().package, everything().form
    refused = 0
    for path in places(json.loads(data)):
        for odd in ODD:
            try:
                load(changed(data, put(path, odd)))
            except PackageRefused:
                refused += 1
    for path in places(program):
        for odd in ODD:
            form = copy.deepcopy(program)
            put(path, odd)(form)
            try:
                compile_program(form, target("cpu_sim"))
            except WspFailure:
                refused += 1
    assert refused > 3000


NETWORK: dict[str, Any] = {
    "channels": [{"name": "c"}, {"name": "d", "capacity": 2}],
    "kernels": [{"name": "k", "cycles": 10}],
    "processes": [
        {
            "name": "p",
            "body": [
                {"op": "send", "channel": "c", "token": 1},
                {
                    "op": "task",
                    "kernel": "k",
                    "key": 7,
                    "reads": ["a"],
                    "writes": ["b"],
                    "waits": ["d"],
                    "signals": ["c"],
                },
                {"op": "close", "channel": "c"},
            ],
        },
        {
            "name": "q",
            "body": [
                {
                    "op": "consume",
                    "channel": "c",
                    "body": [{"op": "run", "kernel": "k"}, {"op": "send", "channel": "d"}],
                }
            ],
        },
    ],
    "dispatch": {"policy": "round_robin", "workers": 2},
    "task_window": {"size": 8, "unit": "tasks", "mode": "stall"},
}


def left_out(path: str) -> Any:
    """A change that removes a member deep in a document."""

    def change(document: Any) -> None:
        *way, last = (int(part) if part.isdigit() else part for part in path.split("/"))
        for part in way:
            document = document[part]
        del document[last]

    return change


def test_odd_values_anywhere_in_a_network_are_refused_or_mean_something() -> None:
    """So is a network that lacks a member; nothing but the errors of this package is raised."""
    assert execute(NETWORK)["outcome"] == "completed"
    refused = 0
    for path in places(NETWORK):
        for change in (left_out(path), *(put(path, odd) for odd in ODD)):
            network = copy.deepcopy(NETWORK)
            change(network)
            try:
                execute(network)
            except WspFailure:
                refused += 1
    assert refused > 500


def test_programs_that_have_no_meaning(program: Program) -> None:
    kernel = program.kernel("k", x="tensor").add("x", "x", 1)
    with pytest.raises(ProgramRefused, match="outside"):
        program.wait()
    with program.process("p"):
        program.run(kernel)
    with pytest.raises(ProgramRefused, match="/csp/processes/0/body/0/arguments: are 0, and k takes 1"):
        program.compile()


def test_inputs_belong_to_policies(program: Program) -> None:
    with program.process("p"):
        program.send(program.channel("c"), Expr({"input": "key"}))
    with pytest.raises(ProgramRefused, match="/csp/processes/0/body/0/value: is an input"):
        program.compile()


@pytest.mark.parametrize(
    "given",
    [
        {"symbols": {"m": 1}},
        {"symbols": {"n": 256}},
        {"tensors": {"t": b"123"}},
        {"tensors": {"u": b""}},
        {"resources": {"stack": 1}},
        {"resources": {"task_window": 0}},
        {"resources": {"task_window": 10**5000}},
        {"resources": {"task_window": "1" * 5000}},
    ],
    ids=lambda given: repr(*given),
)
def test_what_does_not_fit_a_package_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ArgumentRefused) as refused:
        Run(load(everything().compile().package), **given)
    assert len(str(refused.value)) < 400


ALONE = """
import importlib.abc, io, json, sys
from contextlib import redirect_stderr, redirect_stdout
class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "tessera_reference.wsp.builder":
            raise ImportError(f"{name} is not to be had")
sys.meta_path.insert(0, Blocked())
try:
    import tessera_reference.wsp.builder
except ImportError:
    pass
else:
    raise SystemExit("the builder can be imported")
from tessera_reference.cli import main
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["wsp", *arguments])
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def alone(*commands: Sequence[str]) -> list[list[Any]]:
    """Exit code, output and errors of commands in one process, which cannot import what builds programs."""
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root / "reference")}
    command = [sys.executable, "-c", ALONE, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert not done.stderr, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_package_runs_where_the_builder_cannot_be_imported(tmp_path: Path) -> None:
    data = everything().compile().package
    path, cut = tmp_path / "package.json", tmp_path / "cut.json"
    path.write_bytes(data)
    cut.write_bytes(data[:100])
    done, shown, refused, truncated = alone(
        ["run", str(path), "--symbol", "n=1", "--resource", "task_window=1"],
        ["inspect", str(path)],
        ["run", str(path), "--symbol", "m=1"],
        ["run", str(cut)],
    )
    expected = Run(load(data), symbols={"n": 1}, resources={"task_window": 1}).finish().result()
    assert (done[0], json.loads(done[1]), done[2]) == (0, expected, "")
    assert shown[1].startswith(
        "package everything for cpu_sim, phase 2\ndispatch hash, window of 3 tasks, mode stall\n"
    )
    assert (refused[0], refused[2]) == (2, "error: symbol m: the package has n\n")
    assert truncated[0] == 2
    program = tmp_path / "program.json"
    program.write_text(json.dumps(everything().form), encoding="utf-8")
    with pytest.raises(AssertionError, match="is not to be had"):
        alone(["compile", str(program)])


def test_the_command_compiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tessera_reference.cli import main

    program, package = tmp_path / "program.json", tmp_path / "package.json"
    program.write_text(json.dumps(everything().form), encoding="utf-8")
    assert main(["wsp", "compile", str(program), "-o", str(package)]) == 0
    assert capsys.readouterr().err == "warning: target cpu_sim ignores prefetch\n"
    assert package.read_bytes() == everything().compile().package
    program.write_text("{", encoding="utf-8")
    assert main(["wsp", "compile", str(program)]) == 2


def test_a_target_that_there_is_not_is_refused_with_those_that_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tessera_reference.cli import main

    program = tmp_path / "program.json"
    program.write_text(json.dumps(everything().form), encoding="utf-8")
    assert main(["wsp", "compile", str(program), "--target", "a2a3sim"]) == 2
    names = "cpu_sim, pto_runtime_a2a3sim, pto_runtime_a2a3sim_host_graph, pto_runtime_a2a3, aie"
    assert capsys.readouterr().err == f"error: --target: is 'a2a3sim', expected one of {names}\n"


EMIT_ONLY = ("pto_runtime_a2a3", "aie")
every_target = pytest.mark.parametrize("name", NAMES)


@every_target
def test_a_target_follows_its_schema(name: str) -> None:
    assert [error.message for error in validator("tessera:wsp-target").iter_errors(stated(name))] == []


@every_target
def test_a_target_has_every_entry(name: str) -> None:
    """An entry that is not stated is that of the target which it is like, so that none is forgotten."""
    for table in ("directives", "csp", "predicates"):
        assert list(stated(name)[table]) == list(stated("cpu_sim")[table])


@every_target
def test_worker_types_are_units(name: str) -> None:
    architecture = target(name).architecture
    units = {exec_unit["name"] for exec_unit in architecture["exec_units"]}
    assert set(architecture["dispatch"]["worker_types"]) <= units | {"general"}


@pytest.mark.parametrize("name", EMIT_ONLY)
def test_what_is_emitted_alone_enforces_nothing(name: str) -> None:
    own = stated(name)
    assert "enforced" not in [state for table in ("directives", "csp", "predicates") for state in own[table].values()]
