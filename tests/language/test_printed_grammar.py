"""Golden programs are derivable from the printed grammar (LANG 2.3, 14.1), but for the signs that some are about."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from lark import Lark, UnexpectedInput

from tessera_conformance.locations import vectors_directory

GRAMMAR = Path(__file__).parent / "printed_grammar.lark"
SIGN = re.compile(r"(?<=[=\[,(])\s*-\d|= -[A-Z]")
"""A signed number, or a sign before an operand: section 14.2 has it, the productions of section 2.3 do not."""
SIGNED = 111
"""Golden programs that ask for a sign."""


@cache
def parser() -> Lark:
    return Lark(GRAMMAR.read_text(encoding="utf-8"), start="program", parser="lalr", maybe_placeholders=False)


def is_derivable(source: str) -> bool:
    try:
        parser().parse(source)
    except UnexpectedInput:
        return False
    return True


def programs() -> list[str]:
    lines = [
        json.loads(line)
        for path in sorted((vectors_directory() / "ir").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return [line["call"]["params"]["source"] for line in lines if "source" in line.get("call", {}).get("params", {})]


@pytest.mark.slow
def test_golden_programs_use_only_the_printed_grammar():
    others = [source for source in programs() if not is_derivable(source)]
    assert all(SIGN.search(source) for source in others)
    assert len(others) == SIGNED


@pytest.mark.parametrize(
    ("statement", "derivable"),
    [
        ("return op.softmax(A) @{axis=0};", True),
        ("return op.softmax(A, axis=0);", False),
        ("return op.softmax(A) @{axis=-1};", False),
        ("return -A;", False),
        ("return A[0];", False),
        ("return A @ A + A;", True),
        ("A[0, 1:2] = B; return A;", True),
        ("for (i in 0:4:2) { A = A + A; } return A;", True),
        ("if (a < 2) { return A; } else { return B; }", True),
        ("let x: fp32 = 1.5e-3; return A;", True),
        ("let x: fp32 = 1e5; return A;", False),
        ('dist.all_reduce(A) @{axis=dp, op="sum"}; return A;', True),
        ("return A", False),
        ("return A; }", False),
    ],
)
def test_the_grammar_is_the_printed_one(statement, derivable):
    source = f"module m {{ func f(A: tensor<2x?xbf16; layout=row_major>) -> tensor<2x?xbf16> {{ {statement} }} }}"
    assert is_derivable(source) == derivable
