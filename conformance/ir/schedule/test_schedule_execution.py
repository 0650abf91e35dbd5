"""Schedules as they are executed: tiles, tails, stages and buffers change no bit (language spec, 4, 6 and 8.2).

What is right is known: exact rational arithmetic along the fold of the reference, or integers and powers of two.
"""

from math import inf, nan

import pytest

from tessera_conformance.chapters.ir.kit.kernel_texts import line, returning, scheduled
from tessera_conformance.chapters.ir.kit.level_programs import results_at, results_of_text
from tessera_conformance.dsl import program, tensor_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.oracle import FUNCTIONS
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted, tensor

text_form = feature("schedule-ir-text")
of_programs = feature("execute-schedule")
strict = level("strict")

M, N, K = 7, 9, 19
A, B = counted("fp32", (M, K), 7130, (-9, 9)), counted("fp32", (K, N), 7131, (-9, 9))
PRODUCT = FUNCTIONS["oracle.matmul"](A, B)
BACKWARDS = FUNCTIONS["oracle.matmul"](
    Tensor.from_words("fp32", (M, K), A.words().reshape(M, K)[:, ::-1].ravel()),
    Tensor.from_words("fp32", (K, N), B.words().reshape(K, N)[::-1].ravel()),
)
assert PRODUCT != BACKWARDS, "the operands are to tell the order of the terms"


def kind(rows, columns, dtype="fp32"):
    """The type of a matrix."""
    return f"tensor<{rows}x{columns}x{dtype}>"


def padding(extent, size):
    """Return the padding that a size needs to cover an extent."""
    return -extent % size


def product(sizes, depth, staged="AB", dtype="fp32", extents=(M, N, K), **buffers):
    """A product in tiles of these sizes, so many stages deep, some operands of which are staged."""
    m, n, k = extents
    types = {"%A": kind(m, k, dtype), "%B": kind(k, n, dtype)}
    result = kind(m, n, dtype)
    lines, read = [], []
    for name, type_ in types.items():
        if name.strip("%") in staged:
            lines.append(line(f"{name}s", "tessera.schedule.prefetch", {name: type_}, type_, scope="shared", align=16))
        read.append(f"{name}s" if name.strip("%") in staged else name)
    pads = [padding(extent, size) for extent, size in zip(extents, sizes, strict=True)]
    tile = dict(zip("mnk", sizes, strict=True)) | ({"pad": pads} if any(pads) else {})
    return scheduled(
        *lines,
        line("%p", "tessera.graph.matmul", dict(zip(read, types.values(), strict=True)), result),
        line("%t", "tessera.schedule.tile", {"%p": result}, result, **tile),
        line("%d", "tessera.schedule.pipeline", {"%t": result}, result, depth=depth, **buffers),
        returning(d=result),
        takes=", ".join(f"{name}: {type_}" for name, type_ in types.items()),
        gives=result,
    )


def outputs_of(impl, check, text, **inputs):
    """The results of a text at Schedule IR."""
    return results_of_text(impl, check, text, "schedule", **inputs)


SIZES = [(7, 9, 19), (4, 4, 4), (1, 1, 1), (7, 9, 1), (1, 9, 7), (5, 2, 19), (8, 16, 32)]


@text_form
@strict
@clause("LANG-06.2-01", "LANG-06.3-01", "LANG-06.1-01")
@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: "x".join(map(str, sizes)))
@pytest.mark.parametrize("staged", ["", "A", "AB"], ids=["none", "one", "both"])
def test_tiles_keep_the_order_of_the_terms(impl, check, sizes, staged):
    """A fold over all of k in ascending order, with tails along every extent and without."""
    actual = outputs_of(impl, check, product(sizes, 1, staged), A=A, B=B)
    check.equal(len(actual), 1, "the number of results")
    check.bits(actual[0], PRODUCT)


