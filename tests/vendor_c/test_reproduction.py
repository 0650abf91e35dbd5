"""What `reproduce` writes tells the truth: it fails with a defect switched on and never with the defect off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tessera_conformance.registry.case_index import case_index

from .conftest import ROOT, SOURCES

EVERY = 36
"""So many defects for one that is tried; TESSERA_EVERY=1 tries all."""
AS_EXPECTED, DIFFERS, UNDECIDED = 0, 1, 3


def rows() -> list[tuple[str, str, str]]:
    """Each defect that calls show, the delay of its work, and the case of the published matrix that catches it."""
    matrix = json.loads((ROOT / "reports" / "kill-matrix.json").read_text(encoding="utf-8"))
    caught = {row["name"].partition(".")[2]: row["killers"] for row in matrix["violators"] if "native" in row["name"]}
    table = tomllib.loads((SOURCES / "defects.toml").read_text(encoding="utf-8"))["defect"]
    every = int(os.environ.get("TESSERA_EVERY", EVERY))
    known = case_index()
    cases = {name: next((case for case in killers if case in known), None) for name, killers in caught.items()}
    shown = [(row["name"], str(row.get("delay", "")), case) for row in table if (case := cases.get(row["name"]))]
    return shown[::every]


def run(command: list[str], folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize(("defect", "delay", "case"), [pytest.param(*row, id=row[0]) for row in rows()])
def test_a_defect_shows_while_it_is_on_and_no_longer(
    build: Callable[..., Path], tmp_path: Path, defect: str, delay: str, case: str
) -> None:
    library = build() / "lib" / "libacme_tessera.so"
    off = {"ACME_DELAY": delay} if delay else {}
    on = {**off, "ACME_DEFECT": defect}
    command = ["reproduce", case, f"--impl=cabi:{library}", "--compiler=reference"]
    first = run([sys.executable, "-m", "tessera_conformance", *command], tmp_path, on)
    assert first.returncode == 1, first.stdout + first.stderr
    (script,) = (tmp_path / "reproduction").glob("*.py")
    (program,) = (tmp_path / "reproduction").glob("*.c")
    options = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{build() / 'include'}", f"-Wl,-rpath,{library.parent}"]
    built = run(["gcc", *options, str(program), str(library), "-lpthread", "-o", "again"], tmp_path, {})
    assert built.returncode == 0, built.stderr
    for again in ([sys.executable, str(script)], ["./again"]):
        with_it, without = run(again, tmp_path, on), run(again, tmp_path, off)
        told = with_it.stdout[-2000:] + without.stdout[-2000:] + without.stderr[-2000:]
        assert without.returncode in (AS_EXPECTED, UNDECIDED), told
        assert with_it.returncode != AS_EXPECTED, told
        if without.returncode == AS_EXPECTED:
            assert with_it.returncode not in (AS_EXPECTED, UNDECIDED), told
