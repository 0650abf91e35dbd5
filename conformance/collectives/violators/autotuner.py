"""Tuners that lose a knob, follow the wrong measurements, or do not keep the pinned step (COLL 5.1, 5.3 and 8)."""

from itertools import count

from tessera_reference.collectives import selection
from tessera_reference.collectives.selection import Measurement, Step, percentile, tune

from ...ir.violators.changes import changed
from .changes import answered, lenient

# Knobs


def each_step(change):
    """Return a change of every step."""

    def over(answer):
        for step in answer["steps"]:
            change(step)

    return over


def knob(clause, name, always):
    """Return two violations: a knob with one value in every step, and one that accepts any value."""
    return [
        answered(clause, f"{name}_lost", f"gives {name} one value", "tune", each_step(lambda step: (
            step.update({name: always})
        ))),
        lenient(clause, f"any_{name}", f"accepts every {name}", "tune", f"{name} ", lambda given: (
            given | {"knobs": given["knobs"] | {name: ACCEPTED.get(name, always)}}
        )),
    ]  # fmt: skip


ACCEPTED = {"chunk_bytes": 1 << 18, "max_inflight": 4}
"""Values within the limits of every case."""

KNOBS = [
    *knob("COLL-05.1-01", "chunk_bytes", 1 << 20),
    *knob("COLL-05.1-02", "max_inflight", 8),
    *knob("COLL-05.1-03", "algo", "auto"),
    *knob("COLL-05.1-04", "path", "auto"),
    *knob("COLL-05.1-05", "pipeline_depth", 2),
    *knob("COLL-05.1-06", "compress", "none"),
]


# Adaptation


def measuring(clause, name, description, change):
    """Return a violation that reads measurements as others."""

    def run(measurements, knobs, limits=None):
        return tune([change(measurement) for measurement in measurements], knobs, limits)

    return changed(clause, name, description, ("adapter.collectives.tune", run))


def without_latency(given):
    """Return a measurement with a latency of one microsecond and the usual bandwidth."""
    return Measurement(given.bytes, 10**6, 10**6 + given.picoseconds - given.latency)


def of_one_bandwidth(given):
    """Return a measurement with the usual latency and 50 GB a second."""
    return Measurement(given.bytes, given.latency, given.latency + given.bytes * 20)


def average(values, percent):
    """Return the average for every percentile."""
    return sum(values) // len(values)


def newest(values, percent):
    """Return the newest value for every percentile."""
    return list(values)[-1]


def percentiles(clause, name, description, instead):
    """Return a violation with another function for percentiles."""
    return changed(clause, name, description, ("collectives.selection.percentile", instead))


ADAPTATION = [
    violation
    for clause in ("COLL-05.3-01", "COLL-05.3-02")
    for violation in (
        measuring(clause, f"latency_ignored_{clause[-2:]}", "ignores the latency", without_latency),
        measuring(clause, f"bandwidth_ignored_{clause[-2:]}", "ignores the bandwidth", of_one_bandwidth),
        percentiles(clause, f"average_{clause[-2:]}", "takes averages", average),
        percentiles(clause, f"newest_{clause[-2:]}", "takes the newest measurement alone", newest),
        changed(clause, f"all_measurements_{clause[-2:]}", "forgets no measurement",
                ("collectives.selection.WINDOW", 10**6)),
    )
]  # fmt: skip

FIXED = [
    percentiles("COLL-05.3-02", "slowest", "bridges the slowest measurement",
        lambda values, percent: (max(values) if percent == 90 else percentile(values, percent))),
    percentiles("COLL-05.3-01", "least", "takes the least for the median",
        lambda values, percent: (min(values) if percent == 50 else percentile(values, percent))),
]  # fmt: skip


# Pinning


PINNING = [
    changed("COLL-05.3-03", "always_stable", "takes all measurements for stable",
            ("collectives.selection.Autotuner._stable", lambda self: len(self._window) == selection.WINDOW)),
    changed("COLL-05.3-03", "equal_alone", "pins after equal measurements alone",
        ("collectives.selection.Autotuner._stable",
        lambda self: (len(self._window) == selection.WINDOW and len(set(self._window)) == 1))),
]  # fmt: skip


# Autotuning as a whole


RUNS = count(1)


def drifting(measurements, knobs, limits=None):
    """Return the steps for latencies that grow from run to run."""
    times = next(RUNS) % 8
    later = [(given, given.latency * times) for given in measurements]
    longer = [Measurement(given.bytes, given.latency + more, given.picoseconds + more) for given, more in later]
    return tune(longer, knobs, limits)


def nothing_tuned(measurements, knobs, limits=None):
    return [Step(knobs, True) for _ in tune(measurements, knobs, limits)]


AUTOTUNER = [
    changed("COLL-08-18", "nothing_tuned", "keeps the knobs as given", ("adapter.collectives.tune", nothing_tuned)),
    changed("COLL-08-18", "drifts", "depends on earlier runs", ("adapter.collectives.tune", drifting)),
    lenient("COLL-05.3-01", "senseless_measurement", "leaves out measurements that make no sense", "tune",
            "a measurement of", lambda given: given | {"measurements": given["measurements"][:1]}),
    *(
        lenient(clause, f"any_limits_{name}", "accepts limits that allow nothing", "tune", f"limits {name}",
                lambda given, knob=name: given | {"limits": {knob: [1, 1 << 40]}})
        for clause, name in (("COLL-05.1-01", "chunk_bytes"), ("COLL-05.1-02", "max_inflight"))
    ),
]  # fmt: skip
