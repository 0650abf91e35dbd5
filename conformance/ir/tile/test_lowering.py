"""Lowering to Tile IR: loop nests become blocks and warps, tiles shared memory (language spec, 3.1, 8.2, 13.1)."""

from __future__ import annotations

import re
from math import prod

import pytest

from tessera_conformance.chapters.ir.kit.level_programs import (
    BOTH_VENDORS,
    SAMPLE,
    WARPS,
    lowered,
    results_at,
    results_of_text,
    verified,
)
from tessera_conformance.dsl import program, returning, tensor_of
from tessera_conformance.marks import clause, feature

SCHEDULE = {"tile": [128, 128, 64], "depth": 3}
MEMREF = re.compile(r"(?:!tessera\.)?memref<((?:\d+x)+)(\w+)>\[addrspace=(\w+)\]")


def memrefs(operations):
    """Shape, dtype and address space of the memrefs that operations give."""
    match = [MEMREF.fullmatch(operation["result_types"][0].replace(" ", "")) for operation in operations]
    return [
        (tuple(map(int, allocation[1].rstrip("x").split("x"))), allocation[2], allocation[3])
        for allocation in match
        if allocation
    ]


def product(m, k, n, dtype="bf16"):
    """A func of one matrix product."""
    return returning("A @ B", f"A: tensor<{m}x{k}x{dtype}>, B: tensor<{k}x{n}x{dtype}>", f"tensor<{m}x{n}x{dtype}>")


@feature("lower-tile")
@clause("LANG-13.1-06", "LANG-08.2-04")
@pytest.mark.parametrize("depth", [1, 3])
def test_the_sample_stages_a_in_tiles_of_128x64(impl, check, depth):
    """Shared memory of bf16, a tile for each stage of the pipeline: dimensions in front count them (AMB-LANG-252)."""
    tile = lowered(impl, check, SAMPLE, "tile", schedule={**SCHEDULE, "depth": depth})
    stages(check, tile, (128, 64), depth)


@feature("lower-tile")
@clause("LANG-13.1-09", "LANG-08.2-04")
def test_the_sample_stages_b_in_tiles_of_64x128(impl, check):
    """B is staged as A is, with k along the rows."""
    stages(check, lowered(impl, check, SAMPLE, "tile", schedule=SCHEDULE), (64, 128), 3)


def stages(check, tile, shape, depth):
    """Check for as many shared tiles of this shape as the pipeline is deep, in one allocation or several."""
    actual = memrefs(tile.operations("tessera.tile.shared.alloc"))
    rooms = [prod(held[:-2]) for held, dtype, space in actual if (held[-2:], dtype, space) == (shape, "bf16", "shared")]
    once = "exactly memref<128x64xbf16>, once"
    alike = [allocation for allocation in actual if allocation[0][-2:] == shape]
    check.reading("AMB-LANG-252", once, depth > 1 and alike == [(shape, "bf16", "shared")])
    check.equal(sum(rooms), depth, f"the number of shared tiles of {shape[0]}x{shape[1]} in {actual}")


@feature("lower-tile")
@clause("LANG-13.1-10", "LANG-08.2-03")
def test_the_sample_multiplies_fragments_of_16x16x16(impl, check):
    """Every mma.sync is one, accumulates in fp32, and names the operands' dtype in its type (AMB-LANG-34)."""
    products = lowered(impl, check, SAMPLE, "tile", schedule=SCHEDULE).operations("tessera.tile.mma.sync")
    check.true(len(products) > 0, "there is an mma.sync")
    for product in products:
        stated = {name: product["attributes"].get(name) for name in ("m", "n", "k", "accum")}
        check.equal(stated, {"m": 16, "n": 16, "k": 16, "accum": "fp32"}, "what is multiplied")
        types = {text.replace(" ", "").removeprefix("!tessera.") for text in product["result_types"]}
        check.equal(types, {"fragment<16,16,16,bf16>"}, "the type of the fragments")


NESTS = {
    "product": (product(64, 32, 48), [16, 16, 16], (3, 4, 1)),
    "wide-tiles": (product(64, 32, 48), [32, 16, 16], (3, 2, 1)),
    "tails": (product(33, 20, 17), [16, 16, 16], (2, 3, 1)),
    "one-tile": (product(16, 64, 16), [16, 16, 16], (1, 1, 1)),
    "batch": (
        returning("op.matmul(A, B)", "A: tensor<5x32x16xbf16>, B: tensor<5x16x48xbf16>", "tensor<5x32x48xbf16>"),
        [16, 16, 16],
        (3, 2, 5),
    ),
}
"""A program, its tile, and how many tiles its result has along n, m and the batch."""


