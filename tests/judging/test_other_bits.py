"""Implementations with other bits than the canon pass at the level that they claim, and only there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import pytest

from tessera_conformance.cases import in_shard
from tessera_conformance.check import Check, CheckFailed
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.locations import clauses_directory
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.case_index import case_index
from tessera_conformance.strength.matrix import judge
from tessera_conformance.suite_run import SuiteRun
from tessera_conformance.transports.direct import DirectTransport
from tessera_conformance.verdicts import BAD_VERDICTS, Judgement
from tessera_reference.adapter import ReferenceAdapter

LEVELS = {"MatrixUnit": "deterministic", "VectorTail": "deterministic", "Flushing": "deterministic", "Quick": "fast"}
OF_ITS_OWN = {
    "MatrixUnit": ["ir/matmul/bf16/left-fold", "ir/matmul/fp32/left-fold", "ir/reductions/fp32/sum/order"],
    "VectorTail": ["ir/matmul/fp32/larger"],
    "Flushing": ["ir/elementwise/fp32/multiply/edges", "ir/reductions/fp32/sum/order"],
    "Quick": ["ir/matmul/fp32/left-fold", "ir/functions/fp32/exp/counted", "ir/functions/bf16/log/counted"],
}
"""Vectors for which each has other bits than the canon."""


PARTS = 64
"""Of the suite, by the digests of case ids, each run has one, or four with `--whole`: whole runs would take minutes."""

OTHERS = ("ir/rejections", "ir/fuzz", "ir/schedule", "ir/tile", "ir/target", "abi/")
"""True if something is refused does not depend on the level of numerics, nor what the text of a kernel does."""

COMPUTING = re.compile("collective|policy|flags|random|replay|sample|binding")
"""What of the runtime's chapter compares results of arithmetic."""


@pytest.fixture(scope="module")
def computing() -> Sequence[pytest.Function]:
    """The tests of the suite that compare results of arithmetic."""

    def computes(case: str) -> bool:
        return not case.startswith(OTHERS) and (not case.startswith("runtime/") or COMPUTING.search(case) is not None)

    files = {each.node.partition("::")[0] for case, each in case_index().items() if computes(case)}
    return [item for item in CollectedSuite(files=sorted(files)).items if computes(item.stash[CASE].id)]


@pytest.fixture
def verdicts(
    computing: Sequence[pytest.Function], drawn: Callable[[int], int]
) -> Callable[[type, str, int], Mapping[str, Judgement]]:
    """What an implementation comes to at a level, in a part of these tests, by the id of the case."""

    def judged(implementation: type, level: str, number: int) -> Mapping[str, Judgement]:
        run = SuiteRun(DirectTransport(implementation, "honest"), load_registry(clauses_directory()), level=level)
        part = (number, PARTS // drawn(4))
        chosen = [item for item in computing if in_shard(item.stash[CASE].id, part)]
        return {item.stash[CASE].id: judge(run, item) for item in chosen}

    return judged


@pytest.mark.slow
@pytest.mark.parametrize("name", LEVELS)
def test_an_honest_implementation_passes_the_suite_at_its_level(
    honest: ModuleType, verdicts: Callable[..., Mapping[str, Judgement]], name: str
) -> None:
    found = verdicts(getattr(honest, name), LEVELS[name], 1 + list(LEVELS).index(name))
    assert {case: judgement for case, judgement in found.items() if judgement.verdict in BAD_VERDICTS} == {}
    passed = [case for case, judgement in found.items() if judgement.verdict == "pass"]
    assert len([case for case in passed if "/golden/" in case]) > 30


@pytest.mark.slow
@pytest.mark.parametrize(("level", "number"), [("deterministic", 5), ("fast", 6)])
def test_the_reference_passes_at_every_level(
    verdicts: Callable[..., Mapping[str, Judgement]], level: str, number: int
) -> None:
    found = verdicts(ReferenceAdapter, level, number)
    assert {case: judgement for case, judgement in found.items() if judgement.verdict in BAD_VERDICTS} == {}
    assert len(found) > 100


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
