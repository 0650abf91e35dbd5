"""What is refused of a whole function's schedule, beside its legal twin (sections 6.2, 6.3, 11)."""

from __future__ import annotations

from typing import Any

import pytest

T = "tensor<64x64xfp32>"
AB = f"%a: {T}, %b: {T}"
UNARY, BINARY = f"({T}) -> {T}", f"({T}, {T}) -> {T}"
PRODUCT = f'%c = "tessera.graph.matmul"(%a, %b) : {BINARY}'


def tiled(m: int, n: int, k: int, rest: str = "") -> str:
    return f'%t = "tessera.schedule.tile"(%c) {{m = {m}, n = {n}, k = {k}{rest}}} : {UNARY}'


def staged(m: int, n: int, k: int, depth: int, extent: int, dtype: str = "fp32") -> tuple[str, list[str], str, str]:
    """A product of which both operands are staged."""
    type_ = f"tensor<{extent}x{extent}x{dtype}>"
    unary = f"({type_}) -> {type_}"
    lines = [
        f'%as = "tessera.schedule.prefetch"(%a) {{scope = "shared"}} : {unary}',
        f'%bs = "tessera.schedule.prefetch"(%b) {{scope = "shared"}} : {unary}',
        f'%c = "tessera.graph.matmul"(%as, %bs) : ({type_}, {type_}) -> {type_}',
        f'%t = "tessera.schedule.tile"(%c) {{m = {m}, n = {n}, k = {k}}} : {unary}',
        f'%p = "tessera.schedule.pipeline"(%t) {{depth = {depth}}} : {unary}',
    ]
    return f"%a: {type_}, %b: {type_}", lines, "%p", type_


def test_k_is_for_contractions(schedules: Any) -> None:
    schedules.accepted(AB, [PRODUCT, tiled(32, 32, 32)], "%t", T)
    for line in (f'%c = "tessera.graph.add"(%a, %b) : {BINARY}', f'%c = "tessera.graph.relu"(%a) : {UNARY}'):
        diagnostic = schedules.refused(AB, [line, tiled(32, 32, 32)], "%t", T)
        assert (diagnostic.category, diagnostic.clause) == ("schedule", "LANG-06.1-01")
    argument = f'%t = "tessera.schedule.tile"(%a) {{m = 32, n = 32, k = 32}} : {UNARY}'
    assert schedules.refused(AB, [argument], "%t", T).clause == "LANG-06.1-01"


def test_k_covers_what_is_summed_over(schedules: Any) -> None:
    diagnostic = schedules.refused(AB, [PRODUCT, tiled(32, 32, 48)], "%t", T)
    assert (diagnostic.category, diagnostic.clause) == ("schedule", "LANG-06.3-01")
    assert "pad by 32" in diagnostic.remedy
    schedules.accepted(AB, [PRODUCT, tiled(32, 32, 48, ", pad = [0, 0, 32]")], "%t", T)
    schedules.accepted(AB, [PRODUCT, tiled(32, 32, 48, ", pad = 32")], "%t", T)


FUSED = f'%f = "tessera.schedule.fuse"(%c, %e) : {BINARY}'


def test_a_fusion_keeps_dependences(schedules: Any) -> None:
    between = f'%d = "tessera.graph.matmul"(%c, %b) : {BINARY}'
    around = f'%e = "tessera.graph.add"(%c, %d) : {BINARY}'
    diagnostic = schedules.refused(AB, [PRODUCT, between, around, FUSED], "%f", T)
    assert (diagnostic.category, diagnostic.clause) == ("schedule", "LANG-06.2-01")
    assert "%c, %e" in diagnostic.message
    beside = f'%d = "tessera.graph.matmul"(%a, %b) : {BINARY}'
    schedules.accepted(AB, [PRODUCT, beside, around, FUSED], "%f", T)
    all_three = f'%f = "tessera.schedule.fuse"(%c, %d, %e) : ({T}, {T}, {T}) -> {T}'
    schedules.accepted(AB, [PRODUCT, between, around, all_three], "%f", T)


def test_dependences_are_kept_where_extents_are_not_known(schedules: Any) -> None:
    lines = [PRODUCT, f'%d = "tessera.graph.matmul"(%c, %b) : {BINARY}', f'%e = "tessera.graph.add"(%c, %d) : {BINARY}']
    named = [each.replace("64x64", "NxN") for each in [*lines, FUSED]]
    diagnostic = schedules.refused(AB.replace("64x64", "NxN"), named, "%f", T.replace("64x64", "NxN"))
    assert diagnostic.clause == "LANG-06.2-01"


def test_two_fusions_that_need_each_other(schedules: Any) -> None:
    lines = [
        f'%p = "tessera.graph.relu"(%a) : {UNARY}',
        f'%q = "tessera.graph.relu"(%b) : {UNARY}',
        f'%r = "tessera.graph.exp"(%q) : {UNARY}',
        f'%s = "tessera.graph.exp"(%p) : {UNARY}',
        f'%f = "tessera.schedule.fuse"(%p, %r) : {BINARY}',
        f'%g = "tessera.schedule.fuse"(%q, %s) : {BINARY}',
    ]
    assert schedules.refused(AB, lines, "%f, %g", f"{T}, {T}").clause == "LANG-06.2-01"
    schedules.accepted(AB, lines[:-1], "%f, %s", f"{T}, {T}")


def test_a_fusion_does_not_reach_across_a_barrier(schedules: Any) -> None:
    lines = [PRODUCT, '"tessera.graph.barrier"() : () -> ()', f'%e = "tessera.graph.relu"(%c) : {UNARY}', FUSED]
    assert schedules.refused(AB, lines, "%f", T).clause == "LANG-06.2-01"
    schedules.accepted(AB, [PRODUCT, *lines[2:], lines[1]], "%f", T)