@feature("lower-tile")
@clause("LANG-08.2-03")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize(("source", "tile", "tiles"), NESTS.values(), ids=NESTS)
def test_the_tiles_of_a_nest_are_the_blocks_of_a_grid(impl, check, source, tile, tiles, target):
    """The host launches one kernel: a block for each tile of the result, of whole warps of the target."""
    actual = lowered(impl, check, source, "tile", target, {"tile": tile})
    launches = [operation["attributes"]["kernel"] for operation in actual.functions["f"].named("tessera.tile.launch")]
    check.equal(launches, actual.kernels, "the kernels that are launched")
    check.equal(len(launches), 1, "the number of kernels")
    check.equal(actual.functions["f"].named("tessera.graph.matmul"), [], "what is left of the product on the host")
    entry = actual.attributes[launches[0]]
    check.equal(prod(entry["grid"]), prod(tiles), "the number of blocks")
    check.equal(prod(entry["block"]) % WARPS[target], 0, "the threads beyond whole warps")
    check.equal(entry["target"], target, "the target")
    named = {operation["name"].strip('"') for operation in actual.functions[launches[0]].operations}
    positions = {"tessera.tile.warp_id", "tessera.tile.thread_id", "tessera.tile.lane_id"}
    check.true(bool(named & positions), "threads ask which they are", sorted(named))
    check.equal("tessera.tile.block_id" in named, prod(tiles) > 1, "blocks ask which they are")


@feature("lower-tile")
@clause("LANG-08.2-04")
@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_a_product_goes_through_shared_memory(impl, check, target):
    """Allocations, writes to them, barriers and reads are operations of the kernel, whose bytes are declared."""
    actual = lowered(impl, check, product(64, 32, 48), "tile", target, {"tile": [32, 16, 16]})
    (name,) = actual.kernels
    operations = actual.functions[name].operations
    shared = memrefs(actual.functions[name].named("tessera.tile.shared.alloc"))
    check.true(len(shared) >= 2, "both operands have a tile", shared)
    check.true(actual.attributes[name]["smem_bytes"] > 0, "shared memory is declared", actual.attributes[name])
    for names in ({"tessera.tile.cp.async", "tessera.tile.store"}, {"tessera.tile.barrier"},
                  {"tessera.tile.ldmatrix"}):  # fmt: skip
        check.true(
            any(operation["name"].strip('"') in names for operation in operations), f"one of {sorted(names)} is there"
        )


def gradient(m, k, n, dtype="bf16"):
    """A func of the two gradients of a product."""
    parameters = f"A: tensor<{m}x{k}x{dtype}>, B: tensor<{k}x{n}x{dtype}>"
    return program(f"let Y: tensor<{m}x{n}x{dtype}> = A @ B;", "return op.grad(Y, A, B);", parameters=parameters)


@feature("lower-tile")
@clause("LANG-08.2-03")
@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_a_gradient_becomes_kernels(impl, check, target):
    """The products that it consists of are launched; neither they nor the gradient are left to the host
    (AMB-LANG-215)."""
    actual = lowered(impl, check, gradient(32, 16, 48), "tile", target, {"tile": [16, 16, 16]})
    host = actual.functions["f"]
    launches = [operation["attributes"]["kernel"] for operation in host.named("tessera.tile.launch")]
    check.true(len(launches) > 0, "there are kernels", actual.kernels)
    check.equal(sorted(set(launches) - set(actual.kernels)), [], "launches of no kernel")
    for name in ("tessera.graph.grad", "tessera.graph.matmul"):
        check.equal(host.named(name), [], f"{name} on the host")


@feature("lower-tile", "tile-ir-text")
@clause("LANG-08.2-03", "LANG-08.2-01")
@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_a_lowered_gradient_is_that_of_the_program(impl, check, target):
    """The sum of A times B gives A's gradient the sums of B's rows, and B's gradient those of A's columns."""
    a, b = [[i - 2 * j for j in range(7)] for i in range(5)], [[3 * i - j for j in range(4)] for i in range(7)]
    text = lowered(impl, check, gradient(5, 7, 4, "fp32"), "tile", target, {"tile": [16, 16, 16]}).text
    given = {"A": tensor_of("fp32", a), "B": tensor_of("fp32", b)}
    outputs = results_of_text(impl, check, text, "tile", target, **given)
    check.equal(len(outputs), 2, "the number of gradients")
    check.bits(outputs[0], tensor_of("fp32", [[sum(row) for row in b]] * 5))
    check.bits(outputs[1], tensor_of("fp32", [[sum(column)] * 4 for column in zip(*a, strict=True)]))


@feature("lower-tile", "tile-ir-text")
@clause("LANG-08.2-03", "LANG-08.2-04")
@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_what_is_lowered_is_legal_tile_ir(impl, check, target):
    """The text verifies for its target, and its host function gives the product."""
    a, b, expected = whole_numbers(20, 24, 18)
    text = lowered(impl, check, product(20, 24, 18), "tile", target, {"tile": [16, 16, 16]}).text
    check.accepts(verified(impl, text, "tile", target))
    outputs = results_of_text(impl, check, text, "tile", target, A=a, B=b)
    check.bits(outputs[0], expected)


