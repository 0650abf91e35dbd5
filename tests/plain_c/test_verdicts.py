"""A runtime of malloc, memcpy and threads gets a fair verdict: what fails is its own, its defects are all that does."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.verdicts import BAD_VERDICTS

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "examples" / "plain_c"
TOOLS = ("make", "gcc")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The synchronous library, and one whose work waits before it runs."""
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)} to build the library: apt-get install {' '.join(missing)}")
    pytest.importorskip("cffi", reason="needs cffi: pip install 'tessera-conformance[cabi]'")
    built = {}
    for name, delay in (("synchronous", 0), ("slow", 3000)):
        folder = tmp_path_factory.mktemp(name)
        subprocess.run(["make", "-s", "-C", str(SOURCES), f"BUILD={folder}", f"DELAY={delay}"], check=True)
        built[name] = folder / "lib" / "libplain.so"
    return built


SOUND = "contexts events meshes overlong_copies".split()
BROKEN = "bad_arguments copies events memory_limits overlong_copies".split()
"""The files that are asked, without a defect and with all; README.md has the whole."""
DEADLINE = 2
NO_MODULES = "does not support runtime.tessModuleLoad"
"""Its own failure: it has no modules."""
READINGS = ("AMB-RT-39", "AMB-RT-49", "AMB-RT-50")
"""Silences where it chooses otherwise (README.md)."""
DEFECTS = {
    "last_byte_lost": ("RT-04.4-20",),
    "overlong_copy_cut": ("RT-04.4-18",),
    "size_wraps": ("RT-19.A-02",),
    "double_free": ("RT-04.4-15", "RT-04.4-17"),
    "event_forgotten": ("RT-12-03", "RT-12-04", "RT-02-06", "RT-12-02"),
    "any_copy_kind": ("RT-19.A-01", "RT-07-02"),
    "null_stream_not_initialized": ("RT-19.A-01",),
}
"""The clauses that each defect breaks."""

Judge = Callable[..., list[Mapping[str, Any]]]


@pytest.fixture
def judge(run_suite: Callable[..., Any], library: Mapping[str, Path]) -> Judge:
    """Return the lines of the cases that went wrong in some files."""

    def judged(name: str, files: Iterable[str], defects: str = "") -> list[Mapping[str, Any]]:
        implementation = f"cabi:{library[name]},description={SOURCES / 'description.toml'}"
        places = [f"conformance/runtime/test_{file}.py" for file in files]
        options = (f"--impl={implementation}", f"--deadline={DEADLINE}", *places)
        done = run_suite(*options, environment={"PLAIN_DEFECT": defects})
        assert done.exit_code in (0, 1), done.output[-4000:]
        return [line for line in done.report.observations if line["verdict"] in BAD_VERDICTS]

    return judged


def of_its_own(lines: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The cases that count against it, and are not for want of modules."""
    counted = [line for line in lines if line["disposition"] == "none"]
    return [(line["case"], line["reason"]) for line in counted if NO_MODULES not in line["reason"]]


@pytest.mark.slow
def test_it_is_small_and_has_functions_of_the_document_alone(library: Mapping[str, Path]) -> None:
    assert len((SOURCES / "plain.c").read_text(encoding="utf-8").splitlines()) <= 400
    command = ["nm", "-D", "--defined-only", "-P", str(library["synchronous"])]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = {line.split()[0] for line in listed.splitlines()}
    assert {name for name in names if not name.startswith("tess")} == set()
    assert {name for name in names if name.startswith("tessx")} == set()


@pytest.mark.slow
def test_what_fails_is_its_own(judge: Judge) -> None:
    """It has no modules; the rest is another reading, each of one of three silences."""
    lines = judge("synchronous", SOUND)
    assert of_its_own(lines) == []
    readings = {line["interpretation"] for line in lines if line["disposition"] == "other_reading"}
    assert readings == set(READINGS)


@pytest.mark.slow
def test_its_defects_are_seen_by_their_clauses_and_nothing_else(judge: Judge) -> None:
    """All of them at once: every failure is one of a clause of theirs, and every one of them is seen."""
    broken = {clause for clauses in DEFECTS.values() for clause in clauses}
    lines = judge("slow", BROKEN, defects=",".join(DEFECTS))
    new = [line for line in lines if line["disposition"] == "none" and NO_MODULES not in line["reason"]]
    assert [line["case"] for line in new if broken.isdisjoint(line["clauses"])] == []
    seen = {clause for line in new for clause in line["clauses"]}
    assert {name for name, clauses in DEFECTS.items() if seen.isdisjoint(clauses)} == set()
