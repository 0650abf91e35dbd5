"""The text of the IR loses nothing: executed as it was printed, a program gives the same bits (language spec, 1 and 5).

Constants are those of their decimal digits, rounded once; the other bits are frozen in golden vectors.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from tessera_conformance.chapters.ir.kit.equality_corpus import PROGRAMS
from tessera_conformance.chapters.ir.kit.level_programs import lowered, results_of_text
from tessera_conformance.chapters.ir.kit.one_of_each import one_of_each
from tessera_conformance.chapters.ir.kit.programs import takes_in_funcs
from tessera_conformance.dsl import func, module, parameters_of, program, returning, tensor_of, type_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.oracle.exact import float_format
from tessera_conformance.protocol import Unsupported
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors import load

LEVELS = [
    pytest.param("graph", marks=feature("graph-ir-text")),
    *(pytest.param(at, marks=feature(f"{at}-ir-text", f"lower-{at}")) for at in ("schedule", "tile", "target")),
]

DIGITS = ["0.1", "3.3333333333333333333", "1.0000001192092896", "0.00007", "123.456789", "0.30000000000000004"]
"""Numbers of which six, nine and sixteen digits give different bits in some type."""

EXTREMES = {
    "fp64": ["9007199254740993.0", "5.0e-324", "2.2250738585072011e-308", "1.7976931348623157e308"],
    "fp32": ["1.0e-45", "1.1754942e-38", "3.4028234663852886e38", "8388609.5"],
    "bf16": ["1.0e-40", "3.3895313892515355e38"],
    "fp16": ["6.0e-8", "65504.0"],
}
"""Numbers whose last bit counts, subnormals and limits."""

INTEGERS = {"int64": [2**63 - 1, 1 - 2**63, 2**53 + 1], "int32": [2**31 - 1, 2**24 + 1], "int8": [127, -127]}


def printed(impl, check, source, at, **inputs):
    """Return the function's result after the text of a level is executed."""
    return results_of_text(impl, check, lowered(impl, check, source, at).text, at, **inputs)


def constants(dtype, literals):
    """A program that returns literals, each the value of a constant."""
    body = [f"let c{place}: {dtype} = {literal};" for place, literal in enumerate(literals)]
    return program(*body, f"return {', '.join(f'c{place}' for place in range(len(literals)))};")


def rounded(dtype, literal):
    """The number of a decimal literal, rounded once."""
    format_ = float_format(dtype)
    magnitude = format_.encode(Fraction(literal.lstrip("-")))
    return Tensor.from_words(dtype, (), [magnitude | (format_.sign_bit if literal.startswith("-") else 0)])


def agree(check, actual, expected):
    """Compare two lists of values: as many, and the same bits."""
    check.equal(len(actual), len(expected), "the number of values")
    for value, right in zip(actual, expected, strict=True):
        check.bits(value, right, "read again from the text")


@clause("LANG-01-03", "LANG-01-07")
@pytest.mark.parametrize("dtype", EXTREMES)
@pytest.mark.parametrize("at", LEVELS)
def test_a_float_constant_keeps_every_bit(impl, check, dtype, at):
    """Full significands, subnormals, limits and signed zeros are the same numbers in the text."""
    positive = [*DIGITS, *EXTREMES[dtype], "0.0"]
    literals = [*positive, *(f"-{literal}" for literal in positive)]
    agree(
        check, printed(impl, check, constants(dtype, literals), at), [rounded(dtype, literal) for literal in literals]
    )


@clause("LANG-01-03", "LANG-01-07")
@pytest.mark.parametrize("dtype", EXTREMES)
@pytest.mark.parametrize("at", LEVELS)
def test_an_infinite_constant_keeps_its_sign(impl, check, dtype, at):
    """Infinities, which are quotients by zero in a program and no decimals, are the same in the text."""
    infinite = [f"let {name}: {dtype} = {number} / 0.0;" for name, number in (("p", "1.0"), ("n", "-1.0"))]
    code = float_format(dtype).largest_code + 1
    expected = [Tensor.from_words(dtype, (), [word]) for word in (code, float_format(dtype).sign_bit | code)]
    agree(check, printed(impl, check, module(*infinite, func("return p, n;")), at), expected)


@clause("LANG-01-03", "LANG-01-07")
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("at", LEVELS)
def test_an_integer_constant_keeps_every_bit(impl, check, dtype, at):
    """Integers that no float holds are the same numbers in the text."""
    values = INTEGERS[dtype]
    agree(check, printed(impl, check, constants(dtype, values), at), [tensor_of(dtype, value) for value in values])


