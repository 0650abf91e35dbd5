"""Annotations of schedule, precision and numerics; shape and dtype as attributes (language spec, sections 2, 5.3).

The annotations other than the attribute numerics_profile are the feature annotations: section 2 promises them without a
form (AMB-LANG-16, AMB-LANG-51). Malformed ones are in `rejections/`.
"""

import pytest

from tessera_conformance.chapters.ir.kit.programs import evaluate, graph_of, tensor_type, value_of
from tessera_conformance.dsl import module, parameters_of, program, returning, tensor_of
from tessera_conformance.marks import clause, feature, level

MATRIX = "tensor<2x3xfp32>"
BIG = 2.0**24


def lowered(impl, check, source):
    """Return the Graph IR of the one function."""
    functions = check.accepts(impl.language.lower(source=source, to="graph"))["functions"]
    check.equal(len(functions), 1, "the number of functions")
    return functions[0]


# @schedule(...)

PLACES = {
    "before-func": "{0} func f(X: {1}) {{ X = X + X; return X; }}",
    "before-kernel": "{0} kernel f(X: {1}) {{ X = X + X; }}",
    "behind-the-header": "func f(X: {1}) {0} {{ X = X + X; return X; }}",
    "behind-the-result": "func f(X: {1}) -> {1} {0} {{ X = X + X; return X; }}",
    "behind-the-header-of-a-kernel": "kernel f(X: {1}) {0} {{ X = X + X; }}",
}
places = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
VECTOR = "tensor<3xint32>"


@clause("LANG-02-06")
@feature("annotations")
@places
@pytest.mark.parametrize(
    "annotation",
    ["@schedule(m=128)", "@schedule(m=128, n=64, double_buffer=true)", '@schedule(scope="shared", depth=3)'],
    ids=["one", "three", "string"],
)
def test_a_schedule_annotation_changes_metadata_and_no_value(impl, check, place, annotation):
    """It is accepted before a function and before its block, and seen in the IR (AMB-LANG-16, AMB-LANG-110)."""
    plain, annotated = (module(place.format(text, VECTOR)) for text in ("", annotation))
    check.true(
        lowered(impl, check, plain) != lowered(impl, check, annotated), "the annotation is seen in the IR", annotation
    )
    outputs = evaluate(impl, check, annotated, X=tensor_of("int32", [1, -2, 3]))
    check.equal(len(outputs), 1, "the number of outputs")
    check.bits(outputs[0], tensor_of("int32", [2, -4, 6]))


@clause("LANG-02-06", "LANG-02.3-60")
@feature("annotations")
@places
def test_schedule_annotations_are_kept_distinct(impl, check, place):
    """Annotations that differ in a name or a value give different IR."""
    texts = ["m=2", "m=4", "n=2", "m=2, n=2", "m=2, n=4", "s=[1, 2, 3]", "s=[[1], [2, 3]]", "s=[[1, 2], [3]]"]
    actual = [lowered(impl, check, module(place.format(f"@schedule({text})", VECTOR))) for text in texts]
    for number, one in enumerate(actual):
        check.true(one not in actual[:number], f"the IR of {texts[number]} is its own", one)


@clause("LANG-02-06")
@feature("annotations")
def test_a_schedule_annotation_stands_beside_attributes(impl, check):
    """A function may have an attribute block too, and each function its own annotation."""
    source = module(
        'func g(a: int32) -> int32 @schedule(m=4) @{numerics_profile="strict"} { return a + a; }',
        '@schedule(m=2) func f(a: int32) @{numerics_profile="strict"} { return g(a) + 1; }',
        "func h(a: int32) { return a; }",
    )
    check.bits(value_of(impl, check, source, a=tensor_of("int32", 3)), tensor_of("int32", 7))


# Precision

ANNOTATED = {
    "func": "func f(A: {0}) -> {0} @{{{1}}} {{ return op.softmax(A); }}",
    "kernel": "kernel f(A: {0}) @{{{1}}} {{ A = op.softmax(A); }}",
    "operation": "func f(A: {0}) {{ return op.softmax(A) @{{{1}}}; }}",
    "operation-of-two": "func f(A: {0}, B: tensor<3x2xfp32>) {{ return op.matmul(A, B) @{{{1}}}; }}",
}


