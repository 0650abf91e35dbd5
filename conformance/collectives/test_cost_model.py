"""The cost of a chunk, and the score of overlap (collectives specification 5.2)."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from tessera_conformance.chapters.runtime.kit.refusals import refused
from tessera_conformance.marks import clause

INVALID = "TESS_ERR_INVALID_VALUE"

QUESTIONS = [
    (500_000, 1, 0, 1),
    (0, 5, 1, 3 * 10**12),
    (0, 0, 3, 10**12),
    (0, 0, 4, 3 * 10**12),
    (700_001, 7, 524_288, 450_000_000_000),
    (700_001, 0, 524_289, 64_000_000_001),
    (1, 4095, 1 << 40, 1),
    (3, 1, 27_000_001, 3),
    (10**12, 3, 10**15 + 1, 10**15),
]
"""Alpha in picoseconds, hops, bytes, bytes a second: with remainders and without."""


@clause("COLL-05.2-01")
@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_a_chunk_takes_alpha_for_each_hop_and_its_bytes_by_the_bandwidth(impl, check, question):
    """Rounded up to a picosecond (AMB-COLL-47)."""
    alpha, hops, size, bandwidth = question
    exact = alpha * hops + Fraction(size * 10**12, bandwidth)
    actual = check.returns(impl.collectives.estimate(alpha=alpha, hops=hops, bytes=size, bandwidth=bandwidth))[
        "picoseconds"
    ]
    check.equal(actual, -(-exact.numerator // exact.denominator), "the picoseconds")


@clause("COLL-05.2-01")
@pytest.mark.parametrize(("name", "value"), [("alpha", -1), ("hops", -1), ("bytes", -1), ("bandwidth", 0)])
def test_a_cost_of_nothing_sensible_is_refused_by_name(impl, check, name, value):
    """No bandwidth, and negative values of the others, are refused by their name."""
    usual = {"alpha": 10, "hops": 2, "bytes": 8, "bandwidth": 10**9}
    check.returns(impl.collectives.estimate(**usual))
    refused(check, impl.collectives.estimate(**(usual | {name: value})), INVALID, name, str(value))


def score(check, impl, compute, communication):
    """The score of two queues, exactly."""
    answer = check.returns(impl.collectives.overlap_score(compute=compute, communication=communication))["score"]
    return Fraction(answer["numerator"], answer["denominator"])


FRAMES = [
    ([[0, 100]], [[0, 100]]),
    ([[0, 40], [40, 100]], [[10, 90]]),
    ([[60, 100], [0, 50]], [[0, 30], [20, 80]]),
    ([[0, 10], [20, 30], [40, 50]], [[5, 45]]),
]
"""Work of the compute and the communication queue, in picoseconds: some intervals overlap or are out of order."""


def without(intervals, start, end):
    """The intervals, with none of the time from start to end."""
    parts = [(max(low, a), min(high, b)) for low, high in intervals for a, b in ((-(10**9), start), (end, 10**9))]
    return [[low, high] for low, high in parts if low < high]


@clause("COLL-05.2-02", "COLL-05.2-03")
@pytest.mark.parametrize(("compute", "communication"), FRAMES)
def test_more_idle_time_lowers_the_score(impl, check, compute, communication):
    """One queue loses time in which both were busy: it idles while the other one works (AMB-COLL-28, AMB-COLL-48)."""
    whole = score(check, impl, compute, communication)
    for start, end in ((22, 24), (20, 30), (40, 45)):
        compute_idles = score(check, impl, without(compute, start, end), communication)
        check.true(compute_idles < whole, "an idle compute queue lowers the score", (compute_idles, whole))
        communication_idles = score(check, impl, compute, without(communication, start, end))
        check.true(communication_idles < whole, "an idle communication queue lowers it", (communication_idles, whole))


@clause("COLL-05.2-02")
@pytest.mark.parametrize(("compute", "communication"), FRAMES)
def test_communication_that_goes_on_alone_lowers_the_score(impl, check, compute, communication):
    """The longer communication goes on alone, the lower the score."""
    scores = [score(check, impl, compute, [*communication, [200, 200 + more]]) for more in (0, 1, 50, 10**12)]
    check.true(all(a > b for a, b in pairwise(scores)), "the scores fall", scores)


@clause("COLL-05.2-03")
@pytest.mark.parametrize(("compute", "communication"), FRAMES)
def test_compute_that_goes_on_alone_lowers_the_score(impl, check, compute, communication):
    """The longer computation goes on alone, the lower the score."""
    scores = [score(check, impl, [*compute, [200, 200 + more]], communication) for more in (0, 1, 50, 10**12)]
    check.true(all(a > b for a, b in pairwise(scores)), "the scores fall", scores)


@clause("COLL-05.2-02", "COLL-05.2-03")
def test_the_score_is_of_the_time_and_not_of_how_it_is_told(impl, check):
    """In pieces, twice, or in another order; and later, or slower."""
    told = score(check, impl, [[0, 60]], [[20, 100]])
    check.equal(score(check, impl, [[30, 60], [0, 30]], [[20, 70], [50, 100], [20, 100], [7, 7]]), told, "in pieces")
    check.equal(score(check, impl, [[1000, 1060]], [[1020, 1100]]), told, "a thousand picoseconds later")


@clause("COLL-05.2-02", "COLL-05.2-03")
def test_an_interval_that_ends_before_it_starts_is_refused(impl, check):
    """On either queue, an interval that ends before it starts is refused."""
    refused(check, impl.collectives.overlap_score(compute=[[0, 1], [5, 4]], communication=[]), INVALID, "compute")
    refused(check, impl.collectives.overlap_score(compute=[], communication=[[5, 4]]), INVALID, "communication")
