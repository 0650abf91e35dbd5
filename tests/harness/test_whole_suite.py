"""The real suite: through every transport and interface, in any order, and with less of the reference claimed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.executor.cases import seconds_of_case
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.case_index import case_index
from tessera_conformance.registry.model import DOCUMENTS, Product, carries
from tessera_conformance.reports.claim import missing_musts, outcomes_of_musts, product_results
from tessera_conformance.reports.journal import Report, read, without_run
from tessera_conformance.strength.matrix import put
from tessera_conformance.strength.violation import load_violations
from tessera_conformance.suite_run import SuiteRun, observation
from tessera_conformance.transports.locate import locate

# The real suite and the reference: the same verdicts and the same answers through every transport and order.

ROOT = Path(__file__).resolve().parents[2]
SERVED = f"rpc:{sys.executable} -m tessera_reference.cli serve"

PUBLISHED = ROOT / "reports" / "kill-matrix.json"

EVERY_FILE, EVERY_VIOLATION = 24, 48
"""Of so many files of a chapter, and of so many violators and variants, one is tried."""

CHAPTERS = [ROOT / "conformance" / name for name in ("abi", "collectives", "ir", "runtime")]


def observations(directory: Path, *options: str) -> list[str]:
    """The observation lines of a run over a part of the suite, without what may differ between runs."""
    paths = [ROOT / "conformance" / "harness", ROOT / "reference", Path(__file__).parent / "fakes"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--report-dir={directory}"]
    done = subprocess.run(
        [*command, *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONHASHSEED": "random"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    report = read(directory / "report.jsonl")
    assert (report.problem, report.claim) == (None, "partial")  # a part of the suite, and nothing failed
    return [json.dumps(without_run(line)) for line in report.observations]


@pytest.mark.slow
def test_direct_rpc_xdist_and_reversed_order_agree(tmp_path: Path, every: Callable[[int], int]) -> None:
    """Return requests, answers, checks, verdicts and dispositions, case by case."""
    pytest.importorskip("xdist", reason="pip install pytest-xdist")
    files = [sorted(chapter.rglob("test_*.py"))[:: every(EVERY_FILE)] for chapter in CHAPTERS]
    part = ["--shard=1/8", *(str(path) for chapter in files for path in chapter)]
    served = observations(tmp_path / "rpc", f"--impl={SERVED}", *part)
    assert len(served) > 75
    assert {json.loads(line)["case"].partition("/")[0] for line in served} == {each.name for each in CHAPTERS}
    assert observations(tmp_path / "direct", "--impl=reference", "-n2", "-p", "reversed_order", *part) == served


def verdicts_at(level: str, directory: Path, implementation: str) -> dict[str, str]:
    """The verdict of each product, judged by its bound or its declared order."""
    fakes = str(Path(__file__).parent / "fakes")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--impl={implementation}"]
    environment = {**os.environ, "PYTHONPATH": fakes}
    command += [f"--level={level}", f"--report-dir={directory}", "--case=ir/matmul/golden/fp32/*"]
    command.append("conformance/ir/test_matmul.py")
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    report = read(directory / "report.jsonl")
    assert report.claim in ("partial", "failure")
    return {line["case"]: line["verdict"] for line in report.observations}


@pytest.mark.slow
@pytest.mark.parametrize("level", ["deterministic", "fast"])
def test_products_are_judged_below_strict(tmp_path: Path, level: str) -> None:
    """The reference passes every judgement; products that are half as large again do not."""
    sound = verdicts_at(level, tmp_path / "sound", "reference")
    assert len(sound) > 20
    assert set(sound.values()) == {"pass"}
    careless = verdicts_at(level, tmp_path / "careless", "py:vendors:CarelessProducts")
    wrong = {case for case, verdict in careless.items() if verdict == "fail"}
    assert len(wrong) > 10


@pytest.mark.slow
def test_every_violation_is_killed(tmp_path: Path, every: Callable[[int], int]) -> None:
    """`tessera-conformance strength` on a sample of the violators and variants of the project, or all with `--whole`.

    What caught a violator last time is tried first.
    """
    parts = every(EVERY_VIOLATION)
    command = [sys.executable, "-m", "tessera_conformance", "strength", f"--output={tmp_path}", f"--shard=1/{parts}"]
    done = subprocess.run([*command, f"--known={PUBLISHED}"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    matrix = json.loads((tmp_path / "kill-matrix.json").read_text())
    assert matrix["control_failures"] == []
    assert {row["fate"] for row in matrix["violators"]} == {"killed"}
    assert len(matrix["violators"]) > len(load_violations()) / parts / 2
    assert "Clauses of level MUST that have cases and no violator: none." in (tmp_path / "kill-matrix.md").read_text()


@pytest.mark.slow
def test_the_published_matrix_has_every_violator(tmp_path: Path) -> None:
    """All were killed when it was made: whoever writes a violator makes it again."""
    matrix = json.loads(PUBLISHED.read_text())
    assert {row["fate"] for row in matrix["violators"]} == {"killed"}
    assert {row["name"] for row in matrix["violators"]} == {each.name for each in load_violations() if not each.missing}


# One verdict through every way: `pytest conformance` in a checkout and `tessera-conformance run` report the same.

FAKES = Path(__file__).parent / "fakes"
WAYS = {
    "pytest": [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
    "run": [sys.executable, "-m", "tessera_conformance", "run"],
}
PLACES = [f"conformance/ir/test_{name}.py" for name in ("softmax", "grammar", "fuzz")]
CASES = "(test_softmax and (fp32 or bf16)) or (test_grammar and value) or (test_fuzz and text and 10)"
NOT_IMPLEMENTED = "claimed, but the implementation answered that it does not support language.execute"


def reported(via: str, implementation: str, directory: Path) -> Report:
    paths = [ROOT / "conformance" / "harness", ROOT / "reference", FAKES]
    options = [f"--impl=py:vendors:{implementation}", f"--report-dir={directory}", "-k", CASES, *PLACES]
    done = subprocess.run(
        [*WAYS[via], *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (directory / "report.jsonl").exists(), done.stdout + done.stderr
    return read(directory / "report.jsonl")


@pytest.mark.parametrize(
    ("implementation", "verdicts"),
    [
        ("Untidy", {"pass"}),
        pytest.param("Partial", {"pass", "fail"}, marks=pytest.mark.slow),
        pytest.param("Wrong", {"pass", "fail", "crash"}, marks=pytest.mark.slow),
    ],
)
def test_both_doors_report_the_same(implementation: str, verdicts: set[str], tmp_path: Path) -> None:
    """A case that an answer is missing for says so, and names no property that the answers lack."""
    reports = {via: reported(via, implementation, tmp_path / via) for via in WAYS}
    found = [[json.dumps(without_run(line)) for line in report.observations] for report in reports.values()]
    assert len(found[0]) > 30
    assert found[0] == found[1]
    assert len({report.claim for report in reports.values()}) == 1
    counted = Counter(line["verdict"] for line in reports["run"].observations)
    assert set(counted) == verdicts, counted
    reasons = {line["reason"] for line in reports["run"].observations if line["verdict"] == "fail"}
    assert (reasons == {NOT_IMPLEMENTED}) == (implementation == "Partial"), reasons


# What implementations earn that leave things out: the reference, with less of it claimed or done.

PUBLISHED_REPORT = ROOT / "reports" / "reference" / "report.jsonl.gz"

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
    judges = {line["case"]: line["judges"] for line in read(PUBLISHED_REPORT).observations if line["verdict"] == "pass"}
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
    """Collectives that do nothing leave clauses unsupported whose effects only access to ranks shows."""
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


# Products: the reference with the methods and features of a product alone makes it whole.

REGISTRY = load_registry(clauses_directory())
ENOUGH = 100
"""Cases that a product has at least: fewer prove little."""
EVERY = 72
"""Of so many cases of a product one is asked."""


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
    files = {index[name].node.partition("::")[0] for each in REGISTRY.products for name in cases_of(each, every(EVERY))}
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
    assert product_results({"products": run.products()}, lines)[product.id].whole, "\n".join(lost[:20])
