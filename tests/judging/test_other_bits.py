"""Honest implementations other than the reference: other bits, kernels alone, other ids of devices."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tessera_conformance.cases import clauses_directory, in_shard, vectors_directory
from tessera_conformance.check import Check, CheckFailed
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.cases import case_index
from tessera_conformance.reports.journal import Report
from tessera_conformance.session import Implementation, Session
from tessera_conformance.strength.matrix import judge
from tessera_conformance.suite_run import SuiteRun
from tessera_conformance.transports.locate import DirectTransport
from tessera_conformance.vectors import Vector, load
from tessera_conformance.vectors.judging import judge as judge_vector
from tessera_conformance.vectors.judging import levels
from tessera_conformance.verdicts import BAD_VERDICTS, Judgement, after_running
from tessera_reference.adapter import ReferenceAdapter

# Implementations with other bits than the reference arithmetic pass at the level that they claim, and only there.

LEVELS = {"MatrixUnit": "deterministic", "VectorTail": "deterministic", "Flushing": "deterministic", "Quick": "fast"}
OF_ITS_OWN = {
    "MatrixUnit": ["ir/matmul/bf16/left-fold", "ir/matmul/fp32/left-fold", "ir/reductions/fp32/sum/order"],
    "VectorTail": ["ir/matmul/fp32/larger"],
    "Flushing": ["ir/elementwise/fp32/multiply/edges", "ir/reductions/fp32/sum/order"],
    "Quick": ["ir/matmul/fp32/left-fold", "ir/functions/fp32/exp/counted", "ir/functions/bf16/log/counted"],
}
"""Vectors for which each has other bits than the reference arithmetic."""

PARTS = 64
"""The parts of the suite, by digests of case ids; each run takes one, or four with `--whole`, to save minutes."""

OTHERS = ("ir/rejections", "ir/fuzz", "ir/schedule", "ir/tile", "ir/target", "abi/")
"""True if something is refused does not depend on the level of numerics, nor what the text of a kernel does."""

COMPUTING = re.compile("collective|policy|flags|random|replay|sample|binding")
"""Cases of the runtime's chapter that compare results of arithmetic."""


@pytest.fixture(scope="module")
def computing() -> Sequence[pytest.Function]:
    """The tests of the suite that compare results of arithmetic."""

    def computes(case: str) -> bool:
        return not case.startswith(OTHERS) and (not case.startswith("runtime/") or COMPUTING.search(case) is not None)

    files = {case_.node.partition("::")[0] for case, case_ in case_index().items() if computes(case)}
    return [item for item in CollectedSuite(files=sorted(files)).items if computes(item.stash[CASE].id)]