@clause("LANG-02-09", "LANG-05.3-05")
@feature("annotations")
@pytest.mark.parametrize("form", ANNOTATED.values(), ids=ANNOTATED)
@pytest.mark.parametrize("precision", ["precision={}", 'precision="{}"'], ids=["identifier", "string"])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_precision_is_accepted(impl, check, form, precision, dtype):
    """The attribute blocks of functions and operations take the name of a float dtype (AMB-LANG-51, AMB-LANG-159)."""
    for more in ("", ", numerics_profile=strict"):
        source = module(form.format(MATRIX, precision.format(dtype) + more))
        check.accepts(impl.language.verify(source=source))
        check.accepts(impl.language.lower(source=source, to="graph"))


@clause("LANG-02-09", "LANG-05.3-05")
@feature("annotations")
def test_a_precision_does_not_change_a_type(impl, check):
    """The result keeps its type, and what is exact its value."""
    attributes = '{precision="bf16"}'
    source = program("return A + A;", parameters=f"A: {MATRIX}", result=MATRIX, attributes=attributes)
    value = value_of(impl, check, source, A=tensor_of("fp32", [[1, 2, 3], [-4, 0, 0.5]]))
    check.bits(value, tensor_of("fp32", [[2, 4, 6], [-8, 0, 1]]))


# Numerics


@clause("LANG-02-07")
@feature("annotations")
@pytest.mark.parametrize("profile", ["fast", "deterministic", "strict"])
@pytest.mark.parametrize(
    "body",
    [
        "{0} return a;",
        "if (true) {{ {0} return a; }} return a;",
        "for (k in 0:2) {{ {0} a = a + 0; }} return a;",
        "{0} if (true) {{ {0} return a; }} return a;",
    ],
    ids=["func", "branch", "loop", "both"],
)
def test_a_numerics_statement_stands_at_the_head_of_a_block(impl, check, profile, body):
    """`numerics.profile("...");` names one of the three profiles (AMB-LANG-51)."""
    source = program(body.format(f'numerics.profile("{profile}");'), parameters="a: int32")
    check.bits(value_of(impl, check, source, a=tensor_of("int32", 3)), tensor_of("int32", 3))


@clause("LANG-02-07", "LANG-10-04")
@feature("annotations")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [('"fast"', '"faster"'), ('"strict"', '"STRICT"'), ('"deterministic"', '""'), ('"fast"', "1")],
    ids=["longer", "capitals", "empty", "number"],
)
def test_a_numerics_statement_of_another_profile_is_refused(impl, check, legal, illegal):
    """Only fast, deterministic and strict are profiles."""
    check.accepts(impl.language.verify(source=program(f"numerics.profile({legal});")))
    source = program(f"numerics.profile({illegal});")
    check.rejects(impl.language.verify(source=source), category=("numerics", "types"))


@clause("LANG-02-07", "LANG-04-04")
@feature("annotations")
@level("strict")
@pytest.mark.parametrize(
    ("row", "total"),
    [([BIG, 1, 1, -BIG], 0), ([1, BIG, -BIG, 0], 0), ([BIG, -BIG, 1, 1], 2)],
    ids=["lost", "early", "kept"],
)
@pytest.mark.parametrize("attributes", ["", "{numerics_profile=fast}"], ids=["bare", "inside-a-fast-func"])
@pytest.mark.parametrize("asked", ["strict", "fast"])
def test_the_innermost_numerics_annotation_counts(impl, check, row, total, attributes, asked):
    """Under a strict statement a product adds in ascending order, also if func and run say otherwise (AMB-LANG-111)."""
    source = program(
        'if (true) { numerics.profile("strict"); return A @ B; }',
        "return A @ B;",
        parameters="A: tensor<1x4xfp32>, B: tensor<4x1xfp32>",
        attributes=attributes,
    )
    inputs = {"A": tensor_of("fp32", [row]), "B": tensor_of("fp32", [[1]] * 4)}
    outputs = check.returns(impl.language.execute(source=source, function="f", inputs=inputs, level=asked))["outputs"]
    check.equal(len(outputs), 1, "the number of returned values")
    check.bits(outputs[0], tensor_of("fp32", [[total]]))


