"""The targets: packages for each, and what runs where (sections 6, 7 and 7.1)."""

from __future__ import annotations

import os
import re
from shutil import which

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.bounded import EXHAUSTIONS
from tessera_conformance.chapters.runtime.wsp.kit.deadlocks import DEADLOCKS
from tessera_conformance.chapters.runtime.wsp.kit.packages import document_of, example
from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    channel,
    consume,
    elements,
    process,
    program,
    receive,
    repeat,
    run,
    send,
    slot,
    task,
    work,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import compiled, ran, statistics
from tessera_conformance.chapters.runtime.wsp.kit.targets import pipeline
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected

pytestmark = feature("wsp-packages")

SIMULATOR = "pto_runtime_a2a3sim"
LOGICAL = ("tensors", "slots", "channels", "assignments")
"""The results of a run that do not depend on its clock."""


@feature("wsp-expressions", "wsp-kernels", "wsp-slots", "wsp-statistics")
@clause("WSP-06.1-01", "WSP-06.1-03")
def test_cpu_sim_runs_a_package_here(impl, check):
    """The results follow from the program, and the package is all that it needs (AMB-WSP-31)."""
    package = compiled(impl, check, pipeline())
    answer = check.returns(impl.wsp.load(package=package))
    check.equal(answer["target"], "cpu_sim", "the target that the package says")
    actual = statistics(impl, check, package)
    check.equal(elements("i32", actual["tensors"]["t"]), [35] * 3, "the tensor that tokens fill")
    check.equal(len(actual["assignments"]), 12, "the tasks that were issued")


@feature("wsp-expressions", "wsp-kernels", "wsp-resources", "wsp-slots", "wsp-statistics")
@feature("backend-a2a3sim")
@clause("WSP-07-02")
@pytest.mark.parametrize("one", [pipeline(), example()], ids=["pipeline", "example"])
def test_a2a3sim_executes_the_package(impl, check, one):
    """With the results of cpu_sim; a package has the same kernels, schedule and processes for both targets."""
    judge_simulator(impl, check, one)


TOOLCHAIN = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_CANN_PACKAGE_PATH")
"""Variables that the Ascend toolkit sets where it is installed."""
COMPILERS = ("atc", "bisheng", "ccec", "msopgen")
"""Programs of the Ascend toolkit."""


@feature("wsp-expressions", "wsp-kernels", "wsp-resources", "wsp-slots", "wsp-statistics")
@feature("backend-a2a3sim")
@clause("WSP-06.2-01")
@pytest.mark.parametrize("one", [pipeline(), example()], ids=["pipeline", "example"])
def test_a2a3sim_runs_without_a_toolchain(impl, check, one):
    """Compiled and run where no Ascend toolchain is found; where one is, nothing is judged."""
    installed = [name for name in TOOLCHAIN if os.environ.get(name)] + [name for name in COMPILERS if which(name)]
    check.given(not installed, "no Ascend toolchain is here", installed)
    judge_simulator(impl, check, one)


def judge_simulator(impl, check, one):
    """The package of the simulator differs from that of cpu_sim in its target alone, and has the same results."""
    package = compiled(impl, check, one, SIMULATOR)
    usual = compiled(impl, check, one)
    document = document_of(check, package)
    for member in ("kernels", "csp", "slots", "symbols", "tensors"):
        check.equal(document[member], document_of(check, usual)[member], f"{member} of the two packages")
    check.equal(document["target"], SIMULATOR, "the target of the package")
    actual, expected = (statistics(impl, check, submitted) for submitted in (package, usual))
    for name in ("tensors", "slots"):
        check.equal(actual[name], expected[name], f"{name}, as on cpu_sim")


