"""A suite of the cases that a file names, one a line, and of no other: nothing is left out of it. See SMALLER_SUITE.

Other functions and files are not collected, where the index of cases tells them: to collect all took most of a run.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from types import FunctionType

import pytest

from tessera_conformance.cases import suite_directory
from tessera_conformance.plugin import CASE
from tessera_conformance.registry.cases import case_index


@cache
def named() -> frozenset[str]:
    """The ids of the cases."""
    return frozenset(Path(os.environ["SMALLER_SUITE"]).read_text(encoding="utf-8").splitlines())


@cache
def functions() -> frozenset[str]:
    """Their test functions, by file and name."""
    index = case_index()
    return frozenset(index[name].node.partition("[")[0] for name in named())


@cache
def files() -> frozenset[Path]:
    """Their files."""
    return frozenset(suite_directory() / function.partition("::")[0] for function in functions())


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave a file without a named case unread."""
    is_test_file = collection_path.name.startswith("test_") and suite_directory() in collection_path.parents
    return True if is_test_file and collection_path not in files() else None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> list[pytest.Item] | None:
    """Make no case of a function without a named one."""
    function = f"{collector.path.relative_to(suite_directory()).as_posix()}::{name}"
    is_test = name.startswith("test") and isinstance(obj, FunctionType)
    return [] if is_test and function not in functions() else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the named cases."""
    items[:] = [item for item in items if item.stash[CASE].id in named()]
