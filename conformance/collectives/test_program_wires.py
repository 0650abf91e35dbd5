"""The dtype and scheme by which a collective of a program travels: where it loses bits, and of what data (2.5, 8)."""

from fractions import Fraction

import pytest

from tessera_conformance.chapters.collectives.kit.programs import (
    SUM,
    awaits,
    given,
    issue,
    program,
    returns,
)
from tessera_conformance.chapters.collectives.kit.readings import takes_wide_wires
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.collectives import all_reduce
from tessera_conformance.vectors.building import counted

pytestmark = feature("mesh-execution", "graph-ir-text")

WAYS = [
    pytest.param(False, id="program"),
    pytest.param(True, marks=feature("plan-execution"), id="plan"),
]
"""A program is executed whole, or by the units of its plan."""


def judge_text(impl, check, attributes, dtype, legal):
    """Verify a program of one collective with these attributes, which is legal or refused."""
    type_ = f"tensor<8x{dtype}>"
    lines = [issue("%f", "%x", attributes), awaits("%y", "%f"), returns("%y", type_)]
    answer = impl.language.verify_ir(text=program(*lines, takes=f"%x: {type_}", gives=type_))
    if legal:
        check.accepts(answer)
    else:
        check.rejects(answer, category=("distributed", "types", "numerics"))


@feature("compression")
@clause("COLL-02.5-01")
@pytest.mark.parametrize(
    ("dtype", "wire", "keeps"),
    [
        ("fp32", "bf16", False),
        ("fp32", "fp16", False),
        ("fp64", "bf16", False),
        ("bf16", "fp8", False),
        ("bf16", "fp8_e5m2", False),
        ("fp16", "fp8_e5m2", False),
        ("bf16", "fp16", False),
        ("fp16", "bf16", False),
        ("fp8_e5m2", "fp8", False),
        ("fp8_e4m3", "fp8_e5m2", False),
        ("bf16", "bf16", True),
        ("fp16", "fp16", True),
        ("fp8_e4m3", "fp8", True),
        ("fp8_e4m3", "fp8_e4m3", True),
        ("fp8_e5m2", "fp8_e5m2", True),
        ("fp8_e4m3", "fp16", True),
        ("fp8_e5m2", "fp16", True),
        ("fp8_e5m2", "bf16", True),
    ],
)
def test_a_wire_that_loses_bits_is_refused_where_the_bits_are_promised(impl, check, dtype, wire, keeps):
    """Under strict, which is the level where none is given; where nothing can be lost, the bits are those without.

    As AMB-COLL-53 has it.
    """
    rows = [counted(dtype, (8,), seed=960 + rank, exponents=(-1, 1)) for rank in range(3)]

    def executed(rows, wire, level):
        """Return the answer to an all-reduce over the wire."""
        type_ = f"tensor<8x{rows[0].dtype}>"
        lines = [issue("%f", "%x", f'{SUM}, dtype="{wire}"'), awaits("%y", "%f"), returns("%y", type_)]
        text = program(*lines, takes=f"%x: {type_}", gives=type_, mesh="dp=3")
        return impl.collectives.execute(text=text, function="f", ranks=given(rows), **level)

    def narrow(level):
        return executed([counted("fp32", (8,), seed=963)] * 3, "bf16", level)

    for level in ({}, {"level": "strict"}, {"level": "deterministic"}):
        answer = executed(rows, wire, level)
        if not keeps:
            wide = takes_wide_wires(answer, wire, dtype, lambda level=level: narrow(level))
            check.reading("AMB-COLL-53", "compare widths in bits", wide)
            check.status(answer, "TESS_ERR_DETERMINISM_VIOLATION")
        elif level.get("level") != "deterministic":
            for rank_answer, value in zip(check.returns(answer)["ranks"], all_reduce(*rows), strict=True):
                check.bits(rank_answer["outputs"][0], value, f"{dtype} over {wire}")


@feature("compression")
@clause("COLL-02.5-01")
@pytest.mark.parametrize("dtype", ["int32", "int8", "bool", "complex64"])
def test_a_wire_is_for_floats(impl, check, dtype):
    """Data that are not floats travel unchanged (AMB-COLL-53)."""
    for wire, legal in (("", True), (', dtype="bf16"', False)):
        op = 'op="max"' if dtype == "bool" else SUM
        judge_text(impl, check, op + wire, dtype, legal)


@feature("compression")
@clause("COLL-02.5-01")
def test_under_fast_data_are_rounded_to_the_wire_that_the_program_names(impl, check):
    """1 + 2^-8 is 1 as bf16, so that two of them are 2 (AMB-COLL-53, AMB-COLL-61)."""
    type_ = "tensor<4xfp32>"
    lines = [issue("%f", "%x", f'{SUM}, dtype="bf16"'), awaits("%y", "%f"), returns("%y", type_)]
    text = program(*lines, takes=f"%x: {type_}", gives=type_, mesh="dp=2")
    rows = [tensor_of("fp32", [1.00390625] * 4)] * 2
    answer = check.returns(impl.collectives.execute(text=text, function="f", ranks=given(rows), level="fast"))
    for rank in answer["ranks"]:
        check.bits(rank["outputs"][0], tensor_of("fp32", [2.0] * 4))


