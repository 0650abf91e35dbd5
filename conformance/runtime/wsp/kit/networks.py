"""Programs as `wsp.execute` takes them, from one function a statement, and what comes of them.

    network(
        process("producer", send("c", 1), send("c", 2), close("c")),
        process("consumer", consume("c", run("w7"))),
        channels=[channel("c")],
        kernels=work(7),
    )

A member that is not given is left out, so that defaults are the implementation's. A kernel takes the cycles that the
program declares, or what it is measured to take; so expected times are computed from the cycles that kernels report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tessera_conformance.protocol import Rejected, Returned

from .network_model import Modelled, modelled

Network: TypeAlias = dict[str, Any]
Statement: TypeAlias = dict[str, Any]
Ending: TypeAlias = dict[str, Any]

RUNS = 20
"""The number of runs of a case about times or several producers: effects of the host's threads show in some."""


# programs


def network(
    *processes: Mapping[str, Any],
    channels: Iterable[Mapping[str, Any]] = (),
    kernels: Iterable[Mapping[str, Any]] = (),
    policy: str | None = None,
    workers: int = 1,
    window: int | None = None,
) -> Network:
    """Return a program; by default without policy and window."""
    schedule: Network = {}
    if policy is not None:
        schedule["dispatch"] = {"policy": policy, "workers": workers}
    if window is not None:
        schedule["task_window"] = {"size": window, "unit": "tasks", "mode": "stall"}
    return {"channels": list(channels), "kernels": list(kernels), "processes": list(processes), **schedule}


def process(name: str, *body: Statement) -> dict[str, Any]:
    """Return a process and its body."""
    return {"name": name, "body": list(body)}


def channel(name: str, capacity: int | None = None, latency: int | None = None) -> dict[str, Any]:
    """Return a channel; the implementation chooses an omitted capacity or latency."""
    return {"name": name, **_stated(capacity=capacity, latency=latency)}


def channels(*names: str, capacity: int | None = None) -> list[dict[str, Any]]:
    """Channels of one capacity."""
    return [channel(name, capacity) for name in names]


def work(*cycles: int) -> list[dict[str, Any]]:
    """Return the kernel `w<cycles>` for each number of cycles."""
    return [{"name": f"w{count}", "cycles": count} for count in cycles]


def run(kernel: str) -> Statement:
    """Execute a kernel in the time of the process."""
    return {"op": "run", "kernel": kernel}


def send(channel: str, token: int | None = None) -> Statement:
    """Publish a token; without one, the token of the innermost consume."""
    return {"op": "send", "channel": channel, **_stated(token=token)}


def consume(channel: str, *body: Statement) -> Statement:
    """Return a consume: its body runs for each token, until the channel is closed and empty."""
    return {"op": "consume", "channel": channel, "body": list(body)}


def close(channel: str) -> Statement:
    """Close a channel; the last operation of the process on it."""
    return {"op": "close", "channel": channel}


def task(
    kernel: str,
    key: int | None = None,
    reads: Sequence[str] = (),
    writes: Sequence[str] = (),
    waits: Sequence[str] = (),
    signals: Sequence[str] = (),
) -> Statement:
    """Dispatch a kernel to a worker."""
    lists = {"reads": reads, "writes": writes, "waits": waits, "signals": signals}
    named = {name: list(names) for name, names in lists.items() if names}
    return {"op": "task", "kernel": kernel, **_stated(key=key), **named}


def sends(channel: str, tokens: Iterable[int]) -> list[Statement]:
    """Return a send of each token."""
    return [send(channel, token) for token in tokens]


