"""One program, the same bits at every level (language spec, section 8.2; AMB-LANG-78).

The programs are those of the harness's equality corpus. What is right is the frozen bits of a golden vector, and for
compositions what Graph IR gives.
"""

import pytest

from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.chapters.ir.kit.equality_corpus import PROGRAMS, SCHEDULES
from tessera_conformance.chapters.ir.kit.level_programs import BOTH_VENDORS, LOWER_LEVELS, executed, results_at
from tessera_conformance.dsl import parameters_of, program, returning, tensor_of
from tessera_conformance.marks import clause, feature, level, title
from tessera_conformance.oracle import FUNCTIONS
from tessera_conformance.protocol import Rejected
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import recognize_overflow

pytestmark = level("strict")


def bare_transform(program):
    """True if the frozen bits are those of a transform without a norm."""
    return program.expected is not None and "fft(" in program.source and "norm" not in program.source


CASES = [
    pytest.param(
        program,
        at,
        target,
        turn,
        id=f"{program.name}-{at}-{target}",
        marks=[
            feature(f"execute-{at}", *program.features),
            title(
                f"{program.about} At {at}, for {target}.{' The norm is ortho (AMB-LANG-46).' * bare_transform(program)}"
            ),
        ],
    )
    for program in PROGRAMS
    for at in LOWER_LEVELS
    for turn, target in enumerate(BOTH_VENDORS)
]


@clause("LANG-08.2-01")
@pytest.mark.parametrize(("program", "at", "target", "turn"), CASES)
def test_a_level_gives_the_bits_of_graph_ir(impl, check, program, at, target, turn):
    """Lowered for a target under one of several schedules, and executed there."""
    expected = program.expected
    lowered = executed(impl, program.source, at, target, program.schedule(turn), "f", **program.inputs)
    if expected is None or isinstance(lowered, Rejected):
        observed = impl.language.execute(source=program.source, function="f", inputs=program.inputs)
        if all(value.dtype.startswith("int") for value in program.inputs.values()):
            recognize_overflow(check, observed)
        expected = expected or check.returns(observed)["outputs"]
    actual = check.returns(lowered)["outputs"]
    check.equal(len(actual), len(expected), "the number of results")
    for number, (result, right) in enumerate(zip(actual, expected, strict=True)):
        check.bits(result, right, f"result {number}")


@clause("LANG-08.2-01", "LANG-02.3-64")
@pytest.mark.parametrize("at", [pytest.param(at, marks=feature(f"execute-{at}")) for at in LOWER_LEVELS])
def test_a_program_that_has_run_fails_where_it_must(impl, check, at):
    """A zero among the divisors of the fifth run is an error (AMB-LANG-129), and the next run is as those before."""
    source = returning("A / B", parameters_of("AB", "tensor<4xint32>"), "tensor<4xint32>")
    inputs = {"A": tensor_of("int32", [12, 14, 7, 9]), "B": tensor_of("int32", [1, 5, 2, 4])}
    for run in range(6):
        if run == 4:
            zero = inputs | {"B": tensor_of("int32", [1, 5, 0, 4])}
            observation = executed(impl, source, at, "sm_90", None, "f", **zero)
            check.rejects(observation, category=("numerics", "types", "shapes"), phase="execute")
            continue
        (quotients,) = results_at(impl, check, source, at, **inputs)
        check.bits(quotients, tensor_of("int32", [12, 2, 3, 2]), f"run {run}")


@clause("LANG-08.2-01", "LANG-03.1-03")
@pytest.mark.parametrize("at", [pytest.param(at, marks=feature(f"execute-{at}")) for at in LOWER_LEVELS])
def test_a_program_runs_on_shapes_one_after_another(impl, check, at):
    """Code made for six elements in two rows serves neither six in three rows nor eight."""
    source = returning("A - A * A", "A: tensor<?x?xint32>", "tensor<?x?xint32>")
    for rows, columns in ((2, 3), (3, 2), (2, 4), (2, 3)):
        values = [[10 * row + column for column in range(columns)] for row in range(rows)]
        (actual,) = results_at(impl, check, source, at, A=tensor_of("int32", values))
        expected = [[value - value * value for value in row] for row in values]
        check.bits(actual, tensor_of("int32", expected), f"{rows} x {columns}")


SWEPT = [
    *SCHEDULES,
    {"tile": [8, 8, 8], "depth": 5},
    {"tile": [6, 12, 5], "depth": 2},
    {"tile": [64, 64, 64]},
    {"tile": [8, 8, 4], "depth": 4},
    {"tile": [4, 8, 3], "depth": 5},
]
"""Tails along each extent, more stages than steps, sizes of no matrix unit, one tile, many stages over many steps."""
OPERANDS = {
    dtype: (counted(dtype, (7, 19), 7110, (-6, 6)), counted(dtype, (19, 9), 7111, (-6, 6)))
    for dtype in ("bf16", "fp32")
}
PRODUCTS = {dtype: FUNCTIONS["oracle.matmul"](*operands) for dtype, operands in OPERANDS.items()}
"""Sums of 19 terms whose bits depend on their order, by exact rational arithmetic."""


