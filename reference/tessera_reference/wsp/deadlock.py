"""The result of a run: statistics, and the report of a deadlock with tried mitigations; texts and drawings.

An engine, the executor or the native program, gives the state in which a run ended; everything here follows from it
(sections 1.2, 3.3, 3.4.2 and 3.4.3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from .errors import first_cycle
from .forms import MOST
from .machine import RESOURCE_OF
from .package import Package, capacity_of, no_scopes_of

State = Mapping[str, Any]
"""A state as `Run.state` gives it, or a part of it."""
Execute = Callable[[Mapping[str, int], int], State]
"""Executes the package again with other settings, for some steps; returns the state in which it ended or was left."""


def explained(package: Package, state: State, execute: Execute) -> dict[str, Any]:
    """Return the result of a run (`schemas/wsp_result.schema.json`) from its state, with the report of a deadlock."""
    result = {"outcome": state["outcome"], "statistics": statistics(state)}
    if "error" in state:
        result["error"] = state["error"]
    if state["outcome"] == "deadlock":
        deadlock = report(package, state)
        result["deadlock"] = deadlock | {"mitigations": mitigations(package, deadlock, state, execute)}
    return result


def statistics(state: State) -> dict[str, Any]:
    """Return the statistics of a run; stalls that last count up to now."""
    processes, workers, resources = state["processes"], state["workers"], _resources(state)
    running = {worker["task"] for worker in workers}
    waits = [({"process": name}, process["waiting"]) for name, process in processes.items()]
    waits += [({"task": task["task"]}, task["waiting"]) for task in state["tasks"] if task["task"] in running]
    current = [
        {**who, "reason": wait["reason"], "since": wait["since"], "for": wait["subject"]}
        for who, wait in waits
        if wait is not None and wait["reason"] != "TASK_WAIT"
    ]
    lasting: Counter[str] = Counter()
    for stall in current:
        lasting[stall["reason"]] += state["time"] - stall["since"]
    return {
        "total_cycles": state["total_cycles"],
        "processes": {name: process["time"] for name, process in processes.items()},
        "workers": [{"busy": worker["busy"], "tasks": worker["tasks"]} for worker in workers],
        "kernels": state["kernels"],
        "stalls": {
            reason: {"count": stall["count"], "cycles": stall["cycles"] + lasting[reason]}
            for reason, stall in state["stalls"].items()
        },
        "current_stalls": current,
        "used": {name: resource["used"] for name, resource in resources.items()},
        "high_water": {name: resource["high_water"] for name, resource in resources.items()},
        "channels": {
            name: {"sent": at["taken"] + at["tokens"], "taken": at["taken"], "left": at["tokens"]}
            for name, at in state["channels"].items()
        },
        **{name: state[name] for name in ("slots", "tensors", "assignments")},
    }


def _resources(state: State) -> dict[str, Any]:
    """The size, use and high-water mark of each resource; `ready_queue` is that of the fullest worker."""
    queue = state["resources"]["ready_queue"] | {"used": max(_queued(state).values(), default=0)}
    return {**state["resources"], "ready_queue": queue}


def _queued(state: State) -> Counter[int]:
    """The tasks in the ready queue of each worker."""
    return Counter(task["worker"] for task in state["tasks"] if task["holds"]["ready_queue"])


# The report of a deadlock (sections 3.3 and 3.4.3): nothing is due, and a process or task is not done.


def report(package: Package, state: State) -> dict[str, Any]:
    """Return the report (`schemas/wsp_report.schema.json`) without mitigations."""
    waits, resources = list(_waiting(state)), _resources(state)
    spinning = {} if state["spinning"] is None else {"spinning": state["spinning"]}
    return spinning | {
        "time": state["time"],
        "window": resources["task_ring"],
        "resources": resources,
        "channels": [
            {
                "name": name,
                "state": "full" if at["senders"] else "empty",
                "capacity": at["capacity"],
                "tokens": at["tokens"],
                "closed": at["producers"] == 0,
            }
            for name, at in state["channels"].items()
            if at["takers"] or at["senders"]
        ],
        "waiting": waits,
        "cycle": first_cycle(_wait_graph(package, state)),
        "scopes": [
            {"process": name, "depth": len(scopes), "held": sum(held.get("task_ring", 0) for held in scopes)}
            for name, at in state["processes"].items()
            if (scopes := at["scopes"])
        ],
        "held_by_scopes": any(_held_by_scopes(at, *_lacking(waits)) for at in state["processes"].values()),
    }


def _waiting(state: State) -> Iterator[dict[str, Any]]:
    """Every process that waits, then every task in flight, with the reason."""
    empty = _awaited_channels(state)
    for name, at in state["processes"].items():
        if at["waiting"] is not None:
            yield {"process": name, "statement": at["statement"], **_reason(at["waiting"], ())}
    for task in state["tasks"]:
        who = {name: task[name] for name in ("task", "process", "statement")}
        yield who | _reason(task["waiting"], empty.get(task["task"], ()))


def _reason(waiting: State | None, empty: Sequence[str]) -> dict[str, str]:
    """The reason of a wait and its subject; what does not wait itself waits for a token, or else for tasks."""
    if waiting is not None:
        return {"reason": waiting["reason"], "for": waiting["subject"]}
    return {"reason": "CHANNEL_EMPTY_WAIT", "for": empty[0]} if empty else {"reason": "TASK_WAIT", "for": "tasks"}


def _awaited_channels(state: State) -> Mapping[int, Sequence[str]]:
    """The channels of which tasks in flight wait for tokens, by task number."""
    channels: dict[int, list[str]] = {}
    for name, channel in state["channels"].items():
        for number in channel["tasks"]:
            channels.setdefault(number, []).append(name)
    return channels


def _lacking(waits: Sequence[State]) -> list[str]:
    """The resources that somebody waits for."""
    reasons = {wait["reason"] for wait in waits}
    return [resource for reason, resource in RESOURCE_OF.items() if reason in reasons]


def _held_by_scopes(process: State, *resources: str) -> bool:
    return any(held.get(resource) for held in process["scopes"] for resource in resources)


def _awaited(wait: State) -> list[str]:
    """The channel or the resource that a process or task waits for; tasks are not named."""
    kind = "channel" if wait["reason"].startswith("CHANNEL") else "resource"
    return [] if wait["reason"] == "TASK_WAIT" else [f"{kind} {wait['for']}"]


def _wait_graph(package: Package, state: State) -> dict[str, list[str]]:
    """Return the names that each process, task, channel and resource waits for, by name."""
    processes, tasks = state["processes"], state["tasks"]
    graph = {_who(wait): _awaited(wait) for wait in _waiting(state) if "task" not in wait}
    for place, (name, channel) in enumerate(state["channels"].items()):
        full = channel["senders"]
        graph[f"channel {name}"] = [
            f"process {process.name}"
            for process in package.csp.processes
            if not processes[process.name]["done"] and place in (process.consumes if full else process.produces)
            if full or name not in processes[process.name]["closed"]
        ] + [_who(task) for task in tasks if name in task["signals"] and not full]
    graph |= {f"scope of {name}": [f"process {name}"] for name, at in processes.items() if at["scopes"]}
    for resource in RESOURCE_OF.values():
        scopes = [f"scope of {name}" for name, at in processes.items() if _held_by_scopes(at, resource)]
        graph[f"resource {resource}"] = scopes + [_who(task) for task in _holders(state, resource)]
    empty = _awaited_channels(state)
    for task in tasks:
        current = state["workers"][task["worker"]]["task"]
        graph[_who(task)] = [
            *([] if task["waiting"] is None else [f"channel {task['waiting']['subject']}"]),
            *(f"channel {name}" for name in empty.get(task["task"], ())),
            *([] if current in (None, task["task"]) else [f"task {current}"]),
        ]
    for task in tasks:
        for dependent in task["dependents"]:
            graph[dependent].append(_who(task))
    return graph


def _holders(state: State, resource: str) -> Iterator[State]:
    """The tasks that hold some of a resource; a place in a ready queue counts where the queue is full."""
    queued = _queued(state)
    for task in state["tasks"]:
        full = resource != "ready_queue" or queued[task["worker"]] >= state["resources"]["ready_queue"]["size"]
        if task["holds"][resource] and full:
            yield task


# Mitigations of a deadlock (sections 3.3 and 3.4.3), each tried: the package was executed again with it, and went on.
#
# A knob stands alone where raising it alone is enough, with the smallest value that was found; else those that it
# needs beside it stand with it (`also`). Where a scope holds what is lacking, its process is tried without scopes.
# Where nothing helps, the program is to be restructured. The search takes a bounded number of steps (AMB-WSP-72).


Knobs = Mapping[str, int]
AMPLE = MOST
"""A size that nothing in reach exhausts."""
MOST_KNOBS = 16
RESTRUCTURE = "no setting was found that helps: change which process waits for which"
LEAST_STEPS = 200_000
"""The steps that a search may take in all, beside 8 for each token, kernel and task of the run."""


def mitigations(package: Package, report: State, state: State, execute: Execute) -> list[dict[str, Any]]:
    """Return the settings that avoid a deadlock, found by executions with them."""
    search = _Search(package, report, execute, state["progress"], LEAST_STEPS + 8 * state["progress"])
    alone = [search.cure({knob: size}) for knob, size in _exhausted(report).items()]
    settings = [cure for cure in alone if cure is not None] or search.together()
    return [*settings, *search.scopes()] or [{"knob": "restructure", "why": RESTRUCTURE}]


@dataclass
class _Search:
    """A search for settings that bring a run past its deadlock, with the steps that are left for it."""

    package: Package
    report: Mapping[str, Any]
    execute: Execute
    past: int
    left: int

    def scopes(self) -> Iterator[dict[str, Any]]:
        """Each process whose scopes hold something, if it goes on without them."""
        for scope in self.report["scopes"]:
            knob = no_scopes_of(scope["process"])
            if scope["held"] and self.report["held_by_scopes"] and _helps(self._tried({knob: 1})):
                reason = f"its scopes hold the outputs of {scope['held']} complete tasks"
                yield {"knob": knob, "why": f"{reason}: without them the run goes on, so end them sooner"}

    def together(self) -> list[dict[str, Any]]:
        """Several knobs, where one deadlock follows upon another."""
        raised: dict[str, int] = {}
        lacking = _exhausted(self.report)
        while lacking and len(raised) < MOST_KNOBS:
            raised |= lacking
            trial = self._tried(dict.fromkeys(raised, AMPLE))
            if _helps(trial):
                return [self._least_of_each(raised, trial)]
            following = _exhausted(report(self.package, trial)) if trial["outcome"] == "deadlock" else {}
            lacking = {knob: size for knob, size in following.items() if knob not in raised}
        return []

    def cure(self, sizes: Knobs) -> dict[str, Any] | None:
        """A mitigation by these knobs; None where raising them is not enough."""
        trial = self._tried(dict.fromkeys(sizes, AMPLE))
        return self._least_of_each(sizes, trial) if _helps(trial) else None

    def _least_of_each(self, sizes: Knobs, trial: State) -> dict[str, Any]:
        """A mitigation by knobs that are lowered one after the other; those that are not needed are left out."""
        chosen = dict.fromkeys(sizes, AMPLE)
        all_smallest = True
        for knob, size in sizes.items():
            others = {setting: value for setting, value in chosen.items() if setting != knob}
            without = self._tried(others) if others else None
            if without is not None and _helps(without):
                del chosen[knob]
                trial = without
                continue
            chosen[knob], smallest, trial = self._least(knob, size, trial, others)
            all_smallest &= smallest
        settings = " and ".join(f"{knob} {value}" for knob, value in chosen.items())
        effect = "completes" if trial["outcome"] == "completed" else "goes past this deadlock"
        first, *also = [{"knob": knob, "at_least": value} for knob, value in chosen.items()]
        stated = {"smallest": all_smallest, "why": f"with {settings} the run {effect}"}
        return {**first, **({"also": also} if also else {}), **stated}

    def _least(self, knob: str, size: int, ample: State, others: Knobs) -> tuple[int, bool, State]:
        """The smallest value that helps, whether the one below was seen not to, and the trial with it."""
        fails, helps, best = size, max(_demand(ample)[knob], size + 1), ample
        stride = 1
        while helps - fails > 1:
            value = min(fails + stride, (fails + helps) // 2)
            trial = self._tried({**others, knob: value})
            if trial["outcome"] == "unknown":
                return helps, False, best
            if trial["outcome"] == ample["outcome"]:
                helps, best, stride = value, trial, 1
            else:
                fails, stride = value, stride * 2
        return helps, best["outcome"] == "completed", best

    def _tried(self, knobs: Knobs) -> State:
        """Return the state of an execution with these settings, for a quarter of the steps that are left.

        Its outcome is completed, further (it went past the deadlock, and was left there), deadlock, error or unknown.
        """
        state = dict(self.execute(knobs, self.left // 4))
        self.left -= state["steps"]
        if state["outcome"] == "running":
            state["outcome"] = "further" if state["progress"] > self.past else "unknown"
        return state


def _helps(state: State) -> bool:
    """True if an execution went past the deadlock."""
    return state["outcome"] in ("completed", "further")


def _demand(state: State) -> dict[str, int]:
    """The most that an execution had of each knob."""
    demand = {knob_of(name): resource["high_water"] for name, resource in state["resources"].items()}
    for name, channel in state["channels"].items():
        demand[capacity_of(name)] = min(channel["taken"] + channel["tokens"] + channel["senders"], AMPLE)
    return demand


def _exhausted(report: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of the knobs whose shortage somebody waits for."""
    full = {wait["for"] for wait in report["waiting"] if wait["reason"] == "CHANNEL_FULL_WAIT"}
    channels = [channel for channel in report["channels"] if channel["name"] in full]
    return {
        **{knob_of(name): report["resources"][name]["size"] for name in _lacking(report["waiting"])},
        **{capacity_of(channel["name"]): channel["capacity"] for channel in channels},
    }


