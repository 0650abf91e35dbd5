"""From Graph to Schedule IR: what is introduced, what directives and options change, and that text holds it all."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.module import Function, Module
from tessera_reference.ir.targets import TARGETS, Target, target_of
from tessera_reference.ir.text import print_module
from tessera_reference.ir.text_reader import read_module
from tessera_reference.ir.verifier import verify
from tessera_reference.schedule.lowering import to_schedule
from tessera_reference.schedule.options import Options
from tessera_reference.schedule.verifier import verify_schedule

AB = "A: tensor<256x256xbf16>, B: tensor<256x256xbf16>"
T = "tensor<256x256xbf16>"


def operations(function: Function, name: str) -> list[Any]:
    """The operations of a name in a function."""
    return [each.operation for each in function.body.walk() if each.operation.name == name]


def lowered(module: Module, options: Options | None = None, target: str = "sm_90") -> Function:
    return to_schedule(module, target_of(target), options).functions["f"]


def test_tiling_fusion_prefetch_and_a_pipeline_are_introduced(schedules: Any, target: Target) -> None:
    module = schedules.program(AB, "op.relu(A @ B) + A")
    function = lowered(module)
    names = [each.operation.name.removeprefix("tessera.") for each in function.body.instructions]
    assert names == [
        "schedule.prefetch",
        "schedule.prefetch",
        "graph.matmul",
        "schedule.tile",
        "schedule.pipeline",
        "graph.relu",
        "schedule.fuse",
        "graph.add",
        "schedule.fuse",
    ]
    (tile,), (pipeline,) = (
        operations(function, "tessera.schedule.tile"),
        operations(function, "tessera.schedule.pipeline"),
    )
    assert (tile.m, tile.n, tile.k, tile.pad) == (128, 128, 64, None)
    assert (pipeline.double_buffer, pipeline.depth) == (True, 2)
    ((kind, made, *_),) = schedules.nests(function)
    assert (kind, made) == ("contract", ["matmul", "relu", "add"])


def test_tails_are_padded_explicitly(schedules: Any) -> None:
    function = lowered(schedules.program("A: tensor<130x70xbf16>, B: tensor<70x3xbf16>", "A @ B"))
    (tile,) = operations(function, "tessera.schedule.tile")
    assert (tile.m, tile.n, tile.k, tile.pad) == (128, 16, 64, (126, 13, 58))


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("held", ["fp8_e4m3", "bf16", "tf32", "fp32", "fp64", "int8", "int64", "complex128"])
def test_what_is_chosen_is_legal_on_every_target(schedules: Any, target_name: str, held: str) -> None:
    module = schedules.program(
        "A: tensor<2x300x700xX>, B: tensor<2x700x300xX>".replace("X", held), "A @ B, op.sum(A, axis=1), -A"
    )
    for depth in (None, 1, 4):
        lowered(module, Options(depth=depth), target_name)


def test_long_rows_are_staged_in_parts(schedules: Any) -> None:
    function = lowered(schedules.program("A: tensor<4x100000xfp32>", "op.softmax(A)"), target="gfx90a")
    ((kind, _, _, _, tile, _, staged),) = schedules.nests(function, "gfx90a")
    assert (kind, tile, staged) == ("rows", (1, 16384, 1), ["A"])


def test_regions_and_callees_are_scheduled(schedules: Any) -> None:
    module = schedules.program(AB, "for (i in 0 : 3) { A = A @ B; } return A;")
    assert len(operations(lowered(module), "tessera.schedule.tile")) == 1


def test_a_function_that_differentiates_a_loop_is_left_alone(schedules: Any, target: Target) -> None:
    module = schedules.program(
        "A: tensor<4x4xfp32>", "let B: tensor<4x4xfp32> = A; for (i in 0 : 3) { B = B @ A; } return op.grad(B, A);"
    )
    function = lowered(module)
    assert not [each for each in function.body.walk() if each.operation.name.startswith("tessera.schedule")]


def test_a_gradient_on_one_path_is_scheduled(schedules: Any) -> None:
    module = schedules.program("A: tensor<4x4xfp32>", "op.grad(op.sum(op.sum(A @ A, axis=0), axis=0), A)")
    names = [each.operation.name for each in lowered(module).body.walk()]
    assert "tessera.graph.grad" not in names
    assert (names.count("tessera.graph.matmul"), names.count("tessera.schedule.tile") >= 3) == (3, True)


def test_directives_take_the_place_of_what_would_be_chosen(schedules: Any) -> None:
    body = f"""
    schedule.prefetch(A, scope="shared", align=32);
    let C: {T} = A @ B;
    schedule.tile(C, m=64, n=32, k=16);
    schedule.pipeline(C, double_buffer=true, depth=4, stages=["load", "compute"]);
    let D: {T} = op.relu(C);
    schedule.fuse(C, D);
    return D;
    """
    function = lowered(schedules.program(AB, body), Options(tile=(128, 128, 64), depth=2))
    assert schedules.nests(function) == [
        ("contract", ["matmul", "relu"], ["A", "B"], ["D"], (64, 32, 16), 4, ["A", "B"])
    ]
    assert [(each.scope, each.align) for each in operations(function, "tessera.schedule.prefetch")] == [
        ("shared", 32),
        ("shared", 16),
    ]
    (pipeline,) = operations(function, "tessera.schedule.pipeline")
    assert pipeline.stages == ("load", "compute")
    assert operations(function, "tessera.graph.directive") == []


def test_a_directive_fuses_what_lies_between(schedules: Any) -> None:
    body = f"let C: {T} = A @ B; schedule.tile(C, m=32, n=32, k=32); let D: {T} = op.sin(C) * 2.0 + A; " + (
        "schedule.fuse(C, D); return D;"
    )
    function = lowered(schedules.program(AB, body))
    ((_, made, _, outputs, tile, *_),) = schedules.nests(function)
    assert made == ["matmul", "sin", "constant", "multiply", "add"]
    assert (outputs, tile) == (["D"], (32, 32, 32))


def test_a_directive_may_leave_sizes_open(schedules: Any) -> None:
    body = f"let C: {T} = A @ B; schedule.tile(C, m=32); return C;"
    (tile,) = operations(lowered(schedules.program(AB, body)), "tessera.schedule.tile")
    assert (tile.m, tile.n, tile.k) == (32, 128, 64)


def test_a_layout_cast_is_a_copy(schedules: Any) -> None:
    body = 'schedule.layout_cast(A, to="row_major"); return op.softmax(A);'
    function = lowered(schedules.program("A: tensor<4x4xfp32; layout=col_major>", body))
    (cast,) = operations(function, "tessera.schedule.layout_cast")
    assert (cast.to, cast.materialize) == ("row_major", True)
    assert [each[:2] for each in schedules.nests(function)] == [("map", ["layout_cast"]), ("rows", ["softmax"])]


def test_a_directive_in_a_region_is_forgotten_behind_it(schedules: Any, target: Target) -> None:
    body = (
        "let C: tensor<4x4xfp32> = A @ A; for (i in 0 : 2) { schedule.tile(C, m=2, n=2, k=2); "
        "schedule.prefetch(C); A = A + C; } return A, C;"
    )
    made = to_schedule(schedules.program("A: tensor<4x4xfp32>", body), target)
    verify(made)
    assert schedules.nests(made.functions["f"])[0][4] == (2, 2, 2)


def test_a_directive_that_nothing_comes_after_is_dropped(schedules: Any) -> None:
    body = "let C: tensor<4x4xfp32> = A @ A; schedule.prefetch(A); return C;"
    lowered(schedules.program("A: tensor<4x4xfp32>", body))


ILLEGAL = {
    "schedule.tile(C, m=100, n=128, k=64);": "LANG-06.3-01",
    "schedule.tile(C, m=0, n=128, k=64);": "LANG-06.3-01",
    "schedule.tile(C, m=128, n=128, k=100);": "LANG-06.3-01",
    "schedule.pipeline(C, depth=0);": "LANG-06.2-05",
    "schedule.pipeline(C, double_buffer=true, depth=1);": "LANG-06.2-05",
    "schedule.pipeline(C, depth=60);": "LANG-11-08",
    'schedule.prefetch(C, scope="private"); C = C + C;': "LANG-06.2-02",
    "schedule.prefetch(C, align=8); C = C + C;": "LANG-06.1-04",
    'schedule.prefetch(C, scope="private");': "LANG-06.2-02",
    "schedule.prefetch(C, align=8);": "LANG-06.1-04",
    "schedule.fuse(C);": "LANG-06.1-02",
    f"let D: {T} = op.transpose(C); let E: {T} = C + op.tanh(D @ D); schedule.fuse(C, E); C = E;": "LANG-06.2-01",
}


@pytest.mark.parametrize("directive", ILLEGAL)
def test_a_directive_that_cannot_be_followed_is_refused(schedules: Any, directive: str) -> None:
    module = schedules.program(AB, f"let C: {T} = A @ B; {directive} return C;")
    with pytest.raises(Rejection) as caught:
        lowered(module)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.category, diagnostic.phase, diagnostic.clause) == ("schedule", "lower", ILLEGAL[directive])
    assert diagnostic.span.line == 1


def test_options(schedules: Any) -> None:
    module = schedules.program(AB, "op.relu(A @ B)")
    given = Options(tile=(32, 64, 16), depth=3, prefetch="none", fuse=False)
    assert schedules.nests(lowered(module, given)) == [
        ("contract", ["matmul"], ["A", "B"], ["0"], (32, 64, 16), 3, []),
        ("map", ["relu"], ["0"], ["1"], (32, 128, 1), 1, []),
    ]


def annotated(annotation: str) -> Module:
    from tessera_reference.language import compile_source

    return compile_source(f"module m {{ @schedule({annotation}) func f({AB}) {{ return A @ B; }} }}", "t.tsr").module


@pytest.mark.parametrize(
    ("annotation", "tile", "depth", "staged"),
    [
        ("tile=32", (32, 32, 64), 2, ["A", "B"]),
        ("tile=[32, 64, 16], depth=3", (32, 64, 16), 3, ["A", "B"]),
        ('m=64, n=32, prefetch="none", order=[m, n]', (64, 32, 64), 2, []),
        ("double_buffer=true", (128, 128, 64), 2, ["A", "B"]),
        ("tile=100", (100, 100, 64), 2, ["A", "B"]),
    ],
)
def test_annotations(schedules: Any, annotation: str, tile: Any, depth: int, staged: list[str]) -> None:
    function = lowered(annotated(annotation))
    ((*_, found, stages, fetched),) = schedules.nests(function)
    assert (found, stages, fetched) == (tile, depth, staged)
    assert "schedule" not in function.attributes


def test_double_buffering_means_at_least_two() -> None:
    for asked, found in ((1, 2), (3, 3), (None, 2)):
        (pipeline,) = operations(
            lowered(annotated("double_buffer=true"), Options(depth=asked)), "tessera.schedule.pipeline"
        )
        assert pipeline.depth == found


def test_nothing_that_is_chosen_reaches_across_a_barrier(schedules: Any) -> None:
    function = lowered(schedules.program(AB, f"let C: {T} = A @ B; barrier(); return op.relu(C);"))
    assert [each[1] for each in schedules.nests(function)] == [["matmul"], "barrier", ["relu"]]


@pytest.mark.parametrize(
    "annotation", ["double_buffer=true, depth=1", "tile=0", "depth=0", 'prefetch="private"', "fuse=3"]
)
def test_annotations_that_are_no_schedule(annotation: str) -> None:
    with pytest.raises(Rejection) as caught:
        lowered(annotated(annotation))
    assert [each.category for each in caught.value.diagnostics] == ["schedule"]


PROGRAMS = {
    "attention": ("q: tensor<2x5x4xbf16>", "op.flash_attention(q, q, q, causal=true)"),
    "loops": ("A: tensor<4x4xfp32>, n: int32", "for (i in 0 : n) { if (i == 2) { A = A @ A; } A[i] = 2.0; } return A;"),
    "open": ("A: tensor<?xNxfp32>, B: tensor<Nx3xfp32>", "op.softmax(op.relu(A @ B))"),
    "scalars": ("A: tensor<9xfp32>, s: fp32", "op.sum(A * s, axis=0) + s"),
    "rows": ("A: tensor<9x5xfp32>", "op.layer_norm(A, op.sum(A, axis=0), op.max(A, axis=0)), op.argmax(A, axis=0)"),
}


@pytest.mark.parametrize("which", PROGRAMS)
def test_what_is_made_verifies_and_reads_back(schedules: Any, which: str, target: Target) -> None:
    made = to_schedule(schedules.program(*PROGRAMS[which]), target)
    verify(made)
    text = print_module(made)
    again = read_module(text)
    assert print_module(again) == text
    verify_schedule(again.functions["f"], target)
    short = [schedules.nests(module.functions["f"]) for module in (made, again)]
    assert [len(each) for each in short[:1]] == [len(short[1])]
