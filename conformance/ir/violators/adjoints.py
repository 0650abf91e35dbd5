"""Operations whose adjoint is wrong, or silently missing (language specification, 5.5)."""

from fractions import Fraction

from tessera_reference.graph import elementwise, reductions, term
from tessera_reference.graph import elementwise as functions
from tessera_reference.graph import elementwise as selection
from tessera_reference.graph.composites import AdamW, BatchNorm, Dropout, FlashAttention, LayerNorm, RmsNorm, Sgd
from tessera_reference.graph.constant import LayoutCast
from tessera_reference.graph.elementwise import Cast
from tessera_reference.graph.movement import (
    Broadcast,
    Concat,
    Gather,
    Pad,
    Reshape,
    ScatterAdd,
    Slice,
    StridedSlice,
    Transpose,
    Update,
    put_back,
)
from tessera_reference.graph.reductions import MatMul, Softmax
from tessera_reference.graph.term import terms
from tessera_reference.ir.operation import OPERATIONS

from .changes import changed
from .gradients import off_tape

GRADIENTS, EACH = "LANG-05.5-01", "LANG-05.5-02"


def pulls_back(name, description, operation, pullback):
    """Return a violation with another adjoint of an operation: `pullback` takes dy, the result, the operands."""
    substitution = (operation, "pullback", lambda self, *arguments: pullback(*arguments))
    return changed(GRADIENTS, name, description, substitution, only=["grad"])


def gives(name, description, operation, adjoint):
    """Return the same for an adjoint that reads the operation's attributes, which come first."""

    def execute(self, at, build):
        found = adjoint(self, *terms(at, build))
        return tuple(None if term is None else term.value for term in found)

    return changed(GRADIENTS, name, description, (operation, "adjoint", execute), only=["grad"])


# Operators

OPERATORS = [
    pulls_back("subtract_sign", "adds what it should subtract", elementwise.Subtract, lambda dy, y, a, b: (dy, dy)),
    pulls_back("divide_once", "divides a divisor's gradient once", elementwise.Divide, lambda dy, y, a, b:
               (dy / b, -(dy * a / b))),
    gives("negate_sign", "loses the sign of a negation", elementwise.Negate, lambda op, dy, y, x: (dy,)),
]  # fmt: skip


def averaged_inside(self, like):
    """The mean over an axis of extent 1 between others, in place of the sum."""
    total = _summed_to(self, like)
    for axis in range(1, len(like.shape) - 1):
        if like.shape[axis] == 1 and self.shape[axis] != 1:
            total = total / int(self.shape[axis])
    return total


_summed_to = term.Term.summed_to

STRETCHED = [
    changed(GRADIENTS, "mean_of_a_middle_axis", "averages what was stretched along an axis between others",
            ("graph.term.Term.summed_to", averaged_inside), only=["grad"]),
]  # fmt: skip


def last_two(x):
    """Return every matrix of a batch transposed."""
    rank = len(x.shape)
    return x.transpose(perm=(*range(rank - 2), rank - 1, rank - 2))


def if_square(x):
    """Transpose only if the shape requires it."""
    return x if x.shape[-1] == x.shape[-2] else last_two(x)


def batches_turned(x):
    """The axes of a batch of batches are exchanged too."""
    rank = len(x.shape)
    return x.transpose(perm=(*reversed(range(rank - 2)), rank - 1, rank - 2))


PRODUCTS = [
    gives("batches_turned", "exchanges the axes of batches", MatMul, lambda op, dy, y, a, b:
          (dy.matmul(batches_turned(b)), batches_turned(a).matmul(dy))),
    gives("square_untransposed", "does not transpose square operands", MatMul, lambda op, dy, y, a, b:
          (dy.matmul(if_square(b)), if_square(a).matmul(dy))),
    gives("permuted_again", "permutes the gradient as the operand was", Transpose, lambda op, dy, y, x:
          (dy.transpose(perm=op.perm).shaped(x.shape),)),
    gives("softmax_last_axis", "sums softmax along the last axis", Softmax, lambda op, dy, y, x:
          (y * (dy - (dy * y).sum(axis=-1, keepdims=True)),)),
]  # fmt: skip


# Reductions

