"""Names across blocks: assigned, hidden, left without a value; each program's result is worked out by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Diagnostic, Rejection
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

Rejects = Callable[[str], Diagnostic]


def run(body: str, condition: bool) -> object:
    source = f"module m {{ func f(a: fp32, c: bool) -> fp32 {{ {body} }} }}"
    inputs = {"a": Array(dtype("fp32"), np.float32(5)), "c": Array(dtype("bool"), np.bool_(condition))}
    (result,) = execute(compile_source(source, "t.tsr").module, "f", inputs)
    return result.values.item()


@pytest.mark.parametrize(
    ("body", "holds", "fails"),
    [
        ("if (c) { a = 1.0; } return a;", 1, 5),
        ("if (c) { a = 1.0; } else { let a: bf16 = 2.0; a = 3.0; } return a;", 1, 5),
        ("if (c) { let a: bf16 = 2.0; } else { a = 3.0; let a: bf16 = 2.0; } return a;", 5, 3),
        ("for (i in 0:2) { if (c) { let a: bf16 = 1.0; } else { a = a + 1.0; } } return a;", 5, 7),
        ("for (i in 0:2) { a = a + 1.0; let a: bf16 = 1.0; a = 2.0; } return a;", 7, 7),
        ("for (a in 0:3) { let b: int32 = a; } return a;", 5, 5),
        ("let x: fp32; if (c) { x = 1.0; } else { x = 2.0; } return x;", 1, 2),
        ("let x: fp32; if (c) { return a; } else { x = 2.0; } return x;", 5, 2),
        ("while (a < 7.0) { a = a + 1.0; if (c) { return a * 10.0; } } return a;", 60, 7),
        ("for (i in 0:9) { for (j in 0:9) { a = a + 1.0; if (a > 10.0) { return a; } } } return 0.0;", 11, 11),
        ("let x: fp32; for (i in 0:2) { x = a; a = x + 1.0; } return a;", 7, 7),
    ],
)
def test_names_hold_what_the_path_gave_them(body: str, holds: float, fails: float) -> None:
    assert (run(body, True), run(body, False)) == (holds, fails)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("let x: fp32; if (c) { x = 1.0; } return x;", "'x' has a value on some of the paths that lead here only"),
        ("let x: fp32; for (i in 0:2) { x = 1.0; } return x;", "'x' has a value on some of the paths"),
        ("let x: fp32; while (c) { x = 1.0; } return x;", "'x' has a value on some of the paths"),
        ("let x: fp32; return x;", "'x' is used before anything is assigned to it"),
        ("if (c) { let y: fp32 = 1.0; } return y;", "unknown name 'y'"),
        ("for (i in 0:2) { } return i;", "unknown name 'i'"),
        ("y = 1.0; return a;", "unknown name 'y'"),
        ("if (c) { return a; }", "'f' does not return a value"),
        ("while (c) { return a; }", "'f' does not return a value"),
    ],
)
def test_names_without_a_value_are_refused(rejects: Rejects, body: str, message: str) -> None:
    found = rejects(f"module m {{ func f(a: fp32, c: bool) -> fp32 {{ {body} }} }}")
    assert (found.category, found.phase) == ("types", "verify")
    assert message in found.message


def test_a_kernel_returns_its_parameter_and_not_what_hides_it() -> None:
    hidden = "let A: tensor<2xfp32> = tensor<2xfp32>; A[0] = 100; return;"
    source = f"module m {{ kernel f(A: tensor<2xfp32>) {{ A[1] = 7.0; if (A[0] > 0) {{ {hidden} }} }} }}"
    given = Array(dtype("fp32"), np.float32([1, 2]))
    (result,) = execute(compile_source(source, "t.tsr").module, "f", {"A": given})
    assert result.values.tolist() == [1, 7]


def test_a_chain_of_doubling_constants_is_computed_once() -> None:
    doubled = " ".join(f"let a{i}: int32 = a{i - 1} + a{i - 1};" for i in range(1, 31))
    module = compile_source(f"module m {{ let a0: int32 = 1; {doubled} func f() {{ return a30; }} }}", "t.tsr").module
    assert len(module.functions["f"].body.instructions) == 1
    (result,) = execute(module, "f", {})
    assert result.values.item() == 2**30


@pytest.mark.parametrize(
    ("declarations", "messages"),
    [
        ("let K: int32 = L; let L: int32 = K; func f() { return K; }", ["the constant 'K' depends on itself"]),
        ("let Z: int32 = 1 / 0; func f() { }", ["divide: integer division by zero at element []"]),
        ("func f(x: T) { } type T = fp32;", ["unknown dtype 'T'"]),
        ("func g() { return q; } func h() { return g(); } func f() { return h(); }", ["unknown name 'q'"]),
        ("func f() { w = 1; w = w + w; }", ["unknown name 'w'"]),
        ("func f() { let y: int32 = 1; let y: fp32 = 1.0; y = 2.0; }", ["'y' is declared twice; first in line 1"]),
        (
            'func g() { numerics.profile("fast"); } func f() @{numerics_profile=strict} { g(); }',
            ["a strict function calls g, which is fast"],
        ),
        ("func f(x: fp32 = op.grad(1.0, 1.0)) { let y: fp32 = x; return y + z; }", ["unknown name 'z'"]),
    ],
)
def test_one_mistake_is_told_once(declarations: str, messages: list[str]) -> None:
    with pytest.raises(Rejection) as caught:
        compile_source(f"module m {{ {declarations} }}", "t.tsr")
    assert [found.message for found in caught.value.diagnostics] == messages
