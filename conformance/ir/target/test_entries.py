"""The entry of a kernel at Target IR: its symbol, its parameters and its attributes (language spec, 8.1 and 16)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.graph_texts import module
from tessera_conformance.chapters.ir.kit.kernel_texts import KernelText
from tessera_conformance.chapters.ir.kit.level_programs import WARPS, buffers_after, executed_text, verified
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature

pytestmark = feature("target-ir-text")

POINTER = "!llvm.ptr<1>"
SHARED = {"sm_80": 166912, "sm_90": 232448, "gfx90a": 65536, "gfx942": 65536}
"""The most bytes of shared memory of a block: CUDA's compute capabilities 8.0 and 9.0, the LDS of MI200 and MI300."""


def entry(parameters=None, target="sm_90", **attributes):
    """A kernel of no operations."""
    return KernelText(parameters or {"x": POINTER}, level="target", target=target, **attributes)


def accepted(impl, check, kernel):
    """The verifier takes the kernel on its target."""
    check.accepts(verified(impl, kernel.module, "target", kernel.attributes.get("target", "sm_90")))


def refused(impl, check, kernel, category="tile", target="sm_90"):
    """The verifier refuses it for a reason of this category."""
    check.rejects(verified(impl, kernel.module, "target", target), category=category, phase="verify")


@clause("LANG-08.1-01")
@pytest.mark.parametrize("target", WARPS)
def test_an_entry_has_a_symbol_typed_arguments_and_attributes(impl, check, target):
    """The entry of the specification: a buffer, an integer, a float, and attributes in any order."""
    parameters = {"arg0": POINTER, "arg1": "int64", "arg2": "fp32"}
    kernel = entry(parameters, target, grid=(3, 2, 1), block=(128, 1, 1), smem_bytes=64, stream="S")
    accepted(impl, check, kernel)
    kernel.attributes = dict(reversed(kernel.attributes.items()))
    accepted(impl, check, kernel)


@clause("LANG-08.1-01")
@pytest.mark.parametrize(
    ("written", "broken"),
    [
        ('{sym_name = "tss_kernel_k", ', "{"),
        (f", function_type = ({POINTER}) -> ()", ""),
        (f"function_type = ({POINTER}) -> ()", f"function_type = ({POINTER}, {POINTER}) -> ()"),
        (f"function_type = ({POINTER}) -> ()", "function_type = (int64) -> ()"),
        (f"function_type = ({POINTER}) -> ()", f"function_type = ({POINTER}) -> (int64)"),
        ('"tessera.target.kernel"', '"tessera.tile.kernel"'),
        ("smem_bytes = 0", "smem_bytes = 0, unknown = 0"),
        ("smem_bytes = 0", "smem_bytes = 0, smem_bytes = 0"),
    ],
    ids=["no-symbol", "no-types", "more-types", "other-types", "a-result", "other-level", "unknown", "twice"],
)
def test_an_entry_that_is_malformed_is_refused(impl, check, written, broken):
    """Symbol and types are there, and say what the kernel takes; it returns nothing and has no attributes but these."""
    kernel = entry()
    accepted(impl, check, kernel)
    text = kernel.module.replace(written, broken)
    check.true(text != kernel.module, "the text is another one")
    check.rejects(verified(impl, text, "target"), category=("syntax", "types", "tile"), phase=("parse", "verify"))


@clause("LANG-08.1-01")
def test_a_module_has_many_entries_of_different_symbols(impl, check):
    """A module may have two kernels of different symbols, but not of one."""
    first, second = entry(), entry(name="tss_kernel_l")
    text = first.module.replace(first.text, f"{first.text}\n{second.text}")
    check.accepts(verified(impl, text, "target"))
    check.rejects(verified(impl, text.replace("kernel_l", "kernel_k"), "target"), category=("types", "tile", "syntax"))


SYMBOLS = {
    "short": ("tss_kernel_k", True),
    "mangled": ("tss_kernel__Z3fooPf_0", True),
    "number": ("tss_kernel_4", True),
    "unlabelled": ("k", False),
    "no-name": ("tss_kernel_", False),
    "no-underscore": ("tss_kernelk", False),
    "capital": ("tss_Kernel_k", False),
    "underscore-in-front": ("_tss_kernel_k", False),
    "hyphen": ("tss_kernel_a-b", False),
    "space": ("tss_kernel_a b", False),
}


