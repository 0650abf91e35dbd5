"""Expressions, slots and predicates with wrong or old values (PTO-WSP v10, 1.1 and 4)."""

from dataclasses import replace

from tessera_conformance.strength import replaced, violates
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.wsp import run, statements
from tessera_reference.wsp.errors import RunError
from tessera_reference.wsp.forms import U64
from tessera_reference.wsp.machine import PROCESS_GOES_ON
from tessera_reference.wsp.statements import BINARY, Leaf, Operation

from ....ir.violators.changes import breaks, changed, wrapped
from .changes import RunsLatest
from .channels import tensors_too

AS_U64 = run._as_u64
PREVIOUS = {}


def operator(name, description, op, other):
    return changed("WSP-04.1-01", name, description, ("wsp.statements.BINARY", {**BINARY, op: other}))


def signed(value):
    return value - (1 << 64) if value >> 63 else value


@breaks("WSP-04.1-01", "evaluates all operands of a select", "wsp.statements.Operation.value")
def both_sides(usual, self, now):
    if self.op == "select":
        for operand in self.operands:
            operand.value(now)
    return usual(self, now)


@breaks("WSP-04.1-03", "keeps symbols of the run before", "wsp.machine.checked")
def symbols_left_over(usual, package, inputs):
    given = inputs["symbols"]
    known = {symbol.name: symbol.width for symbol in package.symbols}
    kept = {name: value for name, value in PREVIOUS.items() if name in known and value < 1 << known[name]}
    PREVIOUS.update(given)
    return usual(package, {**inputs, "symbols": kept | dict(given)})


def loading(name, description, other):
    return changed("WSP-04.2-02", name, description, ("wsp.run._as_u64", other))


def no_negative_zero(value, place):
    if isinstance(value, float) and str(value) == "-0.0":
        raise RunError("SLOT_VALUE", f"{place} is negative")
    return AS_U64(value, place)


def narrow(value, place):
    found = AS_U64(value, place)
    if isinstance(value, int) and value < 0:
        bits = next(number for number in (8, 16, 32, 64) if value >= -(1 << number - 1))
        return found & ((1 << bits) - 1)
    return found


@breaks("WSP-04.1-02", "counts turns in 8 bits", "wsp.run.Processes.body")
def turns_of_a_byte(usual, self, process, body, path):
    def cut(statement):
        return replace(statement, count=Operation("and", (statement.count, Leaf("constant", 255))))

    cut_body = tuple(cut(statement) if isinstance(statement, statements.Repeat) else statement for statement in body)
    yield from usual(self, process, cut_body, path)


def at_first_here(self, place, evaluate):
    """Return the first value of this run that was evaluated at this place."""
    seen = self.__dict__.setdefault("seen", {})
    if id(place) not in seen:
        seen[id(place)] = evaluate()
    return seen[id(place)]


@breaks("WSP-04.1-04", "reads the operands of a kernel when it ends", "wsp.run.Processes.run")
def late_run(usual, self, process, site):
    yield from self.await_tensors(process, site.reads, site.writes)
    self.after(site.cycles, PROCESS_GOES_ON, process.index)
    yield
    yield from usual(self, process, replace(site, cycles=0))


def issued_late(clause, name, description, attempt):
    """Return a violation that issues a task with the operands, or the key, of the last attempt."""

    def task(usual, self, process, statement):
        issue = self.issue
        self.issue = lambda *given: issue(*attempt(self, statement, *given))
        try:
            for _ in usual(self, process, statement):
                self.issue = issue
                yield
                self.issue = lambda *given: issue(*attempt(self, statement, *given))
        finally:
            self.issue = issue

    return wrapped(clause, name, description, "wsp.run.Processes.task", task)


@breaks("WSP-04.2-01", "waits for tasks of all processes", "wsp.run.Processes.await_tasks")
def wait_for_all(usual, self, process, tasks):
    every = list(self.tasks.values())
    return usual(self, process, every if isinstance(tasks, list) else tasks)


