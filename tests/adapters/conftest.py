"""The adapters' folder, made importable."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def at_the_root() -> Iterator[Path]:
    """The top of the checkout, made the current folder, from which `conformance.adapters` is imported."""
    with pytest.MonkeyPatch.context() as changed:
        changed.chdir(ROOT)
        changed.setattr(sys, "path", [str(ROOT), *sys.path])
        yield ROOT
