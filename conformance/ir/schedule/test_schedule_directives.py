"""Directives of a program: they become operations of Schedule IR, and are refused where those are (2.3, 6.2, 6.3, 11).

A refusal comes with lowering at the latest; `verify`, which knows no target, may refuse what no target can follow.
"""

import pytest

from tessera_conformance.chapters.ir.kit.level_programs import executed, lowered, results_at
from tessera_conformance.dsl import FIRST_STATEMENT, program, tensor_of
from tessera_conformance.marks import clause, feature

MATRIX = "tensor<12x12xfp32>"
PARAMETERS = f"A: {MATRIX}, B: {MATRIX}"


def directed(directive, end="return C;"):
    """A product, a statement about it, and more."""
    return program(f"let C: {MATRIX} = A @ B;", directive, end, parameters=PARAMETERS)


def attributes_of(impl, check, directive, name, end="return C;"):
    """The attributes of the operations of one name that a program with a directive has at Schedule IR."""
    actual = lowered(impl, check, directed(directive, end), "schedule").operations(f"tessera.schedule.{name}")
    return [operation["attributes"] for operation in actual]


FOLLOWED = {
    "tile": ("LANG-06.1-01", "schedule.tile(C) @{m=6, n=4, k=3};", "tile", {"m": 6, "n": 4, "k": 3}),
    "tile-block": ("LANG-06.1-01", "schedule.tile(C) @{m=3, n=12, k=2};", "tile", {"m": 3, "n": 12, "k": 2}),
    "pipeline": ("LANG-06.1-03", "schedule.pipeline(C) @{depth=4};", "pipeline", {"depth": 4}),
    "double-buffer": (
        "LANG-06.1-03",
        "schedule.pipeline(C) @{double_buffer=true, depth=3};",
        "pipeline",
        {"double_buffer": True, "depth": 3},
    ),
}


@feature("lower-schedule")
@pytest.mark.parametrize(
    ("directive", "name", "wanted"),
    [pytest.param(*case, id=identifier, marks=clause(number)) for identifier, (number, *case) in FOLLOWED.items()],
)
def test_a_directive_is_followed(impl, check, directive, name, wanted):
    """The product has one operation of its kind, the one that the directive asks for."""
    actual = attributes_of(impl, check, directive, name)
    check.equal([{key: given.get(key) for key in wanted} for given in actual], [wanted], f"tessera.schedule.{name}")


@feature("lower-schedule")
@clause("LANG-06.1-04")
@pytest.mark.parametrize("align", [64, 128])
def test_a_prefetch_is_followed(impl, check, align):
    """The program has a prefetch of that scope and alignment."""
    directive = f'schedule.prefetch(C) @{{scope="shared", align={align}}};'
    actual = attributes_of(impl, check, directive, "prefetch", end="return op.softmax(C);")
    expected = [given for given in actual if (given["scope"], given["align"]) == ("shared", align)]
    check.equal(len(expected), 1, f"the number of prefetches aligned to {align}")


@feature("lower-schedule")
@clause("LANG-06.1-02")
def test_a_fusion_is_followed(impl, check):
    """Two sums that are to be fused are operands of a fusion, or what a schedule made of them."""
    source = program(
        f"let C: {MATRIX} = A + B;",
        f"let D: {MATRIX} = C * B;",
        "schedule.fuse(C, D);",
        "return D;",
        parameters=PARAMETERS,
    )
    fusions = lowered(impl, check, source, "schedule").operations("tessera.schedule.fuse")
    check.true(any(len(fusion["operands"]) >= 2 for fusion in fusions), "there is a fusion", fusions)


REFUSED = {
    "tile-m": ("LANG-06.3-01", "schedule.tile(C) @{m=⟦6|5⟧, n=4};"),
    "tile-k": ("LANG-06.3-01", "schedule.tile(C) @{m=6, n=4, k=⟦4|5⟧};"),
    "tile-zero": ("LANG-06.3-01", "schedule.tile(C) @{m=⟦1|0⟧, n=4};"),
    "tile-padding": ("LANG-06.3-01", "schedule.tile(C) @{m=5, n=4, pad=[⟦3|2⟧, 0]};"),
    "depth": ("LANG-06.2-05", "schedule.pipeline(C) @{depth=⟦1|0⟧};"),
    "two-buffers": ("LANG-06.2-05", "schedule.pipeline(C) @{double_buffer=true, depth=⟦2|1⟧};"),
    "scope": ("LANG-06.2-02", 'schedule.prefetch(C) @{scope="⟦shared|private⟧"};'),
    "align": ("LANG-06.1-04", 'schedule.prefetch(C) @{scope="shared", align=⟦32|24⟧};'),
}


