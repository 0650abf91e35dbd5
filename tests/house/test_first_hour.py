"""The page of the first hour: each of its blocks of commands runs as it stands and ends in a report."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tessera_conformance.commands.interface import core_methods
from tessera_conformance.commands.new_adapter import KINDS, LANGUAGES, skeleton
from tessera_conformance.interface import interface
from tessera_conformance.locations import clauses_directory
from tessera_conformance.registry import load_registry
from tessera_conformance.reports.journal import read

PAGE = Path(__file__).resolve().parents[2] / "docs" / "first-hour.md"
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
PACKAGES = {"gcc": "gcc", "g++": "g++", "rustc": "rustc", "go": "golang-go", "node": "nodejs"}


def name_of(block: str) -> str:
    made = re.search(r"--kind=(\w+) --language=(\w+)", block)
    return f"{made[1]}-{made[2]}{'-later' if 'bundle' in block else ''}" if made else "reference"


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=name_of)
def test_a_block_runs_and_ends_in_a_report(block: str, tmp_path: Path) -> None:
    for program, package in PACKAGES.items():
        if re.search(rf"(^|:){re.escape(program)} ", block, re.MULTILINE) and shutil.which(program) is None:
            pytest.skip(f"{program} is not there: apt-get install {package}")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euc", block],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = read(tmp_path / "report" / "report.jsonl")
    passed = [line["case"] for line in report.observations if line["verdict"] == "pass"]
    assert report.claim == "partial" and passed, done.stdout


def test_the_page_has_every_language_and_every_vendor() -> None:
    made = [found for block in BLOCKS for found in re.findall(r"--kind=(\w+) --language=(\w+)", block)]
    assert {language for _, language in made} == set(LANGUAGES)
    assert {kind for kind, _ in made} == set(KINDS) - {"collectives"}


def test_the_commands_of_the_page_are_those_that_the_skeletons_name() -> None:
    """The build and the arguments of `run`; a block may write quotes where the shell needs none."""
    for block in BLOCKS:
        made = re.search(r"--kind=(\w+) --language=(\w+)", block)
        if made is None or "bundle" in block:
            continue
        told = skeleton(made[2], made[1])
        words = block.replace('"', "").replace("'", "")
        assert told.build in words
        assert f"run --impl={told.impl} {' '.join(told.first)}" in words


def test_the_core_methods_are_those_without_a_feature() -> None:
    methods = core_methods(interface(), load_registry(clauses_directory()))
    assert {"language.parse", "language.verify"} <= set(methods["language_ir"])
    assert {"tessInit", "tessMemcpyAsync", "tessModuleLoad"} <= set(methods["runtime_abi"])
    assert not {"numerics.evaluate", "tessxPeek", "language.execute", "abi.compile", "abi.parameter_layout"} & {
        name for names in methods.values() for name in names
    }
