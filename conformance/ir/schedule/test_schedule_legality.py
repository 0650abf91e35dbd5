"""The legality of schedules: each rule with a schedule that breaks it and a close legal twin (6.2, 6.3, 11).

The schedules are texts; the same rules for directives of a program are in `test_schedule_directives`.
"""

from itertools import pairwise

import pytest

from tessera_conformance.chapters.ir.kit.graph_texts import func, module
from tessera_conformance.chapters.ir.kit.kernel_texts import FIRST_OPERATION, line, returning, scheduled
from tessera_conformance.chapters.ir.kit.level_programs import verified
from tessera_conformance.chapters.ir.kit.programs import accepts_if
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Returned

pytestmark = feature("schedule-ir-text")

LIMITS = {"sm_80": 166912, "sm_90": 232448, "gfx90a": 65536, "gfx942": 65536}
"""The shared memory of a block, in bytes."""


def matrix(rows, columns, dtype="fp32", layout=""):
    """The type of a matrix."""
    return f"tensor<{rows}x{columns}x{dtype}{f'; layout={layout}' if layout else ''}>"


def product(*about, extents=(12, 8, 6), dtype="fp32", staged="", shares=None):
    """A product of these extents m, n and k, some operands of which are staged, and operations about it in order."""
    m, n, k = extents
    types = {"%A": matrix(m, k, dtype), "%B": matrix(k, n, dtype)}
    result = matrix(m, n, dtype)
    lines, read = [], []
    for name, type_ in types.items():
        if name.strip("%") in staged:
            lines.append(line(f"{name}s", "tessera.schedule.prefetch", {name: type_}, type_, scope="shared"))
        read.append(f"{name}s" if name.strip("%") in staged else name)
    lines.append(line("%p0", "tessera.graph.matmul", dict(zip(read, types.values(), strict=True)), result))
    for number, (operation, attributes) in enumerate(about, 1):
        lines.append(
            line(f"%p{number}", f"tessera.schedule.{operation}", {f"%p{number - 1}": result}, result, **attributes)
        )
    end = f'"tessera.graph.return"(%p{len(about)}) : ({result}) -> ()'
    takes = ", ".join(f"{name}: {type_}" for name, type_ in types.items())
    return scheduled(*lines, end, takes=takes, gives=result)


def judge(impl, check, legal, illegal, category="schedule", target="sm_90", **where):
    """The first is accepted, the second refused for a reason of this category."""
    check.accepts(verified(impl, legal, "schedule", target))
    check.rejects(verified(impl, illegal, "schedule", target), category=category, phase="verify", **where)


def tiled(name, **sizes):
    """A function of four rows and columns that are negated in tiles of these sizes."""
    type_ = matrix(4, 4)
    return func(
        line("%y", "tessera.graph.negate", {"%x": type_}, type_),
        line("%t", "tessera.schedule.tile", {"%y": type_}, type_, n=4, **sizes),
        returning(t=type_),
        takes=f"%x: {type_}",
        gives=type_,
        name=name,
    )


@clause("LANG-06.3-01", "LANG-11-06")
@pytest.mark.parametrize("modules", [1, 2], ids=["in-a-module", "in-two-modules"])
@pytest.mark.parametrize("wrong", [{"m": 3}, {"m": 2, "k": 2}], ids=["cover", "contraction"])
def test_the_schedule_of_every_function_is_checked(impl, check, wrong, modules):
    """Three rows do not cover four, and negation sums over no k (AMB-LANG-77); the function before is legal."""

    def text(**sizes):
        first, second = tiled("f", m=2), tiled("g", **sizes)
        return module(first, second) if modules == 1 else module(first) + module(second, name="n")

    judge(impl, check, text(m=2), text(**wrong))


