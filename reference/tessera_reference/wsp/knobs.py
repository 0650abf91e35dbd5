"""The settings of a package that a run may change: sizes of resources, capacities of channels, and scopes left out.

`task_window`, `tensormap_pool`, `deplist_pool`, `heap_arena`, `ready_queue`, `channel.NAME.capacity`; `scope.NAME`
executes a process as if its scopes were not there, whatever the number says (AMB-WSP-71).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .errors import ArgumentRefused
from .package import RESOURCES, Package

__all__ = ["applied", "capacity_of", "no_scopes_of"]

MOST = (1 << 32) - 1


def capacity_of(channel: str) -> str:
    """The knob of a channel."""
    return f"channel.{channel}.capacity"


def no_scopes_of(process: str) -> str:
    """The knob that leaves out the scopes of a process."""
    return f"scope.{process}"


def applied(package: Package, knobs: Mapping[str, int]) -> Package:
    """The package with other settings. Raises `ArgumentRefused`."""
    for knob, value in knobs.items():
        package = _with(package, knob, value)
    return package


def _with(package: Package, knob: str, value: int) -> Package:
    schedule = package.schedule
    capacities = {capacity_of(each.name): place for place, each in enumerate(package.channels)}
    scopes = {no_scopes_of(each.name): place for place, each in enumerate(package.processes)}
    if not (knob in capacities and value == 0) and not 1 <= value <= MOST:
        raise ArgumentRefused(f"resource {knob}"[:120], f"{value} is no size, expected 1 to {MOST}")
    if knob == "task_window":
        return replace(package, schedule=replace(schedule, task_window=replace(schedule.task_window, size=value)))
    if knob in RESOURCES:
        return replace(package, schedule=replace(schedule, resources={**schedule.resources, knob: value}))
    if knob in capacities:
        channels = list(package.channels)
        channels[capacities[knob]] = replace(channels[capacities[knob]], capacity=value)
        return replace(package, channels=tuple(channels))
    if knob in scopes:
        processes = list(package.processes)
        processes[scopes[knob]] = replace(processes[scopes[knob]], without_scopes=True)
        return replace(package, processes=tuple(processes))
    raise ArgumentRefused(f"resource {knob}"[:120], f"expected task_window, {', '.join([*RESOURCES, *capacities])}")
