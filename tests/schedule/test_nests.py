"""What becomes one nest, in which order nests run, and what stays in the host function; by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera_reference.ir.module import Function, Instruction
from tessera_reference.ir.targets import target_of
from tessera_reference.schedule.lowering import to_schedule
from tessera_reference.schedule.nests import Plan, nests_of

T = "tensor<64x64xfp32>"
AB = f"%a: {T}, %b: {T}"
UNARY, BINARY = f"({T}) -> {T}", f"({T}, {T}) -> {T}"
PRODUCT = f'%c = "tessera.graph.matmul"(%a, %b) : {BINARY}'
RELU = f'%r = "tessera.graph.relu"(%c) : {UNARY}'


def fuse(result: str, *parts: str) -> str:
    return f'%{result} = "tessera.schedule.fuse"({", ".join(parts)}) : ({", ".join([T] * len(parts))}) -> {T}'


def test_without_a_schedule_every_operation_is_a_nest(schedules: Any) -> None:
    function = schedules.accepted(AB, [PRODUCT, RELU], "%r", T)
    assert schedules.nests(function) == [
        ("contract", ["matmul"], ["a", "b"], ["c"], (64, 64, 32), 1, []),
        ("map", ["relu"], ["c"], ["r"], (32, 64, 1), 1, []),
    ]


def test_an_epilogue_is_computed_in_the_tile_of_its_product(schedules: Any) -> None:
    lines = [
        PRODUCT,
        f'%t = "tessera.schedule.tile"(%c) {{m = 16, n = 32, k = 8}} : {UNARY}',
        f'%d = "tessera.schedule.pipeline"(%t) {{depth = 3}} : {UNARY}',
        '%two = "tessera.graph.constant"() {value = 2.0} : () -> fp32',
        f'%e = "tessera.graph.multiply"(%d, %two) : ({T}, fp32) -> {T}',
        f'%s = "tessera.graph.add"(%e, %b) : {BINARY}',
        fuse("f", "%d", "%e", "%s"),
    ]
    function = schedules.accepted(AB, lines, "%f", T)
    # The constant is computed inside, and nowhere else.
    assert schedules.nests(function) == [
        ("contract", ["matmul", "constant", "multiply", "add"], ["a", "b"], ["s"], (16, 32, 8), 3, [])
    ]


def test_what_is_used_outside_is_an_output(schedules: Any) -> None:
    lines = [PRODUCT, RELU, fuse("f", "%c", "%r"), f'%m = "tessera.graph.matmul"(%c, %f) : {BINARY}']
    function = schedules.accepted(AB, lines, "%m", T)
    assert schedules.nests(function) == [
        ("contract", ["matmul", "relu"], ["a", "b"], ["c", "r"], (64, 64, 32), 1, []),
        ("contract", ["matmul"], ["c", "r"], ["m"], (64, 64, 32), 1, []),
    ]


def test_what_nobody_uses_is_computed_all_the_same(schedules: Any) -> None:
    function = schedules.accepted(AB, [PRODUCT], "%a", T)
    assert schedules.nests(function)[0][:4] == ("contract", ["matmul"], ["a", "b"], ["c"])


def test_a_fused_nest_runs_when_all_that_it_needs_is_there(schedules: Any) -> None:
    lines = [
        PRODUCT,
        f'%x = "tessera.graph.exp"(%b) : {UNARY}',
        f'%y = "tessera.graph.sin"(%c) : {UNARY}',
        f'%e = "tessera.graph.add"(%c, %x) : {BINARY}',
        fuse("f", "%c", "%e"),
    ]
    function = schedules.accepted(AB, lines, "%f, %y", f"{T}, {T}")
    assert [each[1] for each in schedules.nests(function)] == [["exp"], ["matmul", "add"], ["sin"]]


def test_what_cannot_share_a_nest_runs_in_nests_of_its_own(schedules: Any) -> None:
    lines = [
        PRODUCT,
        f'%t = "tessera.graph.transpose"(%c) {{perm = [1, 0]}} : {UNARY}',
        f'%r = "tessera.graph.relu"(%t) : {UNARY}',
        f'%s = "tessera.graph.softmax"(%r) : {UNARY}',
        fuse("f", "%c", "%t", "%r", "%s"),
    ]
    function = schedules.accepted(AB, lines, "%f", T)
    found = schedules.nests(function)
    assert [each[0] for each in found] == ["contract", "map", "map", "rows"]
    assert [each[1] for each in found] == [["matmul"], ["transpose"], ["relu"], ["softmax"]]


def test_only_readers_of_a_prefetch_read_through_shared_memory(schedules: Any) -> None:
    lines = [
        f'%s = "tessera.schedule.prefetch"(%a) {{scope = "shared", align = 64}} : {UNARY}',
        f'%g = "tessera.schedule.prefetch"(%b) {{scope = "global"}} : {UNARY}',
        f'%c = "tessera.graph.matmul"(%s, %g) : {BINARY}',
        f'%r = "tessera.graph.relu"(%a) : {UNARY}',
    ]
    function = schedules.accepted(AB, lines, "%c, %r", f"{T}, {T}")
    assert [each[-1] for each in schedules.nests(function)] == [["a"], []]


def test_tiles_of_rows(schedules: Any) -> None:
    wide = "tensor<6x10xfp32>"
    cases = {
        f'"tessera.graph.softmax"(%a) {{axis = -1}} : ({wide}) -> {wide}': (wide, "m = 2, n = 5", (2, 5, 1)),
        f'"tessera.graph.softmax"(%a) {{axis = 0}} : ({wide}) -> {wide}': (wide, "m = 2, n = 5", (5, 2, 1)),
        f'"tessera.graph.sum"(%a) {{axis = 1}} : ({wide}) -> tensor<6xfp32>': (
            "tensor<6xfp32>",
            "m = 1, n = 3",
            (3, 10, 1),
        ),
    }
    for line, (type_, sizes, expected) in cases.items():
        tile = f'%t = "tessera.schedule.tile"(%c) {{{sizes}}} : ({type_}) -> {type_}'
        function = schedules.accepted(f"%a: {wide}", [f"%c = {line}", tile], "%t", type_)
        ((kind, *_, found, _, _),) = schedules.nests(function)
        assert (kind, found) == ("rows", expected)


def test_the_host_keeps_what_no_kernel_holds(schedules: Any) -> None:
    module = schedules.program(
        "x: tensor<4x4xfp32>, n: int32",
        "for (i in 0 : n) { x = x + x; } assert(n > 0); return op.dropout(x, rate=0.5, seed=1), n + n;",
    )
    found = schedules.nests(module.functions["f"])
    assert [each[1] for each in found if each[0] == "host"] == [
        "constant",
        "constant",
        "for",
        "constant",
        "greater",
        "assert",
        "dropout",
        "add",
    ]


def test_effects_keep_their_order(schedules: Any) -> None:
    module = schedules.program(
        "x: tensor<4x4xfp32>, n: int32",
        'assert(n > 1, "a"); barrier("b"); let y: tensor<4x4xfp32> = x * x; barrier("c"); assert(n > 0); return y;',
    )
    found = [each[1] for each in schedules.nests(module.functions["f"])]
    assert found == [
        "constant",
        "greater",
        "assert",
        "barrier",
        ["multiply"],
        "barrier",
        "constant",
        "greater",
        "assert",
    ]


def test_a_late_fusion_does_not_let_effects_overtake_each_other(schedules: Any) -> None:
    lines = [
        PRODUCT,
        f'%v = "tessera.graph.slice"(%c) {{spec = ["0", "0"]}} : ({T}) -> fp32',
        '%g = "tessera.graph.equal"(%v, %v) : (fp32, fp32) -> bool',
        '"tessera.graph.assert"(%g) {message = "first"} : (bool) -> ()',
        '"tessera.graph.assert"(%q) {message = "second"} : (bool) -> ()',
        f'%x = "tessera.graph.exp"(%b) : {UNARY}',
        f'%e = "tessera.graph.add"(%c, %x) : {BINARY}',
        fuse("f", "%c", "%e"),
    ]
    function = schedules.accepted(f"{AB}, %q: bool", lines, "%f", T)
    planned = nests_of(function, target_of("sm_90"))
    messages = [each.operation.attributes.get("message") for each in planned if isinstance(each, Instruction)]
    assert [message for message in messages if message] == ["first", "second"]


def test_values_that_leave_the_block_are_outputs(schedules: Any) -> None:
    function = schedules.accepted(AB, [PRODUCT, RELU, fuse("f", "%c", "%r")], "%c, %f", f"{T}, {T}")
    assert [each[3] for each in schedules.nests(function)] == [["c", "r"]]
    module = schedules.program(
        "a: tensor<4x4xfp32>, n: int32",
        "let c: tensor<4x4xfp32> = a @ a; let r: tensor<4x4xfp32> = op.relu(c); "
        "for (i in 0 : n) { r = r + c; } return r;",
    )
    scheduled = to_schedule(module, target_of("sm_90")).functions["f"]
    assert schedules.nests(scheduled)[0][1:4] == (["matmul", "relu"], ["a"], ["c", "r"])


def test_regions_have_nests_of_their_own(schedules: Any, plan_of: Callable[[Function], Plan]) -> None:
    module = schedules.program(
        "x: tensor<4x4xfp32>, n: int32", "let y: tensor<4x4xfp32> = x @ x; for (i in 0 : n) { x = x * y; } return x;"
    )
    function = module.functions["f"]
    plan = plan_of(function)
    outer = plan.block(function.body)
    (loop,) = (each for each in outer if schedules.short(each) == ("host", "for"))
    (inner,) = plan.block(loop.regions[0])  # type: ignore[union-attr]
    assert schedules.short(outer[0])[2:4] == (["x"], ["y"])
    assert schedules.short(inner)[:2] == ("map", ["multiply"])
    assert schedules.short(inner)[2][1] == "y"


def test_composites_are_written_out(schedules: Any) -> None:
    module = schedules.program("x: tensor<4x8xfp32>, g: tensor<8xfp32>", "op.rms_norm(x, g)")
    found = [each[1] for each in schedules.nests(module.functions["f"])]
    assert found == [
        ["multiply"],
        ["mean"],
        ["constant", "add"],
        ["rsqrt"],
        ["multiply"],
        ["reshape"],
        ["multiply"],
    ]


def test_what_is_differentiated_has_no_nests(schedules: Any) -> None:
    module = schedules.program("x: tensor<4x4xfp32>", "op.grad(op.sum(op.sum(x @ x, axis=0), axis=0), x)")
    assert {each[0] for each in schedules.nests(module.functions["f"])} == {"host"}


def test_extents_that_are_not_known_have_no_nests(schedules: Any) -> None:
    module = schedules.program("x: tensor<Nx4xfp32>", "op.relu(x)")
    assert schedules.nests(module.functions["f"]) == [("host", "relu")]
