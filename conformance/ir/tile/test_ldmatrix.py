"""Fragments from shared memory: corner, stride, transposition and alignment (language spec, 7.1 to 7.3, 16).

What a fragment holds is read by multiplying it by the identity.
"""

from __future__ import annotations

from functools import cache

import pytest

from tessera_conformance.chapters.ir.kit.kernel_texts import KernelText, buffer, fragment
from tessera_conformance.chapters.ir.kit.level_programs import (
    BOTH_VENDORS,
    WARPS,
    buffers_after,
    fails,
    runs_if,
    verified,
)
from tessera_conformance.chapters.ir.kit.programs import accepts_if
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature

pytestmark = [feature("tile-ir-text"), clause("LANG-07.2-02")]

TYPE = fragment("bf16", 16, 16, 16)


class Staging(KernelText):
    """A kernel of some warps with shared tiles: of a matrix of bf16, and of the 16x16 identity."""

    def __init__(self, rows, columns, target="sm_90", warps=1, barrier=True, **scalars):
        lanes = warps * WARPS[target]
        parameters = {"x": buffer("bf16", rows, columns), "i": buffer("bf16", 16, 16), "y": buffer("fp32", rows, 16)}
        super().__init__({**parameters, **scalars}, block=(lanes, 1, 1), smem_bytes=32768, target=target)
        self.extents, self.lanes = (rows, columns), lanes
        self.zero, self.critical = self.constant(0), 0
        self.tile, self.one = self.staged("x", rows, columns), self.staged("i", 16, 16)
        if barrier:
            self.barrier()

    def staged(self, name, rows, columns):
        """A shared tile that all lanes fill from a buffer."""
        tile, thread, extent = self.allocate("bf16", rows, columns), self.index("thread_id"), self.constant(columns)
        count = self.constant(rows * columns)

        def copy(start):
            place = self.compute("add", start, thread)

            def move():
                row = self.compute("divide", place, extent)
                column = self.compute("subtract", place, self.compute("multiply", row, extent))
                self.store(self.load(self[name], row, column), tile, row, column)
                return ()

            self.branch(self.compute("less", place, count), move)
            return ()

        self.loop(self.zero, count, self.constant(self.lanes), copy)
        return tile

    def at(self, *corner, **attributes):
        """A fragment of the matrix."""
        indices = [self.constant(coordinate) if isinstance(coordinate, int) else coordinate for coordinate in corner]
        made = self.op("tessera.tile.ldmatrix", self.tile, *indices, gives=TYPE, **attributes)
        self.critical = self.line
        return made

    def identity(self):
        """The fragment that changes nothing."""
        return self.op("tessera.tile.ldmatrix", self.one, gives=TYPE)

    def tell(self, a, b, *corner):
        """Write the product of two fragments."""
        start = self.op("tessera.tile.fragment.zero", gives=TYPE)
        total = self.op("tessera.tile.mma.sync", a, b, start, gives=TYPE, m=16, n=16, k=16)
        self.op("tessera.tile.fragment.store", total, self["y"], *(corner or (self.zero, self.zero)))

    def inputs(self, **more):
        """A matrix without symmetry, and the identity; the result holds -1 at first."""
        return {**given(*self.extents), **more}


@cache
def given(rows, columns):
    """Return the buffers' contents before the kernel."""
    return {
        "x": tensor_of("bf16", matrix(rows, columns)),
        "i": tensor_of("bf16", [[int(row == column) for column in range(16)] for row in range(16)]),
        "y": tensor_of("fp32", [[-1] * 16] * rows),
    }


def matrix(rows, columns):
    """Whole numbers that bf16 has, no two neighbours alike."""
    return [[(37 * i + 11 * j + i * j % 13) % 251 for j in range(columns)] for i in range(rows)]


