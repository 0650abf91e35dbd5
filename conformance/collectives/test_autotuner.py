"""The autotuner's knobs, and how measurements move and pin them (collectives specification 5.1, 5.3 and 8)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.refusals import refused
from tessera_conformance.marks import clause, feature

pytestmark = feature("autotune")

INVALID = "TESS_ERR_INVALID_VALUE"

CHUNKS, INFLIGHT = [1 << 10, 1 << 30], [1, 64]
START = {"chunk_bytes": 1 << 18, "max_inflight": 4}
LATENCY, BANDWIDTH = 1_000_000, 50_000_000_000
"""A microsecond, 50 GB a second: 50,000 bytes fill the link."""


def measured(latency=LATENCY, bandwidth=BANDWIDTH, size=1 << 20):
    """A chunk that a link of this latency and bandwidth carried."""
    return {"bytes": size, "latency": latency, "picoseconds": latency + size * 10**12 // bandwidth}


def tuned(check, impl, measurements, chunks=CHUNKS, inflight=INFLIGHT, **knobs):
    """The steps of a run."""
    limits = {"chunk_bytes": chunks, "max_inflight": inflight}
    answer = impl.collectives.tune(measurements=measurements, knobs=START | knobs, limits=limits)
    steps = check.returns(answer)["steps"]
    check.equal(len(steps), len(measurements), "a step for each measurement")
    return steps


def settled(check, impl, *arguments, **given):
    """The chunk size and the chunks in flight at the end of 64 equal measurements."""
    measurements = [measured(*arguments)] * 64
    last = tuned(check, impl, measurements, **given)[-1]
    return last["chunk_bytes"], last["max_inflight"]


ONE_CHUNK = {"chunks": [1 << 18, 1 << 18]}
FOUR_IN_FLIGHT = {"inflight": [4, 4]}


@clause("COLL-05.1-01", "COLL-05.1-02", "COLL-05.1-03", "COLL-05.1-04", "COLL-05.1-05", "COLL-05.1-06", "COLL-08-18")
@pytest.mark.parametrize(
    "given",
    [
        {"algo": "auto", "path": "auto", "pipeline_depth": 1, "compress": "none"},
        {"algo": "ring", "path": "nvlink", "pipeline_depth": 2, "compress": "bf16"},
        {"algo": "tree", "path": "pcie", "pipeline_depth": 3, "compress": "fp16"},
        {"algo": "halving_doubling", "path": "rdma", "pipeline_depth": 8, "compress": "fp8"},
        {"algo": "hierarchical", "path": "network", "pipeline_depth": 4, "compress": "blockwise"},
        {"algo": "direct", "path": "auto", "pipeline_depth": 5, "compress": "topk"},
    ],
    ids=lambda given: given["algo"],
)
def test_every_knob_is_returned_and_stays_in_its_range(impl, check, given):
    """Chunk size and chunks in flight within their limits; the others as they were given (AMB-COLL-49)."""
    measurements = [measured(LATENCY * 4**number, BANDWIDTH * 3**number) for number in (0, 3, 1, 5, 2, 9, 4, 4)] * 3
    for limits in ({"chunks": [1 << 17, 1 << 19], "inflight": [3, 5]}, {}):
        for step in tuned(check, impl, measurements, **limits, **given):
            check.equal({name: step[name] for name in given}, given, "the knobs that are not adapted")
            low, high = limits.get("chunks", CHUNKS)
            check.true(low <= step["chunk_bytes"] <= high, "chunk_bytes lies within its limits", step)
            low, high = limits.get("inflight", INFLIGHT)
            check.true(low <= step["max_inflight"] <= high, "max_inflight lies within its limits", step)


@pytest.mark.parametrize(
    ("knob", "value", "words"),
    [
        pytest.param("chunk_bytes", 1023, ["1024"], marks=clause("COLL-05.1-01"), id="a small chunk"),
        pytest.param("chunk_bytes", (1 << 30) + 1, [str(1 << 30)], marks=clause("COLL-05.1-01"), id="a large chunk"),
        pytest.param("max_inflight", 0, ["1", "64"], marks=clause("COLL-05.1-02"), id="nothing in flight"),
        pytest.param("max_inflight", 65, ["64"], marks=clause("COLL-05.1-02"), id="too much in flight"),
        pytest.param("algo", "rng", ["ring"], marks=clause("COLL-05.1-03"), id="an unknown algorithm"),
        pytest.param("path", "rdna", ["rdma"], marks=clause("COLL-05.1-04"), id="an unknown path"),
        pytest.param("pipeline_depth", 0, ["1", "8"], marks=clause("COLL-05.1-05"), id="no buffer"),
        pytest.param("pipeline_depth", 9, ["8"], marks=clause("COLL-05.1-05"), id="nine buffers"),
        pytest.param("compress", "fp9", ["fp8"], marks=clause("COLL-05.1-06"), id="an unknown compression"),
    ],
)
def test_a_knob_out_of_its_range_is_refused_by_name(impl, check, knob, value, words):
    """The message names the knob, its value and what is allowed."""
    limits = {"chunk_bytes": CHUNKS, "max_inflight": INFLIGHT}
    answer = impl.collectives.tune(measurements=[measured()], knobs=START | {knob: value}, limits=limits)
    refused(check, answer, INVALID, knob, str(value), *words)


@feature("online-adaptation")
@clause("COLL-08-18")
def test_the_same_measurements_give_the_same_knobs(impl, check):
    """The autotuner looks at nothing else; a later measurement changes no earlier step."""
    factors = [(1 + index * 7 % 5) * (1 if index < 20 else 300) for index in range(40)]
    measurements = [measured(LATENCY * factor, BANDWIDTH // (1 + at * 3 % 4)) for at, factor in enumerate(factors)]
    first = tuned(check, impl, measurements)
    check.equal(tuned(check, impl, measurements), first, "the steps of another run")
    check.equal(tuned(check, impl, measurements[:20]), first[:20], "the steps of half a run")


@clause("COLL-05.3-01", "COLL-08-18")
def test_chunks_grow_with_latency(impl, check):
    """Four in flight; a larger chunk hides more of it (AMB-COLL-49)."""
    small, large = (settled(check, impl, LATENCY * number, **FOUR_IN_FLIGHT)[0] for number in (1, 64))
    check.true(small < large, "a latency 64 times as long makes chunks larger", (small, large))


@clause("COLL-05.3-01")
def test_chunks_grow_with_bandwidth(impl, check):
    """A slower link is filled by less."""
    slow, usual = (settled(check, impl, LATENCY, BANDWIDTH // number, **FOUR_IN_FLIGHT)[0] for number in (64, 1))
    check.true(slow < usual, "a bandwidth 64 times as large makes chunks larger", (slow, usual))


@clause("COLL-05.3-02", "COLL-08-18")
def test_more_is_in_flight_with_more_latency(impl, check):
    """The chunks have one size; the latency differs."""
    few, many = (settled(check, impl, LATENCY * number, **ONE_CHUNK)[1] for number in (1, 64))
    check.true(few < many, "a latency 64 times as long puts more in flight", (few, many))


@clause("COLL-05.3-02")
def test_more_is_in_flight_with_more_bandwidth(impl, check):
    """The chunks have one size, and the latency is ten microseconds; the bandwidth differs."""
    few, many = (settled(check, impl, 10 * LATENCY, BANDWIDTH // number, **ONE_CHUNK)[1] for number in (64, 1))
    check.true(few < many, "a bandwidth 64 times as large puts more in flight", (few, many))


@clause("COLL-05.3-01", "COLL-05.3-02")
@pytest.mark.parametrize(
    "odd", [(LATENCY * 1000, BANDWIDTH), (1, BANDWIDTH), (LATENCY, 1000), (LATENCY, 10**15)], ids=str
)
@pytest.mark.parametrize("place", [0, 7, 40, 63])
def test_one_odd_measurement_changes_nothing_that_lasts(impl, check, odd, place):
    """Percentiles, not averages, and neither of the ends: the knobs end where they do without it."""
    measurements = [measured()] * 64
    usual = tuned(check, impl, measurements)[-1]
    measurements[place] = measured(*odd)
    last = tuned(check, impl, measurements)[-1]
    actual, expected = ((choice["chunk_bytes"], choice["max_inflight"]) for choice in (last, usual))
    check.equal(actual, expected, "the knobs at the end")


@clause("COLL-05.3-01", "COLL-05.3-02")
@pytest.mark.parametrize(
    "odd", [(LATENCY * 1000, BANDWIDTH), (1, BANDWIDTH), (LATENCY, 1000), (LATENCY, 10**15)], ids=str
)
@pytest.mark.parametrize("limits", [FOUR_IN_FLIGHT, ONE_CHUNK], ids=["chunks", "in flight"])
def test_one_odd_measurement_in_sixteen_changes_nothing(impl, check, odd, limits):
    """Again and again: the knobs end where even measurements lead."""
    usual = tuned(check, impl, [measured()] * 64, **limits)[-1]
    last = tuned(check, impl, [measured(*odd) if index % 16 == 9 else measured() for index in range(64)], **limits)[-1]
    actual, expected = ((choice["chunk_bytes"], choice["max_inflight"]) for choice in (last, usual))
    check.equal(actual, expected, "the knobs at the end")


@clause("COLL-05.3-01", "COLL-05.3-02")
@pytest.mark.parametrize("limits", [FOUR_IN_FLIGHT, ONE_CHUNK], ids=["chunks", "in flight"])
def test_old_measurements_are_forgotten(impl, check, limits):
    """A long time of changing slow links, then 64 quick ones: the knobs end where the quick ones alone lead."""
    before = [measured(LATENCY * 1024 * (1 if index % 2 else 16)) for index in range(100)]
    alone = tuned(check, impl, [measured()] * 64, **limits)[-1]
    after = tuned(check, impl, before + [measured()] * 64, **limits)[-1]
    actual, expected = ((choice["chunk_bytes"], choice["max_inflight"]) for choice in (after, alone))
    check.equal(actual, expected, "the knobs at the end")


@clause("COLL-05.3-03")
@pytest.mark.parametrize("jitter", [0, 100], ids=["equal", "within a hundredth"])
@pytest.mark.parametrize("latency", [0, LATENCY, 30 * LATENCY])
def test_knobs_are_pinned_once_measurements_are_stable(impl, check, jitter, latency):
    """The first steps pin nothing; pinned knobs stay pinned."""
    spread = [0, 3, -5, 8, -9, 10, -2, 6, -10, 1]
    every = [latency + latency * spread[index % 10] // (10 * jitter or 10**30) for index in range(96)]
    steps = tuned(check, impl, [measured(measurement) for measurement in every])
    pinned = [step["pinned"] for step in steps]
    check.equal((pinned[0], pinned[63]), (False, True), "whether knobs are pinned at first, and after 64 measurements")
    check.equal(pinned, sorted(pinned), "what is pinned stays pinned")
    kept = [step for step in steps if step["pinned"]]
    check.true(all(step == kept[0] for step in kept), "pinned knobs stay", kept[-1])


@clause("COLL-05.3-03")
def test_pinned_knobs_stay_for_the_run(impl, check):
    """Though the link becomes slower; a new run starts anew (AMB-COLL-49)."""
    steps = tuned(check, impl, [measured()] * 64 + [measured(LATENCY * 64)] * 64)
    moved = steps[63]["pinned"] and steps[-1] != steps[63]
    check.reading("AMB-COLL-49", "pinned knobs move again when measurements change", moved)
    check.equal(steps[-1], steps[63], "the knobs after the change")
    anew = tuned(check, impl, [measured(LATENCY * 64)] * 64)[-1]
    check.true(anew != steps[-1], "a new run finds other knobs", anew)


@clause("COLL-05.3-03")
@pytest.mark.parametrize("what", ["latency", "bandwidth"])
def test_knobs_are_not_pinned_while_measurements_change(impl, check, what):
    """While measurements change by a factor of 16 each time, the knobs are not pinned."""
    factors = [1 if index % 2 else 16 for index in range(96)]
    changing = [measured(**{what: (LATENCY if what == "latency" else BANDWIDTH) * factor}) for factor in factors]
    pinned = [step["pinned"] for step in tuned(check, impl, changing)]
    check.equal(pinned, [False] * 96, "whether knobs are pinned")


@clause("COLL-05.3-01")
@pytest.mark.parametrize(
    "given",
    [{"bytes": 0}, {"latency": -1}, {"picoseconds": 5, "latency": 5}, {"picoseconds": 0, "latency": 0}],
    ids=str,
)
def test_a_measurement_that_makes_no_sense_is_refused(impl, check, given):
    """A measurement of no bytes, of a negative latency, or of no time for the bytes is refused."""
    answer = impl.collectives.tune(measurements=[measured(), measured() | given], knobs=START)
    check.status(answer, INVALID)


@clause("COLL-05.1-01", "COLL-05.1-02")
@pytest.mark.parametrize("limits", [{"chunk_bytes": [0, 8]}, {"max_inflight": [5, 4]}], ids=str)
def test_limits_that_allow_nothing_are_refused_by_name(impl, check, limits):
    """A least below 1, a most below the least; the knob itself is the most."""
    knobs = START | {knob: most for knob, (_, most) in limits.items()}
    answer = impl.collectives.tune(measurements=[], knobs=knobs, limits=limits)
    refused(check, answer, INVALID, *limits)
