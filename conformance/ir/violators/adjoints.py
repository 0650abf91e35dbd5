"""Operations whose adjoint is wrong, or silently missing (language specification, 5.5)."""

from fractions import Fraction

from tessera_reference.graph.elementwise import ROOT_HALF
from tessera_reference.graph.movement import put_back
from tessera_reference.graph.reductions import _at_first_largest
from tessera_reference.graph.term import terms
from tessera_reference.ir.operation import OPERATIONS

from .changes import around, changed
from .gradients import off_tape

GRADIENTS, EACH = "LANG-05.5-01", "LANG-05.5-02"


def another(name, description, operation, method, substitute, clause=GRADIENTS):
    """Return a violation with another method of an operation, which is named as in Graph IR."""
    substitution = (OPERATIONS[f"tessera.graph.{operation}"], method, substitute)
    return changed(clause, name, description, substitution, only=["grad"])


def pulls_back(name, description, operation, pullback):
    """Return a violation with another adjoint of an operation: `pullback` takes dy, the result, the operands."""
    return another(name, description, operation, "pullback", lambda self, *arguments: pullback(*arguments))


def gives(name, description, operation, adjoint):
    """Return the same for an adjoint that reads the operation's attributes, which come first."""

    def execute(self, at, build):
        found = adjoint(self, *terms(at, build))
        return tuple(None if term is None else term.value for term in found)

    return another(name, description, operation, "adjoint", execute)


def averaged_inside(usual, self, like):
    """The mean over an axis of extent 1 between others, in place of the sum."""
    total = usual(self, like)
    for axis in range(1, len(like.shape) - 1):
        if like.shape[axis] == 1 and self.shape[axis] != 1:
            total = total / int(self.shape[axis])
    return total


def last_two(x, batch=tuple):
    """Return every matrix of a batch transposed; `batch` gives the order of the other axes."""
    rank = len(x.shape)
    return x.transpose(perm=(*batch(range(rank - 2)), rank - 1, rank - 2))


def if_square(x):
    """Transpose only if the shape requires it."""
    return x if x.shape[-1] == x.shape[-2] else last_two(x)


ARITHMETIC = [
    pulls_back("subtract_sign", "adds what it should subtract", "subtract", lambda dy, y, a, b: (dy, dy)),
    pulls_back("divide_once", "divides a divisor's gradient once", "divide", lambda dy, y, a, b:
               (dy / b, -(dy * a / b))),
    gives("negate_sign", "loses the sign of a negation", "negate", lambda op, dy, y, x: (dy,)),
    changed(GRADIENTS, "mean_of_a_middle_axis", "averages what was stretched along an axis between others",
            ("graph.term.Term.summed_to", around(averaged_inside)), only=["grad"]),
    gives("batches_turned", "exchanges the axes of batches", "matmul", lambda op, dy, y, a, b:
          (dy.matmul(last_two(b, reversed)), last_two(a, reversed).matmul(dy))),
    gives("square_untransposed", "does not transpose square operands", "matmul", lambda op, dy, y, a, b:
          (dy.matmul(if_square(b)), if_square(a).matmul(dy))),
    gives("permuted_again", "permutes the gradient as the operand was", "transpose", lambda op, dy, y, x:
          (dy.transpose(perm=op.perm).shaped(x.shape),)),
    gives("softmax_last_axis", "sums softmax along the last axis", "softmax", lambda op, dy, y, x:
          (y * (dy - (dy * y).sum(axis=-1, keepdims=True)),)),
    pulls_back("mean_undivided", "does not divide the gradient of a mean", "mean", lambda dy, y, x:
               dy.broadcast(shape=x.shape)),
    pulls_back("sum_divided", "divides the gradient of a sum", "sum", lambda dy, y, x:
               (dy / (x.shape[0] or 1)).broadcast(shape=x.shape)),
    pulls_back("product_itself", "gives every factor the product", "prod", lambda dy, y, x:
               (dy * y).broadcast(shape=x.shape)),
    pulls_back("product_over_factor", "divides the product by the factor", "prod", lambda dy, y, x: dy * y / x),
    pulls_back("max_to_all", "gives every element the gradient of the largest", "max", lambda dy, y, x:
               dy.broadcast(shape=x.shape)),
    pulls_back("min_as_max", "gives the largest element the gradient of the smallest", "min", lambda dy, y, x:
               _at_first_largest(dy, x, x, 0 if dy.shape[0] == 1 else 1)),
    pulls_back("log_sum_exp_undivided", "does not divide by the sum of exponentials", "logsumexp", lambda dy, y, x:
               dy * x.exp()),
]  # fmt: skip


