"""Reduction trees, reductions along an axis, and matrix products: deliberately a second, independent implementation."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any, Literal, TypeAlias

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.elementwise import evaluate
from tessera_conformance.oracle.exact import (
    FORMATS,
    NAN,
    TF32_OPERAND,
    ZERO,
    BadArgument,
    ComplexField,
    Field,
    FloatFormat,
    Format,
    RealField,
    Value,
    accumulating,
    accumulator_format,
    along,
    elements_of,
    tensor_from,
    tensor_of,
    values_of,
)
from tessera_conformance.tensors import Tensor

# Reduction trees, and reductions along them: deliberately a second, independent implementation.
#
# `arithmetic/tree.py` reads trees for the probe and the replay. The oracle, which judges those, shares no code with
# them (`tests/oracle/test_enclosures.py`); that both read every tree alike is tested in
# `tests/oracle/test_reductions.py`.
#
# A tree is `fold`, `pairwise` or `ring(S)`, or explicit: a leaf is its index, a node lists its children, `c` is the
# start value. Explicit trees come as text, `((c 0 1) 2)`, or nested arrays, `[["c", 0, 1], 2]`. A node of three or
# more children adds them exactly and rounds once.


Tree: TypeAlias = str | int | Sequence[Any] | Mapping[str, Any]
"""A tree in words, as text or as JSON."""
Node: TypeAlias = Any
"""An index, `c`, or a list of nodes."""
START = "c"

_FORMS = "fold, pairwise, ring(S), or a nesting that names each leaf once"


def grown(tree: Tree, count: int, *, start: bool) -> Node:
    """The nodes of a tree over `count` leaves, at least one, with a place for the start value where there is one.

    Where the tree does not name the start value, a fold takes it first and every other tree adds it last.

    Raises `BadArgument`: no such tree, or an explicit one that does not fit the leaves.
    """
    if tree == "pairwise":
        return [_pairwise(count), START] if start else _pairwise(count)
    order = _order(tree, count)
    if order is not None:
        leaves = ([START] if start and tree == "fold" else []) + order
        node: Node = leaves[0]
        for leaf in leaves[1:]:
            node = [node, leaf]
        return [node, START] if start and tree != "fold" else node
    node = _parsed(tree) if isinstance(tree, str) else tree
    named = sorted(map(str, _leaves(node)))
    expected = sorted(map(str, range(count)))
    if named not in (expected, sorted([*expected, START])):
        raise BadArgument("tree", tree, f"{_FORMS}; it names other leaves than 0 to {count - 1}")
    return [node, START] if start and START not in named else node


def reduced(node: Node, leaf: Callable[[int], Any], start: Any, combine: Callable[[list[Any]], Any]) -> Any:
    """Return the value of the tree: `combine` of the children at every node, from the leaves up."""
    results: list[Any] = []
    work: list[tuple[Node, bool]] = [(node, False)]
    while work:
        item, ready = work.pop()
        if isinstance(item, str):
            results.append(start)
        elif isinstance(item, int):
            results.append(leaf(item))
        elif ready:
            children = results[-len(item) :]
            del results[-len(item) :]
            results.append(combine(children))
        else:
            work.append((item, True))
            work += [(child, False) for child in reversed(item)]
    return results[0]


def _order(tree: Tree, count: int) -> list[int] | None:
    """The order of the leaves of a fold or a ring; None for other trees."""
    if tree == "fold":
        return list(range(count))
    ring = re.fullmatch(r"ring\((\d+)\)", tree) if isinstance(tree, str) else None
    if isinstance(tree, Mapping):
        if set(tree) != {"ring"} or type(tree["ring"]) is not int:
            raise BadArgument("tree", tree, _FORMS)
        first = tree["ring"]
    elif ring:
        first = int(ring[1])
    else:
        return None
    return [(first + place) % count for place in range(count)]


def _pairwise(count: int) -> Node:
    nodes: list[Node] = list(range(count))
    while len(nodes) > 1:
        tail = nodes[len(nodes) & ~1 :]
        nodes = [list(pair) for pair in zip(nodes[::2], nodes[1::2], strict=False)] + tail
    return nodes[0]


def _parsed(text: str) -> Node:
    """The nesting that a text spells."""
    stack: list[list[Node]] = [[]]
    for token in re.findall(r"[()]|[^()\s]+", text):
        if token == "(":
            stack.append([])
        elif token == ")" and len(stack) > 1:
            node = stack.pop()
            stack[-1].append(node)
        elif token == START or token.isdecimal():
            stack[-1].append(START if token == START else int(token))
        else:
            raise BadArgument("tree", text, _FORMS)
    if len(stack) != 1 or len(stack[0]) != 1:
        raise BadArgument("tree", text, _FORMS)
    return stack[0][0]


def _leaves(node: Node) -> Iterator[Any]:
    work = [node]
    while work:
        item = work.pop()
        if isinstance(item, list | tuple):
            if len(item) < 2:
                raise BadArgument("tree", item, f"{_FORMS}; a node has two or more children")
            work.extend(item)
        elif item == START or (type(item) is int and item >= 0):
            yield item
        else:
            raise BadArgument("tree", item, _FORMS)


# Reductions along an axis: sums, products and means along a tree, Kahan's sum, extremes, softmax.
#
# Reference arithmetic, "sums": the balanced tree over adjacent pairs with an odd tail carried, in the accumulator
# type, and one final rounding; integers wrap in the accumulator and then in the dtype. The empty sum is +0 and the
# empty product 1; extremes of nothing are an error. NaN propagates and -0 lies below +0.
#
# Softmax and the logarithm of a sum of exponentials (language spec 5.2, 10 and 15; AMB-LANG-75) subtract the maximum,
# exponentiate and sum along the tree, in the accumulator type with a rounding after each step, and round once more.


KAHAN = "kahan"


def sum_(
    x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Tree = "pairwise", order: str | None = None
) -> Tensor:
    """The sum along an axis; `order="kahan"` compensates, another `order` is a tree."""
    field = accumulating(x.dtype)
    return _reduced(x, axis, keepdims, lambda terms: _sum(terms, field, tree if order is None else order))


def mean(
    x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Tree = "pairwise", order: str | None = None
) -> Tensor:
    """The sum divided by the number of terms, both rounded to the accumulator type; floats and complex numbers."""
    field = accumulating(x.dtype)
    format_ = _floating_format(field, x.dtype)

    def average(terms: list[Any]) -> Any:
        count = format_.round(Fraction(len(terms)))
        return field.divide(_sum(terms, field, tree if order is None else order), count)

    return _reduced(x, axis, keepdims, average)


def prod(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Tree = "pairwise") -> Tensor:
    """The product along an axis."""
    field = accumulating(x.dtype)

    def product(terms: list[Any]) -> Any:
        if not terms:
            return field.one
        node = grown(tree, len(terms), start=False)
        return reduced(node, lambda index: terms[index], field.one, lambda children: _product(children, field))

    return _reduced(x, axis, keepdims, product)


def max_(x: Tensor, axis: int = -1, *, keepdims: bool = False) -> Tensor:
    """The largest along an axis."""
    return _extreme(x, axis, keepdims, exact.maximum)


def min_(x: Tensor, axis: int = -1, *, keepdims: bool = False) -> Tensor:
    """The smallest along an axis."""
    return _extreme(x, axis, keepdims, exact.minimum)


def argmax(x: Tensor, axis: int = -1, *, keepdims: bool = False) -> Tensor:
    """The int32 index along an axis of the first largest element, or of the first NaN where there is one."""
    _require_real(x)
    lines = along(x.shape, axis)
    _require_terms(x, axis)
    values = values_of(x)
    positions = [_first_largest([values[place] for place in line]) for line in lines.places]
    return Tensor.from_words("int32", lines.shape(keepdims), positions)


def softmax(x: Tensor, axis: int = -1, *, tree: Tree = "pairwise") -> Tensor:
    """Softmax along `axis`; another `tree` departs from the reference arithmetic."""
    format_ = accumulator_format(x.dtype)
    values = values_of(x)
    results: list[Value] = [ZERO] * x.size
    for line in along(x.shape, axis).places:
        powers = _powers([values[place] for place in line], format_)
        total = tree_sum(powers, format_, tree)
        for place, power in zip(line, powers, strict=True):
            results[place] = format_.round(exact.divide(power, total))
    return tensor_of(x.dtype, x.shape, results)


def logsumexp(x: Tensor, axis: int = -1, *, keepdims: bool = False, tree: Tree = "pairwise") -> Tensor:
    """log(sum(exp(x - m))) + m along `axis`, where m is the maximum, or +0 where that is not finite."""
    format_ = accumulator_format(x.dtype)
    values, lines = values_of(x), along(x.shape, axis)
    _require_terms(x, axis)
    results = []
    for line in lines.places:
        row = [values[place] for place in line]
        largest = greatest(row)
        shift = largest if isinstance(largest, Fraction) or exact.is_zero(largest) else ZERO
        powers = [evaluate("exp", format_, format_.round(exact.subtract(value, shift))) for value in row]
        logarithm = evaluate("log", format_, tree_sum(powers, format_, tree))
        results.append(format_.round(exact.add(logarithm, shift)))
    return tensor_of(x.dtype, lines.shape(keepdims), results)


def pairwise_sum(values: list[Value], format_: Format) -> Value:
    """The canonical tree: y[i] = x[2i] + x[2i+1], an odd tail carried unchanged, repeated; the empty sum is +0."""
    return _sum(values, RealField(format_), "pairwise")  # type: ignore[no-any-return]


def tree_sum(values: list[Value], format_: Format, tree: Tree) -> Value:
    """Along any tree, or by Kahan's method."""
    return _sum(values, RealField(format_), tree)  # type: ignore[no-any-return]


