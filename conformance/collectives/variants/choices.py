"""Other choices and words where the collectives' specification leaves them open."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tessera_conformance.strength import Variant, altered
from tessera_reference.abi.status import Failure
from tessera_reference.adapter import ReferenceAdapter, collectives
from tessera_reference.collectives import compression, links, planner, queues, schedules, selection
from tessera_reference.collectives import selection as cost_model
from tessera_reference.collectives import selection as thresholds
from tessera_reference.collectives.schedules import Algorithm, Maker, Step
from tessera_reference.collectives.selection import Knobs, Limits, Measurement, Overrides, Row, Selection
from tessera_reference.collectives.selection import Step as TunerStep
from tessera_reference.runtime import collectives as runtime_collectives

COLLECTIVES = ("collectives/*", "runtime/algorithm*", "runtime/collective*")
TABLES, SCORE = thresholds.tables, cost_model.overlap_score


def other_tables() -> Mapping[str, tuple[Row, ...]]:
    """Every size by another algorithm than the reference's, but the last of those that several nodes share."""
    table = (Row(257, "ring"), Row(2**12 + 1, "direct"), Row(2**33, "tree"), Row(None, "ring"))
    return {name: TABLES()[name] if name == "all_to_all" else table for name in TABLES()}


ALGORITHMS = altered(
    "AMB-COLL-44",
    "has other thresholds between the algorithms at auto",
    COLLECTIVES,
    ReferenceAdapter,
    (selection, "tables", other_tables),
    (thresholds, "tables", other_tables),
    name="other_thresholds",
)


def squared(compute: Iterable[Sequence[int]], communication: Iterable[Sequence[int]]) -> Fraction:
    """The reference's score, squared and halved."""
    return SCORE(compute, communication) ** 2 / 2


SCORES = altered(
    "AMB-COLL-48",
    "scores overlap by another formula",
    COLLECTIVES,
    ReferenceAdapter,
    (collectives, "overlap_score", squared),
    name="other_score",
)


def in_other_words(failure: Failure) -> Any:
    """Return the allowed, then the given value, with words of another language between them."""
    return f"[{failure.function}] il faut {failure.allowed} au lieu de: {failure.given}"


WORDS = altered(
    "AMB-RT-82",
    "tells what is allowed before what was given, with other words between",
    COLLECTIVES,
    ReferenceAdapter,
    (Failure, "__str__", in_other_words),
    name="words",
)


def mirrored(make: Maker) -> Maker:
    """An algorithm in which each rank does what the rank in its mirror image did."""

    def made(ranks: int, per_node: int) -> Algorithm:
        used = make(ranks, per_node)

        def of(rank: int) -> int:
            return ranks - 1 - rank

        def steps(messages: Sequence[Step]) -> tuple[Step, ...]:
            return tuple(
                tuple(message._replace(source=of(message.source), target=of(message.target)) for message in step)
                for step in messages
            )

        return replace(
            used, owners=tuple(map(of, used.owners)), combining=steps(used.combining), spreading=steps(used.spreading)
        )

    return made


MIRRORED = {name: mirrored(schedules.ALGORITHMS[name]) for name in ("tree", "direct")}
LAST_FIRST = altered(
    "AMB-COLL-44",
    "grows trees from the last rank, and sends directly to the last rank first",
    COLLECTIVES,
    ReferenceAdapter,
    (schedules, "ALGORITHMS", {**schedules.ALGORITHMS, **MIRRORED}),
    name="mirrored",
)

OTHER_CHUNKS = altered(
    "AMB-COLL-04",
    "keeps four chunks in flight, each twice as large",
    COLLECTIVES,
    ReferenceAdapter,
    (queues, "INFLIGHT", 4),
    (collectives, "INFLIGHT", 4),
    name="other_chunks",
)

SLOW_TUNER = altered(
    "AMB-COLL-49",
    "tunes chunks by twice as many measurements, and takes the link's latency for less",
    COLLECTIVES,
    ReferenceAdapter,
    (selection, "WINDOW", 32),
    (selection, "SHARE", 6),
    name="slow_tuner",
)


