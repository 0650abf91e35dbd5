"""Shared by the tests of judging: single vectors and single cases put to an implementation in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tessera_conformance.check import Check
from tessera_conformance.reports.journal import Report, read
from tessera_conformance.session import Implementation, Session
from tessera_conformance.strength.violation import Violation, load_violations
from tessera_conformance.transports.locate import DirectTransport
from tessera_conformance.vectors import load
from tessera_conformance.vectors.judging import judge

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="session")
def honest() -> ModuleType:
    """The module of variants of other bits: honest implementations, below strict."""
    return import_module("tessera_conformance.chapters.ir.variants.levels")


@pytest.fixture(scope="session")
def violators() -> dict[str, Violation]:
    """The violators of levels, by name."""
    found = load_violations()
    named = [(*violator.name.removeprefix("ir/").split(".", 1), violator) for violator in found]
    return {name: violator for module, name, violator in named if module in ("levels", "level_fast")}


@pytest.fixture(scope="session")
def run_suite() -> Callable[..., tuple[Report, str]]:
    """`tessera-conformance run` on an implementation at a level: its report, and what it printed."""

    def run(implementation: str, level: str, directory: Path, *options: str) -> tuple[Report, str]:
        command = [sys.executable, "-m", "tessera_conformance", "run", f"--impl={implementation}", f"--level={level}"]
        done = subprocess.run(
            [*command, f"--report-dir={directory}", *options],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(HERE)},
            capture_output=True,
            text=True,
            check=False,
        )
        return read(directory / "report.jsonl"), done.stdout + done.stderr

    return run


@pytest.fixture
def opened() -> Callable[[Any, str], Implementation]:
    """An adapter, or what makes one, as the suite sees it at a level."""

    def open_(adapter: Any, level: str) -> Implementation:
        factory = adapter if isinstance(adapter, type) else lambda: adapter
        return Implementation(Session(DirectTransport(factory, "adapter"), 30.0, 30.0), level)

    return open_


@pytest.fixture
def judged(opened: Callable[[Any, str], Implementation]) -> Callable[[Any, str, str], Check]:
    """The checks of a vector, `topic` and `name` joined by a slash, that an adapter passes at a level."""

    def put(adapter: Any, level: str, vector: str) -> Check:
        topic = "/".join(vector.split("/")[:2])
        (chosen,) = [vector_ for vector_ in load(topic) if vector_.id == vector]
        check = Check()
        judge(opened(adapter, level), check, chosen)
        return check

    return put
