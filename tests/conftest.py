"""Slow tests, which start many processes or outside tools, run with `--slow`."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the slow tests of the project too")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: starts many processes or outside tools; runs with --slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = [item for item in items if item.get_closest_marker("slow")]
    if config.getoption("--slow"):
        items.sort(key=lambda item: item not in slow)  # first, so that processes that share the tests end together
    elif slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
