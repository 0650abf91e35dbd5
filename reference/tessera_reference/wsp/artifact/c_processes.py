"""The body of a process as C: a state machine, one case a step, in the order in which the executor numbers steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..expressions import Constant, Expression
from ..statements import (
    Body,
    Close,
    Cond,
    Consume,
    Load,
    Receive,
    Repeat,
    RunKernel,
    Scope,
    Send,
    Statement,
    Task,
    Wait,
)
from .c_expressions import Temporaries
from .c_sites import Sites
from .c_text import block

__all__ = ["StateMachine"]

ON = "wsp_go(p, p->pc + 1);"


class StateMachine:
    """The steps of a process; `loop_depth` is how many repeats are in one another at most."""

    def __init__(self, body: Body, produces: Sequence[int], sites: Sites) -> None:
        self.produces = produces
        self.sites = sites
        self.statements: list[str] = []
        self.loop_depth = 0
        self._steps: list[list[str]] = []
        self._depth = 0
        self._body(body, "body")
        self._add("end", "wsp_end(m, p);", "return;")

    def function(self, name: str) -> list[str]:
        """Its text."""
        cases = []
        for place, lines in enumerate(self._steps):
            cases += block(f"case {place}:", lines if lines[-1] == "return;" else [*lines, "break;"])
        loop = block("switch (p->pc)", [*cases, "default: return;"])
        steps = block("for (;;)", ["wsp_count_step(m);", *loop])
        return block(f"static void {name}(Machine *m, Process *p)", steps)

    @property
    def _here(self) -> int:
        return len(self._steps)

    def _add(self, path: str, *lines: str) -> int:
        self._steps.append(list(lines))
        self.statements.append(path)
        return len(self._steps) - 1

    def _body(self, body: Body, path: str) -> None:
        for place, each in enumerate(body):
            self._statement(each, f"{path}/{place}")

    def _statement(self, statement: Statement, path: str) -> None:
        match statement:
            case Send(channel, value):
                values = Temporaries()
                token = values.value(value)
                may = f"wsp_may_send(m, p, {self.produces.index(channel)});"
                self._add(path, may, *values.lines, f"if (!wsp_send(m, p, {channel}, {token})) return;", ON)
            case Receive(channel, into):
                self._add(path, f"if (!wsp_receive(m, p, {channel}, {into})) return;")
            case Consume(channel, into, body):
                head = f"if (!wsp_consume(m, p, {channel}, {into}, {{end}})) return;"
                self._loop(path, body, lambda end: [head.format(end=end)])
            case Close(channel):
                self._add(path, f"wsp_close_channel(m, p, {self.produces.index(channel)});", ON)
            case Scope(body):
                self._add(path, "wsp_begin_scope(m, p);", ON)
                self._body(body, f"{path}/body")
                self._add(path, "wsp_end_scope(m, p);", ON)
            case Cond():
                self._cond(statement, path)
            case Repeat():
                self._repeat(statement, path)
            case Load(slot, tensor, element):
                await_tensor = "if (!wsp_await_tensors(m, p, 1, &tensor, 0, NULL)) return;"
                self._add(path, *_operands([element]), f"const uint32_t tensor = {tensor};", await_tensor, ON)
                self._add(path, f"wsp_load(m, p, {slot}, {tensor});", ON)
            case Wait():
                self._add(path, "if (!wsp_wait_own(m, p)) return;", ON)
            case RunKernel():
                self._run(statement, path)
            case Task():
                self._task(statement, path)

    def _run(self, run: RunKernel, path: str) -> None:
        site, scalars = self.sites.add(run, path, self.produces)
        of_site = f"{site}.read_count, {site}.reads, {site}.write_count, {site}.writes"
        self._add(path, *_operands(scalars), f"if (!wsp_await_tensors(m, p, {of_site})) return;", ON)
        self._add(path, f"if (!wsp_elapse(m, p, {site}.cycles)) return;", ON)
        self._add(path, f"wsp_run_kernel(m, p, &{site});", ON)

    def _task(self, task: Task, path: str) -> None:
        site, scalars = self.sites.add(task, path, self.produces)
        operands = _operands([Constant(0) if task.key is None else task.key, *scalars], first=0)
        evaluated = [f"wsp_may_signal(m, p, &{site});", *operands]
        self._add(path, *block("if (!p->pending)", evaluated), f"if (!wsp_task(m, p, &{site})) return;", ON)

    def _repeat(self, repeat: Repeat, path: str) -> None:
        level = self._depth
        self._depth += 1
        self.loop_depth = max(self.loop_depth, self._depth)
        values = Temporaries()
        count = values.value(repeat.count)
        self._add(path, *values.lines, f"p->rounds[{level}] = 0;", f"p->counts[{level}] = {count};", ON)
        index = [] if repeat.index is None else [f"m->slots[{repeat.index}] = p->rounds[{level}];"]

        def head(end: int) -> list[str]:
            leave = f"if (p->rounds[{level}] == p->counts[{level}]) {{ wsp_go(p, {end}); break; }}"
            return [leave, *index, f"p->rounds[{level}]++;", ON]

        self._loop(path, repeat.body, head)
        self._depth -= 1

    def _loop(self, path: str, body: Body, head: Callable[[int], list[str]]) -> None:
        """A step that is written when its end is known, the body, and the way back."""
        place = self._add(path)
        self._body(body, f"{path}/body")
        self._add(path, f"wsp_go(p, {place});")
        self._steps[place] = head(self._here)

    def _cond(self, cond: Cond, path: str) -> None:
        values = Temporaries()
        when = values.value(cond.when)
        branch = self._add(path)
        self._body(cond.then, f"{path}/then")
        skip = self._add(path)
        self._steps[branch] = [*values.lines, f"wsp_go(p, {when} != 0 ? {branch + 1} : {self._here});"]
        self._body(cond.otherwise, f"{path}/otherwise")
        self._steps[skip] = [f"wsp_go(p, {self._here});"]


def _operands(values_of: Sequence[Expression], first: int = 1) -> list[str]:
    """Statements that evaluate the operands of a call, in order; the key of a task is operand 0."""
    values = Temporaries()
    for place, each in enumerate(values_of, first):
        values.lines.append(f"p->operands[{place}] = {values.value(each)};")
    return values.lines
