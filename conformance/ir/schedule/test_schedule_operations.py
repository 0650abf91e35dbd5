"""The operations of Schedule IR as text: what they take, and that they hand on a value unchanged (section 6.1).

Whether a schedule of a whole function is legal is in `test_schedule_legality`.
"""

import pytest

from tessera_conformance.chapters.ir.kit.kernel_texts import line, returning, scheduled
from tessera_conformance.chapters.ir.kit.level_programs import results_of_text, verified
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Returned

pytestmark = feature("schedule-ir-text")

LEFT, RIGHT, RESULT = "tensor<4x5xint32>", "tensor<5x6xint32>", "tensor<4x6xint32>"
TAKES = f"%A: {LEFT}, %B: {RIGHT}"
COLUMNS = "tensor<4x6xint32; layout=col_major>"
PRODUCT = line("%p", "tessera.graph.matmul", {"%A": LEFT, "%B": RIGHT}, RESULT, accum="int32")
TWICE = line("%q", "tessera.graph.add", {"%p": RESULT, "%p ": RESULT}, RESULT).replace("%p ", "%p")

A = [[3 * row - column for column in range(5)] for row in range(4)]
B = [[row * column - 7 for column in range(6)] for row in range(5)]
C = [[sum(A[i][k] * B[k][j] for k in range(5)) for j in range(6)] for i in range(4)]
INPUTS = {"A": tensor_of("int32", A), "B": tensor_of("int32", B)}


def times(factor, values=C):
    """A matrix whose elements are multiplied."""
    return tensor_of("int32", [[factor * value for value in row] for row in values])


def doubled(value, type_=RESULT):
    """The sum of a value and itself, and its return."""
    added = f'%r = "tessera.graph.add"({value}, {value}) : ({type_}, {type_}) -> {type_}'
    return added, returning(r=type_)


def handed_on(name, gives=RESULT, operands=("%p",), **attributes):
    """A product, an operation about it, and the double of what that hands on."""
    about = line("%s", f"tessera.schedule.{name}", dict.fromkeys(operands, RESULT), gives, **attributes)
    return scheduled(PRODUCT, TWICE, about, *doubled("%s", gives), takes=TAKES, gives=gives)


def judge(impl, check, text, expected):
    """The text is legal, and executed at Schedule IR it gives this."""
    check.accepts(verified(impl, text, "schedule"))
    outputs = results_of_text(impl, check, text, "schedule", **INPUTS)
    check.equal(len(outputs), 1, "the number of results")
    check.bits(outputs[0], expected)


FORMS = {
    "tile": ("LANG-06.1-01", "tile", {"m": 2, "n": 3, "k": 5}),
    "tile-without-k": ("LANG-06.1-01", "tile", {"m": 4, "n": 2}),
    "tile-with-padding": ("LANG-06.1-01", "tile", {"m": 3, "n": 4, "k": 2, "pad": [2, 2, 1]}),
    "pipeline": ("LANG-06.1-03", "pipeline", {"double_buffer": True, "depth": 3}),
    "pipeline-of-one": ("LANG-06.1-03", "pipeline", {"depth": 1}),
    "pipeline-as-it-comes": ("LANG-06.1-03", "pipeline", {}),
    "pipeline-of-two-buffers": ("LANG-06.1-03", "pipeline", {"double_buffer": True, "depth": 2}),
    "prefetch-shared": ("LANG-06.1-04", "prefetch", {"scope": "shared", "align": 32}),
    "prefetch-global": ("LANG-06.1-04", "prefetch", {"scope": "global", "align": 16}),
    "layout-cast": ("LANG-06.1-05", "layout_cast", {"to": "row_major"}),
}


@pytest.mark.parametrize(
    ("name", "attributes"),
    [pytest.param(name, given, id=form, marks=clause(number)) for form, (number, name, given) in FORMS.items()],
)
def test_an_operation_hands_its_value_on(impl, check, name, attributes):
    """With the attributes of the text, the value of a product is the same behind it."""
    judge(impl, check, handed_on(name, **attributes), times(2))


@clause("LANG-06.1-05")
def test_a_copy_in_another_layout_has_the_same_elements(impl, check):
    """A materialized cast to col_major, doubled there."""
    judge(impl, check, handed_on("layout_cast", gives=COLUMNS, to="col_major", materialize=True), times(2))


@clause("LANG-06.1-02")
@pytest.mark.parametrize(("operands", "factor"), [(("%p", "%q"), 4), (("%q", "%p"), 2)], ids=["down", "up"])
def test_a_fusion_gives_its_last_value(impl, check, operands, factor):
    """A product and its double may be fused in either order (AMB-LANG-81)."""
    judge(impl, check, handed_on("fuse", operands=operands), times(factor))


@clause("LANG-06.1-01", "LANG-06.1-03", "LANG-06.1-04")
def test_operations_take_results_of_other_operations(impl, check):
    """Staged operands, a tiled and pipelined product, as lowering makes them."""
    text = scheduled(
        line("%a", "tessera.schedule.prefetch", {"%A": LEFT}, LEFT, scope="shared", align=32),
        line("%b", "tessera.schedule.prefetch", {"%B": RIGHT}, RIGHT, scope="shared"),
        line("%p", "tessera.graph.matmul", {"%a": LEFT, "%b": RIGHT}, RESULT, accum="int32"),
        line("%t", "tessera.schedule.tile", {"%p": RESULT}, RESULT, m=2, n=2, k=1),
        line("%s", "tessera.schedule.pipeline", {"%t": RESULT}, RESULT, double_buffer=True, depth=3),
        *doubled("%s"),
        takes=TAKES,
        gives=RESULT,
    )
    judge(impl, check, text, times(2))


