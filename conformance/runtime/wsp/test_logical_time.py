"""Time: cycles of kernels, of processes and of the run, and the latency of channels (PTO-WSP v10, 1.2 and 2.4).

Whether a wait advances the time of a process is open (AMB-WSP-01): these programs have the same figures either way.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.packages import published
from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    channel,
    consume,
    filler,
    process,
    program,
    receive,
    repeat,
    run,
    schedule,
    send,
    slot,
    task,
    tensor,
    work,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import compiled, statistics, under_seeds
from tessera_conformance.marks import clause, feature

pytestmark = feature("wsp-kernels", "wsp-packages", "wsp-statistics")

AT_EACH_PLACE = pytest.mark.parametrize("longest", [0, 1, 2])


@feature("wsp-seeds")
@clause("WSP-01.2-01", "WSP-02.4-05")
@AT_EACH_PLACE
def test_total_cycles_are_the_largest_time_of_a_process(impl, check, longest):
    """Three processes that never wait; each in turn is the longest. No sum, and not the first's or last's time."""
    times = [19 if index == longest else (7, 12, 5)[index] for index in range(3)]
    source = program(
        *(process(f"p{number}", run(f"w{time}")) for number, time in enumerate(times)),
        kernels=work(*sorted(set(times))),
    )
    actual = under_seeds(impl, check, source)
    check.equal(
        actual["processes"], {f"p{number}": time for number, time in enumerate(times)}, "the times of the processes"
    )
    check.equal(actual["total_cycles"], 19, "the makespan")


@feature("wsp-seeds", "wsp-slots")
@clause("WSP-02.4-05")
@pytest.mark.parametrize("capacity", [1, 2, 5])
def test_the_makespan_of_a_pipeline_is_that_of_its_slowest_stage(impl, check, capacity):
    """The source sends at once and the last stage takes the longest, so that all others only wait: 6 tokens of 11."""
    source = program(
        process("sink", consume("c", "x", run("w11"))),
        process("source", repeat(6, send("c", slot("i")), index="i")),
        channels=[channel("c", capacity)],
        kernels=work(11),
    )
    actual = under_seeds(impl, check, source)
    check.equal((actual["total_cycles"], actual["processes"]["sink"]), (66, 66), "makespan and time of the sink")


@feature("wsp-seeds")
@clause("WSP-02.4-01")
def test_each_process_has_a_time_of_its_own(impl, check):
    """Four processes, of which one runs nothing and two the same."""
    bodies = {"a": [3, 3], "b": [], "c": [8, 3, 8], "d": [3, 3]}
    source = program(
        *(process(name, *(run(f"w{cycle}") for cycle in cycles)) for name, cycles in bodies.items()), kernels=work(3, 8)
    )
    actual = under_seeds(impl, check, source)
    check.equal(actual["processes"], {"a": 6, "b": 0, "c": 19, "d": 6}, "the times of the processes")


@feature("wsp-seeds", "wsp-slots")
@clause("WSP-02.4-02", "WSP-01.2-05", "WSP-01.2-02")
@pytest.mark.parametrize(("fixed", "per_element", "count"), [(0, 0, 3), (5, 0, 3), (0, 2, 7), (4, 3, 1), (4, 3, 17)])
def test_a_kernel_adds_the_cycles_that_it_reports(impl, check, fixed, per_element, count):
    """A fixed part and a part for each element, three times over (AMB-WSP-31, AMB-WSP-61)."""
    cycles = fixed + per_element * count
    source = program(
        process("p", repeat(3, run("f", "t", slot("i")), index="i")),
        kernels=[filler("f", fixed, per_element)],
        tensors=[tensor("t", "u16", [0] * count)],
    )
    actual = under_seeds(impl, check, source)
    check.equal(actual["kernels"]["f"], {"runs": 3, "cycles": 3 * cycles}, "the report of the kernel")
    check.equal(actual["processes"], {"p": 3 * cycles}, "the time of the process")
    check.equal(actual["total_cycles"], 3 * cycles, "the time of the run")


@feature("wsp-seeds")
@clause("WSP-01.2-05")
def test_the_cycles_of_each_kernel_are_reported(impl, check):
    """Two kernels in processes and tasks, and one that never runs."""
    source = program(
        process("p", run("w3"), task("w7"), run("w3")),
        process("q", task("w7"), run("w7")),
        kernels=work(3, 7, 9),
        schedule=schedule("round_robin", workers=2),
    )
    actual = under_seeds(impl, check, source)
    expected = {"w3": {"runs": 2, "cycles": 6}, "w7": {"runs": 3, "cycles": 21}, "w9": {"runs": 0, "cycles": 0}}
    check.equal({name: actual["kernels"][name] for name in expected}, expected, "runs and cycles of the kernels")
    check.equal(sum(worker["busy"] for worker in actual["workers"]), 14, "how long workers were busy")


@clause("WSP-01.2-03")
@feature("aie-execution")
def test_the_aie_target_reports_the_cycles_of_its_kernels(impl, check):
    """Or what its counter gives in their place: the time of a run is at least each kernel's (AMB-WSP-77)."""
    _reports_cycles(impl, check, "aie")