def twins(marked):
    """The legal text and the illegal one."""
    parts = marked.replace("⟧", "⟦").split("⟦")
    return tuple("".join(part.split("|")[side] if at % 2 else part for at, part in enumerate(parts)) for side in (0, 1))


@pytest.mark.parametrize(
    "marked", [pytest.param(text, id=name, marks=clause(number)) for name, (number, text) in REFUSED.items()]
)
@feature("lower-schedule")
def test_an_illegal_directive_is_refused(impl, check, marked):
    """Lowering refuses it at the latest, and the diagnostic points at the directive or its subject."""
    legal, illegal = (directed(text, "return op.softmax(C);") for text in twins(marked))
    check.accepts(impl.language.verify(source=legal))
    check.accepts(impl.language.lower(source=legal, to="schedule"))
    refused = impl.language.lower(source=illegal, to="schedule")
    actual = check.rejects(refused, category=("schedule", "shapes", "types"), phase=("lower", "verify"))
    lines = [diagnostic.line for diagnostic in actual.diagnostics]
    near = (FIRST_STATEMENT, FIRST_STATEMENT + 1)
    check.true(any(number in near for number in lines), "the line is named", lines)


@feature("lower-schedule")
@clause("LANG-11-06", "LANG-06.2-01")
def test_an_illegal_fusion_is_refused(impl, check):
    """A product and a sum, with a softmax of the product between them."""

    def source(between):
        return program(
            f"let C: {MATRIX} = A @ B;",
            f"let S: {MATRIX} = op.softmax({between});",
            f"let D: {MATRIX} = C + S;",
            "schedule.fuse(C, D);",
            "return D;",
            parameters=PARAMETERS,
        )

    check.accepts(impl.language.lower(source=source("A"), to="schedule"))
    check.rejects(
        impl.language.lower(source=source("C"), to="schedule"), category="schedule", phase=("lower", "verify")
    )


@feature("lower-schedule")
@clause("LANG-11-08")
@pytest.mark.parametrize(("target", "deep"), [("sm_90", 7), ("gfx942", 2)], ids=["sm-90", "gfx942"])
def test_a_directive_that_needs_too_much_memory_is_refused(impl, check, target, deep):
    """Tiles of 16384 bytes of either operand, as many stages as fit and one more."""

    def lowering(depth):
        large = "tensor<128x128xfp32>"
        source = program(
            'schedule.prefetch(A) @{scope="shared"};',
            'schedule.prefetch(B) @{scope="shared"};',
            f"let C: {large} = A @ B;",
            "schedule.tile(C) @{m=64, n=64, k=64};",
            f"schedule.pipeline(C) @{{depth={depth}}};",
            "return C;",
            parameters=f"A: {large}, B: {large}",
        )
        return impl.language.lower(source=source, to="schedule", target=target)

    check.accepts(lowering(deep))
    check.rejects(lowering(deep + 1), category=("schedule", "tile"), phase=("lower", "verify"))


@feature("execute-schedule")
@clause("LANG-06.2-05")
def test_a_program_with_an_illegal_schedule_is_not_executed(impl, check):
    """Lowered on the way to being executed, it is refused as when it is lowered; its twin is executed."""
    ones = {"A": tensor_of("fp32", [[1.0] * 12] * 12), "B": tensor_of("fp32", [[2.0] * 12] * 12)}
    (actual,) = results_at(impl, check, directed("schedule.pipeline(C) @{depth=1};"), "schedule", **ones)
    check.bits(actual, tensor_of("fp32", [[24.0] * 12] * 12))
    refused = executed(impl, directed("schedule.pipeline(C) @{depth=0};"), "schedule", **ones)
    check.rejects(refused, category="schedule", phase=("lower", "verify"))