@clause("LANG-02-07", "LANG-04-04")
@feature("annotations")
@level("strict")
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("head", ["if (true)", "for (k in 0:1)"], ids=["branches", "loops"])
def test_a_numerics_statement_counts_in_a_block_of_a_block(impl, check, head, depth):
    """A strict statement governs the innermost of several blocks, though the func is fast (AMB-LANG-111)."""
    source = program(
        "let P: tensor<1x1xfp32> = A @ B;",
        *[f"{head} {{"] * depth,
        'numerics.profile("strict");',
        "P = A @ B;",
        *["}"] * depth,
        "return P;",
        parameters="A: tensor<1x4xfp32>, B: tensor<4x1xfp32>",
        attributes="{numerics_profile=fast}",
    )
    for row, total in (([BIG, 1, 1, -BIG], 0), ([BIG, -BIG, 1, 1], 2)):
        inputs = {"A": tensor_of("fp32", [row]), "B": tensor_of("fp32", [[1]] * 4)}
        observation = impl.language.execute(source=source, function="f", inputs=inputs, level="fast")
        outputs = check.returns(observation)["outputs"]
        check.equal(len(outputs), 1, "the number of returned values")
        check.bits(outputs[0], tensor_of("fp32", [[total]]))


@clause("LANG-02-07", "LANG-05.3-06")
@feature("annotations")
@pytest.mark.parametrize("depth", [2, 3])
def test_the_numerics_statement_of_an_inner_block_is_seen_in_the_ir(impl, check, depth):
    """Graph IR tells the profiles of a block within blocks apart (AMB-LANG-111)."""
    profiles, parameters = ("fast", "deterministic", "strict"), "c: bool, A: tensor<2x2xfp32>"
    inner = 'numerics.profile("{}"); return A @ A;'
    for _ in range(depth):
        inner = "if (c) {{ " + inner + " }}"
    actual = [lowered(impl, check, program(inner.format(one), "return A;", parameters=parameters)) for one in profiles]
    for number, one in enumerate(actual):
        check.true(one not in actual[:number], f"the IR of a block of profile {profiles[number]} is its own", one)


@clause("LANG-02-07", "LANG-05.3-06")
@feature("annotations")
def test_the_numerics_statement_of_a_block_is_seen_in_the_ir(impl, check):
    """Graph IR tells the profiles of a block apart, since the innermost counts (AMB-LANG-111)."""
    body = 'if (c) {{ numerics.profile("{}"); return A @ A; }} return A;'
    profiles, parameters = ("fast", "deterministic", "strict"), "c: bool, A: tensor<2x2xfp32>"
    actual = [lowered(impl, check, program(body.format(profile), parameters=parameters)) for profile in profiles]
    for number, one in enumerate(actual):
        check.true(one not in actual[:number], f"the IR of a block of profile {profiles[number]} is its own", one)


# shape and dtype

STATED = {
    "matmul": ("op.matmul(A, B{0}){1}", "tessera.graph.matmul", [2, 2], "fp32"),
    "softmax": ("op.softmax(A{0}){1}", "tessera.graph.softmax", [2, 3], "fp32"),
    "softmax-bf16": ("op.softmax(H{0}){1}", "tessera.graph.softmax", [4], "bf16"),
    "const-tensor": ("op.const_tensor(value=1{0}){1}", "tessera.graph.const_tensor", [5, 1], "int8"),
}
OPERANDS = f"{parameters_of('A', MATRIX)}, B: tensor<3x2xfp32>, H: tensor<4xbf16>"
spellings = pytest.mark.parametrize("form", [(", {}", ""), ("", " @{{{}}}")], ids=["keyword", "block"])


