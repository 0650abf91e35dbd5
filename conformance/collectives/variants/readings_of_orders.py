"""Implementations whose collectives combine elements by other places than those in their own tensor (AMB-COLL-29)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tessera_conformance.strength import altered
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.collectives import programs
from tessera_reference.collectives.programs import Exchange
from tessera_reference.collectives.programs import _Run as Run
from tessera_reference.graph.collectives import AllReduce
from tessera_reference.numerics.array import Array

RESULTS, EXCHANGE = Exchange.results, Run._exchange


def chunks_anew(self: Exchange, type_: Any, first: int, chunk: Sequence[Any]) -> Any:
    """Combine the elements of a chunk by their places in it."""
    usual = RESULTS(self, type_, first, chunk)
    if not isinstance(self.plain, AllReduce) or first < 0 or not usual:
        return usual
    anew = self.combine(self.operation, chunk)
    return [
        (marks, replace(x, values=x.values[: given.values.size])) for (marks, given), x in zip(usual, anew, strict=True)
    ]


def as_one(self: Run, unit: Any, step: Any, group: Sequence[int]) -> None:
    """Combine the tensors of a fused collective as one."""
    if len(step.parts) == 1:
        EXCHANGE(self, unit, step, group)
        return
    members, (first, count) = [self.ranks[rank] for rank in group], unit.chunk
    whole = replace(step.types[0], shape=(sum(part.count for part in step.parts),))
    slot = programs._slot(unit, step)
    sent = [Array(step.operation.x.dtype, rank.buffers[slot][:count].copy()) for rank in members]
    for rank, (marks, given) in zip(members, self.exchanges[step].results(whole, first, sent), strict=True):
        places = np.flatnonzero(marks)
        for place, part in enumerate(step.parts):
            here = (places >= part.first) & (places < part.first + part.count)
            landing = self._landing(rank, step, place).reshape(-1)
            landing[places[here] - part.first] = given.values[here]


ORDERS = [
    altered("AMB-COLL-29", description, ("collectives/p*", "collectives/f*"), ReferenceAdapter, change, name=name)
    for name, description, change in (
        ("plan_chunks_anew", "lets shares begin anew in every chunk of a plan", (Exchange, "results", chunks_anew)),
        ("plan_tensors_as_one", "gives fused tensors of a plan the order of one", (Run, "_exchange", as_one)),
    )
]
