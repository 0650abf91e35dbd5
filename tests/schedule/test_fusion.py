"""Fusions that are chosen are never refused: what runs unfused runs fused (LANG-08.2-13), whatever lies between."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.module import Module
from tessera_reference.ir.targets import target_of
from tessera_reference.schedule.lowering import to_schedule
from tessera_reference.schedule.options import Options

T = "tensor<4x4xfp32>"
CALLEE = f"func g(x: {T}) -> {T} {{ assert(1 < 2); return x + x; }}"

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
        f"schedule.fuse({each[1:]});" if each.startswith("!") else f"let {each.replace(' =', f': {T} =', 1)};"
        for each in statements
    ]
    return schedules.program(f"x: {T}, y: {T}", " ".join([*lines, f"return {results};"]), mesh=CALLEE)


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