@clause("LANG-16-01")
@pytest.mark.parametrize(("symbol", "legal"), SYMBOLS.values(), ids=SYMBOLS)
def test_a_symbol_is_tss_kernel_and_a_mangled_name(impl, check, symbol, legal):
    """The prefix, then letters, digits and underscores, at least one."""
    kernel = entry(name=symbol)
    if legal:
        accepted(impl, check, kernel)
    else:
        refused(impl, check, kernel)


PRINTED = """\
kernel @tss_kernel_k(%arg0: !llvm.ptr<global>, %arg1: i64, %arg2: f32)
    attributes { grid=(2,3,1), block=(1,1,1), smem_bytes=0, stream=S }"""
"""Section 8.1's entry, with a symbol of section 16 and with numbers."""

BODY = """ {
  %x = nvvm.read.ptx.sreg.ctaid.x : int32
  %y = nvvm.read.ptx.sreg.ctaid.y : int32
  %three = llvm.mlir.constant {value = 3} : int32
  %row = llvm.mul %x, %three : (int32, int32) -> int32
  %index = llvm.add %row, %y : (int32, int32) -> int32
  %low = llvm.trunc %arg1 : int64 -> int32
  %sum = llvm.add %low, %index : (int32, int32) -> int32
  %place = llvm.getelementptr %arg0, %index {elem_type = "int32"} : (!llvm.ptr<1>, int32) -> !llvm.ptr<1>
  llvm.store %sum, %place : (int32, !llvm.ptr<1>) -> ()
  "tessera.graph.return"() : () -> ()
}"""


@clause("LANG-08.1-01", "LANG-08.1-02", "LANG-08.1-03", "LANG-08.1-07", "LANG-08.1-08")
def test_an_entry_is_accepted_as_section_8_1_prints_it(impl, check):
    """Symbol, arguments and attributes are those of the generic form; a body may stand behind them (AMB-LANG-280). Six
    blocks each write the second argument and their own number."""
    check.accepts(verified(impl, module(PRINTED), "target"))
    inputs = {"arg0": tensor_of("int32", [0] * 7), "arg1": tensor_of("int64", 100), "arg2": tensor_of("fp32", 1.5)}
    actual = check.returns(executed_text(impl, module(PRINTED + BODY), "target", **inputs))["outputs"]
    check.bits(actual[0], tensor_of("int32", [100, 101, 102, 103, 104, 105, 0]))
    for name, dtype in (("i32", "int32"), ("f64", "fp64")):
        text = module(PRINTED.replace("f32", name) + BODY)
        other = executed_text(impl, text, "target", **{**inputs, "arg2": tensor_of(dtype, 3)})
        check.bits(check.returns(other, f"an argument of {name}")["outputs"][0], actual[0])


@clause("LANG-08.1-01")
@pytest.mark.parametrize(
    ("written", "broken"),
    [
        ("grid=(2,3,1), ", ""),
        ("grid=(2,3,1)", "grid=(2,3)"),
        ("smem_bytes=0, ", ""),
        ("block=(1,1,1)", "block=(1,1,1), block=(1,1,1)"),
        ("<global>", "<shared>"),
        ("@tss_kernel_k", ""),
        ("stream=S", "unknown=S"),
        ("%arg1: i64", "%arg1"),
    ],
    ids=["no-grid", "two-extents", "no-smem", "twice", "shared-pointer", "no-symbol", "unknown", "no-type"],
)
def test_an_entry_as_printed_is_verified(impl, check, written, broken):
    """The printed form of an entry is subject to the requirements of section 8.1."""
    check.accepts(verified(impl, module(PRINTED), "target"))
    text = PRINTED.replace(written, broken)
    check.true(text != PRINTED, "the text is another one")
    check.rejects(verified(impl, module(text), "target"), category=("syntax", "types", "tile"))


# Parameters


@clause("LANG-08.1-02")
@pytest.mark.parametrize("space", [0, 1, 3, 4, 5])
def test_a_buffer_is_a_pointer_to_global_memory(impl, check, space):
    """Address space 1 (AMB-LANG-35); another is refused, also where it is not the first parameter."""
    for parameters in ({"x": f"!llvm.ptr<{space}>"}, {"x": POINTER, "y": f"!llvm.ptr<{space}>"}):
        kernel = entry(parameters)
        if space == 1:
            accepted(impl, check, kernel)
        else:
            refused(impl, check, kernel, ("tile", "types"))


@clause("LANG-08.1-02")
@pytest.mark.parametrize("type_", ["tensor<4xfp32>", "memref<4xfp32>[addrspace=global]", "vector<4xfp32>"])
def test_a_parameter_is_no_tensor_memref_or_vector(impl, check, type_):
    """A kernel's boundary takes no tensor, memref or vector: higher levels and registers hold these."""
    accepted(impl, check, entry())
    refused(impl, check, entry({"x": type_}), ("tile", "types"))


