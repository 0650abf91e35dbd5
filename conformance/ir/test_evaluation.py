"""Evaluation is pure (language spec, sections 2.3 and 4)."""

from math import inf

import pytest

from tessera_conformance.chapters.ir.kit.programs import evaluate, value_of
from tessera_conformance.dsl import func, module, parameters_of, program, returning, tensor_of, type_of
from tessera_conformance.marks import clause, feature, level

SQUARE = "tensor<2x2xint32>"
A = tensor_of("int32", [[1, 2], [3, 4]])
B = tensor_of("int32", [[5, 6], [7, 8]])


@clause("LANG-04-01")
def test_equal_inputs_give_equal_results(impl, check):
    """A function gives the same bits again, whatever was evaluated in between."""
    source = returning("(A @ B) + A", parameters_of("AB", SQUARE), SQUARE)
    expected = tensor_of("int32", [[20, 24], [46, 54]])
    check.bits(value_of(impl, check, source, A=A, B=B), expected)
    value_of(impl, check, source, A=B, B=A)
    value_of(impl, check, returning("A - B", parameters_of("AB", SQUARE), SQUARE), A=A, B=B)
    check.bits(value_of(impl, check, source, A=A, B=B), expected, "the bits after other evaluations")


@clause("LANG-04-01")
def test_a_result_depends_on_the_inputs_only(impl, check):
    """The same function gives other results for other inputs, in a row without reset."""
    source = returning("a * b - 1", parameters_of("ab", "int32"), "int32")
    for left, right in ((2, 3), (3, 2), (0, 5), (-4, 4), (2, 3)):
        value = value_of(impl, check, source, a=tensor_of("int32", left), b=tensor_of("int32", right))
        check.bits(value, tensor_of("int32", left * right - 1), f"{left} * {right} - 1")


@clause("LANG-04-01", "LANG-02-01")
@pytest.mark.parametrize(
    ("expressions", "values"),
    [(("a - b", "a + b"), (-1, 5)), (("A - a + b", "a - A + b"), (8, -2)), (("A*b - a", "A* b-b"), (19, 18))],
    ids=["operator", "case", "blanks"],
)
def test_long_programs_that_differ_in_a_letter_are_two(impl, check, expressions, values):
    """Neither the beginning of a text nor its length tells it from another, nor its letters in one case."""
    inputs = {name: tensor_of("int32", value) for name, value in zip("abA", (2, 3, 7), strict=True)}
    for expression, value in zip(expressions * 2, values * 2, strict=True):
        body = [f"// {'-' * 80}"] * 99 + [f"return {expression};"]
        source = program(*body, parameters=parameters_of("abA", "int32"), result="int32")
        check.bits(value_of(impl, check, source, **inputs), tensor_of("int32", value), expression)


@clause("LANG-04-01")
@pytest.mark.parametrize(
    "statements",
    [
        ["let P: {T} = A + B;", "let Q: {T} = A - B;"],
        ["let Q: {T} = A - B;", "let P: {T} = A + B;"],
        ["let P: {T} = A + B;", "let U: {T} = P * P;", "let Q: {T} = A - B;", "let V: {T} = Q @ U;"],
    ],
    ids=["in-order", "exchanged", "with-unused-values"],
)
def test_independent_statements_do_not_affect_each_other(impl, check, statements):
    """Order and presence of statements on which a result does not depend change nothing."""
    body = [statement.replace("{T}", SQUARE) for statement in statements]
    outputs = evaluate(impl, check, program(*body, "return P, Q;", parameters=parameters_of("AB", SQUARE)), A=A, B=B)
    check.equal(len(outputs), 2, "the number of returned values")
    check.bits(outputs[0], tensor_of("int32", [[6, 8], [10, 12]]))
    check.bits(outputs[1], tensor_of("int32", [[-4, -4], [-4, -4]]))


