"""From Graph IR to Schedule IR: shapes, explicit gradients, schedules (spec sections 3.1, 5.5, 6, 8.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..graph.constant import Constant, ConstTensor
from ..graph.constant import LayoutCast as GraphLayoutCast
from ..graph.control import Call, Directive
from ..graph.elementwise import Add, Identity
from ..graph.grad import Grad, is_float
from ..ir.diagnostics import Diagnostic, Location, Rejection
from ..ir.operation import (
    Applied,
    Block,
    Builder,
    Composite,
    Function,
    Instruction,
    MissingAdjoint,
    Module,
    Operation,
    Refusal,
    Role,
    Shown,
    Stepwise,
    Walk,
    diagnostic_of,
    fields_of,
    trampoline,
)
from ..ir.targets import Target
from ..ir.types import ROW_MAJOR, Dims, Scalar, Tensor, Type, Value, fits, substituted
from .choices import Choices, Options, annotated, is_known
from .fusion import FusionGroups, directed_fusions, expanded, names_of, used_by
from .nests import is_dropped, verify_schedule
from .operations import Fuse, LayoutCast, Pipeline, Prefetch, Tile, host_functions

# Specialization to input shapes: every dimension becomes an extent (sections 3.1, 11; LANG-03.1-04, -11-02).
#
# Result types are inferred again from the parameters on, through regions and calls; a function that is called with
# several shapes becomes several functions. An extent that does not follow from the shapes of the inputs is refused,
# since Tile IR has no unknown dimensions (AMB-LANG-49). A slice between computed bounds has one, or a value that
# changes its shape in a loop.


Shape = tuple[int, ...]
Known = dict[Value, Value]
"""The specialized value of each value of a function."""


def specialize(module: Module, function: str, input_shapes: Mapping[str, Shape]) -> Module:
    """Return the module with a function and its callees specialized for parameters of these shapes.

    Other parameters have the shapes of their defaults or types. Functions that it does not call stay unchanged. Raises
    `Rejection` with phase lower.
    """
    entry = module.functions[function]
    try:
        types = tuple(_type_of(entry, parameter, input_shapes) for parameter in entry.parameters)
        specialized = specialized_alone(module, {function: types})
    except Refusal as refusal:
        raise lowering_refused(refusal, entry.location) from refusal
    return replace(module, functions={**module.functions, **specialized.functions})


def specialized_alone(module: Module, types: Mapping[str, tuple[Type, ...]]) -> Module:
    """Return a module with only these functions, for parameters of these types, and their callees.

    Raises `Refusal` and `Rejection`.
    """
    specializer = _Specializer(module)
    for function, arguments in types.items():
        trampoline(specializer.function(function, arguments))
    return replace(module, functions=specializer.functions)


def lowering_refused(refusal: Refusal, location: Location) -> Rejection:
    """Return the rejection for a refusal while lowering, at its location."""
    return Rejection([diagnostic_of(refusal, location, phase="lower")])


def _type_of(function: Function, parameter: Value, shapes: Mapping[str, Shape]) -> Type:
    """Return the type of a parameter with a given shape."""
    default = function.defaults.get(parameter.name)
    shape = shapes.get(parameter.name, default.shape if default is not None else None)
    if not isinstance(parameter.type, Tensor) or shape is None:
        return parameter.type
    return replace(parameter.type, shape=shape)


class _Specializer:
    """The maker of one specialization's functions; `functions` holds them by name."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.functions: dict[str, Function] = {}
        self._named: dict[tuple[str, tuple[Type, ...]], str] = {}
        self._returned: list[tuple[Type, ...]] = []

    def function(self, name: str, types: tuple[Type, ...]) -> Walk[str]:
        """Return the name of a function specialized for these types. Raises `Refusal` and `Rejection`."""
        if (name, types) in self._named:
            return self._named[name, types]
        function = self.module.functions[name]
        dims: dict[str, Any] = {}
        for parameter, type_ in zip(function.parameters, types, strict=True):
            _require_known(f"the parameter {parameter.name}", type_)
            if not fits(parameter.type, type_, dims):
                message = f"{parameter.name} is {type_}"
                raise Refusal("shapes", message, f"{parameter.type}, a name standing for one extent", "LANG-11-03")
        around, self._returned = self._returned, []
        body = yield self._block(function.body, types, {})
        results, self._returned = self._results(function, dims), around
        free = name if name not in self.functions else self._clone(name)
        self._named[name, types] = free
        self.functions[free] = replace(function, name=free, body=body, results=results)
        return free

    def _results(self, function: Function, dims: Dims) -> tuple[Type, ...]:
        """Return the result types of a function, in which every return now has known extents."""
        for types in self._returned:
            if types != self._returned[0]:
                message = f"@{function.name} returns {_listed(self._returned[0])} and {_listed(types)}"
                raise Refusal("shapes", message, "one shape of each result", "LANG-03.1-04")
        return self._returned[0] if self._returned else tuple(substituted(type_, dims) for type_ in function.results)

    def _clone(self, name: str) -> str:
        names = self.module.functions.keys() | self.functions.keys() | self.module.meshes.keys()
        return next(f"{name}_{count}" for count in range(1, len(names) + 2) if f"{name}_{count}" not in names)

    def _block(self, block: Block, types: tuple[Type, ...], values: Known) -> Walk[Block]:
        """Return a block whose arguments have these types."""
        for argument, type_ in zip(block.arguments, types, strict=True):
            values[argument] = Value(argument.name, type_)
        instructions = []
        for instruction in block.instructions:
            try:
                instructions.append((yield self._instruction(instruction, values)))
            except Refusal as refusal:
                raise lowering_refused(refusal.by(instruction.operation), instruction.location) from refusal
        results = tuple(values[value] for value in block.results)
        if block.exit == "return":
            self._returned.append(tuple(value.type for value in results))
        return Block(tuple(values[argument] for argument in block.arguments), tuple(instructions), results, block.exit)

    def _instruction(self, instruction: Instruction, values: Known) -> Walk[Instruction]:
        """Return an instruction on specialized operands. Raises `Refusal`."""
        operation = instruction.operation
        operands = tuple(values[value] for value in instruction.operands)
        types = tuple(value.type for value in operands)
        arguments, regions = type(operation).region_arguments(types), []
        for region, takes in zip(instruction.regions, arguments, strict=True):
            regions.append((yield self._block(region, takes, values)))
        built: Operation = replace(operation, **fields_of(type(operation), types))  # type: ignore[type-var]  # a dataclass
        if operation.calls:
            argument_types = operation.arguments_of_callee(types)
            callee = yield self.function(str(operation.attributes[operation.calls]), argument_types)
            built = replace(built, **{operation.calls: callee})  # type: ignore[type-var]
        if operation.roles.get("returns") is Role.HIDDEN:
            shown = Shown(types, built.attributes, None, tuple(regions), self.functions, self.module.meshes)
            built = replace(built, **type(built).hidden(shown))  # type: ignore[type-var]
        results = built.results()
        for type_ in results:
            _require_known("the result", type_)
        _require_same_shapes(built, regions)
        for value, type_ in zip(instruction.results, results, strict=True):
            values[value] = Value(value.name, type_)
        made = tuple(values[value] for value in instruction.results)
        return replace(instruction, operation=built, operands=operands, results=made, regions=tuple(regions))


