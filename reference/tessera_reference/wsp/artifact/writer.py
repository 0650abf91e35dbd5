"""The C program of one package, or of several (sections 1.1, 6.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files

from .. import policies
from ..kernels import Instruction, Kernel, Operand
from ..package import Package, Process, Tensor, consumed_channels, produced_channels
from ..statements import (
    Body,
    Close,
    Cond,
    Constant,
    Consume,
    Expression,
    Input,
    Load,
    Operation,
    Receive,
    Repeat,
    RunKernel,
    Scope,
    Send,
    SlotValue,
    Statement,
    SymbolValue,
    Task,
    TensorArgument,
    Wait,
)

# Small pieces of C.


NUMBER = "uint32_t"


def text(value: str) -> str:
    """A string literal; names and paths need no escapes."""
    return f'"{value}"'


def array(kind: str, name: str, values: Sequence[object]) -> tuple[list[str], str]:
    """The definition of a constant array, and how it is referred to; C has no arrays without elements."""
    if not values:
        return [], "NULL"
    lines = [f"static const {kind} {name}[] = {{"]
    width = 16
    for start in range(0, len(values), width):
        lines.append(f"    {', '.join(map(str, values[start : start + width]))},")
    return [*lines, "};"], name


def block(head: str, lines: Sequence[str]) -> list[str]:
    """Lines in braces after a head."""
    return [f"{head} {{", *(f"    {each}" for each in lines), "}"]


# ScalarExpr as C: statements that compute temporaries in the order in which the executor evaluates operands.


OPERATORS: Mapping[str, str] = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "wsp_div(m, {0}, {1})",
    "mod": "wsp_mod(m, {0}, {1})",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "shl": "{0} << ({1} & 63)",
    "shr": "{0} >> ({1} & 63)",
    "eq": "wsp_eq({0}, {1})",
    "ne": "wsp_ne({0}, {1})",
    "lt": "wsp_lt({0}, {1})",
    "le": "wsp_le({0}, {1})",
    "gt": "wsp_gt({0}, {1})",
    "ge": "wsp_ge({0}, {1})",
    "min": "wsp_min({0}, {1})",
    "max": "wsp_max({0}, {1})",
    "not": "~{0}",
}


class Temporaries:
    """The statements of a block so far; `m` is the machine in it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def value(self, expression: Expression) -> str:
        """Return the expression of the value, after the statements that compute it."""
        match expression:
            case Constant(value):
                return f"UINT64_C({value})"
            case SymbolValue(symbol):
                return f"m->symbols[{symbol}]"
            case SlotValue(slot):
                return f"m->slots[{slot}]"
            case Input(name):
                return name
            case Operation("select", (condition, chosen, other)):
                return self._select(condition, chosen, other)
            case Operation(name, operands):
                return self._named(OPERATORS[name].format(*map(self.value, operands)))

    def _named(self, computed: str) -> str:
        name = f"t{self._count}"
        self._count += 1
        self.lines.append(f"u64 {name} = {computed};")
        return name

    def _select(self, condition: Expression, chosen: Expression, other: Expression) -> str:
        """Only the chosen operand is evaluated."""
        when = self.value(condition)
        name = self._named("0")
        for head, operand in ((f"if ({when} != 0) {{", chosen), ("} else {", other)):
            self.lines.append(head)
            self.lines.append(f"{name} = {self.value(operand)};")
        self.lines.append("}")
        return name


# The instructions of a kernel call as C: a loop an instruction, over tensors whose dtype and count are known.
#
# Integers are computed without signs, which wrap as two's complement does; only orders look at the sign bit.


FLOATS = {"fp32": "float", "fp64": "double"}
INTEGER = {"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}"}


def effect(name: str, kernel: Kernel, tensors: Mapping[str, int], declared: Sequence[Tensor]) -> list[str]:
    """The function `name`: what the kernel does to tensors, by parameter, given its scalars."""
    scalars = [each for each, kind in kernel.parameters.items() if kind == "scalar"]
    lines = ["(void)m;", "(void)scalars;"]
    for each in kernel.instructions:
        lines += _Loop(each, tensors, declared, scalars).lines()
    return block(f"static void {name}(Machine *m, const u64 *scalars)", lines)


