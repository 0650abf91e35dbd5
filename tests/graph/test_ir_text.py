"""The printed form of Graph IR: as the specification prints it, and back again (sections 5, 13.1; LANG-13.1-04)."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.module import Block, Instruction, Module
from tessera_reference.ir.operation import OPERATIONS, Operation, Role
from tessera_reference.ir.text import print_module
from tessera_reference.ir.text_reader import read_module
from tessera_reference.ir.types import Scalar, Value
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
    %10 = "tessera.graph.for"(%0, %n, %1, %x) ({
    ^bb0(%i: int32, %y: T):
      %2 = "tessera.graph.constant"() {value = 2} : () -> int32
      %3 = "tessera.graph.equal"(%i, %2) : (int32, int32) -> bool
      %9 = "tessera.graph.if"(%3) ({
        %y_4 = "tessera.graph.add"(%y, %x) : (T, T) -> T
        "tessera.graph.yield"(%y_4) : (T) -> ()
      }, {
        %y_5 = "tessera.graph.multiply"(%y, %s) : (T, fp32) -> T
        "tessera.graph.while"() ({
          %6 = "tessera.graph.greater"(%i, %n) : (int32, int32) -> bool
          "tessera.graph.yield"(%6) : (bool) -> ()
        }, {
          %7 = "tessera.graph.constant"() {value = 7} : () -> int32
          %8 = "tessera.graph.equal"(%n, %7) : (int32, int32) -> bool
          "tessera.graph.if"(%8) ({
            "tessera.graph.return"(%y_5) : (T) -> ()
          }, {
            "tessera.graph.yield"() : () -> ()
          }) : (bool) -> ()
          "tessera.graph.yield"() : () -> ()
        }) : () -> ()
        "tessera.graph.yield"(%y_5) : (T) -> ()
      }) : (bool) -> T
      "tessera.graph.yield"(%9) : (T) -> ()
    }) : (int32, int32, int32, T) -> T
    "tessera.graph.return"(%10) : (T) -> ()
  }) {sym_name = "f", defaults = {s = S}, function_type = (T, int32, fp32) -> (T)} : () -> ()
  "tessera.graph.kernel"() ({
  ^bb0(%A: F, %B: F):
    %B_0 = "tessera.graph.add"(%A, %A) : (F, F) -> F
    "tessera.graph.return"(%A, %B_0) : (F, F) -> ()
  }) {sym_name = "k", function_type = (F, F) -> (F, F)} : () -> ()
  "tessera.graph.func"() ({
  ^bb0(%c: bool):
    "tessera.graph.if"(%c) ({
      %0 = "tessera.graph.constant"() {value = 1} : () -> int32
      "tessera.graph.return"(%0) : (int32) -> ()
    }, {
      %1 = "tessera.graph.constant"() {value = 2} : () -> int32
      "tessera.graph.return"(%1) : (int32) -> ()
    }) : (bool) -> ()
    "tessera.graph.unreachable"() : () -> ()
  }) {sym_name = "never", function_type = (bool) -> (int32)} : () -> ()
}) {sym_name = "m"} : () -> ()
"""


def test_the_sample_prints_as_in_the_spec() -> None:
    assert print_module(compile_source(SAMPLE).module) == PRINTED.replace("T", "tensor<1024x1024xbf16>")


def numbered(text: str) -> list[str]:
    """Lines whose values are numbered as they appear in their function: nobody chose the names of temporaries."""
    names: dict[str, str] = {}
    lines = []
    for line in text.splitlines():
        if line.endswith('"() ({'):
            names.clear()
        lines.append(re.sub(r"%\w+", lambda found: names.setdefault(found[0], f"%{len(names)}"), line))
    return lines


def test_regions_kernels_meshes_and_defaults_print() -> None:
    """The default is the fp32 nearest to 0.1, exactly."""
    wanted = NESTED_PRINTED.replace("T", "tensor<?x4xfp32>").replace("F", "tensor<4xfp32>")
    wanted = wanted.replace("= S}", "= 0.10000000149011612}")
    assert numbered(print_module(compile_source(NESTED).module)) == numbered(wanted)


