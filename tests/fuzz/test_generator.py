"""Generated programs: every form of the language, one mistake each where illegal, and mutated texts."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter

import pytest

from tessera_conformance.dsl import DTYPES
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.mutations import (
    DECLARATIONS,
    LONGEST,
    MISTAKES,
    MISTAKES_WITH_NAMES,
    MUTATIONS,
    break_program,
    mutate,
)
from tessera_conformance.fuzz.statements import FEATURES, VARIANTS, GeneratedProgram, generate, vary
from tessera_conformance.fuzz.tree import Style, odd, render, replayed, seeded
from tessera_conformance.fuzz.trials import chooser_of, make_trial
from tessera_conformance.oracle.elementwise import UNARY

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\]|\\.)*"|\d+\.\d*(?:[eE][+-]?\d+)?|\d\w*|[A-Za-z_]\w*|->|[=!<>]=|\S""", re.DOTALL
)


def tokens(text: str) -> list[str]:
    """The tokens of a text by a lexer that shares nothing with the generator; comments are left out."""
    return [token for token in TOKEN.findall(text) if not token.startswith(("//", "/*"))]


OPERATIONS = (
    "matmul softmax grad fft ifft cast transpose relu sigmoid silu gelu sum mean max min prod logsumexp argmax pow "
    "abs maximum minimum clamp select reshape broadcast concat pad iota "
    "gather scatter_add slice layer_norm rms_norm flash_attention uniform normal dropout"
).split() + list(UNARY)
DIGEST = """
import hashlib
from tessera_conformance.fuzz.trials import chooser_of, make_trial
print(hashlib.sha256("".join(repr(make_trial(chooser_of(9, n))) for n in range(60)).encode()).hexdigest())
"""


def test_a_trial_depends_on_seed_and_index_alone() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1", "77")
    }
    here = "".join(repr(make_trial(chooser_of(9, n))) for n in range(60))
    assert digests == {hashlib.sha256(here.encode()).hexdigest()}


def test_the_tape_gives_the_trial_again() -> None:
    for number in range(80):
        chooser = chooser_of(3, number)
        trial = make_trial(chooser, FEATURES)
        assert make_trial(replayed(chooser.tape), FEATURES) == trial


@pytest.mark.parametrize(
    "form",
    [
        *(
            rf"\b{word}\b"
            for word in "module func kernel type mesh let return if else for while in barrier assert".split()
        ),
        *(re.escape(sign) for sign in "+ - * / == != < > <= >= @{ @".split()),
        *(rf"x{dtype}\b" for dtype in DTYPES),
        *(rf": {dtype}\b" for dtype in DTYPES),
        r"layout=col_major",
        r"layout=blocked\(bm=2,bn=2\)",
        r"tensor<\?",
        r"tensor<N",
        r"tensor<0x",
        r"for \(\w+ in \w+:\w+\)",
        r"for \(\w+ in \w+:-?\w+:-\w+\)",
        r"\w+\[[^]]*:[^]]*\] = ",
        r"-> \w+ ",
        r": \w+ = \w+[,)]",
        *(rf"dist\.{name}\(" for name in "all_reduce all_gather broadcast reduce_scatter all_to_all".split()),
        *(rf"schedule\.{name}\(" for name in "tile pipeline prefetch".split()),
        *(rf"op\.{name}\(" for name in OPERATIONS),
        r"numerics_profile=",
        r"numerics\.profile\(",
        r"\[::-",
        r"fragment<|memref<|fn\(",
        r"/\*.*\*/",
        r"//",
        r"\r\n",
        r"let \w+: [^=;]*;",
        r"return [^;]*,",
        r"return;",
        r"1e1|1\.5e-3|2\.E\+1|007",
    ],
)
def test_every_form_of_the_language_occurs(legal_programs: list[GeneratedProgram], form: str) -> None:
    pattern = re.compile(form)
    assert any(pattern.search(program.source) for program in legal_programs)


def test_features_are_used_only_where_they_are_claimed() -> None:
    extended = re.compile(r"op\.(?!matmul|softmax|grad)|complex|tensor<0x")
    for number in range(400):
        program = generate(seeded(f"core/{number}"))
        assert not extended.search(render(program.tree))


def test_the_source_has_the_tokens_of_the_tree(legal_programs: list[GeneratedProgram]) -> None:
    """Spacing and comments change no token: a lexer that shares nothing with the generator finds the same ones."""
    for number, program in enumerate(legal_programs[:300]):
        text = render(program.tree, Style(chooser=seeded(f"a/{number}"), respelled=True, parentheses=True))
        assert tokens(odd(text, seeded(f"b/{number}"))) == tokens(text)


