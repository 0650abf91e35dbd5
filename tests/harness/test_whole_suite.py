"""The real suite: through every transport and interface, in any order, and with less of the reference claimed."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.executor.cases import seconds_of_case
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.cases import case_index
from tessera_conformance.registry.model import DOCUMENTS, Product, carries
from tessera_conformance.reports.claim import is_whole, missing_musts, outcomes_of_musts, product_results
from tessera_conformance.reports.journal import Report, read, without_run
from tessera_conformance.strength.matrix import put
from tessera_conformance.strength.violation import load_violations
from tessera_conformance.suite_run import SuiteRun, observation
from tessera_conformance.transports.locate import locate

ROOT = Path(__file__).resolve().parents[2]
SERVED = f"rpc:{sys.executable} -m tessera_reference.cli serve"

FAKES = Path(__file__).parent / "fakes"
PUBLISHED = ROOT / "reports" / "kill-matrix.json"

EVERY_FILE, EVERY_VIOLATION, EVERY_VARIANT = 24, 4, 96
"""One of this many files of a chapter, violators and variants is tried."""

CHAPTERS = [ROOT / "conformance" / name for name in ("abi", "collectives", "ir", "runtime")]


@pytest.mark.slow
def test_direct_rpc_xdist_and_reversed_order_agree(
    run_suite: Callable[..., Any], tmp_path: Path, every: Callable[[int], int]
) -> None:
    """Requests, answers, checks, verdicts and dispositions are equal, case by case."""
    pytest.importorskip("xdist", reason="pip install pytest-xdist")
    files = [sorted(chapter.rglob("test_*.py"))[:: every(EVERY_FILE)] for chapter in CHAPTERS]
    part = ["--shard=1/8", *(str(path) for chapter in files for path in chapter)]

    def observations(name: str, *options: str) -> list[str]:
        environment = {"PYTHONHASHSEED": "random"}
        done = run_suite(*options, *part, report=tmp_path / name, folders=(FAKES,), environment=environment)
        assert done.exit_code == 0, done.output
        report = done.report
        assert (report.problem, report.claim) == (None, "partial")  # a part of the suite, and nothing failed
        return [json.dumps(without_run(line)) for line in report.observations]

    served = observations("rpc", f"--impl={SERVED}")
    assert len(served) > 75
    assert {json.loads(line)["case"].partition("/")[0] for line in served} == {chapter.name for chapter in CHAPTERS}
    assert observations("direct", "--impl=reference", "-n2", "-p", "reversed_order") == served


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("level", ["deterministic", "fast"])
def test_products_are_judged_below_strict(run_suite: Callable[..., Any], level: str) -> None:
    """The reference passes every judgement, by a bound or its declared order; products half as large again do not."""

    def verdicts(implementation: str) -> list[str]:
        options = (f"--impl={implementation}", f"--level={level}", "--case=ir/matmul/golden/fp32/*")
        report = run_suite(*options, "conformance/ir/test_matmul.py", folders=(FAKES,)).report
        assert report.claim in ("partial", "failure")
        return [line["verdict"] for line in report.observations]

    sound = verdicts("reference")
    assert len(sound) > 20
    assert set(sound) == {"pass"}
    assert verdicts("py:vendors:CarelessProducts").count("fail") > 10


@pytest.mark.slow
def test_every_violation_is_killed_and_no_variant_fails(tmp_path: Path, every: Callable[[int], int]) -> None:
    """`tessera-conformance strength` on a part of both; what caught a violator last time is tried first."""
    parts = every(EVERY_VIOLATION)
    violators = ["--only=", f"--output={tmp_path}", f"--shard=1/{parts}", f"--known={PUBLISHED}"]
    variants = ["--variants", "--within=40", "--beside=5", f"--shard=1/{every(EVERY_VARIANT)}"]
    for options in (violators, variants):
        command = [sys.executable, "-m", "tessera_conformance", "strength", *options]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    matrix = json.loads((tmp_path / "kill-matrix.json").read_text())
    assert matrix["control_failures"] == []
    assert {row["fate"] for row in matrix["violators"]} == {"killed"}
    assert len(matrix["violators"]) > len(load_violations()) / parts / 2
    page = (tmp_path / "kill-matrix.md").read_text()
    assert "Clauses of level MUST that have cases and no violator: WSP-01.2-03, WSP-01.2-04." in page


@pytest.mark.slow
def test_the_published_matrix_has_every_violator(tmp_path: Path) -> None:
    """All were killed when it was made: whoever writes a violator makes it again."""
    matrix = json.loads(PUBLISHED.read_text())
    assert {row["fate"] for row in matrix["violators"]} == {"killed"}
    assert {row["name"] for row in matrix["violators"]} == {
        violation.name for violation in load_violations() if not violation.missing
    }


def test_every_violator_replaces_what_is_there() -> None:
    """One that names an attribute which is gone would end a run of all."""
    for violation in load_violations():
        if not violation.missing and "native_vendor" not in violation.name:
            with violation.broken():
                pass


# One verdict through every way: `pytest conformance` in a checkout and `tessera-conformance run` report the same.

WAYS = {"pytest": ("pytest", "-q", "-p", "no:cacheprovider"), "run": ("tessera_conformance", "run")}
PART = ("-k", "fp32 or bf16", "conformance/ir/test_softmax.py")
NOT_IMPLEMENTED = "claimed, but the implementation answered that it does not support language.execute"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("implementation", "verdicts"),
    [
        ("Untidy", {"pass"}),
        pytest.param("Partial", {"fail"}, marks=pytest.mark.slow),
        pytest.param("Wrong", {"fail", "crash"}, marks=pytest.mark.slow),
    ],
)
def test_both_ways_report_the_same(
    run_suite: Callable[..., Any], implementation: str, verdicts: set[str], tmp_path: Path
) -> None:
    """A case that an answer is missing for says so, and names no property that the answers lack."""
    options = (f"--impl=py:vendors:{implementation}", *PART)
    reports = {
        via: run_suite(*options, report=tmp_path / via, folders=(FAKES,), command=command).report
        for via, command in WAYS.items()
    }
    actual = [[json.dumps(without_run(line)) for line in report.observations] for report in reports.values()]
    assert len(actual[0]) > 30
    assert actual[0] == actual[1]
    assert len({report.claim for report in reports.values()}) == 1
    counted = Counter(line["verdict"] for line in reports["run"].observations)
    assert set(counted) == verdicts, counted
    reasons = {line["reason"] for line in reports["run"].observations if line["verdict"] == "fail"}
    assert (reasons == {NOT_IMPLEMENTED}) == (implementation == "Partial"), reasons


# What implementations earn that leave things out: the reference, with less of it claimed or done.

PUBLISHED_REPORT = ROOT / "reports" / "reference" / "report.jsonl.gz"

Judge = Callable[..., tuple[Report, str]]


@pytest.fixture
def judge(run_suite: Callable[..., Any], tmp_path: Path) -> Judge:
    """Run the suite, or the named part of it, against an implementation; return its report and what it printed."""

    def run(implementation: str, *selected: str, cases: Collection[str] = ()) -> tuple[Report, str]:
        smaller = tmp_path / "cases.txt"
        smaller.write_text("\n".join(cases), encoding="utf-8")
        options = [f"--impl=py:{implementation}", *(["-p", "smaller_suite"] if cases else [])]
        done = run_suite(
            *options, *(selected or ("conformance",)), folders=(FAKES,), environment={"SMALLER_SUITE": str(smaller)}
        )
        return done.report, done.output

    return run


@cache
def effects() -> dict[str, Collection[str]]:
    """Return what each case that passes in the published report judges."""
    return {line["case"]: line["judges"] for line in read(PUBLISHED_REPORT).observations if line["verdict"] == "pass"}


def few_of_each_clause(most: int, claimed: Collection[str], documents: Collection[str] = DOCUMENTS) -> set[str]:
    """Return at most `most` cases of each core MUST clause that run with these claims, and one per reason not to run.

    What a case does that runs does not depend on what else is claimed, and the run of the whole suite against the
    reference shows that all pass; so the fate of a clause is that of a few of its cases. Those that carried it in the
    published report are taken first, and of these the ones that are taken already or are soon done. Of every file there
    is one: a suite without it would not be whole.
    """
    registry, index = load_registry(clauses_directory()), case_index()
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
        identifiers.sort(key=lambda case: (not carries(effects().get(case, ()), main), case not in found))
        found.update(identifiers[: 1 if lacks else most])
    return found


def test_collectives_that_do_nothing_are_found(judge: Judge) -> None:
    """Access to ranks is not needed: kernels show it.

    Where no case shows the effect, those about refused arguments pass and carry nothing: the clauses are unsupported.
    """
    files = ("collective_results", "collective_movement", "collectives_by_kernels")
    report, _ = judge("idle_collectives:IdleCollectives", *(f"conformance/runtime/test_{name}.py" for name in files))
    names = ("RT-04.6-11", "RT-04.6-12", "RT-04.6-13", "RT-04.6-08")
    outcomes = outcomes_of_musts(report.plan, report.observations)
    assert report.claim == "failure"
    assert [outcomes[name] for name in names] == ["fail", "fail", "fail", "pass"]
    lines = [line for line in report.observations if "/collectives-by-kernels/" not in line["case"]]
    assert len(lines) < len(report.observations)
    passed = [line for line in lines if line["verdict"] == "pass" and "RT-04.6-11" in line["clauses"]]
    assert len(passed) >= 5
    assert {tuple(line["judges"]) for line in passed} == {("refusal",)}
    without = outcomes_of_musts(report.plan, lines)
    assert (without["RT-04.6-11"], without["RT-04.6-12"]) == ("unsupported", "unsupported")


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
    """A run of a part of the suite, or with fewer claims, has the numbers of the registry."""
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
        assert sum(map(sum, (counts.values() for counts in report.footer["musts"].values()))) == len(musts)


# Products: the reference with the methods and features of a product alone makes it whole.

REGISTRY = load_registry(clauses_directory())
ENOUGH = 100
"""Cases that a product has at least: fewer prove little."""
EVERY = 72
"""One of this many cases of a product is run."""


def cases_of(product: Product, parts: int) -> list[str]:
    """A sample of the cases of a product, by the digests of their ids."""
    inside, outside = tuple(product.cases), tuple(product.without)
    names = [name for name in case_index() if name.startswith(inside) and not name.startswith(outside or "?")]
    assert len(names) >= ENOUGH
    return [name for name in names if zlib.crc32(name.encode()) % parts == 0]


@pytest.fixture(scope="module")
def collected(every: Callable[[int], int]) -> Mapping[str, pytest.Function]:
    """The cases of all products that are asked, by id."""
    index = case_index()
    files = {
        index[name].node.partition("::")[0] for product in REGISTRY.products for name in cases_of(product, every(EVERY))
    }
    return {item.stash[CASE].id: item for item in CollectedSuite(files=sorted(files)).items}


@pytest.mark.slow
@pytest.mark.parametrize("product", REGISTRY.products, ids=lambda product: product.id)
def test_the_methods_and_features_of_a_product_are_enough(
    product: Product,
    collected: Mapping[str, pytest.Function],
    every: Callable[[int], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A case that asks more than the product has would be missing there."""
    monkeypatch.syspath_prepend(FAKES)
    via = "operations" if any(name.startswith("numerics.") for name in product.methods) else "programs"
    run = SuiteRun(locate(f"py:claims_chosen:{product.id.replace('-', '_')}"), REGISTRY, via=via)
    lines = []
    try:
        for name in cases_of(product, every(EVERY)):
            case, judgement = put(run, collected[name])
            run.settle(case, judgement)
            lines.append(observation(case))
    finally:
        run.session.close()
    lost = [
        f"{line['case']}: {line['verdict']}: {line['reason']}"
        for line in lines
        if line["verdict"] not in ("pass", "unsupported", "inapplicable") and {*line["needs"]} <= {*product.features}
    ]
    assert is_whole(product_results(run.rules(), lines)[product.id]), "\n".join(lost[:20])
