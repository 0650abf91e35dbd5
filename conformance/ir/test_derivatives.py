"""Derivatives of every function that has one, within an enclosure of the exact derivative (language spec, 5.5).

The texts give no steps for a gradient, only that it is the one of the operators' adjoints. So it is held to the exact
derivative, computed by MPFR, and to twice what the textbook adjoint may err by when each of its steps rounds in the
operand's dtype; at the level strict functions are correctly rounded there, at the others they may be off as declared.
Gradients that every step leaves exact are in `test_gradients`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import pytest

from tessera_conformance.chapters.ir.kit.derivatives import enclosed, function, gradient, sigmoid, total
from tessera_conformance.chapters.ir.kit.programs import value_of
from tessera_conformance.dsl import program, tensor_of, type_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.bounds.intervals import FUNCTION_ULPS
from tessera_conformance.vectors.building import counted

DTYPES = ["bf16", "fp16", "fp32", "fp64"]
ANYWHERE = [0.25, -0.5, 1.5, -2.25, 3, -0.0078125, 1, -4]
POSITIVE = [0.25, 0.5, 1.5, 2.25, 3, 0.03125, 1, 4]
WEIGHTS = [1, -2, 0.5, 3, -1, 4, -0.75, 2]


def judge(impl, check, expression, operands, model, *, which="A", weights=None, second=False):
    """The gradient of the sum of the expression's elements times weights, with respect to one of the operands."""
    inputs = {**operands, "W": weights}
    parameters = ", ".join(f"{name}: {type_of(given)}" for name, given in inputs.items())
    weighted = f"({expression}) * W"
    statements = [f"let Y: {type_of(weights)} = {weighted};", f"return op.grad(Y, {which});"]
    if second:
        form = type_of(operands[which])
        statements = [f"let Y: {form} = op.grad({expression}, {which});", f"return op.grad(Y * W, {which});"]
    actual = value_of(impl, check, program(*statements, parameters=parameters), **inputs)
    check.equal((actual.dtype, actual.shape), (operands[which].dtype, operands[which].shape), "the gradient's type")
    ulps = 0.5 if impl.level == "strict" else FUNCTION_ULPS
    enclosures = enclosed(model, list(operands.values()), weights, list(operands).index(which), ulps=ulps)
    check.true(None not in enclosures, "the derivative is known")
    check.enclosed(actual, enclosures, f"{impl.level}: the derivative, within twice the error of its textbook adjoint")


def elementwise(compute):
    """The model of a function of each element."""
    return lambda xs: [compute(x) for x in xs]


FUNCTIONS = {
    **dict.fromkeys("exp exp2 expm1 sin cos tan sinh cosh tanh erf".split(), ANYWHERE),
    **dict.fromkeys("log log2 log1p sqrt rsqrt reciprocal".split(), POSITIVE),
}


@clause("LANG-05.5-01", "LANG-05.5-02")
@feature("elementary-functions")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions(impl, check, name, dtype):
    """Their slopes at points of either sign, near zero and far from it, times weights."""
    x, weights = (tensor_of(dtype, values) for values in (FUNCTIONS[name], WEIGHTS))
    judge(impl, check, f"op.{name}(A)", {"A": x}, elementwise(lambda x: function(name, x)), weights=weights)


@clause("LANG-05.5-01", "LANG-05.5-02")
@feature("elementary-functions")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("which", ["A", "B"], ids=["base", "exponent"])
def test_powers(impl, check, which, dtype):
    """b * a**(b - 1) for the base, a**b * log(a) for the exponent."""
    operands = {"A": tensor_of(dtype, POSITIVE[:5]), "B": tensor_of(dtype, [2, -1.5, 0.5, 3, -2])}
    weights = tensor_of(dtype, WEIGHTS[:5])

    def model(xs, ys):
        return [function("pow", x, y) for x, y in zip(xs, ys, strict=True)]

    judge(impl, check, "op.pow(A, B)", operands, model, which=which, weights=weights)


def silu(x):
    """x * sigmoid(x)."""
    return x * sigmoid(x)


def gelu(x):
    """x / 2 * (1 + erf(x / sqrt(2)))."""
    scaled = x * function("sqrt", x.beside(Fraction(1, 2)))
    return x * x.beside(Fraction(1, 2)) * (function("erf", scaled) + x.beside(1))


