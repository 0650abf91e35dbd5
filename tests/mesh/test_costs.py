"""Durations worked out by hand (runtime spec 13, 17; collectives spec 5.2)."""

from __future__ import annotations

import pytest

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives.links import FIXED
from tessera_reference.mesh.topology import (
    COPY,
    LAUNCH,
    QUICK_LAUNCH,
    WAVE,
    Topology,
    copy_duration,
    default,
    kernel_duration,
    named,
    occupancy,
)


@pytest.mark.parametrize(
    ("grid", "block", "shared", "waves", "part"),
    [
        ((1, 1, 1), (128, 1, 1), 0, 1, 128 / 4096),
        ((32, 1, 1), (128, 1, 1), 0, 1, 1.0),
        ((33, 1, 1), (128, 1, 1), 0, 2, 1.0),
        ((4, 4, 4), (8, 4, 4), 0, 2, 1.0),
        ((1000, 1, 1), (96, 1, 1), 0, 24, 21 * 96 / 2048),  # 21 blocks of 3 warps fit on a multiprocessor
        ((64, 1, 1), (32, 1, 1), 0, 1, 0.5),  # 32 blocks at most
        ((65, 1, 1), (32, 1, 1), 1000, 2, 0.5),
        ((64, 1, 1), (1, 1, 1), 0, 1, 0.5),  # a warp is taken whole
        ((64, 1, 1), (0, 0, 0), 0, 1, 0.5),
        ((8, 1, 1), (1024, 1, 1), 0, 2, 1.0),
        ((8, 1, 1), (128, 1, 1), 100_000, 2, 4 * 128 / 4096),  # two blocks share 232448 bytes
        ((8, 1, 1), (128, 1, 1), 232_448, 4, 2 * 128 / 4096),
    ],
)
def test_blocks_run_in_waves(
    small: Topology,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared: int,
    waves: int,
    part: float,
) -> None:
    """On two multiprocessors of 2048 threads each."""
    device = small.device(10)
    assert kernel_duration(device, grid, block, shared_bytes=shared) == LAUNCH + waves * WAVE
    assert kernel_duration(device, grid, block, True, shared) == QUICK_LAUNCH + waves * WAVE
    assert occupancy(device, grid, block, shared) == part


def test_low_latency_is_quicker() -> None:
    assert 0 < QUICK_LAUNCH < LAUNCH


def test_a_warp_of_amd_has_64_lanes() -> None:
    device = named("mixed").device(4)
    assert occupancy(device, (304 * 32, 1, 1), (33, 1, 1)) == 1.0
    assert occupancy(device, (304, 1, 1), (1, 1, 1)) == 64 / 2048


@pytest.mark.parametrize(
    ("number", "kind", "pinned", "beside"),
    [
        (10, "TESS_COPY_H2D", True, 300 + 10_000),
        (10, "TESS_COPY_D2H", True, 300 + 10_000),
        (10, "TESS_COPY_H2D", False, 300 + 20_000),
        (12, "TESS_COPY_H2D", True, 300 + 1000 + 1000 + 10_000),
        (10, "TESS_COPY_D2D", True, 2_000),
    ],
)
def test_copies_of_a_thousand_bytes(small: Topology, number: int, kind: str, pinned: bool, beside: int) -> None:
    assert copy_duration(small, small.device(number), kind, 1000, pinned) == COPY + beside


def test_a_copy_takes_another_way_where_a_link_is_down(small: Topology) -> None:
    device = small.device(10)
    assert copy_duration(small, device, "TESS_COPY_H2D", 1000, down=frozenset(["host10"])) == COPY + 500 + 10_000
    with pytest.raises(Failure, match="no way between left and device 12") as caught:
        copy_duration(small, small.device(12), "TESS_COPY_D2H", 1, down=frozenset(["out12"]))
    assert caught.value.status is Status.TESS_ERR_LAUNCH_FAILED


def test_part_of_a_picosecond_counts_whole() -> None:
    device = default().device(0)  # 64 bytes take 1000 ps on its link to the host
    durations = [copy_duration(default(), device, "TESS_COPY_H2D", bytes) - COPY - 10**6 for bytes in (0, 1, 64, 65)]
    assert durations == [0, 16, 1000, 1016]


def test_an_unknown_kind_of_copy_is_refused(small: Topology) -> None:
    with pytest.raises(Failure, match=r"did you mean TESS_COPY_H2D\?"):
        copy_duration(small, small.device(10), "TESS_COPY_H2H", 1)


def test_no_time_is_below_one_step() -> None:
    assert FIXED > 0
