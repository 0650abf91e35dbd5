"""A kernel library is judged by the golden vectors, operation by operation: `--door=operations`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tessera_conformance.cases import in_shard
from tessera_conformance.check import Check
from tessera_conformance.locations import vectors_directory
from tessera_conformance.reports.journal import Report
from tessera_conformance.session import Implementation, Session
from tessera_conformance.transports.direct import DirectTransport
from tessera_conformance.vectors import Vector, load
from tessera_conformance.vectors.judging import judge, levels
from tessera_conformance.verdicts import after_running
from tessera_reference.adapter import ReferenceAdapter

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
    """The kernel libraries, as `--impl=py:operations_only:NAME` imports them."""
    sys.path.insert(0, str(HERE))
    import operations_only

    return operations_only


def verdicts(adapter: type, door: str, vectors: list[Vector], level: str = "strict") -> dict[str, str]:
    """The verdict of each vector that is judged at the level, by id."""
    session = Session(DirectTransport(adapter, "adapter"))
    implementation = Implementation(session, level, door)
    found = {}
    for vector in [each for each in vectors if level in levels(each)]:
        check, error = Check(), None
        try:
            judge(implementation, check, vector)
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
    """Of the first of so many parts a quarter, or all with `--whole`."""
    vectors = part(1, parts)[:: 4 // drawn(4)]
    by_operations = verdicts(libraries.KernelLibrary, "operations", vectors)
    assert by_operations == verdicts(ReferenceAdapter, "programs", vectors)
    assert set(by_operations.values()) == {"pass"} and len(by_operations) > 40


@pytest.mark.parametrize("level", ["deterministic", "fast"])
def test_it_has_below_strict_too(libraries: ModuleType, level: str) -> None:
    found = verdicts(libraries.KernelLibrary, "operations", part(2, 20), level)
    assert set(found.values()) == {"pass"} and len(found) > 60


@pytest.mark.parametrize("function", ["attention", "add_to_product", "multiply_add", "scale"])
def test_a_program_of_several_operations_or_a_literal_goes_through(libraries: ModuleType, function: str) -> None:
    vectors = [vector for vector in PROGRAMS if vector.provenance.check.function == f"oracle.{function}"]
    assert set(verdicts(libraries.KernelLibrary, "operations", vectors).values()) == {"pass"}


def test_a_wrong_operation_fails_its_vectors(libraries: ModuleType) -> None:
    vectors = [vector for vector in PROGRAMS if vector.id.startswith("ir/elementwise/fp32/")]
    found = verdicts(libraries.WrongProduct, "operations", vectors)
    assert found["ir/elementwise/fp32/multiply/edges"] == "fail"
    assert found["ir/elementwise/fp32/multiply-then-add"] == "fail"
    assert found["ir/elementwise/fp32/add/edges"] == "pass"


def test_an_operation_that_is_lacking_is_no_pass(libraries: ModuleType) -> None:
    vectors = [vector for vector in PROGRAMS if vector.topic in ("ir/softmax", "ir/reductions")]
    found = verdicts(libraries.FewKernels, "operations", vectors)
    assert {verdict for case, verdict in found.items() if case.startswith("ir/softmax/")} == {"unsupported"}
    assert {verdict for case, verdict in found.items() if "/sum/" in case} == {"pass"}


def test_what_needs_a_program_is_inapplicable_with_the_reason(
    tmp_path: Path, run_suite: Callable[..., tuple[Report, str]]
) -> None:
    places = ("ir/test_keywords.py", "ir/test_casts.py")
    options = ("--door=operations", "-k", "test_keywords or (test_casts and golden and fp16)", *places)
    report, told = run_suite("py:operations_only:KernelLibrary", "strict", tmp_path, *options)
    verdict = {line["case"]: line["verdict"] for line in report.observations}
    assert {found for case, found in verdict.items() if case.startswith("ir/casts/golden/")} == {"pass"}, told
    assert {found for case, found in verdict.items() if case.startswith("ir/keywords/")} == {"inapplicable"}, told
    reasons = {line["reason"] for line in report.observations if line["case"].startswith("ir/keywords/")}
    assert "asks for language.parse: this run goes through --door=operations, which has no programs" in reasons
    assert (report.header["selection"]["door"], report.claim) == ("operations", "partial")
    assert "level strict, by operations" in told and "programs were left out" in told