def gelu_by_tanh(x):
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x**3)))."""
    root = x.beside(Fraction("0.79788456080286535587989211986876373"))
    inner = root * (x + x.beside(Fraction("0.044715")) * (x * x * x))
    return x * x.beside(Fraction(1, 2)) * (function("tanh", inner) + x.beside(1))


ACTIVATIONS = {
    "sigmoid": ("op.sigmoid(A)", sigmoid),
    "silu": ("op.silu(A)", silu),
    "gelu": ("op.gelu(A)", gelu),
    "gelu-tanh": ('op.gelu(A) @{approximate="tanh"}', gelu_by_tanh),
}


@clause("LANG-05.5-01", "LANG-05.5-02")
@feature("activations")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("expression", "compute"), ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_activations(impl, check, expression, compute, dtype):
    """The slope of what the activation is defined as."""
    x, weights = (tensor_of(dtype, values) for values in (ANYWHERE, WEIGHTS))
    judge(impl, check, expression, {"A": x}, elementwise(compute), weights=weights)


QUOTIENTS = {"A": [1, -3, 0.5, 7, -0.75], "B": [3, 5, -7, 0.375, 11]}


@clause("LANG-05.5-01", "LANG-05.5-02")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("which", ["A", "B"], ids=["dividend", "divisor"])
def test_quotients(impl, check, which, dtype):
    """1 / b for the dividend, -a / b**2 for the divisor; none of them a number of the type."""
    operands = {name: tensor_of(dtype, values) for name, values in QUOTIENTS.items()}

    def model(xs, ys):
        return [x / y for x, y in zip(xs, ys, strict=True)]

    judge(impl, check, "A / B", operands, model, which=which, weights=tensor_of(dtype, WEIGHTS[:5]))


def rows(xs, width):
    """Numbers in rows."""
    return [xs[start : start + width] for start in range(0, len(xs), width)]


def columns(matrix):
    """Columns as rows."""
    return [list(column) for column in zip(*matrix, strict=True)]


def flat(matrix):
    """Rows one after another."""
    return [x for row in matrix for x in row]


def probabilities(row):
    """The softmax of a row, whose maximum counts as a constant, since it does not matter."""
    top = max(row, key=lambda x: x.ideal.high).constant
    powers = [function("exp", x - top) for x in row]
    whole = total(powers)
    return [power / whole for power in powers]


def log_sum_exp(row):
    """The logarithm of the sum of exponentials, by the same maximum."""
    top = max(row, key=lambda x: x.ideal.high).constant
    return top + function("log", total([function("exp", x - top) for x in row]))


MATRIX = [[0.5, -1, 2], [3, 0.25, -0.75]]


@clause("LANG-05.5-01", "LANG-05.5-02")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(impl, check, axis, dtype):
    """Every element of a row has a part in every probability of that row, and in no other."""
    x, weights = tensor_of(dtype, MATRIX), tensor_of(dtype, [[1, 2, -3], [0.5, -1, 4]])

    def model(xs):
        matrix = rows(xs, 3)
        return flat(map(probabilities, matrix)) if axis else flat(columns(map(probabilities, columns(matrix))))

    judge(impl, check, f"op.softmax(A) @{{axis={axis}}}", {"A": x}, model, weights=weights)


def mean(row):
    """The sum divided by the count."""
    return total(row) / row[0].beside(len(row))


def product(row):
    """The product of a row."""
    return reduce(lambda a, b: a * b, row)


REDUCTIONS = {"logsumexp": log_sum_exp, "mean": mean, "prod": product, "sum": total}


@clause("LANG-05.5-01", "LANG-05.5-02")
@feature("reductions")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(impl, check, name, axis, dtype):
    """Each element's part in the result of its row or column."""
    x = tensor_of(dtype, MATRIX)
    weights = tensor_of(dtype, [3, -0.5] if axis else [3, -0.5, 2])
    lines = (lambda xs: rows(xs, 3)) if axis else (lambda xs: columns(rows(xs, 3)))
    judge(
        impl,
        check,
        f"op.{name}(A) @{{axis={axis}}}",
        {"A": x},
        lambda xs: [REDUCTIONS[name](line) for line in lines(xs)],
        weights=weights,
    )


