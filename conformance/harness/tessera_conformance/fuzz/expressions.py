"""Generated expressions and calls of operations, over the names in scope."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import prod

from tessera_conformance.dsl import tensor_of
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.tree import Chooser, Extent, Function, Mesh, Names, Type
from tessera_conformance.oracle.elementwise import UNARY
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor
from tessera_conformance.vectors.building import COMPLEX, counter_bits

# The generator's dtypes and shapes, the literals of each dtype, and inputs.


INTEGERS = ("int32", "int64", "int8", "int16")
NUMBERS = ("fp32", "int32", "bf16", "fp16", "fp64", "int64", "int8", "tf32", "fp8_e4m3", "fp8_e5m2", "int16")
"""The numeric dtypes of section 2.2, frequent ones first."""
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


def input_for(dtype: str, shape: tuple[int, ...], chooser: Chooser) -> Tensor:
    """Return a tensor of all ones for seed 0, of small values for three of four seeds, else of any bits."""
    seed = chooser.below(1 << 16)
    layout, small = ELEMENT_FORMATS[dtype], SMALL[dtype]
    words = counter_bits(seed, prod(shape) * layout.words)
    if seed % 4 == 3 and dtype != "bool":
        words = [word & ((1 << 8 * layout.word_bytes) - 1) for word in words]
    else:
        words = [small[word % len(small)] if seed else small[1] for word in words]
    return Tensor.from_words(dtype, shape, words)


def _small(dtype: str) -> tuple[int, ...]:
    """Return the codes of small values, 1 in the second place."""
    part = COMPLEX.get(dtype, dtype)
    values = INTERESTING if kind_of(part) == "float" else (0, 1, 2, 3, -1, 1, 2, 5)
    return tuple(int(tensor_of(part, value).words()[0]) for value in values)


SMALL = {"bool": (0, 1)} | {dtype: _small(dtype) for dtype in (*NUMBERS, *COMPLEX)}

# The names in scope of a generated function body with their types, and the types to choose from.


MOST_PARAMETERS = 5
COMPARISONS = ("<", "==", ">", "<=", ">=", "!=")
INT32, BOOL = Type("int32"), Type("bool")


@dataclass(frozen=True)
class Variable:
    """A name with its type; `limit` bounds a loop's variable from above, exclusively."""

    name: str
    type: Type
    assignable: bool = True
    limit: int | None = None


class Surroundings:
    """The names that the module offers to its functions, and the source of its decisions."""

    def __init__(self, chooser: Chooser, features: Collection[str]) -> None:
        self.choose = chooser
        self.features = frozenset(features)
        self.names = Names(chooser)
        self.aliases: dict[Type, str] = {}
        self.constants: dict[str, Variable] = {}
        self.functions: list[Function] = []
        self.results: dict[str, Type] = {}
        """The type of a function's result, annotated or inferred, where it has exactly one."""
        self.mesh: Mesh | None = None
        self.communicates = False
        """True if a function generated so far contains a collective, directly or through calls."""

    def has(self, feature: str) -> bool:
        """True if the implementation claims a feature; "" stands for the core, which it always has."""
        return not feature or feature in self.features


