"""Illegal programs and mutated texts: every kind of mistake occurs, one a program, at the place that is named."""

from __future__ import annotations

from collections import Counter

import pytest

from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.choices import SeededChooser
from tessera_conformance.fuzz.generator import GeneratedProgram, generate
from tessera_conformance.fuzz.mutations import (
    DECLARATIONS,
    LONGEST,
    MISTAKES,
    MISTAKES_WITH_NAMES,
    MUTATIONS,
    break_program,
    ends,
    mutate,
    slots_of,
    tokens_of,
    with_statements,
)
from tessera_conformance.fuzz.rendering import Style, plain, render
from tessera_conformance.fuzz.trials import chooser_of, make_trial

MARK = t.Raw(("MARK", ";"))


def text_of(tree: t.Program) -> str:
    return plain(render(tree, Style()))


def by_hand(*body: t.Stmt, result: t.Type | None = None) -> t.Program:
    """A program with one func of one parameter."""
    function = t.Function("f", (t.Parameter("a", t.Type("int32")),), result, (), body)
    return t.Program((t.Module("m", (function,)),))


def test_a_statement_is_put_into_its_slot() -> None:
    one = t.Literal("1")
    inner = (t.Let("c", t.Type("fp32"), t.Literal("1.0")),)
    program = by_hand(t.Let("b", t.Type("int32"), one), t.If(t.Literal("true"), inner), t.Return((t.Var("b"),)))
    slots = slots_of(program)
    assert [sorted(slot.visible) for slot in slots] == [["a"], ["a", "b"], ["a", "b"], ["a", "b", "c"], ["a", "b"]]
    for number in range(len(slots)):
        lines = text_of(with_statements(program, number, [MARK])).splitlines()
        assert [line.strip() for line in lines].count("MARK;") == 1
    assert text_of(with_statements(program, 3, [MARK])).splitlines()[4:6] == ["      let c: fp32 = 1.0;", "      MARK;"]


def test_nothing_is_put_behind_a_return() -> None:
    both = t.If(t.Literal("true"), (t.Return(()),), (t.Return(()),))
    assert ends(both) and not ends(t.If(t.Literal("true"), (t.Return(()),)))
    assert len(slots_of(by_hand(t.Return(())))) == 1
    assert len(slots_of(by_hand(both))) == 3


def test_a_name_without_a_value_is_not_visible() -> None:
    program = by_hand(t.Let("b", t.Type("int32")), t.Assign("b", (), t.Literal("1")))
    assert [sorted(slot.visible) for slot in slots_of(program)] == [["a"], ["a"], ["a", "b"]]


def test_every_mistake_is_made(programs: list[GeneratedProgram]) -> None:
    made: Counter[str] = Counter()
    for number, program in enumerate(programs):
        for attempt in range(2):
            what, source, categories = break_program(program, SeededChooser(f"{number}/{attempt}"))
            made[what] += 1
            assert categories
            assert source != text_of(program.tree)
    for what in (*(each[0] for each in (*MISTAKES, *DECLARATIONS)), *(each[0] for each in MISTAKES_WITH_NAMES)):
        assert made[what], f"never made: {what}"
    assert made["declared twice"] and made["no return at the end"] and made["an empty return"]
    assert all(made[f"{token} dropped"] for token in "{}();")


def test_mistakes_are_found_by_their_own_words() -> None:
    """No two mistakes share a description, so that a finding says which one it was."""
    words = [each[0] for each in (*MISTAKES, *DECLARATIONS)] + [each[0] for each in MISTAKES_WITH_NAMES]
    assert len(words) == len(set(words))


def test_a_dropped_token_is_missing() -> None:
    for number in range(400):
        program = generate(SeededChooser(f"d/{number}"))
        what, source, _ = break_program(program, SeededChooser(f"e/{number}"))
        if what.endswith(" dropped"):
            token = what.split()[0]
            counts = [list(render(program.tree, Style()).tokens).count(token), source.split().count(token)]
            assert counts[0] - counts[1] == 1


def test_mutated_texts_are_executed_where_they_end_soon() -> None:
    made = [make_trial(chooser_of(8, number), kinds=["mutant"]).subject for number in range(300)]
    executed = [each.source for each in made if each.function]
    assert len(executed) > 30
    assert not [each for each in executed if "while" in each or "for (" in each or "999" in each]
    assert any("while" in each.source for each in made)


def test_tokens_join_to_the_text() -> None:
    for number in range(100):
        text = make_trial(chooser_of(1, number), kinds=["mutant"]).subject.source
        assert "".join(tokens_of(text)) == text
        assert len(text) <= LONGEST
        text.encode("utf-8")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__.strip("_"))
def test_a_mutation_changes_texts_and_takes_empty_ones(mutation) -> None:
    text = "module m { func f(a: int32) -> int32 { return a + 1; } }"
    changed = {mutation(text, SeededChooser(f"{number}")) for number in range(40)} - {text}
    assert len(changed) > 5
    for number in range(10):
        assert isinstance(mutation("", SeededChooser(f"{number}")), str)


def test_mutated_texts_hold_what_is_no_program() -> None:
    texts = "".join(mutate("module m { }", SeededChooser(f"{number}")) for number in range(1500))
    for part in ("\x00", "\u2028", '"unfinished', "/* unfinished", "(" * 300, "9" * 400, "tensor<2xxfp32>"):
        assert part in texts


def test_a_mutated_text_stays_short() -> None:
    long = "let a: int32 = 1;\n" * 3000
    for number in range(60):
        assert len(mutate(long, SeededChooser(f"{number}"))) <= LONGEST
