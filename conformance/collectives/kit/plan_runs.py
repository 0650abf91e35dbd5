"""Plans that ran: the results of their units on all ranks, and their order (collectives specification, 2 and 8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tessera_conformance.check import Check
from tessera_conformance.dsl import tensor_of
from tessera_conformance.tensors import Tensor

SEEDS = (None, 0, 1, 2, 3, 5, 8, 13)
"""The default order of the units, and seven orders that a seed chooses."""


def executed(impl: Any, check: Any, text: str, inputs: Sequence[dict[str, Tensor]], **options: Any) -> dict[str, Any]:
    """Return the answer for @f; check that each unit started once on every rank, after the ones it waits for."""
    answer = impl.collectives.execute_plan(text=text, function="f", ranks=list(inputs), **options)
    found: dict[str, Any] = check.returns(answer)
    units = {unit["id"]: unit for unit in found["units"]}
    begun: Counter[tuple[int, int]] = Counter()
    ended: set[tuple[int, int]] = set()
    early, unbegun = [], []
    for chunk in found["order"]:
        here = (chunk["unit"], chunk["rank"])
        if chunk["event"] == "start":
            begun[here] += 1
            early += [here for other in units[chunk["unit"]]["after"] if (other, chunk["rank"]) not in ended]
        else:
            unbegun += [] if here in begun else [here]
            ended.add(here)
    check.equal(early, [], "units that started before what they wait for had ended, and their ranks")
    check.equal(unbegun, [], "units that ended before they started, and their ranks")
    every = {(unit, rank): 1 for unit in units for rank in range(len(inputs))}
    check.equal(dict(begun), every, "how often each unit started on each rank")
    check.equal(ended, set(every), "the units that ended on each rank")
    return found


def outputs(answer: dict[str, Any]) -> list[list[Tensor]]:
    """Return the results of @f on each rank."""
    return [rank["outputs"] for rank in answer["ranks"]]


def most_in_flight(answer: dict[str, Any], rank: int) -> int:
    """Return the largest number of chunks in flight on a rank at one time."""
    comm = {unit["id"] for unit in answer["units"] if unit["queue"] == "comm"}
    most = now = 0
    for chunk in answer["order"]:
        if chunk["rank"] == rank and chunk["unit"] in comm:
            now += 1 if chunk["event"] == "start" else -1
            most = max(most, now)
    return most


def numbers(rank: int, count: int, start: int = 0) -> list[int]:
    """Return whole numbers, different at each place and on each rank, whose sums fp32 holds."""
    return [(place * 7 + rank * 1009 + start) % 4001 - 2000 for place in range(count)]


def vector(extent: int) -> str:
    """Return the type of a vector."""
    return f"tensor<{extent}xfp32>"


def fp32(values: Sequence[Any], shape: Sequence[int] | None = None) -> Tensor:
    """Return a tensor of numbers."""
    found = tensor_of("fp32", values)
    return found if shape is None else Tensor("fp32", tuple(shape), found.data)


def each_has(check: Check, answer: dict[str, Any], wanted: Sequence[Sequence[Tensor]]) -> None:
    """Check that every rank returned these tensors."""
    for rank, (actual, expected) in enumerate(zip(outputs(answer), wanted, strict=True)):
        check.equal(len(actual), len(expected), f"the number of results of rank {rank}")
        for place, (one, other) in enumerate(zip(actual, expected, strict=True)):
            check.bits(one, other, f"result {place} of rank {rank}")