@clause("LANG-01-03", "LANG-01-07")
@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
@pytest.mark.parametrize("at", LEVELS)
def test_a_constant_inside_a_computation_keeps_every_bit(impl, check, dtype, at):
    """Ones times a constant, which a kernel may hold at the lower levels."""
    for literal in ("0.1", "0.30000000000000004", "1.0000001192092896"):
        ones = tensor_of(dtype, [1] * 40)
        actual = printed(impl, check, returning(f"A * {literal}", f"A: {type_of(ones)}"), at, A=ones)
        agree(check, actual, [Tensor.from_words(dtype, (40,), rounded(dtype, literal).words().tolist() * 40)])


@clause("LANG-01-07")
@feature("graph-ir-text", "tensor-ops")
@pytest.mark.parametrize(
    "literal", ["0.1", "0.30000000000000004", "-0.0", "5.0e-324", "-12345678901.0625", "1.7976931348623157e308"]
)
def test_an_attribute_keeps_every_bit(impl, check, literal):
    """The value of op.pad, an attribute, in fp64."""
    source = returning(f"op.pad(A) @{{low=[1], high=[0], value={literal}}}", "A: tensor<1xfp64>")
    actual = printed(impl, check, source, "graph", A=tensor_of("fp64", [2]))
    value = rounded("fp64", literal).words().tolist()
    agree(check, actual, [Tensor.from_words("fp64", (2,), [*value, *tensor_of("fp64", 2).words().tolist()])])


@clause("LANG-01-07", "LANG-05.3-03")
@feature("graph-ir-text", "tensor-ops")
def test_an_attribute_of_any_operation_stands_beside_its_own(impl, check):
    """The text of an op.pad that states its layout (section 5.3) has the extents and the value, too."""
    source = returning('op.pad(A) @{low=[1], high=[2], value=0.5, layout="row_major"}', "A: tensor<1xfp32>")
    actual = printed(impl, check, source, "graph", A=tensor_of("fp32", [2]))
    agree(check, actual, [tensor_of("fp32", [0.5, 2, 0.5, 0.5])])


@clause("LANG-01-03", "LANG-02.3-47")
@feature("graph-ir-text")
@pytest.mark.parametrize(
    "type_",
    ["memref<4xfp32>[addrspace=shared]", "fragment<16,16,16,bf16>", "mesh<axes=[dp], shape=[2]>", "fn() -> bool"],
)
def test_a_parameter_of_any_type_is_read_again(impl, check, type_):
    """The types of parameters stand in the text, and its verifier takes them."""
    takes_in_funcs(impl, check, type_)
    text = lowered(impl, check, module(func(parameters=f"a: {type_}")), "graph").text
    check.accepts(impl.language.verify_ir(text=text))


@clause("LANG-01-03", "LANG-01-06")
@feature("graph-ir-text")
def test_branches_that_return_do_so_when_read_again(impl, check):
    """Nothing follows an if of which both branches return."""
    source = program("if (a > 0) { return a + 1; } else { return a - 1; }", parameters="a: int32", result="int32")
    for given, expected in ((4, 5), (-4, -5)):
        actual = printed(impl, check, source, "graph", a=tensor_of("int32", given))
        agree(check, actual, [tensor_of("int32", expected)])


@clause("LANG-01-07")
@feature("graph-ir-text")
@level("strict")
@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(vector, id=vector.name, marks=feature(*vector.features))
        for vector in load("ir/normalization")
        if vector.name in ("fp64/layer_norm/eps-0.1", "fp64/rms_norm/eps-1e-12")
    ],
)
def test_a_number_under_a_root_keeps_every_bit(impl, check, vector):
    """The attribute eps of a norm: the frozen bits."""
    agree(check, printed(impl, check, vector.call.params["source"], "graph", **vector.call.inputs), vector.expected)


@clause("LANG-01-03", "LANG-05-01")
@feature("graph-ir-text")
@level("strict")
@pytest.mark.parametrize("vector", one_of_each())
def test_a_printed_operation_is_the_same_operation(impl, check, vector):
    """Every operation, printed as Graph IR and read again, has the frozen bits."""
    agree(check, printed(impl, check, vector.call.params["source"], "graph", **vector.call.inputs), vector.expected)


READ_AGAIN = {
    ("graph", "sm_90"): ("spectrum", "layouts", "draws-in-order-called", "directed"),
    ("tile", "sm_90"): ("spectrum",),
    ("target", "sm_90"): ("batched", "functions", "complex-compared", "joined"),
    ("target", "gfx942"): ("tf32",),
}
"""Programs of the equality corpus by level and target: together their texts have what no vector's has."""


