"""A pytest plugin that counts what the harness computes again: JSON encoded, registry files and schemas parsed.

Used by `harness_overhead.py`; writes its counts as JSON to the file that `TESSERA_COUNTS` names.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

COUNTS: Counter[str] = Counter()


def _counted(name: str, function: Callable[..., Any], size: Callable[[Any], int]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        COUNTS[name] += size(result)
        return result

    return call


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Count from here on."""
    json.JSONEncoder.encode = _counted("encoded", json.JSONEncoder.encode, len)  # type: ignore[method-assign]
    tomllib.loads = _counted("tables", tomllib.loads, lambda result: 1)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Forget what was encoded before the first case: tables of the registry, kept for later runs."""
    COUNTS["encoded"] = 0


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write the counts, and the size of the report they were made for."""
    from tessera_conformance import schemas

    report = (config.option.report_dir / "report.jsonl").stat().st_size
    counts = {**COUNTS, "report": report, "schemas": schemas.schemas.cache_info().misses}
    Path(os.environ["TESSERA_COUNTS"]).write_text(json.dumps(counts), encoding="utf-8")