@text_form
@strict
@clause("LANG-06.2-01", "LANG-06.1-01")
@pytest.mark.parametrize("batch", [(2, 3), (3, 2), (2, 2)], ids=lambda batch: "x".join(map(str, batch)))
def test_every_product_of_a_batch_has_operands_of_its_own(impl, check, batch):
    """Matrices of two dimensions of batch, staged and in tiles with tails along every extent."""
    shapes = [(*batch, *extents) for extents in ((3, 5), (5, 4), (3, 4))]
    left, right, result = (f"tensor<{'x'.join(map(str, shape))}xfp32>" for shape in shapes)
    text = scheduled(
        line("%s", "tessera.schedule.prefetch", {"%A": left}, left, scope="shared", align=16),
        line("%p", "tessera.graph.matmul", {"%s": left, "%B": right}, result),
        line("%t", "tessera.schedule.tile", {"%p": result}, result, m=2, n=3, k=2, pad=[1, 2, 1]),
        returning(t=result),
        takes=f"%A: {left}, %B: {right}",
        gives=result,
    )
    a, b = (counted("fp32", shape, 7132 + place, (-9, 9)) for place, shape in enumerate(shapes[:2]))
    check.bits(outputs_of(impl, check, text, A=a, B=b)[0], FUNCTIONS["oracle.matmul"](a, b))


@text_form
@strict
@clause("LANG-04-11", "LANG-06.1-03", "LANG-06.2-05")
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("staged", ["A", "AB"], ids=["one", "both"])
def test_a_stage_is_computed_after_it_is_loaded(impl, check, depth, staged):
    """However many tiles are loaded ahead, each is computed with once, and with what was loaded for it."""
    actual = outputs_of(impl, check, product((4, 4, 4), depth, staged), A=A, B=B)
    check.bits(actual[0], PRODUCT)