@clause("LANG-05.2-01", "LANG-06.1-01")
def test_a_text_of_one_level_is_none_of_another_afterwards(impl, check):
    """Accepted as Schedule IR, it is refused as Graph IR (AMB-LANG-245), and accepted again."""
    text = module(tiled("f", m=2))
    for at in ("schedule", "graph", "schedule"):
        accepts_if(check, at == "schedule", verified(impl, text, at, "sm_90"), category=("types", "syntax", "schedule"))


# Tiles (6.3; AMB-LANG-77)

TILES = {
    "m": ({"m": 4, "n": 8, "k": 6}, {"m": 5, "n": 8, "k": 6}),
    "n": ({"m": 12, "n": 2, "k": 6}, {"m": 12, "n": 3, "k": 6}),
    "k": ({"m": 12, "n": 8, "k": 3}, {"m": 12, "n": 8, "k": 4}),
    "larger-m": ({"m": 12, "n": 8}, {"m": 16, "n": 8}),
    "larger-k": ({"m": 12, "n": 8, "k": 6}, {"m": 12, "n": 8, "k": 12}),
    "padded-m": ({"m": 5, "n": 8, "pad": [3, 0]}, {"m": 5, "n": 8, "pad": [2, 0]}),
    "padded-n": ({"m": 12, "n": 3, "pad": [0, 1]}, {"m": 12, "n": 3, "pad": [0, 2]}),
    "padded-k": ({"m": 12, "n": 8, "k": 4, "pad": [0, 0, 2]}, {"m": 12, "n": 8, "k": 4, "pad": [0, 0, 0]}),
    "padding-elsewhere": ({"m": 5, "n": 8, "pad": [3, 0]}, {"m": 5, "n": 8, "pad": [0, 3]}),
    "covered": ({"m": 16, "n": 8, "pad": [4, 0]}, {"m": 16, "n": 8, "pad": [3, 0]}),
    "more-padding": ({"m": 8, "n": 8, "pad": [12, 0]}, {"m": 8, "n": 8, "pad": [11, 0]}),
    "zero-m": ({"m": 1, "n": 8}, {"m": 0, "n": 8}),
    "zero-n": ({"m": 12, "n": 1}, {"m": 12, "n": 0}),
    "zero-k": ({"m": 12, "n": 8, "k": 1}, {"m": 12, "n": 8, "k": 0}),
    "negative": ({"m": 4, "n": 8}, {"m": -4, "n": 8}),
    "negative-padding": ({"m": 5, "n": 8, "pad": [3, 0]}, {"m": 5, "n": 8, "pad": [-2, 0]}),
    "negative-padding-of-n": ({"m": 12, "n": 3, "pad": [0, 1]}, {"m": 12, "n": 3, "pad": [0, -2]}),
    "negative-padding-of-k": (
        {"m": 12, "n": 8, "k": 4, "pad": [0, 0, 2]},
        {"m": 12, "n": 8, "k": 4, "pad": [0, 0, -2]},
    ),
}
"""The tiles of a product of 12x6 and 6x8."""


@clause("LANG-06.3-01")
@pytest.mark.parametrize(("legal", "illegal"), TILES.values(), ids=TILES)
def test_tiles_divide_or_cover_with_padding(impl, check, legal, illegal):
    """A size that does not divide its extent needs padding that makes it so; no size is below one."""
    location = {"at_line": FIRST_OPERATION + 1}
    judge(impl, check, product(("tile", legal)), product(("tile", illegal)), ("schedule", "shapes"), **location)


@clause("LANG-06.3-01")
@pytest.mark.parametrize(("right", "wrong"), [(4, 3), (12, 5)], ids=["least", "more"])
def test_one_number_pads_every_extent(impl, check, right, wrong):
    """Three extents of 12 are padded for tiles of 8."""
    texts = [product(("tile", {"m": 8, "n": 8, "k": 8, "pad": pad}), extents=(12, 12, 12)) for pad in (right, wrong)]
    judge(impl, check, *texts, category=("schedule", "shapes"))