@clause("LANG-04-01", "LANG-04-02", "LANG-02.3-55")
def test_an_operation_leaves_its_operands_alone(impl, check):
    """After products, sums, negations and calls the operands still have their values."""
    source = module(
        func("return X + X;", parameters=f"X: {SQUARE}", result=SQUARE, name="twice"),
        func(
            f"let P: {SQUARE} = op.matmul(A, B);",
            f"let Q: {SQUARE} = A * B - -A;",
            f"let R: {SQUARE} = twice(A);",
            "return A, B;",
            parameters=parameters_of("AB", SQUARE),
        ),
    )
    outputs = evaluate(impl, check, source, A=A, B=B)
    check.equal(len(outputs), 2, "the number of returned values")
    check.bits(outputs[0], A)
    check.bits(outputs[1], B)


@clause("LANG-02.3-55", "LANG-04-01", "LANG-04-02")
def test_an_operation_as_a_statement_has_no_effect(impl, check):
    """A call of an operator whose value is not used changes no value."""
    body = ["op.matmul(A, B);", f"let C: {SQUARE} = A;", "op.matmul(C, C);", "return C;"]
    source = program(*body, parameters=parameters_of("AB", SQUARE), result=SQUARE)
    check.bits(value_of(impl, check, source, A=A, B=B), A)


@clause("LANG-02.3-55", "LANG-04-01")
@level("strict", "deterministic")
def test_two_calls_of_one_operation_give_one_value(impl, check):
    """The same operator on the same operands gives the same bits twice in a function."""
    matrix = "tensor<2x4xfp32>"
    source = program("return op.softmax(A), op.softmax(A);", parameters=f"A: {matrix}")
    outputs = evaluate(impl, check, source, A=tensor_of("fp32", [[0.5, 1, -2, 3], [7, 0, 0, -1]]))
    check.equal(len(outputs), 2, "the number of returned values")
    check.bits(outputs[0], outputs[1])


@clause("LANG-04-03")
def test_operations_run_after_those_they_take_values_from(impl, check):
    """A long chain of values, each made from the one before."""
    steps = [f"let v{index}: int32 = v{index - 1} * 3 - {index};" for index in range(1, 9)]
    expected = 2
    for index in range(1, 9):
        expected = expected * 3 - index
    source = program("let v0: int32 = a;", *steps, "return v8;", parameters="a: int32", result="int32")
    check.bits(value_of(impl, check, source, a=tensor_of("int32", 2)), tensor_of("int32", expected))


ROWS = {"X": tensor_of("int32", [[1, 2], [4, 3]])}
LOGITS = {"X": tensor_of("fp32", [[0.0, 0.0], [-inf, 0.0]])}
MOVED = {"X": tensor_of("int32", [[0, 0], [0, 0]]), "I": tensor_of("int32", [0, 0]), "U": A}
SPREAD = {
    "X": tensor_of("fp32", [[1.0, -1.0], [3.0, 5.0]]),
    "g": tensor_of("fp32", [1, 1]),
    "b": tensor_of("fp32", [0, 0]),
}
ATTENDED = {name: tensor_of("fp32", x) for name, x in {"Q": [[1], [1]], "K": [[0], [1]], "V": [[2], [4]]}.items()}
COLUMN = {name: tensor_of("fp32", [x]) for name, x in {"g": 1, "b": 0, "v": 4}.items()}

