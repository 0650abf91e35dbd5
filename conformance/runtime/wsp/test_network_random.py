"""Random networks, compared with the model of section 2 (`kit/network_model.py`), through `wsp.execute`.

PTO-WSP v10, 2 and 3.3. A program is a random pipeline, each channel with one producer and one consumer. No process does
more than close after a consume, so that both readings of its end agree (AMB-WSP-54). Outcome, tokens, who waits in a
deadlock, and the makespan by either reading of a wait (AMB-WSP-01) follow from the program.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.networks import (
    arrivals,
    channel,
    close,
    consume,
    deadlocked,
    ended,
    judge_time,
    model_of,
    network,
    process,
    run,
    send,
    work,
)
from tessera_conformance.fuzz.drawn import judge_each
from tessera_conformance.marks import clause

BLOCKS = pytest.mark.parametrize("block", range(40))
PROGRAMS_OF_A_BLOCK = 3
CYCLES = (1, 2, 7, 40)


def pipeline(choose):
    """Two to six stages in a row; the sink may first wait for a token that the source sends beside its others."""
    stages, tokens = choose.between(2, 6), choose.below(8)
    names = [f"c{place}" for place in range(stages - 1)]
    side = ["side"] if choose.chance(2) else []
    bodies = [_source(choose, names[0], tokens, side)]
    bodies += [_stage(choose, before, after) for before, after in pairwise(names)]
    sink = consume(names[-1], *_kernels(choose, 3))
    bodies.append([*_kernels(choose, 2), consume("side", sink) if side else sink])
    order = choose.shuffled(range(stages))
    return network(
        *(process(f"p{place}", *bodies[place]) for place in order),
        channels=[channel(name, choose.between(1, 3)) for name in [*names, *side]],
        kernels=work(*CYCLES),
    )


def _source(choose, out, tokens, side):
    steps = [step for token in range(tokens) for step in (*_kernels(choose, 2), send(out, token))]
    for name in side:
        steps.insert(choose.below(len(steps) + 1), send(name, 50))
    return [*steps, *map(close, [out, *side])]


def _stage(choose, into, out):
    before, body = _kernels(choose, 2), choose.shuffled([*_kernels(choose, 3), send(out)])
    return [*before, consume(into, *body), close(out)]


def _kernels(choose, most):
    return [run(f"w{choose.pick(CYCLES)}") for _ in range(choose.below(most))]


@clause("WSP-02.1-03", "WSP-02.1-04", "WSP-02.2-02", "WSP-02.2-10", "WSP-02.3-03")
@BLOCKS
def test_random_networks_have_the_tokens_of_the_model(impl, check, block):
    """The outcome, and the tokens of each process."""

    def judge(program):
        model = model_of(program)
        ending = ended(impl, check, program)
        check.equal(ending["outcome"], "completed" if model.completed else "deadlock", "the outcome")
        actual = {name: arrivals(ending, name) for name in model.arrivals}
        check.equal(actual, {name: [token for _, token in had] for name, had in model.arrivals.items()}, "the tokens")

    judge_each(check, pipeline, judge, examples=PROGRAMS_OF_A_BLOCK, number=block)


@clause("WSP-03.3-07", "WSP-03.3-08")
@pytest.mark.parametrize("block", range(10))
def test_random_deadlocks_name_who_waits(impl, check, block):
    """The processes of the model, each with the channel at which it waits."""

    def judge(program):
        model = model_of(program)
        if model.completed:
            check.equal(ended(impl, check, program)["outcome"], "completed", "the outcome")
            return
        waiting = {wait["process"]: wait["for"] for wait in deadlocked(impl, check, program)["waiting"]}
        check.equal(waiting, {name: where for name, (where, _) in model.waiting.items()}, "who waits for what")

    judge_each(check, pipeline, judge, examples=PROGRAMS_OF_A_BLOCK * 2, number=block + 2000)


@clause("WSP-03.3-06", "WSP-03.3-10")
@pytest.mark.parametrize("block", range(10))
def test_random_deadlocks_name_the_channels_that_block(impl, check, block):
    """The channels of the model, each with its state."""

    def judge(program):
        model = model_of(program)
        if model.completed:
            check.equal(ended(impl, check, program)["outcome"], "completed", "the outcome")
            return
        states = {channel["name"]: channel["state"] for channel in deadlocked(impl, check, program)["channels"]}
        check.equal(states, dict(model.channels), "the channels that block")

    judge_each(check, pipeline, judge, examples=PROGRAMS_OF_A_BLOCK * 2, number=block + 2000)


@clause("WSP-02.4-01", "WSP-02.4-05", "WSP-01.2-01")
@BLOCKS
def test_random_networks_have_the_makespan_of_the_model(impl, check, block):
    """Each network that completes has the makespan of the model in each of five runs."""

    def judge(program):
        for _ in range(5):
            ending = ended(impl, check, program)
            if ending["outcome"] != "completed":
                check.true(not model_of(program).completed, "a run that does not complete is a deadlock of the model")
                return
            judge_time(check, program, ending)

    judge_each(check, pipeline, judge, examples=PROGRAMS_OF_A_BLOCK, number=block + 1000)