def multiplied(a, b):
    """The product of two matrices of numbers."""
    return [[total([x * y for x, y in zip(row, column, strict=True)]) for column in columns(b)] for row in a]


@clause("LANG-05.5-01", "LANG-05.5-02", "LANG-05.2-02")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("which", ["A", "B"], ids=["left", "right"])
def test_products_of_matrices(impl, check, which, dtype):
    """dY times the right operand transposed, and the left operand transposed times dY."""
    operands = {"A": counted(dtype, (2, 5), seed=331), "B": counted(dtype, (5, 3), seed=332)}
    judge(
        impl,
        check,
        "A @ B",
        operands,
        lambda a, b: flat(multiplied(rows(a, 5), rows(b, 3))),
        which=which,
        weights=counted(dtype, (2, 3), seed=333),
    )


@clause("LANG-05.5-01")
@feature("elementary-functions")
@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
@pytest.mark.parametrize("which", ["A", "B", "C"], ids=["inputs", "first-layer", "second-layer"])
def test_a_network(impl, check, which, dtype):
    """Two products with tanh between them, a softmax behind: one chain of adjoints through all of it."""
    shapes = {"A": (2, 3), "B": (3, 4), "C": (4, 3)}
    operands = {
        name: counted(dtype, shape, seed, exponents=(-3, -1))
        for seed, (name, shape) in enumerate(shapes.items(), start=334)
    }

    def model(a, b, c):
        hidden = [[function("tanh", x) for x in row] for row in multiplied(rows(a, 3), rows(b, 4))]
        return flat(map(probabilities, multiplied(hidden, rows(c, 3))))

    judge(
        impl,
        check,
        "op.softmax(op.tanh(A @ B) @ C)",
        operands,
        model,
        which=which,
        weights=counted(dtype, (2, 3), seed=337),
    )


EPSILON = Fraction(1, 8)


def normalized(row):
    """Centred and divided by the standard deviation."""
    middle = mean(row)
    centred = [x - middle for x in row]
    return over_root_mean_square(centred)


def over_root_mean_square(row):
    """Divided by the root of the mean square."""
    scale = function("rsqrt", mean([x * x for x in row]) + row[0].beside(EPSILON))
    return [x * scale for x in row]


def layer_norm(xs, gammas, betas):
    """Normalize rows of three."""
    return [x * g + b for row in rows(xs, 3) for x, g, b in zip(normalized(row), gammas, betas, strict=True)]


def rms_norm(xs, gammas):
    """Normalize rows of three."""
    return [x * g for row in rows(xs, 3) for x, g in zip(over_root_mean_square(row), gammas, strict=True)]


def batch_norm(xs, gammas, betas, *_):
    """Normalize columns, here channels."""
    turned = [normalized(column) for column in columns(rows(xs, 3))]
    return flat(columns([[x * g + b for x in c] for c, g, b in zip(turned, gammas, betas, strict=True)]))


NORMS = {
    "layer_norm": ("op.layer_norm(A, B, C) @{eps=0.125}", layer_norm, "ABC", "normalization"),
    "rms_norm": ("op.rms_norm(A, B) @{eps=0.125}", rms_norm, "AB", "normalization"),
    "batch_norm": ("op.batch_norm(A, B, C, D, E) @{eps=0.125, only=y}", batch_norm, "ABC", "stateful-ops"),
}


@clause("LANG-05.5-01", "LANG-05.5-02")
@pytest.mark.parametrize("dtype", ["bf16", "fp32", "fp64"])
@pytest.mark.parametrize(
    ("expression", "model", "operands", "which"),
    [
        pytest.param(expression, model, names, which, marks=feature(claimed), id=f"{name}-{which}")
        for name, (expression, model, names, claimed) in NORMS.items()
        for which in names
    ],
)
def test_norms(impl, check, expression, model, operands, which, dtype):
    """Operations defined by others have the derivative of what defines them (AMB-LANG-59)."""
    values = {"A": MATRIX, "B": [1, -0.5, 2], "C": [0.25, 3, -1], "D": [0, 0, 0], "E": [1, 1, 1]}
    names = "ABCDE" if "D" in expression else operands
    given = {name: tensor_of(dtype, values[name]) for name in names}
    weights = tensor_of(dtype, [[1, 2, -3], [0.5, -1, 4]])
    judge(impl, check, expression, given, model, which=which, weights=weights)


