"""Operations, and the instructions, blocks, functions and modules that hold them (spec section 5; LANG-01-03, -06).

An operation is declared in one class; each of its refusals becomes a diagnostic."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import Enum, auto
from inspect import get_annotations
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
)

from ..numerics.array import Array
from ..numerics.formats import DType
from .diagnostics import Category, Diagnostic, Location, Phase, Rejection
from .types import Fragment, Future, Memref, Mesh, Scalar, Shard, Tensor, Type, Value, Vector, dtype_of

# Declaring an operation: name, clauses, operands, attributes, typing and execution in one class (spec section 5).
#
# A subclass of `Operation` decorated with `@operation` is a frozen record of its operands' *types* and its attributes;
# `infer` returns the type of the result, `execute` its value. The declaration drives everything else: the DSL's
# spelling, the printer, the verifier and the interpreter. An operation that runs other code, or waits for other ranks,
# is `Stepwise`.


T = TypeVar("T")
O = TypeVar("O", bound="Operation")  # noqa: E741


class Role(Enum):
    """The role of a field of an operation."""

    OPERAND = auto()
    OPERANDS = auto()
    ATTRIBUTE = auto()
    HIDDEN = auto()


Operand = Annotated[T, Role.OPERAND]
Operands = Annotated[tuple[T, ...], Role.OPERANDS]
Attribute = Annotated[T, Role.ATTRIBUTE]
Hidden = Annotated[T, Role.HIDDEN]
"""An attribute that the printed form shows elsewhere, such as the result types of a call."""
Stated = Annotated[T, Role.HIDDEN, "stated"]
"""The type of the only result, which the text states, or the dtype of that scalar."""

AttributeValue = int | float | bool | str | DType | Shard | tuple[Any, ...]


class Refusal(Exception):
    """An operation does not take these operands or attributes; `diagnostic_of` adds the place.

    In a remedy, {a} is replaced by the source text of operand a.
    """

    def __init__(
        self, category: Category, message: str, requirement: str = "", clause: str = "", remedy: str = ""
    ) -> None:
        self.category = category
        self.message = message
        self.requirement = requirement
        self.clause = clause
        self.remedy = remedy
        super().__init__(message)

    def by(self, operation: Operation) -> Refusal:
        """Return this refusal with the name of the refusing operation before its message."""
        message = f"{operation.short_name}: {self.message}"
        return Refusal(self.category, message, self.requirement, self.clause, self.remedy)


class Unimplemented(Exception):
    """The operation is legal, and this reference does not implement it."""

    def __init__(self, feature: str) -> None:
        self.feature = feature
        super().__init__(feature)


class Environment(Protocol):
    """The environment of an executing operation."""

    @property
    def seed(self) -> int:
        """The seed of random operations that name none (RT-11-03)."""

    def next_stream(self) -> int:
        """Return the number of a random stream that nothing drew from before (RT-11-03)."""


@dataclass(frozen=True)
class Derived:
    """The default of an attribute that follows from the operands."""

    rule: Callable[[Any], AttributeValue]


def derived(rule: Callable[[Any], AttributeValue]) -> Any:
    """Return an attribute with the default `rule(operation)`, which is then stated and printed (AMB-LANG-70)."""
    return Derived(rule)


class Shown(NamedTuple):
    """The printed form of an instruction, from which the hidden fields of its operation follow."""

    operands: tuple[Type, ...]
    attributes: Mapping[str, AttributeValue]
    results: tuple[Type, ...] | None
    """The result types; None where the text leaves them out."""
    regions: Sequence[Block]
    functions: Mapping[str, Function]
    meshes: Mapping[str, Mesh]


@dataclass(frozen=True)
class Applied:
    """An executed operation as its adjoint sees it: operands, results, and the gradient of each result."""

    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    gradients: tuple[Value, ...]

    @property
    def dy(self) -> Value:
        """The gradient of the first, often only, result."""
        return self.gradients[0]


_SPELT = {
    Scalar: "fp32",
    Vector: "vector<4xfp32>",
    Fragment: "fragment<16,16,16,bf16>",
    Memref: "memref<128x64xbf16>[addrspace=shared]",
}
"""The types that a text may state, as examples."""


class Operation:
    """Base of all operations; see the module.

    No `ABC`, which would make every `isinstance` of an operation slow: `operation` refuses abstract methods.
    """

    name: ClassVar[str]
    clauses: ClassVar[tuple[str, ...]]
    spellings: ClassVar[tuple[str, ...]]
    """Spellings in the DSL: `op.matmul`, `@`; unary operators as `unary -`."""
    roles: ClassVar[Mapping[str, Role]]
    singles: ClassVar[tuple[str, ...]] = ()
    """The fields that are one operand each, in order."""
    rest: ClassVar[str] = ""
    """The field of the remaining operands, if it takes any number of them."""
    kinds: ClassVar[Mapping[str, tuple[Any, ...]]]
    own_attributes: ClassVar[Mapping[str, Any]] = {}
    """The attributes that it declares, each with its declared type."""
    required_attributes: ClassVar[tuple[str, ...]]
    """The attributes that have no default."""
    derived_attributes: ClassVar[tuple[str, ...]] = ()
    """The attributes whose defaults follow from the operands."""
    stated: ClassVar[str] = ""
    """The `Stated` field."""
    hints: ClassVar[Mapping[str, Any]]
    """The declared type of each field: as in `kinds`, but with the items of tuples."""
    effects: ClassVar[frozenset[str]] = frozenset()
    """Empty for a pure operation (LANG-02.3-55)."""
    layouts: ClassVar[frozenset[str]] = frozenset({"row_major"})
    """The operand layouts it takes (LANG-03.3-02, AMB-LANG-67)."""
    alike: ClassVar[tuple[str, ...]] = ()
    """The operands that share one dtype, which a literal among them takes from the others (AMB-LANG-125)."""
    regions: ClassVar[tuple[str, ...]] = ()
    """The names of the regions it owns (LANG-01-06)."""
    takes_futures: ClassVar[bool] = False
    """True if an operand may be a future, which every other operation takes awaited (COLL-02.1-05)."""
    lone_type: ClassVar[Literal["operand", "result"]] = "result"
    """The meaning of a single type after its colon (AMB-COLL-15)."""
    handle: ClassVar[bool] = False
    """True if printed IR may bind a name to an operation without results (AMB-LANG-280)."""
    calls: ClassVar[str] = ""
    """The attribute that names the function it runs, if it runs one (LANG-05-03)."""
    nest: ClassVar[Literal["map", "rows", "contract"] | None] = None
    """The kind of loop nest it becomes; None for operations of the host function (AMB-LANG-214)."""
    lanewise: ClassVar[bool] = False
    """True if a kernel may hold it, on scalars, and it does the same in each lane."""
    orders: ClassVar[tuple[Literal["fold", "pairwise"], ...]] = ()
    """The orders in which it, or its adjoint, adds values that round."""

    def __post_init__(self) -> None:
        if not self.derived_attributes:
            return
        left_out = [name for name in self.derived_attributes if isinstance(getattr(self, name), Derived)]
        if left_out and all(isinstance(type_, self.kinds.get(name, object)) for name, type_ in self.operand_types):
            for name in left_out:
                object.__setattr__(self, name, getattr(self, name).rule(self))

    @property
    def short_name(self) -> str:
        """The name without its dialect."""
        return self.name.rpartition(".")[2]

    @property
    def operand_types(self) -> tuple[tuple[str, Type], ...]:
        """Each operand's name and type."""
        named: list[tuple[str, Type]] = [(name, getattr(self, name)) for name in self.singles]
        if self.rest:
            named += [(f"{self.rest}[{i}]", type_) for i, type_ in enumerate(getattr(self, self.rest))]
        return tuple(named)

    @property
    def attributes(self) -> dict[str, AttributeValue]:
        """The attributes that have a value, in the order of their declaration (LANG-01-07)."""
        return {name: value for name in self.own_attributes if (value := getattr(self, name)) is not None}

    @classmethod
    def attributes_of(cls, results: tuple[Type, ...]) -> dict[str, AttributeValue]:
        """Return the attributes that a text leaves out and its result types imply."""
        return {}

    def results(self) -> tuple[Type, ...]:
        """Check kinds and layouts of the operands, then infer the result types. Raises `Refusal`."""
        of_the_rest = self.kinds.get(self.rest, (object,))
        for name, type_ in self.operand_types:
            if isinstance(type_, Future) and not self.takes_futures:
                required = f"the value, {type_.value}"
                raise Refusal("types", f"{name} is {type_}", required, "COLL-02.1-05", "await it: tessera.await")
            kinds = self.kinds.get(name, of_the_rest)
            if not isinstance(type_, kinds):
                expected = f"a {' or '.join(kind.__name__.lower() for kind in kinds)}"
                raise Refusal("types", f"{name} is {type_}, not {expected}", expected, "LANG-11-01", "")
            if isinstance(type_, Tensor) and type_.layout.name not in self.layouts:
                message = f"{name} has layout {type_.layout}"
                requirement = f"{name}.layout in {{{', '.join(sorted(self.layouts))}}}"
                remedy = "cast the layout at Schedule IR: schedule.layout_cast"
                raise Refusal("layouts", message, requirement, "LANG-03.3-02", remedy)
        inferred = self.infer()
        if inferred is None:
            return ()
        return inferred if isinstance(inferred, tuple) else (inferred,)

    def arguments_of_callee(self, operands: tuple[Type, ...]) -> tuple[Type, ...]:
        """Return the argument types of the function named by `calls`, from the types of the operands."""
        return operands

    @classmethod
    def region_arguments(cls, operands: tuple[Type, ...]) -> tuple[tuple[Type, ...], ...]:
        """Return the argument types of each region, from the types of as many operands as it has."""
        return ((),) * len(cls.regions)

    def region_results(self) -> tuple[tuple[Type, ...], ...]:
        """Return the types that each region yields, where it does not leave in another way."""
        return ((),) * len(self.regions)

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """Return all hidden fields. Raises `Refusal` where the printed form does not determine them."""
        if not cls.stated:
            return {}
        is_dtype = cls.kinds[cls.stated] == (DType,)
        kinds = (Scalar,) if is_dtype else cls.kinds[cls.stated]
        match shown.results:
            case [type_] if isinstance(type_, kinds):
                return {cls.stated: dtype_of(type_) if is_dtype else type_}
        message = f"its result is not stated to be a {' or a '.join(kind.__name__.lower() for kind in kinds)}"
        raise Refusal("types", message, f": (...) -> {_SPELT[kinds[-1]]}", cls.clauses[0])

    @abstractmethod
    def infer(self) -> Type | tuple[Type, ...] | None:
        """Return the result type or types, if any. Raises `Refusal` for operands that the operation does not take."""

    @abstractmethod
    def execute(self, *operands: Any, **context: Any) -> Any:
        """Return the result value or values; the arguments are the operand arrays and `env`."""

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return each operand's gradient from those of the results (LANG-05.5-01); None where it is zero everywhere.

        Called on the operation with the types of the executed operands, so that every dimension is known.
        """
        raise MissingAdjoint(self)

    @classmethod
    def is_differentiable(cls) -> bool:
        """True if it declares an adjoint, or has one by its decomposition (LANG-05.5-02, AMB-LANG-59)."""
        return cls.adjoint is not Operation.adjoint


def no_gradient(self: Operation, at: Applied, build: Builder) -> tuple[Value | None, ...]:
    """Return None for each operand: the results do not change with a small change of any float operand."""
    return (None,) * len(at.operands)


class MissingAdjoint(Exception):
    """An operation has neither an adjoint nor a decomposition into operations that have one."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        super().__init__(operation.short_name)


