"""The times of messages: those of the engine, whoever gave them; and that it is said who did, and why."""

from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives import travel as durations
from tessera_reference.collectives.operations import messages
from tessera_reference.collectives.schedules import ALGORITHMS
from tessera_reference.collectives.travel import MessageTimes, message_times, travel
from tessera_reference.mesh.topology import Topology, uniform

Row = tuple[int, ...]

CASES = {
    "ring, uneven shares": ("ring", uniform(1, 7), 101, None, "recurrence"),
    "halving, even shares": ("halving_doubling", uniform(1, 8), 320, None, "recurrence"),
    "direct, uneven shares": ("direct", uniform(1, 8), 100_003, None, "engine"),
    "hierarchical, fewer elements than ranks": ("hierarchical", uniform(2, 4), 5, None, "engine"),
    "tree of a prime number of ranks": ("tree", uniform(1, 5), 200, None, "engine"),
    "halving, chunks across shares": ("halving_doubling", uniform(1, 16), 99, 13, "engine"),
    "direct, a shared uplink": ("direct", uniform(4, 2, shared=True), 320, None, "engine"),
}


def found(topology: Topology, name: str, count: int, chunk: int | None = None) -> MessageTimes:
    devices = [each.id for each in topology.devices]
    per_node = len(devices) // len(topology.nodes)
    return message_times(topology, devices, "all_reduce", name, count, 4, per_node=per_node, chunk=chunk)


@pytest.mark.parametrize("case", CASES)
def test_times_are_those_of_the_engine_and_say_whose_they_are(case: str) -> None:
    name, topology, count, chunk, by = CASES[case]
    times = found(topology, name, count, chunk)
    assert (times.by, bool(times.why)) == (by, by == "engine")
    devices = [each.id for each in topology.devices]
    per_node = len(devices) // len(topology.nodes)
    sent = messages("all_reduce", name, len(devices), count, per_node=per_node, chunk=chunk)
    engine = sorted((*each.sent[:5], each.start, each.end) for each in travel(topology, devices, sent, 4, chunk=chunk))
    rows: list[Row] = []
    for step in times.steps:
        rows += [(step.step, *one) for one in np.stack(step[1:], axis=1).tolist()]
    assert sorted(rows) == engine
    assert times.last == max(row[-1] for row in engine)


def test_an_empty_buffer_takes_no_time() -> None:
    for name in ALGORITHMS:
        assert found(uniform(1, 3), name, 0).last == 0


def test_more_than_a_month_is_left_to_the_engine() -> None:
    times = message_times(uniform(1, 2), (0, 1), "all_reduce", "tree", 1 << 61, 1)
    assert times.by == "engine"
    assert "more than" in times.why
    assert times.last > 1 << 61


def test_devices_that_are_cut_off_are_refused() -> None:
    with pytest.raises(Failure) as raised:
        message_times(uniform(1, 3), (0, 1, 2), "all_reduce", "ring", 9, 1, down=frozenset(["nv1"]))
    assert raised.value.status is Status.TESS_ERR_LAUNCH_FAILED


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("count", [19 * 5, 19 * 5 + 3])
def test_durations_of_many_devices_are_those_of_the_engine(
    name: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 19, as if 18 were few: the recurrence first, then the engine alone."""
    topology, devices = uniform(1, 19), tuple(range(19))
    monkeypatch.setattr(durations, "FEW", 18)
    one = durations.collective_duration(topology, devices, "all_reduce", count, name)
    durations._duration.cache_clear()
    monkeypatch.setattr(durations, "FEW", 1000)
    assert durations.collective_duration(topology, devices, "all_reduce", count, name) == one
    durations._duration.cache_clear()