def attention(causal):
    """softmax(Q K' / 2) V for two queries and keys of four, and values of three elements."""

    def model(q, k, v):
        half = q[0].beside(Fraction(1, 2))
        scores = multiplied(rows(q, 4), columns(rows(k, 4)))
        scaled = [[x * half for x in row[: at + 1 if causal else 2]] for at, row in enumerate(scores)]
        values = rows(v, 3)
        return flat(flat(multiplied([probabilities(row)], values[: len(row)])) for row in scaled)

    return model


@clause("LANG-05.5-01", "LANG-05.5-02")
@feature("fused-attention")
@pytest.mark.parametrize("dtype", ["bf16", "fp32", "fp64"])
@pytest.mark.parametrize("causal", [False, True], ids=["all-keys", "causal"])
@pytest.mark.parametrize("which", ["Q", "K", "V"])
def test_attention_as_one_operation(impl, check, which, causal, dtype):
    """Its derivative is that of the products and the softmax; a masked key has none."""
    shapes = {"Q": (2, 4), "K": (2, 4), "V": (2, 3)}
    operands = {
        name: counted(dtype, shape, seed, exponents=(-2, 0))
        for seed, (name, shape) in enumerate(shapes.items(), start=338)
    }
    expression = f"op.flash_attention(Q, K, V) @{{scale=0.5{', causal=true' if causal else ''}}}"
    weights = counted(dtype, (2, 3), seed=341)
    judge(impl, check, expression, operands, attention(causal), which=which, weights=weights)


def adamw(p, g, m, v, _):
    """Step 2 of AdamW with shares of 1/2 and 3/4, a rate of 1/2, a decay of 1/4 and an epsilon of 1/8."""
    half, quarter, eighth = (p[0].beside(Fraction(1, divisor)) for divisor in (2, 4, 8))

    def step(p, g, m, v):
        mean = (m * half + g * half) / p.beside(Fraction(3, 4))
        square = (v * p.beside(Fraction(3, 4)) + g * g * quarter) / p.beside(Fraction(7, 16))
        return p - (mean / (function("sqrt", square) + eighth) + p * quarter) * half

    return [step(*element) for element in zip(p, g, m, v, strict=True)]


@clause("LANG-05.5-01", "LANG-05.5-02")
@feature("stateful-ops")
@pytest.mark.parametrize("dtype", ["bf16", "fp32", "fp64"])
@pytest.mark.parametrize("which", ["P", "A", "M", "V"], ids=["parameter", "gradient", "mean", "square"])
def test_a_step_of_an_optimizer(impl, check, which, dtype):
    """A step is a function like any other: that of AdamW, in everything that it takes."""
    values = {"P": [1, -2, 0.5], "A": [0.5, 3, -1], "M": [0.25, -1, 2], "V": [1, 4, 0.5]}
    operands = {name: tensor_of(dtype, value) for name, value in values.items()} | {"s": tensor_of("int32", 2)}
    expression = "op.adamw(P, A, M, V, s) @{rate=0.5, beta1=0.5, beta2=0.75, eps=0.125, decay=0.25, only=parameter}"
    judge(impl, check, expression, operands, adamw, which=which, weights=tensor_of(dtype, [1, -2, 3]))


SECOND = {
    "exp": (ANYWHERE, "exp"),
    "sin": (ANYWHERE, "sin"),
    "tanh": (ANYWHERE, "tanh"),
    "log": (POSITIVE, "log"),
    "sqrt": (POSITIVE, "sqrt"),
    "reciprocal": (POSITIVE, "reciprocal"),
}


@clause("LANG-05.5-01")
@feature("elementary-functions")
@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
@pytest.mark.parametrize(("values", "name"), SECOND.values(), ids=SECOND)
def test_second_derivatives(impl, check, values, name, dtype):
    """The gradient of a gradient."""
    x, weights = tensor_of(dtype, values), tensor_of(dtype, WEIGHTS)

    def model(xs):
        return gradient([function(name, x) for x in xs], [x.beside(1) for x in xs], xs)

    judge(impl, check, f"op.{name}(A)", {"A": x}, model, weights=weights, second=True)
