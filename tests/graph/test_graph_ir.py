"""Graph IR as text, the inputs of a run, and the bound of its steps."""

from __future__ import annotations

import time
from unittest.mock import Mock

import numpy as np
import pytest

from tessera_reference.graph import interpreter
from tessera_reference.graph.execution import UnknownFunction, execute
from tessera_reference.graph.interpreter import InputMismatch, Interpreter, last_uses
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.operation import OPERATIONS, Role
from tessera_reference.ir.text import print_module
from tessera_reference.ir.text_reader import read_modules
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.rounding import round_to

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


def test_the_sample_prints_as_in_the_spec() -> None:
    assert print_module(compile_source(SAMPLE).module) == PRINTED.replace("T", "tensor<1024x1024xbf16>")


@pytest.mark.parametrize("source", [SAMPLE, MIXED, NESTED, "module m {}"], ids=["sample", "mixed", "nested", "empty"])
@pytest.mark.parametrize("export", [False, True], ids=["home", "export"])
def test_what_is_printed_reads_back(source: str, export: bool) -> None:
    text = print_module(compile_source(source, "a.tsr").module, export=export)
    assert print_module(*read_modules(text), export=export) == text


# What only modules built by hand can have


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
        operation.name
        for operation in hiding
        if not operation.stated and "hidden" not in {name for base in operation.__mro__[:-2] for name in vars(base)}
    ] == []


def array(name: str, values: object) -> Array:
    return Array.checked(dtype(name), np.asarray(values, dtype(name).carrier))


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
        read = {operand for instruction_ in (instruction, *regions) for operand in instruction_.operands}
        assert set(values) <= read | set(instruction.results) | {r for g in instruction.regions for r in g.results}
    one = Array(dtype("fp32"), np.asarray(1, np.float32))
    assert execute(compile_source(source).module, "f", {"x": one, "y": one})[0].values == 3


CHAINS = {
    "a value read later": "let a: T = x + y; let b: T = a * s; let c: T = op.exp(b); return op.sum(c, axis=0) - c + a;",
    "scalars and comparisons": "let a: T = s * x; let m: tensor<NxMxbool> = a > y; return op.select(m, a, s);",
    "a transpose between": "let b: T = x + y - s; let c: T = op.transpose(op.transpose(b)); return op.abs(c) + b;",
    "one that takes no part": "let a: T = x / y * 2.0; let b: T = op.relu(-a + s * s); return b;",
    "a name assigned in a loop": "let a: T = x + y; for (i in 0:2) { a = a * a; a = a - s; } return a * s;",
}


@pytest.mark.parametrize("body", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("kind", ["fp32", "bf16"])
@pytest.mark.parametrize("shape", [(7, 3), (21, 1)])
def test_a_chain_in_slices_gives_what_its_instructions_give(
    body: str, kind: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices of two rows, of six of one element, and a last one that is shorter."""
    source = f"module m {{ func f(x: T, y: T, s: {kind}) -> T {{ {body} }} }}".replace("T", f"tensor<NxMx{kind}>")
    module = compile_source(source).module
    rng = np.random.Generator(np.random.Philox(38))
    x, y = (Array(dtype(kind), round_to(rng.standard_normal(shape), dtype(kind))) for _ in range(2))
    inputs = {"x": x, "y": y, "s": Array(dtype(kind), np.asarray(1.5, np.float32))}
    expected = execute(module, "f", inputs)[0].to_bits()
    executed = Mock(wraps=interpreter.chain_from)
    monkeypatch.setattr(interpreter, "chain_from", executed)
    monkeypatch.setattr(interpreter, "LARGE", 5)
    monkeypatch.setattr(interpreter, "BLOCK", 6)
    assert execute(module, "f", inputs)[0].to_bits() == expected
    assert executed.called


def test_a_failure_in_a_chain_is_that_of_the_first_instruction_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "module m { func f(x: tensor<4xint32>, y: tensor<4xint32>) -> tensor<4xint32> { return x / x + x / y; } }"
    module = compile_source(source).module
    values = [np.array(numbers, np.int32) for numbers in ([1, 1, 1, 0], [0, 1, 1, 1])]
    inputs = dict(zip("xy", (Array(dtype("int32"), value) for value in values), strict=True))
    monkeypatch.setattr(interpreter, "LARGE", 4)
    monkeypatch.setattr(interpreter, "BLOCK", 2)
    with pytest.raises(Rejection) as caught:
        execute(module, "f", inputs)
    assert caught.value.diagnostics[0].span.column == source.index("x / x") + 1