OPERATIONS: dict[str, type[Operation]] = {}
"""Every declared operation by name."""

SPELLINGS: dict[str, type[Operation]] = {}
"""Every operation that the DSL can write, by its spelling there."""


def _annotations(cls: type[Operation]) -> dict[str, Any]:
    """Return the annotations of a class and its bases below `Operation`, which has many annotations but no fields."""
    bases = [base for base in cls.__mro__ if base not in Operation.__mro__]
    return {name: hint for base in reversed(bases) for name, hint in get_annotations(base, eval_str=True).items()}


@dataclass_transform(frozen_default=True)
def operation(name: str, *, clauses: tuple[str, ...], spellings: tuple[str, ...] = ()) -> Callable[[type[O]], type[O]]:
    """Declare a class as the operation `name`, which the DSL writes as any of `spellings`."""

    def declare(cls: type[O]) -> type[O]:
        declared = dataclass(frozen=True)(cls)
        lacking = [name for name in dir(declared) if getattr(getattr(declared, name), "__isabstractmethod__", False)]
        if lacking:
            raise TypeError(f"operation {name} does not implement {', '.join(lacking)}")
        hints = _annotations(declared)
        defaults = {part.name: part.default for part in fields(declared)}  # type: ignore[arg-type]
        roles, kinds, inners = {}, {}, {}
        for name_ in defaults:
            inner, role, *stated = get_args(hints[name_])
            roles[name_] = role
            inners[name_] = inner
            one = get_args(inner)[0] if role is Role.OPERANDS else inner
            choices = get_args(one) if isinstance(one, UnionType) else (one,)
            kinds[name_] = tuple(get_origin(choice) or choice for choice in choices)
            declared.stated = name_ if stated else declared.stated
        declared.name, declared.clauses, declared.spellings = name, clauses, spellings
        declared.roles, declared.kinds = roles, kinds
        declared.singles = tuple(name for name, role in roles.items() if role is Role.OPERAND)
        declared.rest = next((name for name, role in roles.items() if role is Role.OPERANDS), "")
        declared.hints = inners
        declared.own_attributes = {name: inners[name] for name, role in roles.items() if role is Role.ATTRIBUTE}
        declared.required_attributes = tuple(name for name in declared.own_attributes if defaults[name] is MISSING)
        declared.derived_attributes = tuple(name for name in roles if isinstance(defaults[name], Derived))
        OPERATIONS[name] = declared
        SPELLINGS.update(dict.fromkeys(spellings, declared))
        return declared

    return declare


