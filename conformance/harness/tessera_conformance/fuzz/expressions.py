"""Generated expressions and calls of operations, over the names in scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from tessera_conformance.dsl import tensor_of
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.tree import Chooser, Extent, Function, Mesh, Names, Type
from tessera_conformance.oracle.elementwise import UNARY
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor
from tessera_conformance.vectors.building import counter_bits

# The generator's dtypes and shapes, the literals of each dtype, and inputs.


INTEGERS = ("int32", "int64", "int8", "int16")
NUMBERS = ("fp32", "int32", "bf16", "fp16", "fp64", "int64", "int8", "tf32", "fp8_e4m3", "fp8_e5m2", "int16")
"""The numeric dtypes of section 2.2, frequent ones first."""
COMPLEX = ("complex64", "complex128")
LAYOUTS = ("col_major", "blocked(bm=2,bn=2)")
"""Layouts beside row_major, for matrices; blocks are used where they divide the matrix."""

INT_LITERALS = ("0", "1", "2", "3", "7", "10", "007", "100", "127")
FLOAT_LITERALS = "1.0 0.5 2. 1e1 1.5e-3 0.1 3.14159 2.E+1 0. 12e0 0.333333333333333333333".split()
"""Literals that every float dtype represents after rounding (AMB-LANG-124)."""

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
"""Literals near the ends of a dtype's range; values too small for it round to 0."""
INTERESTING = (0.0, 1.0, -1.0, 0.5, 2.0, -1.5, 3.0, 4.0, -0.25, 6.0)


def kind_of(dtype: str) -> str:
    """Return `float`, `int`, `bool` or `complex`."""
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
    """True for a row-major tensor without an extent that is known to be 0."""
    return bool(type_.shape) and type_.layout == "row_major" and 0 not in type_.shape


def literal(dtype: str, chooser: Chooser) -> str:
    """Return a literal of the dtype; an integer literal may be used where a float is expected (AMB-LANG-54)."""
    if dtype == "bool":
        return chooser.pick(("true", "false"))
    if chooser.chance(16):
        return chooser.pick(ENDS[dtype])
    if kind_of(dtype) == "int" or chooser.chance(4):
        return chooser.pick(INT_LITERALS)
    return chooser.pick(FLOAT_LITERALS)


def concrete(type_: Type, sizes: Mapping[str, int]) -> Type:
    """Return the type with numbers for its dimension names; unknown dimensions also have names in `sizes`."""
    shape: tuple[Extent, ...] = tuple(e if isinstance(e, int) else sizes[e] for e in type_.shape)
    return Type(type_.dtype, shape, type_.layout)


def input_for(type_: Type, chooser: Chooser) -> Tensor:
    """Return a tensor of a type without names: all ones, small values, or any bits."""
    shape = tuple(extent for extent in type_.shape if isinstance(extent, int))
    seed = chooser.below(1 << 16)
    count = prod(shape) * ELEMENT_FORMATS[type_.dtype].words
    words = [_word(type_.dtype, seed, bits) for bits in counter_bits(seed, count)]
    return Tensor.from_words(type_.dtype, shape, words)


def _word(dtype: str, seed: int, bits: int) -> int:
    """Return one storage code: seed 0 gives ones, three of four seeds small values, the others any code."""
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

# The names in scope of a generated function body with their types, and the types to choose from.


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
    """True if a function generated so far contains a collective, directly or through calls."""

    def has(self, feature: str) -> bool:
        """True if the implementation claims a feature; "" stands for the core, which it always has."""
        return not feature or feature in self.features


