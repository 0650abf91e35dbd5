"""Packages and targets: refusals, the schema, a process that has no builder, streams (sections 1.3, 5, 7.2)."""

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
from tessera_reference.wsp.builder import Program, TaskWindow
from tessera_reference.wsp.compiler import compile_program
from tessera_reference.wsp.errors import (
    ArgumentRefused,
    PackageRefused,
    ProgramRefused,
    UnsupportedDirective,
    WspFailure,
)
from tessera_reference.wsp.executor.run import Run
from tessera_reference.wsp.package import canonical_bytes, content_hash, document, package_bytes
from tessera_reference.wsp.reading import load
from tessera_reference.wsp.targets import NAMES, Target, stated, target

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


def test_equal_names_have_equal_ids() -> None:
    """A later declaration changes no id that was there."""
    longer = everything()
    longer.channel("z")
    longer.symbol("later")
    first, second = (json.loads(program.compile().package) for program in (everything(), longer))
    for table in ("kernels", "slots", "symbols", "tensors"):
        ids = {each["name"]: each["id"] for each in second[table]}
        assert all(ids[each["name"]] == each["id"] for each in first[table])
    assert second["csp"]["processes"] == first["csp"]["processes"]


def put(path: str, value: Any) -> Any:
    """A change that sets a member deep in a document."""

    def change(document: Any) -> None:
        *way, last = (int(part) if part.isdigit() else part for part in path.split("/"))
        for part in way:
            document = document[part]
        document[last] = value

    return change


SPOILED = [
    ("format", 2),
    ("name", "no blanks"),
    ("phase", 3),
    ("extra", 1),
    ("kernels/0/executor", "scalar"),
    ("kernels/0/payload/form", "elf"),
    ("kernels/0/payload/instructions/0/op", "div"),
    ("kernels/0/payload/instructions/0/operands", []),
    ("kernels/0/cycles/fixed", -1),
    ("schedule/task_window/size", 0),
    ("schedule/task_window/unit", "bytes"),
    ("schedule/resources/heap_arena", 0),
    ("schedule/directives/0/state", "maybe"),
    ("csp/channels/0/capacity", -1),
    ("csp/channels/0/capacity", True),
    ("csp/channels/0/latency", 1.5),
    ("csp/processes/0/body/0/op", "loop"),
    ("csp/processes/0/body/0/surplus", 1),
    ("csp/processes/0/body/0/count", {"constant": 2**64}),
    ("csp/processes/0/body/0/count", {"op": "add", "operands": [{"constant": 1}]}),
    ("slots/0/width", 32),
    ("symbols/0/width", 65),
    ("symbols/0/update", "any-time"),
    ("tensors/0/dtype", "fp8"),
    ("tensors/0/count", 0),
    ("tensors/0/initial", "0"),
]


@pytest.mark.parametrize(("path", "value"), SPOILED)
def test_what_the_schema_refuses_is_refused(path: str, value: Any) -> None:
    data = changed(everything().compile().package, put(path, value))
    assert not SCHEMA.is_valid(json.loads(data))
    with pytest.raises(PackageRefused) as refused:
        load(data)
    assert refused.value.code == "INVALID"


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
        (b'{"a":[' + b"[]," * 3_000_000 + b"0]}\n", "MALFORMED"),
        (b'{"a":"' + b"x" * 40_000_000 + b'"}\n', "MALFORMED"),
        (b'{"a":' + b"9" * 5000 + b"}\n", "MALFORMED"),
    ],
)
def test_what_is_no_package_is_refused(text: bytes, code: str) -> None:
    with pytest.raises(PackageRefused) as refused:
        load(text)
    assert refused.value.code == code


ODD = (None, True, -1, 1.5, 2**70, "", "\u00e9", "x" * 2000, [], [[]], {}, {"op": []}, {"constant": {}}, {"tensor": []})


