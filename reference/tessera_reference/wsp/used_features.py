"""Which CSP features and predicate mechanisms a program uses, by the names of the capability matrix (section 5.2)."""

from __future__ import annotations

from collections.abc import Iterator

from .checks import walk
from .package import Package
from .producers import consumed_channels, produced_channels
from .statements import Cond, Load, Repeat, RunKernel, Statement, Task, Wait

__all__ = ["used_csp_features", "used_predicates"]


def used_csp_features(package: Package) -> tuple[str, ...]:
    """In the order of first use."""
    return tuple(dict.fromkeys(_csp_features(package)))


def used_predicates(package: Package) -> tuple[str, ...]:
    """In the order of first use."""
    return tuple(dict.fromkeys(_predicates(package)))


def _csp_features(package: Package) -> Iterator[str]:
    for place, channel in enumerate(package.channels):
        yield "sync_only_channels"
        if channel.capacity == 0:
            yield "rendezvous"
        if channel.latency:
            yield "latency"
        if sum(place in produced_channels(each.body) for each in package.processes) > 1:
            yield "several_producers"
        if sum(place in consumed_channels(each.body) for each in package.processes) > 1:
            yield "several_consumers"
    for each in _statements(package):
        if isinstance(each, Task) and (each.waits or each.signals):
            yield "task_signals"
        elif isinstance(each, RunKernel):
            yield "process_kernels"
        elif isinstance(each, Wait):
            yield "wait"


def _predicates(package: Package) -> Iterator[str]:
    if package.symbols:
        yield "symbols_between_runs"
    for each in _statements(package):
        if isinstance(each, Task) and each.key is not None:
            yield "dispatch_key"
        elif isinstance(each, Cond):
            yield "cond"
        elif isinstance(each, Repeat):
            yield "repeat"
        elif isinstance(each, Load):
            yield "tensor_to_slot"


def _statements(package: Package) -> Iterator[Statement]:
    for process in package.processes:
        for _, each in walk(process.body, ""):
            yield each