class Scope:
    """Names in scope, innermost block last, and parameters that are added on demand."""

    def __init__(self, around: Surroundings, chooser: Chooser, *, in_kernel: bool = False) -> None:
        self.around = around
        self.chooser = chooser
        self.in_kernel = in_kernel
        self.parameters: dict[str, Variable] = {}
        self.frames: list[dict[str, Variable | None]] = [dict(around.constants), {}]
        self.dtypes = [chooser.pick(NUMBERS) for _ in range(chooser.between(1, 2))]
        self.extents: list[Extent] = [chooser.between(1, 4) for _ in range(chooser.between(1, 3))]
        if chooser.chance(4):
            self.extents.append(around.names.fresh(t.DIMENSIONS))
        if around.has("zero-sizes") and chooser.chance(24):
            self.extents.append(0)
        self._unknowns = 0

    def visible(self) -> Mapping[str, Variable]:
        """Return every usable name; None in a frame hides a name."""
        variables: dict[str, Variable | None] = {}
        for frame in self.frames:
            variables.update(frame)
        return {name: variable for name, variable in variables.items() if variable is not None}

    def of_type(self, type_: Type) -> list[Variable]:
        """Return the variables of exactly this type."""
        return [variable for variable in self.visible().values() if variable.type == type_]

    def declare(self, variable: Variable) -> None:
        """Add a variable to the innermost block."""
        self.frames[-1][variable.name] = variable

    def fresh(self) -> str:
        """Return a new name for a variable."""
        return self.around.names.fresh(t.VALUES)

    def parameter(self, type_: Type) -> Variable | None:
        """Add a parameter, or return None if there are enough; only parameters have dimensions that are no numbers."""
        if len(self.parameters) >= MOST_PARAMETERS and type_.is_static:
            return None
        variable = Variable(self.fresh(), self.spelled(type_))
        self.parameters[variable.name] = variable
        self.frames[1][variable.name] = variable
        return variable

    def unknown(self) -> str:
        """Return a new unknown dimension, which equals no other."""
        self._unknowns += 1
        return f"?{self._unknowns}"

    # Types

    def spelled(self, type_: Type) -> Type:
        """Return the type, sometimes under its alias if it has one."""
        alias = self.around.aliases.get(type_)
        return Type(type_.dtype, type_.shape, type_.layout, alias) if alias and self.chooser.below(2) else type_

    def dtype(self) -> str:
        """Return a numeric dtype that this function prefers."""
        return self.chooser.pick(self.dtypes)

    def type(self, lowest_rank: int = 0) -> Type:
        """Return a numeric type that this function prefers."""
        choose = self.chooser
        rank = max(lowest_rank, choose.pick((0, 2, 1, 2, 2, 1, 0, 3)))
        shape = tuple(choose.pick(self.extents) for _ in range(rank))
        return Type(self.dtype(), shape, self.layout(shape))

    def layout(self, shape: tuple[Extent, ...]) -> str:
        """Return a layout that a tensor of the shape can have; mostly row_major."""
        if len(shape) != 2 or not self.chooser.chance(7):
            return "row_major"
        even = all(isinstance(extent, int) and extent % 2 == 0 and extent for extent in shape)
        return self.chooser.pick(LAYOUTS) if even else "col_major"

    def any_type(self) -> Type:
        """Return a type of the function, sometimes a bool one."""
        type_ = self.type()
        return Type("bool", type_.shape, type_.layout) if self.chooser.chance(8) else type_


# Expressions of a given type, legal by construction (language spec, sections 2.3, 3 and 14.2).
#
# With `typed`, the context gives a literal its dtype (AMB-LANG-54, AMB-LANG-125); without it, literals are used only
# for int32 or fp32.


COMPARISONS = ("<", "==", ">", "<=", ">=", "!=")
INT32, BOOL = t.Type("int32"), t.Type("bool")


@dataclass(frozen=True)
class Production:
    """One way to make an expression of a type: its condition, its function, and its weight."""

    applies: Callable[[t.Type], bool]
    make: Callable[[Expressions, t.Type, bool], t.Expr]
    weight: int = 1
    feature: str = ""