def stating(expression, form, attributes):
    """A program that returns an expression with attributes, which are keywords or stand in a block."""
    return returning(expression.format(*(line.format(attributes) for line in form)), OPERANDS)


@clause("LANG-05.3-01", "LANG-05.3-02")
@pytest.mark.parametrize(("expression", "operation", "shape", "dtype"), STATED.values(), ids=STATED)
@spellings
def test_shape_and_dtype_are_attributes_of_any_operation(impl, check, expression, operation, shape, dtype, form):
    """Stated for the result, in either spelling, they are what the IR says of it (AMB-LANG-83)."""
    stated = f"shape=[{', '.join(map(str, shape))}], dtype={dtype}"
    actual = graph_of(impl, check, stating(expression, form, stated)).named(operation)
    check.equal(len(actual), 1, f"the number of {operation}")
    kinds = [tensor_type(text) for text in actual[0]["result_types"]]
    check.true(len(kinds) == 1 and kinds[0] is not None, "the result is one tensor", actual[0]["result_types"])
    check.equal((kinds[0].shape, kinds[0].dtype), (tuple(map(str, shape)), dtype), "shape and dtype of the result")
    for name, value in (("shape", shape), ("dtype", dtype)):
        check.equal(actual[0]["attributes"].get(name, value), value, f"the attribute {name}, where the IR has it")


LIES = {
    "extent": ("shape=[{0}, 3]", 2, 3, "LANG-05.3-01"),
    "last-extent": ("shape=[2, {0}]", 3, 4, "LANG-05.3-01"),
    "multiple": ("shape=[{0}, 3]", 2, 4, "LANG-05.3-01"),
    "divisor": ("shape=[2, {0}]", 3, 1, "LANG-05.3-01"),
    "exchanged": ("shape=[{0}]", "2, 3", "3, 2", "LANG-05.3-01"),
    "rank": ("shape=[{0}]", "2, 3", 6, "LANG-05.3-01"),
    "longer": ("shape=[{0}]", "2, 3", "2, 3, 1", "LANG-05.3-01"),
    "narrower": ("dtype={0}", "fp32", "bf16", "LANG-05.3-02"),
    "wider": ("dtype={0}", "fp32", "fp64", "LANG-05.3-02"),
    "integer": ("dtype={0}", "fp32", "int32", "LANG-05.3-02"),
    "layout": ("layout={0}", "row_major", "col_major", "LANG-05.3-03"),
}


@pytest.mark.parametrize(
    ("attribute", "true", "untrue"),
    [pytest.param(*lie, id=name, marks=clause(tag)) for name, (*lie, tag) in LIES.items()],
)
@spellings
def test_a_shape_or_dtype_that_is_not_that_of_the_result_is_refused(impl, check, attribute, true, untrue, form):
    """The stated shape and dtype have to be those of the result (AMB-LANG-182)."""
    check.accepts(impl.language.verify(source=stating("op.softmax(A{0}){1}", form, attribute.format(true))))
    source = stating("op.softmax(A{0}){1}", form, attribute.format(untrue))
    check.rejects(impl.language.verify(source=source), category=("shapes", "types", "layouts"))


@clause("LANG-05.3-03")
@spellings
def test_a_layout_with_other_blocks_than_those_of_the_result_is_refused(impl, check, form):
    """The stated layout has to be that of the result, sizes of blocks included (AMB-LANG-182)."""
    operands = "A: tensor<4x8xfp32; layout=blocked(bm=2,bn=4)>, B: tensor<8x8xfp32; layout=blocked(bm=2,bn=4)>"

    def source(sizes):
        stated = f'layout="blocked({sizes})"'
        return returning("op.matmul(A, B{}){}".format(*(line.format(stated) for line in form)), operands)

    check.accepts(impl.language.verify(source=source("bm=2,bn=4")))
    for sizes in ("bm=2,bn=8", "bm=4,bn=4", "bm=4,bn=2"):
        check.rejects(impl.language.verify(source=source(sizes)), category=("shapes", "types", "layouts"))