@text_form
@strict
@clause("LANG-04-11", "LANG-06.1-03")
def test_buffers_of_a_pipeline_do_not_overwrite_each_other(impl, check):
    """A double buffer two and three deep, of whole numbers of which every tile has its own."""
    extents = (6, 6, 12)
    left = [[1 << (k // 2) if row % 2 else 1 + k for k in range(12)] for row in range(6)]
    right = [[(k + column) % 5 - 2 for column in range(6)] for k in range(12)]
    expected = tensor_of("int32", [[sum(a * right[k][j] for k, a in enumerate(row)) for j in range(6)] for row in left])
    inputs = {"A": tensor_of("int32", left), "B": tensor_of("int32", right)}
    for depth in (2, 3):
        text = product((3, 3, 2), depth, dtype="int32", extents=extents, double_buffer=True)
        check.bits(outputs_of(impl, check, text, **inputs)[0], expected, f"depth {depth}")


@text_form
@clause("LANG-06.3-01", "LANG-06.2-01")
@pytest.mark.parametrize("staged", ["", "AB"], ids=["none", "both"])
def test_padding_is_in_no_sum(impl, check, staged):
    """Infinities and NaN stay in their rows: padding of a tile beyond the extents is added to none of them."""
    left = [[1.0, 2.0, inf], [1.0, 1.0, 1.0], [nan, 0.0, 1.0]]
    right = [[1.0, 0.0, 2.0], [0.5, 0.0, -1.0], [0.0, 1.0, 1.0]]
    text = product((2, 2, 2), 2, staged, extents=(3, 3, 3))
    actual = outputs_of(impl, check, text, A=tensor("fp32", left), B=tensor("fp32", right))
    check.bits(actual[0], tensor("fp32", [[nan, inf, inf], [1.5, 1.0, 2.0], [nan, nan, nan]]))


@text_form
@clause("LANG-06.2-01")
def test_padding_does_not_change_a_zero(impl, check):
    """A sum of negative zeros begins at +0 and stays there; nothing fails beyond the extents."""
    text = product((2, 2, 2), 2, extents=(1, 1, 3))
    actual = outputs_of(
        impl, check, text, A=tensor_of("fp32", [[-0.0, -0.0, -0.0]]), B=tensor_of("fp32", [[1.0], [1.0], [1.0]])
    )
    check.bits(actual[0], tensor_of("fp32", [[0.0]]))


@text_form
@clause("LANG-06.2-01", "LANG-06.3-01")
def test_tails_of_a_division_fail_nowhere(impl, check):
    """A quotient of integers in tiles with padding: what is beyond the extents is not divided."""
    type_ = kind(3, 5, "int32")
    text = scheduled(
        line("%s", "tessera.schedule.prefetch", {"%B": type_}, type_, scope="shared"),
        line("%q", "tessera.graph.divide", {"%A": type_, "%s": type_}, type_),
        line("%t", "tessera.schedule.tile", {"%q": type_}, type_, m=2, n=4, pad=[1, 3]),
        line("%p", "tessera.schedule.pipeline", {"%t": type_}, type_, depth=3),
        returning(p=type_),
        takes=f"%A: {type_}, %B: {type_}",
        gives=type_,
    )
    divisors = [[1 + row + column for column in range(5)] for row in range(3)]
    expected = [[60 // divisor for divisor in row] for row in divisors]
    actual = outputs_of(impl, check, text, A=tensor_of("int32", [[60] * 5] * 3), B=tensor_of("int32", divisors))
    check.bits(actual[0], tensor_of("int32", expected))


ROW = [[float(1 + (3 * row + column) % 8) for column in range(10)] for row in range(5)]


@text_form
@feature("reductions")
@clause("LANG-06.2-01", "LANG-06.1-01")
@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 3), (5, 2)], ids=["rows", "some", "all"])
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_are_computed_whole(impl, check, axis, m, n):
    """A sum of whole numbers, some results at a time, whose rows are staged."""
    given, gives = kind(5, 10), ("tensor<10xfp32>", "tensor<5xfp32>")[axis]
    columns = (10, 5)[axis]
    pads = {"pad": [padding(1, m), padding(columns, n)]} if padding(1, m) or padding(columns, n) else {}
    text = scheduled(
        line("%s", "tessera.schedule.prefetch", {"%A": given}, given, scope="shared", align=32),
        line("%y", "tessera.graph.sum", {"%s": given}, gives, axis=axis),
        line("%t", "tessera.schedule.tile", {"%y": gives}, gives, m=m, n=n, **pads),
        returning(t=gives),
        takes=f"%A: {given}",
        gives=gives,
    )
    expected = [sum(row) for row in (ROW if axis else zip(*ROW, strict=True))]
    check.bits(outputs_of(impl, check, text, A=tensor_of("fp32", ROW))[0], tensor_of("fp32", expected))


@text_form
@clause("LANG-06.1-02", "LANG-06.2-01")
@pytest.mark.parametrize("fused", [(), ("%p", "%x"), ("%x", "%y")], ids=["none", "first", "last"])
def test_a_fusion_computes_what_its_parts_compute(impl, check, fused):
    """A product, its double, and the product of both, all returned, in tiles that cut them."""
    result = kind(3, 5, "int32")
    types = {"%A": kind(3, 4, "int32"), "%B": kind(4, 5, "int32")}
    lines = [
        line("%p", "tessera.graph.matmul", types, result),
        line("%t", "tessera.schedule.tile", {"%p": result}, result, m=2, n=2, k=3, pad=[1, 1, 2]),
        f'%x = "tessera.graph.add"(%t, %t) : ({result}, {result}) -> {result}',
        line("%y", "tessera.graph.multiply", {"%x": result, "%p": result}, result),
    ]
    last = "%y"
    if fused:
        lines.append(line("%f", "tessera.schedule.fuse", dict.fromkeys(fused, result), result))
        last = "%f" if fused[-1] == "%y" else "%y"
    end = f'"tessera.graph.return"(%p, %x, {last}) : ({result}, {result}, {result}) -> ()'
    takes = ", ".join(f"{name}: {type_}" for name, type_ in types.items())
    text = scheduled(*lines, end, takes=takes, gives=", ".join([result] * 3))
    left = [[row - k for k in range(4)] for row in range(3)]
    right = [[k * column - 2 for column in range(5)] for k in range(4)]
    actual = outputs_of(impl, check, text, A=tensor_of("int32", left), B=tensor_of("int32", right))
    whole = [[sum(a * right[k][j] for k, a in enumerate(row)) for j in range(5)] for row in left]
    for number, value in enumerate((lambda p: p, lambda p: 2 * p, lambda p: 2 * p * p)):
        check.bits(actual[number], tensor_of("int32", [[value(p) for p in row] for row in whole]), f"result {number}")


@text_form
@clause("LANG-06.3-02")
@pytest.mark.parametrize("to", ["col_major", "blocked(bm=2, bn=4)"], ids=["col-major", "blocked"])
@pytest.mark.parametrize("cast", ["%A", "%p"], ids=["argument", "product"])
def test_a_materialized_cast_leaves_every_element_in_its_place(impl, check, cast, to):
    """An operand of a product, or the product: the copy is read in the other layout; three different extents."""
    m, n, k = 3, 5, 4
    cast_type = f"tensor<{m}x{k if cast == '%A' else n}xint32; layout={to}>"
    plain = {"%A": kind(m, k, "int32"), "%p": kind(m, n, "int32")}
    copied = line("%c", "tessera.schedule.layout_cast", {cast: plain[cast]}, cast_type, to=to, materialize=True)
    left = {"%c": cast_type} if cast == "%A" else {"%A": plain["%A"]}
    product_type = f"tensor<{m}x{n}xint32; layout={to}>" if cast == "%A" else plain["%p"]
    multiply = line("%p", "tessera.graph.matmul", left | {"%B": kind(k, n, "int32")}, product_type)
    result = f"tensor<{m}x{n}xint32; layout={to}>"
    lines = [copied, multiply] if cast == "%A" else [multiply, copied]
    text = scheduled(
        *lines,
        returning(**{("p" if cast == "%A" else "c"): result}),
        takes=f"%A: {plain['%A']}, %B: {kind(k, n, 'int32')}",
        gives=result,
    )
    a = [[10 * row + column for column in range(k)] for row in range(m)]
    b = [[row * row - column for column in range(n)] for row in range(k)]
    expected = [[sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b, strict=True)] for row in a]
    (actual,) = outputs_of(impl, check, text, A=tensor_of("int32", a), B=tensor_of("int32", b))
    check.bits(actual, tensor_of("int32", expected))


# Programs


@of_programs
@strict
@clause("LANG-08.2-01", "LANG-06.2-01", "LANG-04-11")
@pytest.mark.parametrize(
    "tile", [[1, 40, 1], [3, 5, 2], [7, 9, 19], [64, 64, 64]], ids=lambda tile: "x".join(map(str, tile))
)
@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("prefetch", ["shared", "global", "none"])
def test_a_schedule_changes_no_bit_of_a_program(impl, check, tile, depth, prefetch):
    """Sizes with tails and without, each depth, each memory."""
    source = program("return A @ B;", parameters=f"A: {kind(M, K)}, B: {kind(K, N)}")
    schedule = {"tile": tile, "depth": depth, "prefetch": prefetch}
    (actual,) = results_at(impl, check, source, "schedule", schedule=schedule, A=A, B=B)
    check.bits(actual, PRODUCT)


@of_programs
@clause("LANG-08.2-01", "LANG-02.3-79")
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_directives_in_control_flow_are_followed(impl, check, target):
    """In a branch of a loop, with tails: powers of a matrix of whole numbers (AMB-LANG-29)."""
    matrix = kind(3, 3, "int32")
    source = program(
        "for (k in 0:4) {",
        "  if (k > 0) { X = X @ T; schedule.tile(X) @{m=2, n=2, k=2, pad=1}; schedule.pipeline(X) @{depth=3}; }",
        "  else { X = X + T; schedule.tile(X) @{m=1, n=3}; }",
        "}",
        "return X;",
        parameters=f"X: {matrix}, T: {matrix}",
    )
    turn, start = [[0, 1, 0], [0, 0, 1], [2, 0, 0]], [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    expected = [[a + b for a, b in zip(row, other, strict=True)] for row, other in zip(start, turn, strict=True)]
    for _ in range(3):
        expected = [[sum(a * turn[k][j] for k, a in enumerate(row)) for j in range(3)] for row in expected]
    inputs = {"X": tensor_of("int32", start), "T": tensor_of("int32", turn)}
    (actual,) = results_at(impl, check, source, "schedule", target, **inputs)
    check.bits(actual, tensor_of("int32", expected))
