"""Random operations in programs: effects, streams, gradients, and the bits of a given stream."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.programs import evaluate, expression_twins, graph_of, value_of
from tessera_conformance.check import values_of
from tessera_conformance.dsl import func, module, program, returning, tensor_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.judging import golden, judge

DRAWS = ["op.uniform() @{shape=[64]}", "op.normal() @{shape=[64]}", "op.dropout(X) @{rate=0.5}"]
NAMES = {call: f"tessera.graph.{call[3:].partition('(')[0]}" for call in DRAWS}
VECTOR = "tensor<64xfp32>"
PARAMETERS = f"X: {VECTOR}"
ONES = tensor_of("fp32", [1.0] * 64)

each_draw = pytest.mark.parametrize("draw", DRAWS, ids=["uniform", "normal", "dropout"])


@golden("ir/random")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by the oracle's own generator."""
    judge(impl, check, vector)


def results(impl, check, *statements):
    """Return the result of a program whose X is 64 ones."""
    return evaluate(impl, check, program(*statements, parameters=PARAMETERS), X=ONES)


def with_stream(draw, stream):
    """The same draw with an explicit stream."""
    return f"{draw[:-1]}, stream={stream}}}"


# Effects


@feature("random-ops")
@clause("LANG-04-06")
@each_draw
def test_a_random_operation_says_that_it_has_an_effect(impl, check, draw):
    """If operations state their effects, a draw has one and a softmax has none."""
    graph = graph_of(impl, check, returning(f"op.softmax({draw})", PARAMETERS, VECTOR))
    for name, pure in ((NAMES[draw], False), ("tessera.graph.softmax", True)):
        actual = graph.named(name)
        check.equal(len(actual), 1, f"the number of {name}")
        effects = actual[0].get("effects")
        check.true(effects is None or (effects == []) == pure, f"{name} is {'pure' if pure else 'effectful'}", effects)


@feature("random-ops")
@clause("LANG-04-06")
@each_draw
def test_a_draw_that_is_not_used_remains(impl, check, draw):
    """A draw as an unused value or as a statement remains, since later draws depend on its stream."""
    for unused in (f"let Y: {VECTOR} = {draw};", f"{draw};"):
        graph = graph_of(impl, check, program(unused, "return X;", parameters=PARAMETERS, result=VECTOR))
        check.equal(len(graph.named(NAMES[draw])), 1, f"the number of {NAMES[draw]}")


@feature("random-ops")
@clause("LANG-04-06")
@each_draw
def test_two_equal_draws_are_two(impl, check, draw):
    """The same call gives other numbers the second time: each draw takes a stream of its own."""
    first, second = results(impl, check, f"return {draw}, {draw};")
    same = sum(a == b for a, b in zip(first.words().tolist(), second.words().tolist(), strict=True))
    check.true(same <= 52, "the numbers of two draws differ", f"{same} of 64 are equal")
    graph = graph_of(impl, check, program(f"return {draw}, {draw};", parameters=PARAMETERS))
    check.equal(len(graph.named(NAMES[draw])), 2, f"the number of {NAMES[draw]}")


@feature("random-ops")
@clause("LANG-04-06", "LANG-04-01")
@each_draw
def test_a_program_gives_the_same_numbers_again(impl, check, draw):
    """Every run begins with the first stream, whatever was run before it."""
    statements = f"return {draw}, {draw};"
    before = results(impl, check, statements)
    results(impl, check, f"{draw};", f"{draw};", f"return {draw};")
    for again, first in zip(results(impl, check, statements), before, strict=True):
        check.bits(again, first, "the same numbers")


# Streams


@feature("random-ops")
@clause("LANG-04-06", "RT-11-04")
@level("strict", "deterministic")
@pytest.mark.parametrize("draw", DRAWS[:2], ids=["uniform", "normal"])
def test_draws_are_numbered_in_program_order(impl, check, draw):
    """They take streams 0, 1 and so on; a draw that is not used counts, one with an explicit stream does not."""
    actual = results(
        impl,
        check,
        f"let A: {VECTOR} = {draw};",
        "op.uniform() @{shape=[7]};",
        f"let B: {VECTOR} = {with_stream(draw, 9)};",
        f"let C: {VECTOR} = op.dropout(X) @{{rate=0.5}};",
        f"let D: {VECTOR} = {draw};",
        "return A, B, D;",
    )
    expected = results(impl, check, f"return {with_stream(draw, 0)}, {with_stream(draw, 9)}, {with_stream(draw, 3)};")
    for numbers, wanted, stream in zip(actual, expected, (0, 9, 3), strict=True):
        check.bits(numbers, wanted, f"the numbers of stream {stream}")


@feature("random-ops")
@clause("LANG-04-06", "RT-11-04")
@level("strict", "deterministic")
@each_draw
def test_every_turn_of_a_loop_draws_anew(impl, check, draw):
    """After three turns the last draw is the third; one behind the loop is the fourth (AMB-LANG-29)."""
    actual = results(
        impl,
        check,
        f"let A: {VECTOR} = X;",
        f"for (i in 0:3) {{ A = {draw}; }}",
        f"return A, {draw};",
    )
    expected = results(impl, check, f"return {with_stream(draw, 2)}, {with_stream(draw, 3)};")
    for numbers, wanted, stream in zip(actual, expected, (2, 3), strict=True):
        check.bits(numbers, wanted, f"the numbers of stream {stream}")


