"""The dtypes, shapes, names and inputs that a function body under generation can use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from tessera_conformance.dsl import tensor_of
from tessera_conformance.fuzz import choices as words
from tessera_conformance.fuzz.choices import Chooser, Names
from tessera_conformance.fuzz.tree import Extent, Function, Mesh, Type
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor
from tessera_conformance.vectors.building import counter_bits

# What the generator knows of dtypes and shapes, how it spells a literal of a dtype, and the inputs it makes.


INTEGERS = ("int32", "int64", "int8", "int16")
NUMBERS = ("fp32", "int32", "bf16", "fp16", "fp64", "int64", "int8", "tf32", "fp8_e4m3", "fp8_e5m2", "int16")
"""The numeric dtypes of section 2.2, frequent ones first."""
COMPLEX = ("complex64", "complex128")
LAYOUTS = ("col_major", "blocked(bm=2,bn=2)")
"""Layouts beside row_major, for matrices; blocks are used where they divide the matrix."""

INT_LITERALS = ("0", "1", "2", "3", "7", "10", "007", "100", "127")
FLOAT_LITERALS = "1.0 0.5 2. 1e1 1.5e-3 0.1 3.14159 2.E+1 0. 12e0 0.333333333333333333333".split()
"""Literals that every float dtype holds after rounding (AMB-LANG-124)."""

ENDS = {
    "int8": ("127",),
    "int16": ("32767",),
    "int32": ("2147483647", "65536"),
    "int64": ("9223372036854775807", "4294967296"),
    "fp16": ("65504", "6e-8", "1e-50"),
    "bf16": ("3.3e38", "16777217", "1e-50"),
    "fp32": ("3.4028234663852886e38", "16777217", "1e-40", "1e-50"),
    "tf32": ("3.4028234663852886e38", "16777217", "1e-40"),
    "fp64": ("1.7976931348623157e308", "9007199254740993", "5e-324", "1e-400"),
    "fp8_e4m3": ("448", "0.001953125", "1e-50"),
    "fp8_e5m2": ("57344", "1e-5", "1e-50"),
}
"""Literals near the ends of a dtype's range; what is too small for it rounds to 0."""
INTERESTING = (0.0, 1.0, -1.0, 0.5, 2.0, -1.5, 3.0, 4.0, -0.25, 6.0)


def kind_of(dtype: str) -> str:
    """`float`, `int`, `bool` or `complex`."""
    if dtype == "bool":
        return "bool"
    if dtype in COMPLEX:
        return "complex"
    return "int" if dtype in INTEGERS else "float"


def is_float(type_: Type) -> bool:
    """True if elements are floats."""
    return kind_of(type_.dtype) == "float"


def is_number(type_: Type) -> bool:
    """True if elements are floats or integers."""
    return kind_of(type_.dtype) in ("float", "int")


def is_row_major(type_: Type) -> bool:
    """True if it is a row-major tensor in which no extent is known to be 0."""
    return bool(type_.shape) and type_.layout == "row_major" and 0 not in type_.shape


def literal(dtype: str, chooser: Chooser) -> str:
    """A literal that the dtype can hold; an integer literal may stand where a float is asked for (AMB-LANG-54)."""
    if dtype == "bool":
        return chooser.pick(("true", "false"))
    if chooser.chance(16):
        return chooser.pick(ENDS[dtype])
    if kind_of(dtype) == "int" or chooser.chance(4):
        return chooser.pick(INT_LITERALS)
    return chooser.pick(FLOAT_LITERALS)


def concrete(type_: Type, sizes: Mapping[str, int]) -> Type:
    """The type with numbers for its names; an unknown dimension is looked up under its own name too."""
    shape: tuple[Extent, ...] = tuple(e if isinstance(e, int) else sizes[e] for e in type_.shape)
    return Type(type_.dtype, shape, type_.layout)


def input_for(type_: Type, chooser: Chooser) -> Tensor:
    """A tensor of a type without names: all ones, small values, or any bits at all."""
    shape = tuple(extent for extent in type_.shape if isinstance(extent, int))
    seed = chooser.below(1 << 16)
    count = prod(shape) * ELEMENT_FORMATS[type_.dtype].words
    words = [_word(type_.dtype, seed, bits) for bits in counter_bits(seed, count)]
    return Tensor.from_words(type_.dtype, shape, words)


def _word(dtype: str, seed: int, bits: int) -> int:
    """One storage code: seed 0 gives ones, three of four seeds small values, the others any code."""
    layout = ELEMENT_FORMATS[dtype]
    if dtype == "bool":
        return bits & 1 if seed else 1
    if seed % 4 == 3:
        return bits & ((1 << 8 * layout.word_bytes) - 1)
    table = _SMALL[dtype]
    return table[bits % len(table)] if seed else table[1]


def _small(dtype: str) -> tuple[int, ...]:
    real = {"complex64": "fp32", "complex128": "fp64"}.get(dtype, dtype)
    values = INTERESTING if kind_of(real) == "float" else (0, 1, 2, 3, -1, 1, 2, 5)
    return tuple(int(tensor_of(real, value).words()[0]) for value in values)


_SMALL = {dtype: _small(dtype) for dtype in (*NUMBERS, *COMPLEX)}

# What a function body under generation can use: names in scope with their types, and types to choose from.


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
    """The names that the module offers to its functions."""

    features: frozenset[str]
    names: Names
    aliases: dict[Type, str] = field(default_factory=dict)
    constants: dict[str, Variable] = field(default_factory=dict)
    functions: list[Function] = field(default_factory=list)
    results: dict[str, Type] = field(default_factory=dict)
    """The type of a function's result, annotated or inferred, where it has exactly one."""
    mesh: Mesh | None = None
    communicates: bool = False
    """True if some function so far contains a collective, directly or through calls."""

    def has(self, feature: str) -> bool:
        """True if the implementation claims a feature; the core, spelled as nothing, is always there."""
        return not feature or feature in self.features


class Scope:
    """Names in scope, innermost block last, and parameters that are added as they are wanted."""

    def __init__(self, around: Surroundings, chooser: Chooser, *, in_kernel: bool = False) -> None:
        self.around = around
        self.chooser = chooser
        self.in_kernel = in_kernel
        self.parameters: dict[str, Variable] = {}
        self.frames: list[dict[str, Variable | None]] = [dict(around.constants), {}]
        self.dtypes = [chooser.pick(NUMBERS) for _ in range(chooser.between(1, 2))]
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
        return self.chooser.pick(LAYOUTS) if even else "col_major"

    def any_type(self) -> Type:
        """A type of the function, now and then a bool one."""
        type_ = self.type()
        return Type("bool", type_.shape, type_.layout) if self.chooser.chance(8) else type_