@clause("LANG-08.2-01", "LANG-06.2-01", "LANG-04-11")
@pytest.mark.parametrize("at", [pytest.param(at, marks=feature(f"execute-{at}")) for at in LOWER_LEVELS])
@pytest.mark.parametrize(("target", "dtype"), [("sm_90", "bf16"), ("gfx942", "fp32")], ids=["sm-90", "gfx942"])
@pytest.mark.parametrize("schedule", SWEPT, ids=lambda given: "x".join(map(str, given.get("tile", ["own"]))))
def test_no_tile_size_and_no_depth_changes_a_bit(impl, check, at, target, dtype, schedule):
    """Terms are added in ascending order of k, over all of k, whatever the tiles are."""
    a, b = OPERANDS[dtype]
    source = returning("A @ B", f"A: tensor<7x19x{dtype}>, B: tensor<19x9x{dtype}>")
    (actual,) = results_at(impl, check, source, at, target, schedule, A=a, B=b)
    check.bits(actual, PRODUCTS[dtype])


@clause("LANG-08.2-01", "LANG-06.1-04")
@pytest.mark.parametrize("at", [pytest.param(at, marks=feature(f"execute-{at}")) for at in LOWER_LEVELS])
@pytest.mark.parametrize("operand", ["A", "B"])
@pytest.mark.parametrize("dtype", OPERANDS)
def test_an_operand_that_is_not_staged_changes_no_bit(impl, check, at, dtype, operand):
    """One operand of a product is prefetched to shared memory, the other one stays where it is."""
    a, b = OPERANDS[dtype]
    body = [f'schedule.prefetch({operand}) @{{scope="shared"}};', "return A @ B;"]
    source = program(*body, parameters=f"A: tensor<7x19x{dtype}>, B: tensor<19x9x{dtype}>")
    schedule = {"tile": [4, 8, 3], "depth": 2, "prefetch": "none"}
    (actual,) = results_at(impl, check, source, at, schedule=schedule, A=a, B=b)
    check.bits(actual, PRODUCTS[dtype])


@clause("LANG-08.2-01")
@pytest.mark.parametrize("at", [pytest.param(at, marks=feature(f"execute-{at}")) for at in LOWER_LEVELS])
@pytest.mark.parametrize(
    ("wrong", "right"),
    [([[1, 2], [3, 0]], [[1, 2], [3, 4]]), ([[0, 1], [1, 1]], [[7, 1], [1, 1]])],
    ids=["last", "first"],
)
def test_an_error_stays_an_error(impl, check, at, wrong, right):
    """A division of integers by zero is an error of execution at every level; without the zero there is none."""
    source = returning("A / B", parameters_of("AB", "tensor<2x2xint32>"))
    ones = tensor_of("int32", [[84, 84], [84, 84]])
    (actual,) = results_at(impl, check, source, at, A=ones, B=tensor_of("int32", right))
    check.bits(actual, tensor_of("int32", [[84 // element for element in row] for row in right]))
    observation = executed(impl, source, at, A=ones, B=tensor_of("int32", wrong))
    check.rejects(observation, category=("numerics", "types", "shapes"), phase="execute")


FLOATS = ("fp64", "fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2")
POINTS = (0.25, 0.625, 1.25, 2.5, 0.09375, 5, 0.4375)
"""Numbers of every float type at which no two functions agree."""
FAR = {
    "int32": [2**30 + 2**22 + 1, -300, 7, -(2**31), 65520, 449],
    "int64": [2**40 + 2**32 + 1, -300, 7, -(2**33), 65520, 449],
    "fp64": [-1e300, 700.3, 61441, -0.3, 3e-9, 480],
}
"""Numbers beyond narrow types, and between two of their numbers: the first integers just above a tie of bf16."""


def functions_of(dtype):
    """Every function of floats, at the same points."""
    x, y = tensor_of(dtype, POINTS), tensor_of(dtype, POINTS[::-1])
    plain = [*(questions.function(name, x) for name in questions.ELEMENTARY), questions.power(x, y)]
    return [
        *plain,
        *(questions.activation(*row) for row in (("sigmoid", x), ("silu", x), ("gelu", x), ("gelu", x, "tanh"))),
    ]


def casts_of(dtype):
    """Casts to every float type, and to the narrow ones in both modes."""
    x = tensor_of(dtype, FAR.get(dtype, POINTS))
    modes = [(to, None) for to in FLOATS if to != dtype] + [(to, "nonfinite") for to in FLOATS[4:] if to != dtype]
    return [questions.cast(x, to, overflow) for to, overflow in modes]


def judge_at_target(impl, check, asked, turn):
    """Check the bits of questions at Target IR, for one vendor."""
    for question in asked:
        source, inputs = question.call.params["source"], question.call.inputs
        (actual,) = results_at(impl, check, source, "target", BOTH_VENDORS[turn % 2], **inputs)
        (expected,) = question.check.answers(inputs)
        check.bits(actual, expected, question.check.function)


@clause("LANG-08.2-01", "LANG-02-04")
@feature("execute-target", "elementary-functions", "activations")
@pytest.mark.parametrize(("turn", "dtype"), list(enumerate(FLOATS)), ids=FLOATS)
def test_every_function_has_its_bits_at_target_ir(impl, check, turn, dtype):
    """All functions of one argument, powers and activations, by correctly rounded values."""
    judge_at_target(impl, check, functions_of(dtype), turn)


SOURCES = ("int32", "int64", *FLOATS)


@clause("LANG-08.2-01", "LANG-03.1-05")
@feature("execute-target", "casts")
@pytest.mark.parametrize(("turn", "dtype"), list(enumerate(SOURCES)), ids=SOURCES)
def test_every_cast_has_its_bits_at_target_ir(impl, check, turn, dtype):
    """To every float type, saturated, and to the narrow ones with infinity or NaN, too."""
    judge_at_target(impl, check, casts_of(dtype), turn)
