"""Random programs of processes and channels, compared with a model of section 2 (`kit/model.py`).

PTO-WSP v10, 2. A program is a random graph without cycles, each channel with one producer and one consumer. Tokens are
compared always; times where both readings of a wait agree on the makespan (AMB-WSP-01); and what completes with a
capacity of one completes with the same tokens with larger ones.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.model import executed
from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    channel,
    close,
    consume,
    note,
    op,
    process,
    program,
    receive,
    repeat,
    run,
    send,
    slot,
    work,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import compiled, noted, ran, reason
from tessera_conformance.fuzz.drawn import judge_each
from tessera_conformance.marks import clause, feature

pytestmark = feature("wsp-expressions", "wsp-kernels", "wsp-packages", "wsp-slots", "wsp-statistics")

BLOCKS = pytest.mark.parametrize("block", range(4))
PROGRAMS_OF_A_BLOCK = 20
CYCLES = (0, 1, 2, 7, 40)


def pipeline(choose):
    """Two to five stages in a row, and side channels that skip some."""
    stages, tokens = choose.between(2, 5), choose.below(8)
    links = [(place, place + 1) for place in range(stages - 1)]
    links += [pair for pair in ((0, 2), (1, 3), (0, 3)) if pair[1] < stages and choose.chance(2)]
    names = {pair: f"c{pair[0]}{pair[1]}" for pair in links}
    channels = [channel(name, choose.between(1, 3), choose.pick([0, 0, 1, 5])) for name in names.values()]
    bodies = [_stage(choose, place, tokens, names) for place in range(stages)]
    order = choose.shuffled(range(stages))
    return program(
        *(process(f"p{place}", *bodies[place]) for place in order),
        channels=channels,
        kernels=work(*CYCLES),
        logs=[f"log{place}" for place in range(stages)],
    )


def _stage(choose, place, tokens, names):
    """Return a stage that handles tokens, with side channels in some order; the first makes tokens of its rounds."""
    log, kernels = f"log{place}", _kernels(choose, choose.below(3))
    into = [name for (_, to), name in names.items() if to == place]
    out = [name for (source, _), name in names.items() if source == place]
    side = [receive(channel, f"s{place}{channel}") for channel in into[1:]]
    noted_value = op("mod", slot(f"x{place}"), 16)
    sends = choose.shuffled([send(channel, op("add", slot(f"x{place}"), choose.below(10))) for channel in out])
    body = [
        note(noted_value, log),
        *side,
        *(note(op("mod", slot(f"s{place}{channel}"), 16), log) for channel in into[1:]),
    ]
    body += [*kernels, *sends]
    if not into and len(out) > 1 and choose.chance(2):
        return [repeat(tokens, note(noted_value, log), send, index=f"x{place}") for send in sends]
    loop = consume(into[0], f"x{place}", *body) if into else repeat(tokens, *body, index=f"x{place}")
    closes = [close(channel) for channel in out] if choose.chance(2) else []
    return [*_kernels(choose, choose.below(2)), loop, *closes]


def _kernels(choose, number):
    return [run(f"w{choose.pick(CYCLES)}") for _ in range(number)]


def with_capacity(made, capacity):
    """The same program with this capacity for all channels."""
    channels = [{**channel, "capacity": capacity} for channel in made["csp"]["channels"]]
    return {**made, "csp": {**made["csp"], "channels": channels}}


def logs(actual, expected):
    """Compare the last note of each process: sixteen digits, leading zeros apart."""
    return {name: noted(actual, f"log{name[1:]}") for name in expected}


@feature("wsp-seeds")
@clause("WSP-02.1-03", "WSP-02.1-04", "WSP-02.2-10", "WSP-02.3-03", "WSP-02.4-02", "WSP-02.4-05")
@BLOCKS
def test_random_pipelines_have_the_tokens_and_times_of_the_model(impl, check, block):
    """Twenty programs: outcome and tokens of each process, and where it is not open, the makespan."""

    def judge(made):
        expected = executed(made)
        result = ran(impl, check, compiled(impl, check, made), seed=block)
        outcome = "completed" if expected.completed else "deadlock"
        check.equal(result["outcome"], outcome, f"the outcome, with {reason(result)}")
        actual = result["statistics"]
        told = {name: digits[-16:].lstrip("0") for name, digits in expected.noted.items()}
        check.equal(logs(actual, told), told, "what the processes noted")
        longest = max(expected.times.values())
        if expected.completed and longest == max(expected.busy.values()):
            check.equal(actual["total_cycles"], longest, "the makespan")

    judge_each(check, pipeline, judge, examples=PROGRAMS_OF_A_BLOCK, number=block)


@clause("WSP-02.2-02", "WSP-02.2-10")
@BLOCKS
def test_a_larger_capacity_changes_no_token(impl, check, block):
    """A program that completes with a capacity of one completes with two and five, with the same tokens."""

    def judge(made):
        first, *others = [ran(impl, check, with_capacity(made, capacity)) for capacity in (1, 2, 5)]
        if first["outcome"] != "completed":
            check.equal(first["outcome"], "deadlock", "the outcome with a capacity of one")
            return
        for result in others:
            check.equal(result["outcome"], "completed", f"the outcome, with {reason(result)}")
            tensors, expected = result["statistics"]["tensors"], first["statistics"]["tensors"]
            check.equal(tensors, expected, "the logs")

    judge_each(check, pipeline, judge, examples=PROGRAMS_OF_A_BLOCK // 2, number=block)