# Modules, functions, blocks, values: the SSA structure of every level (section 5; LANG-01-03, -06, LANG-05-01, -03).
#
# An instruction may own regions, each of one block (LANG-01-06). A block sees the values of the blocks around it, and
# ends in one of three ways: `yield` passes values to the instruction that owns it, `return` ends the function from any
# depth, and `unreachable` states that control never gets there.


Exit = Literal["return", "yield", "unreachable"]


@dataclass(frozen=True, eq=False)
class Instruction:
    """An operation applied to values, at a place in the source.

    `attributes` are those that any operation may carry (LANG-05.3-01 to -06, AMB-LANG-83); its own are in `operation`.
    """

    operation: Operation
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    location: Location
    regions: tuple[Block, ...] = ()
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Block:
    """Arguments, instructions in order, and the values with which the block ends."""

    arguments: tuple[Value, ...]
    instructions: tuple[Instruction, ...]
    results: tuple[Value, ...]
    exit: Exit = "return"

    def walk(self) -> Iterator[Instruction]:
        """Yield every instruction in program order, those of regions after their owner."""
        pending = [iter(self.instructions)]
        while pending:
            instruction = next(pending[-1], None)
            if instruction is None:
                pending.pop()
                continue
            yield instruction
            pending += [iter(block.instructions) for block in reversed(instruction.regions)]

    def blocks(self) -> Iterator[Block]:
        """Yield this block and all blocks inside it."""
        yield self
        for instruction in self.walk():
            yield from instruction.regions


