"""Process networks: programs of section 2 and 3 in their own words, kernels by name, as `wsp.execute` takes them.

A network becomes a program for `cpu_sim`. A kernel has no instructions and reports the declared cycles. A token that a
process forwards has a slot of its own, and a tensor by name has one element. The result has arrivals and kernels by
process, tasks in order of issue, the makespan, and the report of a deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .builder import compile_program
from .errors import ProgramRefused
from .forms import members, name, objects
from .native import NativeRun
from .package import Package
from .run import Run
from .targets import target

TASK = ("key", "reads", "writes", "waits", "signals")
"""The members of a task that may be left out."""
TENSOR = {"dtype": "u64", "count": 1}


def execute(network: Any, engine: Callable[[Package], Run | NativeRun] = Run) -> dict[str, Any]:
    """Return the outcome of a network by an engine.

    Raises `ProgramRefused`, and `UnsupportedDirective` for an unknown policy.
    """
    stated = members(network, "", ("channels", "kernels", "processes"), ("dispatch", "task_window"))
    translation = _Translation()
    processes = [
        {"name": process["name"], "body": translation.body(process["body"], f"/processes/{place}/body", [f"s{place}"])}
        for place, process in enumerate(objects(stated["processes"], "/processes"))
    ]
    cycles = {kernel["name"]: kernel["cycles"] for kernel in objects(stated["kernels"], "/kernels")}
    schedule = {part: stated[part] for part in ("task_window",) if part in stated}
    if "dispatch" in stated:
        dispatch = members(stated["dispatch"], "/dispatch", ("policy", "workers"))
        schedule["policy"] = {"id": dispatch["policy"], "parameters": {"workers": dispatch["workers"]}}
    cpu_sim = target("cpu_sim")
    assert cpu_sim is not None
    package, _ = compile_program(
        {
            "name": "network",
            "kernels": list(translation.program_kernels(cycles)),
            "schedule": schedule,
            "csp": {"channels": stated["channels"], "processes": processes},
            "tensors": [{"name": tensor, **TENSOR} for tensor in translation.tensors],
        },
        cpu_sim,
    )
    run = engine(package)
    events = run.observe()
    return _ending(package, run.finish().result(), events, [kernel for kernel, *_ in translation.kernels])


@dataclass
class _Translation:
    """Statements of a network as those of a program, and the kernels and tensors that they use."""

    kernels: dict[tuple[str, int, int], str] = field(default_factory=dict)
    """The name of the kernel in the program, by its name in the network and how many tensors it reads and writes."""
    tensors: dict[str, None] = field(default_factory=dict)

    def body(self, value: Any, path: str, slots: Sequence[str]) -> list[dict[str, Any]]:
        """The statements of a body; the last of the slots has the token of the innermost consume."""
        return [
            self.statement(statement, f"{path}/{place}", slots) for place, statement in enumerate(objects(value, path))
        ]

    def statement(self, value: Mapping[str, Any], path: str, slots: Sequence[str]) -> dict[str, Any]:
        """One statement. Raises `ProgramRefused`."""
        match value.get("op"):
            case "run":
                stated = members(value, path, ("op", "kernel"))
                return {"op": "run", "kernel": self.kernel(stated["kernel"], path, 0, 0), "arguments": []}
            case "send":
                stated = members(value, path, ("op", "channel"), ("token",))
                token = {"constant": stated["token"]} if "token" in stated else {"slot": slots[-1]}
                return {"op": "send", "channel": stated["channel"], "value": token}
            case "consume":
                stated = members(value, path, ("op", "channel", "body"))
                inner = f"{slots[0]}.{len(slots)}"
                body = self.body(stated["body"], f"{path}/body", [*slots, inner])
                return {"op": "consume", "channel": stated["channel"], "into": inner, "body": body}
            case "close":
                return dict(members(value, path, ("op", "channel")))
            case "task":
                return self.task(members(value, path, ("op", "kernel"), TASK), path)
        raise ProgramRefused(f"{path}/op", f"is {value.get('op')!r:.120}, expected run, send, consume, close or task")

    def task(self, stated: Mapping[str, Any], path: str) -> dict[str, Any]:
        """A task; one that only reads tensors writes one of its own, which no other kernel uses."""
        reads, writes = [[name(item, path) for item in stated.get(part, ())] for part in ("reads", "writes")]
        if reads and not writes:
            writes = [f"own.{len(self.tensors)}"]
        self.tensors |= dict.fromkeys([*reads, *writes])
        more: dict[str, Any] = {part: list(stated[part]) for part in ("waits", "signals") if stated.get(part)}
        if "key" in stated:
            more["key"] = {"constant": stated["key"]}
        kernel = self.kernel(stated["kernel"], path, len(reads), len(writes))
        return {"op": "task", "kernel": kernel, "arguments": [{"tensor": write} for write in (*writes, *reads)], **more}

    def kernel(self, value: Any, path: str, reads: int, writes: int) -> str:
        """The kernel of the program for one of the network."""
        form = (name(value, f"{path}/kernel"), reads, writes)
        return self.kernels.setdefault(form, f"k{len(self.kernels)}")

    def program_kernels(self, cycles: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The kernels of the program: each writes its first tensors, and copies the others into the first."""
        for (kernel, reads, writes), called in self.kernels.items():
            if kernel not in cycles:
                raise ProgramRefused("/kernels", f"has no kernel {kernel}")
            written = [f"w{place}" for place in range(writes)]
            read = [f"r{place}" for place in range(reads)]
            instructions: list[dict[str, Any]] = [
                {"op": "fill", "destination": name, "operands": [{"constant": 0}]} for name in written
            ]
            instructions += [{"op": "copy", "destination": "w0", "operands": [{"parameter": name}]} for name in read]
            parameters = [{"name": name, "kind": "tensor"} for name in (*written, *read)]
            payload = {"form": "wsp-kernel", "parameters": parameters, "instructions": instructions}
            yield {"name": called, "payload": payload, "cycles": {"fixed": cycles[kernel], "per_element": 0}}


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
                {
                    "process": wait["process"],
                    "for": "task_window" if wait["for"] == "task_ring" else wait["for"],
                    "reason": wait["reason"],
                }
                for wait in report["waiting"]
                if "task" not in wait
            ],
            "mitigations": [f"{mitigation['knob']}: {mitigation['why']}" for mitigation in report["mitigations"]],
        }
    return ending