def _require_known(subject: str, type_: Type) -> None:
    if isinstance(type_, Tensor) and not is_known(type_):
        message = f"{subject} is {type_}, of which the inputs do not show a dimension"
        raise Refusal("shapes", message, "extents that are known before Tile IR", "LANG-03.1-04")


def _require_same_shapes(operation: Operation, regions: list[Block]) -> None:
    """Require that regions yield the shapes that their operation states: a loop does not change a shape."""
    for region, gives in zip(regions, operation.region_results(), strict=True):
        yields = tuple(value.type for value in region.results)
        if region.exit == "yield" and yields != gives:
            message = f"a region yields {_listed(yields)}, and {_listed(gives)} is wanted"
            raise Refusal("shapes", message, "values of one shape, however often a loop turns", "LANG-03.1-04")


def _listed(types: tuple[Type, ...]) -> str:
    return f"({', '.join(map(str, types))})"


# Explicit gradients: `grad` as the operations of the adjoints, scheduled as any others (sections 5.5, 8.2).
#
# The interpreter differentiates along its tape (`graph.differentiation`); this follows the text of a function. The
# order is the same, so that the bits are the same. It requires a function that is one path: no branch, loop,
# collective, draw, state or gradient between the output and the input of the derivative. Composites and calls on it are
# expanded first. Any other function that differentiates stays on the host (AMB-LANG-215).


