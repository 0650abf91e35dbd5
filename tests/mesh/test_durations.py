"""Durations worked out by hand (runtime spec 13, 17; collectives spec 5.2; RT-13-02 to -05)."""

from __future__ import annotations

import pytest

from tessera_reference.mesh.topology import LAUNCH, QUICK_LAUNCH, WAVE, Topology, kernel_duration, occupancy


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