def greatest(values: list[Value]) -> Value:
    """The maximum; NaN propagates and -0 is below +0."""
    return reduce(exact.maximum, values)


def _powers(row: list[Value], format_: FloatFormat) -> list[Value]:
    if not row:
        raise BadArgument("axis", "one without elements", "an axis of at least one element")
    largest = greatest(row)
    return [evaluate("exp", format_, format_.round(exact.subtract(value, largest))) for value in row]


def _sum(terms: list[Any], field: Field[Any], tree: Tree) -> Any:
    if not terms:
        return field.zero
    if tree == KAHAN:
        return _compensated(terms, field)
    node = grown(tree, len(terms), start=False)
    return reduced(node, lambda index: terms[index], field.zero, field.total)


def _compensated(terms: list[Any], field: Field[Any]) -> Any:
    """Kahan's sum: the part that each addition loses is taken off the next term; an infinite sum loses none.

    The parts of complex numbers are summed for themselves.
    """
    if isinstance(field, ComplexField):
        return tuple(_compensated([term[place] for term in terms], field.part) for place in (0, 1))
    total, lost = terms[0], field.zero
    for term in terms[1:]:
        corrected = field.total([term, field.negate(lost)])
        following = field.total([total, corrected])
        gained = field.total([following, field.negate(total)])
        lost = field.total([gained, field.negate(corrected)]) if field.is_finite(following) else field.zero
        total = following
    return total


