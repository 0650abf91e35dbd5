"""The printed form of Graph IR, and its verifier (language spec sections 1, 5, 13.1)."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import pytest

from tessera_reference.graph.matmul import MatMul
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.module import Block, Function, Instruction, Module, Value
from tessera_reference.ir.operation import OPERATIONS
from tessera_reference.ir.text import attribute_text, print_module
from tessera_reference.ir.verifier import verify
from tessera_reference.language import compile_source
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


def test_the_sample_prints_as_in_the_spec() -> None:
    assert print_module(compile_source(SAMPLE).module) == PRINTED.replace("T", "tensor<1024x1024xbf16>")


def test_export_uses_dialect_types_and_locations() -> None:
    text = print_module(compile_source(SAMPLE, 'dir/"x".tsr').module, export=True)
    line = next(line for line in text.splitlines() if "matmul" in line)
    assert line.count("!tessera.tensor<1024x1024xbf16>") == 3
    assert line.endswith(' loc("dir/\\"x\\".tsr":4:37)')


@pytest.mark.skipif(shutil.which("mlir-opt-22") is None, reason="needs mlir-opt-22: apt-get install mlir-22-tools")
@pytest.mark.parametrize("source", [SAMPLE, MIXED, "module m {}"])
def test_mlir_accepts_the_export(source: str) -> None:
    text = print_module(compile_source(source).module, export=True)
    command = ["mlir-opt-22", "--allow-unregistered-dialect"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr


def test_results_take_the_names_of_variables_once() -> None:
    text = print_module(compile_source(MIXED).module)
    assert '%0 = "tessera.graph.negate"(%X) : (tensor<?xDxbf16; layout=blocked(bm=1,bn=2)>)' in text
    assert '"tessera.graph.call"() {callee = "g"} : () -> ()' in text
    assert '{axis = 0, accum = "fp32"}' in text
    assert '{sym_name = "f", numerics_profile = "strict", function_type = ' in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-07, "1.0e-07"),
        (0.125, "0.125"),
        (-0.0, "-0.0"),
        (1e300, "1.0e+300"),
        (True, "true"),
        (-1, "-1"),
        ((1, 0), "[1, 0]"),
        (dtype("bf16"), '"bf16"'),
        ('a"b', '"a\\"b"'),
    ],
)
def test_attributes_read_as_mlir_reads_them(value: object, text: str) -> None:
    assert attribute_text(value) == text  # type: ignore[arg-type]


def function() -> Function:
    return compile_source(SAMPLE).module.functions["mm"]


def check(function: Function) -> str:
    with pytest.raises(Rejection) as caught:
        verify(Module("m", {"mm": function}, function.location))
    return caught.value.diagnostics[0].message


def rebuilt(function: Function, *instructions: Instruction) -> Function:
    return replace(function, body=Block(function.body.arguments, instructions, function.body.results))


def test_the_verifier_accepts_what_the_front_end_builds() -> None:
    verify(compile_source(MIXED).module)


def test_a_value_is_defined_once() -> None:
    whole = function()
    (only,) = whole.body.instructions
    assert check(rebuilt(whole, only, only)) == "%C is defined twice"


def test_a_value_is_defined_before_its_use() -> None:
    assert check(rebuilt(function())) == "%C is used before it is defined"


def test_operand_types_agree() -> None:
    whole = function()
    (only,) = whole.body.instructions
    other = Value("A", only.operands[0].type.with_dtype(dtype("fp32")))
    body = Block((other, only.operands[1]), (replace(only, operands=(other, only.operands[1])),), whole.body.results)
    assert check(replace(whole, body=body)) == "matmul: operands differ from its declared types"


def test_result_types_follow_from_the_operands() -> None:
    whole = function()
    (only,) = whole.body.instructions
    a = only.operands[0].type
    made = MatMul(a=a, b=a, out=dtype("fp32"))  # type: ignore[arg-type]
    assert check(rebuilt(whole, replace(only, operation=made))) == "matmul: results have other types"


def test_a_function_returns_what_it_declares() -> None:
    assert check(replace(function(), results=())) == "@mm returns other types than it declares"


def test_every_operation_names_clauses_and_is_documented() -> None:
    assert len(OPERATIONS) >= 60
    for operation in OPERATIONS.values():
        assert operation.clauses
        assert operation.__doc__
