"""Order and time under two hundred seeds of the host, in programs of several processes, workers and channels.

PTO-WSP v10, 2, 3.1 and 3.2. Which process a host looks at first, and in what order it hears of the ends of kernels,
shows in no token, time or statistic; what is asserted of the values comes from the programs.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    channel,
    close,
    cond,
    consume,
    filler,
    load,
    note,
    op,
    process,
    program,
    receive,
    repeat,
    run,
    schedule,
    scope,
    send,
    slot,
    task,
    tensor,
    wait,
    work,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import noted, under_seeds
from tessera_conformance.marks import clause, feature

pytestmark = feature("wsp-expressions", "wsp-kernels", "wsp-packages", "wsp-seeds", "wsp-slots", "wsp-statistics")

BLOCKS = pytest.mark.parametrize("block", range(4))
SEEDS_OF_A_BLOCK = 50


def seeds(block):
    """The seeds of a block."""
    return range(SEEDS_OF_A_BLOCK * block, SEEDS_OF_A_BLOCK * (block + 1))


@clause(
    "WSP-02.1-02",
    "WSP-02.1-04",
    "WSP-02.2-02",
    "WSP-02.2-03",
    "WSP-02.2-07",
    "WSP-02.2-10",
    "WSP-02.3-02",
    "WSP-02.3-03",
    "WSP-02.4-01",
    "WSP-02.4-02",
    "WSP-02.4-05",
    "WSP-01.2-01",
)
@BLOCKS
def test_a_pipeline_does_not_depend_on_the_seed(impl, check, block):
    """Two producers, which send at the same times, two stages that share a channel, and a sink that is the slowest."""
    stage = consume("c", "x", run("w2"), send("d", op("add", slot("x"), 1)))
    other = consume("c", "y", run("w2"), send("d", op("add", slot("y"), 1)))
    source = program(
        process("sink", run("w40"), consume("d", "z", note(slot("z")), run("w9"))),
        process("p", repeat(3, send("c", op("mul", slot("i"), 2)), run("w2"), index="i"), close("c")),
        process("q", repeat(3, send("c", op("add", op("mul", slot("j"), 2), 1)), run("w2"), index="j")),
        process("s", stage),
        process("t", other),
        channels=[channel("c"), channel("d", 2)],
        kernels=work(2, 9, 40),
    )
    actual = under_seeds(impl, check, source, seeds(block))
    check.equal(sorted(noted(actual)), list("123456"), "the tokens at the end")
    check.equal((actual["total_cycles"], actual["processes"]["sink"]), (94, 94), "makespan, and the time of the sink")
    check.equal(actual["channels"]["c"], {"sent": 6, "taken": 6, "left": 0}, "the tokens of the first channel")


@clause("WSP-02.2-06", "WSP-02.2-08", "WSP-02.4-03", "WSP-02.4-04")
@BLOCKS
def test_latencies_do_not_depend_on_the_seed(impl, check, block):
    """Two chains side by side, of channels with 3 and 0 cycles and with 1 and 2: events of many at one time."""
    source = program(
        *(
            process(f"{chain}{place}", *(([receive(f"{chain}{place}", slot_name)]) if place else []), *then)
            for chain, slot_name in (("a", "x"), ("b", "y"))
            for place, then in enumerate(
                [[send(f"{chain}1", 5)], [send(f"{chain}2", op("add", slot(slot_name), 1))], [note(slot(slot_name))]]
            )
        ),
        channels=[channel("a1", latency=3), channel("a2"), channel("b1", latency=1), channel("b2", latency=2)],
    )
    actual = under_seeds(impl, check, source, seeds(block))
    check.equal((noted(actual), actual["total_cycles"]), ("66", 3), "the tokens, and the time")


@feature("wsp-scopes")
@clause("WSP-03.1-01", "WSP-03.1-02", "WSP-03.2-01", "WSP-03.2-03", "WSP-04.2-01", "WSP-04.2-03", "WSP-01.2-05")
@BLOCKS
def test_tasks_do_not_depend_on_the_seed(impl, check, block):
    """Two issuers on three workers through a window of four: many end together, and tensors order them."""
    source = program(
        process(
            "p", repeat(6, task("f", "t", slot("i")), task("w8"), index="i"), wait(), load("x", "t"), note(slot("x"))
        ),
        process(
            "q",
            scope(repeat(3, task("f", "u", op("add", slot("j"), 7), signals=["c"]), index="j"), wait()),
            repeat(3, receive("c", "y")),
            load("z", "u"),
            cond(op("eq", slot("z"), 9), [note(14)], [note(15)]),
        ),
        channels=[channel("c", 3)],
        kernels=[*work(8), filler("f", 8)],
        tensors=[tensor("t", "u32", [99]), tensor("u", "i64", [99])],
        schedule=schedule("round_robin", 3, 4),
    )
    actual = under_seeds(impl, check, source, seeds(block))
    check.equal(sorted(noted(actual)), ["5", "e"], "the last elements of both tensors")
    check.equal(actual["assignments"], [index % 3 for index in range(15)], "the workers of the tasks")
    check.true(actual["high_water"]["task_ring"] <= 4, "the window", actual["high_water"])
    check.equal(actual["kernels"]["w8"], {"runs": 6, "cycles": 48}, "a kernel")
