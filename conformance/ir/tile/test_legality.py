"""The verifier's rules for a kernel on its target: matrix instructions, shared memory, threads (7.3, 11, 16)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.kernel_texts import KernelText, buffer, fragment
from tessera_conformance.chapters.ir.kit.level_programs import BOTH_VENDORS, buffers_after, verified
from tessera_conformance.chapters.ir.kit.programs import accepts_if
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.exact import ACCUMULATORS

pytestmark = feature("tile-ir-text")

SHARED_BYTES = {"sm_80": 166912, "sm_90": 232448, "gfx90a": 65536, "gfx942": 65536}
"""Shared memory that a block may have: 163 and 227 KiB of NVIDIA's, 64 KiB of AMD's."""


def judge(impl, check, kernel, legal, categories=("tile",), line=None):
    """The verifier takes the kernel for its target, or refuses it in one of these categories, at this line."""
    observation = verified(impl, kernel.module, "tile", kernel.attributes["target"])
    accepts_if(check, legal, observation, category=categories, phase="verify", at_line=line)


# Matrix instructions


def loaded(kernel, dtype, *sizes):
    """A fragment of a shared tile of its own."""
    return kernel.op("tessera.tile.ldmatrix", kernel.allocate(dtype, 64, 64), gives=fragment(dtype, *sizes))


def multiplying(target, dtype, m, n, k, accum=None, fragments=None, other=None):
    """A kernel with one mma.sync; its fragments are m by n by k and of one dtype, unless others are asked for."""
    kernel = KernelText({}, smem_bytes=65536, target=target, block=(64, 1, 1))
    sizes, stated = fragments or (m, n, k), {"accum": accum} if accum else {}
    a, b = loaded(kernel, dtype, *sizes), loaded(kernel, other or dtype, *sizes)
    start = kernel.op("tessera.tile.fragment.zero", gives=a.type)
    kernel.op("tessera.tile.mma.sync", a, b, start, gives=a.type, m=m, n=n, k=k, **stated)
    return kernel


SHAPES = {
    "k": (("sm_90", "bf16", 16, 16, 16), ("sm_90", "bf16", 16, 16, 8)),
    "k-of-mma": (("sm_90", "bf16", 16, 8, 8), ("sm_90", "bf16", 16, 8, 4)),
    "m": (("sm_90", "fp16", 16, 8, 16), ("sm_90", "fp16", 8, 8, 16)),
    "n": (("sm_80", "fp16", 32, 8, 16), ("sm_80", "fp16", 32, 16, 16)),
    "turned": (("sm_90", "fp16", 16, 8, 16), ("sm_90", "fp16", 8, 16, 16)),
    "large": (("sm_90", "int8", 32, 8, 16), ("sm_90", "int8", 64, 8, 16)),
    "double": (("sm_80", "fp64", 8, 8, 4), ("sm_80", "fp64", 8, 8, 8)),
    "double-of-another-target": (("sm_90", "fp64", 16, 8, 16), ("sm_80", "fp64", 16, 8, 16)),
    "fp8-of-another-target": (("sm_90", "fp8_e4m3", 16, 8, 32), ("sm_80", "fp8_e4m3", 16, 8, 32)),
    "e5m2-of-another-target": (("sm_90", "fp8_e5m2", 16, 8, 32), ("gfx90a", "fp8_e5m2", 16, 8, 32)),
    "fp32-of-another-vendor": (("gfx942", "fp32", 16, 16, 4), ("sm_90", "fp32", 16, 16, 4)),
    "tf32-of-another-target": (("gfx942", "tf32", 16, 16, 8), ("gfx90a", "tf32", 16, 16, 8)),
    "int8-of-another-target": (("gfx942", "int8", 16, 16, 32), ("gfx90a", "int8", 16, 16, 32)),
    "bf16-of-another-vendor": (("gfx942", "bf16", 32, 32, 8), ("sm_90", "bf16", 32, 32, 8)),
    "of-nvidia": (("sm_80", "bf16", 16, 8, 16), ("gfx942", "bf16", 16, 8, 16)),
    "dtype": (("sm_90", "tf32", 16, 16, 8), ("sm_90", "fp32", 16, 16, 8)),
    "integers": (("sm_90", "int8", 16, 16, 16), ("sm_90", "int16", 16, 16, 16)),
    "fp64-of-amd": (("gfx90a", "fp64", 16, 16, 4), ("gfx90a", "fp64", 8, 8, 4)),
}
"""Shapes that a target multiplies, and others that differ in one number, in the dtype or in the target."""


@clause("LANG-07.3-02", "LANG-11-10", "LANG-11-15", "LANG-07.2-03")
@pytest.mark.parametrize(("legal", "illegal"), SHAPES.values(), ids=SHAPES)
def test_a_matrix_instruction_is_one_of_the_target(impl, check, legal, illegal):
    """A shape that the target lacks for the dtype is refused at the instruction (AMB-LANG-62)."""
    judge(impl, check, multiplying(*legal), True)
    kernel = multiplying(*illegal)
    judge(impl, check, kernel, False, line=kernel.line)


STATED = {
    "m": ({}, {"fragments": (32, 16, 16)}, ("shapes", "types", "tile")),
    "n": ({}, {"fragments": (16, 8, 16)}, ("shapes", "types", "tile")),
    "k": ({}, {"fragments": (16, 16, 8)}, ("shapes", "types", "tile")),
    "operands": ({}, {"other": "fp16"}, ("types", "tile")),
    "accumulator": ({"accum": "fp32"}, {"accum": "int32"}, ("numerics", "types", "tile")),
    "narrow-accumulator": ({"accum": "fp32"}, {"accum": "fp8_e5m2"}, ("numerics", "types", "tile")),
    "no-dtype": ({"accum": "fp32"}, {"accum": "f32"}, ("numerics", "types")),
}


@clause("LANG-07.2-03", "LANG-07.1-01")
@pytest.mark.parametrize(("legal", "illegal", "categories"), STATED.values(), ids=STATED)
def test_an_instruction_fits_its_fragments(impl, check, legal, illegal, categories):
    """m, n and k are those of the fragments, which are of one type; bf16 accumulates in a float of 16 bits or more."""
    judge(impl, check, multiplying("sm_90", "bf16", 16, 16, 16, **legal), True)
    judge(impl, check, multiplying("sm_90", "bf16", 16, 16, 16, **illegal), False, categories)


@clause("LANG-07.2-03")
@pytest.mark.parametrize("accumulator", ["int32", "fp8_e5m2"])
def test_an_accumulator_is_a_float_of_16_bits_or_more_from_its_start(impl, check, accumulator):
    """bf16 accumulates in no integer and in no fp8, though the fragment that it starts from states the same."""
    for accum in ("fp32", accumulator):
        kernel = KernelText({}, smem_bytes=16384)
        a, b = (loaded(kernel, "bf16", 16, 16, 16) for _ in "ab")
        start = kernel.op("tessera.tile.fragment.zero", gives=a.type, accum=accum)
        kernel.op("tessera.tile.mma.sync", a, b, start, gives=a.type, m=16, n=16, k=16, accum=accum)
        judge(impl, check, kernel, accum == "fp32", ("numerics", "types", "tile"))


@clause("LANG-07.2-03")
@pytest.mark.parametrize("missing", ["m", "n", "k", "c", "result"])
def test_an_instruction_has_three_fragments_and_three_sizes(impl, check, missing):
    """Without one of them it is refused."""
    for left_out in ("", missing):
        kernel = KernelText({}, smem_bytes=16384)
        a, b = (loaded(kernel, "bf16", 16, 16, 16) for _ in "ab")
        operands = [a, b, kernel.op("tessera.tile.fragment.zero", gives=a.type)]
        sizes = {name: 16 for name in "mnk" if name != left_out}
        gives = () if left_out == "result" else a.type
        kernel.op("tessera.tile.mma.sync", *operands[: 2 if left_out == "c" else 3], gives=gives, **sizes)
        judge(impl, check, kernel, not left_out, ("types", "shapes"), kernel.line)


@clause("LANG-07.2-03")
@pytest.mark.parametrize("dtype", ["bf16", "int8"])
def test_an_accumulator_is_stored_in_its_own_dtype(impl, check, dtype):
    """fp32 of bf16, int32 of int8; memory of the operands' dtype is refused (AMB-LANG-34)."""
    for held, legal in ((ACCUMULATORS[dtype], True), (dtype, False)):
        kernel = KernelText({"y": buffer(held, 16, 16)})
        zero = kernel.op("tessera.tile.fragment.zero", gives=fragment(dtype, 16, 16, 16))
        kernel.op("tessera.tile.fragment.store", zero, kernel["y"])
        judge(impl, check, kernel, legal, ("tile", "types"))


