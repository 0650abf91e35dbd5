"""Times that are summed, shared, lost or moved by a seed (PTO-WSP v10, 1.2 and 2.4)."""

from tessera_reference.wsp.package import Channel

from ....ir.violators.changes import around, breaks, changed, wrapped
from .changes import defaulting
from .channels import made


def telling(clause, name, description, other):
    """Return a violation with other members of the statistics."""

    def statistics(usual, machine):
        found = usual(machine)
        return found | other(found)

    return wrapped(clause, name, description, "wsp.machine.Machine.statistics", statistics)


def late_at_times(usual, self, seed=None):
    usual(self, seed)
    self.late = seed is not None and seed % 64 == 63


@breaks("WSP-01.2-05", "reports the cycles of the first run of a kernel", "wsp.machine.Machine.count_kernel")
def reported_once(usual, self, site):
    before = self.kernel_cycles[site.kernel]
    usual(self, site)
    self.kernel_cycles[site.kernel] = before or site.cycles


@breaks("WSP-01.2-02", "reports no cycles of kernels", "wsp.machine.Machine.count_kernel")
def unreported(usual, self, site):
    usual(self, site)
    self.kernel_cycles[site.kernel] -= site.cycles


TIME = [
    telling("WSP-01.2-01", "sum_of_processes", "gives the sum of the times of processes",
        lambda found: {"total_cycles": sum(found["processes"].values())}),
    changed("WSP-02.4-05", "late_at_times", "has another makespan under one seed of 64",
        ("wsp.machine.Agenda.__init__", around(late_at_times)), ("wsp.machine.Agenda.after",
        around(lambda usual, self, cycles, kind, number: usual(self, cycles + self.late, kind, number)))),
    wrapped("WSP-02.4-02", "kernels_take_no_time", "adds no cycles to the time of a process",
        "wsp.run.Processes.elapse", lambda usual, self, process, cycles: usual(self, process, 0)),
    changed("WSP-02.4-02", "without_elements", "adds the fixed cycles of a kernel alone",
        ("wsp.kernels.Cycles.of", lambda self, counts: self.fixed)),
    changed("WSP-02.4-02", "without_fixed", "adds the cycles for elements alone",
        ("wsp.kernels.Cycles.of", lambda self, counts: self.per_element * max(counts, default=0))),
    changed("WSP-02.4-03", "without_latency", "ignores the latency of channels", made(latency=lambda *arguments: 0)),
    changed("WSP-02.4-04", "a_cycle_by_default", "gives channels a latency by default", defaulting(Channel, latency=1)),
]  # fmt: skip
