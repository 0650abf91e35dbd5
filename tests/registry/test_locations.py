"""Where the suite's data is found: in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from tessera_conformance import locations

CHECKOUT = Path(__file__).resolve().parents[2]


def test_a_checkout_keeps_its_data_in_top_level_folders():
    assert locations.suite_directory() == CHECKOUT / "conformance"
    assert locations.clauses_directory() == CHECKOUT / "conformance" / "clauses"
    assert locations.rooms("violators")["ir"] == CHECKOUT / "conformance" / "ir" / "violators"
    assert locations.schemas_directory() == CHECKOUT / "schemas"
    assert locations.vectors_directory() == CHECKOUT / "vectors"


def test_a_wheel_carries_all_of_it_in_the_package(tmp_path, monkeypatch: pytest.MonkeyPatch):
    suite = tmp_path / "suite"
    suite.mkdir()
    monkeypatch.setattr(locations, "_PACKAGED_SUITE", suite)
    assert locations.suite_directory() == suite
    assert locations.clauses_directory() == suite / "clauses"
    assert locations.schemas_directory() == suite / "schemas"
    assert locations.vectors_directory() == suite / "vectors"
