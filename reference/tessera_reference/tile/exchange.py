"""Checks and exchanges in a warp: whole warps, values that agree, values read from another lane."""

from __future__ import annotations

import numpy as np

from .faults import AbsentLane, NotUniform, PartialWarp
from .lanes import Lanes
from .storage import Offsets, Values


def whole_warps(block: Lanes, what: str) -> Offsets:
    """The numbers of the active warps. Raises `PartialWarp`, naming `what`, for one with inactive lanes."""
    if block.mask is None and block.lanes % block.warp == 0:
        return np.arange(block.warps)
    lanes = _rows(block, np.ones(block.lanes, bool) if block.mask is None else block.mask)
    active = np.asarray(lanes.any(axis=1))
    partial = np.flatnonzero(active & ~lanes.all(axis=1))
    if partial.size:
        warp = int(partial[0])
        missing = warp * block.warp + int(np.flatnonzero(~lanes[warp])[0])
        raise PartialWarp(block.thread(missing) if missing < block.lanes else None, warp, what)
    return np.flatnonzero(active)


def _rows(block: Lanes, values: Values) -> Values:
    """The lanes of each warp as a row; threads that the block does not have are zeros."""
    every = np.zeros(block.warps * block.warp, values.dtype)
    every[: block.lanes] = values
    return every.reshape(block.warps, block.warp)


def by_warp(block: Lanes, what: str, values: Offsets) -> Offsets:
    """The value that all lanes of a warp share; arbitrary if inactive. Raises `PartialWarp` and `NotUniform`."""
    active = whole_warps(block, what)
    lanes = _rows(block, values)
    differing = np.argwhere(lanes[active] != lanes[active, :1])
    if differing.size:
        warp, lane = int(active[differing[0, 0]]), int(differing[0, 1])
        raise NotUniform(what, int(lanes[warp, 0]), int(lanes[warp, lane]), block.thread(warp * block.warp + lane))
    return lanes[:, 0]


def exchanged(block: Lanes, values: Values, sources: Offsets, mask: int | None = None) -> Values:
    """For each lane the value of lane `sources`, counted within its warp. Raises `AbsentLane`.

    Both lanes are active and, where there is one, in the mask, which has a bit for each lane of a warp.
    """
    lane = block.every_lane % block.warp
    places = block.every_lane - lane + sources
    active = block.active
    if mask is not None:
        named = np.array([mask >> number & 1 for number in range(block.warp)], bool)
        for lanes, outside in ((lane[active], ~named[lane[active]]), (sources[active], ~named[sources[active]])):
            if outside.any():
                raise AbsentLane(block.thread(active[outside][0]), int(lanes[outside][0]), "outside the mask")
    missing = places[active] >= block.lanes
    if block.mask is not None:
        present = np.minimum(places[active], block.lanes - 1)  # integers
        missing |= ~block.mask[present]
    if missing.any():
        raise AbsentLane(block.thread(active[missing][0]), int(sources[active][missing][0]), "not active")
    return block.spread(values[places[active]])
