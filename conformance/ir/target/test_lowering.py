"""Lowering to Target IR: the LLVM dialect and the instructions of a vendor (language spec, 8, 8.1, 8.2 and 16)."""

from __future__ import annotations

import re

import pytest

from tessera_conformance.chapters.ir.kit.level_programs import (
    BOTH_VENDORS,
    STAGED,
    WARPS,
    lowered,
    results_of_text,
    verified,
)
from tessera_conformance.dsl import returning, tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.tensors import ELEMENT_FORMATS

pytestmark = feature("lower-target")

POINTER = "!llvm.ptr<1>"
PRODUCT = returning("A @ B", "A: tensor<16x32xbf16>, B: tensor<32x16xbf16>", "tensor<16x16xbf16>")
SUM = returning("op.sum(A) @{axis=1}", "A: tensor<8x64xfp32>", "tensor<8xfp32>")
CHAIN = returning("A * B + s", "A: tensor<40xfp32>, B: tensor<40xfp32>, s: fp32", "tensor<40xfp32>")
WIDE = returning("A * n + A", "A: tensor<33xint64>, n: int64", "tensor<33xint64>")
PROGRAMS = {"product": PRODUCT, "sum": SUM, "chain": CHAIN, "wide": WIDE}

DIALECTS = re.compile(r"llvm\.|scf\.|nvvm\.|rocdl\.|tessera\.graph\.(?:return|yield)$")
OTHER_VENDOR = {"sm_80": "rocdl.", "sm_90": "rocdl.", "gfx90a": "nvvm.", "gfx942": "nvvm."}


def named(actual, name):
    """Return the names of a kernel's operations, in order."""
    return [operation["name"].strip('"') for operation in actual.functions[name].operations]


@clause("LANG-08-01")
@pytest.mark.parametrize("target", WARPS)
@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_kernels_end_in_the_llvm_dialect(impl, check, source, target):
    """And in those beside it for control flow and one vendor's instructions; nothing of higher levels is left."""
    actual = lowered(impl, check, source, "target", target)
    check.true(len(actual.kernels) > 0, "there is a kernel")
    for kernel in actual.kernels:
        names = named(actual, kernel)
        strange = sorted({name for name in names if DIALECTS.match(name) is None})
        check.equal(strange, [], "operations of other dialects")
        check.true(any(name.startswith("llvm.") for name in names), "there are operations of llvm", names)
        foreign = sorted({name for name in names if name.startswith(OTHER_VENDOR[target])})
        check.equal(foreign, [], "operations of the other vendor")


@clause("LANG-08-01")
@feature("target-ir-text")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_lowered_text_is_legal_target_ir(impl, check, source, target):
    """It is accepted as text of that level for its target."""
    check.accepts(verified(impl, lowered(impl, check, source, "target", target).text, "target", target))


@clause("LANG-08-01")
@feature("target-ir-text")
@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_lowered_text_computes_what_the_program_does(impl, check, target):
    """The host function of the text launches the kernels: 64-bit integers, beyond 32 bits, with a tail."""
    text = lowered(impl, check, WIDE, "target", target).text
    a, n = [index * (1 << 33) - 5 for index in range(33)], (1 << 20) + 3
    given = {"A": tensor_of("int64", a), "n": tensor_of("int64", n)}
    actual = results_of_text(impl, check, text, "target", target, **given)
    check.bits(actual[0], tensor_of("int64", [value * n + value for value in a]))


# Entries


@clause("LANG-16-01")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_kernels_are_called_tss_kernel(impl, check, source, target):
    """Each by its own mangled name."""
    actual = lowered(impl, check, source, "target", target)
    check.true(len(actual.kernels) > 0, "there is a kernel")
    for name in actual.kernels:
        check.true(re.fullmatch(r"tss_kernel_\w+", name) is not None, "the symbol begins with tss_kernel_", name)
        check.true(name in actual.text, "the symbol stands in the text", name)


@clause("LANG-08.1-01")
@pytest.mark.parametrize("target", WARPS)
def test_an_entry_states_its_attributes(impl, check, target):
    """Three extents each of grid and block, and the bytes of shared memory."""
    actual = lowered(impl, check, PRODUCT, "target", target, STAGED)
    for name in actual.kernels:
        stated = actual.attributes[name]
        for attribute in ("grid", "block"):
            extents = stated.get(attribute)
            check.true(isinstance(extents, list) and len(extents) == 3, f"{attribute} has three extents", extents)
        check.true(type(stated.get("smem_bytes")) is int, "smem_bytes is a number", stated.get("smem_bytes"))


@feature("lower-tile")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize(
    "attribute",
    [pytest.param("grid", marks=clause("LANG-08.1-07")), pytest.param("block", marks=clause("LANG-08.1-08"))],
)
@pytest.mark.parametrize("tile", [[16, 16, 16], [32, 16, 16], [16, 32, 16]], ids=str)
def test_lowering_carries_grid_and_block(impl, check, attribute, tile, target):
    """Kernels of Target IR are launched as those of Tile IR are."""
    source = returning("A @ B", "A: tensor<96x16xbf16>, B: tensor<16x64xbf16>", "tensor<96x64xbf16>")
    above, below = (lowered(impl, check, source, to, target, {"tile": tile}) for to in ("tile", "target"))
    check.equal(below.kernels, above.kernels, "the kernels")
    check.true(len(below.kernels) > 0, "there is a kernel")
    for name in below.kernels:
        check.equal(below.attributes[name].get(attribute), above.attributes[name][attribute], f"the {attribute}")