@clause("WSP-01.2-04")
def test_the_a2a3_target_reports_the_cycles_of_its_kernels(impl, check):
    """The time of a run is at least that of each of its kernels."""
    _reports_cycles(impl, check, "pto_runtime_a2a3")


def _reports_cycles(impl, check, target):
    source = program(process("p", run("w9"), run("w9")), kernels=work(9))
    actual = statistics(impl, check, compiled(impl, check, source, target))
    check.true(actual["total_cycles"] >= actual["kernels"]["w9"]["cycles"] > 0, "the cycles of the kernel", actual)


@clause("WSP-02.4-02", "WSP-01.2-01")
@pytest.mark.parametrize("statement", [run, task], ids=["run", "task"])
def test_a_kernel_may_report_more_cycles_than_32_bits_hold(impl, check, statement):
    """Twice 2^32 - 1 cycles, and as many for each of three elements (AMB-WSP-58, AMB-WSP-61)."""
    most = (1 << 32) - 1
    calls = [statement("long", "t", 1)] * 2
    source = program(process("p", *calls), kernels=[filler("long", most, most)], tensors=[tensor("t", "i32", [0] * 3)])
    actual = statistics(impl, check, source)
    check.equal(actual["kernels"]["long"]["cycles"], 8 * most, "the cycles of the kernel")
    check.equal(actual["total_cycles"], 8 * most, "the makespan")


@feature("wsp-slots")
@clause("WSP-02.4-03")
@pytest.mark.parametrize("latency", [1, 4, 1000, 70_000, (1 << 32) - 1])
def test_a_token_is_seen_when_the_latency_has_passed(impl, check, latency):
    """A channel of one token delivers each of five tokens `latency` after its send."""
    source = program(
        process("source", repeat(5, send("c", slot("i")), index="i")),
        process("sink", repeat(5, receive("c", "x"))),
        channels=[channel("c", latency=latency)],
    )
    package = compiled(impl, check, source)
    if (document := published(package)) is not None:
        check.equal(document["csp"]["channels"][0]["latency"], latency, "the latency in the package")
    actual = statistics(impl, check, package)
    check.equal(actual["processes"]["sink"], 5 * latency, "the time of the consumer")
    check.equal(actual["total_cycles"], 5 * latency, "the time of the run")


@feature("wsp-seeds", "wsp-slots")
@clause("WSP-02.4-03")
def test_each_channel_has_its_own_latency(impl, check):
    """Three edges in a row, of 2, 0 and 7 cycles."""
    source = program(
        process("a", send("ab", 1)),
        process("b", receive("ab", "x"), send("bc", slot("x"))),
        process("c", receive("bc", "y"), send("cd", slot("y"))),
        process("d", receive("cd", "z")),
        channels=[channel("ab", latency=2), channel("bc", latency=0), channel("cd", latency=7)],
    )
    actual = under_seeds(impl, check, source)
    check.equal(actual["total_cycles"], 9, "the latencies of the path")
    check.equal(actual["slots"], {"x": "1", "y": "1", "z": "1"}, "the token")


@feature("wsp-seeds", "wsp-slots")
@clause("WSP-02.4-04", "WSP-02.2-08")
def test_tokens_without_latency_take_no_time(impl, check):
    """Twenty tokens through two channels, and kernels of 3 cycles at their end: the kernels are all the time."""
    source = program(
        process("source", repeat(20, send("c", slot("i")), index="i")),
        process("stage", consume("c", "x", send("d", slot("x")))),
        process("sink", consume("d", "y", run("w3"))),
        channels=[channel("c"), channel("d", 4)],
        kernels=work(3),
    )
    actual = under_seeds(impl, check, source)
    check.equal(actual["total_cycles"], 60, "the time of the run")