@clause("LANG-01-03", "LANG-08.2-01")
@level("strict")
@pytest.mark.parametrize(
    ("at", "target", "program"),
    [
        pytest.param(
            at,
            target,
            program,
            id=f"{program.name}-{at}-{target}",
            marks=feature("graph-ir-text", f"{at}-ir-text", *([f"lower-{at}"] * (at != "graph")), *program.features),
        )
        for (at, target), names in READ_AGAIN.items()
        for program in PROGRAMS
        if program.name in names
    ],
)
def test_a_printed_program_is_the_same_program(impl, check, at, target, program):
    """Its text, read again and executed at its level, has the bits of the program."""
    observed = impl.language.execute(source=program.source, function="f", inputs=program.inputs)
    text = lowered(impl, check, program.source, at, target).text
    agree(check, results_of_text(impl, check, text, at, target, **program.inputs), check.returns(observed)["outputs"])


STEPS = {
    "sgd": "op.sgd(p, g, u) @{rate=0.25, momentum=0.5}",
    "adamw": "op.adamw(p, g, u, v, t) @{rate=0.5, beta1=0.5, beta2=0.75, eps=0.125, decay=0.25}",
    "batch-norm": "op.batch_norm(M, v, u, p, g) @{momentum=0.25}",
    "dropout": "op.dropout(M) @{rate=0.5}",
}


@clause("LANG-01-03")
@feature("graph-ir-text", "stateful-ops", "random-ops")
@level("strict")
@pytest.mark.parametrize("expression", STEPS.values(), ids=STEPS)
def test_a_printed_step_is_the_same_step(impl, check, expression):
    """Operations with a state, and a mask that is drawn, printed as Graph IR and read again."""
    vectors = {name: tensor_of("fp32", [scale * 0.5, scale * 0.75, scale]) for scale, name in enumerate("pguv", 1)}
    inputs = {**vectors, "M": tensor_of("fp32", [[1, 2, 5], [4, 8, 3]]), "t": tensor_of("int32", 2)}
    source = returning(expression, ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items()))
    expected = check.returns(impl.language.execute(source=source, function="f", inputs=inputs))["outputs"]
    agree(check, printed(impl, check, source, "graph", **inputs), expected)


@clause("LANG-01-03")
@feature("graph-ir-text")
def test_a_printed_function_is_the_same_value(impl, check):
    """A func that is held by a variable and called, printed as Graph IR and read again: 5 becomes 11, then 22."""
    unary = "fn(int32) -> int32"
    takes_in_funcs(impl, check, unary)
    source = module(
        func("return x * 2;", parameters="x: int32", result="int32", name="twice"),
        func("return x * 2 + 1;", parameters="x: int32", result="int32", name="next"),
        func(f"let g: {unary} = next;", "x = g(x);", "g = twice;", "return x, g(x);", parameters="x: int32"),
    )
    actual = printed(impl, check, source, "graph", x=tensor_of("int32", 5))
    agree(check, actual, [tensor_of("int32", 11), tensor_of("int32", 22)])


MOVED = {
    "reduce-scatter": 'dist.reduce_scatter(A) @{axis=dp, op="sum"}',
    "all-gather": "dist.all_gather(A) @{axis=dp}",
    "all-to-all": "dist.all_to_all(A) @{axis=dp}",
    "broadcast": "dist.broadcast(A) @{axis=dp}",
}


@clause("LANG-01-03", "LANG-05-01")
@feature("graph-ir-text", "mesh-collectives")
@pytest.mark.parametrize("expression", MOVED.values(), ids=MOVED)
def test_a_printed_collective_is_legal(impl, check, expression):
    """Graph IR of a collective over four ranks, whose result has more, fewer or as many rows, is read again."""
    source = module(
        "  mesh g = mesh<axes=[dp], shape=[4]>;", func(f"return {expression};", parameters="A: tensor<8x4xfp32>")
    )
    check.accepts(impl.language.verify_ir(text=lowered(impl, check, source, "graph").text))


@clause("LANG-01-03", "LANG-05-01")
@feature("graph-ir-text", "mesh-collectives", "mesh-execution")
@pytest.mark.parametrize("expression", MOVED.values(), ids=MOVED)
def test_a_printed_collective_does_what_its_source_does(impl, check, expression):
    """Graph IR of a collective gives each of four ranks what the program gives it.

    Presumes the method of the document on collectives by which a text runs on ranks.
    """
    source = module(
        "  mesh g = mesh<axes=[dp], shape=[4]>;", func(f"return {expression};", parameters="A: tensor<8x4xfp32>")
    )
    ranks = [
        {"A": tensor_of("fp32", [[100 * rank + 10 * i + j for j in range(4)] for i in range(8)])} for rank in range(4)
    ]
    text = lowered(impl, check, source, "graph").text
    answer = impl.collectives.execute(text=text, function="f", ranks=ranks)
    check.given(not isinstance(answer, Unsupported), "a text of Graph IR runs on ranks by collectives.execute", answer)
    actual = check.returns(answer)["ranks"]
    expected = check.returns(impl.language.execute_ranks(source=source, function="f", ranks=ranks))["ranks"]
    for one, other in zip(actual, expected, strict=True):
        agree(check, one["outputs"], other["outputs"])


