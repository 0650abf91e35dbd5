"""The emitted code: LLVM IR, PTX and the assembly of AMD (language spec, 8, 8.1, 8.2, 13.1 and 16).

Texts are searched for what the specification names, however a compiler arranges the rest. Whether the vendors' tools
take them depends on the tools at hand, and is not judged here.
"""

from __future__ import annotations

import re

import pytest

from tessera_conformance.chapters.ir.kit.level_programs import BOTH_VENDORS, SAMPLE, STAGED, emitted
from tessera_conformance.chapters.ir.kit.programs import declaring
from tessera_conformance.dsl import returning
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected, Unsupported

NVIDIA, AMD = ("sm_80", "sm_90"), ("gfx90a", "gfx942")
ASSEMBLY = {**dict.fromkeys(NVIDIA, "ptx"), **dict.fromkeys(AMD, "amdgcn")}
PRODUCT = returning("A @ B", "A: tensor<16x32xbf16>, B: tensor<32x16xbf16>", "tensor<16x16xbf16>")
CHAIN = returning("A * B + s", "A: tensor<40xfp32>, B: tensor<40xfp32>, s: fp32", "tensor<40xfp32>")
DOUBLE = returning("A * B + s", "A: tensor<40xfp64>, B: tensor<40xfp64>, s: fp64", "tensor<40xfp64>")
SCALED = {
    dtype: returning("A * s", f"A: tensor<40x{dtype}>, s: {dtype}", f"tensor<40x{dtype}>")
    for dtype in ("fp32", "fp64", "int64")
}
"""One operation each, and so one kernel without fusion, too."""
REDUCTIONS = [
    returning(f"op.{name}(A) @{{axis=1}}", "A: tensor<8x64xfp32>", f"tensor<{result}>")
    for name, result in (("sum", "8xfp32"), ("max", "8xfp32"), ("softmax", "8x64xfp32"))
]


def by_vendor(nvidia, amd):
    """Both vendors' targets, and the clauses of what is emitted for each."""
    named = {**dict.fromkeys(NVIDIA, nvidia), **dict.fromkeys(AMD, amd)}
    return pytest.mark.parametrize(
        "target", [pytest.param(target, marks=clause(*clauses.split())) for target, clauses in named.items()]
    )


def finds(check, pattern, text, what):
    """Some line of a text matches."""
    actual = re.findall(pattern, text, re.MULTILINE)
    check.true(len(actual) > 0, what, text[:400])
    return actual


# Whose code it is


@clause("LANG-08-02")
@pytest.mark.parametrize("target", NVIDIA)
@pytest.mark.parametrize("source", [PRODUCT, CHAIN], ids=["product", "chain"])
def test_for_nvidia_ptx_is_emitted(impl, check, source, target):
    """With a version, its target and 64-bit addresses; one entry for each kernel, with a body that returns."""
    text = emitted(impl, check, source, "ptx", target)
    finds(check, r"^\s*\.version\s+\d+\.\d+\s*$", text, "the version")
    stated = finds(check, r"^\s*\.target\s+(\w+)", text, "the target")
    check.equal(set(stated) - {target, f"{target}a"}, set(), "other targets")
    finds(check, r"^\s*\.address_size\s+64\s*$", text, "the size of an address")
    finds(check, r"^\s*\.visible\s+\.entry\s", text, "an entry that is visible")
    finds(check, r"^\s*(?:@%p\d+\s+)?(?:ret|exit);", text, "a return")


@clause("LANG-08-03")
@pytest.mark.parametrize("target", AMD)
@pytest.mark.parametrize("source", [PRODUCT, CHAIN], ids=["product", "chain"])
def test_for_amd_assembly_is_emitted(impl, check, source, target):
    """With its target, a descriptor for each kernel, and code that ends."""
    text = emitted(impl, check, source, "amdgcn", target)
    stated = finds(check, r"^\s*\.amdgcn_target\s+\"amdgcn-amd-amdhsa-[\w-]*-(gfx\w+)", text, "the target")
    check.equal(set(stated), {target}, "the targets")
    finds(check, r"^\s*\.amdhsa_kernel\s+\w+", text, "the descriptor of a kernel")
    finds(check, r"^\s*s_endpgm\b", text, "an end")


