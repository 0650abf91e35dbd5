"""Running whole programs under many schedules of a machine whose choices can be set (`schedule-control`, AMB-RT-80).

Each run is a program from tessInit to tessShutdown with checks of its own, which name the schedule that they are told,
so that a failing one can be replayed. Programs that only differ in the work on a `Desk` are in `runtime_schedules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from tessera_conformance.check import Check
from tessera_conformance.session import Implementation

from .schedules import following

Run: TypeAlias = Callable[[str], None]
"""A program; it is told the schedule in words."""


def under_seeds(impl: Implementation, check: Check, seeds: Iterable[int], run: Run) -> None:
    """Run a program once for each seed, everything that may happen in any order being free to."""
    for seed in seeds:
        chosen = impl.runtime.tessxSetSchedule(policy="seeded", seed=seed, untimed=True)
        check.returns(chosen, "tessxSetSchedule succeeds")
        run(f"under seed {seed}")


def under_every_schedule(impl: Implementation, check: Check, run: Run, limit: int = 2000) -> int:
    """Run a program under every schedule that there is, depth first; how many that were.

    A program with more than `limit` schedules fails its case: it is not tiny.
    """
    choices: list[int] | None = []
    count = 0
    while choices is not None:
        count += 1
        check.true(count <= limit, f"the program has at most {limit} schedules")
        chosen = impl.runtime.tessxSetSchedule(policy="replay", choices=choices, untimed=True)
        check.returns(chosen, "tessxSetSchedule succeeds")
        run(f"under the choices {choices}")
        made = check.returns(impl.runtime.tessxGetSchedule(), "tessxGetSchedule succeeds")
        choices = following(made["choices"], made["widths"])
    return count
