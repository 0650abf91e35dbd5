"""Costs without one of their terms, and scores that reward idling (COLL 5.2)."""

from fractions import Fraction

from tessera_reference.collectives.selection import estimate, overlap_score

from ...ir.violators.changes import changed
from .answers import asked, lenient

SECOND = 10**12


def costing(name, description, cost):
    """Return a violation with another cost; refused parameters stay refused."""

    def instead(alpha, hops, size, bandwidth):
        estimate(alpha, hops, size, bandwidth)
        return cost(alpha, hops, size, bandwidth)

    return changed("COLL-05.2-01", name, description, ("adapter.collectives.estimate", instead))


COSTS = [
    costing("no_hops", "counts one hop", lambda a, h, n, b: a + -(-n * SECOND // b)),
    costing("in_floats", "computes in floating point", lambda a, h, n, b: a * h + int(-(-n * 1e12 // b))),
    lenient("COLL-05.2-01", "no_bandwidth", "takes no bandwidth for one byte a second", "estimate", "bandwidth",
            lambda given: given | {"bandwidth": 1}),
    lenient("COLL-05.2-01", "negative", "takes negative numbers for 0", "estimate", "; expected 0",
            lambda given: {name: max(value, 0) for name, value in given.items()}),
]  # fmt: skip


# Overlap


def covered(queue):
    """Return the length of the union of intervals."""
    total = reached = 0
    for start, end in sorted(queue):
        total += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return total


def idle_free(clause, queue):
    """Return a violation whose score is the time of both queues as a share of the busy time of one."""

    def instead(compute, communication):
        overlap_score(compute, communication)
        both = covered(compute) + covered(communication) - covered([*compute, *communication])
        busy = covered(compute if queue == "compute" else communication)
        return Fraction(both, busy) if busy else Fraction(1)

    return changed(
        clause, f"idle_{queue}_free", f"lets {queue} idle for nothing", ("adapter.collectives.overlap_score", instead)
    )


def touching(clause, name, description):
    """Return a violation that adds the times of overlapping intervals of one queue."""

    def instead(compute, communication):
        overlap_score(compute, communication)
        times = sum(end - start for queue in (compute, communication) for start, end in queue)
        either = covered([*compute, *communication])
        return Fraction(times - either, either) if either else Fraction(1)

    return changed(clause, name, description, ("adapter.collectives.overlap_score", instead))


def turned(given):
    return {name: [sorted(group) for group in queue] for name, queue in given.items()}


SCORES = [
    *(
        violation
        for clause, queue in (("COLL-05.2-02", "compute"), ("COLL-05.2-03", "communication"))
        for violation in (
            idle_free(clause, queue),
            touching(clause, f"added_{queue}", "adds the times of overlapping intervals"),
            lenient(clause, f"turned_{queue}", "turns intervals round", "overlap_score", queue, turned),
            asked(clause, f"first_interval_{queue}", "looks at the first interval of each queue", "overlap_score",
                  lambda given: {name: values[:1] for name, values in given.items()}),
        )
    ),
]  # fmt: skip
