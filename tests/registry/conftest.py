"""A small registry, written by hand, that the tests spoil in one way each."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tessera_conformance import cases as locations
from tessera_conformance.commands import clauses as commands
from tessera_conformance.commands.clauses import configure_clauses
from tessera_conformance.registry import load as source
from tessera_conformance.registry.errors import RegistryError
from tessera_conformance.registry.load import examine, load_registry
from tessera_conformance.registry.model import Registry

CHECKOUT = Path(__file__).resolve().parents[2]

HEADERS = {
    "runtime_abi": ("RT", "# 1. Streams\n\nA stream is   a queue.\n  Work runs in order.\n"),
    "language_ir": ("LANG", "# 2. Words\nThe word if is taken.\nThe word for is taken.\n"),
    "host_io": ("HIO", "nothing\n"),
    "collectives": ("COLL", "nothing\n"),
    "wsp": ("WSP", "nothing\n"),
}

QUEUE = "A stream is a queue."
ORDER = "Work runs in order."
IF = "The word if is taken."
FOR = "The word for is taken."


def digest(normalised: str) -> str:
    return "sha256:" + hashlib.sha256(normalised.encode()).hexdigest()


def clause(clause_id: str, line: int, text: str, area: str, more: str = "") -> str:
    return f"""
[[clause]]
id = "{clause_id}"
section = "{clause_id.split("-")[1].lstrip("0")}"
lines = [{line}, {line}]
source = "{digest(text)}"
level = "MUST"
kind = "requirement"
summary = "What line {line} says"
verify = "test"
area = "{area}"
topic = "small-registry"
feature = "core"
profile = "core"
since = "0.1.0"
status = "active"
{more}"""


CLAUSES = {
    "runtime_abi": clause("RT-01-01", 3, QUEUE, "runtime")
    + clause("RT-01-02", 4, ORDER, "runtime", 'interpretations = ["AMB-RT-01"]\n')
    + clause("RT-01-03", 4, ORDER, "runtime", 'duplicate_of = "RT-01-02"\n'),
    "language_ir": clause("LANG-02-01", 2, IF, "ir") + clause("LANG-02-02", 3, FOR, "ir"),
}

INTERPRETATION = """
format = 1

[[interpretation]]
id = "AMB-RT-01"
document = "runtime_abi"
sections = ["RT 1"]
issue = "Which order is not said."
decision = "The order of submission."
why = "No other order is in the text."
alternatives = ["the order of completion"]
affects = ["RT-01-02"]
asserted = "the decision"
since = "0.1.0"
status = "active"
"""


@dataclass
class SmallRegistry:
    """The directories of a small registry, and ways to change and to check it."""

    clauses: Path
    specs: Path
    capture: pytest.CaptureFixture[str]
    tags: dict[str, list[str]]

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace the one place where `old` stands."""
        path = (self.specs if file.endswith(".txt") else self.clauses) / file
        text = path.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
        path.write_text(text.replace(old, new))

    def append(self, file: str, text: str) -> None:
        path = self.clauses / file
        path.write_text(path.read_text() + text)

    def tag(self, clause: str, *cases: str) -> None:
        """Pretend that the suite has these cases."""
        self.tags[clause] = list(cases)

    def problems(self) -> list[RegistryError]:
        return examine(self.clauses)[1]

    def load(self) -> Registry:
        return load_registry(self.clauses)

    def run(self, action: str, *arguments: str) -> tuple[int, str]:
        """The exit code and the output of `clauses ACTION` on the small registry."""
        parser = argparse.ArgumentParser()
        configure_clauses(parser.add_subparsers(required=True).add_parser("clauses"))
        args = parser.parse_args(["clauses", action, "--registry", str(self.clauses), *arguments])
        code = args.handler(args)
        printed = self.capture.readouterr()
        return code, printed.out + printed.err


@pytest.fixture(scope="session")
def registry() -> Registry:
    """The registry as shipped."""
    return load_registry(locations.clauses_directory())


@pytest.fixture(scope="session")
def specifications(registry: Registry) -> dict[str, source.Specification]:
    """The texts of the specifications, which the project does not carry."""
    directory = Path(os.environ.get("TESSERA_SPECS") or CHECKOUT.parent / "shared" / "specs")
    if not directory.is_dir():
        pytest.skip("needs the texts of the specifications: set TESSERA_SPECS to their folder")
    found, missing = source.read_specifications(registry.documents.values(), directory)
    assert missing == []
    return found


@pytest.fixture(scope="session")
def quotations(specifications: dict[str, source.Specification]) -> Callable[[str], set[tuple[str, ...]]]:
    """The runs of eight words that a text has in common with a specification."""
    length = 8

    def runs(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"[a-z0-9_]+", text.lower())
        return {tuple(words[start : start + length]) for start in range(len(words) - length + 1)}

    quotable = {run for text in specifications.values() for run in runs(" ".join(text.lines))}
    return lambda text: quotable & runs(text)


@pytest.fixture
def small_registry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> SmallRegistry:
    """The small registry, sound and locked."""
    made = SmallRegistry(tmp_path / "clauses", tmp_path / "specs", capsys, {})
    monkeypatch.setattr(commands, "case_index", dict)
    monkeypatch.setattr(commands, "cases_by_clause", lambda index: made.tags)
    for directory in (made.clauses, made.specs):
        directory.mkdir()
    for key, (prefix, text) in HEADERS.items():
        (made.specs / f"{key}.txt").write_text(text)
        header = (
            f'format = 1\n[document]\nkey = "{key}"\ntitle = "{key}"\nprefix = "{prefix}"\nfile = "{key}.txt"\n'
            f'lines = {text.count(chr(10))}\nsha256 = "{hashlib.sha256(text.encode()).hexdigest()}"\n'
        )
        (made.clauses / f"{key}.toml").write_text(header + CLAUSES.get(key, ""))
    (made.clauses / "interpretations.toml").write_text(INTERPRETATION)
    (made.clauses / "chapters.toml").write_text("format = 1\n")
    (made.clauses / "profiles.toml").write_text("format = 1\n")
    (made.clauses / "constructs.toml").write_text("format = 1\n")
    assert made.run("lock")[0] == 0
    return made


@pytest.fixture
def only(small_registry: SmallRegistry) -> Callable[[str], RegistryError]:
    """The one problem that the spoilt registry has, of the kind expected, which explains itself wholly."""

    def the_only(expected: str) -> RegistryError:
        (problem,) = small_registry.problems()
        assert problem.kind == expected, str(problem)
        assert all(problem.explain().values())
        return problem

    return the_only
