"""The annotated specifications in a browser; their texts are made up."""

from __future__ import annotations

import pytest

from tessera_conformance.locations import clauses_directory
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.annotate import Knowledge, Run, annotated, document_page, first_page
from tessera_conformance.registry.source import Specification
from tessera_conformance.reports.publish import write_text


@pytest.fixture
def visit(open_file, tmp_path):
    """Opens the page of the collectives document, whose lines are numbers, or another page."""
    registry = load_registry(clauses_directory())
    document = registry.documents["collectives"]
    outcomes = {clause.id: "fail" for clause in registry.clauses_of("collectives")}
    known = Knowledge(
        registry, {"COLL-02.1-01": [f"collectives/case/{'x' * n}" for n in range(90)]}, {}, [Run("acme", outcomes, {})]
    )
    text = Specification(tuple(f"{n} " + "word " * 40 + "w" * 300 for n in range(document.lines)), "")
    passages = annotated(document, text, known)
    write_text(tmp_path / "collectives.html", document_page(document, passages, known))
    write_text(tmp_path / "index.html", first_page({"collectives": passages}, known))

    def go(name="collectives.html", address="", width=1400):
        return open_file(tmp_path / name, address, width)

    return go


def test_the_box_leaves_what_is_marked(visit):
    tab = visit()
    everything = tab.locator(".passage:visible").count()
    marked = tab.locator(".passage:has(.marks)").count()
    assert 0 < marked < everything
    tab.check("#open-only")
    assert tab.locator(".passage:visible").count() == marked


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("name", ["collectives.html", "index.html"])
def test_no_page_is_wider_than_its_window(visit, name, width):
    tab = visit(name, width=width)
    assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_notes_stand_beside_the_lines_and_on_a_phone_below_them(visit):
    for width, beside in ((1400, True), (360, False)):
        passage = visit(width=width).locator(".passage:has(#COLL-02\\.1-01)")
        lines, notes = passage.locator("pre").bounding_box(), passage.locator(".notes").bounding_box()
        assert (notes["x"] >= lines["x"] + lines["width"]) == beside
        assert (notes["y"] >= lines["y"] + lines["height"]) != beside


def test_a_link_to_an_interpretation_scrolls_to_it_and_its_note_unfolds(visit):
    tab = visit(address="#AMB-COLL-14")
    note = tab.locator("#AMB-COLL-14")
    assert note.evaluate("element => element.getBoundingClientRect().top < innerHeight")
    assert not note.locator("dl").is_visible()
    note.locator("> summary").click()
    assert note.locator("dl").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_scheme_of_the_system(visit, scheme):
    tab = visit()
    tab.emulate_media(color_scheme=scheme)
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(251, 251, 249)", "dark": "rgb(20, 24, 27)"}[scheme]


def test_notes_are_printed_unfolded(visit):
    tab = visit()
    tab.emulate_media(media="print")
    assert tab.locator("label").is_hidden()
    assert tab.locator("#AMB-COLL-14 dl").evaluate("element => element.getBoundingClientRect().height") > 0
