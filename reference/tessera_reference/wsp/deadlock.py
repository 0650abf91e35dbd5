"""Deadlocks: the report, the mitigations that are tried, and texts and drawings for people (sections 3.3, 3.4.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from .errors import first_cycle
from .executor.machine import (
    CHANNEL_EMPTY_WAIT,
    CHANNEL_FULL_WAIT,
    RESOURCE_OF,
    TASK,
    TASK_WAIT,
    Machine,
    ProcessState,
    ScopeState,
    TaskState,
)
from .package import capacity_of, consumed_channels, no_scopes_of

# The report of a deadlock (sections 3.3 and 3.4.3): nothing is due, and a process or task is not done.


def report(machine: Machine) -> dict[str, Any]:
    """As `schemas/wsp_report.schema.json` has it, without mitigations."""
    resources = machine.resources
    fullest = max(worker.places for worker in machine.workers)
    used = {**resources.used, "ready_queue": fullest}
    found = {
        name: {"size": size, "used": used[name], "high_water": resources.high_water[name]}
        for name, size in resources.sizes.items()
    }
    scopes = list(_scopes(machine))
    spinning = {} if machine.spinning is None else {"spinning": machine.spinning}
    return spinning | {
        "time": machine.agenda.now,
        "window": found["task_ring"],
        "resources": found,
        "channels": list(_channels(machine)),
        "waiting": list(_waiting(machine)),
        "cycle": first_cycle(_wait_graph(machine)),
        "scopes": scopes,
        "held_by_scopes": _wants_what_scopes_hold(machine),
    }


def _waiting(machine: Machine) -> Iterator[dict[str, Any]]:
    """Every process that waits, then every task that does, with the reason."""
    for process in machine.processes:
        if process.waiting is not None:
            reason, _, subject, statement = process.waiting
            yield {"process": process.name, "reason": reason, "for": subject, "statement": statement}
    empty = _awaited_channels(machine)
    for task in machine.tasks.values():
        stated = {"task": task.number, "process": task.process.name, "statement": task.site.statement}
        if task.waiting is not None:
            yield {**stated, "reason": task.waiting.reason, "for": task.waiting.subject}
        elif task.number in empty:
            name = machine.package.channels[empty[task.number][0]].name
            yield {**stated, "reason": CHANNEL_EMPTY_WAIT, "for": name}
        else:
            yield {**stated, "reason": TASK_WAIT, "for": "tasks"}


def _awaited_channels(machine: Machine) -> Mapping[int, Sequence[int]]:
    """The channels of which tasks in flight wait for tokens, by task number."""
    found: dict[int, list[int]] = {}
    for channel in machine.channels:
        for _, kind, number in channel.takers:
            if kind == TASK:
                found.setdefault(number, []).append(channel.index)
    return found


def _channels(machine: Machine) -> Iterator[dict[str, Any]]:
    """The channels at which somebody waits."""
    for channel in machine.channels:
        if channel.takers or channel.senders:
            yield {
                "name": machine.package.channels[channel.index].name,
                "state": "full" if channel.senders else "empty",
                "capacity": channel.capacity,
                "tokens": len(channel.tokens),
                "closed": channel.producers == 0,
            }


def _scopes(machine: Machine) -> Iterator[dict[str, Any]]:
    for process in machine.processes:
        if process.scopes:
            held = sum(scope.slots for scope in process.scopes)
            yield {"process": process.name, "depth": len(process.scopes), "held": held}


def _wants_what_scopes_hold(machine: Machine) -> bool:
    """True if a process waits for a resource of which some scope holds a part."""
    reasons = {each.waiting.reason for each in machine.processes if each.waiting is not None}
    wanted = [resource for reason, resource in RESOURCE_OF.items() if reason in reasons]
    scopes = [scope for process in machine.processes for scope in process.scopes]
    return any(_held_by_scope(scope, resource) for scope in scopes for resource in wanted)


def _wait_graph(machine: Machine) -> dict[str, list[str]]:
    """Return the names that each process, task, channel and resource waits for, by name."""
    graph: dict[str, list[str]] = {}
    names = [f"channel {each.name}" for each in machine.package.channels]
    tasks = list(machine.tasks.values())
    bodies = [each.body for each in machine.package.processes]
    for process in machine.processes:
        if process.waiting is not None:
            kind = "channel" if process.waiting.reason in (CHANNEL_EMPTY_WAIT, CHANNEL_FULL_WAIT) else "resource"
            awaits_tasks = process.waiting.reason == TASK_WAIT
            graph[_of(process)] = [] if awaits_tasks else [f"{kind} {process.waiting.subject}"]
    for channel in machine.channels:
        if channel.senders:
            ends = [_of(each) for each in _alive(machine) if channel.index in consumed_channels(bodies[each.index])]
        else:
            index = channel.index
            ends = [_of(each) for each in _alive(machine) if index in each.produces and index not in each.closed]
            ends += [_of_task(each) for each in tasks if channel.index in each.site.signals]
        graph[names[channel.index]] = ends
    graph |= {f"scope of {each.name}": [_of(each)] for each in machine.processes if each.scopes}
    graph |= {f"resource {name}": list(_holders(machine, name)) for name in machine.resources.sizes}
    empty = _awaited_channels(machine)
    for task in tasks:
        graph[_of_task(task)] = list(_task_waits_for(task, names, empty))
    for task in tasks:
        for each in task.dependents:
            graph[_of_task(each)].append(_of_task(task))
        for watcher in task.watchers:
            graph[_of(watcher)].append(_of_task(task))
    return graph


def _holders(machine: Machine, resource: str) -> Iterator[str]:
    """The scopes and tasks that hold some of a resource."""
    for process in machine.processes:
        if any(_held_by_scope(scope, resource) for scope in process.scopes):
            yield f"scope of {process.name}"
    size = machine.resources.sizes["ready_queue"]
    for task in machine.tasks.values():
        held = {
            "task_ring": 1,
            "tensormap_pool": len(task.site.writes),
            "deplist_pool": task.nodes,
            "heap_arena": task.site.heap,
            "ready_queue": task.started < 0 and task.worker.places >= size,
        }
        if held[resource]:
            yield _of_task(task)


def _held_by_scope(scope: ScopeState, resource: str) -> int:
    return {"task_ring": scope.slots, "tensormap_pool": scope.entries, "heap_arena": scope.heap}.get(resource, 0)


def _task_waits_for(task: TaskState, names: Sequence[str], empty: Mapping[int, Sequence[int]]) -> Iterator[str]:
    if task.waiting is not None:
        yield f"channel {task.waiting.subject}"
    yield from (names[each] for each in empty.get(task.number, ()))
    current = task.worker.task
    if current is not None and current is not task:
        yield _of_task(current)


def _alive(machine: Machine) -> list[ProcessState]:
    return [each for each in machine.processes if not each.done]


def _of(process: ProcessState) -> str:
    return f"process {process.name}"


def _of_task(task: TaskState) -> str:
    return f"task {task.number}"


# Mitigations of a deadlock (sections 3.3 and 3.4.3), each tried: the package was executed again with it, and went on.
#
# A knob stands alone where raising it alone is enough, with the smallest value that was found; else those that it
# needs beside it stand with it (`also`). Where a scope holds what is lacking, its process is tried without scopes.
# Where nothing helps, the program is to be restructured. The search takes a bounded number of steps (AMB-WSP-72).


Knobs = Mapping[str, int]
AMPLE = (1 << 32) - 1
"""A size that nothing in reach exhausts."""
MOST_KNOBS = 16


@dataclass(frozen=True)
class Trial:
    """Another execution: `outcome` is completed, further (it went past the deadlock, and was left there), deadlock,
    error or unknown; `demand` is the most that it had of each knob, and `deadlock` the report of its own."""

    outcome: str
    demand: Knobs
    deadlock: Mapping[str, Any] | None = None
    error: str = ""

    @property
    def helps(self) -> bool:
        """True if it went past the deadlock."""
        return self.outcome in ("completed", "further")


def mitigations(report: Mapping[str, Any], execute: Callable[[Knobs], Trial]) -> list[dict[str, Any]]:
    """Return the settings that avoid a deadlock, found by executions with them."""
    search = _Search(report, execute)
    settings = list(search.single_knobs()) or search.knobs_together()
    return [*settings, *search.scopes()] or [{"knob": "restructure", "why": search.why_restructure()}]


class _Search:
    def __init__(self, report: Mapping[str, Any], execute: Callable[[Knobs], Trial]) -> None:
        self.report = report
        self.execute = execute
        self.errors: list[str] = []
        self.spent = False

    def single_knobs(self) -> Iterator[dict[str, Any]]:
        """Each exhausted resource and full channel, if raising it is enough."""
        for knob, size in _exhausted(self.report).items():
            trial = self._tried({knob: AMPLE})
            if trial.helps:
                value, smallest, trial = self._least(knob, size, trial, {})
                exhausted = f"{_subject(knob)} is exhausted at {size}"
                yield _mitigation({knob: value}, trial, exhausted, smallest)

    def scopes(self) -> Iterator[dict[str, Any]]:
        """Each process whose scopes hold something, if it goes on without them."""
        for each in self.report["scopes"]:
            knob = no_scopes_of(each["process"])
            if each["held"] and self.report["held_by_scopes"] and self._tried({knob: 1}).helps:
                held = f"its scopes hold the outputs of {each['held']} complete tasks"
                yield {"knob": knob, "why": f"{held}: without them the run goes on, so end them sooner"}

    def knobs_together(self) -> list[dict[str, Any]]:
        """Several knobs, where one deadlock follows upon another."""
        raised: dict[str, int] = {}
        report: Mapping[str, Any] | None = self.report
        while report is not None and len(raised) < MOST_KNOBS:
            lacking = {knob: size for knob, size in _exhausted(report).items() if knob not in raised}
            if not lacking:
                return []
            raised |= lacking
            trial = self._tried(dict.fromkeys(raised, AMPLE))
            if trial.helps:
                return [self._least_of_each(raised, trial)]
            report = trial.deadlock
        return []

    def why_restructure(self) -> str:
        """Why no setting helps."""
        if self.errors:
            return f"with larger settings the run ends with an error: {self.errors[0]}"
        if self.spent:
            return "no setting was found within the bound of the search: change who waits for whom"
        if not _exhausted(self.report):
            return "no resource is exhausted and no channel is full: change who waits for whom"
        return "the wait remains however large the settings are: change who waits for whom"

    def _least_of_each(self, sizes: Knobs, trial: Trial) -> dict[str, Any]:
        """Knobs lowered one after the other, those that are not needed left out."""
        chosen = dict.fromkeys(sizes, AMPLE)
        all_smallest = True
        for knob, size in sizes.items():
            others = {each: value for each, value in chosen.items() if each != knob}
            without = self._tried(others) if others else None
            if without is not None and without.helps:
                del chosen[knob]
                trial = without
                continue
            chosen[knob], smallest, trial = self._least(knob, size, trial, others)
            all_smallest &= smallest
        return _mitigation(chosen, trial, "one deadlock follows upon another", all_smallest)

    def _least(self, knob: str, size: int, ample: Trial, others: Knobs) -> tuple[int, bool, Trial]:
        """The smallest value that helps, whether the one below was seen not to, and the trial with it."""
        fails, helps, best = size, max(ample.demand[knob], size + 1), ample
        stride = 1
        while helps - fails > 1:
            value = min(fails + stride, (fails + helps) // 2)
            trial = self._tried({**others, knob: value})
            if trial.outcome == "unknown":
                return helps, False, best
            if trial.outcome == ample.outcome:
                helps, best, stride = value, trial, 1
            else:
                fails, stride = value, stride * 2
        return helps, best.outcome == "completed", best

    def _tried(self, knobs: Knobs) -> Trial:
        trial = self.execute(knobs)
        if trial.outcome == "error":
            self.errors.append(trial.error)
        self.spent |= trial.outcome == "unknown"
        return trial


def _exhausted(report: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of the knobs whose shortage somebody waits for."""
    reasons = {each["reason"] for each in report["waiting"]}
    found = {
        "task_window" if name == "task_ring" else name: report["resources"][name]["size"]
        for reason, name in RESOURCE_OF.items()
        if reason in reasons
    }
    full = {each["for"] for each in report["waiting"] if each["reason"] == CHANNEL_FULL_WAIT}
    found |= {capacity_of(each["name"]): each["capacity"] for each in report["channels"] if each["name"] in full}
    return found


