"""Lowering to Graph IR: functions, SSA values and explicit attributes (language spec, sections 1, 2, 5 and 10)."""

from dataclasses import astuple

import pytest

from tessera_conformance.chapters.ir.kit.programs import graph_of, tensor_type
from tessera_conformance.dsl import func, module, parameters_of, program, returning
from tessera_conformance.marks import clause

MATRIX = "tensor<4x4xbf16>"
LONG_PROGRAM = module(
    func("return A - B;", parameters=parameters_of("AB", MATRIX), result=MATRIX, name="helper"),
    func(
        f"let P: {MATRIX} = op.matmul(A, B);",
        f"let Q: {MATRIX} = P + P * A;",
        f"let R: {MATRIX} = op.softmax(Q) @{{axis=0}};",
        f"let S: {MATRIX} = helper(R, R) @ -P;",
        "return S, R, P;",
        parameters=parameters_of("AB", MATRIX),
    ),
)
ACCUMULATORS = {
    "fp64": "fp64",
    "fp32": "fp32",
    "tf32": "fp32",
    "bf16": "fp32",
    "fp16": "fp32",
    "fp8_e4m3": "fp32",
    "fp8_e5m2": "fp32",
    "int64": "int64",
    "int32": "int32",
    "int16": "int32",
    "int8": "int32",
}
"""The accumulator type of each element type (AMB-LANG-40)."""


def forms(texts):
    """Shape, dtype and layout of each tensor type, however it is spelled; a scalar type as it stands."""
    return [text if (actual := tensor_type(text)) is None else astuple(actual) for text in texts]


@clause("LANG-02-01")
def test_a_module_becomes_a_graph_ir_module(impl, check):
    """Every func of the text is a function of the IR, with the types of its parameters and results."""
    source = module(
        func("return A + A;", parameters="A: tensor<2x3xfp32>", result="tensor<2x3xfp32>", name="twice"),
        func("return a, B;", parameters="a: int32, B: tensor<4xint8>", name="swap"),
        "  func nothing() { }",
    )
    lowered = check.accepts(impl.language.lower(source=source, to="graph"))
    actual = {
        entry["name"].lstrip("@").rpartition(".")[2]: (forms(entry["arguments"]), forms(entry["results"]))
        for entry in lowered["functions"]
    }
    matrix, vector = (("2", "3"), "fp32", "row_major"), (("4",), "int8", "row_major")
    expected = {"twice": ([matrix], [matrix]), "swap": (["int32", vector], ["int32", vector]), "nothing": ([], [])}
    check.equal(actual, expected, "the functions of the Graph IR")


@clause("LANG-02-01")
def test_operations_of_graph_ir_belong_to_its_dialect(impl, check):
    """Operations are named tessera.graph.*, and the text of the IR contains them."""
    lowered = check.accepts(impl.language.lower(source=LONG_PROGRAM, to="graph"))
    names = [operation["name"].strip('"') for entry in lowered["functions"] for operation in entry["operations"]]
    for expected in ("tessera.graph.matmul", "tessera.graph.softmax"):
        check.true(expected in names, f"{expected} is among the operations", names)
        check.true(expected in lowered["text"], f"{expected} is in the text")


@clause("LANG-01-03", "LANG-05-01")
def test_every_value_is_defined_once_and_before_its_uses(impl, check):
    """Results have names of their own; an operand is an argument or the result of an earlier operation."""
    for name, arguments in (("f", 2), ("helper", 2)):
        graph = graph_of(impl, check, LONG_PROGRAM, name)
        check.true(len(graph.operations) > 0, "the function has operations")
        produced: list[str] = []
        given: set[str] = set()
        for operation in graph.operations:
            given |= {operand for operand in operation["operands"] if operand not in produced}
            produced += operation["results"]
        check.equal(len(set(produced)), len(produced), f"the number of names for the results {produced}")
        check.true(given.isdisjoint(produced), "no value is used before its definition", sorted(given & set(produced)))
        check.true(len(given) <= arguments, "what no operation defines is an argument", sorted(given))


@clause("LANG-01-03", "LANG-05-01")
def test_a_value_has_one_type(impl, check):
    """An operand has the type with which its value was defined; names and types are given in equal numbers."""
    types: dict[str, str] = {}
    for operation in graph_of(impl, check, LONG_PROGRAM).operations:
        for names, kinds in (("operands", "operand_types"), ("results", "result_types")):
            check.equal(len(operation[names]), len(operation[kinds]), f"the number of {names} of {operation['name']}")
            for name, type_ in zip(operation[names], operation[kinds], strict=True):
                check.equal(type_, types.setdefault(name, type_), f"the type of {name}")


