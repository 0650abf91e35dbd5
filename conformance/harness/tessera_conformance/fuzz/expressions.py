"""Expressions of a wanted type, legal by construction (language spec, sections 2.3, 3 and 14.2).

`typed` says whether the place gives a literal its dtype (AMB-LANG-54, AMB-LANG-125); where it does not, a literal may
only stand where int32 or fp32 is wanted anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tessera_conformance.fuzz import scope as dtypes
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.scope import Scope, Variable, is_number

COMPARISONS = ("<", "==", ">", "<=", ">=", "!=")
INT32, BOOL = t.Type("int32"), t.Type("bool")


@dataclass(frozen=True)
class Production:
    """One way to make an expression of a type: when it applies, how it is made, and how often it is tried."""

    applies: Callable[[t.Type], bool]
    make: Callable[[Expressions, t.Type, bool], t.Expr]
    weight: int = 1
    feature: str = ""


class Expressions:
    """Makes expressions over a scope; `budget` limits how many operators the next ones may still have."""

    def __init__(self, scope: Scope, productions: tuple[Production, ...]) -> None:
        self.scope = scope
        self.choose = scope.chooser
        self.budget = 0
        self._productions = productions
        self._applicable: dict[t.Type, list[Production]] = {}

    def expr(self, type_: t.Type, typed: bool = True) -> t.Expr:
        """An expression of the type."""
        start = self.choose.place()
        made = self._expr(type_, typed)
        self.choose.part(start)
        return made

    def _expr(self, type_: t.Type, typed: bool) -> t.Expr:
        known = not any(isinstance(extent, str) and extent.startswith("?") for extent in type_.shape)
        if self.budget <= 0 or not known or not self.choose.below(3):
            return self.leaf(type_, typed)
        self.budget -= 1
        options = self._applicable.get(type_)
        if options is None:
            options = [
                each
                for each in (*PRODUCTIONS, *self._productions)
                if self.scope.around.has(each.feature) and each.applies(type_)
                for _ in range(each.weight)
            ]
            self._applicable[type_] = options
        return self.choose.pick(options).make(self, type_, typed) if options else self.leaf(type_, typed)

    # Leaves

    def leaf(self, type_: t.Type, typed: bool = True) -> t.Expr:
        """A variable, a literal, a new parameter, or a tensor expression."""
        found = self.scope.of_type(type_)
        unknown = not type_.is_static
        scalar = not type_.shape and dtypes.kind_of(type_.dtype) != "complex"
        if found and (unknown or self.choose.below(4) < 3):
            return t.Var(self.choose.pick(found).name)
        if scalar and (typed or type_.dtype in ("int32", "fp32", "bool")) and self.choose.below(4) < 3:
            return self.literal(type_.dtype, typed)
        if type_.shape and type_.is_static and self.choose.chance(6) and dtypes.kind_of(type_.dtype) != "complex":
            return t.TensorValue(type_)
        return self._wanted(type_, typed, found)

    def _wanted(self, type_: t.Type, typed: bool, found: list[Variable]) -> t.Expr:
        new = None if found and not type_.is_static else self.scope.parameter(type_)
        if new is not None:
            return t.Var(new.name)
        if found:
            return t.Var(self.choose.pick(found).name)
        if type_.shape:
            return t.TensorValue(type_)
        if typed or type_.dtype in ("int32", "fp32", "bool"):
            return self.literal(type_.dtype, typed)
        return t.Index(t.TensorValue(t.Type(type_.dtype, (1,))), (t.Literal("0"),))

    def literal(self, dtype: str, typed: bool = True) -> t.Literal:
        """A literal; without a type from its place, one whose own type it is."""
        text = dtypes.literal(dtype, self.choose)
        if dtype == "fp32" and not typed and text.isdigit():
            text += ".0"
        return t.Literal(text)

    def call(self, function: t.Function, sizes: dict[str, t.Extent]) -> t.Call:
        """A call whose arguments have the types of the parameters, with these sizes for the dimensions' names.

        Arguments with defaults may be left out, and the last ones may be given by name (AMB-LANG-14).
        """
        given: list[tuple[t.Parameter, t.Expr]] = []
        for parameter in function.parameters:
            if parameter.default is not None and self.choose.below(2):
                break
            shape = tuple(self._size(extent, sizes) for extent in parameter.type.shape)
            type_ = t.Type(parameter.type.dtype, shape, parameter.type.layout)
            given.append((parameter, self.expr(type_)))
        count = self.choose.below(len(given) + 1) if given and self.choose.chance(6) else len(given)
        named = tuple(t.Attribute(parameter.name, value, fixed=True) for parameter, value in given[count:])
        return t.Call(function.name, tuple(value for _, value in given[:count]), named, own=True)

    def op(self, name: str, *operands: t.Type, **attributes: object) -> t.Call:
        """A call of an operation on expressions of these types; an attribute that is None is left out."""
        given = tuple(t.Attribute(key, t.Word(_word(value))) for key, value in attributes.items() if value is not None)
        return t.Call(f"op.{name}", tuple(self.expr(each, False) for each in operands), given)

    def _size(self, extent: t.Extent, sizes: dict[str, t.Extent]) -> t.Extent:
        """Return a parameter's extent at a call: any number where it is unknown, one number for each name."""
        if isinstance(extent, int):
            return extent
        if extent.startswith("?"):
            return self.choose.pick(self.scope.extents)
        if extent not in sizes:
            sizes[extent] = self.choose.pick(self.scope.extents)
        return sizes[extent]

    def index(self, extent: t.Extent) -> t.Expr:
        """An index below the extent: a number, a loop's variable, or now and then whatever an int32 variable holds."""
        limit = extent if isinstance(extent, int) else 1
        variables = [each for each in self.scope.visible().values() if each.type == INT32]
        safe = [each for each in variables if each.limit is not None and each.limit <= limit]
        if safe and self.choose.below(3):
            return t.Var(self.choose.pick(safe).name)
        if variables and self.choose.chance(12):
            return t.Var(self.choose.pick(variables).name)
        return t.Literal(str(self.choose.below(max(limit, 1))))


