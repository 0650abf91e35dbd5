"""Schedules of a machine whose choices can be set: drawn from seeds, or all of them (runtime spec, 6 and 12).

Needs the feature `schedule-control`. Exploring goes depth first through the choices that the machine reports
(AMB-RT-80, AMB-RT-140). The check of a failing case names its seed or its record of choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from tessera_conformance.check import Check
from tessera_conformance.marks import feature
from tessera_conformance.session import Implementation

from .stream_fixture import Program, ProgramRunner

Result = TypeVar("Result")

BLOCKS = 8
SEEDS_OF_A_BLOCK = 25
"""Together two hundred seeds, in as many cases as there are blocks."""
TIMED_BLOCKS = 2
"""Blocks in which work takes time; in the others all work may happen at once, in any order."""

MOST = 150
"""The most schedules of a program on streams that are explored."""


def seeded(test: Any) -> Any:
    """Mark a test with a `block` of seeds and `untimed`: time orders 50 of 200 schedules, and nothing the others."""
    blocks = [pytest.param(block, block >= TIMED_BLOCKS, id=f"{block}") for block in range(BLOCKS)]
    return feature("schedule-control")(pytest.mark.parametrize(("block", "untimed"), blocks)(test))


def seeds_of(impl: Implementation, check: Check, block: int, untimed: bool = True) -> Iterator[int]:
    """Yield the seeds of a block; each is set as the schedule of the machine first."""
    yield from seeds_in(impl, check, range(SEEDS_OF_A_BLOCK * block, SEEDS_OF_A_BLOCK * (block + 1)), untimed)


def seeds_in(impl: Implementation, check: Check, seeds: range, untimed: bool = True) -> Iterator[int]:
    """Yield the seeds of a range; each is set as the schedule of the machine first."""
    for seed in seeds:
        chosen = impl.runtime.tessxSetSchedule(policy="seeded", seed=seed, untimed=untimed)
        check.returns(chosen, "tessxSetSchedule succeeds")
        yield seed


def explored(
    impl: Implementation, check: Check, run: Callable[[], Result], most: int = MOST
) -> Iterator[tuple[list[int], Result]]:
    """Yield every schedule of a run, by its choices, with the result under it; at most `most` of them."""
    record: list[int] | None = []
    for _ in range(most):
        if record is None:
            return
        chosen = impl.runtime.tessxSetSchedule(policy="replay", choices=record, untimed=True)
        check.returns(chosen, "tessxSetSchedule succeeds")
        result = run()
        made = check.returns(impl.runtime.tessxGetSchedule(), "tessxGetSchedule succeeds")
        choices = list(made["choices"])
        yield choices, result
        record = _next_record(choices, list(made["widths"]))


def _next_record(choices: list[int], widths: list[int]) -> list[int] | None:
    """Return the next record, depth first; None after the last."""
    for place in reversed(range(len(choices))):
        if choices[place] + 1 < widths[place]:
            return [*choices[:place], choices[place] + 1]
    return None


def under_seeds(
    runner: ProgramRunner, program: Program, expected: Any, block: int, untimed: bool, ranks: int = 1
) -> None:
    """Check that a program has the same result under each seed of a block."""
    for seed in seeds_of(runner.impl, runner.check, block, untimed):
        runner.check.equal(runner.run(program, ranks), expected, f"the result under seed {seed}")


def under_every_schedule(runner: ProgramRunner, program: Program, expected: Any, ranks: int = 1) -> None:
    """Check that a program has the same result under each of its schedules."""
    for choices, result in explored(runner.impl, runner.check, lambda: runner.run(program, ranks)):
        runner.check.equal(result, expected, f"the result under the schedule {choices}")
