"""Declaring an operation: name, clauses, operands, attributes, typing and execution in one class (spec section 5).

A subclass of `Operation` decorated with `@operation` is a frozen record of its operands' *types* and its attributes;
`infer` says what type results, `execute` what value. Everything else, the DSL's spelling of it, the printer, the
verifier and the interpreter, is driven by the declaration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import Enum, auto
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Protocol,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from ..numerics.array import Array
from ..numerics.formats import DType
from .diagnostics import Category
from .types import Tensor, Type

T = TypeVar("T")
O = TypeVar("O", bound="Operation")  # noqa: E741


class Role(Enum):
    """What a field of an operation is."""

    OPERAND = auto()
    OPERANDS = auto()
    ATTRIBUTE = auto()
    HIDDEN = auto()


Operand = Annotated[T, Role.OPERAND]
Operands = Annotated[tuple[T, ...], Role.OPERANDS]
Attribute = Annotated[T, Role.ATTRIBUTE]
Hidden = Annotated[T, Role.HIDDEN]
"""An attribute that the printed form shows elsewhere, such as the result types of a call."""

AttributeValue = int | float | bool | str | DType | tuple[Any, ...]


class Refusal(Exception):
    """An operation does not take these operands or attributes; whoever knows the place makes a diagnostic of it."""

    def __init__(self, category: Category, message: str, requirement: str, clause: str, remedy: str) -> None:
        self.category = category
        self.message = message
        self.requirement = requirement
        self.clause = clause
        self.remedy = remedy
        super().__init__(message)


class NotCarriedOut(Exception):
    """The operation is legal as it stands, and this implementation does not carry it out."""

    def __init__(self, feature: str) -> None:
        self.feature = feature
        super().__init__(feature)


def require(
    condition: bool, category: Category, message: str, requirement: str = "", clause: str = "", remedy: str = ""
) -> None:
    """Refuse unless `condition` holds. In a remedy, {a} stands for the source text of operand a."""
    if not condition:
        raise Refusal(category, message, requirement, clause, remedy)


class Environment(Protocol):
    """What an executing operation may ask of its surroundings."""

    def call(self, function: str, arguments: tuple[Array, ...]) -> tuple[Array, ...]:
        """Run another function of the module."""


@dataclass(frozen=True)
class Derived:
    """The default of an attribute that follows from the operands."""

    rule: Callable[[Any], AttributeValue]


def derived(rule: Callable[[Any], AttributeValue]) -> Any:
    """An attribute that, unless given, is `rule(operation)`: stated, and so printed (AMB-LANG-70)."""
    return Derived(rule)


class Operation(ABC):
    """Base of all operations; see the module."""

    name: ClassVar[str]
    clauses: ClassVar[tuple[str, ...]]
    spellings: ClassVar[tuple[str, ...]]
    """How the DSL writes it: `op.matmul`, `@`; unary operators as `unary -`."""
    roles: ClassVar[Mapping[str, Role]]
    kinds: ClassVar[Mapping[str, tuple[Any, ...]]]
    effects: ClassVar[frozenset[str]] = frozenset()
    """Empty for a pure operation (LANG-02.3-55)."""
    layouts: ClassVar[frozenset[str]] = frozenset({"row_major"})
    """The operand layouts it takes (LANG-03.3-02, AMB-LANG-67)."""

    def __post_init__(self) -> None:
        if not all(isinstance(type_, self.kinds.get(name, object)) for name, type_ in self.operand_types):
            return
        for name, role in self.roles.items():
            value = getattr(self, name)
            if role is Role.ATTRIBUTE and isinstance(value, Derived):
                object.__setattr__(self, name, value.rule(self))

    @property
    def short_name(self) -> str:
        """The name without its dialect."""
        return self.name.rpartition(".")[2]

    @property
    def operand_types(self) -> tuple[tuple[str, Type], ...]:
        """Each operand's name and type."""
        named: list[tuple[str, Type]] = []
        for name, role in self.roles.items():
            if role is Role.OPERAND:
                named.append((name, getattr(self, name)))
            elif role is Role.OPERANDS:
                named += [(f"{name}[{i}]", type_) for i, type_ in enumerate(getattr(self, name))]
        return tuple(named)

    @property
    def attributes(self) -> dict[str, AttributeValue]:
        """The attributes that have a value, in the order of their declaration (LANG-01-07)."""
        named = {name: getattr(self, name) for name, role in self.roles.items() if role is Role.ATTRIBUTE}
        return {name: value for name, value in named.items() if value is not None}

    @classmethod
    def required_attributes(cls) -> tuple[str, ...]:
        """The attributes that have no default."""
        return tuple(
            field.name
            for field in fields(cls)  # type: ignore[arg-type]
            if cls.roles[field.name] is Role.ATTRIBUTE and field.default is MISSING
        )

    def results(self) -> tuple[Type, ...]:
        """Check kinds and layouts of the operands, then infer the result types. Raises `Refusal`."""
        for name, type_ in self.operand_types:
            kinds = self.kinds.get(name, (object,))
            expected = " or ".join(kind.__name__.lower() for kind in kinds)
            require(
                isinstance(type_, kinds), "types", f"{name} is {type_}, not a {expected}", f"a {expected}", "LANG-11-01"
            )
            if isinstance(type_, Tensor):
                require(
                    type_.layout.name in self.layouts,
                    "layouts",
                    f"{name} has layout {type_.layout}",
                    f"{name}.layout in {{{', '.join(sorted(self.layouts))}}}",
                    "LANG-03.3-02",
                    "cast the layout at Schedule IR: schedule.layout_cast",
                )
        inferred = self.infer()
        return inferred if isinstance(inferred, tuple) else (inferred,)

    @abstractmethod
    def infer(self) -> Type | tuple[Type, ...]:
        """The result type or types; refuses what the operation does not take."""

    @abstractmethod
    def execute(self, *operands: Any, **context: Any) -> Any:
        """The result value or values; called with the operand arrays and `env`."""


OPERATIONS: dict[str, type[Operation]] = {}
"""Every declared operation by name."""

SPELLINGS: dict[str, type[Operation]] = {}
"""Every operation that the DSL can write, by its spelling there."""


@dataclass_transform(frozen_default=True)
def operation(name: str, *, clauses: tuple[str, ...], spellings: tuple[str, ...] = ()) -> Callable[[type[O]], type[O]]:
    """Declare a class as the operation `name`, which the DSL writes as any of `spellings`."""

    def declare(cls: type[O]) -> type[O]:
        made = dataclass(frozen=True)(cls)
        hints = get_type_hints(made, include_extras=True)
        roles, kinds = {}, {}
        for field in fields(made):  # type: ignore[arg-type]
            inner, role = get_args(hints[field.name])
            roles[field.name] = role
            kinds[field.name] = get_args(inner) if isinstance(inner, UnionType) else (get_origin(inner) or inner,)
        made.name, made.clauses, made.spellings, made.roles, made.kinds = name, clauses, spellings, roles, kinds
        OPERATIONS[name] = made
        SPELLINGS.update(dict.fromkeys(spellings, made))
        return made

    return declare