@feature("wsp-expressions", "wsp-kernels", "wsp-slots", "wsp-statistics")
@feature("backend-a2a3sim")
@clause("WSP-06.2-02")
@pytest.mark.parametrize("capacity", [1, 2, 7])
def test_a2a3sim_keeps_csp_semantics(impl, check, capacity):
    """Order of tokens, capacity, closing by the last of two producers, latency."""
    one = pipeline(channels=[channel("a", capacity), channel("b", capacity, 11)], sends=9)
    actual, expected = (
        statistics(impl, check, compiled(impl, check, one, backend)) for backend in (SIMULATOR, "cpu_sim")
    )
    for target in LOGICAL:
        check.equal(actual[target], expected[target], f"{target}, as on cpu_sim")
    two = program(
        process("left", repeat(4, send("c", slot("i")), index="i"), receive("late", "y")),
        process("right", repeat(3, send("c", 9)), send("late", 5)),
        process("sink", consume("c", "x"), send("end", 1)),
        process("last", receive("end", "z")),
        channels=[channel("c", capacity), channel("late"), channel("end")],
    )
    actual = statistics(impl, check, compiled(impl, check, two, SIMULATOR))
    check.equal(actual["channels"]["c"], {"sent": 7, "taken": 7, "left": 0}, "the tokens of two producers")
    check.equal([actual["slots"][result] for result in "yz"], ["5", "1"], "the slots")


@feature("wsp-kernels", "wsp-resources", "wsp-scopes", "wsp-statistics")
@feature("backend-a2a3sim")
@clause("WSP-06.2-02", "WSP-07.1-08")
@pytest.mark.parametrize("deadlock", DEADLOCKS, ids=lambda deadlock: deadlock.name)
def test_a2a3sim_reports_deadlocks(impl, check, deadlock):
    """The report equals that of cpu_sim: each waiting process and its cause."""
    result = ran(impl, check, compiled(impl, check, deadlock.program, SIMULATOR))
    check.equal(result["outcome"], "deadlock", "the outcome")
    waiting = {
        wait["process"]: [wait["reason"], wait["for"]] for wait in result["deadlock"]["waiting"] if "task" not in wait
    }
    check.equal(waiting, {name: list(waits) for name, waits in deadlock.waiting.items()}, "who waits, and why")


@feature("wsp-kernels", "wsp-resources", "wsp-statistics")
@feature("backend-a2a3sim")
@clause("WSP-06.2-03", "WSP-03.4.2-07")
@pytest.mark.parametrize("exhaustion", EXHAUSTIONS, ids=lambda exhaustion: exhaustion.resource)
def test_a2a3sim_keeps_dispatch_semantics(impl, check, exhaustion):
    """The workers of tasks, and stalls for the same reasons, with marks within the bounds."""
    package = compiled(impl, check, exhaustion.program, SIMULATOR)
    for expected in exhaustion.expected:
        sizes = exhaustion.sizes(expected)
        actual = statistics(impl, check, package, resources=sizes)
        usual = statistics(impl, check, exhaustion.program, resources=sizes)
        for target in LOGICAL:
            check.equal(actual[target], usual[target], f"{target}, as on cpu_sim")
        check.equal(actual["stalls"][exhaustion.reason]["count"] > 0, expected.count > 0, "whether there are stalls")
        check.true(actual["high_water"][exhaustion.resource] <= expected.size, "the mark is within the bound")


def streams(impl, check, one):
    """The graph of streams of an aie package."""
    document = document_of(check, compiled(impl, check, one, "aie"))
    graph = document.get("stream_graph")
    check.true(isinstance(graph, dict), "the package has a graph of streams", sorted(document))
    check.equal([name for name in ("nodes", "edges") if name not in graph], [], "what the graph lacks")
    return graph


def diamond(*more):
    """Four processes, one of which sends to two, which send to the last."""
    return program(
        process("source", send("left"), send("right")),
        process("upper", receive("left", "x"), send("out")),
        process("lower", consume("right", "y", send("down"))),
        process("sink", receive("out", "z"), consume("down", "z"), *more),
        channels=[channel("left"), channel("right", 3), channel("out", latency=5), channel("down")],
    )


EDGES = {
    "left": ("source", "upper", 1, 0),
    "right": ("source", "lower", 3, 0),
    "out": ("upper", "sink", 1, 5),
    "down": ("lower", "sink", 1, 0),
}


@feature("wsp-kernels")
@feature("backend-aie")
@clause("WSP-06.4-05")
def test_an_aie_package_has_explicit_edges(impl, check):
    """One for each channel, with its producer and consumer, capacity and latency."""
    edges = streams(impl, check, diamond())["edges"]
    members = ("from", "to", "capacity", "latency")
    actual = {edge.get("channel"): tuple(edge.get(member) for member in members) for edge in edges}
    check.equal(len(edges), 4, "the edges")
    check.equal(
        {name: list(targets) for name, targets in actual.items()}, {n: list(e) for n, e in EDGES.items()}, "the edges"
    )