@by_vendor("LANG-08-02", "LANG-08-03")
def test_llvm_ir_is_for_the_target(impl, check, target):
    """Its triple is that of the vendor, and its functions are for that processor."""
    text = emitted(impl, check, PRODUCT, "llvm", target)
    triple = "nvptx64-nvidia-cuda" if target in NVIDIA else "amdgcn-amd-amdhsa"
    check.equal(set(re.findall(r'^target triple = "([^"]*)"', text, re.MULTILINE)), {triple}, "the triple")
    check.equal(set(re.findall(r'"target-cpu"="([^"]*)"', text)) - {f"{target}a"}, {target}, "the processors")


@feature("target-nvptx")
@feature("target-amdgcn")
@by_vendor("LANG-08-02", "LANG-08-03")
def test_the_assembly_of_the_other_vendor_is_refused(impl, check, target):
    """There is no PTX for AMD, and no AMDGCN for NVIDIA (AMB-LANG-266)."""
    emitted(impl, check, CHAIN, ASSEMBLY[target], target)
    other = "amdgcn" if target in NVIDIA else "ptx"
    observation = impl.language.lower(source=CHAIN, to=other, target=target)
    refused = isinstance(observation, Rejected) and observation.code == "TESS_ERR_UNSUPPORTED"
    check.reading("AMB-LANG-266", "unsupported", refused or isinstance(observation, Unsupported))
    check.status(observation, "TESS_ERR_INVALID_VALUE")


# Instructions

PTX = {
    "mma.sync": (r"^\s*(?:wmma\.)?mma\.sync\b.*\.bf16\b", "LANG-08.2-05"),
    "ldmatrix": (r"^\s*ldmatrix\.sync\b", "LANG-08.2-06"),
    "cp.async": (r"^\s*(?:@!?%p\d+\s+)?cp\.async\.c[ag]\.shared", "LANG-08.2-07"),
    "cp.async-wait": (r"^\s*cp\.async\.(?:wait_group|wait_all|mbarrier)", "LANG-08.2-07"),
    "bar.sync": (r"^\s*(?:bar\.sync|barrier(?:\.cta)?\.sync)\b", "LANG-08.2-08"),
}
GCN = {
    "mfma": (r"^\s*v_w?mfma_f32_\d+x\d+x\d+_?bf16", "LANG-08.2-10"),
    "lds-read": (r"^\s*ds_(?:read|load)_?\w*", "LANG-08.2-11"),
    "lds-write": (r"^\s*ds_(?:write|store)_?\w*", "LANG-08.2-11"),
}


@pytest.mark.parametrize("target", NVIDIA)
@pytest.mark.parametrize(
    "pattern", [pytest.param(pattern, id=name, marks=clause(judged)) for name, (pattern, judged) in PTX.items()]
)
def test_the_ptx_of_a_product_has_the_instructions_of_nvidia(impl, check, pattern, target):
    """A product of bf16 in tiles that a matrix unit has is staged in shared memory, loaded and multiplied.

    wmma will do as well (AMB-LANG-62). Without the sizes a compiler may choose tiles that fit no instruction.
    """
    finds(check, pattern, emitted(impl, check, PRODUCT, "ptx", target, STAGED), pattern)


HALVES = {"m16n8k16", "m16n8k8", "m16n16k16", "m32n8k16", "m8n32k16"}
SHAPES = {
    "fp16": ("f16", HALVES | {"m8n8k4"}),
    "bf16": ("bf16", HALVES),
    "tf32": ("tf32", {"m16n8k8", "m16n8k4", "m16n16k8"}),
    "fp64": ("f64", {"m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"}),
    "int8": ("s8", {"m16n8k32", "m16n8k16", "m8n8k16", "m16n16k16", "m32n8k16", "m8n32k16"}),
    "fp8_e4m3": ("e4m3", {"m16n8k32", "m16n8k16"}),
    "fp8_e5m2": ("e5m2", {"m16n8k32", "m16n8k16"}),
}
"""The type of the factors of mma and wmma, and its shapes (PTX ISA, "Warp Level Matrix Multiply-Accumulate")."""