def knob_of(resource: str) -> str:
    """Return the knob of a resource; what is none stays as it is."""
    return "task_window" if resource == "task_ring" else resource


# The report of a deadlock for people: lines of text (sections 3.3 and 3.4.3).


MOST_SHOWN = 24
"""The most waiting processes and tasks that are shown."""


def explanation(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that explain a run, with the report of a deadlock (`schemas/wsp_result.schema.json`)."""
    if "deadlock" in result:
        yield from _deadlock(result["deadlock"])
    elif "error" in result:
        error = result["error"]
        where = f"{error['process']} at {error['statement']}"
        yield f"error {error['code']} at {error['time']}: {where}: {error['message']}"
    else:
        yield f"{result['outcome']}, total_cycles {result['statistics']['total_cycles']}"
        yield from _stalls(result["statistics"])


def _stalls(statistics: Mapping[str, Any]) -> Iterator[str]:
    """Yield the reasons for which a run waited, the longest wait first, and the resource that each is about."""
    waits = [(name, entry) for name, entry in statistics["stalls"].items() if entry["count"]]
    for reason, wait in sorted(waits, key=lambda pair: (-pair[1]["cycles"], pair[0])):
        times = "once" if wait["count"] == 1 else f"{wait['count']} times"
        resource = RESOURCE_OF.get(reason)
        bound = f"; {resource} held at most {statistics['high_water'][resource]}" if resource else ""
        yield f"stalled: {reason} {times}, {wait['cycles']} cycles in all{bound}"


def _deadlock(report: Mapping[str, Any]) -> Iterator[str]:
    cycle, notes = report["cycle"], [f"{name}: {note}" for name, note in _notes(report).items()]
    hidden = max(0, len(report["waiting"]) - MOST_SHOWN)
    yield f"deadlock at {report['time']}"
    yield from notes[: len(notes) - hidden]
    if hidden:
        yield f"and {hidden} more"
    if "spinning" in report:
        yield f"spinning: process {report['spinning']} goes on without a kernel, a token or a task"
    yield f"cycle: {' -> '.join([*cycle, cycle[0]]) if cycle else 'none, no waiting party could end it'}"
    if report["held_by_scopes"]:
        yield "scopes hold the resources that are lacking"
    for mitigation in report["mitigations"]:
        at_least = f" = {mitigation['at_least']}" if "at_least" in mitigation else ""
        yield f"helps: {mitigation['knob']}{at_least}: {mitigation['why']}"


def _notes(report: Mapping[str, Any]) -> dict[str, str]:
    """Return what a report says of resources that were used, channels, scopes and at last who waits, by name."""
    notes = {
        f"resource {name}": f"{use['used']} of {use['size']} used, at most {use['high_water']}"
        for name, use in report["resources"].items()
        if use["high_water"]
    }
    for channel in report["channels"]:
        closed = ", closed" if channel["closed"] else ""
        tokens = f"{channel['tokens']} of {channel['capacity']} tokens{closed}"
        notes[f"channel {channel['name']}"] = f"{channel['state']}, {tokens}"
    for scope in report["scopes"]:
        notes[f"scope of {scope['process']}"] = f"depth {scope['depth']}, holds {scope['held']}"
    for wait in report["waiting"]:
        owner = f" of {wait['process']}" if "task" in wait else ""
        notes[_who(wait)] = f"{wait['reason']}, for {wait['for']}, at {wait['statement']}{owner}"
    return notes


def _who(wait: Mapping[str, Any]) -> str:
    return f"task {wait['task']}" if "task" in wait else f"process {wait['process']}"


# The report of a deadlock as a graph in SVG: who waits for whom, one below the other, the cycle first and in red.


ROW, BOX, TOP, LEFT, WIDTH = 46, 30, 50, 130, 420
COLOURS = {"wait": "#777777", "cycle": "#b03a2e"}
HEADS = "".join(
    f'<marker id="{kind}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    f'<path d="M 0 0 L 8 4 L 0 8 z" fill="{colour}"/></marker>'
    for kind, colour in COLOURS.items()
)


def drawing(report: Mapping[str, Any]) -> str:
    """The picture of a report; of many that wait, those in the cycle and the first."""
    cycle, notes, waits = report["cycle"], _notes(report), report["waiting"][:MOST_SHOWN]
    around = list(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
    edges = dict.fromkeys([*around, *((_who(wait), name) for wait in waits for name in _awaited(wait))])
    names = dict.fromkeys([*cycle, *map(_who, waits), *(name for edge in edges for name in edge)])
    rows = {name: row for row, name in enumerate(names)}
    width, height = WIDTH + 2 * LEFT, TOP + ROW * max(1, len(rows))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f"<defs>{HEADS}</defs>",
        f'<text x="{LEFT}" y="24" font-size="14">deadlock at {report["time"]}: {len(report["waiting"])} wait</text>',
        *(_arc(rows[tail], rows[head], (tail, head) in around) for tail, head in edges),
        *(part for name, row in rows.items() for part in _box(row, f"{name}: {notes.get(name, '')}", name in cycle)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _box(row: int, text: str, in_cycle: bool) -> Iterator[str]:
    y, colour = TOP + ROW * row, COLOURS["cycle" if in_cycle else "wait"]
    yield f'<rect x="{LEFT}" y="{y}" width="{WIDTH}" height="{BOX}" rx="4" fill="white" stroke="{colour}"/>'
    yield f'<text x="{LEFT + 8}" y="{y + 20}">{escape(text if len(text) < 64 else text[:62] + "...")}</text>'


def _arc(tail: int, head: int, in_cycle: bool) -> str:
    """From box to box, at the right where it leads down, else at the left; further out where they are further apart."""
    (start, end), out = (TOP + ROW * row + BOX // 2 for row in (tail, head)), min(20 + 20 * abs(tail - head), LEFT)
    side, middle = (LEFT + WIDTH, LEFT + WIDTH + out) if tail < head else (LEFT, LEFT - out)
    kind = "cycle" if in_cycle else "wait"
    line = f'fill="none" stroke="{COLOURS[kind]}" marker-end="url(#{kind})"'
    return f'<path d="M {side} {start} C {middle} {start} {middle} {end} {side} {end}" {line}/>'
