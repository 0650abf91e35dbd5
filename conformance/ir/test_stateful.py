"""Operations with state, which is passed and returned: effects, steps one after another, and their bits."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.programs import evaluate, expression_twins, graph_of, value_of
from tessera_conformance.dsl import program, returning, tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.vectors.judging import golden, judge

PARAMETERS = (
    "X: tensor<4x3xfp32>, Y: tensor<4x3xfp32>, Z: tensor<4x4xfp32>, H: tensor<4x3xbf16>, c: tensor<3xfp32>, "
    "d: tensor<4xfp32>, h: tensor<3xbf16>, t: int32"
)
BATCH_NORM = "op.batch_norm(X, c, c, c, c)"
SGD = "op.sgd(X, Y, Y) @{rate=0.5}"
ADAMW = "op.adamw(X, Y, X, Y, t) @{rate=0.5}"
NAMES = {call: f"tessera.graph.{call[3:].partition('(')[0]}" for call in (BATCH_NORM, SGD, ADAMW)}

each_call = pytest.mark.parametrize(
    "call",
    [
        pytest.param(BATCH_NORM, marks=clause("LANG-04-07"), id="batch-norm"),
        pytest.param(SGD, marks=clause("LANG-04-08"), id="sgd"),
        pytest.param(ADAMW, marks=clause("LANG-04-08"), id="adamw"),
    ],
)


@golden("ir/stateful")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic and MPFR's roots and powers."""
    judge(impl, check, vector)


# Effects


@feature("stateful-ops")
@each_call
def test_an_operation_with_state_says_that_it_has_an_effect(impl, check, call):
    """If operations state their effects, it has one and the softmax that it reads has none."""
    reading = call.replace("(X", "(S", 1)
    graph = graph_of(
        impl, check, program("let S: tensor<4x3xfp32> = op.softmax(X);", f"return {reading};", parameters=PARAMETERS)
    )
    for name, pure in ((NAMES[call], False), ("tessera.graph.softmax", True)):
        actual = graph.named(name)
        check.equal(len(actual), 1, f"the number of {name}")
        effects = actual[0].get("effects")
        check.true(effects is None or (effects == []) == pure, f"{name} is {'pure' if pure else 'effectful'}", effects)


@feature("stateful-ops")
@each_call
def test_a_step_that_is_not_used_remains(impl, check, call):
    """An operation that counts as effectful is not left out, whether anybody takes its results or not."""
    graph = graph_of(impl, check, program(f"{call};", "return X;", parameters=PARAMETERS, result="tensor<4x3xfp32>"))
    check.equal(len(graph.named(NAMES[call])), 1, f"the number of {NAMES[call]}")


@feature("stateful-ops")
@each_call
def test_two_equal_steps_are_two(impl, check, call):
    """Neither replaces the other, and they stay in program order."""
    graph = graph_of(impl, check, program(f"{call};", f"return {call};", parameters=PARAMETERS))
    check.equal(len(graph.named(NAMES[call])), 2, f"the number of {NAMES[call]}")


@feature("stateful-ops")
@each_call
def test_state_is_nowhere_but_in_the_operands(impl, check, call):
    """The same operands give the same results again, in one program and in another run."""
    inputs = {
        "X": tensor_of("fp32", [[1.0, -2.0, 0.5]] * 2 + [[3.0, 0.25, -1.0]] * 2),
        "Y": tensor_of("fp32", [[0.5, 4.0, 1.0]] * 4),
        "Z": tensor_of("fp32", [[0.0] * 4] * 4),
        "H": tensor_of("bf16", [[0.0] * 3] * 4),
        "c": tensor_of("fp32", [0.5, 1.0, 2.0]),
        "d": tensor_of("fp32", [0.0] * 4),
        "h": tensor_of("bf16", [0.0] * 3),
        "t": tensor_of("int32", 2),
    }
    first = evaluate(impl, check, program(f"return {call};", parameters=PARAMETERS), **inputs)
    again = evaluate(impl, check, program(f"{call};", f"return {call};", parameters=PARAMETERS), **inputs)
    check.equal(len(again), len(first), "the number of results")
    for actual, expected in zip(again, first, strict=True):
        check.bits(actual, expected, "the same bits after the same step")


# Steps by hand, with numbers that no order and no level rounds