def rounded_up(amount: int, tile: int) -> int:
    """The least multiple of a tile that an amount fits in."""
    return -(-max(amount, 1) // tile) * tile


def nearest(amount: int, tile: int) -> int:
    """The multiple of a tile nearest to an amount, and at least one tile."""
    return max((amount + tile // 2) // tile, 1) * tile


ROUNDINGS = [
    altered(
        "AMB-COLL-36",
        "rounds chunks up to whole tiles",
        ("collectives/chunks/*",),
        ReferenceAdapter,
        (compression, "aligned", rounded_up),
        name="chunks_rounded_up",
    ),
    altered(
        "AMB-COLL-36",
        "rounds chunks to the nearest number of tiles",
        ("collectives/chunks/*",),
        ReferenceAdapter,
        (compression, "aligned", nearest),
        name="chunks_to_the_nearest",
    ),
    altered(
        "AMB-COLL-55",
        "rounds chunks of plans up to whole tiles",
        ("collectives/plans/*", "collectives/plan-*", "collectives/planned-*"),
        ReferenceAdapter,
        (planner, "aligned", rounded_up),
        name="planned_chunks_rounded_up",
    ),
]

# What decides beside a hint: the environment, its table, and the autotuner.

CHOOSE, WANTED = selection.choose, links._wanted
CHOICES = ("collectives/selection/*", "collectives/transports/*", "runtime/algorithm*")
Choice = Callable[..., Selection]


def choosing(freedom: str, name: str, description: str, choose: Choice, *more: tuple[Any, str, Any]) -> Variant:
    """Another order of what decides, wherever an algorithm is chosen."""
    places = [(selection, "choose", choose), (runtime_collectives, "choose", choose), *more]
    return altered(freedom, description, CHOICES, ReferenceAdapter, *places, name=name)


def environment_first(
    name: str, size: int, machine: Any, groups: Any, hint: Any, overrides: Overrides, tuned: Any
) -> Selection:
    """Return the choice of the environment, or else the usual one."""
    found = CHOOSE(name, size, machine, groups, None, overrides, tuned)
    return found if found.source == "environment" else CHOOSE(name, size, machine, groups, hint, overrides, tuned)


def path_of_the_environment(path: str, environment: Mapping[str, str]) -> str:
    """The path of the environment, or else the one that is asked for."""
    usual, override = WANTED(path, environment), links.path_override("route", environment)
    return usual if override == "auto" else override


def tuned_before_table(
    name: str, size: int, machine: Any, groups: Any, hint: Any, overrides: Overrides, tuned: Any
) -> Selection:
    """The choice without the table of the environment, unless nothing but a table decides."""
    usual = CHOOSE(name, size, machine, groups, hint, overrides, tuned)
    found = CHOOSE(name, size, machine, groups, hint, replace(overrides, table=None), tuned)
    return usual if found.source == "default" else replace(found, table=usual.table)


def fitting(name: str, size: int, machine: Any, groups: Any, hint: Any, overrides: Overrides, tuned: Any) -> Selection:
    """The usual choice. Raises `Failure` for an override that the ranks cannot follow."""
    wishes = [overrides.algorithm, selection.row_of(overrides.table, size).algorithm if overrides.table else None]
    if (wish := next(filter(None, wishes), None)) and hint is None:
        selection.require_followed("select", wish, selection.followed(name, machine, groups), "these ranks")
    return CHOOSE(name, size, machine, groups, hint, overrides, tuned)


class FittingPath(ReferenceAdapter):
    """Refuses a path of the environment that is not there, as one that is asked for."""

    def collectives_route(self, *, path: str = "auto", **arguments: Any) -> dict[str, Any]:
        """Find the way from one device to another."""
        override = (arguments.get("environment") or {}).get(links.PATH_VARIABLE)
        return super().collectives_route(
            path=override if override in links.PATHS and path == "auto" else path, **arguments
        )


ORDERS = [
    choosing(
        "AMB-COLL-13",
        "environment_first",
        "lets the environment win over hints and over the path that is asked for",
        environment_first,
        (links, "_wanted", path_of_the_environment),
    ),
    choosing(
        "AMB-COLL-45",
        "tuned_before_table",
        "lets the autotuner win over the table of the environment",
        tuned_before_table,
    ),
    altered(
        "AMB-COLL-45",
        "refuses an algorithm or a path of the environment that does not fit",
        ("collectives/selection/*", "collectives/transports/*"),
        FittingPath,
        (selection, "choose", fitting),
        name="fitting_overrides",
    ),
]


def moving_pins(measurements: Iterable[Measurement], knobs: Knobs, limits: Limits | None = None) -> list[TunerStep]:
    """Return the knobs after each measurement; pinned ones move again once measurements are not stable any more."""
    steps, window, pinned = selection.tune([], knobs, limits), deque[Measurement](maxlen=selection.WINDOW), False
    for measurement in measurements:
        pinned &= selection._stable(window)
        window.append(measurement)
        if not pinned:
            before, knobs = knobs, selection._adapted(knobs, limits or Limits(), window)
            pinned = knobs == before and selection._stable(window)
        steps.append(TunerStep(knobs, pinned))
    return steps


PINS = altered(
    "AMB-COLL-49",
    "moves pinned knobs again when measurements change",
    ("collectives/autotuner/*",),
    ReferenceAdapter,
    (collectives, "tune", moving_pins),
    name="moving_pins",
)