class Expressions:
    """Makes expressions over a scope; `budget` limits the number of operators in the following ones."""

    def __init__(self, scope: Scope, productions: tuple[Production, ...]) -> None:
        self.scope = scope
        self.choose = scope.chooser
        self.budget = 0
        self._productions = productions
        self._applicable: dict[t.Type, list[Production]] = {}

    def expr(self, type_: t.Type, typed: bool = True) -> t.Expr:
        """Return an expression of the type."""
        start = self.choose.place()
        expression = self._expr(type_, typed)
        self.choose.part(start)
        return expression

    def _expr(self, type_: t.Type, typed: bool) -> t.Expr:
        sized = not any(isinstance(extent, str) and extent.startswith("?") for extent in type_.shape)
        if self.budget <= 0 or not sized or not self.choose.below(3):
            return self.leaf(type_, typed)
        self.budget -= 1
        options = self._applicable.get(type_)
        if options is None:
            options = [
                production
                for production in (*PRODUCTIONS, *self._productions)
                if self.scope.around.has(production.feature) and production.applies(type_)
                for _ in range(production.weight)
            ]
            self._applicable[type_] = options
        return self.choose.pick(options).make(self, type_, typed) if options else self.leaf(type_, typed)

    # Leaves

    def leaf(self, type_: t.Type, typed: bool = True) -> t.Expr:
        """Return a variable, a literal, a new parameter, or a tensor expression."""
        variables = self.scope.of_type(type_)
        unknown = not type_.is_static
        scalar = not type_.shape and kind_of(type_.dtype) != "complex"
        if variables and (unknown or self.choose.below(4) < 3):
            return t.Var(self.choose.pick(variables).name)
        if scalar and (typed or type_.dtype in ("int32", "fp32", "bool")) and self.choose.below(4) < 3:
            return self.literal(type_.dtype, typed)
        if type_.shape and type_.is_static and self.choose.chance(6) and kind_of(type_.dtype) != "complex":
            return t.TensorValue(type_)
        return self._wanted(type_, typed, variables)

    def _wanted(self, type_: t.Type, typed: bool, variables: list[Variable]) -> t.Expr:
        new = None if variables and not type_.is_static else self.scope.parameter(type_)
        if new is not None:
            return t.Var(new.name)
        if variables:
            return t.Var(self.choose.pick(variables).name)
        if type_.shape:
            return t.TensorValue(type_)
        if typed or type_.dtype in ("int32", "fp32", "bool"):
            return self.literal(type_.dtype, typed)
        return t.Index(t.TensorValue(t.Type(type_.dtype, (1,))), (t.Literal("0"),))

    def literal(self, dtype: str, typed: bool = True) -> t.Literal:
        """Return a literal; if the context gives it no type, one of its own type."""
        text = literal(dtype, self.choose)
        if dtype == "fp32" and not typed and text.isdigit():
            text += ".0"
        return t.Literal(text)

    def call(self, function: t.Function, sizes: dict[str, t.Extent]) -> t.Call:
        """Return a call; its arguments have the types of the parameters, with `sizes` for the dimensions' names.

        Arguments with defaults may be left out, and the last ones may be given by name (AMB-LANG-14).
        """
        arguments: list[tuple[t.Parameter, t.Expr]] = []
        for parameter in function.parameters:
            if parameter.default is not None and self.choose.below(2):
                break
            shape = tuple(self._size(extent, sizes) for extent in parameter.type.shape)
            type_ = t.Type(parameter.type.dtype, shape, parameter.type.layout)
            arguments.append((parameter, self.expr(type_)))
        count = self.choose.below(len(arguments) + 1) if arguments and self.choose.chance(6) else len(arguments)
        named = tuple(t.Attribute(parameter.name, value, fixed=True) for parameter, value in arguments[count:])
        return t.Call(function.name, tuple(value for _, value in arguments[:count]), named, own=True)

    def op(self, name: str, *operands: t.Type, **attributes: object) -> t.Call:
        """Return a call of an operation on expressions of these types; an attribute that is None is left out."""
        given = tuple(
            t.Attribute(key, t.Word(_written(value))) for key, value in attributes.items() if value is not None
        )
        return t.Call(f"op.{name}", tuple(self.expr(operand, False) for operand in operands), given)

    def _size(self, extent: t.Extent, sizes: dict[str, t.Extent]) -> t.Extent:
        """Return a parameter's extent at a call: any number if it is unknown, the same number for equal names."""
        if isinstance(extent, int):
            return extent
        if extent.startswith("?"):
            return self.choose.pick(self.scope.extents)
        if extent not in sizes:
            sizes[extent] = self.choose.pick(self.scope.extents)
        return sizes[extent]

    def index(self, extent: t.Extent) -> t.Expr:
        """Return an index below the extent: a number, a loop's variable, or sometimes an int32 variable's value."""
        limit = extent if isinstance(extent, int) else 1
        variables = [variable for variable in self.scope.visible().values() if variable.type == INT32]
        safe = [variable for variable in variables if variable.limit is not None and variable.limit <= limit]
        if safe and self.choose.below(3):
            return t.Var(self.choose.pick(safe).name)
        if variables and self.choose.chance(12):
            return t.Var(self.choose.pick(variables).name)
        return t.Literal(str(self.choose.below(max(limit, 1))))


