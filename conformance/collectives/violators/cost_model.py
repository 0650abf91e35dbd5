"""Costs without one of their terms, and scores that reward idling (COLL 5.2)."""

from fractions import Fraction

from .changes import asked, at, lenient

SECOND = 10**12


def costing(name, description, cost):
    """Return a violation with another cost; refused parameters stay refused."""
    return at("adapter.collectives.estimate")(
        "COLL-05.2-01", name, description, lambda usual, *given: (usual(*given), cost(*given))[1]
    )


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


def scoring(clause, name, description, over, time):
    """Return a violation with another score: a time of both queues, less that of either, as a share of another."""

    def score(usual, compute, communication):
        usual(compute, communication)
        either = covered([*compute, *communication])
        whole = {"compute": covered(compute), "communication": covered(communication), "either": either}[over]
        return Fraction(time(compute, communication) - either, whole) if whole else Fraction(1)

    return at("adapter.collectives.overlap_score")(clause, name, description, score)


SCORES = [
    violation
    for clause, queue in (("COLL-05.2-02", "compute"), ("COLL-05.2-03", "communication"))
    for violation in (
        scoring(clause, f"idle_{queue}_free", f"lets {queue} idle for nothing", queue,
                lambda compute, communication: covered(compute) + covered(communication)),
        scoring(clause, f"added_{queue}", "adds the times of overlapping intervals", "either",
                lambda compute, communication: sum(end - start for start, end in (*compute, *communication))),
        lenient(clause, f"turned_{queue}", "turns intervals round", "overlap_score", queue,
                lambda given: {name: [sorted(group) for group in queue] for name, queue in given.items()}),
        asked(clause, f"first_interval_{queue}", "looks at the first interval of each queue", "overlap_score",
              lambda given: {name: values[:1] for name, values in given.items()}),
    )
]  # fmt: skip
