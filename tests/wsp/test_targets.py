"""Targets: matrix and architecture follow their schema, and programs are judged by the matrix (sections 1.3 and 5)."""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.schemas import validator
from tessera_reference.wsp.builder import Program, TaskWindow
from tessera_reference.wsp.compiler import compile_program
from tessera_reference.wsp.errors import PackageRefused, ProgramRefused, UnsupportedDirective
from tessera_reference.wsp.package import canonical_bytes, content_hash, document
from tessera_reference.wsp.reading import load
from tessera_reference.wsp.targets import NAMES, Target, target

DATA = files("tessera_reference.wsp.targets")
EMIT_ONLY = ("pto_runtime_a2a3", "aie")
every_target = pytest.mark.parametrize("name", NAMES)


def data(name: str) -> dict[str, Any]:
    return tomllib.loads(DATA.joinpath(f"{name}.toml").read_text(encoding="utf-8"))


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


def test_every_file_is_a_target() -> None:
    stems = {Path(each.name).stem for each in DATA.iterdir() if each.name.endswith(".toml")}
    assert stems == set(NAMES)


@every_target
def test_a_target_follows_its_schema(name: str) -> None:
    assert [error.message for error in validator("tessera:wsp-target").iter_errors(data(name))] == []


@every_target
def test_a_target_has_every_entry(name: str) -> None:
    """What is unsupported is said, so that no entry is forgotten."""
    for table in ("directives", "csp", "predicates"):
        assert list(data(name)[table]) == list(data("cpu_sim")[table])


@every_target
@pytest.mark.parametrize("kind", ["vector", "matrix", "dma"])
def test_an_architecture_has_every_kind_of_unit(name: str, kind: str) -> None:
    assert any(kind in each["kinds"] for each in known(name).architecture["exec_units"])


@every_target
def test_worker_types_are_units(name: str) -> None:
    architecture = known(name).architecture
    units = {each["name"] for each in architecture["exec_units"]}
    assert set(architecture["dispatch"]["worker_types"]) <= units | {"general"}


@pytest.mark.parametrize("name", EMIT_ONLY)
def test_what_is_emitted_alone_enforces_nothing(name: str) -> None:
    stated = data(name)
    assert "enforced" not in [
        state for table in ("directives", "csp", "predicates") for state in stated[table].values()
    ]


def test_phase_1_records_what_would_hold_back_orchestration() -> None:
    (first,) = [name for name in NAMES if data(name)["phase"] == 1]
    stated = data(first)["directives"]
    bounds = [each for each in stated if each.startswith("resources.")]
    assert {stated[each] for each in ["task_window.unit.tasks", "task_window.mode.stall", *bounds]} == {"recorded"}


@every_target
def test_a_diagnosed_directive_is_reported_once(name: str) -> None:
    """Given twice, with two values."""
    program = simple()
    program.directive("prefetch", "1")
    program.directive("prefetch", "2")
    assert program.compile(name).diagnostics == (f"target {name} ignores prefetch",)


@every_target
def test_a_recorded_directive_is_kept_and_not_reported(name: str) -> None:
    program = simple()
    program.directive("placement", "near")
    compiled = program.compile(name)
    assert compiled.diagnostics == ()
    (directive,) = load(compiled.package).schedule.directives
    assert (directive.name, directive.value, directive.state) == ("placement", "near", "recorded")


@every_target
@pytest.mark.parametrize(
    ("unit", "mode", "named"),
    [
        ("bytes", "stall", "task_window.unit.bytes"),
        ("tasks", "abort", "task_window.mode.abort"),
        ("tasks", "benchmark", "task_window.mode.benchmark"),
    ],
)
def test_other_units_and_modes_of_the_window_are_refused(name: str, unit: str, mode: str, named: str) -> None:
    program = simple()
    program.task_window(TaskWindow(4, unit=unit, mode=mode))
    with pytest.raises(UnsupportedDirective, match=f"target {name} does not support {named}"):
        program.compile(name)


@every_target
def test_a_directive_that_the_matrix_does_not_have_is_refused(name: str) -> None:
    program = simple()
    program.directive("teleport", "now")
    with pytest.raises(UnsupportedDirective, match="teleport"):
        program.compile(name)


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
        stated = data("cpu_sim")
        table = "csp" if feature in stated["csp"] else "predicates"
        stated[table][feature] = state
        lacking = Target("lacking", **stated)
        if state == "diagnosed":
            _, diagnostics = compile_program(two_of_each_end().form, lacking)
            assert diagnostics == [f"target lacking ignores {feature}"]
            continue
        with pytest.raises(UnsupportedDirective, match=feature):
            compile_program(two_of_each_end().form, lacking)


# streams


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
    levels = [(each["process"], each["level"]) for each in graph["nodes"]]
    assert levels == [("p", 0), ("q", 1), ("r", 1), ("s", 2)]
    ends = [(each["from"], each["to"], each["capacity"]) for each in graph["edges"]]
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
