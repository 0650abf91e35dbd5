"""Flow-control statistics: stalls by reason, their time, high-water marks, the current stall (section 3.4.2)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.bounded import (
    DEPLIST_POOL,
    EXHAUSTIONS,
    HEAP_ARENA,
    READY_QUEUE,
    REASONS,
    RESOURCES,
    TASK_RING,
    TENSORMAP_POOL,
    with_workers,
)
from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    channel,
    close,
    filler,
    process,
    program,
    receive,
    run,
    schedule,
    send,
    task,
    tensor,
    wait,
    work,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import compiled, ran, read_by, stalls, statistics
from tessera_conformance.marks import clause, feature
from tessera_conformance.schemas import validator

pytestmark = feature("wsp-kernels", "wsp-packages", "wsp-statistics")

ROWS = [
    pytest.param(exhaustion, expected, id=f"{exhaustion.resource}-{expected.size}")
    for exhaustion in EXHAUSTIONS
    for expected in exhaustion.expected
]


@clause("WSP-03.4.2-01")
def test_the_statistics_have_every_resource_and_every_reason(impl, check):
    """Stalls by the seven reasons, use and marks of the five resources, also of a program without a task."""
    actual = statistics(impl, check, program(process("p")))
    has(check, actual, "stalls", "high_water", "used", "current_stalls")
    zero = {"count": 0, "cycles": 0}
    check.equal(actual["stalls"], dict.fromkeys(REASONS, zero), "the stalls")
    check.equal(actual["high_water"], dict.fromkeys(RESOURCES, 0), "the high-water marks")
    check.equal(actual["used"], dict.fromkeys(RESOURCES, 0), "what is used")
    check.equal(actual["current_stalls"], [], "the current stalls")


@feature("wsp-resources")
@clause("WSP-03.4.2-02", "WSP-03.4.2-03", "WSP-03.4.2-04", "WSP-03.4.2-05")
@pytest.mark.parametrize(("exhaustion", "expected"), ROWS)
def test_stalls_their_cycles_and_the_mark_of_each_resource(impl, check, exhaustion, expected):
    """Episodes of one reason count once each, their cycles from their beginning to their end; the others are 0."""
    actual = statistics(impl, check, exhaustion.program, resources=exhaustion.sizes(expected))
    has(check, actual["stalls"], *REASONS)
    check.equal(actual["stalls"][exhaustion.reason]["count"], expected.count, "the stall count")
    check.equal(actual["stalls"][exhaustion.reason]["cycles"], expected.cycles, "the stall time in cycles")
    check.equal(actual["high_water"][exhaustion.resource], expected.high_water, "the high-water mark")
    check.equal(others(actual, exhaustion.reason), {}, "the stalls for other reasons")


def has(check, actual, *members):
    """The statistics have these members."""
    check.equal([member for member in members if member not in actual], [], "the members that are missing")


def others(actual, *reasons):
    """The stalls for other reasons that took time; the order in which waiting processes are served may add others."""
    return {name: stall for name, stall in actual["stalls"].items() if name not in reasons and stall["cycles"]}


@feature("wsp-resources", "wsp-steps")
@pytest.mark.parametrize(
    ("exhaustion", "reason"),
    [
        pytest.param(TASK_RING, "TASK_RING_FULL", marks=clause("WSP-03.4.2-08"), id="task_ring"),
        pytest.param(TENSORMAP_POOL, "TENSORMAP_POOL_FULL", marks=clause("WSP-03.4.2-09"), id="tensormap_pool"),
        pytest.param(DEPLIST_POOL, "DEPLIST_POOL_FULL", marks=clause("WSP-03.4.2-10"), id="deplist_pool"),
        pytest.param(HEAP_ARENA, "HEAP_ARENA_FULL", marks=clause("WSP-03.4.2-11"), id="heap_arena"),
        pytest.param(READY_QUEUE, "READY_QUEUE_FULL", marks=clause("WSP-03.4.2-12"), id="ready_queue"),
    ],
)
@clause("WSP-03.4.2-06")
def test_the_reason_of_a_current_stall_is_read_while_it_lasts(impl, check, exhaustion, reason):
    """After each instant the stall that lasts has its process, its reason and its resource; none is left at the end."""
    package = compiled(impl, check, exhaustion.program)
    sizes = exhaustion.sizes(exhaustion.expected[0])
    run = check.returns(impl.wsp.start(package=package, resources=sizes))["run"]
    seen, outcome, actual = 0, "running", {}
    while outcome == "running":
        result = read_by(check, check.returns(impl.wsp.step(run=run, instants=1)))
        outcome, actual = result["outcome"], result["statistics"]
        again = check.returns(impl.wsp.statistics(run=run))
        check.equal(again, result, "the statistics as they stand")
        has(check, actual, "current_stalls")
        has(check, actual["stalls"], reason)
        current = [
            {name: current_stall[name] for name in ("process", "reason", "for")}
            for current_stall in actual["current_stalls"]
        ]
        stalled = {"process": "issuer", "reason": reason, "for": exhaustion.resource}
        if current:
            check.equal(current, [stalled], "the current stall")
            seen += 1
        check.true(actual["stalls"][reason]["count"] > 0 or not current, "a current stall is counted", actual["stalls"])
    check.true(seen > 0, "the stall is seen while it lasts", seen)
    check.equal(actual["current_stalls"], [], "the current stalls of a run that is complete")


@feature("wsp-steps")
@clause("WSP-03.4.2-06", "WSP-03.4.2-03")
def test_the_cycles_of_a_stall_that_lasts_are_counted_up_to_now(impl, check):
    """A consumer waits from 0; between the kernels of the producer, at 7 and 16, its stall has lasted so long."""
    one = program(
        process("producer", run("w7"), run("w9"), send("c")),
        process("consumer", receive("c", "x")),
        channels=[channel("c")],
        kernels=work(7, 9),
    )
    started = check.returns(impl.wsp.start(package=compiled(impl, check, one)))["run"]
    for time, lasting in ((0, True), (7, True), (16, False)):
        actual = read_by(check, check.returns(impl.wsp.step(run=started, instants=1)))["statistics"]
        has(check, actual["stalls"], "CHANNEL_EMPTY_WAIT")
        check.equal(stalls(actual, "CHANNEL_EMPTY_WAIT"), {"CHANNEL_EMPTY_WAIT": (1, time)}, f"the stall at {time}")
        stall = {"process": "consumer", "reason": "CHANNEL_EMPTY_WAIT", "since": 0, "for": "c"}
        check.equal(actual["current_stalls"], [stall] if lasting else [], f"the current stalls at {time}")


@feature("wsp-steps")
@clause("WSP-03.4.2-06", "WSP-03.4.2-14")
def test_the_stall_of_a_task_is_read_while_it_lasts(impl, check):
    """Its signal finds the channel full from 10 on, until the consumer takes a token at 20 (AMB-WSP-45)."""
    one = program(
        process("producer", task("w3", signals=["c"]), task("w7", signals=["c"])),
        process("consumer", run("w20"), receive("c", "x"), receive("c", "x")),
        channels=[channel("c")],
        kernels=work(3, 7, 20),
        schedule=schedule("round_robin", 1, 8),
    )
    started = check.returns(impl.wsp.start(package=compiled(impl, check, one)))["run"]
    stall = {"task": 1, "reason": "CHANNEL_FULL_WAIT", "since": 10, "for": "c"}
    for time, current in ((0, []), (3, []), (10, [stall]), (20, [])):
        actual = read_by(check, check.returns(impl.wsp.step(run=started, instants=1)))["statistics"]
        check.equal(actual["current_stalls"], current, f"the current stalls at {time}")


@clause("WSP-03.4.2-13", "WSP-03.4.2-02", "WSP-03.4.2-03")
def test_waits_at_an_empty_channel(impl, check):
    """Tokens at 3, 10 and 19; a consumer that comes at 0 takes the first and third, one that comes at 1 the second."""
    one = program(
        process("producer", run("w3"), send("c"), run("w7"), send("c"), run("w9"), send("c")),
        process("first", receive("c", "x"), receive("c", "x")),
        process("second", run("w1"), receive("c", "y")),
        channels=[channel("c")],
        kernels=work(1, 3, 7, 9),
    )
    actual = statistics(impl, check, one)
    has(check, actual["stalls"], "CHANNEL_EMPTY_WAIT")
    check.equal(stalls(actual, "CHANNEL_EMPTY_WAIT"), {"CHANNEL_EMPTY_WAIT": (3, 3 + 9 + 16)}, "the stalls")
    check.equal(others(actual, "CHANNEL_EMPTY_WAIT"), {}, "the stalls for other reasons")


@clause("WSP-03.4.2-14", "WSP-03.4.2-02", "WSP-03.4.2-03")
def test_waits_at_a_full_channel(impl, check):
    """With room for one token, the second of three is sent at 9 and the third at 16."""
    one = program(
        process("producer", send("c"), send("c"), send("c")),
        process("consumer", run("w9"), receive("c", "x"), run("w7"), receive("c", "x"), receive("c", "x")),
        channels=[channel("c")],
        kernels=work(7, 9),
    )
    actual = statistics(impl, check, one)
    has(check, actual["stalls"], "CHANNEL_FULL_WAIT")
    check.equal(stalls(actual, "CHANNEL_FULL_WAIT"), {"CHANNEL_FULL_WAIT": (2, 9 + 7)}, "the stalls")
    check.equal(others(actual, "CHANNEL_FULL_WAIT"), {}, "the stalls for other reasons")


@clause("WSP-03.4.2-14", "WSP-03.4.2-02", "WSP-03.4.2-03")
def test_waits_of_tasks_at_a_full_channel(impl, check):
    """Signals at 3, 10 and 37: the second has room at 20, when the third task starts, and it at 49 (AMB-WSP-45)."""
    one = program(
        process("producer", *(task(f"w{number}", signals=["c"]) for number in (3, 7, 17))),
        process("consumer", run("w20"), receive("c", "x"), run("w29"), receive("c", "x"), receive("c", "x")),
        channels=[channel("c")],
        kernels=work(3, 7, 17, 20, 29),
        schedule=schedule("round_robin", 1, 8),
    )
    actual = statistics(impl, check, one)
    has(check, actual["stalls"], "CHANNEL_FULL_WAIT")
    check.equal(stalls(actual, "CHANNEL_FULL_WAIT"), {"CHANNEL_FULL_WAIT": (2, 10 + 12)}, "the stalls")


@feature("wsp-resources")
@clause("WSP-03.4.2-07")
def test_of_several_resources_that_lack_the_first_is_the_reason(impl, check):
    """In the order of the document; when another resource is what lacks, another episode begins (AMB-WSP-43)."""
    one = with_workers(
        2,
        task("five", "a", 1),
        task("w3"),
        task("five", "b", 1),
        tensors=[tensor("a", "i32", [0] * 3), tensor("b", "i32", [0] * 3)],
    )
    actual = statistics(impl, check, one, resources={"task_window": 2, "heap_arena": 12})
    expected = {"TASK_RING_FULL": (1, 3), "HEAP_ARENA_FULL": (1, 2)}
    check.equal(stalls(actual, *expected), expected, "the stalls: the ring until 3, the arena until 5")
    check.equal(others(actual, *expected), {}, "the stalls for other reasons")
    all_lack = {"task_window": 1, "heap_arena": 12, "tensormap_pool": 1, "ready_queue": 1}
    actual = statistics(impl, check, one, resources=all_lack)
    expected = {"TASK_RING_FULL": (2, 8)}
    check.equal(stalls(actual, *expected), expected, "the stalls with a ring of one slot")
    check.equal(others(actual, *expected), {}, "the stalls for other reasons")


@clause("WSP-03.4.2-07", "WSP-03.4.2-03")
def test_a_wait_for_tasks_is_no_stall(impl, check):
    """The vocabulary has no reason for it (AMB-WSP-46)."""
    one = program(
        process("p", task("w9"), {"op": "wait"}, task("w7"), {"op": "wait"}),
        kernels=work(7, 9),
        schedule=schedule("round_robin", 2),
    )
    actual = statistics(impl, check, one)
    check.equal(others(actual), {}, "the stalls")
    check.equal(actual["processes"], {"p": 16}, "the time of the process")


@feature("wsp-resources")
@clause("WSP-03.4.2-05", "WSP-03.4.2-02", "WSP-03.4-06")
@pytest.mark.parametrize("worker", [1, 2, 4])
def test_the_queue_of_every_worker_is_counted_alike(impl, check, worker):
    """Six tasks in queues of three by a key: stalls, their cycles and the mark are those of the first worker."""

    def queued(number):
        tasks = [task("w7", key=number) for _ in range(6)]
        return program(process("p", *tasks), kernels=work(7), schedule=schedule("affinity", 5, 16, ready_queue=3))

    actual, first = (statistics(impl, check, queued(number)) for number in (worker, 0))
    check.equal(actual["assignments"], [worker] * 6, "the workers of the tasks")
    check.equal(stalls(actual, "READY_QUEUE_FULL"), stalls(first, "READY_QUEUE_FULL"), "the stalls")
    check.equal(actual["high_water"], first["high_water"], "the marks")
    check.equal(actual["high_water"]["ready_queue"], 3, "the mark of the fullest queue")


ENDINGS = {
    "completed": ([send("c")], []),
    "error": ([send("c"), close("c"), send("c")], []),
    "deadlock": ([receive("d", "x"), send("c")], [receive("c", "y"), send("d")]),
}
"""The last statements of two processes, by the outcome of their run."""


@feature("wsp-slots")
@clause("WSP-03.4.2-01")
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_result_of_a_run_follows_its_schema(impl, check, ending):
    """The result has the members of `schemas/wsp_result.schema.json`, however the run ends."""
    first, second = ENDINGS[ending]
    one = program(
        process("p", run("w3"), task("five", "a", 7), wait(), *first),
        process("q", *second),
        channels=[channel("c", 2), channel("d")],
        kernels=[filler("five", 5), *work(3)],
        tensors=[tensor("a", "i32", [0] * 3)],
        schedule=schedule("round_robin", 2, 3),
    )
    result = ran(impl, check, one)
    check.equal(result["outcome"], ending, "the outcome")
    errors = [error.message[:200] for error in validator("tessera:wsp-result").iter_errors(result)]
    check.equal(errors, [], "what does not follow the schema")