def _stated(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


# Results


def ended(impl: Any, check: Any, program: Network) -> Ending:
    """Return the answer to a program, whatever its outcome."""
    ending: Ending = check.returns(impl.wsp.execute(program=program))
    return ending


def completed(impl: Any, check: Any, program: Network) -> Ending:
    """Return the answer to a program, which must complete."""
    ending = ended(impl, check, program)
    check.equal(ending["outcome"], "completed", f"the outcome{_reason(ending)}")
    return ending


def completed_runs(impl: Any, check: Any, program: Network, runs: int = RUNS) -> Iterator[Ending]:
    """Yield the answers of several runs of a program, which must complete."""
    for _ in range(runs):
        yield completed(impl, check, program)


def stands_still(impl: Any, check: Any, program: Network) -> None:
    """Check that a program ends in a deadlock, whatever its report contains."""
    check.equal(ended(impl, check, program)["outcome"], "deadlock", "the outcome")


def deadlocked(impl: Any, check: Any, program: Network) -> dict[str, Any]:
    """Return the report of a program; check that it ends in a deadlock."""
    ending = ended(impl, check, program)
    check.equal(ending["outcome"], "deadlock", f"the outcome{_reason(ending)}")
    check.true("deadlock" in ending, "there is a report", sorted(ending))
    report: dict[str, Any] = ending["deadlock"]
    return report


def offered_policies(impl: Any, check: Any, program: Network) -> dict[str, Ending]:
    """Yield the answers to a program under each policy beside round_robin that the implementation has."""
    endings = {}
    for policy in ("affinity", "hash", "other"):
        dispatch = {**program["dispatch"], "policy": policy}
        observation = impl.wsp.execute(program={**program, "dispatch": dispatch})
        if isinstance(observation, Returned):
            endings[policy] = observation.value
        elif isinstance(observation, Rejected):
            check.rejects(observation, category=("UNSUPPORTED_DIRECTIVE", "INVALID_PROGRAM"))
    return endings


def arrivals(ending: Ending, process: str, channel: str | None = None) -> list[int]:
    """Return the tokens that a process received, of one channel or of all, in order."""
    had = ending["arrivals"].get(process, [])
    return [arrival["token"] for arrival in had if channel in (None, arrival["channel"])]


def kernels(ending: Ending, process: str) -> list[str]:
    """Return the kernels that a process ran, in order."""
    return [report["kernel"] for report in ending["kernels"].get(process, [])]


def reported_cycles(ending: Ending, process: str) -> int:
    """Return the cycles that the kernels of a process report."""
    return sum(report["cycles"] for report in ending["kernels"].get(process, []))


def workers_of_tasks(ending: Ending) -> list[int]:
    """Return the worker of each task, in order of issue."""
    return [task["worker"] for task in ending["tasks"]]


def judge_reports(check: Any, program: Network, ending: Ending) -> None:
    """Check that each kernel with declared cycles reports some."""
    declared = {kernel["name"]: kernel["cycles"] for kernel in program["kernels"]}
    reports = [report for of_process in ending["kernels"].values() for report in of_process] + ending["tasks"]
    silent = [report["kernel"] for report in reports if declared.get(report["kernel"]) and not report["cycles"]]
    check.equal(silent, [], "the kernels that report no cycles")


def judge_time(check: Any, program: Network, ending: Ending) -> None:
    """Check that the makespan is the largest time of a process, by either reading of waits (AMB-WSP-01)."""
    judge_reports(check, program, ending)
    model = model_of(program, ending)
    readings = sorted({max(model.times.values(), default=0), max(model.busy.values(), default=0)})
    what = f"the time of the run is {' or '.join(map(str, readings))}"
    check.true(ending["total_cycles"] in readings, what, ending["total_cycles"])


def model_of(program: Network, ending: Ending | None = None) -> Modelled:
    """Return the outcome of a program in the model, with the cycles that its kernels report."""
    reported = {} if ending is None else ending["kernels"]
    return modelled(program, {name: [report["cycles"] for report in reports] for name, reports in reported.items()})


def _reason(ending: Ending) -> str:
    why = ending.get("error") or ending.get("deadlock")
    return f", with {str(why)[:300]}" if why else ""