@clause("LANG-01-07")
@pytest.mark.parametrize(
    ("axis", "spellings"), [("0", (0, -3)), ("1", (1, -2)), ("-1", (-1, 2))], ids=["first", "middle", "last"]
)
def test_a_property_is_written_as_an_attribute(impl, check, axis, spellings):
    """The axis of a softmax is the attribute axis of the lowered operation, counted from either end."""
    graph = graph_of(impl, check, returning(f"op.softmax(A) @{{axis={axis}}}", "A: tensor<2x3x4xfp32>"))
    actual = [operation["attributes"].get("axis") for operation in graph.named("tessera.graph.softmax")]
    check.true(actual in ([spelling] for spelling in spellings), f"one softmax of axis {axis}", actual)


@clause("LANG-05.2-02", "LANG-15-15")
@pytest.mark.parametrize("expression", ["op.matmul(A, B)", "A @ B"], ids=["matmul", "at-sign"])
def test_a_product_is_one_graph_matmul(impl, check, expression):
    """MxK and KxN of one dtype give MxN of it: the types of the operation say so."""
    graph = graph_of(impl, check, returning(expression, "A: tensor<2x3xbf16>, B: tensor<3x5xbf16>"))
    products = graph.named("tessera.graph.matmul")
    check.equal(len(products), 1, "the number of tessera.graph.matmul")
    kinds = [tensor_type(text) for text in (*products[0]["operand_types"], *products[0]["result_types"])]
    check.true(None not in kinds, "operands and result are tensors")
    actual = [("x".join(kind.shape), kind.dtype) for kind in kinds]
    check.equal(actual, [("2x3", "bf16"), ("3x5", "bf16"), ("2x5", "bf16")])


@clause("LANG-05.2-03")
def test_a_softmax_is_one_graph_softmax(impl, check):
    """A tensor is mapped to a tensor of its type."""
    graph = graph_of(impl, check, returning("op.softmax(A)", "A: tensor<2x3xbf16>"))
    actual = [(entry["operand_types"], entry["result_types"]) for entry in graph.named("tessera.graph.softmax")]
    check.equal(len(actual), 1, "the number of tessera.graph.softmax")
    check.equal(actual[0][0], actual[0][1], "the type of the result")


@clause("LANG-10-01")
@pytest.mark.parametrize("dtype", ACCUMULATORS)
def test_a_matmul_states_its_accumulation_precision(impl, check, dtype):
    """An attribute about accumulation names the accumulator type, also where it is the default (AMB-LANG-70)."""
    graph = graph_of(impl, check, returning("op.matmul(A, B)", parameters_of("AB", f"tensor<2x2x{dtype}>")))
    products = graph.named("tessera.graph.matmul")
    check.equal(len(products), 1, "the number of tessera.graph.matmul")
    stated = [value for name, value in products[0]["attributes"].items() if "accum" in name.lower()]
    check.equal(stated, [ACCUMULATORS[dtype]], "the accumulation precision")


@clause("LANG-10-01")
@pytest.mark.parametrize("dtype", ["fp64", "fp32", "bf16", "fp16"])
def test_a_softmax_states_its_accumulation_precision(impl, check, dtype):
    """Softmax sums, so it says in which precision (AMB-LANG-70, AMB-LANG-75)."""
    graph = graph_of(impl, check, returning("op.softmax(A)", f"A: tensor<2x2x{dtype}>"))
    actual = graph.named("tessera.graph.softmax")
    check.equal(len(actual), 1, "the number of tessera.graph.softmax")
    stated = [value for name, value in actual[0]["attributes"].items() if "accum" in name.lower()]
    check.equal(stated, [ACCUMULATORS[dtype]], "the accumulation precision")


@clause("LANG-11-03", "LANG-02-01")
def test_an_illegal_program_is_not_lowered(impl, check):
    """Lowering refuses what verification refuses, and lowers its twin."""
    body = "let C: tensor<2x{}xfp32> = A @ B;"
    parameters = "A: tensor<2x3xfp32>, B: tensor<3x4xfp32>"
    check.accepts(impl.language.lower(source=program(body.format(4), parameters=parameters), to="graph"))
    check.rejects(
        impl.language.lower(source=program(body.format(5), parameters=parameters), to="graph"),
        category=("shapes", "types"),
        at_line=3,
    )
