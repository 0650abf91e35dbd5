"""What each operation of Schedule IR refuses of itself, beside the legal text nearest to it (sections 6.1 to 6.3)."""

from __future__ import annotations

from typing import Any

import pytest

X = "%x: tensor<128x64xfp32>"
TYPE = "tensor<128x64xfp32>"


def line(name: str, attributes: str, type_: str = TYPE) -> list[str]:
    return [f'%y = "tessera.schedule.{name}"(%x) {{{attributes}}} : ({type_}) -> {type_}']


REFUSED: dict[str, tuple[str, str, str, str]] = {
    "no rows": ("tile", "m = 0, n = 64", "m = 1, n = 64", "LANG-06.3-01"),
    "no columns": ("tile", "m = 64, n = -1", "m = 64, n = 1", "LANG-06.3-01"),
    "rows that are left over": ("tile", "m = 48, n = 64", "m = 48, n = 64, pad = 16", "LANG-06.3-01"),
    "columns that are left over": ("tile", "m = 64, n = 48", "m = 64, n = 48, pad = [0, 32]", "LANG-06.3-01"),
    "a tile larger than the value": ("tile", "m = 256, n = 64", "m = 256, n = 64, pad = [128, 0]", "LANG-06.3-01"),
    "too little padding": ("tile", "m = 48, n = 64, pad = 15", "m = 48, n = 64, pad = 64", "LANG-06.3-01"),
    "padding below nothing": (
        "tile",
        "m = 64, n = 64, pad = [-64, 0]",
        "m = 64, n = 64, pad = [64, 0]",
        "LANG-06.3-01",
    ),
    "padding of k without k": (
        "tile",
        "m = 64, n = 64, pad = [0, 0, 0]",
        "m = 64, n = 64, pad = [0, 0]",
        "LANG-06.3-01",
    ),
    "no stages": ("pipeline", "depth = 0", "depth = 1", "LANG-06.2-05"),
    "one buffer for two": (
        "pipeline",
        "double_buffer = true, depth = 1",
        "double_buffer = true, depth = 2",
        "LANG-06.2-05",
    ),
    "stages in a circle": (
        "pipeline",
        'stages = ["a", "b", "c"], edges = [["a", "b"], ["b", "c"], ["c", "a"]]',
        'stages = ["a", "b", "c"], edges = [["a", "b"], ["b", "c"], ["a", "c"]]',
        "LANG-06.2-04",
    ),
    "a stage before itself": ("pipeline", 'edges = [["a", "a"]]', 'edges = [["a", "b"]]', "LANG-06.2-04"),
    "a stage that is none": (
        "pipeline",
        'stages = ["a"], edges = [["a", "b"]]',
        'stages = ["a", "b"], edges = [["a", "b"]]',
        "LANG-06.2-04",
    ),
    "a stage twice": ("pipeline", 'stages = ["a", "a"]', 'stages = ["a", "b"]', "LANG-06.2-04"),
    "another memory": ("prefetch", 'scope = "private"', 'scope = "shared"', "LANG-06.2-02"),
    "align 8": ("prefetch", "align = 8", "align = 16", "LANG-06.1-04"),
    "align 48": ("prefetch", "align = 48", "align = 64", "LANG-06.1-04"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_is_refused_and_its_legal_twin(schedules: Any, which: str) -> None:
    name, wrong, right, clause = REFUSED[which]
    diagnostic = schedules.refused(X, line(name, wrong), "%y", TYPE)
    assert (diagnostic.category, diagnostic.clause) == ("schedule", clause)
    assert diagnostic.requirement
    schedules.read(X, line(name, right), "%y", TYPE)


def test_the_examples_of_section_6_1_and_13_1(schedules: Any) -> None:
    wide = "tensor<128x128xfp32>"
    columns = "tensor<128x128xfp32; layout=col_major>"
    lines = [
        f'%ps = "tessera.schedule.prefetch"(%x) {{scope="shared", align=32}} : ({TYPE}) -> {TYPE}',
        f'%c = "tessera.graph.matmul"(%ps, %b) : ({TYPE}, tensor<64x128xfp32>) -> {wide}',
        f'%t = "tessera.schedule.tile"(%c) {{m=128, n=128, k=64}} : ({wide}) -> {wide}',
        f'%p = "tessera.schedule.pipeline"(%t) {{double_buffer=true, depth=3}} : ({wide}) -> {wide}',
        f'%r = "tessera.graph.relu"(%p) : ({wide}) -> {wide}',
        f'%f = "tessera.schedule.fuse"(%p, %r) : ({wide}, {wide}) -> {wide}',
        f'%l = "tessera.schedule.layout_cast"(%f) {{to="col_major", materialize=true}} : ({wide}) -> {columns}',
    ]
    function = schedules.accepted(f"{X}, %b: tensor<64x128xfp32>", lines, "%l", columns)
    (product, cast) = schedules.nests(function)
    assert product == ("contract", ["matmul", "relu"], ["x", "b"], ["r"], (128, 128, 64), 3, ["x"])
    assert cast[:2] == ("map", ["layout_cast"])


def test_double_buffering_means_two(schedules: Any) -> None:
    function = schedules.read(X, line("pipeline", "double_buffer = true"), "%y", TYPE)
    assert function.body.instructions[0].operation.depth == 2


def test_one_value_is_no_fusion(schedules: Any) -> None:
    diagnostic = schedules.refused(X, line("fuse", ""), "%y", TYPE)
    assert (diagnostic.category, diagnostic.clause) == ("schedule", "LANG-06.1-02")
    two = '%y = "tessera.schedule.fuse"(%x, %x) : (tensor<128x64xfp32>, tensor<128x64xfp32>) -> tensor<128x64xfp32>'
    schedules.accepted(X, [two], "%y", TYPE)


@pytest.mark.parametrize("to", ["diagonal", "blocked", "blocked(bm=0,bn=2)"])
def test_a_layout_that_is_none(schedules: Any, to: str) -> None:
    cast = f'%y = "tessera.schedule.layout_cast"(%x) {{to = "{to}", materialize = true}} : ({TYPE}) -> {TYPE}'
    diagnostic = schedules.refused(X, [cast], "%y", TYPE)
    assert diagnostic.category == "layouts"


def test_a_vector_has_one_row(schedules: Any) -> None:
    vector = "tensor<8xfp32>"
    schedules.read("%x: tensor<8xfp32>", line("tile", "m = 1, n = 4", vector), "%y", vector)
    diagnostic = schedules.refused("%x: tensor<8xfp32>", line("tile", "m = 2, n = 4", vector), "%y", vector)
    assert diagnostic.clause == "LANG-06.3-01"
    diagnostic = schedules.refused("%x: tensor<8xfp32>", line("tile", "m = 1, n = 4, k = 2", vector), "%y", vector)
    assert diagnostic.clause == "LANG-06.1-01"


def test_extents_that_are_not_known_are_not_judged(schedules: Any) -> None:
    open_type = "tensor<?x64xfp32>"
    schedules.read("%x: tensor<?x64xfp32>", line("tile", "m = 48, n = 64", open_type), "%y", open_type)