def _written(value: object) -> str:
    """Return an attribute's value as source text."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _arithmetic(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return `+ - * /` of two operands of the type, or of one and a scalar."""
    choose = make.choose
    operator = choose.pick("+-*/")
    left = right = type_
    if type_.shape and choose.chance(3):
        left, right = choose.shuffled([type_, t.Type(type_.dtype)])
    if operator == "/" and kind_of(type_.dtype) == "int" and not choose.chance(6):
        return t.Binary("/", make.expr(type_, typed), t.Literal(choose.pick(INT_LITERALS[1:])))
    if left.shape or not type_.shape:
        return t.Binary(operator, make.expr(left, typed), make.expr(right))
    return t.Binary(operator, make.expr(left), make.expr(right, typed))


def _broadcast(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return an operator on two shapes that NumPy broadcasts to the given one."""
    choose = make.choose
    shape = [1 if choose.below(2) else extent for extent in type_.shape][choose.below(len(type_.shape)) :]
    if not shape:
        return _arithmetic(make, type_, typed)
    small = t.Type(type_.dtype, tuple(shape))
    left, right = choose.shuffled([type_, small])
    return t.Binary(choose.pick("+-*"), make.expr(left, typed), make.expr(right, typed))


def _comparison(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return a comparison of two numbers, of two tensors, or of a tensor and a scalar."""
    choose = make.choose
    operand = t.Type(make.scope.dtype(), type_.shape, type_.layout)
    operator = choose.pick(COMPARISONS)
    if type_.shape and choose.chance(4):
        return t.Binary(operator, make.expr(operand, False), make.expr(t.Type(operand.dtype)))
    if choose.chance(3):
        return t.Binary(operator, make.expr(operand), make.expr(operand, False))
    return t.Binary(operator, make.expr(operand, False), make.expr(operand))


def _sign(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return an operand with a sign."""
    return t.Unary(make.choose.pick("-+"), make.expr(type_, typed))


def _product(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return a matrix product; the result has the left operand's layout (LANG-15-04)."""
    *batch, m, n = type_.shape
    k = make.choose.pick(make.scope.extents)
    left = t.Type(type_.dtype, (*batch, m, k), type_.layout)
    right_shape = (*batch, k, n)
    right = t.Type(type_.dtype, right_shape, make.scope.layout(right_shape))
    return t.Binary("@", make.expr(left, False), make.expr(right, False))


def _call(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return a call of a function of the module whose result can have the type."""
    options = []
    for function in make.scope.around.functions:
        result = make.scope.around.results.get(function.name)
        sizes = unified(result, type_) if result is not None else None
        if sizes is not None:
            options.append((function, sizes))
    if not options:
        return make.leaf(type_, typed)
    function, sizes = make.choose.pick(options)
    return make.call(function, sizes)


def _element(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return an indexed or sliced larger tensor (AMB-LANG-96)."""
    base, items = indexed(make, type_)
    return t.Index(make.expr(base, False), items)


def indexed(make: Expressions, type_: t.Type) -> tuple[t.Type, tuple[t.Expr | t.Range, ...]]:
    """Return a tensor type, and indices and slices that select a part of the given type."""
    choose = make.choose
    shape: list[t.Extent] = []
    items: list[t.Expr | t.Range] = []
    for position in range(len(type_.shape) + 1):
        if (not shape and position == len(type_.shape)) or (len(type_.shape) < 3 and choose.chance(4)):
            shape.append(choose.between(1, 3))
            items.append(make.index(shape[-1]))
        if position < len(type_.shape):
            whole, item = _slice(make, type_.shape[position])
            shape.append(whole)
            items.append(item)
    while len(items) > 1 and items[-1] == t.Range() and choose.below(2):
        items.pop()
    return t.Type(type_.dtype, tuple(shape)), tuple(items)


def _slice(make: Expressions, extent: t.Extent) -> tuple[t.Extent, t.Range]:
    """Return an extent and a slice of it with the given number of elements."""
    choose = make.choose
    if not isinstance(extent, int) or not extent or choose.below(3) == 0:
        return extent, t.Range()
    step = choose.pick((1, 1, 2, -1, -2))
    reach = (extent - 1) * abs(step) + 1
    if step < 0:
        return _slice_down(make, step, reach)
    start = choose.below(2)
    stop = start + reach
    whole = stop + choose.below(2)
    written_stop = None if stop == whole and choose.below(2) else t.Literal(str(stop))
    written_step = t.Literal(str(step)) if step > 1 or choose.chance(4) else None
    return whole, t.Range(t.Literal(str(start)) if start or choose.below(2) else None, written_stop, written_step)


def _slice_down(make: Expressions, step: int, reach: int) -> tuple[t.Extent, t.Range]:
    """Return an extent and a slice with a negative step: between two literals, the end excluded, or of all elements."""
    backwards = t.Unary("-", t.Literal(str(-step)))
    if make.choose.below(2):
        return reach, t.Range(None, None, backwards)
    end = make.choose.below(2)
    start = end + reach
    return start + 1 + make.choose.below(2), t.Range(t.Literal(str(start)), t.Literal(str(end)), backwards)


def unified(result: t.Type, expected: t.Type) -> dict[str, t.Extent] | None:
    """Return the sizes of dimension names for which the result has the expected type; None if there are none."""
    if (result.dtype, result.layout, len(result.shape)) != (expected.dtype, expected.layout, len(expected.shape)):
        return None
    sizes: dict[str, t.Extent] = {}
    for extent, extent_wanted in zip(result.shape, expected.shape, strict=True):
        if isinstance(extent, str):
            if extent.startswith("?") or sizes.setdefault(extent, extent_wanted) != extent_wanted:
                return None
        elif extent != extent_wanted:
            return None
    return sizes


PRODUCTIONS = (
    Production(is_number, _arithmetic, 8),
    Production(is_number, _sign, 2),
    Production(lambda type_: type_.dtype == "bool", _comparison, 6),
    Production(lambda type_: is_number(type_) and len(type_.shape) >= 2, _product, 4),
    Production(lambda type_: True, _call, 3),
    Production(lambda type_: type_.is_static and type_.layout == "row_major" and 0 not in type_.shape, _element, 2),
    Production(
        lambda type_: is_number(type_) and bool(type_.shape) and type_.is_static and type_.layout == "row_major",
        _broadcast,
        2,
        "broadcasting-ops",
    ),
)
"""Productions of the core, and broadcasting; `operations` adds the calls of operations."""

# Calls of operations, each with its operand and result types, and the feature that enables it.
#
# The core's are those that the documents name (AMB-LANG-101).


ACTIVATIONS = ("sigmoid", "silu", "gelu")
REDUCTIONS = {"float": ("sum", "mean", "max", "min", "prod", "logsumexp"), "int": ("sum", "max", "min", "prod")}

Make = Callable[[Expressions, t.Type, bool], t.Expr]


def _of_one(names: Sequence[str]) -> Make:
    """Return a function of one operand of the given type."""
    return lambda make, type_, typed: make.op(make.choose.pick(names), type_)


def _power(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    return make.op("pow", type_, type_)


def _softmax(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    rank = len(type_.shape)
    axis = make.choose.between(-rank, rank - 1)
    return make.op("softmax", type_, axis=axis if make.choose.below(2) else None)


def _reduction(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return a reduction to the given type: over an additional axis, or over a kept axis of extent 1."""
    operand, attributes = _reduced(make, type_)
    return make.op(make.choose.pick(REDUCTIONS[kind_of(type_.dtype)]), operand, **attributes)


def _largest(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    operand, attributes = _reduced(make, t.Type(make.scope.dtype(), type_.shape))
    return make.op("argmax", operand, **attributes)


def _reduced(make: Expressions, type_: t.Type) -> tuple[t.Type, dict[str, object]]:
    """Return the operand of a reduction to the type, and its attributes."""
    choose = make.choose
    extent = choose.between(1, 4)
    ones = [place for place, size in enumerate(type_.shape) if size == 1]
    keepdims: bool | None = True
    if ones and choose.below(2):
        axis, rank = choose.pick(ones), len(type_.shape)
        shape = (*type_.shape[:axis], extent, *type_.shape[axis + 1 :])
    else:
        axis, rank = choose.below(len(type_.shape) + 1), len(type_.shape) + 1
        shape = (*type_.shape[:axis], extent, *type_.shape[axis:])
        keepdims = False if choose.chance(4) else None
    written = axis - rank if choose.chance(3) else axis
    return t.Type(type_.dtype, shape), {"axis": written, "keepdims": keepdims}


def _transpose(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return a transposition: axes reversed, or in the order of `perm`."""
    if make.choose.below(2):
        return make.op("transpose", t.Type(type_.dtype, type_.shape[::-1]))
    axes = range(len(type_.shape))
    order = make.choose.shuffled(axes)
    shape = tuple(type_.shape[order.index(axis)] for axis in axes)
    return make.op("transpose", t.Type(type_.dtype, shape), perm=order)


def _cast(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return a cast from any numeric dtype; `overflow` concerns fp8 (AMB-LANG-105)."""
    choose = make.choose
    dtype = choose.pick([number for number in NUMBERS if number != type_.dtype])
    narrow = type_.dtype.startswith("fp8") and choose.below(2)
    overflow = choose.pick(('"saturate"', '"nonfinite"')) if narrow else None
    return make.op("cast", t.Type(dtype, type_.shape, type_.layout), dtype=type_.dtype, overflow=overflow)


def _wider_product(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return a product of bf16 with an fp32 result (AMB-LANG-102)."""
    *batch, m, n = type_.shape
    k = make.choose.pick(make.scope.extents)
    return make.op("matmul", t.Type("bf16", (*batch, m, k)), t.Type("bf16", (*batch, k, n)), out=type_.dtype)


def _fourier(name: str) -> Make:
    """Return a transform, sometimes with a norm."""

    def made(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
        norm = make.choose.pick(('"ortho"', '"backward"', '"forward"'))
        return make.op(name, type_, norm=norm if make.choose.below(2) else None)

    return made


def _is_complex(type_: t.Type) -> bool:
    return is_row_major(type_) and kind_of(type_.dtype) == "complex"


def _is_reduced(type_: t.Type) -> bool:
    small = len(type_.shape) < 3 and type_.layout == "row_major" and 0 not in type_.shape
    return small and is_number(type_)


def _is_matrix(type_: t.Type) -> bool:
    return len(type_.shape) >= 2 and type_.layout == "row_major"


OPERATIONS = (
    Production(lambda type_: is_float(type_) and is_row_major(type_), _softmax, 2),
    Production(is_float, _of_one(list(UNARY)), 2, "elementary-functions"),
    Production(is_float, _power, 1, "elementary-functions"),
    Production(is_float, _of_one(ACTIVATIONS), 1, "activations"),
    Production(is_float, _of_one(["relu"]), 1, "tensor-ops"),
    Production(_is_reduced, _reduction, 3, "reductions"),
    Production(lambda type_: _is_reduced(type_) and type_.dtype == "int32", _largest, 1, "reductions"),
    Production(lambda type_: _is_matrix(type_) and is_number(type_), _transpose, 2, "tensor-ops"),
    Production(is_number, _cast, 3, "casts"),
    Production(lambda type_: _is_matrix(type_) and type_.dtype == "fp32", _wider_product, 1, "matmul-out"),
    Production(_is_complex, _fourier("fft"), 8, "extra-dtypes"),
    Production(_is_complex, _fourier("ifft"), 4, "inverse-fft"),
)

# Calls of the operations of neural networks: norms, attention, random numbers, dropout.


DRAWN = ("fp32", "bf16", "fp16", "fp64")
"""Dtypes of random numbers."""


def _norm(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return op.layer_norm or op.rms_norm along an axis (AMB-LANG-170)."""
    choose = make.choose
    axis = choose.between(-len(type_.shape), -1)
    vector = t.Type(type_.dtype, (type_.shape[axis],))
    name, vectors = ("layer_norm", (vector, vector)) if choose.below(2) else ("rms_norm", (vector,))
    written = axis if axis != -1 or choose.below(2) else None
    return make.op(name, type_, *vectors, axis=written, eps="1e-3" if choose.chance(3) else None)


def _attention(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return op.flash_attention of the result's length, over one to three keys (AMB-LANG-177)."""
    choose = make.choose
    *batch, length, width = type_.shape
    causal = choose.chance(3)
    keys, depth = length if causal else choose.between(1, 3), choose.between(1, 3)
    shapes = ((*batch, length, depth), (*batch, keys, depth), (*batch, keys, width))
    block, scale = 2 if choose.chance(3) else None, 0.5 if choose.chance(3) else None
    operands = (t.Type(type_.dtype, shape) for shape in shapes)
    return make.op("flash_attention", *operands, causal=causal or None, block=block, scale=scale)


def _drawn(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return random numbers of the given shape, from the next stream or a named one (AMB-LANG-171)."""
    name = make.choose.pick(("uniform", "normal"))
    return make.op(name, shape=type_.shape, dtype=type_.dtype, **_source(make))


def _dropout(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    return make.op("dropout", type_, rate=make.choose.pick(("0.5", "0.1", "0.0")), **_source(make))


def _source(make: Expressions) -> dict[str, object]:
    return {"seed": 7, "stream": 3} if make.choose.chance(3) else {}


def _is_float_tensor(type_: t.Type) -> bool:
    return is_row_major(type_) and is_float(type_)


def _can_be_attended(type_: t.Type) -> bool:
    return _is_float_tensor(type_) and len(type_.shape) >= 2 and type_.is_static


def _can_be_drawn(type_: t.Type) -> bool:
    return _is_float_tensor(type_) and type_.is_static and type_.dtype in DRAWN


LAYERS = (
    Production(_is_float_tensor, _norm, 2, "normalization"),
    Production(_can_be_attended, _attention, 1, "fused-attention"),
    Production(_can_be_drawn, _drawn, 1, "random-ops"),
    Production(_is_float_tensor, _dropout, 1, "random-ops"),
)

# Calls of operations that select or move elements, beside those of `operations` (AMB-LANG-165).


FEATURE = "tensor-ops"


def _absolute(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    return make.op("abs", type_)


def _extreme(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return the maximum or minimum of two operands, or an operand clamped between two bounds."""
    if make.choose.chance(3):
        return make.op("clamp", type_, type_, type_)
    return make.op(make.choose.pick(("maximum", "minimum")), type_, type_)


def _select(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    return make.op("select", t.Type("bool", type_.shape, type_.layout), type_, type_)


def _reshape(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return a reshape of the flat tensor, or of one with an additional axis of extent 1; one extent may be -1."""
    extents = list(_extents(type_))
    operand = (prod(extents),) if make.choose.below(2) else (*extents, 1)
    if make.choose.chance(3):
        extents[make.choose.below(len(extents))] = -1
    return make.op("reshape", t.Type(type_.dtype, operand), shape=extents)


def _operations_broadcast(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    whole = _extents(type_)
    small = [1 if make.choose.below(2) else extent for extent in whole][make.choose.below(len(whole) + 1) :]
    return make.op("broadcast", t.Type(type_.dtype, tuple(small)), shape=whole)


def _concat(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return a concatenation of two parts along an axis."""
    axis = make.choose.below(len(type_.shape))
    extent = _extents(type_)[axis]
    first = make.choose.between(1, max(extent - 1, 1))
    extents = (first, extent - first) if extent > 1 else (1,)
    return make.op("concat", *(_with_extent(type_, axis, size) for size in extents), axis=axis)


def _pad(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return a smaller tensor padded with zeros."""
    low, high, inner = [], [], []
    for extent in _extents(type_):
        low.append(make.choose.below(min(extent, 2)))
        high.append(make.choose.below(min(extent - low[-1], 2)))
        inner.append(extent - low[-1] - high[-1])
    return make.op("pad", t.Type(type_.dtype, tuple(inner)), low=low, high=high)


def _iota(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    return make.op("iota", shape=type_.shape, axis=make.choose.below(len(type_.shape)), dtype=type_.dtype)


def _gather(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return a gather of as many slices as the result has, from a tensor of one to three."""
    axis = make.choose.below(len(type_.shape))
    source = _with_extent(type_, axis, make.choose.between(1, 3))
    return make.op("gather", source, t.Type("int32", (type_.shape[axis],)), axis=axis)


def _scatter_add(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return one or two slices added along an axis."""
    axis, count = make.choose.below(len(type_.shape)), make.choose.between(1, 2)
    return make.op("scatter_add", type_, t.Type("int32", (count,)), _with_extent(type_, axis, count), axis=axis)


def _operations_slice(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Return a part of a tensor whose axes have up to two more elements."""
    starts, stops, whole = [], [], []
    for extent in _extents(type_):
        starts.append(make.choose.below(2))
        stops.append(starts[-1] + extent)
        whole.append(stops[-1] + make.choose.below(2))
    steps = [1] * len(whole) if make.choose.below(2) else None
    return make.op("slice", t.Type(type_.dtype, tuple(whole)), starts=starts, stops=stops, steps=steps)


def _extents(type_: t.Type) -> list[int]:
    """Return the extents of a type without names."""
    return [extent for extent in type_.shape if isinstance(extent, int)]


def _with_extent(type_: t.Type, axis: int, extent: int) -> t.Type:
    """Return the type with another extent along an axis."""
    return t.Type(type_.dtype, (*type_.shape[:axis], extent, *type_.shape[axis + 1 :]))


def _is_plain(type_: t.Type) -> bool:
    """True for a row-major tensor of numbers whose extents are known and not 0."""
    return is_row_major(type_) and type_.is_static and is_number(type_)


MOVEMENT = (
    Production(is_number, _absolute, 1, FEATURE),
    Production(is_number, _extreme, 2, FEATURE),
    Production(is_number, _select, 2, FEATURE),
    *(
        Production(_is_plain, make, 1, FEATURE)
        for make in (_reshape, _operations_broadcast, _concat, _pad, _iota, _gather, _scatter_add, _operations_slice)
    ),
)
