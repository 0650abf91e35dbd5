"""What is said of ranks that do not come together: who is where, what differs, what to do (spec sections 9, 11, 15).

LANG-09-04, LANG-11-11, LANG-11-12, LANG-15-11, LANG-15-12; AMB-RT-13.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..ir.diagnostics import Diagnostic, Rejection
from ..ir.operation import Refusal
from ..ir.refusals import diagnostic_of
from ..ir.stepwise import Arrival
from .binding import describe
from .collectives import Collective
from .messages import PointToPoint

_MOST_PLACES = 8
"""Places that a diagnostic lists."""

_MOST_LINKS = 4
"""Ranks of a circle that it names."""


SAME = "have every rank of the group run the same collectives in the same order"
SAME_ORDER = ("the same collectives, in the same order, on every rank of the group", "AMB-RT-13", SAME)
ONE_AXIS = ("one axis on every rank of the group", "LANG-11-11", SAME)
BOTH_ENDS = (
    "a recv of its tag at the peer for every send, and a send for every recv, issued before a rank waits for the other",
    "AMB-COLL-59",
    "issue sends and recvs before awaiting any of them",
)
"""What has to hold where ranks wait for ever: requirement, clause, remedy."""


class Disagreement(Rejection):
    """Ranks came to different collectives, or some wait for others that never come (AMB-RT-13)."""


@dataclass(frozen=True, eq=False)
class Standing:
    """Where a rank is: at a collective at which `missing` ranks have not arrived, or at its end."""

    rank: int
    arrival: Arrival | None
    missing: tuple[int, ...] = ()

    def __str__(self) -> str:
        return "ended" if self.arrival is None else shown(self.arrival)


def spelled(arrival: Arrival) -> str:
    """The collective of an arrival as the source writes it."""
    return (*arrival.operation.spellings, arrival.operation.short_name)[0]


def shown(arrival: Arrival) -> str:
    """A collective with what a rank brings to it, and its place."""
    attributes = ", ".join(f"{name}={value}" for name, value in arrival.operation.attributes.items())
    brought = ", ".join(describe(operand) for operand in arrival.operands)
    return f"{spelled(arrival)}({brought}, {attributes}) in {arrival.location}"


def brought(arrival: Arrival) -> dict[str, object]:
    """What the ranks of a group must agree on, by name."""
    (x,) = arrival.operands
    assert isinstance(arrival.operation, Collective)
    own = arrival.operation.terms()
    operation = "message" if isinstance(arrival.operation, PointToPoint) else spelled(arrival)
    return {"operation": operation, **own, "dtype": x.dtype, "shape": list(x.shape)}


def mismatch(arrived: Mapping[int, Arrival]) -> Diagnostic:
    """The ranks of a group came to the same place, and not to the same collective."""
    first, *others = sorted(arrived)
    wanted = brought(arrived[first])
    odd = next(rank for rank in others if brought(arrived[rank]) != wanted)
    found = brought(arrived[odd])
    what = next(name for name in dict.fromkeys([*wanted, *found]) if wanted.get(name) != found.get(name))
    values = f"{wanted.get(what, 'none')} and {found.get(what, 'none')}"
    subject = spelled(arrived[odd])
    return _diagnostic(
        arrived[odd],
        f"{subject}: the {what} of ranks {first} and {odd} differs: {values}",
        [Standing(rank, arrived[rank]) for rank in sorted(arrived)],
        f"one {what} on every rank of the group",
        {"dtype": "LANG-15-12", "shape": "LANG-09-04"}.get(what, "AMB-RT-13"),
        "have every rank bring a tensor of the same type" if what in ("dtype", "shape") else SAME,
    )


def deadlock(standing: Sequence[Standing]) -> Diagnostic:
    """No rank can go on: one waits for a rank that has ended, or ranks wait for each other."""
    places = {each.rank: each for each in standing}
    chain = [next(each for each in standing if each.arrival is not None)]
    while chain[-1].missing and chain[-1] not in chain[:-1]:
        chain.append(places[chain[-1].missing[0]])
    if chain[-1].arrival is None:
        waiting, awaited = chain[-2:]
        message = f"rank {waiting.rank} waits for rank {awaited.rank}, which has ended"
        rule = SAME_ORDER
    else:
        circle = chain[chain.index(chain[-1]) :]
        waiting = circle[0]
        links = [f"{_where(a)} for rank {b.rank}" for a, b in pairwise(circle)]
        message = f"rank {waiting.rank} waits {', which waits '.join(links[:_MOST_LINKS])}"
        message += f", and so on through {len(links)} ranks" if len(links) > _MOST_LINKS else ""
        rule = ONE_AXIS
    assert waiting.arrival is not None
    if any(each.arrival is not None and isinstance(each.arrival.operation, PointToPoint) for each in chain):
        rule = BOTH_ENDS
    return _diagnostic(waiting.arrival, f"{spelled(waiting.arrival)}: {message}", standing, *rule)


def refused(arrival: Arrival, refusal: Refusal) -> Rejection:
    """What a collective refuses only when it runs, since a dimension was not known before."""
    operands = tuple(f"operand is {describe(operand)}" for operand in arrival.operands)
    found = diagnostic_of(refusal, arrival.location, operands, "execute")
    return Rejection([replace(found, message=f"{spelled(arrival)}: {refusal.message}")])


def on_ranks(failure: Rejection, ranks: Sequence[int], total: int) -> Rejection:
    """The failure of some ranks, naming them."""
    who = "every rank" if len(ranks) == total else _ranks(ranks)
    return Rejection(replace(each, message=f"{each.message}, on {who}") for each in failure.diagnostics)


def _where(standing: Standing) -> str:
    assert standing.arrival is not None
    assert isinstance(standing.arrival.operation, Collective)
    return standing.arrival.operation.where()


def _diagnostic(
    at: Arrival, message: str, standing: Iterable[Standing], requirement: str, clause: str, remedy: str
) -> Diagnostic:
    span, filename = at.location.span, at.location.filename
    operands = _places(standing)
    return Diagnostic("distributed", "execute", message, span, filename, operands, requirement, clause, remedy)


def _places(standing: Iterable[Standing]) -> tuple[str, ...]:
    """Where everybody is, ranks at one place together."""
    together: dict[str, list[int]] = {}
    for each in standing:
        together.setdefault(str(each), []).append(each.rank)
    groups = [f"{_ranks(ranks)}: {where}" for where, ranks in together.items()]
    more = len(groups) - _MOST_PLACES
    return (*groups[:_MOST_PLACES], *([f"others at {more} more places"] if more > 0 else []))


def _ranks(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 1 and 2`, `ranks 0 to 2 and 5`; the numbers ascend."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    parts = [text for run in runs for text in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(parts[:-1])}{' and ' * (len(parts) > 1)}{parts[-1]}"