@clause("LANG-01-03")
@pytest.mark.parametrize("at", LEVELS)
def test_names_that_are_used_again_are_told_apart(impl, check, at):
    """Names of inner blocks, loops and several assignments: each value has a name of its own in the text.

    The end of a range does not count (AMB-LANG-29, AMB-LANG-86, AMB-LANG-92).
    """
    source = program(
        "let x: int32 = a + 1;",
        "let y: int32 = 0;",
        "if (a > b) { let x: int32 = a * 10; y = x + b; x = x + y; y = y + x; } else { let x: int32 = b; y = x; }",
        "for (x in 0:3) { y = y * 2 + x; }",
        "x = x + y;",
        "return x, y;",
        parameters=parameters_of("ab", "int32"),
    )
    for a, b, first, second in ((5, 4, 1274, 1268), (1, 4, 38, 36)):
        actual = printed(impl, check, source, at, a=tensor_of("int32", a), b=tensor_of("int32", b))
        agree(check, actual, [tensor_of("int32", first), tensor_of("int32", second)])


@clause("LANG-01-03", "LANG-03.1-03")
@feature("graph-ir-text")
@pytest.mark.parametrize("shape", ["?x2", "2x?", "Nx2", "?x?"])
def test_open_extents_in_branches_and_loops_are_the_same_in_the_text(impl, check, shape):
    """The result of a branch and the value of a loop have unknown extents, and are added to themselves (AMB-LANG-122).

    The end of a range does not count (AMB-LANG-29, AMB-LANG-94).
    """
    source = program(
        "if (a > 0) { X = X + X; a = a - 1; }",
        "for (i in 0:a) { X = X + X; }",
        "while (a > 1) { X = X + X; a = a - 1; }",
        "return X;",
        parameters=f"a: int32, X: tensor<{shape}xint32>",
        result=f"tensor<{shape}xint32>",
    )
    for a, factor in ((-1, 1), (1, 2), (3, 16)):
        given = {"a": tensor_of("int32", a), "X": tensor_of("int32", [[1, -2], [3, 5]])}
        product = tensor_of("int32", [[factor, -2 * factor], [3 * factor, 5 * factor]])
        agree(check, printed(impl, check, source, "graph", **given), [product])


DEFAULTS = {
    "integer": ("int64", "9007199254740993", tensor_of("int64", 2**53 + 1)),
    "float": ("fp64", "-0.1", rounded("fp64", "-0.1")),
    "bool": ("bool", "2 > 1", tensor_of("bool", True)),
    "numbers": (
        "tensor<1x2xint8>",
        "op.const_tensor() @{shape=[1, 2], dtype=int8, value=[[-128, 127]]}",
        tensor_of("int8", [[-128, 127]]),
    ),
    "zeros": ("tensor<2x1xbf16>", "tensor<2x1xbf16>", tensor_of("bf16", [[0], [0]])),
    "complex-zeros": (
        "tensor<2x1xcomplex64>",
        "tensor<2x1xcomplex64>",
        Tensor.from_bits("complex64", [2, 1], "0" * 32),
    ),
}


@feature("graph-ir-text")
@pytest.mark.parametrize(
    ("type_", "expression", "expected"),
    [
        pytest.param(*default, id=name, marks=clause("LANG-02.3-10", *["LANG-02.2-13"] * name.startswith("complex")))
        for name, default in DEFAULTS.items()
    ],
)
def test_a_default_keeps_every_bit(impl, check, type_, expression, expected):
    """A parameter that is left out has the value of its default, read from the text, too (AMB-LANG-74, AMB-LANG-53)."""
    source = returning("a, b", f"b: int32, a: {type_} = {expression}")
    given = tensor_of("int32", 7)
    agree(check, printed(impl, check, source, "graph", b=given), [expected, given])


@clause("LANG-01-03", "LANG-05.1-02", "LANG-09-01")
@feature("graph-ir-text", "mesh-selection")
@pytest.mark.parametrize("mesh", ["g", "h"])
def test_every_mesh_is_read_again(impl, check, mesh):
    """A collective names the first or the second mesh of its module, both of which have its axis."""
    collective = f'return dist.all_reduce(X, axis=dp, op="sum", mesh={mesh});'
    meshes = [
        f"  mesh {name} = mesh<axes=[dp, tp], shape=[{shape}]>;" for name, shape in (("g", "2, 3"), ("h", "3, 2"))
    ]
    source = module(*meshes, func(collective, parameters="X: tensor<4xfp32>"))
    check.accepts(impl.language.verify_ir(text=lowered(impl, check, source, "graph").text))