WIRED = [
    ("all_reduce", 'op="sum"', "bf16", (256, 1), [256] * 4),
    ("all_reduce", 'op="mean"', "bf16", (257, 261), [258] * 4),
    ("all_reduce", 'op="max"', "fp8", (1.0625, 0.5), [1] * 4),
    ("reduce_scatter", 'op="sum"', "fp16", (2048, 1), [2048] * 2),
    ("all_gather", "", "fp8_e5m2", (1.125, 3), [1] * 4 + [3] * 4),
    ("broadcast", "root=0", "bf16", (1.00390625, 7), [1] * 4),
    pytest.param(
        *("all_to_all", "", "bf16", (1.00390625, 1.01171875), [1, 1, 1.015625, 1.015625]),
        marks=feature("all-to-all"),
    ),
]
"""Each value is halfway between two of the wire, or a sum is; ties go to the even one."""


@feature("compression")
@clause("COLL-02.5-01", "COLL-02.5-03")
@pytest.mark.parametrize("plan", WAYS)
@pytest.mark.parametrize(
    ("collective", "attributes", "wire", "values", "expected"),
    WIRED,
    ids=["sum", "mean", "max", "reduce_scatter", "all_gather", "broadcast", "all_to_all"],
)
def test_under_fast_the_wire_decides_the_bits_of_every_collective(
    impl, check, collective, attributes, wire, values, expected, plan
):
    """Each contribution is rounded to the wire once, and the combined value once more (AMB-COLL-61)."""
    type_, gives = "tensor<4xfp32>", f"tensor<{len(expected)}xfp32>"
    attributes = ", ".join(filter(None, [attributes, f'dtype="{wire}"']))
    lines = [issue("%f", "%x", attributes, collective), awaits("%y", "%f"), returns("%y", gives)]
    text = program(*lines, takes=f"%x: {type_}", gives=gives, mesh="dp=2")
    rows = [tensor_of("fp32", [float(value)] * 4) for value in values]
    call = impl.collectives.execute_plan if plan else impl.collectives.execute
    for rank in check.returns(call(text=text, function="f", ranks=given(rows), level="fast"))["ranks"]:
        check.bits(rank["outputs"][0], tensor_of("fp32", [float(value) for value in expected]))


@feature("compression")
@clause("COLL-02.5-02")
@pytest.mark.parametrize("plan", WAYS)
@pytest.mark.parametrize(("collective", "far"), [("all_reduce", 147), ("reduce_scatter", 147), ("all_gather", 36)])
def test_data_of_a_blockwise_program_are_scaled(impl, check, collective, far, plan):
    """1000 is far beyond the 448 of fp8_e4m3; a block loses 1/28 of its largest, what is combined once more."""
    type_, size = "tensor<4xfp32>", {"all_reduce": 4, "reduce_scatter": 2, "all_gather": 8}[collective]
    attributes = 'dtype="fp8", qscheme="blockwise"' + ("" if collective == "all_gather" else f", {SUM}")
    gives = f"tensor<{size}xfp32>"
    lines = [issue("%f", "%x", attributes, collective), awaits("%y", "%f"), returns("%y", gives)]
    text = program(*lines, takes=f"%x: {type_}", gives=gives, mesh="dp=2")
    call = impl.collectives.execute_plan if plan else impl.collectives.execute
    answer = call(text=text, function="f", ranks=given([tensor_of("fp32", [1000.0] * 4)] * 2), level="fast")
    exact = Fraction(1000 if collective == "all_gather" else 2000)
    for rank in check.returns(answer)["ranks"]:
        check.within(rank["outputs"][0], [exact] * size, [Fraction(far)] * size, f"{collective} in blocks")


@feature("compression")
@clause("COLL-02.5-02")
def test_a_blockwise_program_is_refused_as_a_call_is(impl, check):
    """A scheme that there is not, one without a dtype, and data that have no scales (AMB-COLL-37, -38, -62)."""
    for attributes, dtype, legal in (
        ('dtype="fp8", qscheme="blockwise"', "fp32", True),
        ('dtype="fp8", qscheme="tensorwise"', "fp32", False),
        ('qscheme="blockwise"', "fp32", False),
        ('dtype="fp8", qscheme="blockwise"', "fp64", False),
    ):
        judge_text(impl, check, f"{SUM}, {attributes}", dtype, legal)


@feature("compression")
@clause("COLL-02.5-02")
@pytest.mark.parametrize("plan", WAYS)
def test_a_nan_has_no_scale_in_a_program_either(impl, check, plan):
    """Under fast, where it would travel in a block (AMB-COLL-63)."""
    type_ = "tensor<4xfp32>"
    lines = [issue("%f", "%x", f'{SUM}, dtype="fp8", qscheme="blockwise"'), awaits("%y", "%f")]
    text = program(*lines, returns("%y", type_), takes=f"%x: {type_}", gives=type_, mesh="dp=2")
    call = impl.collectives.execute_plan if plan else impl.collectives.execute
    rows = [tensor_of("fp32", [1.0, float("nan"), 2.0, 3.0]), tensor_of("fp32", [1.0] * 4)]
    check.status(call(text=text, function="f", ranks=given(rows), level="fast"), "TESS_ERR_INVALID_VALUE")
