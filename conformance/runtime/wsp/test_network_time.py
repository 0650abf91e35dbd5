"""Time, from the cycles that kernels report (PTO-WSP v10, 1.2 and 2.4), through `wsp.execute`.

Every program runs several times: what depends on the threads of a host shows in some run. Whether a wait advances the
time of a process is open (AMB-WSP-01): where the two readings differ, either is right.
"""

from __future__ import annotations

from itertools import chain, pairwise

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.networks import (
    channel,
    channels,
    close,
    completed,
    completed_runs,
    consume,
    judge_reports,
    judge_time,
    kernels,
    network,
    process,
    reported_cycles,
    run,
    send,
    sends,
    task,
    work,
)
from tessera_conformance.marks import clause, feature

BODIES = {
    "one": [[7]],
    "equal": [[4, 4], [4, 4]],
    "first": [[9, 9], [5], [2, 2]],
    "middle": [[5], [9, 9, 9], [2, 2]],
    "last": [[1], [], [3, 8, 3]],
    "many": [[place + 1] * 3 for place in range(9)],
    "none": [[], []],
}


def independent(bodies):
    """Processes that share nothing."""
    return network(
        *(process(f"p{place}", *(run(f"w{count}") for count in body)) for place, body in enumerate(bodies)),
        kernels=work(*dict.fromkeys(count for body in bodies for count in body)),
    )


@clause("WSP-01.2-01", "WSP-02.4-05", "WSP-02.4-01")
@pytest.mark.parametrize("bodies", BODIES.values(), ids=BODIES)
def test_the_time_of_a_run_is_that_of_its_longest_process(impl, check, bodies):
    """Processes that share nothing: each has a time of its own, the sum of its kernels."""
    program = independent(bodies)
    for ending in completed_runs(impl, check, program):
        longest = max(reported_cycles(ending, f"p{place}") for place in range(len(bodies)))
        check.equal(ending["total_cycles"], longest, "the time of the run")
        judge_reports(check, program, ending)


@clause("WSP-01.2-05", "WSP-02.4-02")
@pytest.mark.parametrize(
    "cycles", [(5,), (1, 1, 1), (3, 40, 3), (1000, 1), (2,) * 30], ids=["5", "1s", "3-40-3", "1000-1", "2s"]
)
def test_a_kernel_adds_the_cycles_that_it_reports(impl, check, cycles):
    """Each run of a kernel has its report, and the time of the process is their sum."""
    program = independent([cycles])
    for ending in completed_runs(impl, check, program):
        check.equal(kernels(ending, "p0"), [f"w{count}" for count in cycles], "the kernels that report")
        judge_reports(check, program, ending)
        check.equal(ending["total_cycles"], reported_cycles(ending, "p0"), "the time of the run")


@clause("WSP-02.4-05")
@pytest.mark.parametrize("capacity", [1, 2, 5])
@pytest.mark.parametrize("slowest", ["source", "stage", "sink"])
def test_the_makespan_of_a_pipeline(impl, check, capacity, slowest):
    """One stage takes eleven cycles for each of six tokens, the others one."""
    cycles = {name: "w11" if name == slowest else "w1" for name in ("source", "stage", "sink")}
    source = [step for token in range(6) for step in (run(cycles["source"]), send("a", token))]
    program = network(
        process("sink", consume("b", run(cycles["sink"]))),
        process("stage", consume("a", run(cycles["stage"]), send("b")), close("b")),
        process("source", *source, close("a")),
        channels=[channel("a", capacity), channel("b", capacity)],
        kernels=work(1, 11),
    )
    for ending in completed_runs(impl, check, program):
        judge_time(check, program, ending)


@clause("WSP-02.4-01", "WSP-02.4-05")
@pytest.mark.parametrize("width", [2, 4, 8])
def test_a_fan_out_takes_as_long_as_its_slowest_branch(impl, check, width):
    """One producer gives each branch a token at once; branch k takes 3 k cycles."""
    names = [f"c{place}" for place in range(width)]
    program = network(
        *(process(f"q{place}", consume(name, run(f"w{3 * place + 3}"))) for place, name in enumerate(names)),
        process("p", *(send(name, 1) for name in names), *map(close, names)),
        channels=channels(*names),
        kernels=work(*(3 * place + 3 for place in range(width))),
    )
    for ending in completed_runs(impl, check, program):
        judge_time(check, program, ending)


@clause("WSP-02.4-04", "WSP-02.2-08")
@pytest.mark.parametrize("count", [2, 20])
def test_tokens_without_latency_take_no_time(impl, check, count):
    """Tokens through two channels, and a kernel at the end: the kernels are all the time."""
    program = network(
        process("source", *sends("c", range(count)), close("c")),
        process("stage", consume("c", send("d")), close("d")),
        process("sink", consume("d", run("w3"))),
        channels=[channel("c"), channel("d", 4)],
        kernels=work(3),
    )
    for ending in completed_runs(impl, check, program):
        check.equal(ending["total_cycles"], reported_cycles(ending, "sink"), "the time of the run")


