"""Implementations with other bits than the canon pass at the level that they claim, and only there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tessera_conformance.check import Check, CheckFailed
from tessera_conformance.reports.journal import Report
from tessera_conformance.verdicts import BAD_VERDICTS

RunSuite = Callable[..., tuple[Report, str]]
LEVELS = {"MatrixUnit": "deterministic", "VectorTail": "deterministic", "Flushing": "deterministic", "Quick": "fast"}
OF_ITS_OWN = {
    "MatrixUnit": ["ir/matmul/bf16/left-fold", "ir/matmul/fp32/left-fold", "ir/reductions/fp32/sum/order"],
    "VectorTail": ["ir/matmul/fp32/larger"],
    "Flushing": ["ir/elementwise/fp32/multiply/edges", "ir/reductions/fp32/sum/order"],
    "Quick": ["ir/matmul/fp32/left-fold", "ir/functions/fp32/exp/counted", "ir/functions/bf16/log/counted"],
}
"""Vectors for which each has other bits than the canon."""


PARTS = tuple(f"--shard={part}/32" for part in range(1, 7))
"""Parts of the suite, by the digests of case ids: whole runs at each level would take as long as all else."""

OTHERS = "rejections or fuzz or schedule or tile or target or abi"
"""Whether something is refused does not depend on the level of numerics, nor what the text of a kernel does."""

COMPUTING = "collective or policy or flags or random or replay or sample or binding"
"""What of the runtime's chapter compares results of arithmetic."""

OF_LEVELS = ("-k", f"not ({OTHERS}) and (not runtime or {COMPUTING})")


@pytest.mark.slow
@pytest.mark.parametrize("name", LEVELS)
def test_an_honest_implementation_passes_the_suite_at_its_level(tmp_path: Path, run_suite: RunSuite, name: str) -> None:
    part = PARTS[list(LEVELS).index(name)]
    report, told = run_suite(
        f"py:tessera_conformance.chapters.ir.variants.levels:{name}", LEVELS[name], tmp_path, part, *OF_LEVELS
    )
    assert [line["case"] for line in report.observations if line["verdict"] in BAD_VERDICTS] == [], told
    assert report.header["selection"]["level"] == LEVELS[name]
    passed = [line["case"] for line in report.observations if line["verdict"] == "pass"]
    assert len([case for case in passed if "/golden/" in case]) > 30


@pytest.mark.slow
@pytest.mark.parametrize(("level", "part"), [("deterministic", PARTS[4]), ("fast", PARTS[5])])
def test_the_reference_passes_at_every_level(tmp_path: Path, run_suite: RunSuite, level: str, part: str) -> None:
    report, told = run_suite("reference", level, tmp_path, part, *OF_LEVELS)
    assert [line["case"] for line in report.observations if line["verdict"] in BAD_VERDICTS] == [], told


@pytest.mark.slow
@pytest.mark.parametrize(("name", "vector"), [(name, each) for name, them in OF_ITS_OWN.items() for each in them])
def test_it_passes_at_its_level_and_fails_above(
    honest: ModuleType, judged: Callable[[Any, str, str], Check], name: str, vector: str
) -> None:
    """What is accepted really has other bits."""
    judged(getattr(honest, name), LEVELS[name], vector)
    with pytest.raises(CheckFailed, match="strict: the frozen bits"):
        judged(getattr(honest, name), "strict", vector)


def test_what_is_fast_is_not_deterministic(honest: ModuleType, judged: Callable[[Any, str, str], Check]) -> None:
    with pytest.raises(CheckFailed, match="deterministic"):
        judged(honest.Quick, "deterministic", "ir/matmul/fp32/left-fold")