@clause("LANG-06.3-01")
@pytest.mark.parametrize("extents", [(12, 16, 8), (16, 12, 8), (16, 8, 12)], ids=["m", "n", "k"])
def test_one_number_pads_only_what_a_size_does_not_divide(impl, check, extents):
    """An extent of 12 is padded by 4 for tiles of 8; the two extents that 8 divides stay (AMB-LANG-211)."""
    texts = [product(("tile", {"m": 8, "n": 8, "k": 8, "pad": pad}), extents=extents) for pad in (4, 8)]
    judge(impl, check, *texts, category=("schedule", "shapes"))


@clause("LANG-06.3-01")
@pytest.mark.parametrize("operation", ["tessera.graph.relu", "tessera.graph.softmax"], ids=["elementwise", "rows"])
def test_tiles_of_other_operations_divide_too(impl, check, operation):
    """m and n tile the last two extents of any value."""
    type_ = matrix(9, 10)

    def text(n):
        tiled = line("%t", "tessera.schedule.tile", {"%y": type_}, type_, m=3, n=n)
        return scheduled(
            line("%y", operation, {"%A": type_}, type_), tiled, returning(t=type_), takes=f"%A: {type_}", gives=type_
        )

    judge(impl, check, text(5), text(4), category=("schedule", "shapes"), at_line=FIRST_OPERATION + 1)


@clause("LANG-06.1-01")
@pytest.mark.parametrize(
    "operation", ["tessera.graph.relu", "tessera.graph.softmax", None], ids=["relu", "softmax", "argument"]
)
def test_k_is_for_contractions(impl, check, operation):
    """An operation that sums over nothing has no k to tile (AMB-LANG-77)."""
    type_ = matrix(8, 8)

    def text(**k):
        lines = [line("%y", operation, {"%A": type_}, type_)] if operation else []
        tiled = line("%t", "tessera.schedule.tile", {"%y" if operation else "%A": type_}, type_, m=4, n=4, **k)
        used = line("%r", "tessera.graph.relu", {"%t": type_}, type_)
        return scheduled(*lines, tiled, used, returning(r=type_), takes=f"%A: {type_}", gives=type_)

    check.accepts(verified(impl, text(), "schedule"))
    check.accepts(verified(impl, product(("tile", {"m": 4, "n": 4, "k": 4}), extents=(8, 8, 8)), "schedule"))
    answer = verified(impl, text(k=4), "schedule")
    check.reading("AMB-LANG-77", "k ignored", isinstance(answer, Returned))
    check.rejects(answer, category="schedule", phase="verify")


# Pipelines (6.2; AMB-LANG-33)

PIPELINES = {
    "zero": ({"depth": 1}, {"depth": 0}),
    "negative": ({"depth": 1}, {"depth": -1}),
    "two-buffers-one-deep": ({"double_buffer": True, "depth": 2}, {"double_buffer": True, "depth": 1}),
    "one-deep": ({"double_buffer": False, "depth": 1}, {"double_buffer": True, "depth": 1}),
}


@clause("LANG-06.2-05")
@pytest.mark.parametrize(("legal", "illegal"), PIPELINES.values(), ids=PIPELINES)
def test_a_pipeline_has_a_depth(impl, check, legal, illegal):
    """The depth is at least one, and at least two where two buffers alternate."""
    texts = [product(("pipeline", given)) for given in (legal, illegal)]
    judge(impl, check, *texts, at_line=FIRST_OPERATION + 1)


STAGES = ["load", "compute", "store"]
DOWN = [["load", "compute"], ["compute", "store"]]
EDGES = {
    "back": (DOWN, [*DOWN, ["store", "load"]]),
    "between-two": ([["load", "compute"]], [["load", "compute"], ["compute", "load"]]),
    "to-itself": (DOWN, [*DOWN, ["compute", "compute"]]),
    "beside-others": ([*DOWN, ["load", "store"]], [["load", "store"], ["compute", "store"], ["store", "compute"]]),
}


