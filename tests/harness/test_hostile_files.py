"""Files of others: whatever is wrong with one is told in a sentence, and none of its characters acts on a terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cli import main
from tessera_conformance.deviations import Deviations, MalformedDeviations
from tessera_conformance.documents import NoDocument, read_json, read_toml
from tessera_conformance.reports.journal import FORMAT
from tessera_conformance.terminal.errors import visible

TEXTS = {
    "deep": "[" * 100_000 + "]" * 100_000,
    "deeper than any of ours": "[" * 300 + "]" * 300,
    "a long integer": "9" * 10_000,
    "cut short": '{"a": [',
}
ACTING = "\x1b[2J\x9b2K\u202egnp\u2066\u200b\x07"
"""Clears a screen in two ways, turns the reading order in two, hides a space, rings."""


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_document_that_cannot_be_read_is_one_error(text: str) -> None:
    with pytest.raises(NoDocument, match="not JSON: "):
        read_json(text)
    with pytest.raises(NoDocument, match="not TOML: "):
        read_toml(f"a = {text}")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_each_command_says_it_in_a_sentence(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, finding, table = (tmp_path / name for name in ("report.jsonl", "finding.json", "known.toml"))
    report.write_text(text)
    finding.write_text(text)
    table.write_text(f"deviation = {text}\n")
    assert main(["report", str(report)]) == 2
    assert main(["compare", str(report), str(report)]) == 2
    assert main(["fuzz", "--replay", str(finding)]) == 2
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    assert told.err.count("error: ") >= 2
    with pytest.raises(MalformedDeviations, match="not TOML"):
        Deviations.read(table)


def test_a_report_without_a_name_is_invalid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.jsonl"
    hello = {"protocol": {"minimum": 1, "maximum": 1}, "implementation": {"version": "1"}, "documents": []}
    header = {
        "record": "header",
        "format": FORMAT,
        "harness": "tessera-conformance 0",
        "registry": {"clauses": 1, "sha256": "0" * 64},
        "implementation": {"label": "reference", "hello": hello, "fault": None},
        "selection": {
            "profile": "core",
            "level": "strict",
            "shard": None,
            "complete": True,
            "today": None,
            "deviations": [],
        },
        "run": {},
    }
    path.write_text(json.dumps(header) + "\n")
    for command in (["report", str(path)], ["compare", str(path), str(path)], ["merge", str(path), "--output", "x"]):
        assert main(command) == 2
        told = capsys.readouterr().err
        assert "Traceback" not in told
        assert "'name' is a required property" in told


def test_no_hidden_character_reaches_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert visible(f"a\tb\n{ACTING}é") == "a\tb\n\\x1b[2J\\x9b2K\\u202egnp\\u2066\\u200b\\x07é"
    assert main(["report", str(tmp_path / f"missing{ACTING}.jsonl")]) == 2
    told = capsys.readouterr().err
    assert "\\x1b[2J" in told
    assert not set("\x1b" + "\x9b\u202e\u2066\u200b\x07") & set(told)


def test_no_hidden_character_reaches_report_or_markdown(checkout: Any) -> None:
    done = checkout.run("--impl=py:acts_on_terminals:Acting")
    assert done.report is not None, done.output
    markdown = (done.path.parent / "summary.md").read_text(encoding="utf-8")
    for shown in (done.output, markdown):
        assert not set("\x1b\x9b\u202e\u2066\u200b\x07") & set(shown)
        assert "\\u202e" in shown


def test_a_full_disk_is_said_to_be_one(checkout: Any) -> None:
    """Wherever the report is written: at the start, after a case, or as it is sealed."""
    for moment in ("start", "observation", "finish"):
        done = checkout.run(f"--impl=py:full_disk:{moment}", command=("-p", "full_disk"))
        assert done.exit_code not in (0, 1), done.output
        assert (
            "error: report.jsonl: the report cannot be written: No space left on device; free the disk" in done.output
        )
        assert "Traceback" not in done.output
        assert "INTERNALERROR" not in done.output