@feature("random-ops")
@clause("LANG-04-06", "RT-11-04")
@level("strict", "deterministic")
def test_every_evaluation_of_a_condition_draws_anew(impl, check):
    """The condition of a while is evaluated three times and once more: the next draw is the fifth (AMB-LANG-171)."""
    draw = DRAWS[0]
    (actual,) = results(
        impl,
        check,
        "let n: fp32 = 0.0;",
        "while (op.uniform(shape=[1])[0] * 0.0 + n < 2.5) { n = n + 1.0; }",
        f"return {draw};",
    )
    (expected,) = results(impl, check, f"return {with_stream(draw, 4)};")
    check.bits(actual, expected, "the numbers of stream 4")


@feature("random-ops")
@clause("LANG-04-06", "RT-11-04")
@level("strict", "deterministic")
@each_draw
def test_draws_of_called_functions_are_numbered_with_those_of_the_caller(impl, check, draw):
    """A func that draws is called twice, with a draw between (AMB-LANG-171)."""
    drawing = func(f"return {draw};", parameters=PARAMETERS, name="g")
    constant = func(f"return {DRAWS[0]};", name="h")
    body = func(f"let A: {VECTOR} = g(X);", f"return A, {draw}, g(X), h(), {draw};", parameters=PARAMETERS)
    actual = evaluate(impl, check, module(drawing, constant, body), X=ONES)
    draws = [draw, draw, draw, DRAWS[0], draw]
    spelled = ", ".join(with_stream(call, stream) for stream, call in enumerate(draws))
    for stream, pair in enumerate(zip(actual, results(impl, check, f"return {spelled};"), strict=True)):
        check.bits(*pair, f"the numbers of stream {stream}")


@feature("random-ops")
@clause("LANG-04-06", "RT-11-04")
@level("strict", "deterministic")
@pytest.mark.parametrize("rate", ["0.0", "0.5"])
def test_a_dropout_draws_whatever_its_rate(impl, check, rate):
    """The draw behind it has the second stream, also where it drops nothing (AMB-LANG-171)."""
    draw = DRAWS[0]
    actual = results(impl, check, f"return op.dropout(X) @{{rate={rate}}}, {draw};")
    (expected,) = results(impl, check, f"return {with_stream(draw, 1)};")
    check.bits(actual[1], expected, "the numbers of stream 1")


@feature("random-ops")
@clause("LANG-04-06", "RT-11-04")
@level("strict", "deterministic")
@each_draw
def test_only_the_branch_that_is_taken_draws(impl, check, draw):
    """A branch that is not executed takes no stream."""
    source = program(
        f"let A: {VECTOR} = X;",
        f"if (n > 0) {{ A = {draw}; }} else {{ {draw}; A = {draw}; }}",
        f"return A, {draw};",
        parameters=f"{PARAMETERS}, n: int32",
    )
    for number, streams in ((1, (0, 1)), (0, (1, 2))):
        actual = evaluate(impl, check, source, X=ONES, n=tensor_of("int32", number))
        expected = results(impl, check, f"return {with_stream(draw, streams[0])}, {with_stream(draw, streams[1])};")
        for numbers, wanted, stream in zip(actual, expected, streams, strict=True):
            check.bits(numbers, wanted, f"the numbers of stream {stream} where n is {number}")


@feature("random-ops")
@clause("LANG-04-06", "RT-11-03", "RT-11-04")
@each_draw
@pytest.mark.parametrize("setting", ["seed", "stream"])
def test_another_seed_or_stream_gives_other_numbers(impl, check, draw, setting):
    """At most a few of 64 draws are equal by chance, and about half of the elements of masks."""
    settings = [{"stream": "stream=1", setting: f"{setting}={n}"} for n in (3, 4)]
    calls = [f"{draw[:-1]}, {', '.join(values.values())}}}" for values in settings]
    first, second = results(impl, check, f"return {calls[0]}, {calls[1]};")
    same = sum(a == b for a, b in zip(first.words().tolist(), second.words().tolist(), strict=True))
    check.true(same <= 52, f"numbers of two values of {setting} differ", f"{same} of 64 are equal")


@feature("random-ops")
@clause("LANG-02-04", "RT-11-03")
@pytest.mark.parametrize("draw", DRAWS[:2], ids=["uniform", "normal"])
def test_a_shard_draws_its_part(impl, check, draw):
    """An offset is the index of the first element in the whole."""
    whole, part = (
        draw[:-1] + ", seed=5, stream=2}",
        draw.replace("[64]", "[16]")[:-1] + ", seed=5, stream=2, offset=48}",
    )
    actual = results(impl, check, f"return {whole}, {part};")
    last = Tensor("fp32", (16,), actual[0].data[-64:])
    check.bits(actual[1], last, "the last quarter")


# Dropout