@dataclass(frozen=True, eq=False)
class Function:
    """A symbol of its module: a block with a signature. A kernel returns its tensor parameters after its execution."""

    name: str
    body: Block
    results: tuple[Type, ...]
    location: Location
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    kernel: bool = False
    defaults: Mapping[str, Array] = field(default_factory=dict)
    """The values of optional parameters (AMB-LANG-74)."""
    device: str = ""
    """The level, `tile` or `target`, of a kernel that runs on a device; "" for functions of the host."""

    @property
    def parameters(self) -> tuple[Value, ...]:
        """The arguments of the body."""
        return self.body.arguments


@dataclass(frozen=True, eq=False)
class Module:
    """Functions and meshes by name; symbols are scoped to the module (LANG-05-03)."""

    name: str
    functions: Mapping[str, Function]
    location: Location
    meshes: Mapping[str, Mesh] = field(default_factory=dict)


# Building instructions from code: for adjoints, decompositions and passes.


class Builder:
    """A builder of one block: it appends instructions, all at one place in the source, and names their results."""

    def __init__(self, location: Location, prefix: str = "") -> None:
        self.location = location
        self.prefix = prefix
        self.instructions: list[Instruction] = []
        self._named = 0

    def __call__(self, operation: type[Operation], *operands: Value, **attributes: Any) -> Value:
        """Append an operation with one result, and return it. Attributes and hidden fields are given by name."""
        (result,) = self.all(operation, *operands, **attributes)
        return result

    def all(self, operation: type[Operation], *operands: Value, **attributes: Any) -> tuple[Value, ...]:
        """Append an operation, and return its results. Raises `Refusal` when it does not take these operands."""
        built = operation(**fields_of(operation, tuple([value.type for value in operands])), **attributes)
        results = tuple([self.value(type_) for type_ in built.results()])
        self.instructions.append(Instruction(built, operands, results, self.location))
        return results

    def value(self, type_: Type) -> Value:
        """Return a new value, which something else must define."""
        self._named += 1
        return Value(f"{self.prefix}{self._named - 1}", type_)

    def block(self, arguments: tuple[Value, ...], results: tuple[Value, ...]) -> Block:
        """Return the instructions as a block that yields `results`."""
        return Block(arguments, tuple(self.instructions), results, "yield")


