"""The index of cases, the place of the suite's data, and the clauses that a case carries."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tessera_conformance import cases
from tessera_conformance.check import Check
from tessera_conformance.collection import CollectedSuite, main
from tessera_conformance.protocol import Rejected, Returned
from tessera_conformance.registry import cases as case_index
from tessera_conformance.registry.model import carries, cited_interpretations, judged_by_checks

# The index of cases is as the suite is now: whatever its cases are made from, a change of it is seen.

TESTS = """
import json
import tomllib
from pathlib import Path
import pytest
from tessera_conformance.marks import clause
SUITE = Path(__file__).parents[1]
VECTORS = json.loads((SUITE / "vectors" / "sums.json").read_text())
TEXTS = tomllib.loads((SUITE / "ir" / "rejections.toml").read_text())["names"]
@clause("LANG-02-01")
@pytest.mark.parametrize("name", VECTORS)
def test_sum(impl, check, name): ...
@clause("LANG-02-02")
@pytest.mark.parametrize("name", TEXTS)
def test_text(impl, check, name): ...
"""
FIRST = {"LANG-02-01": ["ir/words/sum/one"], "LANG-02-02": ["ir/words/text/if"]}

Index = Callable[[], Mapping[str, Sequence[str]]]


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite of two tests whose cases stand in a vector file and in a file of rejections."""
    made = tmp_path / "suite"
    shutil.copytree(cases.clauses_directory(), made / "clauses")
    for chapter, declared in cases.chapter_files("interface.toml").items():
        (made / chapter).mkdir(parents=True, exist_ok=True)
        shutil.copy(declared, made / chapter)
    for folder in ("vectors", "schemas"):
        (made / folder).mkdir()
    shutil.copy(cases.suite_directory() / "conftest.py", made)
    (made / "vectors" / "sums.json").write_text('["one"]')
    (made / "ir" / "rejections.toml").write_text('names = ["if"]')
    (made / "ir" / "test_words.py").write_text(TESTS)
    monkeypatch.setattr(cases, "_PACKAGED_SUITE", made)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return made


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Index:
    """The cases of each clause by the index, which is collected as the process of its own would."""

    def collected() -> case_index.CaseIndex:
        sys.modules.pop("ir.test_words", None)
        return CollectedSuite().index()

    monkeypatch.setattr(case_index, "collected", collected)
    return lambda: case_index.cases_by_clause(case_index.case_index())


@pytest.mark.parametrize(
    ("file", "old", "new", "clause", "case"),
    [
        ("vectors/sums.json", '["one"]', '["two"]', "LANG-02-01", "ir/words/sum/two"),
        ("ir/rejections.toml", '["if"]', '["in"]', "LANG-02-02", "ir/words/text/in"),
        ("ir/test_words.py", "def test_sum", "def test_add", "LANG-02-01", "ir/words/add/one"),
    ],
)
def test_a_change_of_a_source_is_seen(
    suite: Path, index: Index, file: str, old: str, new: str, clause: str, case: str
) -> None:
    """Even one that leaves the file's size as it was."""
    assert index() == FIRST
    (suite / file).write_text((suite / file).read_text().replace(old, new))
    assert index() == {**FIRST, clause: [case]}


def never() -> case_index.CaseIndex:
    raise AssertionError("the suite is collected again")