@feature("random-ops")
@clause("LANG-04-06", "LANG-02-04")
@pytest.mark.parametrize("offset", [1 << 32, 1 << 34, 1 << 62], ids=["2-32", "2-34", "2-62"])
def test_elements_far_apart_have_numbers_of_their_own(impl, check, offset):
    """The index of an element counts with all of its bits, though generators count blocks in words of 32."""
    draws = [f"op.uniform(shape=[8], seed=1, stream=0, offset={first})" for first in (0, offset)]
    near, far = results(impl, check, f"return {', '.join(draws)};")
    check.true(near.data != far.data, "the numbers differ")


@feature("random-ops")
@clause("LANG-02-04", "LANG-05.5-01")
def test_the_gradient_of_dropout_has_its_mask(impl, check):
    """4 where an element was kept at a rate of three quarters, 0 where it was dropped; whatever is drawn in between."""
    y, gradient = results(
        impl,
        check,
        f"let Y: {VECTOR} = op.dropout(X) @{{rate=0.75}};",
        "op.uniform() @{shape=[64]};",
        "return Y, op.grad(Y, X);",
    )
    kept = sum(word != 0 for word in y.words().tolist())
    check.true(2 <= kept <= 36, "about a quarter is kept", kept)
    check.bits(gradient, y, "the gradient, where every element was 1")


@feature("random-ops")
@clause("LANG-02-04", "LANG-03.1-03")
def test_a_function_drops_elements_of_tensors_of_any_extent(impl, check):
    """Code made for two elements does not serve three; a rate of 0 keeps all elements."""
    vector, numbers = "tensor<?xfp32>", {"A": [1.0, 2.0], "B": [3.0, 4.0, 5.0]}
    helper = func("return op.dropout(X, rate=0.0);", parameters=f"X: {vector}", result=vector, name="keep")
    parameters = ", ".join(f"{name}: {vector}" for name in numbers)
    source = module(helper, func("return keep(A), keep(B), keep(A);", parameters=parameters))
    inputs = {name: tensor_of("fp32", values) for name, values in numbers.items()}
    for actual, name in zip(evaluate(impl, check, source, **inputs), "ABA", strict=True):
        check.bits(actual, inputs[name], f"keep({name})")


@feature("random-ops")
@clause("LANG-02-04")
def test_a_rate_of_zero_keeps_everything(impl, check):
    """Divided by 1."""
    (actual,) = results(impl, check, "return op.dropout(X) @{rate=0.0};")
    check.bits(actual, ONES)


@feature("random-ops")
@clause("LANG-02-04")
@pytest.mark.parametrize("dtype", ["fp8_e5m2", "fp16", "bf16", "fp32", "fp64"])
def test_uniform_numbers_lie_in_the_half_open_interval(impl, check, dtype):
    """From 0, which is included, to 1, which is not."""
    source = returning(f"op.uniform() @{{shape=[512], dtype={dtype}}}", "", f"tensor<512x{dtype}>")
    values = values_of(value_of(impl, check, source))
    check.true(all(value is not None and 0 <= value < 1 for value in values), "every number lies in [0, 1)")
    mean = float(sum(values) / len(values))
    check.true(0.38 < mean < 0.58, "the mean is near one half", mean)


@feature("random-ops")
@clause("LANG-02-04", "LANG-11-01")
@pytest.mark.parametrize(
    ("call", "wrong", "category"),
    [
        ("op.uniform() @{shape=[2]}", "op.uniform() @{dtype=fp32}", "types"),
        ("op.uniform() @{shape=[2], dtype=bf16}", "op.uniform() @{shape=[2], dtype=int32}", "types"),
        ("op.normal() @{shape=[2], dtype=fp64}", "op.normal() @{shape=[2], dtype=bool}", "types"),
        ("op.normal() @{shape=[2, 0]}", "op.normal() @{shape=[2, -1]}", "shapes"),
        ("op.uniform() @{shape=[2], seed=0}", "op.uniform() @{shape=[2], seed=-1}", ("types", "numerics")),
        ("op.normal() @{shape=[2], stream=0}", "op.normal() @{shape=[2], stream=-1}", ("types", "numerics")),
        ("op.normal() @{shape=[2], offset=0}", "op.normal() @{shape=[2], offset=-1}", ("types", "shapes", "numerics")),
        ("op.dropout(X) @{rate=0.5}", "op.dropout(X)", "types"),
        ("op.dropout(X) @{rate=0.5}", "op.dropout(X) @{rate=1.0}", ("types", "numerics")),
        ("op.dropout(X) @{rate=0.5}", "op.dropout(X) @{rate=-0.5}", ("types", "numerics")),
        ("op.dropout(X) @{rate=0.5}", "op.dropout(I) @{rate=0.5}", "types"),
    ],
)
def test_what_no_draw_is_made_of_is_refused(impl, check, call, wrong, category):
    """Shapes, float dtypes, seeds that are not negative, rates of at least 0 and below 1."""
    parameters = f"{PARAMETERS}, I: tensor<64xint32>"
    expression_twins(impl, check, call, wrong, parameters, category)