REDUCTIONS = [
    pulls_back("mean_undivided", "does not divide the gradient of a mean", reductions.Mean, lambda dy, y, x:
               dy.broadcast(shape=x.shape)),
    pulls_back("sum_divided", "divides the gradient of a sum", reductions.Sum, lambda dy, y, x:
               (dy / (x.shape[0] or 1)).broadcast(shape=x.shape)),
    pulls_back("product_itself", "gives every factor the product", reductions.Prod, lambda dy, y, x:
               (dy * y).broadcast(shape=x.shape)),
    pulls_back("product_over_factor", "divides the product by the factor", reductions.Prod, lambda dy, y, x:
               dy * y / x),
    pulls_back("max_to_all", "gives every element the gradient of the largest", reductions.Max, lambda dy, y, x:
               dy.broadcast(shape=x.shape)),
    pulls_back("min_as_max", "gives the largest element the gradient of the smallest", reductions.Min, lambda dy, y, x:
               reductions._at_first_largest(dy, x, x, 0 if dy.shape[0] == 1 else 1)),
    pulls_back("log_sum_exp_undivided", "does not divide by the sum of exponentials", reductions.LogSumExp,
               lambda dy, y, x: dy * x.exp()),
]  # fmt: skip


# Functions


def slope(name, wrong, description=""):
    """Return a violation with another slope of a function; `wrong` takes the result and the operand."""
    text = description or f"has another slope of {name}"
    return pulls_back(f"slope_of_{name}", text, OPERATIONS[f"tessera.graph.{name}"], lambda dy, y, x: dy * wrong(y, x))


SLOPES = [
    slope("exp", lambda y, x: x),
    slope("exp2", lambda y, x: y, "forgets log 2 in the slope of exp2"),
    slope("expm1", lambda y, x: y, "takes expm1 for its own slope"),
    slope("log", lambda y, x: x.reciprocal() * 2, "doubles the slope of log"),
    slope("log2", lambda y, x: x.reciprocal(), "forgets log 2 in the slope of log2"),
    slope("log1p", lambda y, x: x.reciprocal(), "forgets the 1 in the slope of log1p"),
    slope("sin", lambda y, x: -x.cos(), "turns the sign of the slope of sin"),
    slope("cos", lambda y, x: x.sin(), "turns the sign of the slope of cos"),
    slope("tan", lambda y, x: 1 + y, "does not square in the slope of tan"),
    slope("sinh", lambda y, x: y, "takes sinh for its own slope"),
    slope("cosh", lambda y, x: -x.sinh(), "takes the slope of cosh for that of cos"),
    slope("tanh", lambda y, x: 1 - y, "does not square in the slope of tanh"),
    slope("erf", lambda y, x: (-(x * x)).exp(), "forgets 2 / sqrt(pi) in the slope of erf"),
    slope("sqrt", lambda y, x: y.reciprocal(), "forgets the half in the slope of sqrt"),
    slope("rsqrt", lambda y, x: y * y * y * Fraction(1, 2), "loses the sign of the slope of rsqrt"),
    slope("reciprocal", lambda y, x: -y, "does not square in the slope of the reciprocal"),
    slope("sigmoid", lambda y, x: y, "forgets 1 - y in the slope of sigmoid"),
    slope("silu", lambda y, x: x.sigmoid(), "takes the sigmoid for the slope of silu"),
    slope("gelu", lambda y, x: Fraction(1, 2) * (1 + (x * functions.ROOT_HALF).erf()), "forgets the density in gelu"),
    slope("relu", lambda y, x: x * 0 + 1, "lets every gradient through relu"),
    pulls_back("pow_unsigned", "loses the sign of a negative base", functions.Pow, lambda dy, y, a, b:
               (dy * (b * a.abs().pow(b - 1)), dy * (y * a.log()))),
    pulls_back("pow_without_logarithm", "forgets the logarithm in the slope of pow", functions.Pow, lambda dy, y, a, b:
               (dy * (b * a.pow(b - 1)), dy * y)),
]  # fmt: skip


# Movement and choice