@clause("LANG-11-10")
@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_a_kernel_is_verified_for_the_target_that_it_states(impl, check, target):
    """One that states another target is refused."""
    kernel = KernelText({}, target=target)
    check.accepts(verified(impl, kernel.module, "tile", target))
    other = next(both_vendor for both_vendor in BOTH_VENDORS if both_vendor != target)
    check.rejects(verified(impl, kernel.module, "tile", other), category="tile")


# Shared memory


@clause("LANG-07.3-03", "LANG-07.3-04")
@pytest.mark.parametrize("target", SHARED_BYTES)
@pytest.mark.parametrize("tiles", [1, 2, 3])
def test_shared_memory_fits_a_block(impl, check, target, tiles):
    """All bytes of the target are accepted, in one tile or several; 16 more are refused."""
    for more in (0, 16):
        total = SHARED_BYTES[target] + more
        kernel = KernelText({}, target=target, smem_bytes=total)
        for number in range(tiles):
            part = total // tiles // 16 * 16
            kernel.allocate("int8", part if number else total - (tiles - 1) * part)
        judge(impl, check, kernel, not more)


@clause("LANG-07.3-03")
@pytest.mark.parametrize("target", SHARED_BYTES)
def test_shared_memory_that_is_declared_fits_a_block(impl, check, target):
    """Also where nothing is allocated: the limit is accepted, a byte more refused."""
    for more in (0, 1):
        judge(impl, check, KernelText({}, target=target, smem_bytes=SHARED_BYTES[target] + more), not more)