@pytest.fixture
def verdicts(
    computing: Sequence[pytest.Function], drawn: Callable[[int], int]
) -> Callable[[type, str, int], Mapping[str, Judgement]]:
    """Return the verdicts of an implementation at a level, in a part of these tests, by the id of the case."""

    def judged(implementation: type, level: str, number: int) -> Mapping[str, Judgement]:
        run = SuiteRun(DirectTransport(implementation, "honest"), load_registry(clauses_directory()), level=level)
        part = (number, PARTS // drawn(4))
        chosen = [item for item in computing if in_shard(item.stash[CASE].id, part)]
        return {item.stash[CASE].id: judge(run, item) for item in chosen}

    return judged


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", LEVELS)
def test_an_honest_implementation_passes_the_suite_at_its_level(
    honest: ModuleType, verdicts: Callable[..., Mapping[str, Judgement]], name: str
) -> None:
    actual = verdicts(getattr(honest, name), LEVELS[name], 1 + list(LEVELS).index(name))
    assert {case: judgement for case, judgement in actual.items() if judgement.verdict in BAD_VERDICTS} == {}
    passed = [case for case, judgement in actual.items() if judgement.verdict == "pass"]
    assert len([case for case in passed if "/golden/" in case]) > 30


@pytest.mark.slow
@pytest.mark.parametrize(("level", "number"), [("deterministic", 5), ("fast", 6)])
def test_the_reference_passes_at_every_level(
    verdicts: Callable[..., Mapping[str, Judgement]], level: str, number: int
) -> None:
    actual = verdicts(ReferenceAdapter, level, number)
    assert {case: judgement for case, judgement in actual.items() if judgement.verdict in BAD_VERDICTS} == {}
    assert len(actual) > 100


@pytest.mark.slow
@pytest.mark.parametrize(("name", "vector"), [(name, vector) for name, them in OF_ITS_OWN.items() for vector in them])
def test_it_passes_at_its_level_and_fails_above(
    honest: ModuleType, judged: Callable[[Any, str, str], Check], name: str, vector: str
) -> None:
    """Every accepted implementation really has other bits."""
    judged(getattr(honest, name), LEVELS[name], vector)
    with pytest.raises(CheckFailed, match="strict: the frozen bits"):
        judged(getattr(honest, name), "strict", vector)


def test_what_is_fast_is_not_deterministic(honest: ModuleType, judged: Callable[[Any, str, str], Check]) -> None:
    with pytest.raises(CheckFailed, match="deterministic"):
        judged(honest.Quick, "deterministic", "ir/matmul/fp32/left-fold")


# A kernel library is judged by the golden vectors, operation by operation: `--via=operations`.

HERE = Path(__file__).parent
PROGRAMS = [
    vector
    for path in sorted((vectors_directory() / "ir").glob("*.jsonl"))
    for vector in load(f"ir/{path.stem}")
    if vector.call.method == "language.execute"
]
"""Every vector whose question is a program."""


@pytest.fixture(scope="module")
def libraries() -> ModuleType:
    """The kernel libraries, as `--impl=py:implementations:NAME` imports them."""
    sys.path.insert(0, str(HERE))
    import implementations

    return implementations


def verdicts_of(adapter: type, via: str, vectors: list[Vector], level: str = "strict") -> dict[str, str]:
    """The verdict of each vector that is judged at the level, by id."""
    session = Session(DirectTransport(adapter, "adapter"))
    implementation = Implementation(session, level, via)
    found = {}
    for vector in [candidate for candidate in vectors if level in levels(candidate)]:
        check, error = Check(), None
        try:
            judge_vector(implementation, check, vector)
        except Exception as raised:
            error = raised
        found[vector.id] = after_running(error, check.records, None).verdict
        session.reset()
    return found


def part(number: int, of: int) -> list[Vector]:
    return [vector for vector in PROGRAMS if in_shard(vector.id, (number, of))]


@pytest.mark.parametrize("parts", [8, pytest.param(2, marks=pytest.mark.slow)])
def test_a_vector_has_the_same_verdict_by_operations(
    libraries: ModuleType, drawn: Callable[[int], int], parts: int
) -> None:
    """A quarter of the first part runs, or all of it with `--whole`."""
    vectors = part(1, parts)[:: 4 // drawn(4)]
    by_operations = verdicts_of(libraries.KernelLibrary, "operations", vectors)
    assert by_operations == verdicts_of(ReferenceAdapter, "programs", vectors)
    assert set(by_operations.values()) == {"pass"} and len(by_operations) > 40


@pytest.mark.parametrize("level", ["deterministic", "fast"])
def test_it_has_below_strict_too(libraries: ModuleType, level: str) -> None:
    actual = verdicts_of(libraries.KernelLibrary, "operations", part(2, 20), level)
    assert set(actual.values()) == {"pass"} and len(actual) > 60


@pytest.mark.parametrize("function", ["attention", "add_to_product", "multiply_add", "scale"])
def test_a_program_of_several_operations_or_a_literal_goes_through(libraries: ModuleType, function: str) -> None:
    vectors = [vector for vector in PROGRAMS if vector.provenance.check.function == f"oracle.{function}"]
    assert set(verdicts_of(libraries.KernelLibrary, "operations", vectors).values()) == {"pass"}


def test_a_wrong_operation_fails_its_vectors(libraries: ModuleType) -> None:
    vectors = [vector for vector in PROGRAMS if vector.id.startswith("ir/elementwise/fp32/")]
    actual = verdicts_of(libraries.WrongProduct, "operations", vectors)
    assert actual["ir/elementwise/fp32/multiply/edges"] == "fail"
    assert actual["ir/elementwise/fp32/multiply-then-add"] == "fail"
    assert actual["ir/elementwise/fp32/add/edges"] == "pass"


def test_an_operation_that_is_lacking_is_no_pass(libraries: ModuleType) -> None:
    vectors = [vector for vector in PROGRAMS if vector.topic in ("ir/softmax", "ir/reductions")]
    actual = verdicts_of(libraries.FewKernels, "operations", vectors)
    assert {verdict for case, verdict in actual.items() if case.startswith("ir/softmax/")} == {"unsupported"}
    assert {verdict for case, verdict in actual.items() if "/sum/" in case} == {"pass"}


def test_what_needs_a_program_is_inapplicable_with_the_reason(
    tmp_path: Path, run_suite: Callable[..., tuple[Report, str]]
) -> None:
    places = ("ir/test_keywords.py", "ir/test_casts.py")
    options = ("--via=operations", "-k", "test_keywords or (test_casts and golden and fp16)", *places)
    report, told = run_suite("py:implementations:KernelLibrary", "strict", tmp_path, *options)
    verdict = {line["case"]: line["verdict"] for line in report.observations}
    assert {found for case, found in verdict.items() if case.startswith("ir/casts/golden/")} == {"pass"}, told
    assert {found for case, found in verdict.items() if case.startswith("ir/keywords/")} == {"inapplicable"}, told
    reasons = {line["reason"] for line in report.observations if line["case"].startswith("ir/keywords/")}
    assert "asks for language.parse: this run goes through --via=operations, which has no programs" in reasons
    assert (report.header["selection"]["via"], report.claim) == ("operations", "partial")
    assert "level strict, by operations" in told and "programs were left out" in told


# Cases take the ids of devices from the implementation (AMB-RT-120).


def test_the_listing_of_the_binding_runs_on_a_machine_with_other_ids(
    tmp_path: Path, run_suite: Callable[..., tuple[Report, str]]
) -> None:
    report, told = run_suite("py:implementations:OtherDevices", "strict", tmp_path, "runtime/test_binding.py")
    verdicts = [line["verdict"] for line in report.observations]
    assert set(verdicts) == {"pass"}, told
    assert len(verdicts) >= 28
