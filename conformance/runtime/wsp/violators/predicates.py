"""Expressions, slots and predicates with wrong or old values (PTO-WSP v10, 1.1 and 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tessera_conformance.strength import Violation, violates
from tessera_reference.wsp import run, statements
from tessera_reference.wsp.errors import RunError
from tessera_reference.wsp.forms import U64
from tessera_reference.wsp.run import Processes
from tessera_reference.wsp.statements import BINARY, Constant, Operation

from .changes import KeepsFirstData, RunsLatest, changed
from .channels import tensors_too

OPERATION, AS_U64, SYMBOLS = Operation.value, run._as_u64, run._symbols
AWAIT, DECIDE, KEY, LOAD = Processes.await_tensors, Processes.decide, Processes.key, Processes.load
VALUE, BODY = Processes.value, Processes.body
PREVIOUS: dict[str, int] = {}


def operator(name: str, description: str, op: str, other: Callable[[int, int], int]) -> Violation:
    """Return a violation in which an operator of two values computes something else."""
    return changed("WSP-04.1-01", name, description, ("wsp.statements.BINARY", {**BINARY, op: other}))


def signed(value: int) -> int:
    """Return the value as a signed number of 64 bits."""
    return value - (1 << 64) if value >> 63 else value


def both_sides(self: Operation, now: Any) -> int:
    if self.op == "select":
        for operand in self.operands:
            operand.value(now)
    return OPERATION(self, now)


def defaults(package: Any, given: Mapping[str, int]) -> list[int]:
    """Return the symbols as they were compiled."""
    SYMBOLS(package, given)
    return SYMBOLS(package, {})


def left_over(package: Any, given: Mapping[str, int]) -> list[int]:
    known = {symbol.name: symbol.width for symbol in package.symbols}
    kept = {name: value for name, value in PREVIOUS.items() if name in known and value < 1 << known[name]}
    PREVIOUS.update(given)
    return SYMBOLS(package, kept | dict(given))


def loading(name: str, description: str, other: Callable[[Any, str], int]) -> Violation:
    """Return a violation that loads elements as other numbers."""
    return changed("WSP-04.2-02", name, description, ("wsp.run._as_u64", other))


def truncated(value: Any, place: str) -> int:
    whole = float(int(value)) if isinstance(value, float) and abs(value) < 2.0**64 else value
    return AS_U64(whole, place)


def no_negative_zero(value: Any, place: str) -> int:
    if isinstance(value, float) and str(value) == "-0.0":
        raise RunError("SLOT_VALUE", f"{place} is negative")
    return AS_U64(value, place)


def negative_floats(value: Any, place: str) -> int:
    if isinstance(value, float) and value < 0 and value.is_integer():
        return int(value) & U64
    return AS_U64(value, place)


def saturated(value: Any, place: str) -> int:
    if isinstance(value, float) and (value != value or value >= 2.0**64):
        return 0 if value != value else U64
    return AS_U64(value, place)


def narrow(value: Any, place: str) -> int:
    found = AS_U64(value, place)
    if isinstance(value, int) and value < 0:
        bits = next(number for number in (8, 16, 32, 64) if value >= -(1 << number - 1))
        return found & ((1 << bits) - 1)
    return found


def first_element(self: Any, slot: int, tensor: int, element: int) -> None:
    LOAD(self, slot, tensor, 0 if element < self.machine.package.tensors[tensor].count else element)


def element_of_a_word(self: Any, slot: int, tensor: int, element: int) -> None:
    LOAD(self, slot, tensor, element & 0xFFFFFFFF)


def turns_of_a_byte(self: Any, process: Any, body: Any, outer: Any) -> Iterator[None]:
    """Cut the counts of loops to a byte."""
    mask = Constant(255)
    cut = [
        replace(statement, count=Operation("and", (statement.count, mask)))
        if isinstance(statement, statements.Repeat)
        else statement
        for statement in body
    ]
    yield from BODY(self, process, tuple(cut), outer)


def cond(name: str, description: str, taken: Callable[[int], bool]) -> Violation:
    """Return a violation whose cond takes its branch by another rule."""
    return changed(
        "WSP-04.2-03", name, description, ("wsp.run.Processes.decide", lambda self, when: taken(self.value(when)))
    )


def at_first_here(self: Any, place: Any, evaluate: Callable[[], Any]) -> Any:
    """Return the first value of this run that was evaluated at this place."""
    seen: dict[int, Any] = self.__dict__.setdefault("seen", {})
    if id(place) not in seen:
        seen[id(place)] = evaluate()
    return seen[id(place)]


def late_run(self: Any, process: Any, site: Any) -> Iterator[None]:
    yield from self.await_tensors(process, site.reads, site.writes)
    yield from self.elapse(process, site.cycles)
    yield from RUN(self, process, replace(site, cycles=0))


def issued_late(attempt: Callable[..., Any]) -> Callable[..., Iterator[None]]:
    """Return a task statement with the operands, or the key, of the last attempt."""

    def task(self: Any, process: Any, statement: Any) -> Iterator[None]:
        issue = self.machine.issue
        self.machine.issue = lambda *given: issue(*attempt(self, statement, *given))
        try:
            for _ in TASK(self, process, statement):
                self.machine.issue = issue
                yield
                self.machine.issue = lambda *given: issue(*attempt(self, statement, *given))
        finally:
            self.machine.issue = issue

    return task


late_task = issued_late(
    lambda self, statement, process, site, key, scalars: (
        process,
        site,
        key,
        [self.value(scalar) for scalar in site.scalars],
    )
)
late_key = issued_late(
    lambda self, statement, process, site, key, scalars: (process, site, self.key(statement), scalars)
)


def for_all(self: Any, process: Any, tasks: Any) -> Any:
    every = list(self.machine.tasks.values())
    return AWAIT_TASKS(self, process, every if isinstance(tasks, list) else tasks)


RUN, TASK, AWAIT_TASKS = Processes.run, Processes.task, Processes.await_tasks


def decided_once(self: Any, when: Any) -> bool:
    return bool(at_first_here(self, when, lambda: DECIDE(self, when)))


def first_key(self: Any, task: Any) -> int:
    return int(at_first_here(self, task, lambda: KEY(self, task)))


@violates("WSP-01.1-01", "runs what was compiled last under the name of a package")
class NotThePackage(RunsLatest):
    """A runtime whose artifacts have no effect of their own."""


@violates("WSP-01.1-02", "runs the program that the host compiled last")
class HostFallback(RunsLatest):
    """A runtime that takes the semantics from the host."""


@violates("WSP-01.1-05", "runs what the host remembers of the last compilation")
class HostMemory(RunsLatest):
    """A runtime whose host takes part in each run."""


@violates("WSP-04.2-06", "runs the program that was traced last")
class Retraced(RunsLatest):
    """A runtime that traces programs again without being asked."""


@violates("WSP-04.2-04", "keeps the tensors of the first run of a package")
class FirstData(KeepsFirstData):
    """A runtime that needs another package for other data."""


PREDICATES = [
    operator("narrow_mod", "divides the low halves of large values by small ones", "mod",
        (lambda a, b: (a % (1 << 32) if b < 1000 else a) % b)),
    operator("add_saturates", "adds up to 2^64 - 1", "add", lambda a, b: min(a + b, U64)),
    operator("sub_saturates", "subtracts down to 0", "sub", lambda a, b: max(a - b, 0)),
    operator("mul_of_32_bits", "multiplies the low halves", "mul", lambda a, b: (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF)),
    operator("signed_less", "compares with signs", "lt", lambda a, b: int(signed(a) < signed(b))),
    operator("signed_min", "takes the minimum with signs", "min", lambda a, b: a if signed(a) < signed(b) else b),
    operator("wide_shift", "shifts everything out by 64 or more", "shl", lambda a, b: (a << b) & U64 if b < 64 else 0),
    operator("signed_shift", "shifts the sign in", "shr", lambda a, b: (signed(a) >> (b & 63)) & U64),
    operator("divides_by_zero", "gives 0 for a division by zero", "div", lambda a, b: a // b if b else 0),
    changed("WSP-04.1-01", "both_sides", "evaluates all operands of a select",
        ("wsp.statements.Operation.value", both_sides)),
    changed("WSP-04.1-02", "constants_as_doubles", "rounds constants to doubles",
        ("wsp.statements.Constant.value", lambda self, now: int(float(self.constant)) & U64)),
    changed("WSP-04.1-03", "symbols_left_over", "keeps symbols of the run before", ("wsp.run._symbols", left_over)),
    changed("WSP-04.1-04", "late_run", "reads the operands of a kernel when it ends",
        ("wsp.run.Processes.run", late_run)),
    changed("WSP-04.1-04", "late_task", "reads operands at each attempt to issue",
        ("wsp.run.Processes.task", late_task)),
    changed("WSP-04.2-07", "late_key", "reads the key at each attempt to issue", ("wsp.run.Processes.task", late_key)),
    changed("WSP-04.2-01", "wait_for_all", "waits for tasks of all processes",
        ("wsp.run.Processes.await_tasks", for_all)),
    changed("WSP-04.1-04", "slots_at_first", "reads a slot once at each place", ("wsp.run.Processes.value",
        lambda self, expression: int(at_first_here(self, expression, lambda: VALUE(self, expression))))),
    changed("WSP-04.2-01", "loads_at_once", "loads before the tasks that write are complete",
        ("wsp.run.Processes.await_tensors", lambda self, process, reads, writes: AWAIT(self, process, (), writes))),
    loading("zeros_for_signs", "extends negative integers with zeros", narrow),
    loading("truncated", "cuts fractions off", truncated),
    loading("no_negative_zero", "refuses -0.0", no_negative_zero),
    loading("negative_floats", "wraps negative floats", negative_floats),
    loading("through_doubles", "rounds integers to doubles",
        lambda value, place: AS_U64(value, place) if isinstance(value, float) else int(float(value)) & U64),
    changed("WSP-04.2-02", "element_of_a_word", "numbers elements in 32 bits",
        ("wsp.run.Processes.load", element_of_a_word)),
    changed("WSP-04.1-02", "turns_of_a_byte", "counts turns in 8 bits", ("wsp.run.Processes.body", turns_of_a_byte)),
    cond("low_bits", "looks at 32 bits of a condition", lambda value: bool(value & 0xFFFFFFFF)),
    changed("WSP-04.2-03", "decided_once", "keeps the first decision of a cond",
        ("wsp.run.Processes.decide", decided_once)),
    changed("WSP-04.2-05", "tensors_as_values", "lets a tensor be a value",
        ("wsp.statements.read_expression", tensors_too)),
    changed("WSP-04.2-07", "first_key", "places by the first key of a statement", ("wsp.run.Processes.key", first_key)),
]  # fmt: skip
