"""Random calls of every function, with good and bad arguments, against a model (runtime spec 4 to 13).

With `--slow` for longer; for as long as one likes: `python tests/runtime/random_calls --minutes 10 --seed 1`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from random_calls.model import Seeded
from random_calls.session import Session
from random_calls.steps import STEPS, Step, begin, finish, take

from tessera_reference.abi.status import Status
from tessera_reference.runtime.api import Runtime

CHOICES = [step for step, weight in STEPS.items() for _ in range(weight)]
SEEDS = st.integers(0, 2**32 - 1)


class RandomCalls(RuleBasedStateMachine):
    """Steps drawn by hypothesis, each followed by the comparison with the model. What a step does hangs on a number
    alone, since that is much quicker than to draw each argument; a failure still shrinks to few steps."""

    session: Session

    @initialize(seed=SEEDS)
    def start(self, seed: int) -> None:
        self.session = Session(Seeded(seed))
        begin(self.session)

    @rule(seed=SEEDS, step=st.sampled_from(CHOICES))
    def step(self, seed: int, step: Step) -> None:
        self.session.choose = Seeded(seed)
        take(self.session, step)


def test_whatever_is_called_the_runtime_is_as_the_model_says() -> None:
    quick = settings(
        max_examples=150,
        stateful_step_count=30,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(RandomCalls, settings=quick)


@pytest.mark.slow
def test_the_same_at_length_and_with_a_cache(tmp_path: Path, drawn: Callable[[int], int]) -> None:
    """In a hundred sessions every function succeeds and every status is given; four hundred with `--whole`."""
    tally: Counter[str] = Counter()
    for number in range(drawn(400)):
        scratch = tmp_path / str(number) if number % 8 == 0 else None
        if scratch is not None:
            scratch.mkdir()
        choose = Seeded(("slow", number))
        session = Session(choose, scratch, tally)
        begin(session)
        for _ in range(80):
            take(session, CHOICES[choose.below(len(CHOICES))])
        finish(session)
    functions = {name for name in dir(Runtime) if name.startswith("tess")}
    without_status = {"tessxLastError", "tessxFindings", "tessxLog", "tessxSetIdentity"}
    assert functions - without_status == {name for name in tally if tally[f"{name} succeeds"]}
    assert set(Status.__members__) <= set(tally)


def quiet(kind: str) -> Callable[[Session], None]:
    """A change behind the model's back."""

    def corrupt(session: Session) -> None:
        block = next(each for each in session.world.blocks if each.size and not each.read_only)
        if kind == "memory":
            block.actual.view(0, 0, 1)[0] ^= 0xFF
            block.actual.note_written(0, 0, 1)
        elif kind == "handle":
            session.runtime.handles.give("event", object())
        else:
            session.runtime.machine.memory.allocate_host(8)

    return corrupt


@pytest.mark.parametrize("kind", ["memory", "handle", "allocation"])
def test_a_change_that_no_call_made_is_noticed(kind: str) -> None:
    session = Session(Seeded(7))
    begin(session)
    with pytest.raises(AssertionError):
        take(session, quiet(kind))


def test_an_unexpected_status_and_an_exception_are_noticed() -> None:
    session = Session(Seeded(8))
    begin(session)
    with pytest.raises(AssertionError, match="allowed is"):
        session.judged("tessShutdown", {"ctx": 10**6}, {Status.TESS_OK})
    session.runtime.handles = None  # type: ignore[assignment]
    with pytest.raises(AssertionError, match="tessShutdown raised"):
        session.judged("tessShutdown", {"ctx": 1}, {Status.TESS_OK})
