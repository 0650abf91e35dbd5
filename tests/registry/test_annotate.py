"""The specifications as annotated pages, and the feedback to their authors."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tessera_conformance import cases as locations
from tessera_conformance.registry import Interpretation, Registry
from tessera_conformance.registry.cases import naming_tests
from tessera_conformance.registry.load import Specification
from tessera_conformance.reports.annotate import (
    Knowledge,
    Passage,
    Run,
    annotated,
    document_page,
    feedback,
    first_page,
    proposed_wording,
    sections_of,
)

FEEDBACK = Path(__file__).resolve().parents[2] / "reports" / "spec-feedback.md"

UNTESTABLE = 'verify = "untestable"\nreason = "needs a queue that can be seen"'


def passages_of(small_registry, key: str = "runtime_abi", **arguments) -> list[Passage]:
    registry = small_registry.load()
    text = Specification.read(small_registry.specs / f"{key}.txt")
    return annotated(registry.documents[key], text, Knowledge(registry, **{"cases": {}, "tests": {}, **arguments}))


def page_of(small_registry, key: str = "runtime_abi", **arguments) -> str:
    registry = small_registry.load()
    knowledge = Knowledge(registry, **{"cases": {}, "tests": {}, **arguments})
    return "".join(document_page(registry.documents[key], passages_of(small_registry, key, **arguments), knowledge))


def test_passages_are_all_lines_in_order_split_where_other_clauses_speak(small_registry):
    actual = passages_of(small_registry)
    assert [(passage.first, len(passage.text), [clause.id for clause in passage.clauses]) for passage in actual] == [
        (1, 2, []),
        (3, 1, ["RT-01-01"]),
        (4, 1, ["RT-01-02", "RT-01-03"]),
    ]
    assert [passage.level for passage in actual] == [None, "MUST", "MUST"]
    assert [[section.id for section in passage.sections] for passage in actual] == [["1"], [], []]
    assert actual[2].text == ("  Work runs in order.",)


def test_a_clause_of_many_lines_is_shown_where_it_begins(small_registry):
    small_registry.edit("language_ir.toml", "lines = [2, 2]", "lines = [2, 3]")
    actual = passages_of(small_registry, "language_ir")
    assert [[clause.id for clause in passage.begins] for passage in actual] == [[], ["LANG-02-01"], ["LANG-02-02"]]
    assert [clause.id for clause in actual[2].clauses] == ["LANG-02-01", "LANG-02-02"]


@pytest.mark.parametrize("kind", ["contradiction", "example", "silence"])
def test_a_passage_is_marked_by_the_kind_of_its_interpretation(small_registry, kind):
    small_registry.append("interpretations.toml", f'kind = "{kind}"\n')
    actual = passages_of(small_registry)
    assert [passage.marks for passage in actual] == [(), (), (kind,)]
    assert [row.id for row in actual[2].gaps] == ["AMB-RT-01"]


def test_an_interpretation_on_which_no_clause_depends_stands_at_the_head_of_its_section(small_registry):
    small_registry.edit("interpretations.toml", 'affects = ["RT-01-02"]', "affects = []")
    small_registry.edit("runtime_abi.toml", 'interpretations = ["AMB-RT-01"]\n', "")
    assert [[row.id for row in passage.gaps] for passage in passages_of(small_registry)] == [["AMB-RT-01"], [], []]


def test_a_clause_that_nothing_can_decide_is_marked(small_registry):
    path = small_registry.clauses / "runtime_abi.toml"
    path.write_text(path.read_text().replace('verify = "test"', UNTESTABLE, 1))
    assert [passage.marks for passage in passages_of(small_registry)] == [(), ("untestable",), ("silence",)]
    assert "needs a queue that can be seen" in page_of(small_registry)


def test_a_page_has_the_cases_and_the_verdicts_of_each_run(small_registry):
    runs = [
        Run("numpy 2.1", {"RT-01-01": "fail"}, {"runtime/streams/b": "fail", "runtime/streams/a": "pass"}),
        Run("other 1.0", {"RT-01-01": "pass"}, {}),
    ]
    cases = {"RT-01-01": ["runtime/streams/a", "runtime/streams/b"]}
    text = page_of(small_registry, runs=runs, cases=cases)
    assert '<span class="badge fail">numpy 2.1: fail</span><span class="badge pass">other 1.0: pass</span>' in text
    assert text.index("runtime/streams/b") < text.index("numpy 2.1: fail</small>") < text.index("runtime/streams/a")


def test_a_page_needs_no_script_and_no_network(small_registry):
    text = page_of(small_registry)
    style = re.findall(r"<style>(.*)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style[0].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in text
    assert not re.search(r"<script|https?:|url\(|@import| style=| on[a-z]+=", text)


def test_texts_are_escaped(small_registry):
    registry = small_registry.load()
    text = Specification(("# 1. Streams", "", "<b>&", "</pre>"), "")
    known = Knowledge(registry, {"RT-01-01": ["<i><"]}, {}, [Run("<u>", {"RT-01-01": "pass"}, {})])
    document = registry.documents["runtime_abi"]
    passages = annotated(document, text, known)
    page = "".join(document_page(document, passages, known)) + first_page(registry.documents.values())
    for escaped in ("&lt;b&gt;&amp;", "&lt;/pre&gt;", "&lt;i&gt;", "&lt;u&gt;"):
        assert escaped in page
    assert not re.search("<b>&|<i><|<u>", page)


def test_the_command_writes_a_page_for_each_document_and_the_feedback(small_registry, tmp_path):
    small_registry.tag("RT-01-01", "runtime/streams/queue")
    code, printed = small_registry.run(
        "annotate", "--specs", str(small_registry.specs), "--output", str(tmp_path / "made")
    )
    assert code == 0, printed
    names = {"index", "runtime_abi", "language_ir", "host_io", "collectives", "wsp"}
    assert {path.name for path in (tmp_path / "made").iterdir()} == {
        *(f"{name}.html" for name in names),
        "spec-feedback.md",
    }
    assert "runtime/streams/queue" in (tmp_path / "made" / "runtime_abi.html").read_text()


def test_a_text_that_the_registry_does_not_fit_is_refused(small_registry, tmp_path):
    small_registry.edit("runtime_abi.txt", "in order", "in any order")
    code, printed = small_registry.run(
        "annotate", "--specs", str(small_registry.specs), "--output", str(tmp_path / "made")
    )
    assert (code, (tmp_path / "made").exists()) == (1, False)
    assert "the source of RT-01-02 changed (section 1, line 4)" in printed


def test_a_folder_without_the_texts_and_a_file_that_is_no_report_are_refused(small_registry, tmp_path):
    code, printed = small_registry.run("annotate", "--specs", str(tmp_path), "--output", str(tmp_path / "made"))
    assert (code, printed.count("cannot be read")) == (1, 5)
    report = tmp_path / "report.jsonl"
    report.write_text("{}\n")
    arguments = ["--specs", str(small_registry.specs), "--report", str(report), "--output", str(tmp_path / "made")]
    code, printed = small_registry.run("annotate", *arguments)
    assert (code, f"{report}:1: not the header of a report" in printed) == (2, True)


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
    points = [point for document in registry.documents.values() for point in sections_of(document, registry)]
    rows = sorted(row.id for point in points for row in point.rows)
    assert rows == sorted(row.id for row in registry.interpretations.values() if row.active)
    assert sum(len(point.untestable) for point in points) > 30


@pytest.fixture(scope="module")
def pages(registry: Registry, specifications: Mapping[str, Specification]) -> dict[str, str]:
    """The pages of the specifications, by name."""
    known = Knowledge(registry, {}, naming_tests(locations.suite_directory()))
    documents = {key: annotated(registry.documents[key], text, known) for key, text in specifications.items()}
    made = {
        f"{key}.html": "".join(document_page(registry.documents[key], passages, known))
        for key, passages in documents.items()
    }
    return {**made, "index.html": first_page(registry.documents.values())}


def test_the_pages_of_the_specifications_have_every_clause_interpretation_and_line(
    pages: Mapping[str, str], registry: Registry, specifications: Mapping[str, Specification]
) -> None:
    for key, text in specifications.items():
        page = pages[f"{key}.html"]
        shown = re.findall(r'<article class="clause \w+" id="([^"]+)"', page)
        assert sorted(shown) == sorted(clause.id for clause in registry.clauses_of(key) if clause.active)
        assert re.findall(r"id=L(\d+)>", page) == [str(line + 1) for line in range(len(text.lines))]
    of_their_document = [row for row in registry.interpretations.values() if row.active]
    assert [row.id for row in of_their_document if f'id="{row.id}"' not in pages[f"{row.document}.html"]] == []


def test_every_link_within_the_pages_leads_somewhere(pages: Mapping[str, str]) -> None:
    places = {name: set(re.findall(r' id="?([^" >]+)', page)) for name, page in pages.items()}
    links = [(name, link) for name, page in pages.items() for link in re.findall(r'href="([^"]+)"', page)]
    assert len(links) > 5000
    places |= {"spec-feedback.md": set()}
    dead = []
    for name, link in links:
        target, _, place = link.partition("#")
        if (target or name) not in places or (place and place not in places[target or name]):
            dead.append((name, link))
    assert dead == []


def test_the_kinds_and_wordings_of_interpretations(registry: Registry) -> None:
    """Each contradiction and each sample against the text has a wording of its own, or a decision that reads as one."""
    rows = [row for row in registry.interpretations.values() if row.kind != "silence"]
    assert len(rows) >= 45
    assert [row.id for row in rows if proposed_wording(row) is None] == []
    assert proposed_wording(replace(rows[0], wording=None)) == rows[0].decision