@clause("LANG-08.2-05")
@pytest.mark.parametrize("dtype", SHAPES)
def test_a_matrix_instruction_has_a_shape_of_ptx(impl, check, dtype):
    """Each matrix instruction of a product of 64 x 64 x 64 is one of PTX; wmma of fp16 names no type of factors."""
    source = returning("A @ B", f"A: tensor<64x64x{dtype}>, B: tensor<64x64x{dtype}>")
    text = emitted(impl, check, source, "ptx", "sm_90")
    name, shapes = SHAPES[dtype]
    used = re.findall(r"^\s*(?:wmma\.)?mma\.sync\.\S+", text, re.MULTILINE)
    check.given(len(used) > 0, "products have matrix instructions")
    typed = [line for line in used if f".{name}" in line or (dtype == "fp16" and "wmma" in line)]
    legal = [line for line in typed if not shapes.isdisjoint(line.split("."))]
    check.equal(sorted(set(used) - set(legal)), [], "instructions that are none of PTX")


@pytest.mark.parametrize("target", AMD)
@pytest.mark.parametrize(
    "pattern", [pytest.param(pattern, id=name, marks=clause(judged)) for name, (pattern, judged) in GCN.items()]
)
def test_the_assembly_of_a_product_has_the_instructions_of_amd(impl, check, pattern, target):
    """The assembly uses the LDS and MFMA instructions, as that of NVIDIA uses its own."""
    finds(check, pattern, emitted(impl, check, PRODUCT, "amdgcn", target, STAGED), pattern)


@by_vendor("LANG-08.2-09", "LANG-08.2-12")
def test_some_reduction_exchanges_values_between_lanes(impl, check, target):
    """At least one of a sum, a maximum and a softmax uses shfl.sync, or DS swizzles and permutations."""
    text = "".join(emitted(impl, check, source, ASSEMBLY[target], target) for source in REDUCTIONS)
    pattern = r"^\s*(?:@!?%p\d+\s+)?shfl\.sync\b" if target in NVIDIA else r"^\s*ds_(?:swizzle|bpermute|permute)_b32"
    finds(check, pattern, text, pattern)


@clause("LANG-13.1-07")
def test_the_sample_calls_a_matrix_intrinsic_of_nvvm(impl, check):
    """In LLVM IR: wmma of 16x16x16, or mma of a shape that makes it up (AMB-LANG-62)."""
    text = emitted(impl, check, SAMPLE, "llvm", "sm_90")
    called = finds(check, r"call [^@\n]*@(llvm\.nvvm\.\w*mma\.\S*?)\(", text, "calls of mma")
    shapes = {re.search(r"m\d+n\d+k\d+", name)[0] for name in called}
    check.true(
        shapes <= {"m16n16k16", "m16n8k16", "m16n8k8", "m8n8k4"}, "shapes that 16x16x16 is made of", sorted(shapes)
    )
    check.true(all("bf16" in name for name in called), "they multiply bf16", sorted(set(called)))


# Entries


def parameters(text, target):
    """Return the parameters of the first kernel of emitted LLVM IR: `buffer`, or the type of a scalar."""
    match = re.search(r"^define [^@\n]*@(tss_kernel_\w+)\((.*)\)[^()\n]*\{$", text, re.MULTILINE)
    if match is None:
        return []
    return [
        "buffer" if word.strip().startswith("ptr addrspace(1)") else word.split()[0] for word in match[2].split(",")
    ]


ENTRIES = {
    "product": (PRODUCT, ["buffer"] * 3),
    "fp32": (SCALED["fp32"], ["buffer"] * 2 + ["float"]),
    "fp64": (SCALED["fp64"], ["buffer"] * 2 + ["double"]),
    "int64": (SCALED["int64"], ["buffer"] * 2 + ["i64"]),
}


@clause("LANG-16-02", "LANG-16-03", "LANG-16-04", "LANG-08.1-03")
@feature("target-nvptx")
@feature("target-amdgcn")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize(("source", "expected"), ENTRIES.values(), ids=ENTRIES)
def test_emitted_parameters_are_buffers_then_scalars_then_what_is_hidden(impl, check, source, expected, target):
    """Global pointers first, scalars of their own width, and behind them nothing but metadata (AMB-LANG-220)."""
    actual = parameters(emitted(impl, check, source, "llvm", target), target)
    check.equal(actual[: len(expected)], expected, "the buffers and scalars")
    hidden = actual[len(expected) :]
    check.true("buffer" not in hidden, "there is no buffer among the metadata", hidden)


