"""Nests carried out tile by tile, through buffers (LANG-08.2-01, AMB-LANG-110), and programs for given shapes."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_reference.ir.diagnostics import Diagnostic, Rejection
from tessera_reference.ir.module import Module
from tessera_reference.ir.targets import Target
from tessera_reference.ir.verifier import verify
from tessera_reference.language import compile_source
from tessera_reference.schedule import execution
from tessera_reference.schedule.execution import Event, execute
from tessera_reference.schedule.lowering import to_schedule
from tessera_reference.schedule.options import Options
from tessera_reference.schedule.specialize import specialize

PROGRAMS = {
    "product": ("A: tensor<5x7xfp32>, B: tensor<7x3xfp32>", "A @ B"),
    "narrow product": ("A: tensor<5x7xbf16>, B: tensor<7x3xbf16>", "A @ B, op.matmul(A, B, out=fp32)"),
    "wider accumulator": ("A: tensor<5x9xbf16>, B: tensor<9x3xbf16>", "op.matmul(A, B) @{accum=fp64}"),
    "tf32": ("A: tensor<5x9xtf32>, B: tensor<9x3xtf32>", "A @ B"),
    "fp8": ("A: tensor<3x9xfp8_e4m3>, B: tensor<9x3xfp8_e4m3>", "A @ B"),
    "int8": ("A: tensor<3x9xint8>, B: tensor<9x3xint8>", "A @ B"),
    "complex": ("A: tensor<3x9xcomplex64>, B: tensor<9x3xcomplex64>", "A @ B, A * A, op.fft(A), op.sum(A, axis=1)"),
    "batch and epilogue": (
        "A: tensor<2x3x5x7xfp64>, B: tensor<2x3x7x4xfp64>, c: tensor<3x1x4xfp64>",
        "op.exp(A @ B) + c, A @ B",
    ),
    "nothing to sum": ("A: tensor<5x0xfp32>, B: tensor<0x3xfp32>", "op.relu(A @ B)"),
    "nothing at all": ("A: tensor<0x4xfp32>, B: tensor<4x3xfp32>", "(A @ B) * 2.0, op.softmax(A)"),
    "elementwise": (
        "A: tensor<5x7xfp32>, b: tensor<7xfp32>, s: fp32",
        "op.tanh(A * s + b) - A, op.select(A < b, A, b)",
    ),
    "integers": ("A: tensor<6x5xint32>", "A / (A * A + 1), op.clamp(A, op.abs(A), A), -A"),
    "rows": ("A: tensor<3x9x5xbf16>", "op.sum(A, axis=0), op.prod(A, axis=1, keepdims=true), op.logsumexp(A, axis=-1)"),
    "rows that stay": ("A: tensor<3x9x5xbf16>", "op.softmax(A, axis=0), op.softmax(A, axis=1), op.softmax(A, axis=2)"),
    "to a scalar": ("A: tensor<9xfp32>", "op.sum(A, axis=0), op.mean(A, axis=0, keepdims=true), op.argmax(A, axis=0)"),
    "movement": (
        "A: tensor<3x9x5xfp16>",
        "op.transpose(A, perm=[1, 0, 2]), op.reshape(A, shape=[5, 27]), op.broadcast(A, shape=[2, 3, 9, 5]), "
        "A[1, 2:9:3], op.slice(A, starts=[1, 0, 2], stops=[3, 9, 5], steps=[1, 2, 1])",
    ),
    "movement of two": (
        "A: tensor<3x5xfp16>, B: tensor<2x5xfp16>",
        "op.concat(A, B, axis=0), op.pad(A, low=[1, 0], high=[2, 3], value=1.5), "
        "op.gather(A, op.const_tensor(shape=[2], dtype=int32, value=[2, 0]), axis=0)",
    ),
    "assignment": ("A: tensor<4x5xfp32>, n: int32", "A[n, 1:3] = 0.5; A[2] = A[n]; return A, A[n];"),
    "norms": ("A: tensor<3x9xfp32>, g: tensor<9xfp32>", "op.layer_norm(A, g, g), op.rms_norm(A, g)"),
    "attention": ("q: tensor<2x7x4xbf16>, v: tensor<2x7x3xbf16>", "op.flash_attention(q, q, v, causal=true)"),
    "control": (
        "A: tensor<6x6xfp32>, n: int32",
        "let S: tensor<6x6xfp32> = A; for (i in 0 : 4) { S = S @ A; if (i > n) { S = op.relu(S) + A[i]; } } return S;",
    ),
    "gradient": ("A: tensor<6x6xfp32>", "op.grad(op.sum(op.sum(A @ A, axis=0), axis=0), A), A @ A"),
    "gradient through branches": (
        "A: tensor<3xfp32>, B: tensor<3xfp32>, c: bool",
        "let C: tensor<3xfp32> = B; if (c) { if (c) { C = A; } } else { if (c) { } else { C = A; } } "
        "return op.grad(C, A), op.grad(C, B);",
    ),
    "random": ("A: tensor<6x6xfp32>", "op.dropout(A, rate=0.5, seed=3) + A, op.uniform(shape=[2, 2], seed=1)"),
    "layouts": (
        "A: tensor<6x4xfp32; layout=col_major>",
        'schedule.layout_cast(A, to="row_major"); return op.softmax(A) + A;',
    ),
    "fused by hand": (
        "A: tensor<6x6xfp32>",
        "let B: tensor<6x6xfp32> = A @ A; schedule.tile(B, m=4, n=3, k=2, pad=2); schedule.pipeline(B, depth=3); "
        "let C: tensor<6x6xfp32> = op.sin(B) * 2.0; schedule.fuse(B, C); return C, op.transpose(B);",
    ),
    "open": ("A: tensor<NxKxfp32>, B: tensor<Kx3xfp32>", "op.relu(A @ B)"),
}


# What happens, in order


def events_of(schedules: Any, target: Target, body: str, signature: str, options: Options) -> list[tuple[Any, ...]]:
    events: list[Event] = []
    module = schedules.program(signature, body)
    execute(to_schedule(module, target, options), "f", schedules.numbers(module), target, events.append)
    return [(event.kind, event.nest, event.tile, event.slot) for event in events]


def test_depth_three_and_depth_one(schedules: Any, target: Target) -> None:
    signature = "A: tensor<2x8xfp32>, B: tensor<8x2xfp32>"
    deep = events_of(schedules, target, "A @ B", signature, Options(tile=(2, 2, 2), depth=3))
    short = [(kind, tile[2:], slot) for kind, _, tile, slot in deep[:-1]]
    assert short == [
        ("stage", (0,), 0),
        ("stage", (1,), 1),
        ("stage", (2,), 2),
        ("compute", (0,), 0),
        ("stage", (3,), 0),
        ("compute", (1,), 1),
        ("compute", (2,), 2),
        ("compute", (3,), 0),
    ]
    flat = events_of(schedules, target, "A @ B", signature, Options(tile=(2, 2, 4), depth=1))
    assert [(kind, tile[2:], slot) for kind, _, tile, slot in flat[:-1]] == [
        ("stage", (0,), 0),
        ("compute", (0,), 0),
        ("stage", (1,), 0),
        ("compute", (1,), 0),
    ]


STAGED = ["product", "batch and epilogue", "rows", "rows that stay", "to a scalar"]


@pytest.mark.parametrize("which", STAGED)
def test_without_staging_the_result_is_wrong(
    schedules: Any, target: Target, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = schedules.program(*PROGRAMS[which])
    inputs = schedules.numbers(module)
    monkeypatch.setattr(execution.Ring, "fill", lambda *_: None)
    found = execute(to_schedule(module, target, Options(tile=(2, 2, 2))), "f", inputs, target)
    assert schedules.told(found) != schedules.of_graph(module, inputs)


def test_a_stage_too_early_in_the_wrong_slot_shows(
    schedules: Any, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = schedules.program(*PROGRAMS["product"])
    inputs = schedules.numbers(module)
    fill = execution.Ring.fill
    monkeypatch.setattr(execution.Ring, "fill", lambda self, step, *rest: fill(self, step + 1, *rest))
    found = execute(to_schedule(module, target, Options(tile=(5, 3, 2), depth=2)), "f", inputs, target)
    assert schedules.told(found) != schedules.of_graph(module, inputs)


# Errors, ranks


def compiled(functions: str) -> Module:
    return compile_source(f"module m {{ {functions} }}", "t.tsr").module


def types_in(module: Module, name: str = "f") -> list[str]:
    """The types of parameters, of everything inside, and of the results."""
    function = module.functions[name]
    values = [*function.parameters, *(value for each in function.body.walk() for value in each.results)]
    return [str(value.type) for value in values] + [str(type_) for type_ in function.results]


def refused(functions: str, **shapes: tuple[int, ...]) -> Diagnostic:
    with pytest.raises(Rejection) as caught:
        specialize(compiled(functions), "f", shapes)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.category, diagnostic.phase) == ("shapes", "lower")
    return diagnostic


def test_dimensions_become_extents() -> None:
    module = compiled("func f(A: tensor<?xKxfp32>, B: tensor<Kx3xfp32>) { return op.concat(A @ B, A @ B, axis=0); }")
    made = specialize(module, "f", {"A": (5, 7), "B": (7, 3)})
    verify(made)
    assert types_in(made) == [
        "tensor<5x7xfp32>",
        "tensor<7x3xfp32>",
        "tensor<5x3xfp32>",
        "tensor<5x3xfp32>",
        "tensor<10x3xfp32>",
        "tensor<10x3xfp32>",
    ]
    assert "?" in types_in(module)[0]


REFUSED = {
    "a parameter without a shape": ("func f(A: tensor<?xfp32>) { return A; }", {}),
    "one name for two extents": ("func f(A: tensor<NxNxfp32>) { return A; }", {"A": (2, 3)}),
    "another extent": ("func f(A: tensor<4xfp32>) { return A; }", {"A": (3,)}),
    "another rank": ("func f(A: tensor<?xfp32>) { return A; }", {"A": (3, 3)}),
    "computed bounds": ("func f(A: tensor<?xfp32>, n: int32) { return A[0:n]; }", {"A": (3,)}),
    "branches of two shapes": (
        "func f(A: tensor<?xfp32>, b: bool) { let y: tensor<?xfp32> = A; "
        "if (b) { y = op.concat(A, A, axis=0); } return y; }",
        {"A": (3,)},
    ),
    "returns of two shapes": (
        "func f(A: tensor<?xfp32>, b: bool) -> tensor<?xfp32> { if (b) { return op.concat(A, A, axis=0); } return A; }",
        {"A": (3,)},
    ),
    "a reshape that does not fit": ("func f(A: tensor<?xfp32>) { return op.reshape(A, shape=[2, 2]); }", {"A": (3,)}),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_no_shape_tells_is_refused(which: str) -> None:
    source, shapes = REFUSED[which]
    refused(source, **shapes)
