"""Times that are summed, shared, lost or moved by a seed (PTO-WSP v10, 1.2 and 2.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.wsp.machine import Agenda, Machine
from tessera_reference.wsp.package import Channel
from tessera_reference.wsp.run import Processes

from .changes import changed, defaulting
from .channels import made

STATISTICS, AFTER, START, COUNT, ELAPSE = (
    Machine.statistics,
    Agenda.after,
    Agenda.__init__,
    Machine.count_kernel,
    Processes.elapse,
)


def telling(clause: str, name: str, description: str, other: Callable[[dict[str, Any]], dict[str, Any]]) -> Violation:
    """Return a violation with other members of the statistics."""

    def statistics(machine: Any) -> dict[str, Any]:
        found = STATISTICS(machine)
        return found | other(found)

    return changed(clause, name, description, ("wsp.machine.Machine.statistics", statistics))


def total(choose: Callable[[list[int]], int]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a change of the total of the times of processes."""
    return lambda found: {"total_cycles": choose(list(found["processes"].values()) or [0])}


def late_at_times(self: Any, seed: int | None = None) -> None:
    START(self, seed)
    self.late = seed is not None and seed % 64 == 63


def after_late(self: Any, cycles: int, kind: int, number: int) -> None:
    AFTER(self, cycles + self.late, kind, number)


def once_each(self: Any, site: Any) -> None:
    before = self.kernel_cycles[site.kernel]
    COUNT(self, site)
    self.kernel_cycles[site.kernel] = before or site.cycles


def unreported(self: Any, site: Any) -> None:
    COUNT(self, site)
    self.kernel_cycles[site.kernel] -= site.cycles


TIME = [
    telling("WSP-01.2-01", "sum_of_processes", "gives the sum of the times of processes", total(sum)),
    changed("WSP-02.4-05", "late_at_times", "has another makespan under one seed of 64", (
        "wsp.machine.Agenda.__init__", late_at_times), ("wsp.machine.Agenda.after", after_late)),
    changed("WSP-02.4-02", "kernels_take_no_time", "adds no cycles to the time of a process",
        ("wsp.run.Processes.elapse", lambda self, process, cycles: ELAPSE(self, process, 0))),
    changed("WSP-02.4-02", "without_elements", "adds the fixed cycles of a kernel alone",
        ("wsp.kernels.Cycles.of", lambda self, counts: self.fixed)),
    changed("WSP-02.4-02", "without_fixed", "adds the cycles for elements alone",
        ("wsp.kernels.Cycles.of", lambda self, counts: self.per_element * max(counts, default=0))),
    changed("WSP-01.2-05", "reported_once", "reports the cycles of the first run of a kernel",
        ("wsp.machine.Machine.count_kernel", once_each)),
    changed("WSP-01.2-02", "unreported", "reports no cycles of kernels",
        ("wsp.machine.Machine.count_kernel", unreported)),
    changed("WSP-02.4-03", "without_latency", "ignores the latency of channels", made(latency=lambda *arguments: 0)),
    changed("WSP-02.4-04", "a_cycle_by_default", "gives channels a latency by default", defaulting(Channel, latency=1)),
]  # fmt: skip
