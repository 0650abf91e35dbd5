"""Nests and fusions that are legal on every target and keep the order of effects."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.operation import Function, Instruction, Module
from tessera_reference.ir.targets import TARGETS, target_of
from tessera_reference.schedule.choices import Options
from tessera_reference.schedule.lowering import to_schedule
from tessera_reference.schedule.nests import Plan


def lowered(module: Module, options: Options | None = None, target: str = "sm_90") -> Function:
    return to_schedule(module, target_of(target), options).functions["f"]


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("held", ["fp8_e4m3", "bf16", "tf32", "fp32", "fp64", "int8", "int64", "complex128"])
def test_what_is_chosen_is_legal_on_every_target(schedules: Any, target_name: str, held: str) -> None:
    module = schedules.program(
        "A: tensor<2x300x700xX>, B: tensor<2x700x300xX>".replace("X", held), "A @ B, op.sum(A, axis=1), -A"
    )
    for depth in (None, 1, 4):
        lowered(module, Options(depth=depth), target_name)


NESTS_T = "tensor<64x64xfp32>"
NESTS_AB = f"%a: {NESTS_T}, %b: {NESTS_T}"
UNARY, BINARY = f"({NESTS_T}) -> {NESTS_T}", f"({NESTS_T}, {NESTS_T}) -> {NESTS_T}"
PRODUCT = f'%c = "tessera.graph.matmul"(%a, %b) : {BINARY}'


def fuse(result: str, *parts: str) -> str:
    return (
        f'%{result} = "tessera.schedule.fuse"({", ".join(parts)}) : ({", ".join([NESTS_T] * len(parts))}) -> {NESTS_T}'
    )


def test_what_cannot_share_a_nest_runs_in_nests_of_its_own(schedules: Any) -> None:
    lines = [
        PRODUCT,
        f'%t = "tessera.graph.transpose"(%c) {{perm = [1, 0]}} : {UNARY}',
        f'%r = "tessera.graph.relu"(%t) : {UNARY}',
        f'%s = "tessera.graph.softmax"(%r) : {UNARY}',
        fuse("f", "%c", "%t", "%r", "%s"),
    ]
    function = schedules.accepted(NESTS_AB, lines, "%f", NESTS_T)
    actual = schedules.nests(function)
    assert [nest[0] for nest in actual] == ["contract", "map", "map", "rows"]
    assert [nest[1] for nest in actual] == [["matmul"], ["transpose"], ["relu"], ["softmax"]]


def test_the_host_keeps_what_no_kernel_holds(schedules: Any) -> None:
    module = schedules.program(
        "x: tensor<4x4xfp32>, n: int32",
        "for (i in 0 : n) { x = x + x; } assert(n > 0); return op.dropout(x, rate=0.5, seed=1), n + n;",
    )
    actual = schedules.nests(module.functions["f"])
    assert [nest[1] for nest in actual if nest[0] == "host"] == [
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
    actual = [nest[1] for nest in schedules.nests(module.functions["f"])]
    assert actual == [
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
    planned = Plan(function, target_of("sm_90")).block(function.body)
    messages = [step.operation.attributes.get("message") for step in planned if isinstance(step, Instruction)]
    assert [message for message in messages if message] == ["first", "second"]


FUSION_T = "tensor<4x4xfp32>"
CALLEE = f"func g(x: {FUSION_T}) -> {FUSION_T} {{ assert(1 < 2); return x + x; }}"


def program(schedules: Any, statements: list[str], results: str) -> Module:
    lines = [
        f"schedule.fuse({statement[1:]});"
        if statement.startswith("!")
        else f"let {statement.replace(' =', f': {FUSION_T} =', 1)};"
        for statement in statements
    ]
    return schedules.program(f"x: {FUSION_T}, y: {FUSION_T}", " ".join([*lines, f"return {results};"]), mesh=CALLEE)


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