ATTRIBUTES = {
    "sum": ("reductions", ROWS, "op.sum(X, axis={})", {"0": [5, 5], "1": [3, 7]}),
    "max": ("reductions", ROWS, "op.max(X, axis={})", {"0": [4, 3], "1": [2, 4]}),
    "argmax": ("reductions", ROWS, "op.argmax(X, axis={})", {"0": [1, 1], "1": [1, 0]}),
    "softmax": ("", LOGITS, "op.softmax(X, axis={})", {"0": [[1, 0.5], [0, 0.5]], "1": [[0.5, 0.5], [0, 1]]}),
    "transpose": ("", ROWS, "op.transpose(X, perm={})", {"[0, 1]": [[1, 2], [4, 3]], "[1, 0]": [[1, 4], [2, 3]]}),
    "gather": ("tensor-ops", {**ROWS, "I": tensor_of("int32", [1, 0])}, "op.gather(X, I, axis={})",
        {"0": [[4, 3], [1, 2]], "1": [[2, 1], [3, 4]]}),
    "scatter-add": ("tensor-ops", MOVED, "op.scatter_add(X, I, U, axis={})",
        {"0": [[4, 6], [0, 0]], "1": [[3, 0], [7, 0]]}),
    "iota": ("tensor-ops", {}, "op.iota(shape=[2, 2], axis={})", {"0": [[0, 0], [1, 1]], "1": [[0, 1], [0, 1]]}),
    "pad-value": ("tensor-ops", {"X": tensor_of("int32", [7])}, "op.pad(X, low=[1], high=[0], value={})",
        {"5": [5, 7], "6": [6, 7]}),
    "pad-side": ("tensor-ops", {"X": tensor_of("int32", [7])}, "op.pad(X, {})",
        {"low=[1], high=[0]": [0, 7], "low=[0], high=[1]": [7, 0]}),
    "cast": ("casts", {"X": tensor_of("fp32", [2.0**20])}, 'op.cast(X, dtype=fp8_e5m2, overflow="{}")',
        {"saturate": [57344.0], "nonfinite": [inf]}),
    "layer-norm-axis": ("normalization", SPREAD, "op.layer_norm(X, g, b, eps=0.0, axis={})",
        {"0": [[-1, -1], [1, 1]], "1": [[1, -1], [-1, 1]]}),
    "layer-norm-eps": ("normalization", SPREAD, "op.layer_norm(X, g, b, eps={})",
        {"0.0": [[1, -1], [-1, 1]], "3.0": [[0.5, -0.5], [-0.5, 0.5]]}),
    "rms-norm-eps": ("normalization", {"X": tensor_of("fp32", [[1.0, -1.0]]), "g": SPREAD["g"]},
        "op.rms_norm(X, g, eps={})", {"0.0": [[1, -1]], "3.0": [[0.5, -0.5]]}),
    "attention-scale": ("fused-attention", ATTENDED, "op.flash_attention(Q, K, V, scale={})",
        {"0.0": [[3], [3]], "1000.0": [[4], [4]]}),
    "attention-mask": ("fused-attention", ATTENDED, "op.flash_attention(Q, K, V, scale=0.0, causal={})",
        {"false": [[3], [3]], "true": [[2], [3]]}),
    "batch-norm": ("stateful-ops", {"X": tensor_of("fp32", [[1], [-1]]), **COLUMN},
        "op.batch_norm(X, g, b, g, v, eps=0.0, only=y, training={})", {"true": [[1], [-1]], "false": [[0], [-1]]}),
    "sgd": ("stateful-ops", {"X": tensor_of("fp32", [4.0]), **COLUMN},
        "op.sgd(X, g, b, momentum=0.0, only=parameter, rate={})", {"1.0": [3], "2.0": [2]}),
    "dropout": ("random-ops", {"X": tensor_of("fp32", [1.0, 2.0])}, "op.dropout(X, rate={})",
        {"0.0": [1, 2], "0.9999999": [0, 0]}),
}  # fmt: skip
"""The feature, operands, a call with an open attribute, and the result by its value."""


@clause("LANG-02-04", "LANG-04-01")
@level("strict")
@pytest.mark.parametrize(
    ("inputs", "call", "results"),
    [
        pytest.param(*row, id=name, marks=[feature(needs)] if needs else [])
        for name, (needs, *row) in ATTRIBUTES.items()
    ],
)
def test_two_calls_that_differ_in_an_attribute_are_two(impl, check, inputs, call, results):
    """Code made for one call is not that of another of the same operands and types (AMB-LANG-134: argmax is int32)."""
    values = [*results, next(iter(results))]
    dtype = "fp8_e5m2" if "cast" in call else inputs["X"].dtype if "X" in inputs else "fp32" if inputs else "int32"
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items())
    source = program(f"return {', '.join(map(call.format, values))};", parameters=parameters)
    outputs = evaluate(impl, check, source, **inputs)
    check.equal(len(outputs), len(values), "the number of results")
    for value, output in zip(values, outputs, strict=True):
        check.bits(output, tensor_of(dtype, results[value]), call.format(value))


