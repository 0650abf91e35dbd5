"""`strength --mutants` from end to end, over one function of the reference."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cli import main
from tessera_conformance.strength import commands
from tessera_conformance.strength.mutants import Change, Mutant, explained, read_equivalents, read_killers, stale

COMMAND = [sys.executable, "-m", "tessera_conformance", "strength", "--mutants", "100000", "--rooms", "abi"]
CHOSEN = ["--only", "abi.parameters.layout_of/", "--cases", "abi/parameter-layout", "--jobs", "2"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *CHOSEN, *arguments], capture_output=True, text=True, timeout=300)


def by_name(journal: Path) -> dict[str, dict[str, Any]]:
    return {line["name"]: line for line in map(json.loads, journal.read_text().splitlines())}


@pytest.mark.slow
def test_mutants_are_killed_survive_or_are_explained(tmp_path: Path) -> None:
    """The layout of parameters is judged by these cases; what survives can be explained in a file, with its reason.

    In a second run that knows of the first, what caught a mutant is the first case that is put to it.
    """
    ended = run("--output", str(tmp_path))
    assert ended.returncode in (0, 1), ended.stderr
    document = json.loads((tmp_path / "mutants.json").read_text())
    counts, left = document["rooms"]["abi"], document["survivors"]
    assert counts["killed"] > 0
    assert counts["mutants"] == counts["killed"] + counts["survived"] + counts["not executed"]
    assert len((tmp_path / "mutants.jsonl").read_text().splitlines()) == counts["mutants"]
    assert len(left) == counts["survived"] + counts["not executed"]
    listed = "\n".join(
        f"[[mutant]]\nname = {json.dumps(each['name'])}\nbecomes = {json.dumps(' '.join(each['after'].split()))}\n"
        'reason = "a test of the command"'
        for each in left
    )
    (tmp_path / "equivalent.toml").write_text(listed)
    known = ["--known", str(tmp_path / "mutants.jsonl"), "--output", str(tmp_path / "again")]
    again = run("--equivalents", str(tmp_path / "equivalent.toml"), *known)
    assert again.returncode == 0, again.stdout
    assert "100.0 %" in again.stdout
    before, after = (by_name(folder / "mutants.jsonl") for folder in (tmp_path, tmp_path / "again"))
    caught = {name: line for name, line in before.items() if line["killer"]}
    assert any(line["cases"] > 1 for line in caught.values())
    assert {name: (after[name]["killer"], after[name]["cases"]) for name in caught} == {
        name: (line["killer"], 1) for name, line in caught.items()
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[mutant]]\nname = 'a'\nbecomes = 'b'\n", "entry 1 lacks reason"),
        ("[[mutant]]\nfunction = 'a'\n", "entry 1 lacks reason"),
        ("[[mutant]]\nreason = 'a'\n", "entry 1 lacks name, becomes"),
        ("[[mutant", "equivalent.toml: "),
    ],
)
def test_a_bad_list_of_equivalents_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "equivalent.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=expected):
        read_equivalents(path)


@pytest.mark.parametrize(
    ("about", "same", "others"),
    [
        ({"name": "graph.a.f/unary/3", "becomes": "x or y"}, 1, 2),
        ({"function": "graph.a.f"}, 2, 1),
        ({"module": "graph.a"}, 3, 0),
        ({"name": "graph.a.f/unary/3", "becomes": "x and y"}, 0, 3),
    ],
)
def test_an_entry_speaks_of_a_mutant_a_function_or_a_module(
    tmp_path: Path, about: dict[str, str], same: int, others: int
) -> None:
    """A place that becomes something else is another mutant, and an entry that speaks of none is named."""
    (tmp_path / "graph.toml").write_text(
        "[[mutant]]\nreason = 'words'\n" + "".join(f"{key} = {value!r}\n" for key, value in about.items())
    )
    equivalents = read_equivalents(tmp_path)
    mutants = [mutant("f/unary/3", "x or\n  y"), mutant("f/unary/9", "x"), mutant("g/unary/3", "x or y")]
    assert [explained(each, equivalents) for each in mutants] == [True] * same + [False] * others
    assert stale(equivalents, mutants) == ([] if same else list(equivalents))


def mutant(place: str, after: str) -> Mutant:
    """One of a module `graph.a`."""
    change = Change("unary", 3, 1, "not x", after, 1)
    return Mutant(f"graph.a.{place}", "tessera_reference.graph.a", "graph", ("a.py", "f", 1), change, frozenset())


def test_a_journal_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mutants.jsonl"
    path.write_text('{"name": "a", "killer": "b"}\n{}\n')
    with pytest.raises(ValueError, match=r"mutants\.jsonl, line 2"):
        read_killers(path)


def test_an_unknown_room_is_one_line_before_the_suite_is_collected(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "suite_of", None)
    assert main(["strength", "--mutants", "100000", "--rooms", "cellar"]) == 2
    assert capsys.readouterr() == ("", "error: --rooms: tessera_reference has no room 'cellar'\n")
