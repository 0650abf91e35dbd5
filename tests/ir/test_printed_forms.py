"""Forms that the specification prints and MLIR has not (sections 5.2, 7.2, 8.1; AMB-LANG-53, AMB-LANG-280)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tessera_reference.target_ir.operations
import tessera_reference.tile.operations  # noqa: F401
from tessera_reference.ir.diagnostics import Diagnostic
from tessera_reference.ir.text import print_module
from tessera_reference.ir.text_reader import read_module

Reject = Callable[[str], list[Diagnostic]]

GENERIC = """\
"builtin.module"() ({
  "tessera.target.kernel"() ({
  ^bb0(%a: !llvm.ptr<1>, %b: int64, %c: fp32):
    "tessera.graph.return"() : () -> ()
  }) {sym_name = "tss_kernel_k", block = [32, 1, 1], grid = [2, 3, 1], smem_bytes = 64, stream = "S", function_type = \
(!llvm.ptr<1>, int64, fp32) -> ()} : () -> ()
}) {sym_name = "m"} : () -> ()
"""
ENTRY = """\
"builtin.module"() ({
kernel @tss_kernel_k(%a: !llvm.ptr<global>, %b: i64, %c: f32)
    attributes { grid=(2,3,1), block=(32,1,1), smem_bytes=64, stream=S }
}) {sym_name = "m"} : () -> ()
"""
COPY = """\
"builtin.module"() ({
  "tessera.tile.kernel"() ({
  ^bb0(%x: memref<4xint32>[addrspace=global]):
    %s = tessera.tile.shared.alloc : memref<4xint32>[addrspace=shared]
    %cp = tessera.tile.cp.async %x, %s {bytes=16}
    "tessera.graph.return"() : () -> ()
  }) {sym_name = "tss_kernel_k", block = [1, 1, 1], grid = [1, 1, 1], smem_bytes = 16, function_type = \
(memref<4xint32>[addrspace=global]) -> ()} : () -> ()
}) {sym_name = "m"} : () -> ()
"""


def test_an_entry_means_the_generic_form() -> None:
    assert print_module(read_module(ENTRY)) == GENERIC


def test_an_entry_with_a_body_means_the_generic_form() -> None:
    body = 'stream=S } {\n  "tessera.graph.return"() : () -> ()\n}'
    assert print_module(read_module(ENTRY.replace("stream=S }", body))) == GENERIC


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kernel @", "%r = kernel @", "expected an operation"),
        ("(%a:", "(%a", "expected ':' behind %a"),
        ("grid=(2,3,1), ", "grid=(2,3,1), grid=(2,3,1), ", "expected another attribute"),
        (", stream=S", " stream=S", "expected ',' between attributes"),
        ("i64", "i48", "i48"),
    ],
)
def test_an_entry_of_another_form_is_refused(old: str, new: str, message: str, rejected: Reject) -> None:
    assert ENTRY.count(old) == 1
    (found, *_) = rejected(ENTRY.replace(old, new))
    assert message in found.message


@pytest.mark.parametrize(("scalar", "of_llvm"), [("int64", "i64"), ("fp32", "f32")])
def test_scalars_have_their_names_of_llvm_in_an_entry_alone(scalar: str, of_llvm: str, rejected: Reject) -> None:
    assert f"unknown dtype '{of_llvm}'" in rejected(GENERIC.replace(scalar, of_llvm))[0].message


def test_the_name_of_a_copy_is_no_value(rejected: Reject) -> None:
    assert print_module(read_module(COPY)).count("%cp") == 0
    used = COPY.replace("{bytes=16}\n", "{bytes=16}\n    %y = tessera.graph.negate %cp : int32\n")
    (found,) = rejected(used)
    assert (found.span.line, found.message) == (6, "negate: %cp is the name of an operation without a result")


def test_the_name_of_a_copy_is_one_name(rejected: Reject) -> None:
    for other in ("%cp:2 =", "%cp, %cq =", "%s ="):
        assert [found.span.line for found in rejected(COPY.replace("%cp =", other))] == [5]


def test_the_name_of_a_copy_is_free_where_its_region_has_ended() -> None:
    branches = """\
    %c = tessera.graph.constant {value = true, dtype = "bool"} : bool
    "tessera.graph.if"(%c) ({
      %cp = tessera.tile.cp.async %x, %s {bytes=16}
      "tessera.graph.yield"() : () -> ()
    }, {
      %cp = tessera.graph.constant {value = 1, dtype = "int32"} : int32
      %d = tessera.graph.add %cp, %cp : int32
      "tessera.graph.yield"() : () -> ()
    }) : (bool) -> ()
"""
    copy = "    %cp = tessera.tile.cp.async %x, %s {bytes=16}\n"
    assert COPY.count(copy) == 1
    read = print_module(read_module(COPY.replace(copy, branches)))
    assert (read.count("tessera.tile.cp.async"), read.count("tessera.graph.add")) == (1, 1)


def test_a_constant_of_a_type_alone_is_zeros_of_it() -> None:
    text = """\
"builtin.module"() ({
  "tessera.graph.func"() ({
  ^bb0():
    %t  = tessera.graph.const_tensor  : tensor<2x3xbf16; layout=col_major>
    "tessera.graph.return"(%t) : (tensor<2x3xbf16; layout=col_major>) -> ()
  }) {sym_name = "f", function_type = () -> (tensor<2x3xbf16; layout=col_major>)} : () -> ()
}) {sym_name = "m"} : () -> ()
"""
    (constant,) = read_module(text).functions["f"].body.instructions
    attributes = constant.operation.attributes
    assert attributes == {**attributes, "shape": (2, 3), "value": 0, "layout": "col_major"}


@pytest.mark.parametrize("type_", ["tensor<?x3xbf16>", "tensor<Nx3xbf16>"])
def test_a_constant_of_an_open_type_is_refused(type_: str, rejected: Reject) -> None:
    text = f"""\
"builtin.module"() ({{
  "tessera.graph.func"() ({{
  ^bb0():
    %t  = tessera.graph.const_tensor  : {type_}
    "tessera.graph.return"(%t) : ({type_}) -> ()
  }}) {{sym_name = "f", function_type = () -> ({type_})}} : () -> ()
}}) {{sym_name = "m"}} : () -> ()
"""
    assert "the attribute shape is missing" in rejected(text)[0].message
