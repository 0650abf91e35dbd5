"""Writes the C program of one package, or of several, which then run one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files

from ..expressions import Constant
from ..package import Package, Process
from ..producers import consumed_channels, produced_channels
from .c_expressions import Temporaries
from .c_processes import StateMachine
from .c_sites import Sites
from .c_text import NUMBER, array, block, text

__all__ = ["RUNTIME", "c_program", "runtime_text"]

RUNTIME = (
    "memory.c",
    "heap.c",
    "agenda.c",
    "resources.c",
    "channels.c",
    "waits.c",
    "tensor_map.c",
    "tasks.c",
    "steps.c",
    "arithmetic.c",
    "wait_graph.c",
    "trials.c",
    "mitigations.c",
    "report.c",
    "result.c",
    "run.c",
    "main.c",
)
"""The pieces of the runtime, after `runtime.h`."""
INCLUDE = '#include "runtime.h"\n'
PLACES: Mapping[str, str] = {
    "round_robin": "return task % {workers};",
    "affinity": "return key % {workers};",
    "hash": "return wsp_fnv1a(key) % {workers};",
}
"""The policies that have no expression."""


def c_program(packages: Sequence[Package]) -> str:
    """A whole program in one text, whatever the number of packages."""
    lines = [runtime_text()]
    names = []
    for place, package in enumerate(packages):
        names.append(f"&p{place}_program")
        lines += _program(package, f"p{place}_")
    table = array("ProgramInfo *const", "wsp_programs", names)[0]
    table[0] = table[0].removeprefix("static ")
    count = f"const size_t wsp_program_count = {len(packages)};"
    return "\n".join([*lines, *table, count]) + "\n"


def runtime_text() -> str:
    """The runtime in one text."""
    place = files(__package__).joinpath("runtime")
    pieces = [place.joinpath(each).read_text(encoding="utf-8") for each in ("runtime.h", *RUNTIME)]
    return "\n".join(each.replace(INCLUDE, "") for each in pieces)


def _program(package: Package, prefix: str) -> Iterator[str]:
    """What is a package's own."""
    sites = Sites(package, prefix)
    processes = [_Process(each, sites, f"{prefix}process{place}") for place, each in enumerate(package.processes)]
    yield f"/* package {package.name} */"
    yield from sites.lines
    for each in processes:
        yield from each.lines
    yield from _placement(package, f"{prefix}place")
    resources = package.schedule.resources
    sizes = [package.schedule.task_window.size, *(resources[each] for each in resources)]
    members = [
        text(package.name),
        *map(str, map(len, (package.kernels, package.channels, package.processes, package.slots))),
        *map(str, map(len, (package.symbols, package.tensors))),
        str(package.schedule.policy.parameters["workers"]),
    ]
    for kind, table, values in _tables(package, processes, prefix):
        lines, reference = array(kind, f"{prefix}{table}", values)
        yield from lines
        members.append(reference)
    members.append(f"{{{', '.join(f'UINT64_C({each})' for each in sizes)}}}")
    members += [f"{prefix}place", str(sites.most_scalars), str(sites.most_reads)]
    yield f"static const ProgramInfo {prefix}program = {{{', '.join(members)}}};"


class _Process:
    def __init__(self, process: Process, sites: Sites, name: str) -> None:
        produces, consumes = produced_channels(process.body), consumed_channels(process.body)
        machine = StateMachine(process.body, produces, sites)
        statements = [text(each) for each in machine.statements]
        self.lines = machine.function(name)
        members = [text(process.name), name, self._listed("char *const", f"{name}_statements", statements)]
        for suffix, channels in (("produces", produces), ("consumes", consumes)):
            members += [str(len(channels)), self._listed(NUMBER, f"{name}_{suffix}", channels)]
        self.info = f"{{{', '.join([*members, str(machine.loop_depth)])}}}"

    def _listed(self, kind: str, name: str, values: Sequence[object]) -> str:
        lines, reference = array(kind, name, values)
        self.lines += lines
        return reference


def _tables(
    package: Package, processes: Sequence[_Process], prefix: str
) -> Iterator[tuple[str, str, Sequence[object]]]:
    yield "char *const", "kernels", [text(each.name) for each in package.kernels]
    channels = [f"{{{text(each.name)}, {each.capacity}U, {each.latency}U}}" for each in package.channels]
    yield "ChannelInfo", "channels", channels
    yield "ProcessInfo", "processes", [each.info for each in processes]
    yield "char *const", "slots", [text(each) for each in package.slots]
    symbols = [f"{{{text(each.name)}, {each.width}, UINT64_C({each.default})}}" for each in package.symbols]
    yield "SymbolInfo", "symbols", symbols
    tensors = []
    for each in package.tensors:
        initial = "NULL" if each.initial is None else f"(const uint8_t[]){{{', '.join(map(str, each.initial))}}}"
        tensors.append(f"{{{text(each.name)}, {each.dtype.upper()}, {each.count}U, {each.nbytes}U, {initial}}}")
    yield "TensorInfo", "tensors", tensors


def _placement(package: Package, name: str) -> list[str]:
    """The dispatch policy as a function from issue number and key to a worker."""
    policy = package.schedule.policy
    workers = policy.parameters["workers"]
    lines = ["(void)m;", "(void)task;", "(void)key;"]
    if policy.id in PLACES:
        lines.append(PLACES[policy.id].format(workers=workers))
    else:
        expression = policy.parameters["worker"]
        values = Temporaries()
        worker = values.value(Constant(expression) if isinstance(expression, int) else expression)
        lines += [*values.lines, f"if ({worker} >= {workers}) wsp_bad_worker(m, task, {worker});", f"return {worker};"]
    return block(f"static u64 {name}(Machine *m, u64 task, u64 key)", lines)