def test_all_buffers_fit_the_shared_memory_of_a_block(schedules: Any) -> None:
    # (128 * 32 + 32 * 128) * 4 bytes = 32768, in 7 stages 229376 of sm_90's 232448, in 8 stages too many.
    schedules.accepted(*staged(128, 128, 32, 7, 256))
    diagnostic = schedules.refused(*staged(128, 128, 32, 8, 256))
    assert (diagnostic.category, diagnostic.clause) == ("schedule", "LANG-11-08")
    assert "262144 of 232448" in diagnostic.message
    # 65536 bytes are all that gfx90a has.
    schedules.accepted(*staged(128, 128, 32, 2, 256), target="gfx90a")
    assert schedules.refused(*staged(128, 128, 32, 3, 256), target="gfx90a").clause == "LANG-11-08"


def test_one_tile_fits_the_shared_memory_of_a_block(schedules: Any) -> None:
    diagnostic = schedules.refused(*staged(8, 512, 128, 1, 1024))  # 512 * 128 * 4 bytes
    assert (diagnostic.category, diagnostic.clause) == ("schedule", "LANG-06.2-03")
    schedules.accepted(*staged(8, 256, 128, 1, 1024))


def test_a_prefetch_to_global_takes_no_shared_memory(schedules: Any) -> None:
    parameters, lines, *rest = staged(128, 128, 32, 8, 256)
    schedules.accepted(parameters, [each.replace('"shared"', '"global"') for each in lines], *rest)


def test_a_thread_has_registers_for_its_part_of_a_tile(schedules: Any) -> None:
    # 256 threads share 256 x 256 accumulators of fp32: 256 registers of sm_90's 255, of gfx90a's 512.
    big, small = staged(256, 256, 16, 1, 256), staged(256, 128, 16, 1, 256)
    diagnostic = schedules.refused(*big)
    assert (diagnostic.category, diagnostic.clause) == ("schedule", "LANG-11-09")
    schedules.accepted(*small)
    schedules.accepted(*big, target="gfx90a")


def test_a_prefetch_is_of_what_is_computed_with(schedules: Any) -> None:
    fetched = f'%p = "tessera.schedule.prefetch"(%a) {{scope = "shared"}} : {UNARY}'
    diagnostic = schedules.refused(AB, [fetched], "%p", T)
    assert (diagnostic.category, diagnostic.clause) == ("schedule", "LANG-06.1-04")
    schedules.accepted(AB, [fetched, f'%c = "tessera.graph.relu"(%p) : {UNARY}'], "%c", T)


COLUMNS = "tensor<64x64xfp32; layout=col_major>"


@pytest.mark.parametrize(
    ("producer", "clause"),
    [
        (f'%c = "tessera.graph.matmul"(%a, %b) : {BINARY}', ""),
        (f'%c = "tessera.graph.add"(%a, %b) : {BINARY}', ""),
        (f'%c = "tessera.graph.softmax"(%a) : {UNARY}', "LANG-06.3-02"),
    ],
)
def test_a_layout_that_the_producer_writes_itself(schedules: Any, producer: str, clause: str) -> None:
    cast = f'%l = "tessera.schedule.layout_cast"(%c) {{to = "col_major"}} : ({T}) -> {COLUMNS}'
    if not clause:
        schedules.accepted(AB, [producer, cast], "%l", COLUMNS)
        return
    diagnostic = schedules.refused(AB, [producer, cast], "%l", COLUMNS)
    assert (diagnostic.category, diagnostic.clause) == ("layouts", clause)
    copied = cast.replace("}", ", materialize = true}")
    schedules.accepted(AB, [producer, copied], "%l", COLUMNS)


def test_nobody_writes_an_argument_in_another_layout(schedules: Any) -> None:
    cast = f'%l = "tessera.schedule.layout_cast"(%a) {{to = "col_major"}} : ({T}) -> {COLUMNS}'
    diagnostic = schedules.refused(AB, [cast], "%l", COLUMNS)
    assert (diagnostic.category, diagnostic.clause) == ("layouts", "LANG-06.3-02")


def test_a_layout_that_the_consumer_does_not_take(schedules: Any) -> None:
    cast = f'%l = "tessera.schedule.layout_cast"(%c) {{to = "col_major"}} : ({T}) -> {COLUMNS}'
    for reader, category in (("softmax", "layouts"), ("relu", "")):
        lines = [PRODUCT, cast, f'%r = "tessera.graph.{reader}"(%l) : ({COLUMNS}) -> {COLUMNS}']
        if category:
            assert schedules.refused(AB, lines, "%r", COLUMNS).category == category
        else:
            schedules.accepted(AB, lines, "%r", COLUMNS)


def test_regions_are_judged_too(schedules: Any) -> None:
    lines = [
        '%i = "tessera.graph.constant"() {value = 1} : () -> int32',
        f'%r = "tessera.graph.for"(%i, %i, %i, %a) ({{\n^bb0(%j: int32, %x: {T}):',
        f'%y = "tessera.graph.relu"(%x) : {UNARY}',
        f'%t = "tessera.schedule.tile"(%y) {{m = 32, n = 32, k = 32}} : {UNARY}',
        f'"tessera.graph.yield"(%t) : ({T}) -> ()',
        f"}}) : (int32, int32, int32, {T}) -> {T}",
    ]
    assert schedules.refused(AB, lines, "%r", T).clause == "LANG-06.1-01"
    lines[3] = lines[3].replace(", k = 32", "")
    schedules.accepted(AB, lines, "%r", T)
