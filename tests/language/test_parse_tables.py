"""The tables of the grammar that the package keeps: those that Lark computes, and used for that grammar alone."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from lark import Lark

from tessera_reference.language import grammar as lexer
from tessera_reference.language import grammar as parse_tables
from tessera_reference.language import grammar as tree

PROGRAM = (Path(__file__).parents[2] / "examples" / "transformer.tsr").read_text(encoding="utf-8")


def choices_on_the_way(parser: Lark, source: str) -> list[list[str]]:
    """What may follow after each token of a text."""
    reading = parser.parse_interactive("")
    found = [sorted(reading.choices())]
    for token in lexer.Lexer(source):
        token = lexer.as_accepted(token, reading.choices())
        reading.feed_token(token)
        found.append(sorted(reading.choices()))
    return found


@pytest.fixture(scope="module")
def computed() -> Lark:
    return parse_tables.new_parser(tree.TreeBuilder())


def test_the_kept_tables_are_of_this_grammar() -> None:
    """Whatever version of Lark is installed here."""
    kept = Path(parse_tables.__file__).with_name(parse_tables.FILE)
    first = gzip.decompress(kept.read_bytes()).split(b"\n")[0].decode()
    now = parse_tables.made_from().decode().strip()
    assert first.partition("grammar ")[2] == now.partition("grammar ")[2], "run reference/write_parse_tables.py"


def test_kept_tables_lead_the_same_way_as_computed_ones(computed: Lark) -> None:
    kept = parse_tables.kept_parser()
    if kept is None:
        pytest.skip("the tables that are kept are of another version of Lark")
    on_the_way = choices_on_the_way(kept, PROGRAM)
    assert on_the_way == choices_on_the_way(computed, PROGRAM)
    assert len(on_the_way) > 100
    assert [str(rule) for rule in kept.rules] == [str(rule) for rule in computed.rules]


def test_what_is_written_is_read_again(computed: Lark, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / parse_tables.FILE).write_bytes(parse_tables.written(computed))
    grammar = Path(parse_tables.__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    (tmp_path / "grammar.lark").write_text(grammar, encoding="utf-8")
    monkeypatch.setattr(parse_tables, "files", lambda package: tmp_path)
    read = parse_tables.kept_parser()
    assert read is not None
    assert choices_on_the_way(read, PROGRAM) == choices_on_the_way(computed, PROGRAM)


@pytest.mark.parametrize("changed", ["the grammar", "the version of Lark"])
def test_tables_of_something_else_are_not_used(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if changed == "the grammar":
        monkeypatch.setattr(parse_tables, "_grammar", lambda: "start: START\nSTART: /x/")
    else:
        monkeypatch.setattr(parse_tables.lark, "__version__", "0.0")
    assert parse_tables.kept_parser() is None