TURNED = {
    "slice": ("", "int32", "T[1:3, 0:2]", [[2, 5], [3, 6]]),
    "sum-of-two": ("", "int32", "T + Y", [[11, 24], [32, 45], [53, 66]]),
    "product": ("", "int32", "T @ X", [[17, 22, 27], [22, 29, 36], [27, 36, 45]]),
    "reshape": ("tensor-ops", "int32", "op.reshape(T, shape=[6])", [1, 4, 2, 5, 3, 6]),
    "concat": ("tensor-ops", "int32", "op.concat(T, Y, axis=1)", [[1, 4, 10, 20], [2, 5, 30, 40], [3, 6, 50, 60]]),
    "gather": ("tensor-ops", "int32", "op.gather(T, I, axis=0)", [[3, 6], [1, 4]]),
    "pad": ("tensor-ops", "int32", "op.pad(T, low=[0, 1], high=[0, 0])", [[0, 1, 4], [0, 2, 5], [0, 3, 6]]),
    "cast": ("casts", "bf16", "op.cast(T, dtype=bf16)", [[1, 4], [2, 5], [3, 6]]),
    "sum": ("reductions", "int32", "op.sum(T, axis=0)", [6, 15]),
    "max": ("reductions", "int32", "op.max(T, axis=1)", [4, 5, 6]),
    "softmax": ("", "fp32", "op.softmax(T, axis=0)", [[0, 1], [0, 0], [1, 0]]),
}
"""The feature, the dtype of the result, an expression of the transposed X, and the result."""


@clause("LANG-02-04", "LANG-02.3-32", "LANG-04-01")
@level("strict", "deterministic")
@pytest.mark.parametrize(
    ("dtype", "expression", "expected"),
    [pytest.param(*row, id=name, marks=[feature(needs)] if needs else []) for name, (needs, *row) in TURNED.items()],
)
def test_an_operation_reads_a_transposed_value_by_its_indices(impl, check, dtype, expression, expected):
    """However the transpose is stored, as a copy or as strides over its operand."""
    own = "int32" if dtype == "int32" else "fp32"
    rows = [[1000, 2000, 3000], [6000, 5000, 4000]] if dtype == "fp32" else [[1, 2, 3], [4, 5, 6]]
    inputs = {
        "X": tensor_of(own, rows),
        "Y": tensor_of(own, [[10, 20], [30, 40], [50, 60]]),
        "I": tensor_of("int32", [2, 0]),
    }
    result = tensor_of(dtype, expected)
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items())
    body = [f"let T: tensor<3x2x{own}> = op.transpose(X);", f"return {expression};"]
    source = program(*body, parameters=parameters, result=type_of(result))
    check.bits(value_of(impl, check, source, **inputs), result)


@clause("LANG-10-11", "LANG-02-04")
@level("strict")
@feature("elementary-functions")
@pytest.mark.parametrize("order", ["HBH", "BHB"], ids=["fp16-first", "bf16-first"])
def test_a_function_of_equal_numbers_is_rounded_to_each_dtype(impl, check, order):
    """e squared is 7.389056: 1892/256 in fp16, and 236/32 in bf16, which have as many bits."""
    inputs = {"H": tensor_of("fp16", [2.0]), "B": tensor_of("bf16", [2.0])}
    expected = {"H": tensor_of("fp16", [1892 / 256]), "B": tensor_of("bf16", [236 / 32])}
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items())
    source = program(f"return {', '.join(f'op.exp({name})' for name in order)};", parameters=parameters)
    for actual, name in zip(evaluate(impl, check, source, **inputs), order, strict=True):
        check.bits(actual, expected[name], f"op.exp({name})")