def _subject(knob: str) -> str:
    return knob.removesuffix(".capacity")


def _mitigation(knobs: Knobs, trial: Trial, why: str, smallest: bool) -> dict[str, Any]:
    (first, value), *others = knobs.items()
    settings = " and ".join(f"{knob} {each}" for knob, each in knobs.items())
    effect = "completes" if trial.outcome == "completed" else "goes past this deadlock"
    found: dict[str, Any] = {"knob": first, "at_least": value}
    if others:
        found["also"] = [{"knob": knob, "at_least": each} for knob, each in others]
    return found | {"smallest": smallest, "why": f"{why}; with {settings} the run {effect}"}


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
    waits = [(name, each) for name, each in statistics["stalls"].items() if each["count"]]
    for reason, wait in sorted(waits, key=lambda pair: (-pair[1]["cycles"], pair[0])):
        times = "once" if wait["count"] == 1 else f"{wait['count']} times"
        resource = RESOURCE_OF.get(reason)
        bound = f"; {resource} held at most {statistics['high_water'][resource]}" if resource else ""
        yield _row("stalled", f"{reason} {times}, {wait['cycles']} cycles in all{bound}")
    for stall in statistics["current_stalls"]:
        who = f"task {stall['task']}" if "task" in stall else f"process {stall['process']}"
        yield _row("stalls", f"{who} since {stall['since']}, {stall['reason']}, for {stall['for']}")


