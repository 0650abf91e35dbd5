"""From Graph to Schedule IR: nests and fusions that are chosen, their order, directives, options, and the text."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.module import Function, Instruction, Module
from tessera_reference.ir.targets import TARGETS, Target, target_of
from tessera_reference.ir.text import print_module
from tessera_reference.ir.text_reader import read_module
from tessera_reference.ir.verifier import verify
from tessera_reference.schedule.lowering import to_schedule
from tessera_reference.schedule.nests import Plan, nests_of
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
    names = [instruction.operation.name.removeprefix("tessera.") for instruction in function.body.instructions]
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


@pytest.mark.parametrize(
    "annotation", ["double_buffer=true, depth=1", "tile=0", "depth=0", 'prefetch="private"', "fuse=3"]
)
def test_annotations_that_are_no_schedule(annotation: str) -> None:
    with pytest.raises(Rejection) as caught:
        lowered(annotated(annotation))
    assert [diagnostic.category for diagnostic in caught.value.diagnostics] == ["schedule"]


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


NESTS_T = "tensor<64x64xfp32>"
NESTS_AB = f"%a: {NESTS_T}, %b: {NESTS_T}"
UNARY, BINARY = f"({NESTS_T}) -> {NESTS_T}", f"({NESTS_T}, {NESTS_T}) -> {NESTS_T}"
PRODUCT = f'%c = "tessera.graph.matmul"(%a, %b) : {BINARY}'
RELU = f'%r = "tessera.graph.relu"(%c) : {UNARY}'


def fuse(result: str, *parts: str) -> str:
    return (
        f'%{result} = "tessera.schedule.fuse"({", ".join(parts)}) : ({", ".join([NESTS_T] * len(parts))}) -> {NESTS_T}'
    )


def test_without_a_schedule_every_operation_is_a_nest(schedules: Any) -> None:
    function = schedules.accepted(NESTS_AB, [PRODUCT, RELU], "%r", NESTS_T)
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
        f'%e = "tessera.graph.multiply"(%d, %two) : ({NESTS_T}, fp32) -> {NESTS_T}',
        f'%s = "tessera.graph.add"(%e, %b) : {BINARY}',
        fuse("f", "%d", "%e", "%s"),
    ]
    function = schedules.accepted(NESTS_AB, lines, "%f", NESTS_T)
    # The constant is computed inside, and nowhere else.
    assert schedules.nests(function) == [
        ("contract", ["matmul", "constant", "multiply", "add"], ["a", "b"], ["s"], (16, 32, 8), 3, [])
    ]


def test_what_is_used_outside_is_an_output(schedules: Any) -> None:
    lines = [PRODUCT, RELU, fuse("f", "%c", "%r"), f'%m = "tessera.graph.matmul"(%c, %f) : {BINARY}']
    function = schedules.accepted(NESTS_AB, lines, "%m", NESTS_T)
    assert schedules.nests(function) == [
        ("contract", ["matmul", "relu"], ["a", "b"], ["c", "r"], (64, 64, 32), 1, []),
        ("contract", ["matmul"], ["c", "r"], ["m"], (64, 64, 32), 1, []),
    ]


def test_what_nobody_uses_is_computed_all_the_same(schedules: Any) -> None:
    function = schedules.accepted(NESTS_AB, [PRODUCT], "%a", NESTS_T)
    assert schedules.nests(function)[0][:4] == ("contract", ["matmul"], ["a", "b"], ["c"])


def test_a_fused_nest_runs_when_all_that_it_needs_is_there(schedules: Any) -> None:
    lines = [
        PRODUCT,
        f'%x = "tessera.graph.exp"(%b) : {UNARY}',
        f'%y = "tessera.graph.sin"(%c) : {UNARY}',
        f'%e = "tessera.graph.add"(%c, %x) : {BINARY}',
        fuse("f", "%c", "%e"),
    ]
    function = schedules.accepted(NESTS_AB, lines, "%f, %y", f"{NESTS_T}, {NESTS_T}")
    assert [nest[1] for nest in schedules.nests(function)] == [["exp"], ["matmul", "add"], ["sin"]]


def test_what_cannot_share_a_nest_runs_in_nests_of_its_own(schedules: Any) -> None:
    lines = [
        PRODUCT,
        f'%t = "tessera.graph.transpose"(%c) {{perm = [1, 0]}} : {UNARY}',
        f'%r = "tessera.graph.relu"(%t) : {UNARY}',
        f'%s = "tessera.graph.softmax"(%r) : {UNARY}',
        fuse("f", "%c", "%t", "%r", "%s"),
    ]
    function = schedules.accepted(NESTS_AB, lines, "%f", NESTS_T)
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
    function = schedules.accepted(NESTS_AB, lines, "%c, %r", f"{NESTS_T}, {NESTS_T}")
    assert [nest[-1] for nest in schedules.nests(function)] == [["a"], []]


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
    found = [nest[1] for nest in schedules.nests(module.functions["f"])]
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
        f'%v = "tessera.graph.slice"(%c) {{spec = ["0", "0"]}} : ({NESTS_T}) -> fp32',
        '%g = "tessera.graph.equal"(%v, %v) : (fp32, fp32) -> bool',
        '"tessera.graph.assert"(%g) {message = "first"} : (bool) -> ()',
        '"tessera.graph.assert"(%q) {message = "second"} : (bool) -> ()',
        f'%x = "tessera.graph.exp"(%b) : {UNARY}',
        f'%e = "tessera.graph.add"(%c, %x) : {BINARY}',
        fuse("f", "%c", "%e"),
    ]
    function = schedules.accepted(f"{NESTS_AB}, %q: bool", lines, "%f", NESTS_T)
    planned = nests_of(function, target_of("sm_90"))
    messages = [each.operation.attributes.get("message") for each in planned if isinstance(each, Instruction)]
    assert [message for message in messages if message] == ["first", "second"]


def test_values_that_leave_the_block_are_outputs(schedules: Any) -> None:
    function = schedules.accepted(NESTS_AB, [PRODUCT, RELU, fuse("f", "%c", "%r")], "%c, %f", f"{NESTS_T}, {NESTS_T}")
    assert [nest[3] for nest in schedules.nests(function)] == [["c", "r"]]
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
    found = [nest[1] for nest in schedules.nests(module.functions["f"])]
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
    assert {nest[0] for nest in schedules.nests(module.functions["f"])} == {"host"}


def test_extents_that_are_not_known_have_no_nests(schedules: Any) -> None:
    module = schedules.program("x: tensor<Nx4xfp32>", "op.relu(x)")
    assert schedules.nests(module.functions["f"]) == [("host", "relu")]


FUSION_T = "tensor<4x4xfp32>"
CALLEE = f"func g(x: {FUSION_T}) -> {FUSION_T} {{ assert(1 < 2); return x + x; }}"
BETWEEN = {
    "the order of effects": ["a = x * y", "b = g(a)", "c = g(x)", "d = a + c"],
    "a group that grew": [
        "e = op.relu(y)",
        "p = op.softmax(e)",
        "a = x + y",
        "s = op.softmax(a)",
        "q = e + s",
        "d = a + p",
    ],
    "a directed fusion": ["a = x + y", "c = op.softmax(y)", "b = op.relu(a) + c", "!c, b", "d = a + c"],
}


def program(schedules: Any, statements: list[str], results: str) -> Module:
    lines = [
        f"schedule.fuse({statement[1:]});"
        if statement.startswith("!")
        else f"let {statement.replace(' =', f': {FUSION_T} =', 1)};"
        for statement in statements
    ]
    return schedules.program(f"x: {FUSION_T}, y: {FUSION_T}", " ".join([*lines, f"return {results};"]), mesh=CALLEE)


@pytest.mark.parametrize("statements", BETWEEN.values(), ids=BETWEEN)
def test_nothing_joins_a_group_around_another(schedules: Any, statements: list[str]) -> None:
    to_schedule(program(schedules, statements, "d"), target_of("sm_90"))


def drawn(seed: int) -> tuple[list[str], str]:
    """Statements on few values, a tenth of them directed to be fused with the one before, and a few results."""
    draw = random.Random(seed)
    names, statements = ["x", "y"], list[str]()
    forms = ["{} + {}"] * 6 + ["op.relu({})", "op.transpose({})", "{} @ {}", "op.softmax({})", "g({})"]
    for number in range(draw.randint(4, 24)):
        operands = [draw.choice(names[-6:]), draw.choice(names)]
        statements.append(f"v{number} = {draw.choice(forms).format(*operands)}")
        names.append(f"v{number}")
        if draw.random() < 0.1 and number:
            statements.append(f"!v{number - 1}, v{number}")
    return statements, ", ".join(draw.sample(names, 3))


def is_legal(module: Module, fuse: bool) -> bool:
    try:
        to_schedule(module, target_of("sm_90"), Options(fuse=fuse))
    except Rejection:
        return False
    return True


def test_fusing_refuses_no_program_that_is_legal_without(schedules: Any) -> None:
    legal = 0
    for seed in range(150):
        module = program(schedules, *drawn(seed))
        alone = is_legal(module, fuse=False)
        legal += alone
        assert is_legal(module, fuse=True) == alone, f"seed {seed}"
    assert legal > 100