PREFIX = "g"
"""The prefix of the names of values of adjoints."""


class _NotOnePath(Exception):
    """Only an execution can compute this gradient."""


def without_gradients(module: Module) -> Module:
    """Return a module of Graph IR with known extents, with its gradients made explicit where possible."""
    return replace(module, functions={name: _written(module, function) for name, function in module.functions.items()})


def _written(module: Module, function: Function) -> Function:
    """Return a function without gradients, or unchanged where only an execution can compute one of them."""
    if not any(isinstance(step.operation, Grad) for step in function.body.walk()):
        return function
    instructions: list[Instruction] = []
    gradients: set[Value] = set()
    try:
        for instruction in function.body.instructions:
            if any(isinstance(inner.operation, Grad) for region in instruction.regions for inner in region.walk()):
                return function
            if isinstance(instruction.operation, Grad):
                instructions = _one_path(module, instructions, instruction, gradients)
                instructions += _gradients(instructions, instruction)
                gradients.update(instruction.results)
            else:
                instructions.append(instruction)
    except (_NotOnePath, MissingAdjoint):
        return function
    return replace(function, body=replace(function.body, instructions=tuple(instructions)))


# One path


def _one_path(
    module: Module, instructions: Sequence[Instruction], gradient: Instruction, gradients: set[Value]
) -> list[Instruction]:
    """Return the instructions, expanding the composites and calls that a gradient goes through.

    Raises `_NotOnePath` where it goes through one of `gradients`: on the tape the parts of an adjoint are another path.
    """
    y, *wrt = gradient.operands
    ahead, behind = _ahead(wrt, instructions), {y}
    for instruction in reversed(instructions):
        if behind.intersection(instruction.results):
            behind.update(used_by(instruction))
    if ahead & behind & gradients:
        raise _NotOnePath
    expanded: list[Instruction] = []
    for instruction in instructions:
        between = ahead.intersection(used_by(instruction)) and behind.intersection(instruction.results)
        expanded += _flat(module, instruction) if between else [instruction]
    return expanded


def _ahead(wrt: Sequence[Value], instructions: Sequence[Instruction]) -> set[Value]:
    """Return `wrt` and the values computed from it; only floats carry a derivative."""
    values = set(wrt)
    for instruction in instructions:
        if values.intersection(used_by(instruction)):
            values.update(value for value in instruction.results if is_float(value))
    return values


def _flat(module: Module, instruction: Instruction) -> Iterator[Instruction]:
    """Yield the instructions that a composite or a call runs, its arguments and results as values of their own."""
    operation, at = instruction.operation, instruction.location
    if isinstance(operation, Composite) and not operation.effects and all(map(_is_plain, instruction.operands)):
        build = Builder(at, instruction.results[0].name + "_")
        arguments = tuple(build.value(operand_.type) for operand_ in instruction.operands)
        results = operation.decompose(build, *arguments)
        inner = build.block(arguments, results if isinstance(results, tuple) else (results,))
    elif isinstance(operation, Call) and operation.callee in module.functions:
        inner = module.functions[operation.callee].body
        if inner.exit != "return" or len(inner.arguments) != len(instruction.operands):
            raise _NotOnePath
    else:
        yield instruction
        return
    values = {argument: Value(argument.name, argument.type) for argument in inner.arguments}
    for argument, operand in zip(inner.arguments, instruction.operands, strict=True):
        yield _copied(operand, values[argument], at)
    for inner_step in inner.instructions:
        if inner_step.regions:
            raise _NotOnePath
        operands = tuple(values[value] for value in inner_step.operands)
        values |= {value: Value(value.name, value.type) for value in inner_step.results}
        results = tuple(values[value] for value in inner_step.results)
        yield from _flat(module, replace(inner_step, operands=operands, results=results))
    for inside, outside in zip(inner.results, instruction.results, strict=True):
        yield _copied(values[inside], outside, at)