@clause("LANG-08.1-03")
@pytest.mark.parametrize("dtype", ["int32", "int64", "fp32", "fp64"])
def test_a_scalar_has_32_or_64_bits(impl, check, dtype):
    """Integers and floats, alone or behind a buffer."""
    accepted(impl, check, entry({"n": dtype}))
    accepted(impl, check, entry({"x": POINTER, "n": dtype, "o": dtype}))


@clause("LANG-08.1-03")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_scalar_is_no_complex_number(impl, check, dtype):
    """The entry passes 32 and 64 bits of an integer or a float; of narrower scalars nothing is said (AMB-RT-17)."""
    accepted(impl, check, entry({"n": "fp64"}))
    refused(impl, check, entry({"n": dtype}), ("types", "tile"))


@clause("LANG-08.1-03")
@pytest.mark.parametrize("place", [0, 1, 2, 5])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_no_scalar_among_others_is_a_complex_number(impl, check, dtype, place):
    """A complex scalar is refused at any place among six scalars."""
    scalars = {f"n{number}": ("int32", "fp64")[number % 2] for number in range(6)}
    accepted(impl, check, entry({"x": POINTER, **scalars}))
    refused(impl, check, entry({"x": POINTER, **scalars, f"n{place}": dtype}), ("types", "tile"))


ORDERS = {
    "buffers-scalars": ((POINTER, POINTER, "int64", "fp32"), True),
    "buffers": ((POINTER, POINTER), True),
    "scalars": (("fp32", "int64"), True),
    "scalar-first": (("int64", POINTER), False),
    "scalar-between": ((POINTER, "int64", POINTER), False),
    "buffer-last": ((POINTER, "int64", "fp32", POINTER), False),
}


@clause("LANG-16-02", "LANG-16-03")
@pytest.mark.parametrize(("types", "legal"), ORDERS.values(), ids=ORDERS)
def test_buffers_stand_before_scalars(impl, check, types, legal):
    """Any number of buffers, also none, is followed by any number of scalars; a scalar before a buffer is refused."""
    kernel = entry({f"p{place}": type_ for place, type_ in enumerate(types)})
    if legal:
        accepted(impl, check, kernel)
    else:
        refused(impl, check, kernel, ("tile", "types"))


# Grid and block

EXTENTS = {
    "two": [1, 1],
    "four": [1, 1, 1, 1],
    "none": [],
    "zero-x": [0, 1, 1],
    "zero-y": [1, 0, 1],
    "zero-z": [1, 1, 0],
    "negative": [1, -1, 1],
    "float": [1, 1.5, 1],
}


@clause("LANG-08.1-04")
def test_a_grid_is_explicit(impl, check):
    """An entry that states no grid is refused: there is no default."""
    accepted(impl, check, entry())
    refused(impl, check, entry(grid=None))


@clause("LANG-08.1-11")
def test_a_block_is_explicit(impl, check):
    """The block is stated, as the grid is."""
    accepted(impl, check, entry())
    refused(impl, check, entry(block=None))


@clause("LANG-08.1-07")
@pytest.mark.parametrize("extents", EXTENTS.values(), ids=EXTENTS)
def test_a_grid_has_three_positive_components(impl, check, extents):
    """Two, four, zeros and what is no integer are refused."""
    accepted(impl, check, entry(grid=(4, 3, 2)))
    refused(impl, check, entry(grid=extents), ("tile", "types"))


@clause("LANG-08.1-08")
@pytest.mark.parametrize("extents", EXTENTS.values(), ids=EXTENTS)
def test_a_block_has_three_positive_components(impl, check, extents):
    """Its three components are positive, as those of the grid are."""
    accepted(impl, check, entry(block=(4, 3, 2)))
    refused(impl, check, entry(block=extents), ("tile", "types"))


@clause("LANG-08.1-07")
@pytest.mark.parametrize("axis", range(3))
def test_a_grid_has_its_limits(impl, check, axis):
    """2**31 - 1 blocks along x, 65535 along y and z, and not one more (AMB-LANG-203)."""
    most = (2**31 - 1, 65535, 65535)[axis]
    for extent, legal in ((most, True), (most + 1, False)):
        kernel = entry(grid=[extent if place == axis else 1 for place in range(3)])
        if legal:
            accepted(impl, check, kernel)
        else:
            refused(impl, check, kernel)


