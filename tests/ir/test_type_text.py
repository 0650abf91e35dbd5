"""Types in text: read at home and exported, and refused where they are none (language spec, sections 2.2, 3, 5.1)."""

from __future__ import annotations

import pytest

from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.type_text import exported, read_type, sound_mesh
from tessera_reference.ir.types import Fragment, FunctionType, Layout, Memref, Mesh, Scalar, Tensor, Type
from tessera_reference.numerics.formats import DTYPES, dtype

FP32, BF16 = dtype("fp32"), dtype("bf16")

TYPES: dict[str, tuple[Type, str]] = {
    "fp32": (Scalar(FP32), "!tessera.fp32"),
    "tensor<4xfp32>": (Tensor((4,), FP32), "!tessera.tensor<4xfp32>"),
    "tensor<?xDx0xcomplex64>": (Tensor(("?", "D", 0), dtype("complex64")), "!tessera.tensor<?xDx0xcomplex64>"),
    "tensor<2x3xbf16; layout=col_major>": (
        Tensor((2, 3), BF16, Layout("col_major")),
        "!tessera.tensor<2x3xbf16; layout=col_major>",
    ),
    "tensor<8x8xint8; layout=blocked(bm=2,bn=4)>": (
        Tensor((8, 8), dtype("int8"), Layout("blocked", (("bm", 2), ("bn", 4)))),
        "!tessera.tensor<8x8xint8; layout=blocked(bm=2,bn=4)>",
    ),
    "memref<128x64xbf16>[addrspace=shared]": (
        Memref((128, 64), BF16, "shared"),
        "!tessera.memref<128x64xbf16; addrspace=shared>",
    ),
    "fragment<16,8,4,bf16>": (Fragment(16, 8, 4, BF16), "!tessera.fragment<16,8,4,bf16>"),
    "fragment<16,8,4,bf16,layout=row_major>": (
        Fragment(16, 8, 4, BF16, Layout("row_major")),
        "!tessera.fragment<16,8,4,bf16,layout=row_major>",
    ),
    "mesh<axes=[dp, tp], shape=[4, 2]>": (
        Mesh(("dp", "tp"), (4, 2)),
        "!tessera.mesh<axes=[dp, tp], shape=[4, 2]>",
    ),
}


@pytest.mark.parametrize("text", TYPES)
def test_a_type_reads_at_home_and_exported(text: str) -> None:
    type_, abroad = TYPES[text]
    assert read_type(text) == type_
    assert read_type(abroad) == type_
    assert (str(type_), exported(type_)) == (text, abroad)


def test_every_dtype_reads_in_a_shape_and_alone() -> None:
    for name, held in DTYPES.items():
        assert read_type(name) == Scalar(held)
        assert read_type(f"tensor<7xNx{name}>") == Tensor((7, "N"), held)


def test_blanks_say_nothing() -> None:
    assert read_type("tensor< 2 x 3 x fp32 ;\n layout = blocked( bn=1, bm = 2 ) >") == Tensor(
        (2, 3), FP32, Layout("blocked", (("bm", 2), ("bn", 1)))
    )
    assert read_type("mesh<axes = [dp],shape=[4]>") == Mesh(("dp",), (4,))


def test_a_function_type_is_exported_between_angle_brackets() -> None:
    inner = FunctionType((Memref((4,), FP32, "shared"),), Scalar(FP32))
    assert exported(FunctionType((inner,), Tensor((4,), BF16))) == (
        "!tessera.fn<(fn(memref<4xfp32>[addrspace=shared]) -> fp32) -> tensor<4xbf16>>"
    )


def test_a_memref_without_an_address_space_is_global() -> None:
    assert read_type("memref<4xfp32>") == Memref((4,), FP32, "global")


@pytest.mark.parametrize(
    ("text", "category", "part"),
    [
        ("tensor<4xfp31>", "types", "unknown dtype 'fp31'"),
        ("float", "types", "unknown dtype 'float'"),
        ("!tessera.f32", "types", "unknown dtype 'f32'"),
        ("tensor<fp32>", "shapes", "a shape without dimensions"),
        ("tensor<4xx4xfp32>", "shapes", "'' is no dimension"),
        ("tensor<4,4xfp32>", "shapes", "'4,4' is no dimension"),
        ("tensor<-4xfp32>", "shapes", "'-4' is no dimension"),
        ("tensor<9223372036854775808xfp32>", "shapes", "an extent is too large"),
        ("tensor<4xfp32; layout=diagonal>", "layouts", "'diagonal' is no layout"),
        ("tensor<4xfp32; layout=blocked(bm=2)>", "layouts", "'blocked(bm=2)' is no layout"),
        ("tensor<4xfp32; layout=blocked(bm=0,bn=1)>", "layouts", "'blocked(bm=0,bn=1)' is no layout"),
        ("tensor<4xfp32; order=row_major>", "types", "'order=row_major' stands in a type"),
        ("tensor<4xfp32>[addrspace=shared]", "types", "is no type"),
        ("memref<4xfp32>[addrspace=private]", "types", "'private'"),
        ("memref<fp32>", "shapes", "a shape without dimensions"),
        ("fragment<16,16,bf16>", "types", "is no fragment type"),
        ("fragment<16,x,16,bf16>", "types", "is no fragment type"),
        ("fragment<16>", "types", "is no fragment type"),
        ("fragment<16,16,16,bf16,row_major,1>", "types", "is no fragment type"),
        ("fragment<16,16,0,bf16>", "tile", "a fragment has an extent of 0"),
        ("fragment<16,16,16,bf16,layout=diagonal>", "layouts", "'diagonal' is no layout"),
        ("mesh<shape=[4], axes=[dp]>", "distributed", "is no mesh type"),
        ("mesh<axes=[dp], shape=[4, 2]>", "distributed", "a mesh of 1 axes has 2 extents"),
        ("mesh<axes=[dp, dp], shape=[4, 2]>", "distributed", "an axis stands twice"),
        ("mesh<axes=[dp], shape=[0]>", "distributed", "an axis has no extent"),
    ],
)
def test_what_is_no_type_is_refused(text: str, category: str, part: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_type(text)
    assert caught.value.category == category
    assert part in caught.value.message
    assert caught.value.clause


@pytest.mark.parametrize("digits", ["9223372036854775807", "0" * 5000 + "7"])
def test_an_extent_is_read_however_it_is_written(digits: str) -> None:
    type_ = read_type(f"tensor<{digits}xfp32>")
    assert type_ == Tensor((int(digits.lstrip("0")),), FP32)


def test_long_parameters_of_a_layout_are_refused_at_once() -> None:
    """Each pair could be cut in many places; trying all of them would take for ever."""
    with pytest.raises(Refusal):
        read_type(f"tensor<4xfp32; layout=blocked({'a=111111111' * 60}!)>")


def test_a_mesh_has_an_axis() -> None:
    with pytest.raises(Refusal):
        sound_mesh((), ())