ALLOCATIONS = {
    "one": (512, [("bf16", 16, 16)]),
    "two": (1536, [("bf16", 16, 16), ("fp32", 16, 16)]),
    "bytes": (48, [("int8", 3, 16)]),
    "doubles": (800, [("fp64", 100)]),
    "codes": (256, [("fp8_e4m3", 16, 16)]),
    "three": (3 * 16384, [("bf16", 128, 64)] * 3),
    "one-element": (4, [("int32", 1)]),
    "aligned": (528, [("bf16", 1), ("bf16", 16, 16)]),
}
"""The bytes of allocations one behind the other, each at a multiple of 16 bytes (AMB-LANG-200)."""


@clause("LANG-07.3-04", "LANG-07.2-01")
@pytest.mark.parametrize(("bound", "allocations"), ALLOCATIONS.values(), ids=ALLOCATIONS)
def test_allocations_fit_what_the_kernel_declares(impl, check, bound, allocations):
    """Their bound is accepted as smem_bytes, and so is more; one byte less is refused."""
    for declared in (bound, bound + 100, bound - 1):
        kernel = KernelText({}, smem_bytes=declared)
        for dtype, *shape in allocations:
            kernel.allocate(dtype, *shape)
        judge(impl, check, kernel, declared >= bound)


@clause("LANG-07.3-04")
@pytest.mark.parametrize("place", ["loop", "branch"])
def test_an_allocation_in_a_region_counts(impl, check, place):
    """At the top of the kernel 64 bytes are accepted where 64 are declared; in a region they are not without any."""
    outside = KernelText({}, smem_bytes=64)
    outside.allocate("int32", 16)
    judge(impl, check, outside, True)
    inside = KernelText({}, smem_bytes=0)
    zero, one = inside.constant(0), inside.constant(1)

    def body(*index):
        inside.allocate("int32", 16)
        return ()

    if place == "loop":
        inside.loop(zero, one, one, body)
    else:
        inside.branch(inside.compute("less", zero, one), body)
    judge(impl, check, inside, False)