def test_an_unchanged_suite_is_not_collected_again(suite: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    assert index() == FIRST
    monkeypatch.setattr(case_index, "collected", never)
    assert index() == FIRST


def test_a_wheel_brings_its_index(suite: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken while the sources have the contents that they had when it was built, whenever they were installed."""
    main(suite / case_index.SHIPPED)
    os.utime(suite / "ir" / "test_words.py", (0, 0))
    with monkeypatch.context() as patch:
        patch.setattr(case_index, "collected", never)
        assert index() == FIRST
    (suite / "vectors" / "sums.json").write_text('["two"]')
    assert index() == {**FIRST, "LANG-02-01": ["ir/words/sum/two"]}


def test_what_is_known_of_a_case(suite: Path, index: Index) -> None:
    """Its node, its clauses, the features beyond the core, and the levels at which it applies."""
    marked = TESTS.replace("import clause", "import clause, feature, level").replace(
        '@clause("LANG-02-01")', '@level("strict")\n@feature("casts")\n@clause("LANG-04-06")'
    )
    (suite / "ir" / "test_words.py").write_text(marked)
    index()
    actual = case_index.case_index()["ir/words/sum/one"]
    assert actual.node == "ir/test_words.py::test_sum[one]"
    assert (actual.clauses, actual.levels) == (("LANG-04-06",), ("strict",))
    assert actual.features == ("casts", "random-ops")


@pytest.mark.parametrize("text", ["", "[]", '{"source": "another suite", "value": {"tags": [], "cases": {}}}'])
def test_a_file_that_is_no_index_is_replaced(suite: Path, index: Index, tmp_path: Path, text: str) -> None:
    index()
    (kept,) = (tmp_path / "cache" / "tessera-conformance").glob("cases-*")
    kept.write_text(text)
    assert index() == FIRST


def test_a_cache_that_cannot_be_written_is_done_without(
    suite: Path, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert index() == FIRST


def test_what_the_shipped_cases_are_made_from_counts() -> None:
    root = cases.suite_directory().parent
    looked_at = {path for _, path in case_index.source_files()}
    expected = [*(root / "conformance").rglob("rejections/*.toml"), *(root / "vectors").rglob("*.json*")]
    expected += [*(root / "conformance").rglob("test_*.py"), *(root / "conformance").rglob("kit/*.py")]
    expected += [root / "conformance/conftest.py", root / "conformance/harness/tessera_conformance/vectors/judging.py"]
    assert len(expected) > 100
    assert {str(path) for path in expected} <= looked_at


# Where the suite's data is found: in a checkout and in an installed wheel.

CHECKOUT = Path(__file__).resolve().parents[2]


def test_a_checkout_keeps_its_data_in_top_level_folders():
    assert cases.suite_directory() == CHECKOUT / "conformance"
    assert cases.clauses_directory() == CHECKOUT / "conformance" / "clauses"
    assert cases.chapter_files("violators")["ir"] == CHECKOUT / "conformance" / "ir" / "violators"
    assert cases.schemas_directory() == CHECKOUT / "schemas"
    assert cases.vectors_directory() == CHECKOUT / "vectors"


def test_a_wheel_carries_all_of_it_in_the_package(tmp_path, monkeypatch: pytest.MonkeyPatch):
    suite = tmp_path / "suite"
    suite.mkdir()
    monkeypatch.setattr(cases, "_PACKAGED_SUITE", suite)
    assert cases.suite_directory() == suite
    assert cases.clauses_directory() == suite / "clauses"
    assert cases.schemas_directory() == suite / "schemas"
    assert cases.vectors_directory() == suite / "vectors"


# What a case judges, from the checks that ran, and which clauses it carries.

REFUSED = Rejected("TESS_ERR_INVALID_VALUE", "call", "no")


@pytest.mark.parametrize(
    ("kinds", "judged"),
    [
        (["returns", "equal"], ["effect"]),
        (["returns", "bits", "true"], ["effect"]),
        (["within"], ["effect"]),
        (["returns", "true"], ["effect"]),
        (["accepts"], ["acceptance"]),
        (["returns"], ["acceptance"]),
        (["accepts", "rejects"], ["acceptance", "refusal"]),
        (["returns", "status"], ["refusal"]),
        (["returns", "status", "true"], ["refusal"]),
        (["rejects", "true"], ["refusal"]),
        (["returns", "status", "equal"], ["effect", "refusal"]),
        (["given", "returns", "status"], ["refusal"]),
        (["given"], []),
        ([], []),
    ],
)
def test_it_follows_from_the_kinds_of_checks(kinds: list[str], judged: list[str]) -> None:
    assert list(judged_by_checks(kinds)) == judged


@pytest.mark.parametrize(
    ("judged", "mains"),
    [
        (["effect"], ["effect", "acceptance"]),
        (["acceptance"], ["acceptance"]),
        (["refusal"], ["refusal"]),
        (["acceptance", "refusal"], ["acceptance", "refusal"]),
        ([], []),
    ],
)
def test_what_had_an_effect_was_accepted_and_nothing_else_stands_for_another(
    judged: list[str], mains: list[str]
) -> None:
    assert [main for main in ("effect", "acceptance", "refusal") if carries(judged, main)] == mains


def test_a_refused_argument_after_a_legal_call_judges_a_refusal_alone() -> None:
    check = Check()
    check.given(True, "the machine has 2 devices")
    check.returns(Returned({"stream": 1}))
    check.status(REFUSED, "TESS_ERR_INVALID_VALUE")
    check.true("no" in REFUSED.message, "the message says why")
    assert judged_by_checks(record.kind for record in check.records) == ("refusal",)


def test_a_legal_program_beside_an_illegal_one_judges_both() -> None:
    check = Check()
    check.accepts(Returned({}))
    check.rejects(REFUSED, category="TESS_ERR_INVALID_VALUE")
    assert judged_by_checks(record.kind for record in check.records) == ("acceptance", "refusal")


def test_an_abbreviated_citation_names_each_interpretation():
    text = "As AMB-RT-46, -166 and -31 have it (AMB-COLL-61, and -63); RT-11-08, -1."
    assert cited_interpretations(text) == ("AMB-RT-46", "AMB-RT-166", "AMB-RT-31", "AMB-COLL-61", "AMB-COLL-63")
    ranges = "Reads (AMB-HIO-05, -08 to -10, -12), up to -14."
    assert cited_interpretations(ranges) == ("AMB-HIO-05", "AMB-HIO-08", "AMB-HIO-09", "AMB-HIO-10", "AMB-HIO-12")