@feature("stateful-ops")
@clause("LANG-04-08", "LANG-02-04")
def test_a_step_of_sgd_takes_the_velocity_of_the_one_before(impl, check):
    """u = 8 * 0.5 + 4 = 8, p = 10 - 8 * 0.25 = 8; then u = 8 * 0.5 + 4 = 8, p = 6."""
    source = returning("op.sgd(p, g, u) @{rate=0.25, momentum=0.5}", "p: fp32, g: fp32, u: fp32")
    p, u = 10.0, 8.0
    for expected in ((8.0, 8.0), (6.0, 8.0)):
        inputs = {name: tensor_of("fp32", value) for name, value in (("p", p), ("g", 4.0), ("u", u))}
        actual = evaluate(impl, check, source, **inputs)
        check.equal(len(actual), 2, "the number of results")
        for answer, value in zip(actual, expected, strict=True):
            check.bits(answer, tensor_of("fp32", value))
        p, u = expected


@feature("stateful-ops")
@clause("LANG-04-08", "LANG-02-04")
def test_one_result_of_a_step_is_a_value(impl, check):
    """`only` names it, so that a loop in the program can carry the state from turn to turn: p = 16, 12, 6, -2.

    The end of a range does not count (AMB-LANG-29).
    """
    source = program(
        "let p: fp32 = x;",
        "let u: fp32 = 0.0;",
        "for (i in 0:3) {",
        "  let w: fp32 = op.sgd(p, g, u) @{rate=0.5, momentum=1.0, only=velocity};",
        "  p = op.sgd(p, g, u) @{rate=0.5, momentum=1.0, only=parameter};",
        "  u = w;",
        "}",
        "return p;",
        parameters="x: fp32, g: fp32",
        result="fp32",
    )
    actual = value_of(impl, check, source, x=tensor_of("fp32", 16.0), g=tensor_of("fp32", 4.0))
    # u = 4, 8, 12; p = 16 - 2 - 4 - 6
    check.bits(actual, tensor_of("fp32", 4.0))


@feature("stateful-ops")
@clause("LANG-04-07", "LANG-02-04")
def test_statistics_move_toward_those_of_the_batch(impl, check):
    """Means 2 and 0, variances 1 and 4 of two channels, by halves into 4, 6, 3 and 8."""
    source = returning(
        "op.batch_norm(X, g, g, m, v) @{momentum=0.5}",
        "X: tensor<2x2xfp32>, g: tensor<2xfp32>, m: tensor<2xfp32>, v: tensor<2xfp32>",
    )
    actual = evaluate(
        impl,
        check,
        source,
        X=tensor_of("fp32", [[1.0, -2.0], [3.0, 2.0]]),
        g=tensor_of("fp32", [1.0, 1.0]),
        m=tensor_of("fp32", [4.0, 6.0]),
        v=tensor_of("fp32", [3.0, 8.0]),
    )
    check.equal(len(actual), 3, "the number of results")
    check.bits(actual[1], tensor_of("fp32", [3.0, 3.0]), "the means")
    check.bits(actual[2], tensor_of("fp32", [2.0, 6.0]), "the variances")


@feature("stateful-ops")
@clause("LANG-04-07", "LANG-02-04")
def test_without_training_the_statistics_stay(impl, check):
    """Bit by bit, also where they are no numbers of arithmetic: -0."""
    source = returning(
        "op.batch_norm(X, g, g, m, v) @{training=false}",
        "X: tensor<2x2xfp32>, g: tensor<2xfp32>, m: tensor<2xfp32>, v: tensor<2xfp32>",
    )
    mean, variance = tensor_of("fp32", [4.0, -0.0]), tensor_of("fp32", [3.0, 8.0])
    ones = tensor_of("fp32", [1.0, 1.0])
    actual = evaluate(impl, check, source, X=tensor_of("fp32", [[1.0, -2.0], [3.0, 2.0]]), g=ones, m=mean, v=variance)
    check.equal(len(actual), 3, "the number of results")
    check.bits(actual[1], mean, "the means")
    check.bits(actual[2], variance, "the variances")