class Expressions:
    """Names in scope, innermost block last, parameters that are added on demand, and expressions over them.

    `budget` limits the number of operators in the following expressions. With `typed`, the context gives a literal its
    dtype (AMB-LANG-54, AMB-LANG-125); without it, literals are used only for int32 or fp32.
    """

    def __init__(self, around: Surroundings, *, in_kernel: bool = False) -> None:
        self.around = around
        self.choose = chooser = around.choose
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
        self.budget = 0

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
        return Type(type_.dtype, type_.shape, type_.layout, alias) if alias and self.choose.below(2) else type_

    def dtype(self) -> str:
        """Return a numeric dtype that this function prefers."""
        return self.choose.pick(self.dtypes)

    def type(self) -> Type:
        """Return a numeric type that this function prefers."""
        rank = self.choose.pick((0, 2, 1, 2, 2, 1, 0, 3))
        shape = tuple(self.choose.pick(self.extents) for _ in range(rank))
        return Type(self.dtype(), shape, self.layout(shape))

    def layout(self, shape: tuple[Extent, ...]) -> str:
        """Return a layout that a tensor of the shape can have; mostly row_major."""
        if len(shape) != 2 or not self.choose.chance(7):
            return "row_major"
        even = all(isinstance(extent, int) and extent % 2 == 0 and extent for extent in shape)
        return self.choose.pick(LAYOUTS) if even else "col_major"

    def any_type(self) -> Type:
        """Return a type of the function, sometimes a bool one."""
        type_ = self.type()
        return Type("bool", type_.shape, type_.layout) if self.choose.chance(8) else type_

    # Expressions of a given type, legal by construction (language spec, sections 2.3, 3 and 14.2)

    def expr(self, type_: Type, typed: bool = True) -> t.Expr:
        """Return an expression of the type."""
        sized = not any(isinstance(extent, str) and extent.startswith("?") for extent in type_.shape)
        if self.budget <= 0 or not sized or not self.choose.below(3):
            return self.leaf(type_, typed)
        self.budget -= 1
        options = [
            production
            for production in PRODUCTIONS
            if self.around.has(production.feature) and production.applies(type_)
            for _ in range(production.weight)
        ]
        return self.choose.pick(options).make(self, type_, typed) if options else self.leaf(type_, typed)

    # Leaves

    def leaf(self, type_: Type, typed: bool = True) -> t.Expr:
        """Return a variable, a literal, a new parameter, or a tensor expression."""
        variables = self.of_type(type_)
        unknown = not type_.is_static
        scalar = not type_.shape and kind_of(type_.dtype) != "complex"
        if variables and (unknown or self.choose.below(4) < 3):
            return t.Var(self.choose.pick(variables).name)
        if scalar and (typed or type_.dtype in ("int32", "fp32", "bool")) and self.choose.below(4) < 3:
            return self.literal(type_.dtype, typed)
        if type_.shape and type_.is_static and self.choose.chance(6) and kind_of(type_.dtype) != "complex":
            return type_
        return self._wanted(type_, typed, variables)

    def _wanted(self, type_: Type, typed: bool, variables: list[Variable]) -> t.Expr:
        new = None if variables and not type_.is_static else self.parameter(type_)
        if new is not None:
            return t.Var(new.name)
        if variables:
            return t.Var(self.choose.pick(variables).name)
        if type_.shape:
            return type_
        if typed or type_.dtype in ("int32", "fp32", "bool"):
            return self.literal(type_.dtype, typed)
        return t.Index(Type(type_.dtype, (1,)), (t.Literal("0"),))

    def literal(self, dtype: str, typed: bool = True) -> t.Literal:
        """Return a literal; if the context gives it no type, one of its own type."""
        text = literal(dtype, self.choose)
        if dtype == "fp32" and not typed and text.isdigit():
            text += ".0"
        return t.Literal(text)

    def maybe(self, value: object) -> object:
        """Return the value of an attribute, or None, which leaves it out."""
        return value if self.choose.below(2) else None

    def call(self, function: Function, sizes: dict[str, Extent]) -> t.Call:
        """Return a call; its arguments have the types of the parameters, with `sizes` for the dimensions' names.

        Arguments with defaults may be left out, and the last ones may be given by name (AMB-LANG-14).
        """
        arguments: list[tuple[t.Let, t.Expr]] = []
        for parameter in function.parameters:
            if parameter.value is not None and self.choose.below(2):
                break
            shape = tuple(self._size(extent, sizes) for extent in parameter.type.shape)
            type_ = Type(parameter.type.dtype, shape, parameter.type.layout)
            arguments.append((parameter, self.expr(type_)))
        count = self.choose.below(len(arguments) + 1) if arguments and self.choose.chance(6) else len(arguments)
        named = tuple(t.Attribute(parameter.name, value, fixed=True) for parameter, value in arguments[count:])
        return t.Call(function.name, tuple(value for _, value in arguments[:count]), named, own=True)

    def op(self, name: str, *operands: Type, **attributes: object) -> t.Call:
        """Return a call of an operation on expressions of these types; an attribute that is None is left out."""
        given = tuple(
            t.Attribute(key, t.Literal(_written(value))) for key, value in attributes.items() if value is not None
        )
        return t.Call(f"op.{name}", tuple(self.expr(operand, False) for operand in operands), given)

    def _size(self, extent: Extent, sizes: dict[str, Extent]) -> Extent:
        """Return a parameter's extent at a call: any number if it is unknown, the same number for equal names."""
        if isinstance(extent, int):
            return extent
        if extent.startswith("?"):
            return self.choose.pick(self.extents)
        if extent not in sizes:
            sizes[extent] = self.choose.pick(self.extents)
        return sizes[extent]

    def index(self, extent: Extent) -> t.Expr:
        """Return an index below the extent: a number, a loop's variable, or sometimes an int32 variable's value."""
        limit = extent if isinstance(extent, int) else 1
        variables = self.of_type(INT32)
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


