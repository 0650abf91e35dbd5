"""What a function body under generation can use: names in scope with their types, and types to choose from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tessera_conformance.fuzz import dtypes
from tessera_conformance.fuzz import names as words
from tessera_conformance.fuzz.choices import Chooser
from tessera_conformance.fuzz.names import Names
from tessera_conformance.fuzz.tree import Extent, Function, Mesh, Type

MOST_PARAMETERS = 5


@dataclass(frozen=True)
class Variable:
    """A name with its type; `limit` bounds a loop's variable from above, exclusively."""

    name: str
    type: Type
    assignable: bool = True
    limit: int | None = None


@dataclass
class Surroundings:
    """What the module offers to its functions."""

    features: frozenset[str]
    names: Names
    aliases: dict[Type, str] = field(default_factory=dict)
    constants: dict[str, Variable] = field(default_factory=dict)
    functions: list[Function] = field(default_factory=list)
    results: dict[str, Type] = field(default_factory=dict)
    """The type of a function's result, annotated or inferred, where it has exactly one."""
    mesh: Mesh | None = None
    communicates: bool = False
    """Whether some function so far contains a collective, directly or through calls."""

    def has(self, feature: str) -> bool:
        """Whether the implementation claims a feature; the core, spelled as nothing, is always there."""
        return not feature or feature in self.features


class Scope:
    """Names in scope, innermost block last, and parameters that are added as they are wanted."""

    def __init__(self, around: Surroundings, chooser: Chooser, *, in_kernel: bool = False) -> None:
        self.around = around
        self.chooser = chooser
        self.in_kernel = in_kernel
        self.parameters: dict[str, Variable] = {}
        self.frames: list[dict[str, Variable | None]] = [dict(around.constants), {}]
        self.dtypes = [chooser.pick(dtypes.NUMBERS) for _ in range(chooser.between(1, 2))]
        self.extents: list[Extent] = [chooser.between(1, 4) for _ in range(chooser.between(1, 3))]
        if chooser.chance(4):
            self.extents.append(around.names.fresh(words.DIMENSIONS))
        if around.has("zero-sizes") and chooser.chance(24):
            self.extents.append(0)
        self._unknowns = 0

    def visible(self) -> Mapping[str, Variable]:
        """Every name that can be used here; None in a frame hides a name."""
        found: dict[str, Variable | None] = {}
        for frame in self.frames:
            found.update(frame)
        return {name: variable for name, variable in found.items() if variable is not None}

    def of_type(self, type_: Type) -> list[Variable]:
        """The variables of exactly this type."""
        return [variable for variable in self.visible().values() if variable.type == type_]

    def declare(self, variable: Variable) -> None:
        """Put a name into the innermost block."""
        self.frames[-1][variable.name] = variable

    def fresh(self) -> str:
        """A name for a variable."""
        return self.around.names.fresh(words.VALUES)

    def parameter(self, type_: Type) -> Variable | None:
        """A new parameter, unless there are enough; only parameters can bring a dimension that is no number."""
        if len(self.parameters) >= MOST_PARAMETERS and type_.is_static:
            return None
        variable = Variable(self.fresh(), self.spelled(type_))
        self.parameters[variable.name] = variable
        self.frames[1][variable.name] = variable
        return variable

    def unknown(self) -> str:
        """An unknown dimension that equals no other."""
        self._unknowns += 1
        return f"?{self._unknowns}"

    # Types

    def spelled(self, type_: Type) -> Type:
        """The type, under its alias where it has one and the chooser likes it."""
        alias = self.around.aliases.get(type_)
        return Type(type_.dtype, type_.shape, type_.layout, alias) if alias and self.chooser.below(2) else type_

    def dtype(self) -> str:
        """A numeric dtype that this function prefers."""
        return self.chooser.pick(self.dtypes)

    def type(self, lowest_rank: int = 0) -> Type:
        """A numeric type that this function prefers."""
        choose = self.chooser
        rank = max(lowest_rank, choose.pick((0, 2, 1, 2, 2, 1, 0, 3)))
        shape = tuple(choose.pick(self.extents) for _ in range(rank))
        return Type(self.dtype(), shape, self.layout(shape))

    def layout(self, shape: tuple[Extent, ...]) -> str:
        """A layout that a tensor of the shape can have; mostly row_major."""
        if len(shape) != 2 or not self.chooser.chance(7):
            return "row_major"
        even = all(isinstance(extent, int) and extent % 2 == 0 and extent for extent in shape)
        return self.chooser.pick(dtypes.LAYOUTS) if even else "col_major"

    def any_type(self) -> Type:
        """A type of the function, now and then a bool one."""
        type_ = self.type()
        return Type("bool", type_.shape, type_.layout) if self.chooser.chance(8) else type_