@clause("LANG-16-04", "LANG-08.1-02")
@feature("target-nvptx")
@pytest.mark.parametrize("target", NVIDIA)
def test_the_parameters_of_ptx_have_the_same_order(impl, check, target):
    """Two addresses of 64 bits, then a float."""
    text = emitted(impl, check, SCALED["fp32"], "ptx", target)
    inside = finds(check, r"\.entry\s+tss_kernel_\w+\s*\(([^)]*)\)", text, "the entry")[0]
    types = re.findall(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w)(\d+)", inside)
    check.true([size for _, size in types[:3]] == ["64", "64", "32"], "the parameters", types)
    check.true(all(kind in "ub" for kind, _ in types[:2]), "addresses first", types)


def entry_arguments(text, target):
    """Return the parameters of the only entry of assembly, in order: types of PTX, or the kinds of AMD's metadata."""
    if target in AMD:
        return re.findall(r"^\s*(?:- )?\.value_kind:\s*(\w+)", text, re.MULTILINE)
    inside = re.search(r"\.entry\s+tss_kernel_\w+\s*\(([^)]*)\)", text)
    return re.findall(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)", inside[1]) if inside else []


@by_vendor("LANG-16-04 LANG-08-02", "LANG-16-04 LANG-08-03")
@pytest.mark.parametrize(("source", "expected"), ENTRIES.values(), ids=ENTRIES)
def test_an_emitted_entry_ends_in_launch_metadata(impl, check, source, expected, target):
    """Behind buffers and scalars the assembly declares at least one more: whole words, or what AMD calls hidden, and
    no buffer (AMB-LANG-220)."""
    taken = entry_arguments(emitted(impl, check, source, ASSEMBLY[target], target), target)
    hidden = taken[len(expected) :]
    check.true(len(hidden) > 0, f"there are more than {len(expected)} parameters", taken)
    strange = [kind for kind in hidden if re.fullmatch(r"[ubs](?:32|64)|by_value|hidden_\w+", kind) is None]
    check.equal(strange, [], "other parameters among the metadata")


@by_vendor("LANG-16-01 LANG-08-02", "LANG-16-01 LANG-08-03")
@pytest.mark.parametrize("source", [PRODUCT, CHAIN], ids=["product", "chain"])
def test_emitted_symbols_begin_with_tss_kernel(impl, check, source, target):
    """In LLVM IR and in assembly, where they are visible."""
    defined = finds(check, r"^define [^@\n]*@\"?([\w.-]+)", emitted(impl, check, source, "llvm", target), "a function")
    text = emitted(impl, check, source, ASSEMBLY[target], target)
    pattern = r"^\s*\.visible\s+\.entry\s+([\w$]+)" if target in NVIDIA else r"^\s*\.amdhsa_kernel\s+(\S+)"
    visible = finds(check, pattern, text, "an entry")
    for symbol in {*defined, *visible}:
        check.true(re.fullmatch(r"tss_kernel_\w+", symbol) is not None, "the symbol is tss_kernel_...", symbol)
    if target in AMD:
        finds(check, r"^\s*\.globl\s+tss_kernel_\w+", text, "the symbol is global")


@by_vendor("LANG-16-05 LANG-16-06 LANG-08-02", "LANG-16-05 LANG-08-03")
def test_shared_memory_of_fragments_is_aligned_to_16_bytes(impl, check, target):
    """Every array of the product, in LLVM IR and in PTX."""
    text = emitted(impl, check, PRODUCT, "llvm", target)
    aligned = finds(check, r"^@\S+ = .*addrspace\(3\) global .*, align (\d+)", text, "arrays in shared memory")
    every = finds(check, r"^@\S+ = .*addrspace\(3\) global ", text, "arrays in shared memory")
    check.equal(len(aligned), len(every), "the number of arrays that state an alignment")
    check.equal([alignment for alignment in aligned if int(alignment) % 16], [], "other alignments")
    if target in NVIDIA:
        text = emitted(impl, check, PRODUCT, "ptx", target)
        stated = finds(
            check, r"^\s*(?:\.visible |\.extern )?\.shared\s+\.align\s+(\d+)", text, "arrays in shared memory"
        )
        check.equal([alignment for alignment in stated if int(alignment) % 16], [], "other alignments")