@feature("stateful-ops")
@clause("LANG-04-07", "LANG-02-04")
@pytest.mark.parametrize("momentum", [0, 1])
def test_a_momentum_of_one_forgets_the_statistics_and_of_zero_the_batch(impl, check, momentum):
    """The ends of r * (1 - momentum) + s * momentum: the columns have means 2 and 0, variances 1 and 4."""
    source = returning(
        f"op.batch_norm(X, g, g, m, v) @{{momentum={momentum}.0}}",
        "X: tensor<2x2xfp32>, g: tensor<2xfp32>, m: tensor<2xfp32>, v: tensor<2xfp32>",
    )
    given = [tensor_of("fp32", [4.0, 3.0]), tensor_of("fp32", [5.0, 7.0])]
    batch = [tensor_of("fp32", [2.0, 0.0]), tensor_of("fp32", [1.0, 4.0])]
    ones = tensor_of("fp32", [1.0, 1.0])
    x = tensor_of("fp32", [[1.0, -2.0], [3.0, 2.0]])
    actual = evaluate(impl, check, source, X=x, g=ones, m=given[0], v=given[1])
    check.equal(len(actual), 3, "the number of results")
    for name, value, expected in zip(("mean", "variance"), actual[1:], batch if momentum else given, strict=True):
        check.bits(value, expected, f"the {name}")


# What is refused


@feature("stateful-ops")
@clause("LANG-02-04", "LANG-11-01")
@pytest.mark.parametrize(
    ("call", "wrong", "category"),
    [
        (BATCH_NORM, "op.batch_norm(X, d, c, c, c)", "shapes"),
        (BATCH_NORM, "op.batch_norm(X, c, c, c, d)", "shapes"),
        (BATCH_NORM, "op.batch_norm(X, c, c, c, c) @{axis=2}", "shapes"),
        ("op.batch_norm(X, d, d, d, d) @{axis=0}", "op.batch_norm(X, c, c, c, c) @{axis=0}", "shapes"),
        (BATCH_NORM, "op.batch_norm(X, h, c, c, c)", "types"),
        (BATCH_NORM, "op.batch_norm(X, c, c, h, c)", "types"),
        ("op.batch_norm(H, h, h, c, c)", "op.batch_norm(H, h, c, c, c)", "types"),
        (BATCH_NORM, "op.batch_norm(X, c, c, c)", "types"),
        (SGD, "op.sgd(X, Z, Y) @{rate=0.5}", "shapes"),
        (SGD, "op.sgd(X, Y, Z) @{rate=0.5}", "shapes"),
        (SGD, "op.sgd(X, H, Y) @{rate=0.5}", "types"),
        ("op.sgd(H, H, X) @{rate=0.5}", "op.sgd(X, X, H) @{rate=0.5}", "types"),
        (SGD, "op.sgd(X, Y, Y)", "types"),
        (ADAMW, "op.adamw(X, Y, Z, Y, t) @{rate=0.5}", "shapes"),
        (ADAMW, "op.adamw(X, Y, X, Z, t) @{rate=0.5}", "shapes"),
        (ADAMW, "op.adamw(X, Y, X, Y, c) @{rate=0.5}", "types"),
        (ADAMW, "op.adamw(X, Y, X, Y) @{rate=0.5}", "types"),
        (ADAMW, "op.adamw(X, H, X, Y, t) @{rate=0.5}", "types"),
        ("op.sgd(X, Y, Y) @{rate=0.5, only=velocity}", "op.sgd(X, Y, Y) @{rate=0.5, only=m}", "types"),
    ],
)
def test_operands_that_do_not_fit_are_refused(impl, check, call, wrong, category):
    """One shape, one dtype, but for state that may be as wide as the accumulator; a step counts in int32."""
    expression_twins(impl, check, call, wrong, PARAMETERS, category)


@feature("stateful-ops")
@clause("LANG-02-04")
@pytest.mark.parametrize("step", [0, -1])
def test_steps_of_adamw_count_from_1(impl, check, step):
    """Step 0 has no averages to divide; the program ends with an error, step 1 does not."""
    source = returning("op.adamw(p, p, p, p, t) @{rate=0.5}", "p: fp32, t: int32")
    one = tensor_of("fp32", 1.0)
    check.equal(len(evaluate(impl, check, source, p=one, t=tensor_of("int32", 1))), 3, "the number of results")
    observation = impl.language.execute(source=source, function="f", inputs={"p": one, "t": tensor_of("int32", step)})
    check.rejects(observation, category=("numerics", "types"), phase="execute")
