"""Tuners that lose a knob, follow the wrong measurements, or do not keep the pinned step (COLL 5.1, 5.3 and 8)."""

from itertools import count

from tessera_reference.collectives import selection
from tessera_reference.collectives.selection import Measurement, Step

from ...ir.violators.changes import changed
from .changes import answered, at, each, lenient

# Knobs

ACCEPTED = {"chunk_bytes": 1 << 18, "max_inflight": 4}
"""Values within the limits of every case."""


def with_value(name, value):
    """Return a change of the question that gives a knob an accepted value."""
    return lambda given: given | {"knobs": given["knobs"] | {name: ACCEPTED.get(name, value)}}


KNOBS = [
    violation
    for clause, name, always in (
        ("COLL-05.1-01", "chunk_bytes", 1 << 20),
        ("COLL-05.1-02", "max_inflight", 8),
        ("COLL-05.1-03", "algo", "auto"),
        ("COLL-05.1-04", "path", "auto"),
        ("COLL-05.1-05", "pipeline_depth", 2),
        ("COLL-05.1-06", "compress", "none"),
    )
    for violation in (
        answered(clause, f"{name}_lost", f"gives {name} one value", "tune",
                 each("steps", lambda step, lost={name: always}: lost)),
        lenient(clause, f"any_{name}", f"accepts every {name}", "tune", f"{name} ", with_value(name, always)),
    )
]  # fmt: skip


# Adaptation

percentiles, tuning = at("collectives.selection.percentile"), at("adapter.collectives.tune")


def measuring(clause, name, description, change):
    """Return a violation that reads measurements as others: `change` gets bytes, latency and picoseconds."""
    return tuning(clause, name, description, lambda usual, measurements, *given: usual(
        [Measurement(*change(one.bytes, one.latency, one.picoseconds)) for one in measurements], *given))  # fmt: skip


ADAPTATION = [
    violation
    for clause in ("COLL-05.3-01", "COLL-05.3-02")
    for violation in (
        measuring(clause, f"latency_ignored_{clause[-2:]}", "ignores the latency",
                  lambda size, latency, whole: (size, 10**6, 10**6 + whole - latency)),
        measuring(clause, f"bandwidth_ignored_{clause[-2:]}", "ignores the bandwidth",
                  lambda size, latency, whole: (size, latency, latency + size * 20)),
        percentiles(clause, f"average_{clause[-2:]}", "takes averages",
                    lambda usual, values, percent: sum(values) // len(values)),
        percentiles(clause, f"newest_{clause[-2:]}", "takes the newest measurement alone",
                    lambda usual, values, percent: values[-1]),
        changed(clause, f"all_measurements_{clause[-2:]}", "forgets no measurement",
                ("collectives.selection.WINDOW", 10**6)),
    )
]  # fmt: skip


# Pinning

stable = at("collectives.selection._stable")


# Autotuning as a whole

RUNS = count(1)


def drifting(usual, measurements, *given):
    """Return the steps for latencies that grow from run to run."""
    times = next(RUNS) % 8
    later = [(one, one.latency * times) for one in measurements]
    return usual([Measurement(one.bytes, one.latency + more, one.picoseconds + more) for one, more in later], *given)


VIOLATIONS = [
    percentiles("COLL-05.3-02", "slowest", "bridges the slowest measurement",
        lambda usual, values, percent: max(values) if percent == 90 else usual(values, percent)),
    percentiles("COLL-05.3-01", "least", "takes the least for the median",
        lambda usual, values, percent: min(values) if percent == 50 else usual(values, percent)),
    stable("COLL-05.3-03", "always_stable", "takes all measurements for stable",
        lambda usual, window: len(window) == selection.WINDOW),
    stable("COLL-05.3-03", "equal_alone", "pins after equal measurements alone",
        lambda usual, window: len(window) == selection.WINDOW and len(set(window)) == 1),
    tuning("COLL-08-18", "nothing_tuned", "keeps the knobs as given",
        lambda usual, measurements, knobs, limits: [Step(knobs, True) for _ in usual(measurements, knobs, limits)]),
    tuning("COLL-08-18", "drifts", "depends on earlier runs", drifting),
    lenient("COLL-05.3-01", "senseless_measurement", "leaves out measurements that make no sense", "tune",
            "a measurement of", lambda given: given | {"measurements": given["measurements"][:1]}),
    *(
        lenient(clause, f"any_limits_{name}", "accepts limits that allow nothing", "tune", f"limits {name}",
                lambda given, knob=name: given | {"limits": {knob: [1, 1 << 40]}})
        for clause, name in (("COLL-05.1-01", "chunk_bytes"), ("COLL-05.1-02", "max_inflight"))
    ),
]  # fmt: skip
