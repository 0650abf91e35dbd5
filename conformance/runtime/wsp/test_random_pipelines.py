"""Random programs of processes and channels, compared with a model of section 2 (`kit/model.py`).

PTO-WSP v10, 2. A program is a random graph without cycles, each channel with one producer and one consumer. Tokens are
compared always; times where both readings of a wait agree on the makespan (AMB-WSP-01); and what completes with a
capacity of one completes with the same tokens with larger ones.
"""

from __future__ import annotations

import random

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
from tessera_conformance.marks import clause

BLOCKS = pytest.mark.parametrize("block", range(4))
PROGRAMS_OF_A_BLOCK = 20
CYCLES = (0, 1, 2, 7, 40)


def pipeline(number, capacity=None):
    """Random program `number`: two to five stages in a row, and side channels that skip some; a capacity for all."""
    chosen = random.Random(f"pipeline {number}")
    stages = chosen.randint(2, 5)
    tokens = chosen.randint(0, 7)
    links = [(place, place + 1) for place in range(stages - 1)]
    links += [pair for pair in ((0, 2), (1, 3), (0, 3)) if pair[1] < stages and chosen.random() < 0.5]
    names = {pair: f"c{pair[0]}{pair[1]}" for pair in links}
    channels = [
        channel(each, chosen.randint(1, 3) if capacity is None else capacity, chosen.choice([0, 0, 1, 5]))
        for each in names.values()
    ]
    bodies = [_stage(chosen, place, tokens, names) for place in range(stages)]
    order = chosen.sample(range(stages), stages)
    return program(
        *(process(f"p{place}", *bodies[place]) for place in order),
        channels=channels,
        kernels=work(*CYCLES),
        logs=[f"log{place}" for place in range(stages)],
    )


def _stage(chosen, place, tokens, names):
    """What a stage does for each token, in some order of its side channels; the first makes tokens of its rounds."""
    log, kernels = f"log{place}", [run(f"w{chosen.choice(CYCLES)}") for _ in range(chosen.randint(0, 2))]
    into = [name for (_, to), name in names.items() if to == place]
    out = [name for (source, _), name in names.items() if source == place]
    side = [receive(each, f"s{place}{each}") for each in into[1:]]
    noted_value = op("mod", slot(f"x{place}"), 16)
    sends = [send(each, op("add", slot(f"x{place}"), chosen.randint(0, 9))) for each in out]
    chosen.shuffle(sends)
    body = [note(noted_value, log), *side, *(note(op("mod", slot(f"s{place}{each}"), 16), log) for each in into[1:])]
    body += [*kernels, *sends]
    if not into and len(out) > 1 and chosen.random() < 0.4:
        return [repeat(tokens, note(noted_value, log), each, index=f"x{place}") for each in sends]
    loop = consume(into[0], f"x{place}", *body) if into else repeat(tokens, *body, index=f"x{place}")
    closes = [close(each) for each in out] if chosen.random() < 0.5 else []
    return [*([run(f"w{chosen.choice(CYCLES)}")] if chosen.random() < 0.5 else []), loop, *closes]


def logs(found, expected):
    """What each process has noted last: sixteen digits, leading zeros apart."""
    return {name: noted(found, f"log{name[1:]}") for name in expected}


@clause("WSP-02.1-03", "WSP-02.1-04", "WSP-02.2-10", "WSP-02.3-03", "WSP-02.4-02", "WSP-02.4-05")
@BLOCKS
def test_random_pipelines_have_the_tokens_and_times_of_the_model(impl, check, block):
    """Twenty programs: outcome and tokens of each process, and where it is not open, the makespan."""
    for number in range(PROGRAMS_OF_A_BLOCK * block, PROGRAMS_OF_A_BLOCK * (block + 1)):
        made = pipeline(number)
        expected = executed(made)
        result = ran(impl, check, compiled(impl, check, made), seed=number)
        outcome = "completed" if expected.completed else "deadlock"
        check.equal(result["outcome"], outcome, f"the outcome of program {number}, with {reason(result)}")
        found = result["statistics"]
        told = {name: each[-16:].lstrip("0") for name, each in expected.noted.items()}
        check.equal(logs(found, told), told, f"what the processes of program {number} noted")
        longest = max(expected.times.values())
        if expected.completed and longest == max(expected.busy.values()):
            check.equal(found["total_cycles"], longest, f"the makespan of program {number}")


@clause("WSP-02.2-02", "WSP-02.2-10")
@BLOCKS
def test_a_larger_capacity_changes_no_token(impl, check, block):
    """What completes with a capacity of one does with two and five, with the same tokens."""
    for number in range(PROGRAMS_OF_A_BLOCK * block, PROGRAMS_OF_A_BLOCK * (block + 1), 2):
        results = [ran(impl, check, pipeline(number, capacity)) for capacity in (1, 2, 5)]
        if results[0]["outcome"] != "completed":
            check.equal(results[0]["outcome"], "deadlock", f"the outcome of program {number} with a capacity of one")
            continue
        for result in results[1:]:
            check.equal(result["outcome"], "completed", f"the outcome of program {number}")
            tensors, first = result["statistics"]["tensors"], results[0]["statistics"]["tensors"]
            check.equal(tensors, first, f"the logs of program {number}")