@feature("wsp-channel-latency")
@clause("WSP-02.4-03")
@pytest.mark.parametrize("latency", [1, 4, 1000])
def test_a_channel_adds_its_latency(impl, check, latency):
    """A token is received so much after its send; the kernel of the consumer comes afterwards."""
    program = network(
        process("p", send("c", 1), close("c")),
        process("q", consume("c", run("w3"))),
        channels=[channel("c", latency=latency)],
        kernels=work(3),
    )
    for ending in completed_runs(impl, check, program):
        check.equal(ending["total_cycles"], latency + reported_cycles(ending, "q"), "the time of the run")


@clause("WSP-02.4-05", "WSP-03.1-01")
@pytest.mark.parametrize("count", [1, 3, 10])
def test_the_tasks_of_one_worker_follow_one_another(impl, check, count):
    """The time is the sum of their cycles, by every reading of it (AMB-WSP-23)."""
    program = network(
        process("p", *(task(f"w{place + 2}") for place in range(count))),
        kernels=work(*(place + 2 for place in range(count))),
        policy="round_robin",
    )
    for ending in completed_runs(impl, check, program):
        check.equal(ending["total_cycles"], sum(task["cycles"] for task in ending["tasks"]), "the time of the run")
        judge_reports(check, program, ending)


@feature("wsp-task-tensors")
@clause("WSP-03.1-01", "WSP-02.4-05")
@pytest.mark.parametrize("workers", [2, 3, 8])
def test_a_dependence_between_workers_takes_the_time_of_both_kernels(impl, check, workers):
    """Each task reads what the one before it writes, on another worker: the time is the sum of their cycles."""
    program = network(
        process(
            "p", *(task("w7", reads=[f"t{place}"] if place else (), writes=[f"t{place + 1}"]) for place in range(6))
        ),
        kernels=work(7),
        policy="round_robin",
        workers=workers,
    )
    for ending in completed_runs(impl, check, program):
        check.equal(ending["total_cycles"], sum(task["cycles"] for task in ending["tasks"]), "the time of the run")


@feature("wsp-task-tensors")
@clause("WSP-03.1-01", "WSP-02.4-05")
def test_writes_and_reads_of_one_tensor_are_in_the_order_of_issue(impl, check):
    """A write follows the write and the reads before it, each on another worker."""
    program = network(
        process(
            "p",
            task("w5", writes=["t"]),
            task("w3", reads=["t"], writes=["u"]),
            task("w4", writes=["t"]),
            task("w6", writes=["t"]),
        ),
        kernels=work(3, 4, 5, 6),
        policy="round_robin",
        workers=4,
    )
    for ending in completed_runs(impl, check, program):
        check.equal(ending["total_cycles"], sum(task["cycles"] for task in ending["tasks"]), "the time of the run")


@feature("wsp-task-tensors")
@clause("WSP-03.1-01", "WSP-02.4-05")
@pytest.mark.parametrize("slow", [0, 1, 2], ids=["first", "second", "last"])
def test_a_write_follows_every_read_before_it(impl, check, slow):
    """One of three readers, on workers of their own, begins after two other tasks, whichever it is."""
    late = [task("w3", writes=["s"]), task("w3", reads=["s"], writes=["u"]), task("w3", reads=["t", "u"])]
    readers = [late if place == slow else [task("w3", reads=["t"])] for place in range(3)]
    program = network(
        process("p", *chain(*readers), task("w3", writes=["t"])), kernels=work(3), policy="round_robin", workers=6
    )
    for ending in completed_runs(impl, check, program):
        *cycles, last = (task["cycles"] for task in ending["tasks"])
        longest = max(sum(cycles[slow : slow + 3]), *cycles)
        check.equal(ending["total_cycles"], longest + last, "the time of the run")


@feature("wsp-task-channels")
@clause("WSP-07.1-07", "WSP-03.1-01", "WSP-02.4-05")
@pytest.mark.parametrize("workers", [2, 5])
def test_a_token_between_tasks_takes_the_time_of_both_kernels(impl, check, workers):
    """Each task waits for the token that the one before it signals, on another worker."""
    names = [f"c{place}" for place in range(4)]
    steps = [task("w7", signals=names[:1])]
    steps += [task("w7", waits=[before], signals=[after]) for before, after in pairwise(names)]
    program = network(
        process("p", *steps, task("w7", waits=names[-1:])),
        channels=channels(*names),
        kernels=work(7),
        policy="round_robin",
        workers=workers,
    )
    for ending in completed_runs(impl, check, program):
        check.equal(ending["total_cycles"], sum(task["cycles"] for task in ending["tasks"]), "the time of the run")


@clause("WSP-02.4-02")
def test_a_kernel_runs_for_each_token(impl, check):
    """The cycles of a consumer are those of its kernels, one for each of nine tokens."""
    program = network(
        process("p", *sends("c", range(9)), close("c")),
        process("q", consume("c", run("w4"), run("w2"))),
        channels=channels("c"),
        kernels=work(2, 4),
    )
    ending = completed(impl, check, program)
    check.equal(kernels(ending, "q"), ["w4", "w2"] * 9, "the kernels of the consumer")
    judge_time(check, program, ending)
