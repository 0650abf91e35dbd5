"""The worked examples, corrected and as printed (language spec, section 13)."""

import pytest

from tessera_conformance.chapters.ir.kit.programs import SYNTAX, declared, graph_of, tensor_type
from tessera_conformance.dsl import program, returning
from tessera_conformance.marks import clause
from tessera_conformance.protocol import Returned

SAMPLE = """\
module demo {
  func mm(A: tensor<1024x1024xbf16>, B: tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16> {
    let C: tensor<1024x1024xbf16> = op.matmul(A, B);
    return C;
  }
}
"""


@clause("LANG-13.1-01")
def test_the_sample_module_parses_and_type_checks(impl, check):
    """Module demo with func mm is legal; with another extent in one place it is not."""
    check.equal(declared(impl, check, SAMPLE), {"demo": ["mm"]})
    check.accepts(impl.language.verify(source=SAMPLE))
    broken = SAMPLE.replace("B: tensor<1024x1024", "B: tensor<1023x1024")
    check.rejects(impl.language.verify(source=broken), category="shapes")


@clause("LANG-13.1-02")
def test_the_sample_product_is_1024x1024_bf16(impl, check):
    """The result of mm, and of its matmul, is a 1024x1024 tensor of bf16; no other type is accepted for it."""
    graph = graph_of(impl, check, SAMPLE, "mm")
    texts = [*graph.results, *(text for entry in graph.named("tessera.graph.matmul") for text in entry["result_types"])]
    check.equal(len(texts), 2, "the number of results")
    for text in texts:
        actual = tensor_type(text)
        check.true(actual is not None, f"{text} is a tensor type")
        check.equal((actual.shape, actual.dtype), (("1024", "1024"), "bf16"), f"shape and dtype of {text}")
    broken = SAMPLE.replace("let C: tensor<1024x1024xbf16>", "let C: tensor<1024x1024xfp32>")
    check.rejects(impl.language.verify(source=broken), category=("types", "numerics"))


@clause("LANG-13.1-03")
def test_the_sample_func_lowers_to_one_matmul(impl, check):
    """Graph IR of mm is one tessera.graph.matmul of its two arguments."""
    graph = graph_of(impl, check, SAMPLE, "mm")
    products = graph.named("tessera.graph.matmul")
    check.equal(len(products), 1, "the number of tessera.graph.matmul")
    check.equal(len(products[0]["operands"]), 2, "the number of operands")
    check.equal(len(set(products[0]["operands"])), 2, "the number of different operands")
    others = [entry["name"] for entry in graph.operations if entry is not products[0] and entry["operands"] != []]
    check.true(all(name.strip('"').endswith("return") for name in others), "nothing else is computed", others)


@clause("LANG-13.1-04")
def test_graph_ir_text_has_the_generic_quoted_form(impl, check):
    """The printed IR names the operation in quotes, operands in parentheses, types after a colon (AMB-LANG-66)."""
    text = check.accepts(impl.language.lower(source=SAMPLE, to="graph"))["text"]
    check.true('"tessera.graph.matmul"(' in "".join(text.split()), "the operation stands in quotes", text)
    check.true("->" in text and "1024x1024xbf16" in text, "operand and result types are printed", text)


@clause("LANG-13.2-02")
def test_the_sample_parameter_has_a_symbolic_dimension_and_a_layout(impl, check):
    """`tensor<?xDxbf16; layout=row_major>` is legal; with the comma of the sample it is not (AMB-LANG-09)."""
    parameter = "X: tensor<?xDxbf16; layout=row_major>"
    check.accepts(impl.language.verify(source=program(parameters=parameter)))
    check.rejects(impl.language.parse(source=program(parameters=parameter.replace("?xD", "?,D"))), **SYNTAX)


@clause("LANG-13.2-05")
def test_the_sample_product_needs_dimensions_known_to_be_equal(impl, check):
    """X times X is legal for DxD and refused for an unknown and a named dimension (AMB-LANG-10)."""
    check.accepts(impl.language.verify(source=returning("op.matmul(X, X)", "X: tensor<DxDxbf16>")))
    check.rejects(impl.language.verify(source=returning("op.matmul(X, X)", "X: tensor<?xDxbf16>")), category="shapes")


STEP = """\
module demo {
  mesh g = mesh<axes=[dp,tp], shape=[4,2]>;
  func step(X: tensor<DxDxbf16; layout=row_major>) {
    let Y: tensor<DxDxbf16> = dist.all_reduce(op.matmul(X, X)) @{axis=dp, op="sum"};
    return Y;
  }
}
"""
"""The distributed sample with what it lacks: a module, one named dimension, the operation."""

AS_PRINTED = [
    pytest.param(
        STEP.removeprefix("module demo {\n").removesuffix("}\n"),
        "syntax",
        ("AMB-LANG-11", "an implicit module"),
        id="outside-a-module",
    ),
    pytest.param(
        STEP.replace("X: tensor<Dx", "X: tensor<?,"),
        "syntax",
        None,
        id="comma-in-a-shape",
    ),
    pytest.param(
        STEP.replace("X: tensor<Dx", "X: tensor<?x"),
        "shapes",
        ("AMB-LANG-10", "check at run time"),
        id="dimensions-not-known-equal",
    ),
    pytest.param(STEP.replace(', op="sum"', ""), ("distributed", "types"), None, id="no-operation"),
]


@clause("LANG-13.2-01", "LANG-13.2-03", "LANG-13.2-04", "LANG-13.2-05")
def test_the_distributed_sample_is_legal_once_corrected(impl, check):
    """In a module, over one named dimension and with its operation declared it is accepted."""
    check.accepts(impl.language.verify(source=STEP))


@clause("LANG-13.2-01", "LANG-13.2-02", "LANG-13.2-03", "LANG-13.2-05")
@pytest.mark.parametrize(("source", "category", "reading"), AS_PRINTED)
def test_each_slip_of_the_distributed_sample_is_refused(impl, check, source, category, reading):
    """The printed sample is outside a module, has a comma in a shape, unknown dimensions and no operation.

    Where the comma is accepted the dimensions are still unknown (AMB-LANG-09).
    """
    answer = impl.language.verify(source=source)
    if reading:
        check.reading(*reading, isinstance(answer, Returned))
    check.rejects(answer, category=category)