@clause("LANG-06.2-04", "LANG-11-07", "LANG-04-11")
@pytest.mark.parametrize(("legal", "illegal"), EDGES.values(), ids=EDGES)
def test_stages_of_a_pipeline_have_an_order(impl, check, legal, illegal):
    """Edges that come back to where they begin leave none (AMB-LANG-79)."""
    texts = [product(("pipeline", {"depth": 2, "stages": STAGES, "edges": edges})) for edges in (legal, illegal)]
    judge(impl, check, *texts, at_line=FIRST_OPERATION + 1)


@clause("LANG-06.2-04")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [(["load", "compute"], ["load", "load", "compute"]), (STAGES, ["load", "store"])],
    ids=["named-twice", "not-named"],
)
def test_edges_are_between_stages_of_different_names(impl, check, legal, illegal):
    """A name stands for one stage, and an edge names stages that the pipeline has (AMB-LANG-212)."""
    texts = [
        product(("pipeline", {"depth": 2, "stages": stages, "edges": [["load", "compute"]]}))
        for stages in (legal, illegal)
    ]
    judge(impl, check, *texts, at_line=FIRST_OPERATION + 1)


@clause("LANG-06.2-04")
def test_a_long_cycle_of_stages_is_refused(impl, check):
    """A hundred stages, the last before the first."""
    stages = [f"s{number}" for number in range(100)]
    chain = [list(pair) for pair in pairwise(stages)]
    texts = [
        product(("pipeline", {"depth": 2, "stages": stages, "edges": edges}))
        for edges in (chain, [*chain, ["s99", "s0"]])
    ]
    judge(impl, check, *texts)


# Prefetches (6.2; AMB-LANG-36)


def fetched(**attributes):
    """An operand that is fetched and computed with."""
    type_ = matrix(8, 8)
    fetch = line("%s", "tessera.schedule.prefetch", {"%A": type_}, type_, **attributes)
    used = line("%y", "tessera.graph.softmax", {"%s": type_}, type_)
    return scheduled(fetch, used, returning(y=type_), takes=f"%A: {type_}", gives=type_)


@clause("LANG-06.2-02")
@pytest.mark.parametrize("wrong", ["private", "local", "Shared", "registers", ""])
def test_a_prefetch_goes_to_shared_or_global_memory(impl, check, wrong):
    """Any other word than shared or global is refused as a scope."""
    check.accepts(verified(impl, fetched(scope="global", align=16), "schedule"))
    judge(impl, check, fetched(scope="shared", align=16), fetched(scope=wrong, align=16), at_line=FIRST_OPERATION)


@clause("LANG-06.1-04")
@pytest.mark.parametrize(
    ("right", "wrong"), [(32, 24), (16, 8), (64, 48), (16, 0), (16, -16), (128, 127), (16, 17), (16, 1)]
)
def test_an_alignment_is_a_power_of_two_from_16(impl, check, right, wrong):
    """The sample's 32, 16 and more; nothing less and nothing between (AMB-LANG-36)."""
    texts = [fetched(scope="shared", align=align) for align in (right, wrong)]
    judge(impl, check, *texts, at_line=FIRST_OPERATION)


@clause("LANG-06.1-04")
@pytest.mark.parametrize(("right", "wrong"), [(16, 8), (64, 48), (32, -32)])
def test_an_alignment_in_global_memory_is_a_power_of_two_from_16(impl, check, right, wrong):
    """The rule of an alignment does not depend on the scope (AMB-LANG-36)."""
    texts = [fetched(scope="global", align=align) for align in (right, wrong)]
    judge(impl, check, *texts, at_line=FIRST_OPERATION)


# Shared memory and registers (6.2, 11)