@feature("lower-tile")
@clause("LANG-08.1-09")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_lowering_declares_the_shared_memory_that_is_used(impl, check, depth, target):
    """At least the arrays that the kernel holds, and no less than at Tile IR."""
    schedule = {**STAGED, "depth": depth}
    above, below = (lowered(impl, check, PRODUCT, to, target, schedule) for to in ("tile", "target"))
    for name in below.kernels:
        held = [operation["attributes"] for operation in below.functions[name].named("llvm.mlir.addressof")]
        used = sum(allocation["elements"] * ELEMENT_FORMATS[allocation["elem_type"]].word_bytes for allocation in held)
        check.true(used >= depth * 2 * 16 * 16 * 2, "each stage has a tile of A and of B", used)
        declared = below.attributes[name].get("smem_bytes", 0)
        check.true(declared >= used, f"the {used} bytes of its arrays are declared", declared)
        check.true(declared >= above.attributes[name]["smem_bytes"], "and those of Tile IR", declared)


@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize(
    ("source", "buffers", "scalars"), [(PRODUCT, 3, []), (CHAIN, 3, ["fp32"]), (WIDE, 2, ["int64"])],
    ids=["product", "chain", "wide"],
)  # fmt: skip
@clause("LANG-08.1-02", "LANG-08.1-03", "LANG-16-02", "LANG-16-03", "LANG-16-04")
def test_a_kernel_takes_pointers_to_its_buffers_and_then_scalars(impl, check, source, buffers, scalars, target):
    """A pointer to global memory for each tensor, then scalars of their own width; metadata only behind these, where
    the entry has grid, block and shared memory as attributes (AMB-LANG-220)."""
    actual = lowered(impl, check, source, "target", target)
    check.equal(len(actual.kernels), 1, "the number of kernels")
    arguments = list(actual.functions[actual.kernels[0]].arguments)
    check.equal(arguments[:buffers], [POINTER] * buffers, "the buffers")
    check.equal(arguments[buffers : buffers + len(scalars)], scalars, "the scalars")
    check.true(POINTER not in arguments[buffers + len(scalars) :], "no buffer among what is hidden", arguments)
    metadata = actual.attributes[actual.kernels[0]]
    check.equal(sorted({"grid", "block", "smem_bytes"} - set(metadata)), [], "metadata that the entry lacks")


@clause("LANG-08-01")
@pytest.mark.parametrize("target", WARPS)
def test_a_lowered_kernel_says_its_target(impl, check, target):
    """A kernel that states a target states the one that was asked for."""
    actual = lowered(impl, check, PRODUCT, "target", target)
    stated = {actual.attributes[name].get("target", target) for name in actual.kernels}
    check.equal(stated, {target} & stated, "the targets")
    check.true(len(stated) == 1, "there is a kernel")


# Instructions

INSTRUCTIONS = {
    "mma.sync": (r"nvvm\.(mma\.sync|wmma\..*mma.*)", "sm_80", "LANG-08.2-05"),
    "ldmatrix": (r"nvvm\.ldmatrix", "sm_80", "LANG-08.2-06"),
    "cp.async": (r"nvvm\.cp\.async\.shared\.global", "sm_90", "LANG-08.2-07"),
    "wait": (r"nvvm\.cp\.async\.wait.*", "sm_80", "LANG-08.2-07"),
    "bar.sync": (r"nvvm\.barrier.*", "sm_90", "LANG-08.2-08"),
    "mfma-gfx90a": (r"rocdl\.w?mfma\..*", "gfx90a", "LANG-08.2-10"),
    "mfma-gfx942": (r"rocdl\.w?mfma\..*", "gfx942", "LANG-08.2-10"),
    "lds-read": (r"rocdl\.ds_read.*", "gfx90a", "LANG-08.2-11"),
    "lds-write": (r"rocdl\.ds_write.*", "gfx942", "LANG-08.2-11"),
}


@pytest.mark.parametrize(
    ("pattern", "target"),
    [pytest.param(pattern, target, id=name, marks=clause(judged))
     for name, (pattern, target, judged) in INSTRUCTIONS.items()],
)  # fmt: skip
def test_a_staged_product_has_the_instructions_of_its_vendor(impl, check, pattern, target):
    """A product of bf16 whose operands are staged in shared memory."""
    actual = lowered(impl, check, PRODUCT, "target", target, STAGED)
    names = {name for kernel in actual.kernels for name in named(actual, kernel)}
    check.true(any(re.fullmatch(pattern, name) for name in names), f"there is {pattern}", sorted(names))


@pytest.mark.parametrize(
    ("pattern", "target"),
    [
        pytest.param(r"nvvm\.shfl\.sync.*", "sm_90", id="shfl.sync", marks=clause("LANG-08.2-09")),
        pytest.param(r"rocdl\.ds_(swizzle|bpermute|permute).*", "gfx942", id="swizzle", marks=clause("LANG-08.2-12")),
    ],
)
def test_some_reduction_exchanges_values_between_lanes(impl, check, pattern, target):
    """At least one of a sum and a maximum exchanges values between lanes."""
    names = set()
    for expression, result in (("sum", "8xfp32"), ("max", "8xfp32")):
        source = returning(f"op.{expression}(A) @{{axis=1}}", "A: tensor<8x64xfp32>", f"tensor<{result}>")
        actual = lowered(impl, check, source, "target", target)
        names |= {name for kernel in actual.kernels for name in named(actual, kernel)}
    check.true(any(re.fullmatch(pattern, name) for name in names), f"there is {pattern}", sorted(names))
