"""`report` and `compare` on the command line."""

from __future__ import annotations

import argparse
import json
import xml.etree.ElementTree as ElementTree

import pytest

from tessera_conformance.reports import commands
from tessera_conformance.reports.publish import RENDERINGS, publish


@pytest.fixture
def run(capsys, registry, monkeypatch):
    """Runs a command line against the small registry; gives exit code, output and complaints."""
    monkeypatch.setattr(commands, "load_registry", lambda directory: registry)
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    commands.configure_report(subparsers.add_parser("report"))
    commands.configure_merge(subparsers.add_parser("merge"))
    commands.configure_compare(subparsers.add_parser("compare"))

    def call(*words):
        arguments = parser.parse_args([str(word) for word in words])
        code = arguments.handler(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def test_the_exit_code_is_the_claim(run, build, killed, observation):
    assert run("report", build([observation("abi/a")], name="good").path)[0] == 0
    assert run("report", build([observation("abi/a")], name="part", complete=False).path)[0] == 0
    assert run("report", build([observation("abi/a", "fail")], name="bad").path)[0] == 1
    code, output, complaint = run("report", killed([observation("abi/a")]))
    assert code == 2
    assert "1 pass" in output
    assert "not a valid report: there is no footer" in complaint


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("terminal", "acme-runtime"),
        ("markdown", "# Conf"),
        ("junit", "<?xml"),
        ("html", "<!doctype html>"),
        ("badge", "<svg"),
    ],
)
def test_each_format_goes_to_the_terminal_or_to_a_file(run, build, tmp_path, observations, form, start):
    path = build(observations).path
    code, output, complaint = run("report", path, "--format", form)
    assert (code, complaint) == (1, "")
    assert output.startswith(start)
    assert run("report", path, "--format", form, "--output", tmp_path / "out") == (1, "", "")
    assert (tmp_path / "out").read_text(encoding="utf-8") == output


def test_several_reports_are_one_page_and_the_worst_claim_is_the_exit_code(run, build, tmp_path, observation):
    good, bad = build([observation("abi/a")], name="good"), build([observation("abi/a", "fail")], name="bad")
    output = tmp_path / "together.html"
    assert run("report", good.path, bad.path, "--format", "html", "--output", output) == (1, "", "")
    assert "</html>" in output.read_text(encoding="utf-8")
    code, printed, complaint = run("report", good.path, bad.path)
    assert (code, printed) == (2, "")
    assert "--format: terminal is of one report, and 2 are given; expected html" in complaint


def test_all_writes_the_pages_beside_the_report_or_elsewhere(run, build, tmp_path, observations):
    report = build(observations)
    assert run("report", report.path.parent, "--format", "all") == (1, "", "")
    assert run("report", report.path, "--format", "all", "--output", tmp_path / "deep" / "er") == (1, "", "")
    for name in RENDERINGS:
        assert (report.path.parent / name).read_bytes() == (tmp_path / "deep" / "er" / name).read_bytes()


def test_publishing_twice_gives_the_same_bytes(build, registry, observations):
    report = build(observations)
    publish(report, registry)
    first = {name: (report.path.parent / name).read_bytes() for name in RENDERINGS}
    publish(report, registry)
    assert first == {name: (report.path.parent / name).read_bytes() for name in RENDERINGS}
    ElementTree.fromstring(first["junit.xml"])


def test_what_cannot_be_read_is_one_clear_line(run, build, tmp_path, observation):
    (tmp_path / "other").write_text("no report\n")
    good = build([observation("abi/a")]).path
    for words in (
        ["report", tmp_path / "missing.jsonl"],
        ["report", tmp_path / "other"],
        ["report", tmp_path],
        ["report", good, "--format", "html", "--output", tmp_path / "no" / "such" / "place"],
        ["compare", good, tmp_path / "missing.jsonl"],
    ):
        code, output, complaint = run(*words)
        assert (code, output) == (2, ""), words
        assert complaint.startswith("error: ")
        assert complaint.count("\n") == 1


def test_compare(run, build, observation):
    before = build([observation("abi/a")], name="before").path
    after = build([observation("abi/a", "fail")], name="after").path
    assert run("compare", before, before)[0] == 0
    code, output, complaint = run("compare", before, after)
    assert (code, complaint) == (1, "")
    assert "abi/a  pass -> fail" in output
    code, output, _ = run("compare", before, after, "--json")
    assert code == 1
    assert json.loads(output)["after"]["claim"] == "failure"
    assert run("compare", after, before)[0] == 0


def test_merge(run, build, observation, tmp_path):
    paths = []
    for number, verdict in ((1, "pass"), (2, "fail")):
        lines = [observation(f"abi/{number}", verdict)]
        name = f"shard-{number}"
        paths.append(build(lines, name=name, shard=f"{number}/2", complete=True, deviations=[]).path)
    code, output, complaint = run("merge", *paths, "--output", tmp_path / "whole")
    assert (code, complaint) == (1, "")
    assert "1 pass   1 fail" in output
    assert {path.name for path in (tmp_path / "whole").iterdir()} == {"report.jsonl", *RENDERINGS}
    assert run("report", tmp_path / "whole")[0] == 1
    assert run("merge", paths[0], "--output", tmp_path / "no") == (2, "", "error: shard 2/2 is missing\n")
    assert run("merge", paths[0], tmp_path / "missing", "--output", tmp_path / "no")[0] == 2
