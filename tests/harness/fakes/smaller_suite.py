"""A suite of the cases that a file names, one a line, and of no other: nothing is left out of it. See SMALLER_SUITE."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tessera_conformance.plugin import CASE


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    named = set(Path(os.environ["SMALLER_SUITE"]).read_text(encoding="utf-8").splitlines())
    items[:] = [item for item in items if item.stash[CASE].id in named]
