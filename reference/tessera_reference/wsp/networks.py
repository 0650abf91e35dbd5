"""Process networks: programs of section 2 and 3 in their own words, kernels by name, as `wsp.execute` takes them.

A network becomes a program for `cpu_sim`. A kernel has no instructions and reports the declared cycles. A token that a
process forwards has a slot of its own, and a tensor by name has one element. The result has arrivals and kernels by
process, tasks in order of issue, the makespan, and the report of a deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .builder import Channel, Expr, Kernel, Program, Tensor, compile_program
from .deadlock import knob_of
from .errors import ProgramRefused
from .forms import items, members, name, objects
from .native import NativeRun
from .package import Package
from .run import Run
from .targets import target

TASK = ("key", "reads", "writes", "waits", "signals")
"""The members of a task that may be left out."""


def execute(network: Any, engine: Callable[[Package], Run | NativeRun] = Run) -> dict[str, Any]:
    """Return the outcome of a network by an engine.

    Raises `ProgramRefused`, and `UnsupportedDirective` for an unknown policy.
    """
    stated = members(network, "", ("channels", "kernels", "processes"), ("dispatch", "task_window"))
    kernels = _table(stated["kernels"], "/kernels", "cycles")
    translation = _Translation({kernel["name"]: kernel["cycles"] for kernel in kernels})
    program = translation.program
    program.form["csp"]["channels"] = stated["channels"]
    program.form["schedule"] |= {part: stated[part] for part in ("task_window",) if part in stated}
    if "dispatch" in stated:
        program.dispatch(**members(stated["dispatch"], "/dispatch", ("policy", "workers")))
    for place, process in enumerate(_table(stated["processes"], "/processes", "body")):
        with program.process(process["name"]):
            translation.body(process["body"], f"/processes/{place}/body", [f"s{place}"])
    package, _ = compile_program(program.form, target("cpu_sim"))
    run = engine(package)
    events = run.observe()
    return _ending(package, run.finish().result(), events, [kernel for kernel, *_ in translation.kernels])


def _table(value: Any, path: str, member: str) -> Sequence[Mapping[str, Any]]:
    """Return entries, each of which has a name and a member."""
    entries = objects(value, path)
    for place, entry in enumerate(entries):
        members(entry, f"{path}/{place}", ("name", member), tuple(entry))
        name(entry["name"], f"{path}/{place}/name")
    return entries


class _Translation:
    """The program of a network, in which kernels report cycles by name; methods raise `ProgramRefused`."""

    def __init__(self, cycles: Mapping[str, Any]) -> None:
        self.program = Program("network")
        self.cycles = cycles
        self.kernels: dict[tuple[str, int, int], Kernel] = {}
        """By the name in the network, and how many tensors it reads and writes."""
        self.tensors: dict[str, Tensor] = {}

    def body(self, value: Any, path: str, slots: Sequence[str]) -> None:
        """The statements of a body; the last of the slots has the token of the innermost consume."""
        for place, statement in enumerate(objects(value, path)):
            self.statement(statement, f"{path}/{place}", slots)

    def statement(self, value: Mapping[str, Any], path: str, slots: Sequence[str]) -> None:
        """One statement."""
        match value.get("op"):
            case "run":
                stated = members(value, path, ("op", "kernel"))
                self.program.run(self.kernel(stated["kernel"], path, 0, 0))
            case "send":
                stated = members(value, path, ("op", "channel"), ("token",))
                token = {"constant": stated["token"]} if "token" in stated else {"slot": slots[-1]}
                self.program.send(Channel(stated["channel"]), Expr(token))
            case "consume":
                stated = members(value, path, ("op", "channel", "body"))
                inner = f"{slots[0]}.{len(slots)}"
                with self.program.consume(Channel(stated["channel"]), inner):
                    self.body(stated["body"], f"{path}/body", [*slots, inner])
            case "close":
                self.program.close(Channel(members(value, path, ("op", "channel"))["channel"]))
            case "task":
                self.task(members(value, path, ("op", "kernel"), TASK), path)
            case op:
                raise ProgramRefused(f"{path}/op", f"is {op!r:.120}, expected run, send, consume, close or task")

    def task(self, stated: Mapping[str, Any], path: str) -> None:
        """A task; one that only reads tensors writes one of its own, which no other kernel uses."""
        lists = [items(stated.get(part, []), f"{path}/{part}") for part in ("reads", "writes", "waits", "signals")]
        reads, writes = [[name(item, path) for item in listed] for listed in lists[:2]]
        if reads and not writes:
            writes = [f"own.{len(self.tensors)}"]
        for item in (*reads, *writes):
            if item not in self.tensors:
                self.tensors[item] = self.program.tensor(item, "u64", 1)
        waits, signals = [list(map(Channel, listed)) for listed in lists[2:]]
        key = Expr({"constant": stated["key"]}) if "key" in stated else None
        kernel = self.kernel(stated["kernel"], path, len(reads), len(writes))
        tensors = [self.tensors[item] for item in (*writes, *reads)]
        self.program.task(kernel, *tensors, key=key, waits=waits, signals=signals)

    def kernel(self, value: Any, path: str, reads: int, writes: int) -> Kernel:
        """The kernel of the program for one of the network, which writes its first tensors, and copies the others."""
        form = (name(value, f"{path}/kernel"), reads, writes)
        if form not in self.kernels:
            if form[0] not in self.cycles:
                raise ProgramRefused("/kernels", f"has no kernel {form[0]}")
            written, read = [f"w{place}" for place in range(writes)], [f"r{place}" for place in range(reads)]
            kinds = dict.fromkeys((*written, *read), "tensor")
            kernel = self.program.kernel(f"k{len(self.kernels)}", self.cycles[form[0]], 0, "vector", **kinds)
            for parameter in written:
                kernel.fill(parameter, 0)
            for parameter in read:
                kernel.copy("w0", parameter)
            self.kernels[form] = kernel
        return self.kernels[form]


def _ending(
    package: Package, result: Mapping[str, Any], events: Sequence[Sequence[Any]], kernels: Sequence[str]
) -> dict[str, Any]:
    """The outcome of a run that has ended, and the record of its events."""
    processes = [process.name for process in package.csp.processes]
    ending: dict[str, Any] = {
        "outcome": result["outcome"],
        "total_cycles": result["statistics"]["total_cycles"],
        "arrivals": {process: [] for process in processes},
        "kernels": {process: [] for process in processes},
        "tasks": [],
    }
    for kind, who, what, value in events:
        if kind == "arrival":
            arrival = {"channel": package.csp.channels[what].name, "token": value}
            ending["arrivals"][processes[who]].append(arrival)
        elif kind == "kernel":
            ending["kernels"][processes[who]].append({"kernel": kernels[what], "cycles": value})
        else:
            ending["tasks"].append({"kernel": kernels[who], "worker": what, "cycles": value})
    if "error" in result:
        error = result["error"]
        ending["error"] = f"{error['code']}: {error['process']}: {error['message']}"
    if "deadlock" in result:
        report = result["deadlock"]
        ending["deadlock"] = {  # what section 3.3 asks for
            "window": report["window"],
            "channels": [{"name": channel["name"], "state": channel["state"]} for channel in report["channels"]],
            "waiting": [
                {"process": wait["process"], "for": knob_of(wait["for"]), "reason": wait["reason"]}
                for wait in report["waiting"]
                if "task" not in wait
            ],
            "mitigations": [f"{mitigation['knob']}: {mitigation['why']}" for mitigation in report["mitigations"]],
        }
    return ending