class _Loop:
    def __init__(
        self, instruction: Instruction, tensors: Mapping[str, int], declared: Sequence[Tensor], scalars: Sequence[str]
    ) -> None:
        self.instruction = instruction
        self.tensors = tensors
        self.declared = declared
        self.scalars = scalars
        self.destination = declared[tensors[instruction.destination]]
        dtype = self.destination.dtype
        self.bits = 8 * self.destination.nbytes // self.destination.count
        self.signed = dtype[0] == "i"
        self.float = FLOATS.get(dtype)
        self.bool = dtype == "bool"
        self.kind = self.float or f"uint{self.bits}_t"

    def lines(self) -> Iterator[str]:
        """The instruction in braces."""
        op, operands = self.instruction.op, self.instruction.operands
        yield f"{{ /* {op} */"
        yield f"    {self.kind} *d = ({self.kind} *)m->tensors[{self.tensors[self.instruction.destination]}];"
        values = []
        for name, operand in zip("ab", operands, strict=False):
            declaration, value = self._operand(name, operand)
            yield f"    {declaration}"
            values.append(value)
        if op == "sum":
            yield from self._sum(self.declared[self.tensors[operands[0].parameter]].count)
        else:
            computed = self._computed(op, values)
            yield f"    for (size_t i = 0; i < {self.destination.count}; i++) d[i] = {computed};"
        yield "}"

    def _operand(self, name: str, operand: Operand) -> tuple[str, str]:
        if operand.parameter in self.tensors:
            data = f"(const {self.kind} *)m->tensors[{self.tensors[operand.parameter]}]"
            return f"const {self.kind} *{name} = {data};", f"{name}[i]"
        given = f"UINT64_C({operand.constant})"
        if operand.parameter:
            given = f"scalars[{self.scalars.index(operand.parameter)}]"
        converted = f"{given} != 0" if self.bool else f"({self.kind}){given}"
        return f"const {self.kind} {name} = {converted};", name

    def _computed(self, op: str, values: Sequence[str]) -> str:
        if op in ("fill", "copy"):
            return values[0]
        if op == "iota":
            return f"({self.kind})i + {values[0]}" if self.float else f"({self.kind})((u64)i + {values[0]})"
        if op in INTEGER:
            if self.float:
                return f"wsp_settled_{self.float}({INTEGER[op].format(*values)})"
            a, b = (f"(u64){each}" for each in values)
            return f"({self.kind})({INTEGER[op].format(a, b)})"
        if self.float:
            return f"wsp_{op}_{self.float}({', '.join(values)})"
        a, b = (f"((u64){each} ^ {self._sign()})" for each in values)
        chosen, other = values if op == "min" else reversed(values)
        return f"{a} < {b} ? {chosen} : {other}"

    def _sign(self) -> str:
        return f"UINT64_C({1 << (self.bits - 1)})" if self.signed else "0"

    def _sum(self, count: int) -> Iterator[str]:
        """In element order."""
        kind = self.float or "u64"
        yield f"    {kind} total = a[0];"
        yield f"    for (size_t i = 1; i < {count}; i++) total += a[i];"
        yield f"    d[0] = {f'wsp_settled_{self.float}(total)' if self.float else f'({self.kind})total'};"


# The calls of kernels in a package as C: a `Site` each, and a function for each kernel and choice of tensors.


class Sites:
    """The definitions so far, whose names begin with `prefix`."""

    def __init__(self, package: Package, prefix: str) -> None:
        self.package = package
        self.prefix = prefix
        self.lines: list[str] = []
        self.most_scalars = 1  # what a load has
        self.most_reads = 0
        self._effects: dict[tuple[int, ...], str] = {}
        self._count = 0

    def add(self, call: RunKernel | Task, path: str, produces: Sequence[int]) -> tuple[str, Sequence[Expression]]:
        """The name of the site of a call, and the scalars that are its operands."""
        name = f"{self.prefix}site{self._count}"
        self._count += 1
        kernel = self.package.kernels[call.kernel]
        given = dict(zip(kernel.parameters, call.arguments, strict=True))
        tensors = {each: value.tensor for each, value in given.items() if isinstance(value, TensorArgument)}
        scalars = [value for value in given.values() if not isinstance(value, TensorArgument)]
        writes = list(dict.fromkeys(tensors[each] for each in kernel.written))
        reads = list(dict.fromkeys(each for each in tensors.values() if each not in writes))
        waits, signals = (call.waits, call.signals) if isinstance(call, Task) else ((), ())
        places = [produces.index(each) for each in signals]
        declared = self.package.tensors
        self.most_scalars = max(self.most_scalars, len(scalars))
        self.most_reads = max(self.most_reads, len(reads))
        members = [
            str(call.kernel),
            f"UINT64_C({kernel.cycles([declared[each].count for each in tensors.values()])})",
            self._effect(call.kernel, tensors),
            str(len(scalars)),
            *self._listed(f"{name}_reads", reads),
            *self._listed(f"{name}_writes", writes),
            f"UINT64_C({sum(declared[each].nbytes for each in writes)})",
            text(path),
            *self._listed(f"{name}_waits", waits),
            *self._listed(f"{name}_signals", signals),
            self._listed(f"{name}_places", places)[1],
        ]
        self.lines.append(f"static const Site {name} = {{{', '.join(members)}}};")
        return name, scalars

    def _listed(self, name: str, values: Sequence[int]) -> tuple[str, str]:
        lines, reference = array(NUMBER, name, values)
        self.lines += lines
        return str(len(values)), reference

    def _effect(self, number: int, tensors: Mapping[str, int]) -> str:
        form = (number, *tensors.values())
        if form not in self._effects:
            name = self._effects[form] = f"{self.prefix}effect{len(self._effects)}"
            self.lines += effect(name, self.package.kernels[number], tensors, self.package.tensors)
        return self._effects[form]


# The body of a process as C: a state machine, one case a step, in the order in which the executor numbers steps.


ON = "wsp_go(p, p->pc + 1);"


SCOPE_STEPS = ("wsp_begin_scope(m, p);", "wsp_end_scope(m, p);")
"""The steps that count themselves, since they may be left out."""


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
            counted = lines if lines[0] in SCOPE_STEPS else ["wsp_count_step(m);", *lines]
            cases += block(f"case {place}:", counted if lines[-1] == "return;" else [*counted, "break;"])
        steps = block("for (;;)", block("switch (p->pc)", [*cases, "default: return;"]))
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


# Writes the C program of one package, or of several, which then run one after the other.


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
    """Yield the package's own part of the program."""
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
    values = Temporaries()
    worker = values.value(policies.worker(policy.id, policy.parameters))
    return block(
        f"static u64 {name}(Machine *m, u64 task, u64 key)",
        [
            "(void)m;",
            "(void)task;",
            "(void)key;",
            *values.lines,
            f"if ({worker} >= {workers}) wsp_bad_worker(m, task, {worker});",
            f"return {worker};",
        ],
    )