# Expressions of the core: operators, calls of the module's functions, indices and slices.


def _arithmetic(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return `+ - * /` of two operands of the type, or of one and a scalar."""
    choose = make.choose
    operator = choose.pick("+-*/")
    left = right = type_
    if type_.shape and choose.chance(3):
        left, right = choose.shuffled([type_, Type(type_.dtype)])
    if operator == "/" and kind_of(type_.dtype) == "int" and not choose.chance(6):
        return t.Binary("/", make.expr(type_, typed), t.Literal(choose.pick(INT_LITERALS[1:])))
    if left.shape or not type_.shape:
        return t.Binary(operator, make.expr(left, typed), make.expr(right))
    return t.Binary(operator, make.expr(left), make.expr(right, typed))


def _comparison(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return a comparison of two numbers, of two tensors, or of a tensor and a scalar."""
    choose = make.choose
    operand = Type(make.dtype(), type_.shape, type_.layout)
    operator = choose.pick(COMPARISONS)
    if type_.shape and choose.chance(4):
        return t.Binary(operator, make.expr(operand, False), make.expr(Type(operand.dtype)))
    left_typed = choose.chance(3)
    return t.Binary(operator, make.expr(operand, left_typed), make.expr(operand, not left_typed))


def _product(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return a matrix product; the result has the left operand's layout (LANG-15-04)."""
    *batch, m, n = type_.shape
    k = make.choose.pick(make.extents)
    left, right = (*batch, m, k), (*batch, k, n)
    right_type = Type(type_.dtype, right, make.layout(right))
    return t.Binary("@", make.expr(Type(type_.dtype, left, type_.layout), False), make.expr(right_type, False))


def _call(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return a call of a function of the module whose result can have the type."""
    options = []
    for function in make.around.functions:
        result = make.around.results.get(function.name)
        sizes = unified(result, type_) if result is not None else None
        if sizes is not None:
            options.append((function, sizes))
    return make.call(*make.choose.pick(options)) if options else make.leaf(type_, typed)


def _element(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return an indexed or sliced larger tensor (AMB-LANG-96)."""
    base, items = indexed(make, type_)
    return t.Index(make.expr(base, False), items)


def _broadcast(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return an operator on two shapes that NumPy broadcasts to the given one."""
    choose = make.choose
    shape = [1 if choose.below(2) else extent for extent in type_.shape][choose.below(len(type_.shape)) :]
    left, right = choose.shuffled([type_, Type(type_.dtype, tuple(shape))])
    return t.Binary(choose.pick("+-*"), make.expr(left, typed), make.expr(right, typed))


def indexed(make: Expressions, type_: Type) -> tuple[Type, tuple[t.Expr | t.Range, ...]]:
    """Return a tensor type, and indices and slices that select a part of the given type."""
    choose = make.choose
    shape: list[Extent] = []
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
    return Type(type_.dtype, tuple(shape)), tuple(items)


def _slice(make: Expressions, extent: Extent) -> tuple[Extent, t.Range]:
    """Return an extent and a slice of it with the given number of elements.

    One with a negative step is between two literals, the end excluded, or of all elements.
    """
    choose = make.choose
    if not isinstance(extent, int) or not extent or choose.below(3) == 0:
        return extent, t.Range()
    step = choose.pick((1, 1, 2, -1, -2))
    reach = (extent - 1) * abs(step) + 1
    if step < 0 and choose.below(2):
        return reach, t.Range(None, None, t.integer(step))
    first = choose.below(2)
    end = first + reach
    if step < 0:
        return end + 1 + choose.below(2), t.Range(t.integer(end), t.integer(first), t.integer(step))
    whole = end + choose.below(2)
    stop = None if end == whole and choose.below(2) else t.integer(end)
    written_step = t.integer(step) if step > 1 or choose.chance(4) else None
    return whole, t.Range(t.integer(first) if first or choose.below(2) else None, stop, written_step)


def unified(result: Type, expected: Type) -> dict[str, Extent] | None:
    """Return the sizes of dimension names for which the result has the expected type; None if there are none."""
    if (result.dtype, result.layout, len(result.shape)) != (expected.dtype, expected.layout, len(expected.shape)):
        return None
    sizes: dict[str, Extent] = {}
    for extent, extent_wanted in zip(result.shape, expected.shape, strict=True):
        if isinstance(extent, str):
            if extent.startswith("?") or sizes.setdefault(extent, extent_wanted) != extent_wanted:
                return None
        elif extent != extent_wanted:
            return None
    return sizes


# Calls of operations: those that compute elements, then those that select or move them (AMB-LANG-165), then those of
# neural networks. The core's are those that the documents name (AMB-LANG-101).


def _softmax(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    rank = len(type_.shape)
    return make.op("softmax", type_, axis=make.maybe(make.choose.between(-rank, rank - 1)))


def _reduction(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    operand, attributes = _reduced(make, type_)
    return make.op(make.choose.pick(REDUCTIONS[kind_of(type_.dtype)]), operand, **attributes)


def _largest(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    operand, attributes = _reduced(make, Type(make.dtype(), type_.shape))
    return make.op("argmax", operand, **attributes)


def _reduced(make: Expressions, type_: Type) -> tuple[Type, dict[str, object]]:
    """Return the operand of a reduction to the type, over an additional axis or a kept one, and its attributes."""
    choose = make.choose
    extent = choose.between(1, 4)
    ones = [place for place, size in enumerate(type_.shape) if size == 1]
    kept = bool(ones and choose.below(2))
    axis = choose.pick(ones) if kept else choose.below(len(type_.shape) + 1)
    keepdims = kept or (False if choose.chance(4) else None)
    shape = (*type_.shape[:axis], extent, *type_.shape[axis + kept :])
    written = axis - len(shape) if choose.chance(3) else axis
    return Type(type_.dtype, shape), {"axis": written, "keepdims": keepdims}


def _transpose(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return a transposition: axes reversed, or in the order of `perm`."""
    if make.choose.below(2):
        return make.op("transpose", Type(type_.dtype, type_.shape[::-1]))
    axes = range(len(type_.shape))
    order = make.choose.shuffled(axes)
    shape = tuple(type_.shape[order.index(axis)] for axis in axes)
    return make.op("transpose", Type(type_.dtype, shape), perm=order)


def _cast(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return a cast from any numeric dtype; `overflow` concerns fp8 (AMB-LANG-105)."""
    choose = make.choose
    dtype = choose.pick([number for number in NUMBERS if number != type_.dtype])
    narrow = type_.dtype.startswith("fp8") and choose.below(2)
    overflow = choose.pick(('"saturate"', '"nonfinite"')) if narrow else None
    return make.op("cast", Type(dtype, type_.shape, type_.layout), dtype=type_.dtype, overflow=overflow)


def _wider_product(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return a product of bf16 with an fp32 result (AMB-LANG-102)."""
    *batch, m, n = type_.shape
    k = make.choose.pick(make.extents)
    return make.op("matmul", Type("bf16", (*batch, m, k)), Type("bf16", (*batch, k, n)), out=type_.dtype)


def _fourier(make: Expressions, name: str, type_: Type) -> t.Expr:
    return make.op(name, type_, norm=make.maybe(make.choose.pick(('"ortho"', '"backward"', '"forward"'))))


def _extreme(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return the maximum or minimum of two operands, or an operand clamped between two bounds."""
    if make.choose.chance(3):
        return make.op("clamp", type_, type_, type_)
    return make.op(make.choose.pick(("maximum", "minimum")), type_, type_)


def _select(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    return make.op("select", Type("bool", type_.shape, type_.layout), type_, type_)


def _reshape(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return a reshape of the flat tensor, or of one with an additional axis of extent 1; one extent may be -1."""
    extents = list(_extents(type_))
    operand = (prod(extents),) if make.choose.below(2) else (*extents, 1)
    if make.choose.chance(3):
        extents[make.choose.below(len(extents))] = -1
    return make.op("reshape", Type(type_.dtype, operand), shape=extents)


def _called_broadcast(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    whole = _extents(type_)
    small = [1 if make.choose.below(2) else extent for extent in whole][make.choose.below(len(whole) + 1) :]
    return make.op("broadcast", Type(type_.dtype, tuple(small)), shape=whole)


def _concat(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return a concatenation of two parts along an axis."""
    axis = make.choose.below(len(type_.shape))
    extent = _extents(type_)[axis]
    first = make.choose.between(1, max(extent - 1, 1))
    extents = (first, extent - first) if extent > 1 else (1,)
    return make.op("concat", *(_with_extent(type_, axis, size) for size in extents), axis=axis)


def _pad(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return a smaller tensor padded with zeros."""
    low, high, inner = [], [], []
    for extent in _extents(type_):
        low.append(make.choose.below(min(extent, 2)))
        high.append(make.choose.below(min(extent - low[-1], 2)))
        inner.append(extent - low[-1] - high[-1])
    return make.op("pad", Type(type_.dtype, tuple(inner)), low=low, high=high)


def _iota(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    return make.op("iota", shape=type_.shape, axis=make.choose.below(len(type_.shape)), dtype=type_.dtype)


def _gather(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return a gather of as many slices as the result has, from a tensor of one to three."""
    axis = make.choose.below(len(type_.shape))
    source = _with_extent(type_, axis, make.choose.between(1, 3))
    return make.op("gather", source, Type("int32", (type_.shape[axis],)), axis=axis)


def _scatter_add(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return one or two slices added along an axis."""
    axis, count = make.choose.below(len(type_.shape)), make.choose.between(1, 2)
    return make.op("scatter_add", type_, Type("int32", (count,)), _with_extent(type_, axis, count), axis=axis)


def _called_slice(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return a part of a tensor whose axes have up to two more elements."""
    starts, stops, whole = [], [], []
    for extent in _extents(type_):
        starts.append(make.choose.below(2))
        stops.append(starts[-1] + extent)
        whole.append(stops[-1] + make.choose.below(2))
    steps = [1] * len(whole) if make.choose.below(2) else None
    return make.op("slice", Type(type_.dtype, tuple(whole)), starts=starts, stops=stops, steps=steps)


def _extents(type_: Type) -> list[int]:
    """Return the extents of a type without names."""
    return [extent for extent in type_.shape if isinstance(extent, int)]


def _with_extent(type_: Type, axis: int, extent: int) -> Type:
    """Return the type with another extent along an axis."""
    return Type(type_.dtype, (*type_.shape[:axis], extent, *type_.shape[axis + 1 :]))


def _normalized(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return op.layer_norm or op.rms_norm along an axis (AMB-LANG-170)."""
    choose = make.choose
    axis = choose.between(-len(type_.shape), -1)
    vector = Type(type_.dtype, (type_.shape[axis],))
    name, vectors = ("layer_norm", (vector, vector)) if choose.below(2) else ("rms_norm", (vector,))
    written = axis if axis != -1 or choose.below(2) else None
    return make.op(name, type_, *vectors, axis=written, eps="1e-3" if choose.chance(3) else None)


def _attention(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return op.flash_attention of the result's length, over one to three keys (AMB-LANG-177)."""
    choose = make.choose
    *batch, length, width = type_.shape
    causal = choose.chance(3)
    keys, depth = length if causal else choose.between(1, 3), choose.between(1, 3)
    shapes = ((*batch, length, depth), (*batch, keys, depth), (*batch, keys, width))
    block, scale = 2 if choose.chance(3) else None, 0.5 if choose.chance(3) else None
    operands = (Type(type_.dtype, shape) for shape in shapes)
    return make.op("flash_attention", *operands, causal=causal or None, block=block, scale=scale)


def _drawn(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    """Return random numbers of the given shape."""
    name = make.choose.pick(("uniform", "normal"))
    return make.op(name, shape=type_.shape, dtype=type_.dtype, **_source(make))


def _dropout(make: Expressions, type_: Type, typed: bool) -> t.Expr:
    return make.op("dropout", type_, rate=make.choose.pick(("0.5", "0.1", "0.0")), **_source(make))


def _source(make: Expressions) -> dict[str, object]:
    """Return the attributes of random numbers: none for the next stream, or those of a named one (AMB-LANG-171)."""
    return {"seed": 7, "stream": 3} if make.choose.chance(3) else {}


# The productions, each with its weight, the feature that enables it ("" for the core), and the types it can make.
#
# Seeds name the same programs as long as no row moves.


REDUCTIONS = {"float": ("sum", "mean", "max", "min", "prod", "logsumexp"), "int": ("sum", "max", "min", "prod")}
ACTIVATIONS = ("sigmoid", "silu", "gelu")
RANDOM = ("fp32", "bf16", "fp16", "fp64")
"""Dtypes of random numbers."""


@dataclass(frozen=True)
class Production:
    """One way to make an expression of a type."""

    weight: int
    feature: str
    applies: Callable[[Type], bool]
    make: Callable[[Expressions, Type, bool], t.Expr]


def _is_array(type_: Type) -> bool:
    return bool(type_.shape) and type_.layout == "row_major" and is_number(type_)


def _is_float_tensor(type_: Type) -> bool:
    return is_row_major(type_) and is_float(type_)


def _is_complex_tensor(type_: Type) -> bool:
    return is_row_major(type_) and kind_of(type_.dtype) == "complex"


def _is_known(type_: Type) -> bool:
    """True for a row-major scalar or tensor whose extents are known and not 0."""
    return type_.is_static and type_.layout == "row_major" and 0 not in type_.shape


def _is_plain(type_: Type) -> bool:
    """True for a row-major tensor of numbers whose extents are known and not 0."""
    return bool(type_.shape) and _is_known(type_) and is_number(type_)


def _is_reduced(type_: Type) -> bool:
    return len(type_.shape) < 3 and type_.layout == "row_major" and 0 not in type_.shape and is_number(type_)


PRODUCTIONS = (
    Production(8, "", is_number, _arithmetic),
    Production(2, "", is_number, lambda make, type_, typed: t.Unary(make.choose.pick("-+"), make.expr(type_, typed))),
    Production(6, "", lambda type_: type_.dtype == "bool", _comparison),
    Production(4, "", lambda type_: is_number(type_) and len(type_.shape) >= 2, _product),
    Production(3, "", lambda type_: True, _call),
    Production(2, "", _is_known, _element),
    Production(2, "broadcasting-ops", lambda type_: _is_array(type_) and type_.is_static, _broadcast),
    Production(2, "", _is_float_tensor, _softmax),
    Production(2, "elementary-functions", is_float, lambda make, type_, _: make.op(make.choose.pick((*UNARY,)), type_)),
    Production(1, "elementary-functions", is_float, lambda make, type_, _: make.op("pow", type_, type_)),
    Production(1, "activations", is_float, lambda make, type_, _: make.op(make.choose.pick(ACTIVATIONS), type_)),
    Production(1, "tensor-ops", is_float, lambda make, type_, _: make.op(make.choose.pick(("relu",)), type_)),
    Production(3, "reductions", _is_reduced, _reduction),
    Production(1, "reductions", lambda type_: _is_reduced(type_) and type_.dtype == "int32", _largest),
    Production(2, "tensor-ops", lambda type_: _is_array(type_) and len(type_.shape) >= 2, _transpose),
    Production(3, "casts", is_number, _cast),
    Production(
        1,
        "matmul-out",
        lambda type_: _is_array(type_) and len(type_.shape) >= 2 and type_.dtype == "fp32",
        _wider_product,
    ),
    Production(8, "extra-dtypes", _is_complex_tensor, lambda make, type_, _: _fourier(make, "fft", type_)),
    Production(4, "inverse-fft", _is_complex_tensor, lambda make, type_, _: _fourier(make, "ifft", type_)),
    Production(1, "tensor-ops", is_number, lambda make, type_, _: make.op("abs", type_)),
    Production(2, "tensor-ops", is_number, _extreme),
    Production(2, "tensor-ops", is_number, _select),
    *(
        Production(1, "tensor-ops", _is_plain, make)
        for make in (_reshape, _called_broadcast, _concat, _pad, _iota, _gather, _scatter_add, _called_slice)
    ),
    Production(2, "normalization", _is_float_tensor, _normalized),
    Production(
        1, "fused-attention", lambda type_: _is_plain(type_) and is_float(type_) and len(type_.shape) >= 2, _attention
    ),
    Production(1, "random-ops", lambda type_: _is_plain(type_) and type_.dtype in RANDOM, _drawn),
    Production(1, "random-ops", _is_float_tensor, _dropout),
)