def whole_numbers(m, k, n, dtype="bf16"):
    """Matrices of small whole numbers, and their product, whose elements bf16 has."""
    a = [[(3 * i + 5 * j + i * j) % 5 - 2 for j in range(k)] for i in range(m)]
    b = [[(7 * i + 2 * j + i * j) % 3 - 1 for j in range(n)] for i in range(k)]
    columns = [*zip(*b, strict=True)]
    c = [[sum(x * y for x, y in zip(row, column, strict=True)) for column in columns] for row in a]
    return tuple(tensor_of(dtype, values) for values in (a, b, c))


EXTENTS = [(16, 16, 16), (1, 1, 1), (17, 33, 15), (31, 5, 32)]


@feature("execute-tile")
@clause("LANG-08.2-03", "LANG-08.2-04")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("extents", EXTENTS, ids=lambda extents: "x".join(map(str, extents)))
def test_a_product_of_any_size_is_computed_in_tiles(impl, check, extents, depth, target):
    """Tiles of 16 that divide the extents or do not, staged once or three deep."""
    a, b, expected = whole_numbers(*extents)
    schedule = {"tile": [16, 16, 16], "depth": depth}
    actual = results_at(impl, check, product(*extents), "tile", target, schedule, A=a, B=b)
    check.bits(actual[0], expected)


@feature("execute-tile")
@clause("LANG-08.2-03")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("count", [1, 31, 33, 1000])
def test_maps_and_rows_of_any_size_are_computed(impl, check, count, target):
    """An elementwise nest and a sum, whose extents divide by nothing."""
    source = program(
        "let Y: tensor<3xNxint32> = X * X + X;".replace("N", str(count)),
        "return Y, op.sum(Y) @{axis=1};",
        parameters=f"X: tensor<3x{count}xint32>",
    )
    x = [[i * j % 11 - 5 for j in range(count)] for i in range(1, 4)]
    y = [[element * element + element for element in row] for row in x]
    actual = results_at(impl, check, source, "tile", target, X=tensor_of("int32", x))
    check.bits(actual[0], tensor_of("int32", y))
    check.bits(actual[1], tensor_of("int32", [sum(row) for row in y]))


@feature("lower-tile")
@clause("LANG-03.1-04", "LANG-11-02")
@pytest.mark.parametrize("extent", ["?", "N"], ids=["unknown", "named"])
@pytest.mark.parametrize("expression", ["A + A", "op.softmax(A)", "A @ B"], ids=["map", "rows", "product"])
def test_unknown_dimensions_are_not_lowered_to_tiles(impl, check, expression, extent):
    """A program with one stops at Tile IR, in category shapes; with a number instead it is lowered (AMB-LANG-48)."""
    source = returning(expression, f"A: tensor<{extent}x8xfp32>, B: tensor<8x8xfp32>")
    check.accepts(impl.language.lower(source=source, to="graph"))
    check.accepts(impl.language.lower(source=source.replace(extent, "8"), to="tile"))
    check.rejects(impl.language.lower(source=source, to="tile"), category="shapes", phase="lower")


LATER_UNKNOWN = {
    "product": ("A @ B", "A: tensor<8xNxfp32>, B: tensor<Nx8xfp32>"),
    "sum": ("op.sum(A) @{axis=1}", "A: tensor<8xNxfp32>"),
    "rows": ("op.softmax(A)", "A: tensor<8xNxfp32>"),
}


@feature("lower-tile")
@clause("LANG-03.1-04", "LANG-11-02")
@pytest.mark.parametrize(("expression", "parameters"), LATER_UNKNOWN.values(), ids=LATER_UNKNOWN)
def test_an_unknown_extent_that_is_reduced_is_not_lowered_to_tiles(impl, check, expression, parameters):
    """No loop over it replaces its extent, which the result need not show (AMB-LANG-48)."""
    source = returning(expression, parameters)
    check.accepts(impl.language.lower(source=source, to="graph"))
    check.accepts(impl.language.lower(source=source.replace("N", "8"), to="tile"))
    check.rejects(impl.language.lower(source=source, to="tile"), category="shapes", phase="lower")


@feature("execute-tile")
@clause("LANG-03.1-04")
@pytest.mark.parametrize("count", [3, 40])
def test_a_program_is_specialized_to_the_shapes_that_it_runs_on(impl, check, count):
    """The same program of an unknown extent runs at Tile IR on inputs of any."""
    x = [[i - j for j in range(4)] for i in range(count)]
    expected = [[2 * element for element in row] for row in x]
    for extent in ("?", "N"):
        source = returning("A + A", f"A: tensor<{extent}x4xint32>")
        actual = results_at(impl, check, source, "tile", A=tensor_of("int32", x))
        check.bits(actual[0], tensor_of("int32", expected))