def places(node: Any, path: str = "") -> list[str]:
    """The paths of all members of a document."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [found for key, each in items for found in (f"{path}{key}", *places(each, f"{path}{key}/"))]


def test_odd_values_anywhere_are_refused_or_mean_something() -> None:
    """In the package and in the program that it is made of; nothing but the errors of this room is raised."""
    data, program = everything().compile().package, everything().form
    found = target("cpu_sim")
    assert found is not None
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
                compile_program(form, found)
            except WspFailure:
                refused += 1
    assert refused > 3000


def test_programs_that_have_no_meaning(program: Program) -> None:
    kernel = program.kernel("k", x="tensor").add("x", "x", 1)
    with pytest.raises(ProgramRefused, match="outside"):
        program.wait()
    with program.process("p"):
        program.run(kernel)
    with pytest.raises(ProgramRefused, match="/csp/processes/0/body/0/arguments: are 0, and k takes 1"):
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
    ],
)
def test_what_does_not_fit_a_package_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ArgumentRefused):
        Run(load(everything().compile().package), **given)


ALONE = """
import importlib.abc, io, json, sys
from contextlib import redirect_stderr, redirect_stdout
class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in ("tessera_reference.wsp.builder", "tessera_reference.wsp.compiler"):
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
    assert capsys.readouterr().err == f"error: --target a2a3sim: expected one of {names}\n"


EMIT_ONLY = ("pto_runtime_a2a3", "aie")
every_target = pytest.mark.parametrize("name", NAMES)


def known(name: str) -> Target:
    found = target(name)
    assert found is not None
    return found


def simple() -> Program:
    """One process that runs a task."""
    program = Program("p")
    kernel = program.kernel("k", cycles=10, x="tensor").add("x", "x", 1)
    x = program.tensor("x", "i32", 1)
    with program.process("p"):
        program.task(kernel, x)
    return program


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
    architecture = known(name).architecture
    units = {exec_unit["name"] for exec_unit in architecture["exec_units"]}
    assert set(architecture["dispatch"]["worker_types"]) <= units | {"general"}


@pytest.mark.parametrize("name", EMIT_ONLY)
def test_what_is_emitted_alone_enforces_nothing(name: str) -> None:
    own = stated(name)
    assert "enforced" not in [state for table in ("directives", "csp", "predicates") for state in own[table].values()]


def test_phase_1_records_what_would_hold_back_orchestration() -> None:
    (first,) = [name for name in NAMES if stated(name)["phase"] == 1]
    directives = stated(first)["directives"]
    bounds = [directive for directive in directives if directive.startswith("resources.")]
    assert {directives[bound] for bound in ["task_window.unit.tasks", "task_window.mode.stall", *bounds]} == {
        "recorded"
    }


def test_a_channel_of_payloads_is_refused() -> None:
    """And one of tokens, which says so, is the default."""
    program = simple()
    program.form["csp"]["channels"].append({"name": "c", "payload": "token"})
    assert program.compile().package
    program.form["csp"]["channels"][0]["payload"] = "tensor"
    with pytest.raises(UnsupportedDirective, match="target cpu_sim does not support payload_channels"):
        program.compile()
    program.form["csp"]["channels"][0]["payload"] = "buffer"
    with pytest.raises(ProgramRefused, match="/csp/channels/0/payload"):
        program.compile()


def two_of_each_end() -> Program:
    program = Program("p")
    c = program.channel("c", capacity=0, latency=2)
    for name in "pq":
        with program.process(name):
            program.send(c)
    for name in "rs":
        with program.process(name), program.consume(c, "v") as v, program.cond(v):
            program.wait()
    return program


@pytest.mark.parametrize(
    "feature", ["sync_only_channels", "rendezvous", "latency", "several_producers", "several_consumers", "wait", "cond"]
)
def test_features_of_a_program_are_judged_by_the_matrix(feature: str) -> None:
    """A target like cpu_sim that lacks one feature refuses the program, and one that ignores it says so once."""
    for state in ("unsupported", "diagnosed"):
        own = stated("cpu_sim")
        table = "csp" if feature in own["csp"] else "predicates"
        own[table][feature] = state
        lacking = Target("lacking", **own)
        if state == "diagnosed":
            _, diagnostics = compile_program(two_of_each_end().form, lacking)
            assert diagnostics == [f"target lacking ignores {feature}"]
            continue
        with pytest.raises(UnsupportedDirective, match=feature):
            compile_program(two_of_each_end().form, lacking)


