"""From the body of a process to its steps (`steps.py`), one list without nesting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..expressions import Expression
from ..kernels import bound
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
    TensorArgument,
    Wait,
)
from .machine import Machine
from .states import CallSite
from .steps import Step, Steps

__all__ = ["CallForm", "CallForms", "Code"]


class CallForm(NamedTuple):
    """What is the same of a call in every execution of a package: all but values and memory."""

    call: RunKernel | Task
    tensors: Mapping[str, int]
    scalars: Sequence[Expression]
    cycles: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    heap: int


CallForms: TypeAlias = dict[int, CallForm]
"""The forms of the calls of a package, by the identity of the statement, which the form holds.

They belong to one run and to the trials that it makes of its package: a search for mitigations executes a package a
dozen times, and making the code anew was half of its time.
"""


class Code:
    """The steps of a process, and the path of the statement of each; `scopes`: whether scopes begin and end."""

    def __init__(self, machine: Machine, body: Body, forms: CallForms, scopes: bool = True) -> None:
        self.machine = machine
        self.forms = forms
        self.scopes = scopes
        self.make = Steps(machine)
        self.steps: list[Step] = []
        self.statements: list[str] = []
        self._effects: dict[tuple[Any, ...], Any] = {}
        self._body(body, "body")
        self._add("end", self.make.end())

    @property
    def here(self) -> int:
        """The place of the next step."""
        return len(self.steps)

    def _add(self, path: str, step: Step) -> int:
        self.steps.append(step)
        self.statements.append(path)
        return len(self.steps) - 1

    def _body(self, body: Body, path: str) -> None:
        for place, each in enumerate(body):
            self._statement(each, f"{path}/{place}")

    def _statement(self, statement: Statement, path: str) -> None:
        make, here = self.make, self.here
        match statement:
            case Send(channel, value):
                self._add(path, make.send(here, channel, value))
            case Receive(channel, into):
                self._add(path, make.take(here, channel, into, None))
            case Consume(channel, into, body):
                self._loop(path, body, lambda at_end: make.take(here, channel, into, at_end))
            case Close(channel):
                self._add(path, make.close(here, channel))
            case Scope(body) if self.scopes:
                self._add(path, make.begin_scope(here))
                self._body(body, f"{path}/body")
                self._add(path, make.end_scope(self.here))
            case Scope(body):
                self._body(body, f"{path}/body")
            case Cond():
                self._cond(statement, path)
            case Repeat(count, body, index):
                self._add(path, make.begin_repeat(here, count))
                self._loop(path, body, lambda at_end: make.next_round(here + 1, index, at_end))
            case Load(slot, tensor, element):
                self._add(path, make.await_tensors(here, (tensor,), (), (make.value(element),)))
                self._add(path, make.load(self.here, slot, tensor))
            case Wait():
                self._add(path, make.wait(here))
            case RunKernel():
                site = self._site(statement, path)
                self._add(path, make.await_tensors(here, site.reads, site.writes, site.scalars))
                self._add(path, make.elapse(self.here, site.cycles))
                self._add(path, make.run(self.here, site))
            case Task():
                self._add(path, make.task(here, self._site(statement, path), statement.key))

    def _loop(self, path: str, body: Body, head: Any) -> None:
        """A step that is made when its end is known, the body, and the way back."""
        place = self._add(path, self.make.jump(0))
        self._body(body, f"{path}/body")
        self._add(path, self.make.jump(place))
        self.steps[place] = head(self.here)

    def _cond(self, cond: Cond, path: str) -> None:
        branch = self._add(path, self.make.jump(0))
        self._body(cond.then, f"{path}/then")
        skip = self._add(path, self.make.jump(0))
        self.steps[branch] = self.make.branch(branch, cond.when, self.here)
        self._body(cond.otherwise, f"{path}/otherwise")
        self.steps[skip] = self.make.jump(self.here)

    def _form(self, call: RunKernel | Task) -> CallForm:
        package = self.machine.package
        kernel = package.kernels[call.kernel]
        given = dict(zip(kernel.parameters, call.arguments, strict=True))
        tensors = {name: each.tensor for name, each in given.items() if isinstance(each, TensorArgument)}
        writes = tuple(dict.fromkeys(tensors[name] for name in kernel.written))
        return CallForm(
            call,
            tensors,
            [each for each in given.values() if not isinstance(each, TensorArgument)],
            kernel.cycles([package.tensors[each].count for each in tensors.values()]),
            tuple(dict.fromkeys(each for each in tensors.values() if each not in writes)),
            writes,
            sum(package.tensors[each].nbytes for each in writes),
        )

    def _site(self, call: RunKernel | Task, path: str) -> CallSite:
        form = self.forms.get(id(call))
        if form is None:
            form = self.forms[id(call)] = self._form(call)
        effect = call.kernel, *form.tensors.values()
        if effect not in self._effects:
            memory = {name: self.machine.tensors[each] for name, each in form.tensors.items()}
            self._effects[effect] = bound(self.machine.package.kernels[call.kernel], memory)
        waits, signals = (call.waits, call.signals) if isinstance(call, Task) else ((), ())
        return CallSite(
            call.kernel,
            form.cycles,
            self._effects[effect],
            tuple([self.make.value(each) for each in form.scalars]),
            form.reads,
            form.writes,
            form.heap,
            path,
            waits,
            signals,
        )