@clause("LANG-06.2-03")
@pytest.mark.parametrize("target", LIMITS)
@pytest.mark.parametrize("side", ["A", "B"])
def test_a_shared_tile_fits_into_a_block(impl, check, target, side):
    """One tile of bytes that fills the shared memory of a block, and one that is a byte longer."""

    def text(size):
        return product(("tile", {"m": 1, "n": 1, "k": size}), extents=(1, 1, size), dtype="int8", staged=side)

    limit = LIMITS[target]
    judge(impl, check, text(limit), text(limit + 1), ("schedule", "tile"), target)


ELEMENTWISE = {
    "add": ("add", "int8", 1, "A"),
    "add-behind": ("add", "int8", 1, "B"),
    "add-both": ("add", "int8", 2, "AB"),
    "subtract": ("subtract", "int32", 4, "A"),
    "multiply": ("multiply", "fp32", 4, "A"),
}
"""Operations of two operands, their dtype, the bytes of an element of the result in shared memory, what is staged."""


@clause("LANG-06.2-03")
@pytest.mark.parametrize("target", LIMITS)
@pytest.mark.parametrize(("name", "dtype", "width", "staged"), ELEMENTWISE.values(), ids=ELEMENTWISE)
def test_a_shared_tile_of_an_elementwise_operation_fits_into_a_block(impl, check, target, name, dtype, width, staged):
    """A row that fills the shared memory of a block is accepted, as for a product; 16 bytes more are refused."""

    def text(columns):
        type_ = matrix(1, columns, dtype)
        read = {side: f"%{side}s" if side in staged else f"%{side}" for side in "AB"}
        return scheduled(
            *(
                line(f"%{side}s", "tessera.schedule.prefetch", {f"%{side}": type_}, type_, scope="shared")
                for side in staged
            ),
            line("%y", f"tessera.graph.{name}", dict.fromkeys(read.values(), type_), type_),
            line("%t", "tessera.schedule.tile", {"%y": type_}, type_, m=1, n=columns),
            f'"tessera.graph.return"(%t) : ({type_}) -> ()',
            takes=f"%A: {type_}, %B: {type_}",
            gives=type_,
        )

    limit = LIMITS[target] // width
    judge(impl, check, text(limit), text(limit + 16), ("schedule", "tile"), target)


@clause("LANG-06.2-03")
@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_a_shared_tile_of_an_operation_behind_a_product_fits_into_a_block(impl, check, target):
    """The addend of a fused product, a row of a tile: one that fills the shared memory, and one 16 bytes longer."""

    def text(columns):
        left, right, row = matrix(1, 4), matrix(4, columns), matrix(1, columns)
        return scheduled(
            line("%Cs", "tessera.schedule.prefetch", {"%C": row}, row, scope="shared"),
            line("%p", "tessera.graph.matmul", {"%A": left, "%B": right}, row),
            line("%y", "tessera.graph.add", {"%p": row, "%Cs": row}, row),
            line("%f", "tessera.schedule.fuse", {"%p": row, "%y": row}, row),
            line("%t", "tessera.schedule.tile", {"%f": row}, row, m=1, n=columns, k=4),
            returning(t=row),
            takes=f"%A: {left}, %B: {right}, %C: {row}",
            gives=row,
        )

    limit = LIMITS[target] // 4
    judge(impl, check, text(limit), text(limit + 4), ("schedule", "tile"), target)


@clause("LANG-11-08", "LANG-06.2-03")
@pytest.mark.parametrize(
    ("target", "depth"),
    [("sm_80", 5), ("sm_90", 7), ("gfx90a", 2), ("gfx942", 2)],
    ids=["sm-80", "sm-90", "gfx90a", "gfx942"],
)
def test_the_stages_of_a_pipeline_fit_together(impl, check, target, depth):
    """Two tiles of 16384 bytes a stage: as many stages as there is memory for, and one more."""
    texts = [
        product(
            ("tile", {"m": 64, "n": 64, "k": 64}), ("pipeline", {"depth": deep}), extents=(128, 128, 128), staged="AB"
        )
        for deep in (depth, depth + 1)
    ]
    judge(impl, check, *texts, category=("schedule", "tile"), target=target)