def _deadlock(report: Mapping[str, Any]) -> Iterator[str]:
    yield f"deadlock at {report['time']}"
    yield _row("window", _use(report["window"]))
    for name, use in report["resources"].items():
        if name != "task_ring" and use["high_water"]:
            yield _row("resource", f"{name}: {_use(use)}")
    for each in report["channels"]:
        closed = ", closed" if each["closed"] else ""
        tokens = f"{each['tokens']} of {each['capacity']} tokens{closed}"
        yield _row("channel", f"{each['name']} is {each['state']}: {tokens}")
    for each in report["waiting"][:MOST_SHOWN]:
        who = f"task {each['task']} of {each['process']}" if "task" in each else f"process {each['process']}"
        yield _row("waiting", f"{who}, {each['reason']}, for {each['for']}, at {each['statement']}")
    if len(report["waiting"]) > MOST_SHOWN:
        yield _row("", f"and {len(report['waiting']) - MOST_SHOWN} more")
    if "spinning" in report:
        yield _row("spinning", f"process {report['spinning']} goes on without a kernel, a token or a task")
    cycle = report["cycle"]
    yield _row("cycle", " -> ".join([*cycle, cycle[0]]) if cycle else "none: nobody who waits could end it")
    for each in report["scopes"]:
        yield _row("scopes", f"{each['process']}: depth {each['depth']}, holds {each['held']}")
    if report["held_by_scopes"]:
        yield _row("", "what scopes hold is what is lacking")
    for each in report["mitigations"]:
        at_least = f" = {each['at_least']}" if "at_least" in each else ""
        yield _row("helps", f"{each['knob']}{at_least}: {each['why']}")