ANYTHING = ("schedule", "types", "shapes", "layouts")


def form(identifier, number, name, legal, illegal, categories=ANYTHING):
    """A case of attributes of which one is right and one is wrong."""
    return pytest.param(name, legal, illegal, categories, id=identifier, marks=clause(number))


@pytest.mark.parametrize(
    ("name", "legal", "illegal", "categories"),
    [
        form("tile-without-n", "LANG-06.1-01", "tile", {"m": 2, "n": 2}, {"m": 2}),
        form("tile-unknown", "LANG-06.1-01", "tile", {"m": 2, "n": 2, "k": 1}, {"m": 2, "n": 2, "q": 1}),
        form("tile-kind", "LANG-06.1-01", "tile", {"m": 2, "n": 2}, {"m": 2, "n": "2"}),
        form("pipeline-unknown", "LANG-06.1-03", "pipeline", {"depth": 2}, {"deep": 2}),
        form("pipeline-kind", "LANG-06.1-03", "pipeline", {"depth": 2}, {"depth": 2.5}),
        form(
            "buffer-kind",
            "LANG-06.1-03",
            "pipeline",
            {"double_buffer": True, "depth": 2},
            {"double_buffer": "yes", "depth": 2},
        ),
        form("prefetch-unknown", "LANG-06.1-04", "prefetch", {"scope": "shared"}, {"scoped": "shared"}),
        form("scope-kind", "LANG-06.1-04", "prefetch", {"scope": "shared"}, {"scope": 1}),
        form(
            "align-kind",
            "LANG-06.1-04",
            "prefetch",
            {"scope": "shared", "align": 32},
            {"scope": "shared", "align": "32"},
        ),
        form("cast-to-nothing", "LANG-06.1-05", "layout_cast", {"to": "row_major"}, {}),
        form(
            "unknown-layout",
            "LANG-06.1-05",
            "layout_cast",
            {"to": "row_major"},
            {"to": "diagonal"},
            ("layouts", "types"),
        ),
    ],
)
def test_other_attributes_are_refused(impl, check, name, legal, illegal, categories):
    """A missing or unknown attribute, or one of another kind, is refused at its place."""
    check.accepts(verified(impl, handed_on(name, **legal), "schedule"))
    check.rejects(verified(impl, handed_on(name, **illegal), "schedule"), category=categories, at_line=6)


@pytest.mark.parametrize(
    ("name", "legal", "illegal"),
    [
        pytest.param("tile", ("%p",), ("%p", "%q"), id="tile-of-two", marks=clause("LANG-06.1-01")),
        pytest.param("fuse", ("%p", "%q"), ("%p",), id="fuse-of-one", marks=clause("LANG-06.1-02")),
        pytest.param("fuse", ("%p", "%q"), (), id="fuse-of-none", marks=clause("LANG-06.1-02")),
        pytest.param("pipeline", ("%p",), (), id="pipeline-of-none", marks=clause("LANG-06.1-03")),
        pytest.param("prefetch", ("%p",), ("%p", "%q"), id="prefetch-of-two", marks=clause("LANG-06.1-04")),
        pytest.param("layout_cast", ("%p",), ("%p", "%q"), id="cast-of-two", marks=clause("LANG-06.1-05")),
    ],
)
def test_other_numbers_of_operands_are_refused(impl, check, name, legal, illegal):
    """One value each, two values of a fusion (AMB-LANG-81)."""
    attributes = {"tile": {"m": 2, "n": 2}, "prefetch": {"scope": "shared"}, "layout_cast": {"to": "row_major"}}
    given = attributes.get(name, {})
    check.accepts(verified(impl, handed_on(name, operands=legal, **given), "schedule"))
    refused = verified(impl, handed_on(name, operands=illegal, **given), "schedule")
    check.reading("AMB-LANG-81", "variadic", name == "fuse" and illegal != () and isinstance(refused, Returned))
    check.rejects(refused, category=("types", "schedule", "syntax"), at_line=6)


@pytest.mark.parametrize(
    ("name", "attributes", "gives", "categories"),
    [
        pytest.param(
            "tile", {"m": 2, "n": 2}, "tensor<4x2xint32>", ("shapes", "types"), id="tile", marks=clause("LANG-06.1-01")
        ),
        pytest.param(
            "pipeline",
            {"depth": 2},
            "tensor<4x6xint64>",
            ("types", "shapes"),
            id="pipeline",
            marks=clause("LANG-06.1-03"),
        ),
        pytest.param(
            "prefetch",
            {"scope": "shared"},
            "tensor<6x4xint32>",
            ("shapes", "types"),
            id="prefetch",
            marks=clause("LANG-06.1-04"),
        ),
        pytest.param(
            "layout_cast",
            {"to": "row_major"},
            COLUMNS,
            ("layouts", "types", "shapes"),
            id="cast",
            marks=clause("LANG-06.1-05"),
        ),
    ],
)
def test_the_result_has_the_type_of_the_value(impl, check, name, attributes, gives, categories):
    """A schedule changes no shape and no dtype, and a cast gives the layout that it names."""
    check.accepts(verified(impl, handed_on(name, **attributes), "schedule"))
    check.rejects(
        verified(impl, handed_on(name, gives=gives, **attributes), "schedule"), category=categories, at_line=6
    )
