"""Policies that place tasks by another rule than they declare (PTO-WSP v10, 3.1)."""

from contextlib import contextmanager
from itertools import count

from tessera_conformance.strength import Violation
from tessera_conformance.strength.violation import substituted
from tessera_conformance.transports.locate import DirectTransport
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.wsp.machine import TaskState

from ....ir.violators.changes import around, breaks, wrapped
from .logical_time import telling


def placing(clause, name, description, policy, worker):
    """Return a violation whose policy computes another worker from issue number, key and number of workers."""

    def place(usual, self, number, key):
        placed_so = self.package.schedule.policy.id == policy
        return worker(number, key, len(self.workers)) if placed_so else usual(self, number, key)

    return wrapped(clause, name, description, "wsp.machine.Machine.place", place)


class SaltedOnce(ReferenceAdapter):
    """The reference with a salt for keys, drawn at its start, as languages do for the hashes of texts."""

    def __init__(self):
        super().__init__()
        SALT[:] = [next(STARTS)]


STARTS = count(1)
SALT = [0]


def salted_once(usual, self, number, key):
    return usual(self, number, key ^ SALT[0] if self.package.schedule.policy.id in ("hash", "affinity") else key)


@contextmanager
def started_anew():
    with substituted(SaltedOnce, [("wsp.machine.Machine.place", around(salted_once))]):
        yield DirectTransport(SaltedOnce, "salted_once")


@breaks("WSP-03.1-01", "starts a task on the third worker while it runs another", "wsp.machine.Machine._one_less")
def two_on_the_third(usual, self, waiter):
    usual(self, waiter)
    if not waiter.missing and isinstance(waiter, TaskState) and waiter.worker.index == 2:
        waiter.worker.task = None


DISPATCH = [
    telling("WSP-03.1-01", "tells_another_worker", "tells another worker than the one that executes",
        lambda found: {"assignments": [index % len(found["workers"]) for index in range(len(found["assignments"]))]}),
    placing("WSP-03.1-02", "past_256", "leaves one worker out after 256 tasks", "round_robin",
        lambda i, key, n: (i if i < 256 else i + 1) % n),
    placing("WSP-03.1-03", "hash_to_the_first", "places all tasks on the first worker", "hash", lambda i, key, n: 0),
    Violation("salted_once", "WSP-03.1-03", "places keys otherwise in each process", started_anew),
]  # fmt: skip