CORNERS = {
    "none": ((), {}, lambda x, i, j: x[i][j]),
    "first": ((0, 0), {}, lambda x, i, j: x[i][j]),
    "row": ((3, 0), {}, lambda x, i, j: x[i + 3][j]),
    "column": ((0, 8), {}, lambda x, i, j: x[i][j + 8]),
    "both": ((16, 16), {}, lambda x, i, j: x[i + 16][j + 16]),
    "transposed": ((0, 0), {"transpose": True}, lambda x, i, j: x[j][i]),
    "transposed-corner": ((5, 8), {"transpose": True}, lambda x, i, j: x[j + 5][i + 8]),
    "not-transposed": ((5, 8), {"transpose": False}, lambda x, i, j: x[i + 5][j + 8]),
    "stated-stride": ((2, 8), {"stride": 32}, lambda x, i, j: x[i + 2][j + 8]),
    "every-second-row": ((1, 16), {"stride": 64}, lambda x, i, j: x[2 * i + 1][j + 16]),
    "half-rows": ((0, 0), {"stride": 16}, lambda x, i, j: x[i // 2][i % 2 * 16 + j]),
    "transposed-stride": ((0, 8), {"transpose": True, "stride": 64}, lambda x, i, j: x[2 * j][i + 8]),
}
"""Corner, attributes, and which element of a matrix of 32x32 is in row i and column j of the fragment."""


@pytest.mark.parametrize("use", ["a", "b"])
@pytest.mark.parametrize(("corner", "attributes", "element"), CORNERS.values(), ids=CORNERS)
def test_a_fragment_holds_rows_a_stride_apart(impl, check, corner, attributes, element, use):
    """A fragment of A or B has rows of 16 from its corner, `stride` elements apart; transposed, columns are rows."""
    kernel = Staging(32, 32)
    loaded, identity = kernel.at(*corner, **attributes), kernel.identity()
    kernel.tell(*((loaded, identity) if use == "a" else (identity, loaded)))
    x = matrix(32, 32)
    expected = [[element(x, i, j) for j in range(16)] for i in range(16)] + [[-1] * 16] * 16
    check.bits(buffers_after(impl, check, kernel, **kernel.inputs())[2], tensor_of("fp32", expected))


@clause("LANG-07.1-01")
@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_each_warp_loads_a_fragment_of_its_own(impl, check, target):
    """Two warps, each with the corner that follows from its number."""
    kernel = Staging(32, 16, target, warps=2)
    row = kernel.compute("multiply", kernel.warp(), kernel.constant(16))
    kernel.tell(kernel.at(row, kernel.zero), kernel.identity(), row, kernel.zero)
    check.bits(buffers_after(impl, check, kernel, **kernel.inputs())[2], tensor_of("fp32", matrix(32, 16)))


BESIDES = {
    "below": ((8, 0), (9, 0), {}),
    "beside": ((0, 8), (0, 16), {}),
    "above": ((0, 0), (-1, 0), {}),
    "before": ((0, 8), (0, -8), {}),
    "stride": ((3, 0), (4, 0), {"stride": 32}),
}


@clause("LANG-08.3-01")
@pytest.mark.parametrize(("inside", "outside", "attributes"), BESIDES.values(), ids=BESIDES)
def test_a_fragment_lies_within_its_memory(impl, check, inside, outside, attributes):
    """A fragment of a tile of 24x24 that leaves the tile is refused, also where the next row follows on."""
    for corner in (inside, outside):
        kernel = Staging(24, 24)
        row, column = corner
        kernel.tell(kernel.at(row, column, **attributes), kernel.identity())
        if corner == inside:
            x = [element for row in matrix(24, 24) for element in row]
            begin, stride = 24 * row + column, attributes.get("stride", 24)
            expected = [[x[begin + stride * i + j] for j in range(16)] for i in range(16)] + [[-1] * 16] * 8
            check.bits(buffers_after(impl, check, kernel, **kernel.inputs())[2], tensor_of("fp32", expected))
        else:
            fails(impl, check, kernel, **kernel.inputs())


@clause("LANG-08.3-01")
@pytest.mark.parametrize("row", [8, 9])
def test_a_fragment_lies_within_one_matrix_of_its_memory(impl, check, row):
    """Of two 24x16 matrices a fragment from row 8 ends the first; from row 9 it would leave it (AMB-LANG-206)."""
    kernel = KernelText({"y": buffer("fp32", 16, 16)}, smem_bytes=1536)
    tile, lane = kernel.allocate("bf16", 2, 24, 16), kernel.index("thread_id")
    value = [kernel.constant(float(number), "bf16") for number in (1, 2)]

    def fill():
        for matrix_number in range(2):
            place = kernel.constant(matrix_number)
            for column in range(16):
                kernel.store(value[matrix_number], tile, place, lane, kernel.constant(column))
        return ()

    kernel.branch(kernel.compute("less", lane, kernel.constant(24)), fill)
    kernel.barrier()
    corner = [kernel.constant(coordinate) for coordinate in (0, row, 0)]
    a = kernel.op("tessera.tile.ldmatrix", tile, *corner, gives=TYPE)
    kernel.critical = kernel.line
    b = kernel.op("tessera.tile.ldmatrix", tile, gives=TYPE)
    start = kernel.op("tessera.tile.fragment.zero", gives=TYPE)
    total = kernel.op("tessera.tile.mma.sync", a, b, start, gives=TYPE, m=16, n=16, k=16)
    kernel.op("tessera.tile.fragment.store", total, kernel["y"])
    runs_if(impl, check, row == 8, kernel, tensor_of("fp32", [[16] * 16] * 16))


@clause("LANG-07.3-01", "LANG-03.3-03", "LANG-11-14", "LANG-16-06")
@pytest.mark.parametrize("column", [8, 4, 1, 7])
def test_the_corner_of_a_fragment_is_aligned_to_16_bytes(impl, check, column):
    """A column that is known only while the kernel runs: 8 of bf16 is byte 16, others are no multiple of it."""
    kernel = Staging(24, 24, n="int32")
    kernel.tell(kernel.at(kernel.zero, kernel["n"]), kernel.identity())
    inputs = kernel.inputs(n=tensor_of("int32", column))
    if column == 8:
        expected = [row[8:] for row in matrix(24, 24)[:16]] + [[-1] * 16] * 8
        check.bits(buffers_after(impl, check, kernel, **inputs)[2], tensor_of("fp32", expected))
    else:
        fails(impl, check, kernel, **inputs)


@clause("LANG-08.3-02")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("ordered", [True, False], ids=["barrier", "none"])
def test_a_fragment_is_loaded_after_a_barrier(impl, check, ordered, target):
    """The lanes that fill the tile and the warp that reads it need a barrier; without it there is a race."""
    kernel = Staging(16, 16, target, barrier=ordered)
    a = kernel.at(0, 0)
    kernel.tell(a, kernel.identity())
    runs_if(impl, check, ordered, kernel, tensor_of("fp32", matrix(16, 16)), **kernel.inputs())


@clause("LANG-07.2-01")
@pytest.mark.parametrize("rows", [16, 15])
def test_a_fragment_is_of_elements_that_were_written(impl, check, rows):
    """A tile of 16x16 of which a row is missing has no fragment."""
    kernel = KernelText({"y": buffer("fp32", 16, 16)}, smem_bytes=512)
    tile, lane = kernel.allocate("bf16", 16, 16), kernel.index("thread_id")
    one = kernel.constant(1.0, "bf16")

    def fill():
        for column in range(16):
            kernel.store(one, tile, lane, kernel.constant(column))
        return ()

    kernel.branch(kernel.compute("less", lane, kernel.constant(rows)), fill)
    kernel.barrier()
    a = kernel.op("tessera.tile.ldmatrix", tile, gives=TYPE)
    kernel.critical = kernel.line
    b = kernel.op("tessera.tile.ldmatrix", tile, gives=TYPE)
    start = kernel.op("tessera.tile.fragment.zero", gives=TYPE)
    total = kernel.op("tessera.tile.mma.sync", a, b, start, gives=TYPE, m=16, n=16, k=16)
    kernel.op("tessera.tile.fragment.store", total, kernel["y"])
    runs_if(impl, check, rows == 16, kernel, tensor_of("fp32", [[16] * 16] * 16))


@pytest.mark.parametrize("alike", [True, False], ids=["alike", "different"])
def test_the_lanes_of_a_warp_agree_on_the_corner(impl, check, alike):
    """A corner that each lane computes for itself is an error unless all come to the same."""
    kernel = Staging(48, 16)
    thread = kernel.index("block_dim" if alike else "thread_id")
    kernel.tell(kernel.at(kernel.compute("subtract", thread, kernel.constant(32 if alike else 0)), kernel.zero),
                kernel.identity())  # fmt: skip
    if alike:
        expected = matrix(48, 16)[:16] + [[-1] * 16] * 32
        check.bits(buffers_after(impl, check, kernel, **kernel.inputs())[2], tensor_of("fp32", expected))
    else:
        fails(impl, check, kernel, **kernel.inputs())


# What the verifier sees


def loading(tile=(32, 32), dtype="bf16", corner=(), memory="shared", gives=TYPE, **attributes):
    """A kernel with one ldmatrix."""
    kernel = KernelText({"x": buffer("bf16", 32, 32)}, smem_bytes=8192)
    held = kernel.allocate(dtype, *tile) if memory == "shared" else kernel["x"]
    corner = [kernel.constant(coordinate) for coordinate in corner]
    kernel.op("tessera.tile.ldmatrix", held, *corner, gives=gives, **attributes)
    return kernel


REFUSED = {
    "memory": ({}, {"memory": "global"}, ("types", "tile")),
    "dtype": ({}, {"dtype": "fp16"}, ("types", "tile")),
    "rank": ({}, {"tile": (1024,)}, ("shapes", "types", "tile")),
    "index-count": ({"corner": (0, 0)}, {"corner": (0,)}, ("types", "shapes")),
    "result": ({}, {"gives": "bf16"}, ("types",)),
    "transpose": ({"transpose": True}, {"transpose": 1}, ("types",)),
    "stride": ({"stride": 32}, {"stride": 0}, ("tile", "types")),
    "attribute": ({"stride": 32}, {"strides": 32}, ("types",)),
}


@pytest.mark.parametrize(("legal", "illegal", "categories"), REFUSED.values(), ids=REFUSED)
def test_ldmatrix_is_verified(impl, check, legal, illegal, categories):
    """It takes a shared memref of rows, of the fragment's dtype, the corner, a stride of at least 1 and transpose."""
    check.accepts(verified(impl, loading(**legal).module, "tile"))
    kernel = loading(**illegal)
    check.rejects(verified(impl, kernel.module, "tile"), category=categories, at_line=kernel.line)


EIGHT = fragment("int8", 16, 16, 16)
FOUR = fragment("tf32", 16, 8, 8)
ALIGNMENTS = {
    "row-of-16": ({"tile": (32, 16)}, {"tile": (32, 20)}),
    "row-of-24": ({"tile": (32, 24)}, {"tile": (32, 23)}),
    "stride": ({"stride": 40}, {"stride": 36}),
    "column": ({"corner": (1, 8)}, {"corner": (1, 4)}),
    "column-of-24": ({"corner": (0, 16), "tile": (24, 32)}, {"corner": (0, 15), "tile": (24, 32)}),
    "bytes": (
        {"tile": (32, 32), "dtype": "int8", "gives": EIGHT, "corner": (0, 16)},
        {"tile": (32, 32), "dtype": "int8", "gives": EIGHT, "corner": (0, 8)},
    ),
    "words": (
        {"tile": (32, 16), "dtype": "tf32", "gives": FOUR, "corner": (0, 4)},
        {"tile": (32, 16), "dtype": "tf32", "gives": FOUR, "corner": (0, 2)},
    ),
    "stride-of-words": (
        {"tile": (32, 16), "dtype": "tf32", "gives": FOUR, "stride": 20},
        {"tile": (32, 16), "dtype": "tf32", "gives": FOUR, "stride": 18},
    ),
}


@clause("LANG-07.3-01", "LANG-03.3-03", "LANG-11-14", "LANG-16-06")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize(("legal", "illegal"), ALIGNMENTS.values(), ids=ALIGNMENTS)
def test_rows_that_ldmatrix_reads_are_aligned_to_16_bytes(impl, check, legal, illegal, target):
    """A row length, stride or corner by which a row would begin elsewhere is refused, in bytes of the dtype."""
    for arguments in (legal, illegal):
        kernel = loading(**arguments)
        kernel.attributes["target"] = target
        observation = verified(impl, kernel.module, "tile", target)
        accepts_if(check, arguments is legal, observation, category="tile", phase="verify", at_line=kernel.line)


FORMS = {
    "bare": "fragment<16,16,16,bf16>",
    "spaces": "fragment<16, 16, 16, bf16>",
    "comma": "fragment<16,16,16,bf16,layout=row_major>",
    "semicolon": "fragment<16,16,16,bf16; layout=row_major>",
    "dialect": "!tessera.fragment<16,16,16,bf16>",
}


@clause("LANG-07.1-01")
@pytest.mark.parametrize("form", FORMS)
def test_a_fragment_type_lists_sizes_dtype_and_layout(impl, check, form):
    """The layout follows a comma or a semicolon, or is left out (AMB-LANG-25)."""
    kernel = KernelText({"y": buffer("fp32", 16, 16)})
    zero = kernel.op("tessera.tile.fragment.zero", gives=FORMS[form])
    kernel.op("tessera.tile.fragment.store", zero, kernel["y"])
    check.bits(buffers_after(impl, check, kernel)[0], tensor_of("fp32", [[0] * 16] * 16))


@clause("LANG-07.1-01")
@pytest.mark.parametrize(
    "type_",
    [
        "fragment<16,16,bf16>",
        "fragment<16,16,16>",
        "fragment<16,16,16,bf15>",
        "fragment<16,16,16,bf16,layout=sideways>",
        "fragment<16,16,0,bf16>",
        "fragment<16,16,?,bf16>",
    ],
    ids=["two-sizes", "no-dtype", "dtype", "layout", "nothing", "unknown"],
)
def test_a_fragment_type_without_one_of_its_parts_is_refused(impl, check, type_):
    """Fewer sizes, no dtype, one that there is not, an unknown layout or size: refused; the whole type is accepted."""
    kernel = KernelText({})
    kernel.op("tessera.tile.fragment.zero", gives=TYPE)
    check.accepts(verified(impl, kernel.module, "tile"))
    text = kernel.module.replace(TYPE, type_)
    categories = ("types", "syntax", "layouts", "shapes", "tile")
    check.rejects(verified(impl, text, "tile"), category=categories, at_line=kernel.line)


@clause("LANG-07.1-01", "LANG-07.2-03")
@pytest.mark.parametrize("place", ["a", "b"])
def test_what_a_fragment_is_follows_from_its_use(impl, check, place):
    """An accumulator of fp32 is not an operand of bf16, though both have one type (AMB-LANG-34, AMB-LANG-65)."""
    for legal in (True, False):
        kernel = KernelText({}, smem_bytes=512)
        tile = kernel.allocate("bf16", 16, 16)
        operands = {role: kernel.op("tessera.tile.ldmatrix", tile, gives=TYPE) for role in "ab"}
        start = kernel.op("tessera.tile.fragment.zero", gives=TYPE)
        if not legal:
            operands[place] = start
        kernel.op("tessera.tile.mma.sync", *operands.values(), start, gives=TYPE, m=16, n=16, k=16)
        observation = verified(impl, kernel.module, "tile")
        accepts_if(check, legal, observation, category=("tile", "types"))
