"""Durations worked out by hand (runtime spec 13, 17; collectives spec 5.2; RT-13-02 to -05)."""

from __future__ import annotations

import pytest

from tessera_reference.collectives.links import FIXED
from tessera_reference.collectives.travel import collective_duration
from tessera_reference.mesh.topology import (
    LAUNCH,
    QUICK_LAUNCH,
    WAVE,
    Topology,
    default,
    kernel_duration,
    occupancy,
)


@pytest.mark.parametrize(
    ("grid", "block", "waves", "part"),
    [
        ((1, 1, 1), (128, 1, 1), 1, 128 / 4096),
        ((32, 1, 1), (128, 1, 1), 1, 1.0),
        ((33, 1, 1), (128, 1, 1), 2, 1.0),
        ((4, 4, 4), (8, 4, 4), 2, 1.0),
        ((1000, 1, 1), (96, 1, 1), 24, 21 * 96 / 2048),  # 21 blocks of 3 warps fit on a multiprocessor
        ((64, 1, 1), (32, 1, 1), 1, 0.5),  # 32 blocks at most
        ((64, 1, 1), (1, 1, 1), 1, 0.5),  # a warp is taken whole
        ((64, 1, 1), (0, 0, 0), 1, 0.5),
        ((8, 1, 1), (1024, 1, 1), 2, 1.0),
    ],
)
def test_blocks_run_in_waves(
    small: Topology, grid: tuple[int, int, int], block: tuple[int, int, int], waves: int, part: float
) -> None:
    """On two multiprocessors of 2048 threads each."""
    device = small.device(10)
    assert kernel_duration(device, grid, block) == LAUNCH + waves * WAVE
    assert kernel_duration(device, grid, block, True) == QUICK_LAUNCH + waves * WAVE
    assert occupancy(device, grid, block) == part


EIGHT = tuple(range(8))


def test_two_devices_by_hand(small: Topology) -> None:
    """Devices 10 and 11: 200 ps of latency, and half a terabyte a second on the narrower of two links."""

    def takes(collective: str, algorithm: str) -> int:
        return collective_duration(small, (10, 11), collective, 1000, algorithm)

    shares, whole = FIXED + 200 + 1000, FIXED + 200 + 2000
    assert takes("all_reduce", "ring") == takes("all_reduce", "hierarchical") == 2 * shares
    assert takes("reduce_scatter", "ring") == takes("all_gather", "ring") == shares
    assert takes("broadcast", "ring") == 2 * shares
    assert takes("all_reduce", "tree") == 2 * whole
    assert takes("broadcast", "tree") == whole
    assert takes("reduce_scatter", "tree") == takes("all_gather", "tree") == whole + shares


def test_eight_devices_on_a_switch_by_alpha_and_beta() -> None:
    """Latency 1 us between two devices, 450 GB/s; 7.2 MB take 16 us, an eighth of them 2 us."""

    def takes(collective: str, algorithm: str) -> int:
        return collective_duration(default(), EIGHT, collective, 7_200_000, algorithm)

    alpha, whole = FIXED + 10**6, 16 * 10**6
    assert takes("all_reduce", "ring") == 14 * (alpha + whole // 8)
    assert takes("all_reduce", "tree") == 6 * (alpha + whole)
    assert takes("all_reduce", "hierarchical") == takes("all_reduce", "direct") == 2 * (alpha + 7 * whole // 8)
    assert takes("all_reduce", "halving_doubling") == 2 * (3 * alpha + 7 * whole // 8)
    assert takes("reduce_scatter", "hierarchical") == takes("all_gather", "hierarchical") == alpha + 7 * whole // 8
    assert takes("broadcast", "hierarchical") == 2 * (alpha + 7 * whole // 8)
