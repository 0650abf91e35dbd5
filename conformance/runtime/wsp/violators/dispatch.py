"""Policies that place tasks by another rule than they declare (PTO-WSP v10, 3.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

from tessera_conformance.strength import Violation
from tessera_conformance.strength.violation import substituted
from tessera_conformance.transports import Transport
from tessera_conformance.transports.locate import DirectTransport
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.wsp import policies
from tessera_reference.wsp.machine import Machine, TaskState
from tessera_reference.wsp.policies import affinity, hash, round_robin

from .changes import changed
from .logical_time import telling

RUNS = count()


usual_placement = policies.placement


def placed_by(clause: str, name: str, description: str, module: Any, place: Callable[..., Any]) -> Violation:
    """Return a violation whose policy maps issue number and key to a worker by another function."""

    def placement(policy_id: str, parameters: Mapping[str, Any], symbols: list[int]) -> Callable[[int, int], int]:
        places = place if policy_id == module.ID else usual_placement
        chosen: Callable[[int, int], int] = places(policy_id, parameters, symbols)
        return chosen

    return changed(clause, name, description, ("wsp.policies.placement", placement))


def placing(clause: str, name: str, description: str, module: Any, worker: Callable[[int, int, int], int]) -> Violation:
    """Return a violation whose policy computes another worker from issue number, key and number of workers."""

    def place(policy_id: str, parameters: Mapping[str, Any], symbols: list[int]) -> Callable[[int, int], int]:
        return lambda issue, key: worker(issue, key, parameters["workers"])

    return placed_by(clause, name, description, module, place)


class SaltedOnce(ReferenceAdapter):
    """The reference with a salt for keys, drawn at its start, as languages do for the hashes of texts."""

    def __init__(self) -> None:
        super().__init__()
        SALT[:] = [next(STARTS)]


STARTS = count(1)
SALT = [0]


def salted_once(id: str, parameters: Mapping[str, Any], symbols: list[int]) -> Callable[[int, int], int]:
    """Return a placement with another digest in each process."""
    usual = usual_placement(id, parameters, symbols)
    return lambda issue, key: usual(issue, key ^ SALT[0] if id in (hash.ID, affinity.ID) else key)


@contextmanager
def started_anew() -> Iterator[Transport]:
    """Yield a transport that makes another adapter whenever it is started."""
    with substituted(SaltedOnce, [("wsp.policies.placement", salted_once)]):
        yield DirectTransport(SaltedOnce, "salted_once")


def in_a_circle(found: dict[str, Any]) -> dict[str, Any]:
    return {"assignments": [index % len(found["workers"]) for index in range(len(found["assignments"]))]}


def beside_another(self: Machine, task: TaskState) -> None:
    ONE_LESS(self, task)
    if not task.missing and task.worker.index == 2:
        task.worker.task = None


ONE_LESS = Machine._one_less
DISPATCH = [
    telling("WSP-03.1-01", "tells_another_worker", "tells another worker than the one that executes", in_a_circle),
    placing("WSP-03.1-02", "past_256", "leaves one worker out after 256 tasks", round_robin,
        lambda i, key, n: (i if i < 256 else i + 1) % n),
    changed("WSP-03.1-01", "two_on_the_third", "starts a task on the third worker while it runs another", (
        "wsp.machine.Machine._one_less", beside_another)),
    placing("WSP-03.1-03", "hash_to_the_first", "places all tasks on the first worker", hash, lambda i, key, n: 0),
    Violation("salted_once", "WSP-03.1-03", "places keys otherwise in each process", started_anew),
]  # fmt: skip
