"""Times that are summed, shared, lost or moved by a seed (PTO-WSP v10, 1.2 and 2.4)."""

from tessera_reference.wsp.machine import PROCESS_GOES_ON
from tessera_reference.wsp.package import Channel

from ....ir.violators.changes import breaks, changed, wrapped
from .changes import defaulting
from .channels import made


def telling(clause, name, description, other):
    """Return a violation with other members of the statistics."""

    def statistics(usual, state):
        found = usual(state)
        return found | other(found)

    return wrapped(clause, name, description, "wsp.deadlock.statistics", statistics)


@breaks("WSP-01.2-05", "reports the cycles of the first run of a kernel", "wsp.machine.Machine.apply")
def reported_once(usual, self, site, scalars):
    before = self.kernel_cycles[site.kernel]
    usual(self, site, scalars)
    self.kernel_cycles[site.kernel] = before or site.cycles


@breaks("WSP-01.2-02", "reports no cycles of kernels", "wsp.machine.Machine.apply")
def unreported(usual, self, site, scalars):
    usual(self, site, scalars)
    self.kernel_cycles[site.kernel] -= site.cycles


TIME = [
    telling("WSP-01.2-01", "sum_of_processes", "gives the sum of the times of processes",
        lambda found: {"total_cycles": sum(found["processes"].values())}),
    wrapped("WSP-02.4-02", "kernels_take_no_time", "adds no cycles to the time of a process",
        "wsp.machine.Machine.after", lambda usual, self, cycles, kind, number:
        usual(self, 0 if kind == PROCESS_GOES_ON else cycles, kind, number)),
    changed("WSP-02.4-02", "without_elements", "adds the fixed cycles of a kernel alone",
        ("wsp.kernels.Cycles.of", lambda self, counts: self.fixed)),
    changed("WSP-02.4-02", "without_fixed", "adds the cycles for elements alone",
        ("wsp.kernels.Cycles.of", lambda self, counts: self.per_element * max(counts, default=0))),
    wrapped("WSP-02.4-02", "cycles_of_32_bits", "wraps the cycles of a kernel at 2^32", "wsp.kernels.Cycles.of",
        lambda usual, *of: usual(*of) % (1 << 32)),
    changed("WSP-02.4-03", "latency_of_16_bits", "wraps latencies at 65,536",
        made(latency=lambda capacity, latency, producers: latency % 65_536)),
    changed("WSP-02.4-03", "without_latency", "ignores the latency of channels", made(latency=lambda *arguments: 0)),
    changed("WSP-02.4-04", "a_cycle_by_default", "gives channels a latency by default", defaulting(Channel, latency=1)),
    wrapped("WSP-02.4-05", "late_at_times", "has another makespan under one seed of 64", "wsp.machine.Machine.after",
        lambda usual, self, cycles, kind, number:
            usual(self, cycles + ((self._inputs.get("seed") or 0) % 64 == 63), kind, number)),
]  # fmt: skip