@by_vendor("LANG-08.1-08 LANG-08-02", "LANG-08.1-08 LANG-08-03")
@feature("lower-target")
def test_the_block_of_a_kernel_is_one_that_may_be_launched(impl, check, target):
    """Launch bounds, where they are stated, cover the block of Target IR."""
    stated = {} if target == "sm_90" else {"target": target}
    entries = check.accepts(impl.language.lower(source=PRODUCT, to="target", **stated))["functions"]
    blocks = [entry["attributes"]["block"] for entry in entries if entry["name"].lstrip("@").startswith("tss_kernel_")]
    check.true(len(blocks) > 0, "there is a kernel")
    x, y, z = blocks[0]
    text = emitted(impl, check, PRODUCT, ASSEMBLY[target], target)
    if target in NVIDIA:
        for name, *extents in re.findall(r"\.(reqntid|maxntid)\s+(\d+)(?:,\s*(\d+))?(?:,\s*(\d+))?", text):
            actual = [int(extent or 1) for extent in extents]
            fits = actual == [x, y, z] if name == "reqntid" else actual[0] * actual[1] * actual[2] >= x * y * z
            check.true(fits, f"{name} covers the block", actual)
    else:
        bounds = [int(size) for size in re.findall(r"\.max_flat_workgroup_size:\s*(\d+)", text)]
        check.true(all(bound >= x * y * z for bound in bounds), "the bound covers the block", bounds)


# Arithmetic

FLAGS = re.compile(r"\b(?:fast|contract|reassoc|nnan|ninf|nsz|arcp|afn)\b")
FUSED = re.compile(r"@llvm\.(?:fma|fmuladd)\.|\"unsafe-fp-math\"=\"true\"|\"fp-contract\"=\"(?:fast|on)\"")


@by_vendor("LANG-10-11 LANG-08-02", "LANG-10-11 LANG-08-03")
@pytest.mark.parametrize("source", [PRODUCT, CHAIN, DOUBLE], ids=["product", "fp32", "fp64"])
def test_llvm_ir_permits_no_other_arithmetic(impl, check, source, target):
    """No instruction has a flag of fast arithmetic or contraction, and nothing is fused (AMB-LANG-265)."""
    text = emitted(impl, check, declaring(source, "strict"), "llvm", target)
    finds(check, r"^define ", text, "a function")
    lines = [re.sub(r"[%@][-\w.$]+", "", line) for line in text.splitlines() if " = " in line or " call " in line]
    flagged = [line.strip() for line in lines if FLAGS.search(line)]
    check.equal(flagged, [], "instructions with flags")
    check.equal([line.strip() for line in text.splitlines() if FUSED.search(line)], [], "fused operations")


@by_vendor("LANG-10-11 LANG-08-02", "LANG-10-11 LANG-08-03")
@pytest.mark.parametrize(("source", "bits"), [(CHAIN, 32), (DOUBLE, 64)], ids=["fp32", "fp64"])
def test_a_product_and_a_sum_are_rounded_each(impl, check, source, bits, target):
    """The assembly multiplies and adds: nothing is fused, flushed or approximate."""
    text = emitted(impl, check, declaring(source, "strict"), ASSEMBLY[target], target)
    if target in NVIDIA:
        finds(check, rf"^\s*mul(?:\.rn)?\.f{bits}\b", text, "a product")
        finds(check, rf"^\s*add(?:\.rn)?\.f{bits}\b", text, "a sum")
        wrong = r"^\s*(?:fma|mad)\.(?:rn\.)?(?:ftz\.)?f(?:32|64)|\.ftz\b|\.approx\b"
    else:
        finds(check, rf"^\s*v_(?:pk_)?mul_f{bits}", text, "a product")
        finds(check, rf"^\s*v_(?:pk_)?add_f{bits}", text, "a sum")
        wrong = r"^\s*v_(?:pk_)?(?:fma|fmac|mad|mac)_(?:legacy_)?f(?:32|64)"
    check.equal(re.findall(wrong, text, re.MULTILINE), [], "fused or approximate instructions")