def test_export_uses_dialect_types_locations_and_parameters() -> None:
    text = print_module(compile_source(SAMPLE, 'dir/"x".tsr').module, export=True)
    line = next(line for line in text.splitlines() if "matmul" in line)
    assert line.count("!tessera.tensor<1024x1024xbf16>") == 3
    assert line.endswith(' loc("dir/\\"x\\".tsr":4:37)')
    assert 'parameters = ["A", "B"]' in text


def test_results_take_the_names_of_variables_once() -> None:
    text = print_module(compile_source(MIXED).module)
    assert '%0 = "tessera.graph.negate"(%X) : (tensor<?xDxbf16; layout=blocked(bm=1,bn=2)>)' in text
    assert '"tessera.graph.call"() {callee = "g"} : () -> ()' in text
    assert '{axis = 0, accum = "fp32"}' in text
    assert '{sym_name = "f", numerics_profile = "strict", function_type = ' in text


@pytest.mark.parametrize("source", [SAMPLE, MIXED, NESTED, "module m {}"], ids=["sample", "mixed", "nested", "empty"])
@pytest.mark.parametrize("export", [False, True], ids=["home", "export"])
def test_what_is_printed_reads_back(source: str, export: bool) -> None:
    text = print_module(compile_source(source, "a.tsr").module, export=export)
    assert print_module(read_module(text), export=export) == text


def test_what_reads_back_computes_the_same() -> None:
    """Three turns: scaled by 2, scaled by 2, and x added."""
    module = read_module(print_module(compile_source(NESTED).module))
    x = Array(dtype("fp32"), np.asarray([[1, 2, 3, 4]], np.float32))
    n, s = Array(dtype("int32"), np.asarray(3, np.int32)), Array(dtype("fp32"), np.asarray(2, np.float32))
    (found,) = execute(module, "f", {"x": x, "n": n, "s": s})
    assert found.values.tolist() == [[5, 10, 15, 20]]


# What only modules built by hand can have


def printed(instruction: Instruction, *arguments: Value) -> str:
    whole = compile_source("module m { func f() {} }").module
    function = replace(whole.functions["f"], body=Block(arguments, (instruction,), ()))
    return print_module(Module("m", {"f": function}, whole.location))


def negation(x: Value, y: Value, **rest: object) -> Instruction:
    made: Operation = OPERATIONS["tessera.graph.negate"](x=x.type)  # type: ignore[call-arg]  # the class is not known
    place = compile_source("module m {}").module.location
    return Instruction(made, (x,), (y,), place, **rest)  # type: ignore[arg-type]  # attributes


def test_names_are_such_as_mlir_takes() -> None:
    x, y = Value("a name", Scalar(dtype("fp32"))), Value("a name", Scalar(dtype("fp32")))
    text = printed(negation(x, y), x)
    assert '%_a_name_0 = "tessera.graph.negate"(%_a_name) : (fp32) -> fp32' in text


def test_attributes_that_any_operation_may_carry_stand_behind_its_own() -> None:
    x, y = Value("x", Scalar(dtype("fp32"))), Value("y", Scalar(dtype("fp32")))
    given = {"numerics_profile": "fast", "dtype": dtype("fp32")}
    assert '(%x) {dtype = "fp32", numerics_profile = "fast"} :' in printed(negation(x, y, attributes=given), x)


def test_every_operation_names_clauses_and_is_documented() -> None:
    assert len(OPERATIONS) >= 60
    for operation in OPERATIONS.values():
        assert operation.clauses
        assert operation.__doc__


def test_every_hidden_field_follows_from_what_is_shown() -> None:
    """An operation with a field that is not printed says how a reader finds it."""
    hiding = [each for each in OPERATIONS.values() if Role.HIDDEN in each.roles.values()]
    assert hiding
    assert [
        each.name for each in hiding if "hidden" not in {name for base in each.__mro__[:-2] for name in vars(base)}
    ] == []