def deciding(clause, name, description, other):
    """Return a violation whose conds decide by the value of another expression."""

    def decide(usual, self, process, body, path):
        def cond(statement):
            is_cond = isinstance(statement, statements.Cond)
            return replace(statement, when=other(self, statement.when)) if is_cond else statement

        return usual(self, process, map(cond, body), path)

    return wrapped(clause, name, description, "wsp.run.Processes.body", decide)


@violates("WSP-04.2-04", "keeps the tensors of the first run of a package")
class FirstData(ReferenceAdapter):
    def __init__(self):
        super().__init__()
        self._first = {}

    def wsp_run(self, *, package, tensors=None, **arguments):
        return super().wsp_run(package=package, tensors=self._first.setdefault(package, tensors), **arguments)


VIOLATORS = [
    *(replaced(clause, description, RunsLatest, name=name)
        for clause, name, description in (
            ("WSP-01.1-01", "NotThePackage", "runs what was compiled last under the name of a package"),
            ("WSP-01.1-02", "HostFallback", "runs the program that the host compiled last"),
            ("WSP-01.1-05", "HostMemory", "runs what the host remembers of the last compilation"),
            ("WSP-04.2-06", "Retraced", "runs the program that was traced last"),
        )),
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
    wrapped("WSP-04.1-02", "constants_as_doubles", "rounds constants to doubles", "wsp.statements.Leaf.value",
        lambda usual, self, now: int(float(self.content)) & U64 if self.kind == "constant" else usual(self, now)),
    issued_late("WSP-04.1-04", "late_task", "reads operands at each attempt to issue",
        lambda self, statement, process, site, key, scalars: (process, site, key, [*map(self.value, site.scalars)])),
    issued_late("WSP-04.2-07", "late_key", "reads the key at each attempt to issue",
        lambda self, statement, process, site, key, scalars:
        (process, site, key if statement.key is None else self.value(statement.key), scalars)),
    wrapped("WSP-04.1-04", "slots_at_first", "reads a slot once at each place", "wsp.run.Processes.value",
        lambda usual, self, expression: int(at_first_here(self, expression, lambda: usual(self, expression)))),
    wrapped("WSP-04.2-01", "loads_at_once", "loads before the tasks that write are complete",
        "wsp.run.Processes.await_tensors",
        lambda usual, self, process, reads, writes: usual(self, process, (), writes)),
    loading("zeros_for_signs", "extends negative integers with zeros", narrow),
    loading("no_negative_zero", "refuses -0.0", no_negative_zero),
    loading("negative_floats", "wraps negative floats", lambda value, place: int(value) & U64
        if isinstance(value, float) and value < 0 and value.is_integer() else AS_U64(value, place)),
    loading("through_doubles", "rounds integers to doubles",
        lambda value, place: AS_U64(value, place) if isinstance(value, float) else int(float(value)) & U64),
    wrapped("WSP-04.2-02", "element_of_a_word", "numbers elements in 32 bits", "wsp.run.Processes.load",
        lambda usual, self, slot, tensor, element: usual(self, slot, tensor, element & 0xFFFFFFFF)),
    deciding("WSP-04.2-03", "decided_once", "keeps the first decision of a cond",
        lambda self, when: Leaf("constant", at_first_here(self, when, lambda: self.value(when)))),
    deciding("WSP-04.2-03", "low_bits", "looks at 32 bits of a condition",
        lambda self, when: Operation("and", (when, Leaf("constant", 0xFFFFFFFF)))),
    wrapped("WSP-04.2-05", "tensors_as_values", "lets a tensor be a value", "wsp.statements.read_expression",
        tensors_too),
    wrapped("WSP-04.2-07", "first_key", "places by the first key of a statement", "wsp.machine.Machine.issue",
        lambda usual, self, process, site, key, scalars:
            usual(self, process, site, at_first_here(self, site, lambda: key), scalars)),
]  # fmt: skip