def slope(name, wrong, description=""):
    """Return a violation with another slope of a function; `wrong` takes the result and the operand."""
    text = description or f"has another slope of {name}"
    return pulls_back(f"slope_of_{name}", text, name, lambda dy, y, x: dy * wrong(y, x))


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
    slope("gelu", lambda y, x: Fraction(1, 2) * (1 + (x * ROOT_HALF).erf()), "forgets the density in gelu"),
    slope("relu", lambda y, x: x * 0 + 1, "lets every gradient through relu"),
    pulls_back("pow_unsigned", "loses the sign of a negative base", "pow", lambda dy, y, a, b:
               (dy * (b * a.abs().pow(b - 1)), dy * (y * a.log()))),
    pulls_back("pow_without_logarithm", "forgets the logarithm in the slope of pow", "pow", lambda dy, y, a, b:
               (dy * (b * a.pow(b - 1)), dy * y)),
]  # fmt: skip


def keeping_one(dy, x, indices, axis):
    nothing = x.beside(0).broadcast(shape=x.shape)
    one = dy.beside(1).broadcast(shape=dy.shape)
    counts = nothing.scatter_add(indices, one, axis=axis).maximum(x.beside(1))
    return nothing.scatter_add(indices, dy, axis=axis) / counts


def taken(operation, dy, value, bounds):
    part = dy.slice(*bounds, spec=operation.spec)
    return part if value.shape else part.summed_to(value)


def silent(operation, derivative, method, substitute):
    """Return a violation with an operation whose gradients are silently zero, since it has none of its own."""
    name = operation.replace("_", "")
    description = f"has no {derivative} of {name}, and says nothing"
    return another(f"no_{name}", description, operation, method, substitute, EACH)


PRIMITIVE = """cast concat pad gather reshape broadcast layout_cast strided_slice transpose softmax prod mean logsumexp
    pow gelu"""
COMPOSITE = "layer_norm rms_norm batch_norm flash_attention dropout sgd adamw"
"""Operations that others define."""

MOVEMENT_AND_SILENT = [
    gives("reshaped_from_the_back", "takes three axes in reverse order", "reshape", lambda op, dy, y, x:
          (dy.shaped(x.shape[::-1]).transpose() if len(x.shape) == 3 else dy.shaped(x.shape),)),
    gives("select_by_tensors", "takes a scalar condition to hold", "select", lambda op, dy, y, condition, a, b:
          (None, (dy.where(condition) if condition.shape else dy).summed_to(a),
           (dy.unless(condition) if condition.shape else dy * 0).summed_to(b))),
    gives("concat_behind_one_part", "counts only the part before a part", "concat", lambda op, dy, y, *parts: tuple(
        dy.slice(spec=(*[":"] * (op.axis % len(dy.shape)), f"{start}:{start + part.shape[op.axis]}"))
        for start, part in zip([0, *(part.shape[op.axis] for part in parts)], parts, strict=False))),
    gives("pad_from_the_front", "takes the gradient of a frame's front", "pad", lambda op, dy, y, x:
          (dy.slice(spec=tuple(f"0:{extent}" for extent in x.shape)),)),
    gives("slice_to_the_front", "puts a slice's gradient to the front", "strided_slice", lambda op, dy, y, x:
          (put_back(dy, x, (), tuple(f"0:{extent}" for extent in dy.shape)),)),
    gives("slice_everywhere", "gives what was not taken a gradient", "slice", lambda op, dy, y, x, *bounds:
          ((x.beside(1).broadcast(shape=x.shape).update(dy, *bounds, spec=op.spec)), *(None for _ in bounds))),
    gives("gather_last_wins", "keeps one gradient of a slice gathered twice", "gather", lambda op, dy, y, x, indices:
          (keeping_one(dy, x, indices, op.axis), None)),
    gives("scattered_lost", "gives scattered updates nothing", "scatter_add", lambda op, dy, *others: (dy, None, None)),
    gives("replaced_too", "gives the replaced part the gradient too", "update", lambda op, dy, y, x, value, *bounds:
          (dy, taken(op, dy, value, bounds), *(None for _ in bounds))),
    gives("assigned_nothing", "gives an assigned value nothing", "update", lambda op, dy, y, x, value, *bounds:
          (dy.update(dy.beside(0), *bounds, spec=op.spec), None, *(None for _ in bounds))),
    gives("clamp_to_itself_only", "gives the bounds of a clamp nothing", "clamp", lambda op, dy, y, x, low, high:
          (dy.unless(x < low).unless(x > high).summed_to(x), None, None)),
    gives("abs_unsigned", "loses the sign in the slope of abs", "abs", lambda op, dy, y, x: (dy,)),
    pulls_back("maximum_to_both", "gives both operands of a maximum the gradient", "maximum", lambda dy, *others:
               (dy, dy)),
    pulls_back("minimum_as_maximum", "takes the minimum for the maximum", "minimum", lambda dy, y, a, b:
               (dy.unless(b > a), dy.where(b > a))),
    *(silent(name, "adjoint", "adjoint", lambda self, at, build: (None,) * len(at.operands))
        for name in PRIMITIVE.split()),
    *(silent(name, "derivative", "steps", around(off_tape)) for name in COMPOSITE.split()),
]  # fmt: skip