@clause("LANG-16-05", "LANG-16-06", "LANG-07.2-01")
@pytest.mark.parametrize("before", [1, 7, 8])
def test_a_tile_begins_at_16_bytes_whatever_stands_before_it(impl, check, before):
    """Behind an allocation of a few bf16 there is a tile that ldmatrix reads (AMB-LANG-200)."""
    type_ = fragment("bf16", 16, 16, 16)
    kernel = KernelText({"y": buffer("fp32", 16, 16)}, smem_bytes=1024)
    small, lane = kernel.allocate("bf16", before), kernel.index("thread_id")
    tile, first = kernel.allocate("bf16", 16, 16), kernel.constant(0)
    one, two = kernel.constant(1.0, "bf16"), kernel.constant(2.0, "bf16")

    def fill():
        for column in range(16):
            kernel.store(one, tile, lane, kernel.constant(column))
        return ()

    kernel.branch(kernel.compute("less", lane, kernel.constant(16)), fill)
    kernel.branch(kernel.compute("equal", lane, first), lambda: kernel.store(two, small, first))
    kernel.barrier()
    a, b = (kernel.op("tessera.tile.ldmatrix", tile, gives=type_) for _ in "ab")
    start = kernel.op("tessera.tile.fragment.zero", gives=type_)
    total = kernel.op("tessera.tile.mma.sync", a, b, start, gives=type_, m=16, n=16, k=16)
    kernel.op("tessera.tile.fragment.store", total, kernel["y"])
    check.bits(buffers_after(impl, check, kernel)[0], tensor_of("fp32", [[16] * 16] * 16))


# Threads, and what a kernel holds


@clause("LANG-11-15")
@pytest.mark.parametrize("target", SHARED_BYTES)
@pytest.mark.parametrize(("most", "more"), [((1024, 1, 1), (1025, 1, 1)), ((32, 4, 8), (32, 4, 9))], ids=["x", "z"])
def test_a_block_has_no_more_threads_than_the_target_runs(impl, check, target, most, more):
    """1024 of them are accepted, along one axis or three; more are refused."""
    judge(impl, check, KernelText({}, target=target, block=most), True)
    judge(impl, check, KernelText({}, target=target, block=more), False)


@clause("LANG-11-10", "LANG-08.2-03")
@pytest.mark.parametrize("name", ["softmax", "sum", "matmul"])
def test_a_kernel_holds_no_operation_of_tensors(impl, check, name):
    """Operations that work element by element are there, of scalars; others are for the host."""
    kernel = KernelText({"n": "fp32"})
    kernel.compute("add", kernel["n"], kernel["n"])
    judge(impl, check, kernel, True)
    made = kernel.op("tessera.graph.reshape", kernel["n"], gives="tensor<1x1xfp32>", shape=[1, 1])
    operands, attributes = ((made, made), {}) if name == "matmul" else ((made,), {"axis": 0} if name == "sum" else {})
    kernel.op(f"tessera.graph.{name}", *operands, gives="tensor<1xfp32>" if name == "sum" else made.type, **attributes)
    judge(impl, check, kernel, False, ("tile", "types"))


@clause("LANG-07.3-04", "LANG-07.3-03", "LANG-08.1-05")
@pytest.mark.parametrize("modules", [1, 2], ids=["in-a-module", "in-two-modules"])
def test_every_kernel_of_a_text_is_checked(impl, check, modules):
    """The second kernel declares less shared memory than it allocates, and the first has nothing to do with that."""
    for declared in (4096, 2048):
        first = KernelText({}, smem_bytes=4096)
        second = KernelText({}, name="tss_kernel_l", smem_bytes=declared)
        for kernel in (first, second):
            kernel.allocate("fp32", 1024)
        text = first.module.replace(first.text, f"{first.text}\n{second.text}")
        if modules == 2:
            text = first.module + second.module.replace('sym_name = "m"', 'sym_name = "n"')
        accepts_if(check, declared == 4096, verified(impl, text, "tile", "sm_90"), category=("tile",), phase="verify")