def _product(factors: list[Any], field: Field[Any]) -> Any:
    """Return the product of a node: exact over all its factors and rounded once."""
    if isinstance(field, RealField):
        return field.round(reduce(exact.multiply, factors))
    if len(factors) > 2:
        raise BadArgument("tree", "a node of three or more complex factors", "nodes of two factors")
    return field.multiply(*factors)


def _reduced(x: Tensor, axis: int, keepdims: bool, reduction: Callable[[list[Any]], Any]) -> Tensor:
    lines = along(x.shape, axis)
    elements = elements_of(x)
    results = [reduction([elements[place] for place in line]) for line in lines.places]
    return tensor_from(x.dtype, lines.shape(keepdims), results)


def _extreme(x: Tensor, axis: int, keepdims: bool, better: Callable[[Value, Value], Value]) -> Tensor:
    _require_real(x)
    lines = along(x.shape, axis)
    _require_terms(x, axis)
    values = values_of(x)
    results = [reduce(better, (values[place] for place in line)) for line in lines.places]
    return tensor_from(x.dtype, lines.shape(keepdims), results, nonfinite=True)


def _first_largest(values: list[Value]) -> int:
    if NAN in values:
        return values.index(NAN)
    return values.index(greatest(values))


def _floating_format(field: Field[Any], dtype: str) -> FloatFormat:
    if isinstance(field, ComplexField):
        return field.format
    if isinstance(field, RealField) and isinstance(field.format, FloatFormat):
        return field.format
    raise BadArgument("dtype", dtype, "a floating-point or complex dtype")