@clause("LANG-11-08")
def test_what_one_target_holds_another_does_not(impl, check):
    """Four stages of 32768 bytes: for sm_90, not for gfx942."""
    about = (("tile", {"m": 64, "n": 64, "k": 64}), ("pipeline", {"depth": 4}))
    text = product(*about, extents=(128, 128, 128), staged="AB")
    check.accepts(verified(impl, text, "schedule", "sm_90"))
    check.rejects(verified(impl, text, "schedule", "gfx942"), category=("schedule", "tile"), phase="verify")


@clause("LANG-11-08")
def test_what_is_not_staged_takes_no_shared_memory(impl, check):
    """The same tiles without a prefetch, and with one of an operand."""
    deep = (("tile", {"m": 64, "n": 64, "k": 64}), ("pipeline", {"depth": 14}))
    texts = [product(*deep, extents=(128, 128, 128), staged=staged) for staged in ("", "AB")]
    judge(impl, check, *texts, category=("schedule", "tile"))
    check.accepts(verified(impl, product(*deep, extents=(128, 128, 128), staged="A"), "schedule"))


@clause("LANG-11-09")
@pytest.mark.parametrize("target", LIMITS)
def test_the_accumulators_of_a_tile_fit_into_registers(impl, check, target):
    """More sums than all threads of a block have registers for are refused (AMB-LANG-68, AMB-LANG-257)."""
    texts = [
        product(("tile", {"m": size, "n": size, "k": 16}), extents=(4096, 4096, 64), dtype="bf16")
        for size in (64, 2048)
    ]
    judge(impl, check, *texts, category=("schedule", "tile"), target=target)


# Dependences (6.2, 11)

SQUARE = matrix(8, 8)
OPERANDS = f"%A: {SQUARE}, %B: {SQUARE}"


def fused(between, values=("%p", "%e")):
    """A product, something that reads `between`, a sum of both, and the fusion of some of them."""
    return scheduled(
        line("%p", "tessera.graph.matmul", {"%A": SQUARE, "%B": SQUARE}, SQUARE),
        line("%t", "tessera.graph.softmax", {between: SQUARE}, SQUARE),
        line("%e", "tessera.graph.add", {"%p": SQUARE, "%t": SQUARE}, SQUARE),
        line("%f", "tessera.schedule.fuse", dict.fromkeys(values, SQUARE), SQUARE),
        returning(f=SQUARE),
        takes=OPERANDS,
        gives=SQUARE,
    )


@clause("LANG-11-06", "LANG-06.2-01")
@pytest.mark.parametrize("values", [("%p", "%e"), ("%e", "%p")], ids=["down", "up"])
def test_a_fusion_encloses_no_value_that_depends_on_it(impl, check, values):
    """A value that needs the first operation and is needed by the second would have to run between them."""
    judge(impl, check, fused("%A", values), fused("%p", values))


@clause("LANG-11-06", "LANG-06.2-01")
def test_a_fusion_encloses_no_branch_that_depends_on_it(impl, check):
    """A branch that computes with the first operation, and whose result the second needs, stands between them too."""

    def text(inside):
        return scheduled(
            line("%x", "tessera.graph.relu", {"%A": SQUARE}, SQUARE),
            '%r = "tessera.graph.if"(%c) ({',
            "  " + line("%s", "tessera.graph.softmax", {inside: SQUARE}, SQUARE),
            f'  "tessera.graph.yield"(%s) : ({SQUARE}) -> ()',
            "}, {",
            f'  "tessera.graph.yield"(%B) : ({SQUARE}) -> ()',
            f"}}) : (bool) -> {SQUARE}",
            line("%y", "tessera.graph.add", {"%x": SQUARE, "%r": SQUARE}, SQUARE),
            line("%f", "tessera.schedule.fuse", {"%x": SQUARE, "%y": SQUARE}, SQUARE),
            returning(f=SQUARE),
            takes=f"{OPERANDS}, %c: bool",
            gives=SQUARE,
        )

    judge(impl, check, text("%A"), text("%x"))