def _word(value: object) -> str:
    """A value of an attribute as it is written; text stands as it is."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_word, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _arithmetic(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """`+ - * /` of two operands of the type, or of one and a scalar."""
    choose = make.choose
    operator = choose.pick("+-*/")
    left = right = type_
    if type_.shape and choose.chance(3):
        left, right = choose.shuffled([type_, t.Type(type_.dtype)])
    if operator == "/" and dtypes.kind_of(type_.dtype) == "int" and not choose.chance(6):
        return t.Binary("/", make.expr(type_, typed), t.Literal(choose.pick(dtypes.INT_LITERALS[1:])))
    if left.shape or not type_.shape:
        return t.Binary(operator, make.expr(left, typed), make.expr(right))
    return t.Binary(operator, make.expr(left), make.expr(right, typed))


def _broadcast(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """An operator on two shapes that NumPy would broadcast to the wanted one."""
    choose = make.choose
    shape = [1 if choose.below(2) else extent for extent in type_.shape][choose.below(len(type_.shape)) :]
    if not shape:
        return _arithmetic(make, type_, typed)
    small = t.Type(type_.dtype, tuple(shape))
    left, right = choose.shuffled([type_, small])
    return t.Binary(choose.pick("+-*"), make.expr(left, typed), make.expr(right, typed))


def _comparison(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """Two numbers compared, or two tensors of them, or a tensor and a scalar."""
    choose = make.choose
    operand = t.Type(make.scope.dtype(), type_.shape, type_.layout)
    operator = choose.pick(COMPARISONS)
    if type_.shape and choose.chance(4):
        return t.Binary(operator, make.expr(operand, False), make.expr(t.Type(operand.dtype)))
    if choose.chance(3):
        return t.Binary(operator, make.expr(operand), make.expr(operand, False))
    return t.Binary(operator, make.expr(operand, False), make.expr(operand))


def _sign(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """A sign before an operand."""
    return t.Unary(make.choose.pick("-+"), make.expr(type_, typed))


def _product(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """A matrix product; the result has the left operand's layout (LANG-15-04)."""
    *batch, m, n = type_.shape
    k = make.choose.pick(make.scope.extents)
    left = t.Type(type_.dtype, (*batch, m, k), type_.layout)
    right_shape = (*batch, k, n)
    right = t.Type(type_.dtype, right_shape, make.scope.layout(right_shape))
    return t.Binary("@", make.expr(left, False), make.expr(right, False))


def _call(make: Expressions, type_: t.Type, typed: bool) -> t.Expr:
    """A call of a function of the module whose result can be the type."""
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
    """Indices and slices of a larger tensor (AMB-LANG-96)."""
    base, items = indexed(make, type_)
    return t.Index(make.expr(base, False), items)


def indexed(make: Expressions, type_: t.Type) -> tuple[t.Type, tuple[t.Expr | t.Range, ...]]:
    """A tensor type, and items that pick a part of the wanted type out of it."""
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
    """A slice of so many elements, and how many there are to slice."""
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
    """A slice with a negative step: from its start down to its end, excluded, or from the last to the first element."""
    backwards = t.Unary("-", t.Literal(str(-step)))
    if make.choose.below(2):
        return reach, t.Range(None, None, backwards)
    end = make.choose.below(2)
    start = end + reach
    return start + 1 + make.choose.below(2), t.Range(t.Literal(str(start)), t.Literal(str(end)), backwards)


def unified(result: t.Type, wanted: t.Type) -> dict[str, t.Extent] | None:
    """Return the meaning of a function's dimension names for the wanted result; None where there is none."""
    if (result.dtype, result.layout, len(result.shape)) != (wanted.dtype, wanted.layout, len(wanted.shape)):
        return None
    sizes: dict[str, t.Extent] = {}
    for extent, given in zip(result.shape, wanted.shape, strict=True):
        if isinstance(extent, str):
            if extent.startswith("?") or sizes.setdefault(extent, given) != given:
                return None
        elif extent != given:
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
