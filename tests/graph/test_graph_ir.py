"""Graph IR as text, the inputs of a run, and the bound of its steps."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import numpy as np
import pytest

from tessera_reference.graph.execution import UnknownFunction, execute
from tessera_reference.graph.interpreter import InputMismatch, Interpreter, last_uses
from tessera_reference.ir.diagnostics import Rejection
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
    hiding = [operation for operation in OPERATIONS.values() if Role.HIDDEN in operation.roles.values()]
    assert hiding
    assert [
        each.name for each in hiding if "hidden" not in {name for base in each.__mro__[:-2] for name in vars(base)}
    ] == []


def run_program(source: str, **inputs: Array) -> tuple[Array, ...]:
    return execute(compile_source(source, "t.tsr").module, "f", inputs)


def array(name: str, values: object) -> Array:
    return Array.checked(dtype(name), np.asarray(values, dtype(name).carrier))


def test_integer_division_by_zero_names_its_place() -> None:
    source = "module m {\n  func f(a: tensor<2xint32>, b: tensor<2xint32>) {\n    return a + a / b;\n  }\n}"
    with pytest.raises(Rejection) as caught:
        run_program(source, a=array("int32", [1, 2]), b=array("int32", [1, 0]))
    (found,) = caught.value.diagnostics
    assert (found.category, found.phase, found.filename) == ("numerics", "execute", "t.tsr")
    assert (found.span.line, found.span.column) == (3, 16)


F32 = array("fp32", [[1.0, 2.0]])


@pytest.mark.parametrize(
    ("inputs", "name", "expected", "given", "text"),
    [
        ({"X": F32}, "Y", "tensor<Nx3xfp32>", "", "input Y is missing: expected tensor<Nx3xfp32>"),
        ({"X": F32, "Z": F32}, "Z", "", "tensor<1x2xfp32>", "input Z is not a parameter; @f takes X, Y"),
        ({"X": array("fp32", 1.0)}, "X", "tensor<Nx?xfp32>", "fp32", "input X: expected tensor<Nx?xfp32>, given fp32"),
        (
            {"X": array("bf16", [[1.0, 2.0]])},
            "X",
            "tensor<Nx?xfp32>",
            "tensor<1x2xbf16>",
            "input X: expected tensor<Nx?xfp32>, given tensor<1x2xbf16>",
        ),
        (
            {"X": F32, "Y": F32},
            "Y",
            "tensor<Nx3xfp32>",
            "tensor<1x2xfp32>",
            "input Y: expected tensor<Nx3xfp32>, given tensor<1x2xfp32>",
        ),
        (
            {"X": F32, "Y": array("fp32", [[1.0] * 3] * 2)},
            "Y",
            "tensor<Nx3xfp32>",
            "tensor<2x3xfp32>",
            "input Y: expected tensor<Nx3xfp32>, given tensor<2x3xfp32> (N is 1 in X)",
        ),
    ],
)
def test_inputs_must_fit_the_signature(
    inputs: dict[str, Array], name: str, expected: str, given: str, text: str
) -> None:
    module = compile_source("module m { func f(X: tensor<Nx?xfp32>, Y: tensor<Nx3xfp32>) {} }").module
    with pytest.raises(InputMismatch) as caught:
        execute(module, "f", inputs)
    assert (caught.value.name, caught.value.expected, caught.value.given) == (name, expected, given)
    assert str(caught.value) == text


def test_an_unknown_function_is_an_error_of_its_own() -> None:
    with pytest.raises(UnknownFunction, match="no function 'g'; there is f"):
        execute(compile_source("module m { func f() {} }").module, "g", {})


@pytest.mark.parametrize("loop", ["while (c) { }", "while (true) { }", "for (i in 0:2000000000) { }"])
def test_every_turn_of_a_loop_counts_even_of_an_empty_one(loop: str) -> None:
    module = compile_source(f"module m {{ func f(c: bool) {{\n{loop} }} }}", "t.tsr").module
    interpreter = Interpreter(module, steps=1000)
    with pytest.raises(Rejection) as caught:
        next(interpreter.run(module.functions["f"], (Array.checked(dtype("bool"), True),)))
    (found,) = caught.value.diagnostics
    assert (found.phase, found.span.line) == ("execute", 2)
    assert "has run its most steps" in found.message


SCALARS = """
let i: int32 = 0; let s: fp32 = 0.0;
while (i >= 0) { i = i * 3 + 1; i = i - i; s = s * 2.0 - s / 3.0 + 1.0; if (s > 10.0) { s = op.sin(s); } }
"""


def test_an_endless_loop_on_scalars_ends_within_five_seconds() -> None:
    module = compile_source(f"module m {{ func f(c: bool) {{ {SCALARS} }} }}", "t.tsr").module
    began = time.process_time()
    with pytest.raises(Rejection, match="has run its most steps"):
        next(Interpreter(module).run(module.functions["f"], (Array.checked(dtype("bool"), True),)))
    assert time.process_time() - began < 5


def test_values_die_after_their_last_use() -> None:
    """A value read in a region lives until the instruction of that region has run; a result is never freed."""
    source = """module m { func f(x: fp32, y: fp32) -> fp32 {
      let a: fp32 = x + y; let b: fp32 = a * a; let unused: fp32 = b - x;
      let c: fp32 = y;
      for (i in 0:3) { c = c + a; }
      return c - b;
    } }"""
    block = compile_source(source).module.functions["f"].body
    dead = last_uses(block)
    freed = [value for values in dead for value in values]
    made = [value for instruction in block.instructions for value in instruction.results]
    assert len(freed) == len(set(freed))
    assert set(made) - set(freed) == set(block.results) & set(made)
    for instruction, values in zip(block.instructions, dead, strict=True):
        regions = [inner for region in instruction.regions for inner in region.walk()]
        read = {operand for each in (instruction, *regions) for operand in each.operands}
        assert set(values) <= read | set(instruction.results) | {r for g in instruction.regions for r in g.results}
    one = Array(dtype("fp32"), np.asarray(1, np.float32))
    assert execute(compile_source(source).module, "f", {"x": one, "y": one})[0].values == 3