@clause("LANG-11-06", "LANG-06.2-01")
def test_a_fusion_does_not_cross_a_barrier(impl, check):
    """Two operations with a barrier between them are not one; without it they may be."""

    def text(*between):
        return scheduled(
            line("%x", "tessera.graph.relu", {"%A": SQUARE}, SQUARE),
            *between,
            line("%y", "tessera.graph.relu", {"%x": SQUARE}, SQUARE),
            line("%f", "tessera.schedule.fuse", {"%x": SQUARE, "%y": SQUARE}, SQUARE),
            returning(f=SQUARE),
            takes=OPERANDS,
            gives=SQUARE,
        )

    judge(impl, check, text(), text('"tessera.graph.barrier"() : () -> ()'))


@clause("LANG-11-06")
@pytest.mark.parametrize("wrong", ["%q", "%t"], ids=["nothing", "itself"])
def test_a_schedule_is_about_values_before_it(impl, check, wrong):
    """A value that is defined nowhere, or by the operation itself, is not scheduled."""

    def text(value):
        tiled = line("%t", "tessera.schedule.tile", {value: SQUARE}, SQUARE, m=4, n=4)
        return scheduled(
            line("%y", "tessera.graph.relu", {"%A": SQUARE}, SQUARE),
            tiled,
            returning(t=SQUARE),
            takes=OPERANDS,
            gives=SQUARE,
        )

    judge(impl, check, text("%y"), text(wrong), category=("types", "schedule"))


# Layout casts (6.3; AMB-LANG-67)


def cast(producer="tessera.graph.matmul", consumer="tessera.graph.relu", to="col_major", **attributes):
    """A value that is made, cast and read."""
    there = matrix(8, 8, layout=to)
    operands = ("%A", "%B") if producer == "tessera.graph.matmul" else ("%A",)
    lines = [line("%p", producer, dict.fromkeys(operands, SQUARE), SQUARE)] if producer else []
    return scheduled(
        *lines,
        line("%c", "tessera.schedule.layout_cast", {"%p" if producer else "%A": SQUARE}, there, to=to, **attributes),
        line("%y", consumer, {"%c": there}, there),
        returning(y=there),
        takes=OPERANDS,
        gives=there,
    )


@clause("LANG-06.3-02")
@pytest.mark.parametrize("producer", ["tessera.graph.softmax", None], ids=["softmax", "argument"])
@pytest.mark.parametrize("to", ["col_major", "blocked(bm=2, bn=4)"], ids=["col-major", "blocked"])
def test_a_layout_cast_without_support_is_a_copy(impl, check, producer, to):
    """A producer that writes row_major only, and the caller, leave a materialized copy or a refusal."""
    texts = [cast(producer, to=to, materialize=copied) for copied in (True, False)]
    judge(impl, check, *texts, category="layouts")


@clause("LANG-06.3-02")
@pytest.mark.parametrize("producer", ["tessera.graph.softmax", None], ids=["softmax", "argument"])
def test_a_layout_cast_is_no_copy_unless_it_says_so(impl, check, producer):
    """Without the attribute `materialize` the producer would have to write the layout (AMB-LANG-213)."""
    judge(impl, check, cast(producer, materialize=True), cast(producer), category="layouts")


@clause("LANG-06.3-02", "LANG-11-05")
@pytest.mark.parametrize("materialize", [True, False])
def test_the_consumer_of_a_cast_takes_its_layout(impl, check, materialize):
    """A transform of rows takes row_major, as any operator that names no layouts (AMB-LANG-67)."""
    texts = [
        cast(consumer="tessera.graph.softmax", to=to, materialize=materialize) for to in ("row_major", "col_major")
    ]
    judge(impl, check, *texts, category="layouts")