@feature("backend-aie")
@clause("WSP-06.4-04", "WSP-06.4-03")
def test_an_aie_package_is_structured(impl, check):
    """A package emitted without a toolchain has nodes for all processes, kernels and the schedule."""
    one = diamond(run("w3"))
    one["kernels"] = work(3)
    graph = streams(impl, check, one)
    check.equal(
        sorted(node.get("process") for node in graph["nodes"]), ["lower", "sink", "source", "upper"], "the nodes"
    )
    document = document_of(check, compiled(impl, check, one, "aie"))
    usual = document_of(check, compiled(impl, check, one))
    for member in ("kernels", "csp", "slots", "symbols", "tensors"):
        check.equal(document.get(member), usual[member], f"{member}, as for cpu_sim")
    answer = check.returns(impl.wsp.load(package=compiled(impl, check, one, "aie")))
    check.equal(answer["target"], "aie", "the target that the package says")


@feature("wsp-kernels")
@feature("backend-aie")
@clause("WSP-06.4-06")
def test_an_aie_stream_graph_has_no_cycle(impl, check):
    """Nodes can be taken away one after the other, each when no edge leads to it any more."""
    graph = streams(impl, check, diamond())
    left = {node["process"] for node in graph["nodes"]}
    edges = [(edge["from"], edge["to"]) for edge in graph["edges"]]
    while ready := {node for node in left if not any(to == node and of in left for of, to in edges)}:
        left -= ready
    check.equal(sorted(left), [], "the processes in a cycle")


CYCLES = {
    "two": program(
        process("ping", send("a"), receive("b", "x")),
        process("pong", receive("a", "x"), send("b")),
        channels=[channel("a"), channel("b")],
    ),
    "itself": program(process("only", send("a"), receive("a", "x")), channels=[channel("a")]),
    "three, through tasks": program(
        process("first", task("w3", waits=["c"], signals=["a"])),
        process("second", consume("a", "x", send("b"))),
        process("third", receive("b", "y"), send("c")),
        channels=[channel(name) for name in "abc"],
        kernels=work(3),
    ),
    "beside a pipeline": program(
        process("source", send("s")),
        process("sink", receive("s", "x")),
        process("ping", receive("b", "y"), send("a")),
        process("pong", receive("a", "z"), send("b")),
        channels=[channel(name) for name in "sab"],
    ),
}
AROUND = {
    "two": ("ping", "pong"),
    "itself": ("only",),
    "three, through tasks": ("first", "second", "third"),
    "beside a pipeline": ("ping", "pong"),
}
"""The processes of each cycle."""


@feature("wsp-kernels")
@feature("backend-aie")
@clause("WSP-06.4-07")
@pytest.mark.parametrize(("one", "around"), [(CYCLES[name], AROUND[name]) for name in CYCLES], ids=CYCLES)
def test_a_cyclic_stream_graph_is_unsupported_for_aie(impl, check, one, around):
    """A clear error when it is compiled, which names what is cyclic (AMB-WSP-76); cpu_sim takes the program."""
    observation = impl.wsp.compile(program=one, target="aie")
    check.status(observation, "UNSUPPORTED_DIRECTIVE")
    message = observation.message if isinstance(observation, Rejected) else ""
    named = [name for name in around if re.search(rf"\b{name}\b", message)]
    check.true(bool(named), f"the message names one of {', '.join(around)}", message)
    compiled(impl, check, one)


@feature("wsp-kernels", "wsp-statistics")
@feature("backend-aie")
@clause("WSP-06.4-03")
def test_without_a_toolchain_an_aie_package_is_emitted_and_not_run(impl, check):
    """The refusal says what it would need; it does not run as if it were another target."""
    package = compiled(impl, check, diamond(), "aie")
    observation = impl.wsp.run(package=package)
    if isinstance(observation, Rejected):
        check.status(observation, "DEVICE_NEEDED")
        check.true(bool(observation.message), "the refusal says why", observation.message)
    else:
        check.equal(check.returns(observation)["outcome"], "completed", "the outcome on a device or emulator")