def _use(use: Mapping[str, int]) -> str:
    return f"{use['used']} of {use['size']} used, at most {use['high_water']}"


def _row(title: str, text: str) -> str:
    return f"{title:<9}{text}"


# The report of a deadlock as a graph in SVG: who waits at the left, for what at the right, the cycle in red.


WIDTH, ROW, BOX, TOP = 760, 46, 30, 50
LEFT, RIGHT, BOX_WIDTH = 20, 480, 260
CYCLE, WAIT = "#b03a2e", "#777777"
Edge = tuple[str, str]


def drawing(report: Mapping[str, Any]) -> str:
    """The picture of a report; of many that wait, those in the cycle and the first."""
    cycle = report["cycle"]
    around = list(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
    waits = _waits(report)
    shown = [each for each in waits if each[0][0] in cycle] + [each for each in waits if each[0][0] not in cycle]
    shown = shown[:MOST_SHOWN]
    names = list(dict.fromkeys([*(name for edge, _ in shown for name in edge), *cycle]))
    places = _places([each for each in names if each], report)
    reasons = dict(shown)
    edges = list(dict.fromkeys([edge for edge, _ in shown if edge[1]] + around))
    height = TOP + ROW * max(1, *(1 + row for _, row in places.values()))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f"<defs>{_arrow_head('wait', WAIT)}{_arrow_head('cycle', CYCLE)}</defs>",
        f'<text x="{LEFT}" y="24" font-size="14">deadlock at {report["time"]}: {len(waits)} wait</text>',
        *(_edge(edge, places, reasons.get(edge, ""), edge in around) for edge in edges),
        *(part for name, place in places.items() for part in _node(name, place, _note(name, report), name in cycle)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _waits(report: Mapping[str, Any]) -> Sequence[tuple[Edge, str]]:
    """Return the edges of the wait graph, with the reason; tasks are waited for in the cycle alone."""
    found = []
    for each in report["waiting"]:
        who = f"task {each['task']}" if "task" in each else f"process {each['process']}"
        kind = "channel" if each["reason"].startswith("CHANNEL") else "resource"
        what = "" if each["reason"] == "TASK_WAIT" else f"{kind} {each['for']}"
        found.append(((who, what), each["reason"]))
    return found


def _places(names: Sequence[str], report: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Column and row of each: who acts at the left, what they wait for at the right."""
    left = [each for each in names if each.startswith(("process ", "task "))]
    right = [each for each in names if each not in left]
    return {each: (LEFT, row) for row, each in enumerate(left)} | {each: (RIGHT, row) for row, each in enumerate(right)}


def _note(name: str, report: Mapping[str, Any]) -> str:
    """Return the report's remark on a channel, resource or scope."""
    kind, _, subject = name.partition(" ")
    for each in report["channels"]:
        if kind == "channel" and each["name"] == subject:
            return f"{each['state']}, {each['tokens']} of {each['capacity']}"
    if kind == "resource":
        use = report["resources"][subject]
        return f"{use['used']} of {use['size']}"
    for each in report["scopes"]:
        if name == f"scope of {each['process']}":
            return f"depth {each['depth']}, holds {each['held']}"
    for each in report["waiting"]:
        if name in (f"task {each.get('task')}", f"process {each['process']}" if "task" not in each else None):
            return str(each["statement"])
    return ""


def _node(name: str, place: tuple[int, int], note: str, in_cycle: bool) -> Iterator[str]:
    x, row = place
    y = TOP + ROW * row
    colour = CYCLE if in_cycle else WAIT
    yield f'<rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX}" rx="4" fill="white" stroke="{colour}"/>'
    text = f"{name}, {note}" if note else name
    yield f'<text x="{x + 8}" y="{y + 20}">{escape(text if len(text) < 42 else text[:40] + "...")}</text>'


def _edge(edge: Edge, places: Mapping[str, tuple[int, int]], reason: str, in_cycle: bool) -> str:
    """From box to box: across, or beside the column where both are in one."""
    (x1, row1), (x2, row2) = places[edge[0]], places[edge[1]]
    y1, y2 = (TOP + ROW * row + BOX // 2 for row in (row1, row2))
    kind, colour = ("cycle", CYCLE) if in_cycle else ("wait", WAIT)
    line = f'fill="none" stroke="{colour}" marker-end="url(#{kind})"'
    if x1 == x2:
        side = x1 + BOX_WIDTH if x1 == LEFT else x1
        out = side + 40 if x1 == LEFT else side - 40
        return f'<path d="M {side} {y1} C {out} {y1} {out} {y2} {side} {y2}" {line}/>'
    start, end = (x1 + BOX_WIDTH, x2) if x1 < x2 else (x1, x2 + BOX_WIDTH)
    shift = 5 if x1 < x2 else -5
    label = f'<text x="{start + 8}" y="{y1 - shift - 4}" font-size="9">{escape(reason)}</text>' if reason else ""
    return f'<line x1="{start}" y1="{y1 - shift}" x2="{end}" y2="{y2 - shift}" {line}/>{label}'


def _arrow_head(kind: str, colour: str) -> str:
    return (
        f'<marker id="{kind}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M 0 0 L 8 4 L 0 8 z" fill="{colour}"/></marker>'
    )
