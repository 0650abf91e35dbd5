"""The printed form of Graph IR: as the specification prints it, and back again (sections 5, 13.1; LANG-13.1-04)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.module import Block, Instruction, Module, Value
from tessera_reference.ir.operation import OPERATIONS, Operation, Role
from tessera_reference.ir.text import print_module
from tessera_reference.ir.text_reader import read_module
from tessera_reference.ir.types import Scalar
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

SAMPLE = """
module demo {
  func mm(A: tensor<1024x1024xbf16>, B: tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16> {
    let C: tensor<1024x1024xbf16> = op.matmul(A, B);
    return C;
  }
}
"""

PRINTED = """\
"builtin.module"() ({
  "tessera.graph.func"() ({
  ^bb0(%A: T, %B: T):
    %C = "tessera.graph.matmul"(%A, %B) {accum = "fp32"} : (T, T) -> T
    "tessera.graph.return"(%C) : (T) -> ()
  }) {sym_name = "mm", function_type = (T, T) -> (T)} : () -> ()
}) {sym_name = "demo"} : () -> ()
"""

MIXED = """
module m {
  func f(X: tensor<?xDxbf16; layout=blocked(bn=2, bm=1)>, i: int8, Y: tensor<4x4xfp32>) @{numerics_profile=strict} {
    g();
    return -X, i + -1, op.softmax(op.transpose(Y), axis=0) < 1e-7, h(Y), X == X;
  }
  func g() {}
  func h(Y: tensor<?x?xfp32>) { return Y; }
}
"""

NESTED = """
module m {
  mesh grid = mesh<axes=[dp, tp], shape=[4, 2]>;
  func f(x: tensor<?x4xfp32>, n: int32, s: fp32 = 0.1) -> tensor<?x4xfp32> {
    let y: tensor<?x4xfp32> = x;
    for (i in 0 : n) {
      if (i == 2) { y = y + x; } else {
        y = y * s;
        while (i > n) { if (n == 7) { return y; } }
      }
    }
    return y;
  }
  kernel k(A: tensor<4xfp32>, B: tensor<4xfp32>) { B = A + A; }
  func never(c: bool) -> int32 { if (c) { return 1; } else { return 2; } }
}
"""

NESTED_PRINTED = """\
"builtin.module"() ({
  "tessera.graph.mesh"() {sym_name = "grid", axes = ["dp", "tp"], shape = [4, 2]} : () -> ()
  "tessera.graph.func"() ({
  ^bb0(%x: T, %n: int32, %s: fp32):
    %0 = "tessera.graph.constant"() {value = 0} : () -> int32
    %1 = "tessera.graph.constant"() {value = 1} : () -> int32
    %8 = "tessera.graph.for"(%0, %n, %1, %x) ({
    ^bb0(%i: int32, %y: T):
      %2 = "tessera.graph.constant"() {value = 2} : () -> int32
      %3 = "tessera.graph.equal"(%i, %2) : (int32, int32) -> bool
      %7 = "tessera.graph.if"(%3) ({
        %y_4 = "tessera.graph.add"(%y, %x) : (T, T) -> T
        "tessera.graph.yield"(%y_4) : (T) -> ()
      }, {
        %y_5 = "tessera.graph.multiply"(%y, %s) : (T, fp32) -> T
        "tessera.graph.while"() ({
          %z = "tessera.graph.greater"(%i, %n) : (int32, int32) -> bool
          "tessera.graph.yield"(%z) : (bool) -> ()
        }, {
          %z = "tessera.graph.constant"() {value = 7} : () -> int32
          %z = "tessera.graph.equal"(%n, %z) : (int32, int32) -> bool
          "tessera.graph.if"(%z) ({
            "tessera.graph.return"(%y_5) : (T) -> ()
          }, {
            "tessera.graph.yield"() : () -> ()
          }) : (bool) -> ()
          "tessera.graph.yield"() : () -> ()
        }) : () -> ()
        "tessera.graph.yield"(%y_5) : (T) -> ()
      }) : (bool) -> T
      "tessera.graph.yield"(%7) : (T) -> ()
    }) : (int32, int32, int32, T) -> T
    "tessera.graph.return"(%8) : (T) -> ()
  }) {sym_name = "f", defaults = {s = S}, function_type = (T, int32, fp32) -> (T)} : () -> ()
  "tessera.graph.kernel"() ({
  ^bb0(%A: F, %B: F):
    %B_0 = "tessera.graph.add"(%A, %A) : (F, F) -> F
    "tessera.graph.return"(%A, %B_0) : (F, F) -> ()
  }) {sym_name = "k", function_type = (F, F) -> (F, F)} : () -> ()
  "tessera.graph.func"() ({
  ^bb0(%c: bool):
    "tessera.graph.if"(%c) ({
      %z = "tessera.graph.constant"() {value = 1} : () -> int32
      "tessera.graph.return"(%z) : (int32) -> ()
    }, {
      %z = "tessera.graph.constant"() {value = 2} : () -> int32
      "tessera.graph.return"(%z) : (int32) -> ()
    }) : (bool) -> ()
    "tessera.graph.unreachable"() : () -> ()
  }) {sym_name = "never", function_type = (bool) -> (int32)} : () -> ()
}) {sym_name = "m"} : () -> ()
"""


def test_the_sample_prints_as_in_the_spec() -> None:
    assert print_module(compile_source(SAMPLE).module) == PRINTED.replace("T", "tensor<1024x1024xbf16>")


def unnamed(text: str) -> list[str]:
    """Lines without the numbers of temporaries, which nobody chose."""
    words = [line.split() for line in text.splitlines()]
    return [" ".join(word.rstrip("0123456789") if word.startswith("%") else word for word in line) for line in words]


def test_regions_kernels_meshes_and_defaults_print() -> None:
    """A default is the fp32 nearest to 0.1, exactly."""
    text = print_module(compile_source(NESTED).module)
    wanted = NESTED_PRINTED.replace("T", "tensor<?x4xfp32>").replace("F", "tensor<4xfp32>")
    wanted = wanted.replace(" S}", " 0.10000000149011612}")
    assert shape_of(text) == shape_of(wanted)


def shape_of(text: str) -> list[str]:
    """A text whose values are numbered in the order in which they appear, since nobody chose the names of temporaries."""
    import re

    names: dict[str, str] = {}
    lines = []
    for line in text.splitlines():
        if "^bb0" in line and line.startswith("  ^bb0"):
            names = {}
        lines.append(re.sub(r"%\w+", lambda found: names.setdefault(found[0], f"%{len(names)}"), line))
    return lines
