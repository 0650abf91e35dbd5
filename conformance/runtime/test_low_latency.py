"""Launches that ask for low latency: a preference, never another result (runtime specification, 6)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.graphs import digit_stream
from tessera_conformance.chapters.runtime.kit.mesh_session import DETERMINISTIC, LOW_LATENCY
from tessera_conformance.marks import clause, feature


@feature("low-latency-launch")
@clause("RT-06-14")
@pytest.mark.parametrize("flags", [LOW_LATENCY, LOW_LATENCY | DETERMINISTIC])
def test_a_launch_that_asks_for_low_latency_keeps_its_place(impl, check, flags):
    """It is accepted, has the result of any launch, and does not overtake those before it."""
    session = digit_stream(impl, check)
    pointer = session.zeros()
    for digit, given in enumerate((0, flags, 0, flags, flags), 1):
        session.append(digit, pointer, given)
    session.require(pointer, 12345, "the digits in order of the stream")