def _copied(value: Value, copy: Value, at: Location) -> Instruction:
    if not isinstance(value.type, Tensor | Scalar):
        raise _NotOnePath
    return Instruction(Identity(x=value.type), (value,), (copy,), at)


def _is_plain(value: Value) -> bool:
    """True if a value has known extents and the layout that every operation takes."""
    return is_known(value.type) and (not isinstance(value.type, Tensor) or value.type.layout == ROW_MAJOR)


# Adjoints


def _gradients(instructions: Sequence[Instruction], gradient: Instruction) -> list[Instruction]:
    """Return the instructions that compute the results of a gradient, from instructions on one path before it."""
    y, *wrt = gradient.operands
    backward = _Backward(gradient.location)
    ahead = _ahead(wrt, instructions)
    if y in ahead:
        backward.contributions[y] = [backward.filled(y, 1)]
    for instruction in reversed(instructions):
        if any(result in backward.contributions for result in instruction.results):
            for operand, adjoint in backward.through(instruction):
                if operand in ahead:
                    backward.contributions.setdefault(operand, []).append(adjoint)
    totals = [backward.total(x) for x in wrt]
    ends = (_copied(total, result, gradient.location) for total, result in zip(totals, gradient.results, strict=True))
    return [*backward.made, *ends]


class _Backward:
    """The backward pass: `contributions` has the gradients that each value's uses contribute, the last use first."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self.contributions: dict[Value, list[Value]] = {}
        self.made: list[Instruction] = []

    def through(self, instruction: Instruction) -> list[tuple[Value, Value]]:
        """Return the gradients of the operands of an instruction, the last operand first."""
        operation = instruction.operation
        values = (*instruction.operands, *instruction.results)
        if isinstance(operation, Stepwise) or operation.effects or not all(map(_is_plain, values)):
            raise _NotOnePath
        dys = tuple(self.total(result) for result in instruction.results)
        build = Builder(instruction.location, PREFIX)
        outgoing = operation.adjoint(Applied(instruction.operands, instruction.results, dys), build)
        self.made += build.instructions
        pairs = zip(instruction.operands, outgoing, strict=True)
        return [(operand, gradient) for operand, gradient in reversed(list(pairs)) if gradient is not None]

    def total(self, value: Value) -> Value:
        """Return the contributions of all uses of a value, added in program order (AMB-LANG-117)."""
        terms = self.contributions.get(value, [])
        if not terms:
            return self.filled(value, 0)
        build = Builder(self.location, PREFIX)
        total = terms[-1]
        for term in reversed(terms[:-1]):
            total = build(Add, total, term)
        self.made += build.instructions
        self.contributions[value] = [total]
        return total

    def filled(self, like: Value, number: int) -> Value:
        """Return a constant of the shape and dtype of a value."""
        type_ = like.type
        if not _is_plain(like) or not isinstance(type_, Tensor | Scalar):
            raise _NotOnePath
        build = Builder(self.location, PREFIX)
        if isinstance(type_, Tensor):
            constant = build(ConstTensor, shape=type_.shape, dtype=type_.dtype, value=float(number))
        else:
            constant = build(Constant, value=float(number), dtype=type_.dtype)
        self.made += build.instructions
        return constant


# From Graph IR to Schedule IR: tiling, fusion, prefetch, pipelines (sections 6, 8.2; LANG-08.2-01, -02, -13, -14).
#
# Products are tiled, their operands prefetched to shared memory and their loads pipelined; elementwise operations are
# fused with the producers of their operands; rows are tiled and prefetched. Directives of the program replace the
# choices for their values. Gradients are made explicit first; a function in which one is not stays on the host
# (AMB-LANG-215).


DIRECTIVES: Mapping[str, type[Operation]] = {
    "schedule.tile": Tile,
    "schedule.fuse": Fuse,
    "schedule.pipeline": Pipeline,
    "schedule.prefetch": Prefetch,
}
"""The operation that each directive becomes. A layout cast is already an operation of its own."""


def to_schedule(module: Module, target: Target, options: Options | None = None) -> Module:
    """Return the module with every function scheduled. Raises `Rejection` for an illegal schedule."""
    module = without_gradients(module)
    host = host_functions(module)
    functions, problems = {}, list[Diagnostic]()
    for name, function in module.functions.items():
        try:
            settings = annotated(options or Options(), function)
            scheduled = Scheduling(function, target, settings, name in host).function()
            verify_schedule(scheduled, target)
        except Refusal as refusal:
            problems += lowering_refused(refusal, function.location).diagnostics
        except Rejection as rejection:
            problems += [replace(diagnostic, phase="lower") for diagnostic in rejection.diagnostics]
        else:
            functions[name] = scheduled
    if problems:
        raise Rejection(problems)
    return replace(module, functions=functions)


class Scheduling:
    """The scheduler of one function; `now` maps each value to the result of its last schedule operation so far."""

    def __init__(self, source: Function, target: Target, options: Options, host: bool) -> None:
        self.source = source
        self.target = target
        self.options = options
        self.host = host
        self.names = names_of(source)
        self.now: dict[Value, Value] = {}
        self.made: list[Instruction] = []
        directives = [instruction for instruction in source.body.walk() if isinstance(instruction.operation, Directive)]
        self.directed = {
            (directive.operation.directive, value)
            for directive in directives
            for value in directive.operands
            if isinstance(directive.operation, Directive)
        }
        """Pairs of a directive and its value."""
        self.fused: dict[Instruction, tuple[Value, ...]] = {}
        """The values of each fusion that a directive requests."""

    def function(self) -> Function:
        """Return the scheduled function. Raises `Rejection`."""
        body = trampoline(self._block(self.source.body))
        attributes = {name: value for name, value in self.source.attributes.items() if name != "schedule"}
        return replace(self.source, body=body, attributes=attributes)

    def _block(self, block: Block) -> Walk[Block]:
        outer, self.made = self.made, []
        around = dict(self.now)
        instructions = block.instructions if self.host else expanded(block, self.names)
        for directive, values in directed_fusions(instructions).items():
            self.fused[directive] = values
            self.directed |= {("schedule.fuse", value) for value in values}
        groups = self._groups(instructions) if self.options.fuse and not self.host else None
        for instruction in instructions:
            if isinstance(instruction.operation, Directive):
                self._direct(instruction)
            elif isinstance(instruction.operation, GraphLayoutCast) and not self.host:
                self._cast(instruction)
            else:
                regions = []
                for region in instruction.regions:
                    regions.append((yield self._block(region)))
                self._schedule(replace(instruction, regions=tuple(regions)), groups)
        made, self.made = self.made, outer
        results, self.now = self._read(block.results), around
        return Block(block.arguments, tuple(made), results, block.exit)

    def _groups(self, instructions: Sequence[Instruction]) -> FusionGroups:
        """Return the groups that directives fuse; operations join them as they are scheduled."""
        fusions = [(instruction, self.fused[instruction]) for instruction in instructions if instruction in self.fused]
        computing = [instruction for instruction in instructions if not is_dropped(instruction)]
        return FusionGroups(computing, self.directed, fusions)

    def _read(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(self.now.get(value, value) for value in values)

    # Chosen schedules

    def _schedule(self, instruction: Instruction, groups: FusionGroups | None) -> None:
        """Add an instruction, with prefetches of its operands before it and the schedule of its result after it."""
        if self.host:
            self.made.append(replace(instruction, operands=self._read(instruction.operands)))
            return
        choices = Choices.of(instruction, self.target, self.options, self.directed)
        operands = list(self._read(instruction.operands))
        for position in choices.prefetched:
            source = operands[position]
            operands[position] = self._put(instruction, Prefetch, (source,), f"{source.name}s", scope=choices.scope)
        self.made.append(replace(instruction, operands=tuple(operands)))
        if not instruction.results:
            return
        result = instruction.results[0]
        producer = groups.into(instruction) if groups is not None else None
        if choices.tile is not None and producer is None:
            m, n, k, pad = choices.tile
            sizes: dict[str, Any] = {"m": m, "n": n, "k": k, "pad": pad}
            self.now[result] = self._put(instruction, Tile, self._read((result,)), f"{result.name}t", **sizes)
        if choices.depth is not None:
            settings: dict[str, Any] = {"double_buffer": choices.depth > 1, "depth": choices.depth}
            self.now[result] = self._put(instruction, Pipeline, self._read((result,)), f"{result.name}p", **settings)
        if producer is not None:
            self.now[result] = self._put(instruction, Fuse, self._read((producer, result)), f"{result.name}f")

    # Directed schedules

    def _direct(self, instruction: Instruction) -> None:
        """Add the operation that a directive requests; from here on its result replaces the value."""
        directive = instruction.operation
        assert isinstance(directive, Directive)
        operation = DIRECTIVES.get(directive.directive)
        if operation is None or self.host:
            return
        settings = dict(directive.settings)
        if operation is Fuse:
            last = instruction.operands[-1]
            self.now[last] = self._put(instruction, Fuse, self._read(self.fused[instruction]), f"{last.name}f")
            return
        for subject in instruction.operands:
            attributes = self._completed(subject, settings) if operation is Tile else settings
            name = subject.name + {Tile: "t", Pipeline: "p", Prefetch: "s"}[operation]
            before = len(self.made)
            result = self._put(instruction, operation, self._read((subject,)), name, **attributes)
            if operation is Prefetch and not self._is_read_later(subject, instruction):
                del self.made[before:]  # legal, and without effect (AMB-LANG-218)
            else:
                self.now[subject] = result

    def _completed(self, subject: Value, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the sizes of a tile directive; missing ones are chosen as without the directive."""
        producer = next((candidate for candidate in self.made if subject in candidate.results), None)
        chosen = Choices.of(producer, self.target, self.options, set()).tile if producer is not None else None
        m, n, k, pad = chosen or (1, 1, None, None)
        attributes = {"m": m, "n": n, "k": k, **settings}
        open_k = "k" not in settings and k is not None
        if open_k and pad is not None and pad[2]:
            own = settings.get("pad", 0)
            numbers = own if isinstance(own, tuple) else (own, own)
            attributes["pad"] = (*numbers[:2], pad[2])
        return {name: value for name, value in attributes.items() if value is not None}

    def _is_read_later(self, value: Value, directive: Instruction) -> bool:
        """True if anything computes with a value after a directive about it."""
        later = False
        for instruction in self.source.body.walk():
            later = later or instruction is directive
            if later and value in instruction.operands and not isinstance(instruction.operation, Directive):
                return True
        return False

    def _cast(self, instruction: Instruction) -> None:
        """Add a layout cast of Graph IR, which is a materialized copy (AMB-LANG-67)."""
        operation, operands = instruction.operation, self._read(instruction.operands)
        assert isinstance(operation, GraphLayoutCast)
        cast = LayoutCast(x=operation.x, to=operation.to, materialize=True)
        self.made.append(replace(instruction, operation=cast, operands=operands))

    def _put(
        self, at: Instruction, operation: type[Operation], operands: tuple[Value, ...], name: str, **attributes: Any
    ) -> Value:
        """Add a schedule operation, and return its result."""
        types = tuple(operand.type for operand in operands)
        operation_ = operation(**fields_of(operation, types), **attributes)
        try:
            (type_,) = operation_.results()
        except Refusal as refusal:
            raise lowering_refused(refusal.by(operation_), at.location) from refusal
        result = Value(self.names.unique(name), type_)
        self.made.append(Instruction(operation_, operands, (result,), at.location))
        return result


# The legality of the schedule that a program states (spec section 6; LANG-06.2-01 to -05, -06.3-01).
#
# A program is verified without a target: it is refused where no target can follow its directives and annotations.


def verify_stated_schedules(modules: Iterable[Module], targets: Sequence[Target]) -> None:
    """Raise `Rejection`, with the faults for the first target, unless a target can follow each module's schedule."""
    for module in modules:
        if any(_states_schedule(function) for function in module.functions.values()):
            _verify(module, targets)


def _verify(module: Module, targets: Sequence[Target]) -> None:
    refused = []
    for target in targets:
        try:
            to_schedule(module, target)
        except Rejection as rejection:
            refused.append(rejection)
        else:
            return
    raise Rejection([replace(diagnostic, phase="verify") for diagnostic in refused[0].diagnostics])


def _states_schedule(function: Function) -> bool:
    return "schedule" in function.attributes or any(
        isinstance(instruction.operation, Directive) and instruction.operation.directive.startswith("schedule.")
        for instruction in function.body.walk()
    )
