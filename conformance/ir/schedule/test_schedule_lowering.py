"""From Graph IR to Schedule IR: tiling, fusion and prefetch are introduced (language spec, sections 8.2 and 13.1)."""

import pytest

from tessera_conformance.chapters.ir.kit.level_programs import lowered, results_of_text, verified
from tessera_conformance.chapters.ir.kit.programs import tensor_type
from tessera_conformance.dsl import program, returning
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.oracle import FUNCTIONS
from tessera_conformance.vectors.building import counted

pytestmark = feature("lower-schedule")

SAMPLE = """\
module demo {{
  func mm(A: tensor<1024x1024xbf16>, B: tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16> {{
    let C: tensor<1024x1024xbf16> = op.matmul(A, B);
    {}
    return C;
  }}
}}
"""
SIZES = {"m": 128, "n": 128, "k": 64}
TILED = "schedule.tile(C) @{m=128, n=128, k=64};"
PIPELINED = "schedule.pipeline(C) @{double_buffer=true, depth=3};"
PREFIX = "tessera.schedule."


def picked(operation, *names):
    """Some attributes of an operation."""
    return {name: operation["attributes"].get(name) for name in names}


def behind(module, value):
    """The values that schedule operations hand on as `value`, down to what was computed."""
    makers = {result: operation for operation in module.operations() for result in operation["results"]}
    actual = [value]
    while actual[-1] in makers and makers[actual[-1]]["name"].strip('"').startswith(PREFIX):
        actual.append(makers[actual[-1]]["operands"][-1])
    return actual


@clause("LANG-13.1-05")
@pytest.mark.parametrize(
    ("directive", "schedule"), [(TILED, {}), ("", {"tile": [128, 128, 64]})], ids=["directed", "asked-for"]
)
def test_the_sample_is_tiled(impl, check, directive, schedule):
    """The product of section 13.1 has one tile operation, with the sizes of the text."""
    actual = lowered(impl, check, SAMPLE.format(directive), "schedule", schedule=schedule)
    tiles = actual.operations(PREFIX + "tile")
    check.equal([picked(tile, *SIZES) for tile in tiles], [SIZES], "the tiles of the sample")
    products = actual.operations("tessera.graph.matmul")
    check.equal(len(products), 1, "the number of products")
    check.true(products[0]["results"][0] in behind(actual, tiles[0]["operands"][0]), "it tiles the product", tiles)
    types = [tensor_type(text) for tile in tiles for text in (*tile["operand_types"], *tile["result_types"])]
    check.equal(
        [(type_.shape, type_.dtype) for type_ in types], [(("1024", "1024"), "bf16")] * 2, "the types of the tile"
    )


@clause("LANG-13.1-08")
@pytest.mark.parametrize(
    ("directive", "schedule", "double_buffer"),
    [(f"{TILED} {PIPELINED}", {}, True), ("", {"tile": [128, 128, 64], "depth": 3}, None)],
    ids=["directed", "asked-for"],
)
def test_the_sample_is_pipelined(impl, check, directive, schedule, double_buffer):
    """The tiled product is pipelined three deep, with double buffering where the text asks for it (AMB-LANG-33)."""
    actual = lowered(impl, check, SAMPLE.format(directive), "schedule", schedule=schedule)
    pipelines = actual.operations(PREFIX + "pipeline")
    check.equal([pipeline["attributes"].get("depth") for pipeline in pipelines], [3], "the depths of its pipelines")
    if double_buffer is not None:
        check.equal(pipelines[0]["attributes"].get("double_buffer"), double_buffer, "double buffering")
    tiles = [result for operation in actual.operations(PREFIX + "tile") for result in operation["results"]]
    below = behind(actual, pipelines[0]["operands"][0])
    check.true(any(tile in below for tile in tiles), "it pipelines what is tiled", actual.text)