def test_every_variant_occurs_and_names_follow(legal_programs: list[GeneratedProgram]) -> None:
    seen = set()
    for number, program in enumerate(legal_programs[:200]):
        what, twin = vary(program, seeded(f"v/{number}"))
        seen.add(what)
        assert bool(twin.function) == bool(program.function)
        assert [operand.data for operand in twin.inputs.values()] == [
            operand.data for operand in program.inputs.values()
        ]
        if twin.function:
            assert twin.function.rpartition(".")[2] in tokens(twin.source)
        assert set(twin.inputs) <= set(tokens(twin.source))
    assert seen == set(VARIANTS)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (t.Binary("-", t.Var("a"), t.Binary("-", t.Var("b"), t.Var("c"))), "a - (b - c)"),
        (t.Binary("-", t.Binary("-", t.Var("a"), t.Var("b")), t.Var("c")), "a - b - c"),
        (t.Binary("*", t.Binary("+", t.Var("a"), t.Var("b")), t.Var("c")), "(a + b) * c"),
        (t.Binary("+", t.Binary("@", t.Var("a"), t.Var("b")), t.Var("c")), "(a @ b) + c"),
        (t.Binary("@", t.Binary("+", t.Var("a"), t.Var("b")), t.Var("c")), "a + b @ c"),
        (t.Binary("@", t.Var("a"), t.Binary("@", t.Var("b"), t.Var("c"))), "a @ (b @ c)"),
        (t.Binary("<", t.Binary("@", t.Var("a"), t.Var("b")), t.Var("c")), "a @ b < c"),
        (t.Binary("==", t.Binary("<", t.Var("a"), t.Var("b")), t.Var("c")), "(a < b) == c"),
        (t.Unary("-", t.Binary("*", t.Var("a"), t.Var("b"))), "-(a * b)"),
        (t.Binary("*", t.Unary("-", t.Var("a")), t.Var("b")), "-a * b"),
        (t.Index(t.Binary("+", t.Var("a"), t.Var("b")), (t.Literal("0"),)), "(a + b)[0]"),
        (t.Index(t.Unary("-", t.Var("a")), (t.Range(), t.Range(None, t.Literal("2")))), "(-a)[:, :2]"),
    ],
)
def test_parentheses_stand_where_precedence_needs_them(expr: t.Expr, text: str) -> None:
    """By the table of section 14.2, where @ binds looser than +."""
    function = t.Function("f", (), None, (), [t.Return((expr,))])
    printed = render((t.Module("m", [function]),))
    assert printed.splitlines()[2].strip() == f"return {text};"


def test_every_mistake_is_made(legal_programs: list[GeneratedProgram]) -> None:
    made: Counter[str] = Counter()
    for number, program in enumerate(legal_programs):
        for attempt in range(2):
            what, source, categories = break_program(program, seeded(f"{number}/{attempt}"))
            made[what] += 1
            assert categories
            assert source != render(program.tree)
    for what in (
        *(mistake[0] for mistake in (*MISTAKES, *DECLARATIONS)),
        *(mistake[0] for mistake in MISTAKES_WITH_NAMES),
    ):
        assert made[what], f"never made: {what}"
    assert made["declared twice"] and made["no return at the end"] and made["an empty return"]
    assert all(made[f"{token} dropped"] for token in "{}();")


def test_mutated_texts_are_executed_where_they_end_soon() -> None:
    made = [make_trial(chooser_of(8, number), kinds=["mutant"]).subject for number in range(300)]
    executed = [mutation.source for mutation in made if mutation.function]
    assert len(executed) > 30
    assert not [source for source in executed if "while" in source or "for (" in source or "999" in source]
    assert any("while" in mutation.source for mutation in made)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_mutation_changes_texts_and_takes_empty_ones(mutation) -> None:
    text = "module m { func f(a: int32) -> int32 { return a + 1; } }"
    changed = {mutation(text, seeded(f"{number}")) for number in range(40)} - {text}
    assert len(changed) > 5
    for number in range(10):
        assert isinstance(mutation("", seeded(f"{number}")), str)


def test_mutated_texts_hold_what_is_no_program() -> None:
    texts = "".join(mutate("module m { }", seeded(f"{number}")) for number in range(1500))
    for part in ("\x00", "\u2028", '"unfinished', "/* unfinished", "(" * 300, "9" * 400, "tensor<2xxfp32>"):
        assert part in texts


def test_a_mutated_text_stays_short() -> None:
    long = "let a: int32 = 1;\n" * 3000
    for number in range(60):
        assert len(mutate(long, seeded(f"{number}"))) <= LONGEST


@pytest.fixture(scope="session")
def legal_programs() -> list[GeneratedProgram]:
    """Enough legal programs to meet every form of the language."""
    return [generate(seeded(f"tests/{number}"), FEATURES) for number in range(1500)]
