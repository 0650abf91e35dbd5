"""The table of programs that must be refused: complete, and every program one token away from a legal one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.chapters.ir.kit.rejections import PHASES, MalformedRejections, load, read
from tessera_conformance.registry import load_registry

TABLE = [entry for phase in PHASES for entry in load(phase)]
LEAST = {"lex": 60, "parse": 250, "type": 150, "shape": 80, "layout": 30, "distributed": 35, "numerics": 50}
SECTION_11 = {"types", "shapes", "layouts", "distributed", "numerics"}
"""The categories that a program of the language can run into; schedule and tile belong to the levels below."""

SPACE = r"[ \t\r\n]+"
COMMENT = r"//[^\n]*|/\*[\s\S]*?\*/|/\*[\s\S]*"
QUOTED = r'"(?:[^"\\]|\\[\s\S])*"|"[^\n]*|\'[^\'\n]*\'|`[^`\n]*`|“[^”\n]*”'
NUMBER = r"\.?[0-9](?:[eE][+-]|[0-9A-Za-z_.])*"
WORD = r"[^\W\d]\w*|\w+"
SIGNS = r"===|<=>|==|!=|<=|>=|=<|->|=>|:=|\+=|\+\+|--|&&|\|\||\*\*|<<|>>|<>|::|\.\.|\.\*|\*/|\S"
PROGRAM = re.compile(rf"(?P<space>{SPACE})|(?P<token>{COMMENT}|{QUOTED}|{NUMBER}|{WORD}|{SIGNS}|[^ \t\r\n])")
DIMENSIONS = re.compile(rf"(?P<space>{SPACE})|(?P<token>{COMMENT}|{QUOTED}|[0-9][0-9.]*|x|[^\Wx\d][^\Wx]*|[^ \t\r\n])")


def tokens(text: str) -> list[str]:
    """The tokens of a text as a reader sees them, wrong ones too: `0x10` and an open string are one token each."""
    found: list[str] = []
    place = 0
    while place < len(text):
        match = (DIMENSIONS if in_shape(found) else PROGRAM).match(text, place)
        assert match is not None
        if match["token"] is not None:
            found.append(match["token"])
        place = match.end()
    return found


def in_shape(before: Sequence[str]) -> bool:
    """True if what follows is joined by the letter x: between `tensor<` or `memref<` and what ends the shape."""
    for index in range(len(before) - 1, 0, -1):
        if before[index] in (">", ";", "{", "}", "(", ")", ","):
            return False
        if before[index] == "<":
            return before[index - 1] in ("tensor", "memref")
    return False


def edited(left: Sequence[str], right: Sequence[str]) -> tuple[int, int]:
    """Return the number of tokens of each side between the common beginning and the common end."""
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    end = 0
    while end < min(len(left), len(right)) - start and left[-1 - end] == right[-1 - end]:
        end += 1
    return len(left) - start - end, len(right) - start - end


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("let a: int32 = 0x10;", ["let", "a", ":", "int32", "=", "0x10", ";"]),
        ("tensor<2x?xNxbf16; x2>", ["tensor", "<", "2", "x", "?", "x", "N", "x", "bf16", ";", "x2", ">"]),
        ('a <= b // c\n"d \\" e" .5', ["a", "<=", "b", "// c", '"d \\" e"', ".5"]),
        ("/* a */ b /* c", ["/* a */", "b", "/* c"]),
        ("a\u00a0b", ["a", "\u00a0", "b"]),
    ],
    ids=["number", "shape", "quoted", "comments", "space"],
)  # fmt: skip
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [("abc", "abd", (1, 1)), ("ab", "acb", (0, 1)), ("aab", "ab", (1, 0)), ("abc", "cba", (3, 3)), ("a", "a", (0, 0))],
)
def test_edited(left: str, right: str, expected: tuple[int, int]) -> None:
    assert edited(left, right) == expected


def test_every_program_differs_from_its_twin_in_one_token() -> None:
    differences = {entry.id: edited(tokens(entry.legal), tokens(entry.illegal)) for entry in TABLE}
    assert {name: found for name, found in differences.items() if found not in ((1, 1), (1, 0), (0, 1))} == {}


def test_the_table_is_as_large_as_it_claims() -> None:
    assert len(TABLE) >= 400
    actual = Counter(entry.phase for entry in TABLE)
    assert {phase: count for phase, count in LEAST.items() if actual[phase] < count} == {}
    assert set(actual) == set(LEAST) == set(PHASES)


def test_every_name_and_every_program_stands_once() -> None:
    assert [name for name, count in Counter(entry.id for entry in TABLE).items() if count > 1] == []
    assert [text for text, count in Counter((entry.legal, entry.illegal) for entry in TABLE).items() if count > 1] == []
    assert [entry.id for entry in TABLE if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry.id)] == []


def test_every_clause_and_feature_exists() -> None:
    registry = load_registry(clauses_directory())
    active = {name for name, clause in registry.clauses.items() if clause.active}
    assert [entry.id for entry in TABLE if not entry.clauses or not set(entry.clauses) <= active] == []
    assert [entry.id for entry in TABLE if not set(entry.features) <= set(registry.features)] == []


def test_every_category_of_section_11_is_there() -> None:
    first = Counter(entry.categories[0] for entry in TABLE)
    assert set(first) == SECTION_11 | {"syntax"}
    assert [entry.id for entry in TABLE if (entry.phase in ("lex", "parse")) != (entry.categories == ("syntax",))] == []


def test_no_program_still_has_a_mark_or_an_empty_place() -> None:
    assert [entry.id for entry in TABLE if set("⟦⟧…") & {*entry.legal, *entry.illegal}] == []


GROUP = 'phase = "type"\ncategories = ["types"]\n[[group]]\nabout = "a"\nclauses = ["LANG-03.1-01"]\n'


def test_a_program_takes_its_place_in_the_frame_and_the_defaults_of_its_group() -> None:
    text = GROUP + 'frame = "{ … }"\n[group.programs]\none = { program = "⟦a|b⟧", clauses = ["LANG-02-04"] }\n'
    (entry,) = read(text, "type")
    assert (entry.legal, entry.illegal) == ("{ a }", "{ b }")
    assert (entry.clauses, entry.categories) == (("LANG-02-04", "LANG-03.1-01"), ("types",))
    assert (entry.phase, entry.late, entry.features) == ("type", False, ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GROUP + '[group.programs]\none = "a"', "expected one mark"),
        (GROUP + '[group.programs]\none = "⟦a|b⟧ ⟦c|d⟧"', "expected one mark"),
        (GROUP + '[group.programs]\none = "⟦ab⟧ ⟦c|d⟧"', "expected one mark"),
        (GROUP + 'category = "types"\n[group.programs]\n', "unknown key 'category'"),
        (GROUP + 'found = "soon"\n[group.programs]\none = "⟦a|b⟧"', "found is 'soon'"),
        (GROUP + 'categories = ["type"]\n[group.programs]\none = "⟦a|b⟧"', "unknown category 'type'"),
        (GROUP + "[group.programs]\none = { program = '⟦a|b⟧', clause = 1 }", "unknown key 'clause'"),
        (GROUP.replace("type", "shape", 1), "the phase is 'shape'"),
    ],
)
def test_a_malformed_table_is_told(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        list(read(text, "type"))


def test_a_phase_without_file_is_told() -> None:
    with pytest.raises(MalformedRejections, match="no file for phase 'schedule'"):
        load("schedule")


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "ir" / "rejections"
    folder.mkdir(parents=True)
    monkeypatch.setattr("tessera_conformance.chapters.ir.kit.rejections.suite_directory", lambda: tmp_path)
    for text, message in (('phase = "lex"', "the key 'group' is missing"), ("phase =", "Invalid value")):
        (folder / "lex.toml").write_text(text)
        with pytest.raises(MalformedRejections, match=f"lex.toml: {message}"):
            load("lex")


def test_both_sides_may_be_empty() -> None:
    """A token is replaced, left out or put in."""
    assert {edited(tokens(entry.legal), tokens(entry.illegal)) for entry in TABLE} == {(1, 1), (1, 0), (0, 1)}