def fields_of(operation: type[Operation], types: tuple[Type, ...]) -> dict[str, Any]:
    """Return the operand fields of an operation from its operand types in order; the variadic field takes the rest."""
    count = len(operation.singles)
    named: dict[str, Any] = dict(zip(operation.singles, types, strict=False))
    if operation.rest:
        named[operation.rest] = types[count:]
    elif len(types) > count:
        raise TypeError(f"{operation.name} takes {count} operands, {len(types)} given")
    return named


# Names of values in text: unique in a function, and valid in MLIR (LANG-01-03).


_PLAIN = re.compile(r"[0-9]+|[A-Za-z_$.-][A-Za-z0-9_$.-]*")
_STRANGE = re.compile(r"[^A-Za-z0-9_$.-]")


class Names:
    """The names used in one function."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next = 0

    def unique(self, hint: str) -> str:
        """Return the requested name, or a similar one that is free."""
        name = hint if _PLAIN.fullmatch(hint) else f"_{_STRANGE.sub('_', hint)}"
        if name in self._taken:
            stem = "" if name.isdecimal() else f"{name}_"
            while (name := f"{stem}{self._next}") in self._taken:
                self._next += 1
        self._taken.add(name)
        return name


# A trampoline: nested regions are visited without nesting Python calls.
#
# A walk is a generator that yields the walk of each part and receives its result. At any depth of nesting, Python's
# stack does not grow: a thousand nested loops are read, printed and verified like any others.


Walk: TypeAlias = Generator["Walk[Any]", Any, T]
"""A function that writes `part = yield walk(...)` where it would write `part = walk(...)`."""


def trampoline(walk: Walk[T]) -> T:
    """Run a walk with all the walks that it yields, and return its result."""
    pending: list[Walk[Any]] = [walk]
    sent: Any = None
    while True:
        try:
            inner = pending[-1].send(sent)
        except StopIteration as done:
            pending.pop()
            sent = done.value
            if not pending:
                result: T = sent
                return result
        else:
            pending.append(inner)
            sent = None


def with_operations(block: Block, change: Callable[[Operation], Operation]) -> Block:
    """Return a block with another operation in each instruction, also in regions."""

    def changed(block: Block) -> Walk[Block]:
        instructions = []
        for instruction in block.instructions:
            regions = []
            for region in instruction.regions:
                regions.append((yield changed(region)))
            operation = change(instruction.operation)
            instructions.append(replace(instruction, operation=operation, regions=tuple(regions)))
        return replace(block, instructions=tuple(instructions))

    return trampoline(changed(block))


# Operations that run other code, or wait for other ranks, while they execute.
#
# Such an operation is `Stepwise`; one that is defined by simpler ones is `Composite`.


@dataclass(frozen=True)
class Arrival:
    """A rank's arrival at a collective, where it waits until its group is complete."""

    operation: Operation
    operands: tuple[Array, ...]
    location: Location


Steps = Generator[Arrival, tuple[Array, ...], tuple[Array, ...]]
"""Running code: a generator that yields at each collective, receives its results, and returns its own."""


