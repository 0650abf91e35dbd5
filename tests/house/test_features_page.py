"""The page of features is what its script writes, and every feature says truly what it stands for."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tessera_conformance.cli import main
from tessera_conformance.interface import interface
from tessera_conformance.locations import clauses_directory
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.cache import table_of
from tessera_conformance.registry.case_index import case_index
from tessera_conformance.registry.features import FILE, Feature, features
from tessera_conformance.registry.load import schema_violations
from tessera_conformance.reports.journal import read

REGISTRY = load_registry(clauses_directory())
FEATURES = features(REGISTRY, clauses_directory())


def test_the_page_is_current(root: Path) -> None:
    script = runpy.run_path(str(root / "docs" / "draw_features.py"))
    written = (root / "docs" / "features.md").read_text(encoding="utf-8")
    assert written == script["page"](), "run `python docs/draw_features.py`"


def test_the_page_is_linked(root: Path) -> None:
    assert "\nfeatures\n" in (root / "docs" / "index.md").read_text(encoding="utf-8")


def test_every_feature_has_a_sentence_and_no_other_has() -> None:
    table = table_of(clauses_directory() / FILE)
    assert schema_violations(FILE, table) == []
    assert list(table["features"]) == list(REGISTRY.features)
    assert len({feature.summary for feature in FEATURES}) == len(FEATURES)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.id)
def test_a_feature_has_methods_of_its_own_or_shows_through_others(feature: Feature) -> None:
    assert bool(feature.methods) != bool(feature.through)
    assert {*feature.methods, *feature.through} <= {method.full_name for method in interface().methods.values()}


def test_the_command_prints_the_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clauses", "features"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [feature.id for feature in FEATURES]
    assert all(feature.summary in line for feature, line in zip(FEATURES, lines, strict=True))


@pytest.mark.slow
def test_the_cases_of_a_feature_call_the_methods_through_which_it_shows(root: Path) -> None:
    """By the published run of the reference: each method by a case of the feature at least, where any ran."""
    report = read(root / "reports" / "reference" / "report.jsonl.gz")
    methods_of = {str(line["case"]): set(line.get("methods", ())) for line in report.observations}
    called: dict[str, set[str]] = {}
    for identifier, case in case_index().items():
        for name in case.features:
            called.setdefault(name, set()).update(methods_of.get(identifier, ()))
    wrong = {
        feature.id: sorted(set(feature.through) - called[feature.id])
        for feature in FEATURES
        if called.get(feature.id) and not set(feature.through) <= called[feature.id]
    }
    assert wrong == {}