MOVEMENT = [
    gives("reshaped_from_the_back", "takes three axes in reverse order", Reshape, lambda op, dy, y, x:
          (dy.shaped(x.shape[::-1]).transpose() if len(x.shape) == 3 else dy.shaped(x.shape),)),
    gives("select_by_tensors", "takes a scalar condition to hold", selection.Select, lambda op, dy, y, condition, a, b:
          (None, (dy.where(condition) if condition.shape else dy).summed_to(a),
           (dy.unless(condition) if condition.shape else dy * 0).summed_to(b))),
    gives("concat_behind_one_part", "counts only the part before a part", Concat, lambda op, dy, y, *parts: tuple(
        dy.slice(spec=(*[":"] * (op.axis % len(dy.shape)), f"{start}:{start + part.shape[op.axis]}"))
        for start, part in zip([0, *(part.shape[op.axis] for part in parts)], parts, strict=False))),
    gives("pad_from_the_front", "takes the gradient of a frame's front", Pad, lambda op, dy, y, x:
          (dy.slice(spec=tuple(f"0:{extent}" for extent in x.shape)),)),
    gives("slice_to_the_front", "puts a slice's gradient to the front", StridedSlice, lambda op, dy, y, x:
          (put_back(dy, x, (), tuple(f"0:{extent}" for extent in dy.shape)),)),
    gives("slice_everywhere", "gives what was not taken a gradient", Slice, lambda op, dy, y, x, *bounds:
          ((x.beside(1).broadcast(shape=x.shape).update(dy, *bounds, spec=op.spec)), *(None for _ in bounds))),
    gives("gather_last_wins", "keeps one gradient of a slice gathered twice", Gather, lambda op, dy, y, x, indices:
          (keeping_one(dy, x, indices, op.axis), None)),
    gives("scattered_lost", "gives scattered updates nothing", ScatterAdd, lambda op, dy, y, x, indices, updates:
          (dy, None, None)),
    gives("replaced_too", "gives the replaced part the gradient too", Update, lambda op, dy, y, x, value, *bounds:
          (dy, taken(op, dy, value, bounds), *(None for _ in bounds))),
    gives("assigned_nothing", "gives an assigned value nothing", Update, lambda op, dy, y, x, value, *bounds:
          (dy.update(dy.beside(0), *bounds, spec=op.spec), None, *(None for _ in bounds))),
    gives("clamp_to_itself_only", "gives the bounds of a clamp nothing", selection.Clamp, lambda op, dy, y, x, low,
          high: (dy.unless(x < low).unless(x > high).summed_to(x), None, None)),
    gives("abs_unsigned", "loses the sign in the slope of abs", selection.Abs, lambda op, dy, y, x: (dy,)),
    pulls_back("maximum_to_both", "gives both operands of a maximum the gradient", selection.Maximum, lambda dy, y, a,
               b: (dy, dy)),
    pulls_back("minimum_as_maximum", "takes the minimum for the maximum", selection.Minimum, lambda dy, y, a, b:
               (dy.unless(b > a), dy.where(b > a))),
]  # fmt: skip


def keeping_one(dy, x, indices, axis):
    nothing = x.beside(0).broadcast(shape=x.shape)
    one = dy.beside(1).broadcast(shape=dy.shape)
    counts = nothing.scatter_add(indices, one, axis=axis).maximum(x.beside(1))
    return nothing.scatter_add(indices, dy, axis=axis) / counts


def taken(operation, dy, value, bounds):
    part = dy.slice(*bounds, spec=operation.spec)
    return part if value.shape else part.summed_to(value)


# No adjoint


def silent(operation):
    """Return a violation with an operation whose gradients are silently zero, since it has no adjoint."""

    def adjoint(self, at, build):
        return tuple(None for _ in at.operands)

    name = operation.__name__.lower()
    return changed(
        EACH,
        f"no_{name}",
        f"has no adjoint of {name}, and says nothing",
        (operation, "adjoint", adjoint),
        only=["grad"],
    )


def opaque(operation):
    """Return the same for an operation that is defined by others."""
    name = operation.__name__.lower()
    description = f"has no derivative of {name}, and says nothing"
    return changed(EACH, f"no_{name}", description, (operation, "steps", off_tape(operation.steps)), only=["grad"])


MOVERS = (Cast, Concat, Pad, Gather, Reshape, Broadcast, LayoutCast, StridedSlice, Transpose)
COMPUTERS = (Softmax, reductions.Prod, reductions.Mean, reductions.LogSumExp, functions.Pow, functions.Gelu)
COMPOSITES = (LayerNorm, RmsNorm, BatchNorm, FlashAttention, Dropout, Sgd, AdamW)

SILENT = [*map(silent, (*MOVERS, *COMPUTERS)), *map(opaque, COMPOSITES)]