@clause("LANG-08.2-02")
@pytest.mark.parametrize(
    ("dtype", "extents"),
    [("bf16", (1024, 1024, 1024)), ("fp32", (300, 200, 100)), ("fp64", (65, 33, 17))],
    ids=["large", "odd", "small"],
)
def test_a_product_is_tiled(impl, check, dtype, extents):
    """Without a directive a product gets a tile operation with sizes of at least one."""
    m, n, k = extents
    source = returning("A @ B", f"A: tensor<{m}x{k}x{dtype}>, B: tensor<{k}x{n}x{dtype}>")
    actual = lowered(impl, check, source, "schedule")
    (product,) = actual.operations("tessera.graph.matmul")
    tiles = [
        operation
        for operation in actual.operations(PREFIX + "tile")
        if product["results"][0] in behind(actual, operation["operands"][0])
    ]
    check.true(bool(tiles), "the product is tiled", actual.text)
    sizes = [tile["attributes"][name] for tile in tiles for name in ("m", "n")]
    check.true(all(size >= 1 for size in sizes), "sizes of at least one", sizes)


@clause("LANG-08.2-02")
@pytest.mark.parametrize("sizes", [(64, 32, 16), (16, 128, 8), (1, 1, 1)], ids=["one", "another", "elements"])
def test_the_sizes_that_are_asked_for_are_taken(impl, check, sizes):
    """The sizes divide the extents of the product."""
    source = returning("A @ B", "A: tensor<256x128xbf16>, B: tensor<128x256xbf16>")
    actual = lowered(impl, check, source, "schedule", schedule={"tile": list(sizes)})
    tiles = [picked(operation, "m", "n", "k") for operation in actual.operations(PREFIX + "tile")]
    check.equal(tiles, [dict(zip("mnk", sizes, strict=True))], "the tiles")


RECTIFIED = feature("tensor-ops")
FUSIBLE = [
    pytest.param("(A + B) * A", "tessera.graph.add", "tessera.graph.multiply", id="product"),
    pytest.param("op.relu(A @ B)", "tessera.graph.matmul", "tessera.graph.relu", marks=RECTIFIED, id="epilogue"),
    pytest.param("op.relu(A + B)", "tessera.graph.add", "tessera.graph.relu", marks=RECTIFIED, id="chain"),
]


@clause("LANG-08.2-13")
@pytest.mark.parametrize(("expression", "first", "second"), FUSIBLE)
def test_what_follows_a_computation_is_fused_into_it(impl, check, expression, first, second):
    """A fusion of the first operation's value and the second's, in that order."""
    matrix = "tensor<64x64xfp32>"
    actual = lowered(impl, check, returning(expression, f"A: {matrix}, B: {matrix}"), "schedule")
    (before,), (after,) = actual.operations(first), actual.operations(second)
    fusions = [
        [behind(actual, value) for value in operation["operands"]] for operation in actual.operations(PREFIX + "fuse")
    ]
    expected = [
        last
        for *others, last in fusions
        if any(before["results"][0] in other for other in others) and after["results"][0] in last
    ]
    check.true(bool(expected), "both are in one fusion", actual.text)


@feature("tensor-ops")
@clause("LANG-08.2-13")
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_a_chain_of_three_is_fused_on_every_target(impl, check, target, dtype):
    """A fusion that the value of each operation but the last goes into."""
    matrix = f"tensor<64x48x{dtype}>"
    source = returning("op.relu((A + B) * A)", f"A: {matrix}, B: {matrix}")
    actual = lowered(impl, check, source, "schedule", target)
    chain = [actual.operations(f"tessera.graph.{name}")[0]["results"][0] for name in ("add", "multiply")]
    fused = {
        value
        for operation in actual.operations(PREFIX + "fuse")
        for operand in operation["operands"]
        for value in behind(actual, operand)
    }
    check.equal([value in fused for value in chain], [True, True], "sum and product are in a fusion")


@clause("LANG-08.2-14")
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_the_operands_of_a_product_are_prefetched(impl, check, target):
    """Both are read behind a prefetch, to memory that there is."""
    actual = lowered(impl, check, SAMPLE.format(""), "schedule", target)
    (product,) = actual.operations("tessera.graph.matmul")
    fetched = {operation["results"][0]: operation for operation in actual.operations(PREFIX + "prefetch")}
    for operand in product["operands"]:
        passed = [value for value in behind(actual, operand) if value in fetched]
        check.true(bool(passed), f"{operand} is prefetched", actual.text)
        scope = fetched[passed[0]]["attributes"]["scope"]
        check.true(scope in ("shared", "global"), "a scope of section 6.2", scope)


