"""The feedback to the authors of the specifications."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tessera_conformance import cases as locations
from tessera_conformance.registry import Interpretation, Registry
from tessera_conformance.registry.cases import naming_tests
from tessera_conformance.registry.feedback import feedback, open_points, proposed_wording

FEEDBACK = Path(__file__).resolve().parents[2] / "reports" / "spec-feedback.md"


def test_feedback_has_the_decision_a_wording_the_tests_and_the_lines(small_registry):
    text = feedback(
        small_registry.load(), {"AMB-RT-01": ["runtime/test_a.py::test_order", "runtime/test_a.py::test_two"]}
    )
    assert "### RT 1\n\n**Silences**\n\n- **AMB-RT-01** (RT 1): Which order is not said.\n" in text
    for line in (
        "  - Decision: The order of submission. Why: No other order is in the text.",
        "  - Other readings: the order of completion.",
        "  - Proposed wording: the decision.",
        "  - Clauses: RT-01-02 (line 4).",
        "  - Tests that name it: `runtime/test_a.py`.",
    ):
        assert f"\n{line}\n" in text


def row_of(decision: str, wording: str | None = None) -> Interpretation:
    return Interpretation(
        "wsp", "AMB-WSP-01", ("WSP 1",), "issue", decision, "why", (), (), "", "0.1.0", "active", wording=wording
    )


@pytest.mark.parametrize(
    ("decision", "wording", "expected"),
    [
        ("A stream keeps its order.", None, "A stream keeps its order."),
        ("A stream keeps its order (AMB-RT-03).", None, "A stream keeps its order."),
        ("Not asserted.", None, None),
        ("An extension sets it, feature clock.", None, None),
        ("Refused.", "A second close is an error.", "A second close is an error."),
    ],
)
def test_a_decision_is_proposed_where_it_speaks_of_the_text_alone(decision, wording, expected):
    assert proposed_wording(row_of(decision, wording)) == expected


def test_tests_that_name_an_interpretation_are_found_in_the_source(tmp_path):
    chapter = tmp_path / "runtime"
    (chapter / "violators").mkdir(parents=True)
    (chapter / "violators" / "rows.py").write_text("# AMB-RT-01\n")
    (chapter / "kit.py").write_text('NAME = "AMB-RT-01"\n')
    (chapter / "test_a.py").write_text(
        '# AMB-RT-02\n@mark("AMB-RT-01")\ndef test_one():\n    """AMB-RT-03"""\n\n\ndef test_two():\n    "AMB-RT-03"\n'
    )
    assert naming_tests(tmp_path) == {
        "AMB-RT-01": ("runtime/test_a.py::test_one", "runtime/kit.py"),
        "AMB-RT-02": ("runtime/test_a.py",),
        "AMB-RT-03": ("runtime/test_a.py::test_one", "runtime/test_a.py::test_two"),
    }


def test_the_committed_feedback_is_current(registry: Registry) -> None:
    """`tessera-conformance clauses feedback --output reports/spec-feedback.md` makes it anew."""
    assert FEEDBACK.read_text(encoding="utf-8") == feedback(registry, naming_tests(locations.suite_directory()))


def test_the_committed_feedback_quotes_no_sentence(quotations: Callable[[str], set[tuple[str, ...]]]) -> None:
    """But for the titles of sections."""
    lines = FEEDBACK.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#") and quotations(line)] == []


def test_every_interpretation_and_untestable_clause_is_in_the_feedback_once(registry: Registry) -> None:
    points = open_points(registry)
    rows = sorted(row.id for point in points for row in point.rows)
    assert rows == sorted(row.id for row in registry.interpretations.values() if row.active)
    assert sum(len(point.untestable) for point in points) > 30


def test_the_kinds_and_wordings_of_interpretations(registry: Registry) -> None:
    """Each contradiction and each sample against the text has a wording of its own, or a decision that reads as one."""
    rows = [row for row in registry.interpretations.values() if row.kind != "silence"]
    assert len(rows) >= 45
    assert [row.id for row in rows if proposed_wording(row) is None] == []
    assert proposed_wording(replace(rows[0], wording=None)) == rows[0].decision