@clause("LANG-08.1-08")
@pytest.mark.parametrize("target", WARPS)
def test_a_block_has_at_most_1024_threads(impl, check, target):
    """The product of the threads along all three axes is at most 1024."""
    accepted(impl, check, entry(target=target, block=(32, 8, 4)))
    refused(impl, check, entry(target=target, block=(32, 8, 5)), target=target)


# Shared memory


@clause("LANG-08.1-05")
def test_shared_memory_is_declared(impl, check):
    """A kernel without shared memory declares 0 bytes."""
    accepted(impl, check, entry(smem_bytes=0))
    refused(impl, check, entry(smem_bytes=None))


@clause("LANG-08.1-09")
@pytest.mark.parametrize("size", [-1, 1.5, "64"])
def test_the_size_of_shared_memory_is_a_number_of_bytes(impl, check, size):
    """Less than none, a fraction and a word are refused."""
    accepted(impl, check, entry(smem_bytes=64))
    refused(impl, check, entry(smem_bytes=size), ("tile", "types"))


@clause("LANG-08.1-09")
@pytest.mark.parametrize("target", WARPS)
def test_shared_memory_is_at_most_what_a_block_of_the_target_has(impl, check, target):
    """The block's whole shared memory is accepted; one byte more is refused."""
    accepted(impl, check, entry(target=target, smem_bytes=SHARED[target]))
    refused(impl, check, entry(target=target, smem_bytes=SHARED[target] + 1), target=target)


def holding(declared, *elements, target="sm_90"):
    """A kernel with arrays of so many fp32 in shared memory, each aligned to 16 bytes."""
    kernel = entry(target=target, smem_bytes=declared)
    for place, count in enumerate(elements):
        stated = {"global_name": f"s{place}", "elements": count, "elem_type": "fp32", "alignment": 16}
        kernel.op("llvm.mlir.addressof", gives="!llvm.ptr<3>", **stated)
    return kernel


@clause("LANG-08.1-05", "LANG-08.1-09")
@pytest.mark.parametrize(("elements", "size"), [((32,), 128), ((1, 1), 20), ((3, 4, 1), 36)])
@pytest.mark.parametrize("target", ["sm_80", "gfx942"])
def test_the_declared_size_covers_what_the_kernel_holds(impl, check, elements, size, target):
    """Arrays follow one another, each at a multiple of 16 bytes; one byte less than they take is refused."""
    accepted(impl, check, holding(size, *elements, target=target))
    refused(impl, check, holding(size - 1, *elements, target=target), target=target)


@clause("LANG-08.1-06")
@pytest.mark.parametrize("stated", [{}, {"dynamic_smem": True}, {"dynamic_smem": False}], ids=["unsaid", "yes", "no"])
def test_more_shared_memory_may_be_declared_than_the_kernel_holds(impl, check, stated):
    """The bytes behind the arrays are a dynamic segment, which the kernel may declare (AMB-LANG-264)."""
    kernel = holding(4096, 32)
    kernel.attributes |= stated
    accepted(impl, check, kernel)
    kernel.attributes["smem_bytes"] = 64
    refused(impl, check, kernel)


# Stream and target


@clause("LANG-08.1-10")
def test_a_stream_is_a_name(impl, check):
    """Any name, or none; a number is refused (AMB-LANG-73)."""
    for stream in ("S", "compute0", None):
        accepted(impl, check, entry(stream=stream))
    refused(impl, check, entry(stream=7), ("types", "tile"))


@clause("LANG-08.1-10")
@pytest.mark.parametrize("target", WARPS)
def test_a_stream_does_not_change_what_a_kernel_does(impl, check, target):
    """The launch decides where it runs."""
    for stream in (None, "S"):
        kernel = entry({"y": POINTER}, target, block=(1, 1, 1), stream=stream)
        kernel.op("llvm.store", kernel.op("llvm.mlir.constant", gives="int32", value=41), kernel["y"])
        actual = buffers_after(impl, check, kernel, y=tensor_of("int32", [0, 1]))
        check.bits(actual[0], tensor_of("int32", [41, 1]))


@clause("LANG-08-01")
@pytest.mark.parametrize("made_for", WARPS)
@pytest.mark.parametrize("target", WARPS)
def test_a_kernel_is_for_one_target(impl, check, made_for, target):
    """A kernel for one target is refused on every other; a kernel that names no target runs on any."""
    kernel = entry(target=made_for)
    if made_for == target:
        accepted(impl, check, kernel)
    else:
        refused(impl, check, kernel, target=target)
    check.accepts(verified(impl, entry(target=None).module, "target", target))