@clause("LANG-08.2-14")
@pytest.mark.parametrize("scope", ["shared", "global"])
def test_the_scope_that_is_asked_for_is_taken(impl, check, scope):
    """Every prefetch of the program has the scope that was asked for."""
    actual = lowered(impl, check, SAMPLE.format(""), "schedule", schedule={"prefetch": scope})
    scopes = [operation["attributes"]["scope"] for operation in actual.operations(PREFIX + "prefetch")]
    check.true(bool(scopes) and set(scopes) == {scope}, f"prefetches to {scope} memory", scopes)


@clause("LANG-03.1-03")
def test_an_extent_that_is_not_known_is_scheduled(impl, check):
    """Named and unknown dimensions are legal at Schedule IR, and stay in the types of the function."""
    source = program(
        "return A @ B, op.softmax(C);", parameters="A: tensor<MxKxbf16>, B: tensor<KxNxbf16>, C: tensor<?x8xfp32>"
    )
    graph, scheduled = (lowered(impl, check, source, to).functions["f"] for to in ("graph", "schedule"))
    check.equal(scheduled.arguments, graph.arguments, "the arguments")
    check.equal(scheduled.results, graph.results, "the results")


PROGRAMS = {
    "product": "return A @ B;",
    "epilogue": "let C: tensor<20x18xbf16> = A @ B; return op.relu(C) * 2.0;",
    "rows": "return op.softmax(A @ B);",
    "branch": "let C: tensor<20x18xbf16> = A @ B; if (C[0, 0] > 0.0) { C = -C; } return C;",
}


@feature("tensor-ops")
@clause("LANG-08.2-01")
@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS)
def test_lowering_keeps_the_types_of_a_function(impl, check, body):
    """Arguments and results are those of Graph IR."""
    source = program(body, parameters="A: tensor<20x24xbf16>, B: tensor<24x18xbf16>")
    graph, actual = (lowered(impl, check, source, to).functions["f"] for to in ("graph", "schedule"))
    check.equal(actual.arguments, graph.arguments, "the arguments")
    check.equal(actual.results, graph.results, "the results")


@feature("schedule-ir-text")
@level("strict")
@clause("LANG-08.2-01")
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize("schedule", [{}, {"tile": [16, 16, 8], "depth": 3}], ids=["own", "asked-for"])
def test_what_lowering_prints_is_legal_and_computes_the_same(impl, check, target, schedule):
    """The text of a scheduled product verifies, and executed it gives the exact fold."""
    a, b = counted("bf16", (20, 24), 7120, (-6, 6)), counted("bf16", (24, 18), 7121, (-6, 6))
    source = returning("A @ B", "A: tensor<20x24xbf16>, B: tensor<24x18xbf16>")
    text = lowered(impl, check, source, "schedule", target, schedule).text
    check.accepts(verified(impl, text, "schedule", target))
    outputs = results_of_text(impl, check, text, "schedule", target, A=a, B=b)
    check.bits(outputs[0], FUNCTIONS["oracle.matmul"](a, b))


LONG_ROWS = {
    "softmax": ("op.softmax(A)", "bf16", "tensor<32x8192xbf16>"),
    "sum": ("op.sum(A) @{axis=-1}", "bf16", "tensor<32xbf16>"),
    "max": ("op.max(A) @{axis=-1}", "int8", "tensor<32xint8>"),
    "argmax": ("op.argmax(A) @{axis=-1}", "fp16", "tensor<32xint32>"),
}


@feature("schedule-ir-text", "tensor-ops")
@clause("LANG-08.2-01", "LANG-11-09")
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize(("expression", "dtype", "result"), LONG_ROWS.values(), ids=LONG_ROWS)
def test_a_schedule_of_its_own_for_long_narrow_rows_is_legal(impl, check, target, expression, dtype, result):
    """Rows of 8,192 narrow elements fill a thread's registers long before shared memory."""
    source = returning(expression, f"A: tensor<32x8192x{dtype}>", result)
    check.accepts(verified(impl, lowered(impl, check, source, "schedule", target).text, "schedule", target))