def diamond() -> Program:
    """p sends to q and r, which both send to s; q sends into a channel without a consumer."""
    program = Program("diamond")
    channels = {
        name: program.channel(name, capacity=place) for place, name in enumerate(("pq", "pr", "qs", "rs", "q_"))
    }
    with program.process("s"):
        program.receive(channels["qs"], "a")
        program.receive(channels["rs"], "b")
    with program.process("p"):
        program.send(channels["pq"])
        program.send(channels["pr"])
    for name in "qr":
        with program.process(name), program.consume(channels[f"p{name}"], f"v{name}") as v:
            program.send(channels[f"{name}s"], v)
            if name == "q":
                program.send(channels["q_"])
    return program


def test_the_streams_of_an_aie_package_are_explicit() -> None:
    graph = load(diamond().compile("aie").package).stream_graph
    assert [error.message for error in validator("tessera:wsp-stream-graph").iter_errors(graph)] == []
    assert graph is not None
    levels = [(node["process"], node["level"]) for node in graph["nodes"]]
    assert levels == [("p", 0), ("q", 1), ("r", 1), ("s", 2)]
    ends = [(edge["from"], edge["to"], edge["capacity"]) for edge in graph["edges"]]
    assert ends == [("p", "q", 0), ("p", "r", 1), ("q", "s", 2), ("r", "s", 3), ("q", None, 4)]


def ring(count: int) -> Program:
    program = Program("ring")
    channels = [program.channel(f"c{place}") for place in range(count)]
    for place in range(count):
        with program.process(f"p{place}"):
            program.send(channels[place])
            program.receive(channels[place - 1], f"v{place}")
    return program


@pytest.mark.parametrize(("count", "cycle"), [(1, "p0 -> p0"), (2, "p0 -> p1 -> p0"), (3, "p0 -> p1 -> p2 -> p0")])
def test_cyclic_streams_are_refused_with_their_cycle(count: int, cycle: str) -> None:
    assert ring(count).compile("cpu_sim").package
    with pytest.raises(UnsupportedDirective, match=f"target aie does not support a cyclic stream graph: {cycle};"):
        ring(count).compile("aie")


def test_streams_through_tasks_count() -> None:
    """A task of p signals a, and one of q waits for it; q sends back."""
    program = Program("p")
    kernel = program.kernel("k", x="tensor").add("x", "x", 1)
    x = program.tensor("x", "i32", 1)
    a, b = program.channel("a"), program.channel("b")
    with program.process("p"):
        program.task(kernel, x, signals=[a])
        program.receive(b, "v")
    with program.process("q"):
        program.task(kernel, x, waits=[a])
        program.send(b)
    with pytest.raises(UnsupportedDirective, match="cyclic stream graph: p -> q -> p"):
        program.compile("aie")


@pytest.mark.parametrize("feature", ["several_producers", "several_consumers"])
def test_a_stream_has_two_ends(feature: str) -> None:
    program = Program("p")
    c = program.channel("c")
    senders, takers = ("pq", "r") if feature == "several_producers" else ("p", "rs")
    for name in senders:
        with program.process(name):
            program.send(c)
    for name in takers:
        with program.process(name), program.consume(c, "v"):
            pass
    with pytest.raises(UnsupportedDirective, match=feature):
        program.compile("aie")


def test_streams_that_are_not_those_of_the_processes_are_refused() -> None:
    stated = document(load(diamond().compile("aie").package))
    stated["stream_graph"]["edges"].pop()
    with pytest.raises(PackageRefused, match="/stream_graph: is not that of the processes"):
        load(canonical_bytes(stated | {"hash": content_hash(stated)}))


def test_simulator_and_device_have_the_package_of_one_program() -> None:
    """The packages differ in target, declared states and hash alone (AMB-WSP-15)."""
    simulator, device = (
        json.loads(diamond().compile(name).package) for name in ("pto_runtime_a2a3sim", "pto_runtime_a2a3")
    )
    assert simulator.pop("target") != device.pop("target")
    assert simulator.pop("hash") != device.pop("hash")
    assert simulator["schedule"].pop("capabilities") != device["schedule"].pop("capabilities")
    assert simulator == device