class StepEnvironment(Environment, Protocol):
    """The environment of an operation that runs in steps."""

    @property
    def location(self) -> Location:
        """The location of the instruction that is being executed."""

    def region(self, index: int, arguments: tuple[Array, ...]) -> Steps:
        """Run a region of the instruction, and return what it yields."""

    def call(self, function: str, arguments: tuple[Array, ...]) -> Steps:
        """Run another function of the module."""

    def number_of(self, function: str) -> Array:
        """Return the value that represents a function of the module."""

    def function_of(self, number: Array) -> str:
        """Return the function that such a value represents."""

    def expand(self, operation: Composite, operands: tuple[Array, ...]) -> Steps:
        """Run the operations of a composite."""

    def differentiate(self, y: Array, wrt: tuple[Array, ...]) -> Steps:
        """Return the gradients of the sum of y's elements, computed backwards along what was executed so far."""


class Stepwise(Operation):
    """An operation that runs other code, or waits for other ranks, while it executes."""

    transparent: ClassVar[bool] = True
    """True if differentiation sees the code that it runs, rather than the operation itself."""

    @abstractmethod
    def steps(self, *operands: Any, **context: Any) -> Steps:
        """Return its execution; the arguments are the operand arrays and `env`, a `StepEnvironment`."""

    def execute(self, *operands: Any, **context: Any) -> Any:
        """Never called, since `steps` runs the operation."""
        raise TypeError(f"{self.name} runs in steps")

    @classmethod
    def is_differentiable(cls) -> bool:
        """True: the functions that it runs are checked on their own."""
        return cls.transparent or super().is_differentiable()


class Composite(Stepwise):
    """An operation defined by simpler ones; its derivative is theirs (AMB-LANG-59)."""

    @abstractmethod
    def decompose(self, build: Builder, *operands: Value) -> Value | tuple[Value, ...]:
        """Build the operations of its formula, and return its result or results."""

    def steps(self, *operands: Array, env: StepEnvironment) -> Steps:
        return env.expand(self, operands)


# From refusals to diagnostics, and the category of a difference of types.


MOST_NAMED = 8
"""The number of functions in a circle of calls that a message names."""


def diagnostic_of(
    refusal: Refusal, location: Location, operands: tuple[str, ...] = (), phase: Phase = "verify"
) -> Diagnostic:
    """Return the diagnostic of a refusal at a place."""
    why = refusal.requirement, refusal.clause, refusal.remedy
    return Diagnostic(refusal.category, phase, refusal.message, location.span, location.filename, operands, *why)


def refused_by(operation: Operation, refusal: Refusal, location: Location, phase: Phase = "verify") -> Diagnostic:
    """Return the diagnostic of a refusal, with the name of the operation and the types of its operands."""
    operands = tuple(f"{name} is {type_}" for name, type_ in operation.operand_types)
    return diagnostic_of(refusal.by(operation), location, operands, phase)


class Problems:
    """The diagnostics of checks, each of which goes on after the one before."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    def add(self, refusal: Refusal, location: Location) -> None:
        """Keep a refusal of something at this location."""
        self.found.append(diagnostic_of(refusal, location))

    @contextmanager
    def at(self, location: Location) -> Iterator[None]:
        """Keep a refusal, of something at this location, or a rejection that ends the statements within."""
        try:
            yield
        except Refusal as refusal:
            self.add(refusal, location)
        except Rejection as rejection:
            self.found += rejection.diagnostics

    def require_none(self) -> None:
        """Raise `Rejection` if there are any."""
        if self.found:
            raise Rejection(self.found)


def other_type(subject: str, actual: Type, expected: Type) -> Refusal:
    """Return the refusal of a value of a wrong type: shapes and layouts have categories of their own."""
    category: Category = "types"
    clause = "LANG-11-01"
    if isinstance(actual, Tensor) and isinstance(expected, Tensor) and actual.dtype == expected.dtype:
        same_layout = actual.layout == expected.layout
        category, clause = ("shapes", "LANG-11-03") if same_layout else ("layouts", "LANG-11-05")
    return Refusal(category, f"{subject} is {actual}, not {expected}", str(expected), clause, "")


def recursion(circle: Sequence[str]) -> Refusal:
    """Return the refusal of functions that call one another in a circle (AMB-LANG-97)."""
    names = [f"@{name}" for name in reversed(circle)]
    if len(names) > MOST_NAMED:
        names[MOST_NAMED - 1 : -1] = ["..."]
    message = f"recursion: {' calls '.join(names)}"
    return Refusal("types", message, "functions that never come back to themselves", "AMB-LANG-97", "")
