"""Several reports in one page: implementations side by side, their histories, and the badge of a report."""

from __future__ import annotations

import base64
import gzip
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.registry import Registry
from tessera_conformance.reports.compare import badge, compared_page
from tessera_conformance.reports.journal import Report, read
from tessera_conformance.reports.publish import write_text

pytestmark = pytest.mark.slow

NASTY = "<script>alert(1)</script>"


def named(name: str, version: str = "1.0", device: str = "x1") -> dict[str, Any]:
    """The header of a run of an implementation."""
    identity = {"name": name, "version": version, "device": device}
    hello = {"implementation": identity, "documents": ["runtime_abi"], "arithmetic": {"level": "deterministic"}}
    return {"implementation": {"label": f"rpc:{name}", "hello": hello, "fault": None}}


@pytest.fixture
def three(build: Callable[..., Report], observation: Callable[..., dict[str, Any]]) -> list[Report]:
    """Two runs of acme, of which the second breaks one clause and mends another, and one of a rival."""
    broken = {"verdict": "fail", "reason": f"padding is {NASTY}"}

    def lines(**of_first: Any) -> list[dict[str, Any]]:
        return [
            observation("abi/padding", clauses=["RT-10.1-01"], **of_first),
            observation("abi/size", clauses=["RT-10.1-02"], **({} if of_first else {"verdict": "fail"})),
            observation("ir/sum", "unsupported", clauses=["LANG-05-01"]),
        ]

    rival = [observation(f"abi/{name}", clauses=[f"RT-10.1-0{at}"]) for at, name in ((1, "padding"), (2, "size"))]
    return [
        build(lines(), name="one", header=named("acme", "1.0")),
        build(lines(**broken), name="two", header=named("acme", "1.1")),
        build(rival, name="three", header=named("rival", device="")),
    ]


@pytest.fixture
def shown(three: list[Report], registry: Registry, open_file: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """Opens the page of the three reports."""
    path = tmp_path / "compared.html"
    write_text(path, compared_page(three, registry))
    return lambda address="", width=1400: open_file(path, address, width)


def test_the_page_is_safe_and_the_same_for_the_same_reports(three: list[Report], registry: Registry) -> None:
    first, second = ("".join(compared_page(three, registry)) for _ in range(2))
    assert first == second
    assert first.isascii()
    assert first.count("<script") == 2
    assert "innerHTML" not in first
    assert not re.findall(r"https?://|@@", first)


def test_runs_of_one_implementation_are_its_history(three: list[Report], registry: Registry) -> None:
    found = re.search(r'id="data">([A-Za-z0-9+/=]*)<', "".join(compared_page(three, registry)))
    assert found is not None
    data = json.loads(gzip.decompress(base64.b64decode(found[1])))
    runs = {one["name"]: [run["implementation"] for run in one["runs"]] for one in data["implementations"]}
    assert runs == {"acme on x1": ["acme 1.0 on x1", "acme 1.1 on x1"], "rival": ["rival 1.0"]}
    latest = data["implementations"][0]["runs"][-1]
    assert latest["changes"] == {"broken": 1, "fixed": 1}
    assert latest["failing"] == {"RT-10.1-01": ["abi/padding", f"padding is {NASTY}"]}
    assert data["notes"] == []


def test_runs_that_were_asked_for_different_things_are_told(
    build: Callable[..., Report], observation: Callable[..., dict[str, Any]], registry: Registry
) -> None:
    lines = [observation("abi/a")]
    reports = [build(lines, name="a"), build(lines, name="b", level="fast", complete=False)]
    text = "".join(compared_page(reports, registry))
    found = re.search(r'id="data">([A-Za-z0-9+/=]*)<', text)
    assert found is not None
    assert json.loads(gzip.decompress(base64.b64decode(found[1])))["notes"] == [
        "The runs differ in level: deterministic, fast.",
        "Some runs are of a part of the suite: what they left out is untested.",
    ]


def test_runs_that_did_not_end_or_not_start_are_shown_and_told(
    killed: Callable[..., Path],
    observation: Callable[..., dict[str, Any]],
    not_started: Report,
    registry: Registry,
    open_file: Callable[..., Any],
    tmp_path: Path,
) -> None:
    reports = [read(killed([observation("abi/a")])), not_started]
    write_text(tmp_path / "compared.html", compared_page(reports, registry))
    tab = open_file(tmp_path / "compared.html")
    assert tab.locator(".implementation h2").all_inner_texts() == ["acme-runtime on acme-x1", "rpc:acme"]
    assert "of acme-runtime on acme-x1 is invalid: there is no footer" in tab.locator("#notes").inner_text()
    assert (
        tab.locator(".implementation .badge").first.get_attribute("aria-label") == "Tessera conformance: invalid report"
    )


def test_implementations_stand_side_by_side_with_their_claims_and_histories(shown: Callable[..., Any]) -> None:
    tab = shown()
    cards = tab.locator(".implementation")
    assert cards.locator("h2").all_inner_texts() == ["acme on x1", "rival"]
    assert cards.locator(".badge").evaluate_all("all => all.map((each) => each.getAttribute('aria-label'))") == [
        "Tessera conformance: failure: 1 of 10 clauses",
        "Tessera conformance: success: 2 of 10 clauses",
    ]
    assert cards.locator(".history i").count() == 2
    assert cards.first.locator(".past p").inner_text() == "since acme 1.0 on x1: 1 case broken, 1 case fixed"


def test_clauses_are_compared_by_document_section_and_clause(shown: Callable[..., Any]) -> None:
    tab = shown()
    tab.click("#filters label:has-text('only where they differ')")
    assert tab.locator("#shown").inner_text() == "2 of 11 clauses"
    assert tab.evaluate("location.hash") == "#differ=1"
    rows = tab.locator("#matrix .clause")
    assert [text.split()[0] for text in rows.all_inner_texts()] == ["RT-10.1-01", "LANG-05-01"]
    assert rows.first.locator(".cell").all_inner_texts() == ["fail\nwas pass", "pass"]
    document = tab.locator("#matrix > details:has-text('Runtime') > summary .number")
    assert document.all_inner_texts() == ["0 of 1", "1 of 1"]
    rows.first.locator(".name").click()
    past = tab.locator("#matrix .facts").first
    past.wait_for()
    assert f"acme 1.1 on x1: fail abi/padding padding is {NASTY}" in " ".join(past.inner_text().split())


def test_the_address_filters_by_what_changed_in_a_history(shown: Callable[..., Any]) -> None:
    tab = shown("#changed=1")
    found = [text.split()[0] for text in tab.locator("#matrix .clause").all_inner_texts()]
    assert found == ["RT-10.1-01", "RT-10.1-02"]
    tab.keyboard.press("/")
    tab.keyboard.type("nothing of this")
    assert tab.locator("#matrix .empty").inner_text() == "No clause matches these filters."
    assert tab.evaluate("location.hash") == "#text=nothing+of+this&changed=1"


@pytest.mark.parametrize("width", [320, 375, 768])
def test_the_page_is_no_wider_than_a_phone(shown: Callable[..., Any], width: int) -> None:
    tab = shown("#differ=1", width)
    assert tab.locator("#matrix .clause").count() == 2
    assert tab.evaluate("document.documentElement.scrollWidth") == width


def test_the_badge_says_claim_and_clauses(three: list[Report], registry: Registry) -> None:
    root = ElementTree.fromstring(badge(three[2], registry))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "".join(root.itertext()) == "Tessera conformancesuccess: 2 of 10 clauses"
