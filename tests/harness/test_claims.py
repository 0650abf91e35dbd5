"""What implementations earn that leave things out: the reference, with less of it claimed or done."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from tessera_conformance.executor.costs import seconds_of_case
from tessera_conformance.locations import clauses_directory
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.case_index import case_index
from tessera_conformance.registry.model import DOCUMENTS, carries
from tessera_conformance.reports.claim import missing_musts, outcomes_of_musts
from tessera_conformance.reports.journal import Report, read

ROOT = Path(__file__).resolve().parents[2]
FAKES = Path(__file__).parent / "fakes"

PUBLISHED = ROOT / "reports" / "reference" / "report.jsonl.gz"

Judge = Callable[..., tuple[Report, str]]


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """Runs the suite, or what of it is named, against an implementation: its report, and the end of the run."""

    def run(implementation: str, *selected: str, cases: Collection[str] = ()) -> tuple[Report, str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--impl=py:{implementation}"]
        smaller = tmp_path / "cases.txt"
        smaller.write_text("\n".join(cases), encoding="utf-8")
        command += ["-p", "smaller_suite"] if cases else []
        done = subprocess.run(
            [*command, f"--report-dir={tmp_path}", *(selected or ("conformance",))],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(FAKES), *sys.path]),
                "SMALLER_SUITE": str(smaller),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return read(tmp_path / "report.jsonl"), done.stdout

    return run


def few_of_each_clause(most: int, claimed: Collection[str], documents: Collection[str] = DOCUMENTS) -> set[str]:
    """Of the cases of each core MUST clause `most` that run with these claims, and one for each reason not to.

    What a case does that runs does not depend on what else is claimed, and the run of the whole suite against the
    reference shows that all pass; so the fate of a clause is that of a few of its cases. Those that carried it in the
    published report are taken first, and of these the ones that are taken already or are soon done. Of every file there
    is one: a suite without it would not be whole.
    """
    registry, index = load_registry(clauses_directory()), case_index()
    judges = {line["case"]: line["judges"] for line in read(PUBLISHED).observations if line["verdict"] == "pass"}
    of_clauses: dict[tuple[str, frozenset[str]], list[str]] = defaultdict(list)
    files: dict[str, str] = {}
    for identifier in sorted(index, key=lambda name: (seconds_of_case(name), zlib.crc32(name.encode()))):
        case = index[identifier]
        files.setdefault(case.node.partition("::")[0], identifier)
        rows = [registry.clauses[name] for name in case.clauses]
        lacks = frozenset({*case.features, *(row.document for row in rows)} - {*claimed, *documents})
        for row in rows:
            if row.profile == "core" and row.level == "MUST":
                of_clauses[row.id, lacks].append(identifier)
    found = set(files.values())
    for (name, lacks), identifiers in of_clauses.items():
        main = registry.carried_by(registry.clauses[name])
        identifiers.sort(key=lambda each: (not carries(judges.get(each, ()), main), each not in found))
        found.update(identifiers[: 1 if lacks else most])
    return found


@pytest.mark.slow
def test_collectives_that_do_nothing_are_found_without_access_to_ranks(judge: Judge) -> None:
    report, _ = judge(
        "idle_collectives:IdleCollectives",
        "conformance/runtime/test_collective_results.py",
        "conformance/runtime/test_collective_movement.py",
        "conformance/runtime/test_collectives_by_kernels.py",
    )
    outcomes = outcomes_of_musts(report.plan, report.observations)
    assert report.claim == "failure"
    assert {name: outcomes[name] for name in ("RT-04.6-11", "RT-04.6-12", "RT-04.6-13")} == {
        "RT-04.6-11": "fail",
        "RT-04.6-12": "fail",
        "RT-04.6-13": "fail",
    }
    assert outcomes["RT-04.6-08"] == "pass"


def test_cases_about_refused_arguments_do_not_carry_what_is_to_be_done(judge: Judge) -> None:
    """Where those of the effect need access to ranks, collectives that do nothing leave their clauses unsupported."""
    report, _ = judge(
        "idle_collectives:IdleCollectives",
        "conformance/runtime/test_collective_results.py",
        "conformance/runtime/test_collective_movement.py",
    )
    outcomes = outcomes_of_musts(report.plan, report.observations)
    passed = [line for line in report.observations if line["verdict"] == "pass" and "RT-04.6-11" in line["clauses"]]
    assert len(passed) >= 5
    assert {tuple(line["judges"]) for line in passed} == {("refusal",)}
    assert (outcomes["RT-04.6-11"], outcomes["RT-04.6-12"]) == ("unsupported", "unsupported")
    assert report.claim == "partial"


@pytest.mark.slow
def test_the_language_without_its_lower_levels_is_no_success(judge: Judge, drawn: Callable[[int], int]) -> None:
    """It claims the document and no feature, and nothing that it is asked fails."""
    report, told = judge("claims_chosen:LanguageAlone", cases=few_of_each_clause(drawn(3), (), ["language_ir"]))
    assert (report.problem, report.claim) == (None, "partial")
    missing = set(missing_musts(report.plan, outcomes_of_musts(report.plan, report.observations)))
    (levels,) = (row for row in load_registry(clauses_directory()).profiles if row.id == "levels")
    assert missing >= set(levels.clauses)
    assert f"claim PARTIAL: nothing failed, but {len(missing)} core MUST clauses are unsupported" in " ".join(
        told.split()
    )
    assert f"{len(levels.clauses)} of profile levels" in " ".join(told.split())


@pytest.mark.slow
def test_named_profiles_have_what_core_musts_need_and_nothing_else(judge: Judge, drawn: Callable[[int], int]) -> None:
    """Without a feature just the clauses that profiles list are unsupported, each for want of its profile's."""
    report, _ = judge("claims_chosen:WithoutFeatures", cases=few_of_each_clause(drawn(3), ()))
    registry = load_registry(clauses_directory())
    outcomes = outcomes_of_musts(report.plan, report.observations)
    missing = missing_musts(report.plan, outcomes)
    assert {outcomes[name] for name in missing} == {"unsupported"}
    assert set(missing) == {name for row in registry.profiles for name in row.clauses}
    assert len(missing) == sum(len(row.clauses) for row in registry.profiles)


@pytest.mark.slow
def test_named_profiles_are_enough_for_success(judge: Judge, drawn: Callable[[int], int]) -> None:
    """With their features and no other, every core MUST clause is judged."""
    profiles = load_registry(clauses_directory()).profiles
    features = {name for row in profiles for name in row.features}
    report, told = judge("claims_chosen:NamedProfiles", cases=few_of_each_clause(drawn(3), features))
    assert (report.problem, report.claim) == (None, "success")
    names = ", ".join(row.id for row in profiles)
    assert f"claim SUCCESS: no case counts against it; profiles core, {names}" in " ".join(told.split())


@pytest.mark.slow
def test_the_numbers_of_testable_clauses_are_the_same_in_every_run(judge: Judge) -> None:
    """Of a part of the suite, and of one that claims less: those of the registry."""
    musts = [
        clause
        for clause in load_registry(clauses_directory()).clauses.values()
        if clause.active and clause.testable and clause.level == "MUST"
    ]
    for implementation, selected in (
        ("claims_chosen:WithoutFeatures", "conformance/abi/test_parameter_layout.py"),
        ("tessera_reference.adapter:ReferenceAdapter", "conformance/ir/test_softmax.py"),
    ):
        report, _ = judge(implementation, selected)
        assert report.footer is not None
        assert sum(map(sum, (each.values() for each in report.footer["musts"].values()))) == len(musts)