def _require_real(x: Tensor) -> None:
    if x.dtype not in FORMATS:
        raise BadArgument("dtype", x.dtype, "a real dtype: complex numbers are not ordered")


def _require_terms(x: Tensor, axis: int) -> None:
    if x.shape[axis] == 0:
        raise BadArgument("axis", axis, "an axis of at least one element")


# Matrix product in the order the reference arithmetic fixes, one rounding a step.
#
# Reference, "matmul": the product folds to the left over ascending k from +0. It rounds each product and then the sum
# in the accumulator type, and once more at the end (LANG-10-02, LANG-10-06, LANG-15-04 to LANG-15-06, LANG-15-14). An
# addend is the start value. The other orders serve implementations that declare them, and show that the data
# distinguish them.


Order: TypeAlias = Literal["fold", "backward", "pairwise"]


def matmul(
    a: Tensor,
    b: Tensor,
    addend: Tensor | None = None,
    out: str | None = None,
    *,
    order: Order = "fold",
    tree: Tree | None = None,
    fused: bool = False,
    accumulator: str | None = None,
) -> Tensor:
    """(..., M, K) x (..., K, N) -> (..., M, N) in dtype `out`, by default that of the operands.

    `addend`, of the result's shape, is the start value instead of +0. `order` or `tree`, `fused` (a product enters its
    node unrounded; of two that are added, the first is rounded) and `accumulator` depart from the reference on request.
    """
    *batch, rows, inner = a.shape
    *other, inner_too, columns = b.shape
    if a.dtype != b.dtype or batch != other or inner != inner_too:
        raise ValueError(f"no product of {a.dtype} {list(a.shape)} and {b.dtype} {list(b.shape)}")
    shape = (*batch, rows, columns)
    if addend is not None and addend.shape != shape:
        raise BadArgument("addend", list(addend.shape), f"the shape of the result, {list(shape)}")
    field = accumulating(a.dtype, accumulator)
    starts = (
        [field.zero] * math.prod(shape) if addend is None else [field.round(element) for element in elements_of(addend)]
    )
    accumulate = _accumulation(field, inner, order if tree is None else tree, fused)
    multiply = _multiplication(field, fused)
    lefts, rights = operands(a), operands(b)
    results: list[Any] = []
    for which, row, column in product(range(math.prod(batch)), range(rows), range(columns)):
        left = (which * rows + row) * inner
        right = which * inner * columns + column
        products = [multiply(lefts[left + k], rights[right + k * columns]) for k in range(inner)]
        results.append(accumulate(products, starts[len(results)]))
    return tensor_from(out or a.dtype, shape, results)


def operands(tensor: Tensor) -> list[Any]:
    """The exact values of the factors, tf32 rounded as matmul does."""
    values = elements_of(tensor)
    return [TF32_OPERAND.round(value) for value in values] if tensor.dtype == "tf32" else values


def _multiplication(field: Field[Any], fused: bool) -> Callable[[Any, Any], Any]:
    """Rounded products, or exact ones that wait to be rounded in their node."""
    if not fused:
        return field.multiply
    if not isinstance(field, RealField):
        raise BadArgument("fused", fused, "false for complex numbers, whose products are not single ones")
    return exact.multiply


def _accumulation(field: Field[Any], count: int, tree: Tree, fused: bool) -> Callable[[list[Any], Any], Any]:
    """Return the function that adds up one inner product, from its products and its start value."""
    if count == 0:
        return lambda products, start: field.round(start)
    backward = tree == "backward"
    node = grown("fold" if backward else tree, count, start=True)

    def combine(terms: list[tuple[Any, bool]]) -> tuple[Any, bool]:
        (first, unrounded), (_, both) = terms[0], terms[1]
        if len(terms) == 2 and unrounded and both:
            terms = [(field.round(first), False), terms[1]]
        return field.total([term for term, _ in terms]), False

    def accumulate(products: list[Any], start: Any) -> Any:
        terms = products[::-1] if backward else products
        total, _ = reduced(node, lambda index: (terms[index], fused), (start, False), combine)
        return field.round(total)

    return accumulate
