"""The pages, in a real browser, from files and without a network: of a report, of several, and the annotated texts."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.registry import Registry, load_registry
from tessera_conformance.registry.load import Specification
from tessera_conformance.reports.annotate import Knowledge, Run, annotated, document_page, first_page
from tessera_conformance.reports.causes import clause_results, tally
from tessera_conformance.reports.compare import badge, compared_page
from tessera_conformance.reports.journal import Report, read
from tessera_conformance.reports.page import LONGEST_PASSED, page
from tessera_conformance.reports.publish import publish, write_text

pytestmark = pytest.mark.slow


# The page of one report.

NASTY = "<script>alert(1)</script>"


def island(document, name):
    """The text of an island: of the details, the lines of all blocks."""
    match = re.search(rf'<script type="text/plain" id="{name}">([A-Za-z0-9+/=\n]*)</script>', document)
    assert match is not None
    return "\n".join(gzip.decompress(base64.b64decode(block)).decode() for block in match[1].split("\n"))


def test_the_policy_allows_just_this_script_and_this_style(build, registry, observations):
    document = "".join(page(build(observations), registry))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', document)
    assert policy.startswith("default-src 'none'; ")
    for opening, tag, directive in (('script type="module"', "script", "script-src"), ("style", "style", "style-src")):
        (text,) = re.findall(rf"<{opening}>(.*?)</{tag}>", document, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert not re.findall(r"https?://", document)


def test_the_title_shows_hidden_characters_escaped(build, registry, observations):
    report = build(observations)
    name = "acme \x1b[2J \u202egnp \ud800 <b>"
    report.header["implementation"]["hello"]["implementation"]["name"] = name
    document = "".join(page(report, registry))
    (title,) = re.findall(r"<title>(.*?)</title>", document, re.DOTALL)
    assert "\\x1b[2J \\u202egnp \\ud800 &lt;b&gt;" in title


def test_no_data_leaves_its_island(build, registry, observations):
    document = "".join(page(build(observations), registry))
    assert document.isascii()
    assert document.count("<script") == 3
    assert "innerHTML" not in document
    data = json.loads(island(document, "data"))
    assert [case["title"] for case in data["cases"] if case["id"] == "ir/matmul/nasty"] == [NASTY]
    assert len(island(document, "details").split("\n")) == len(data["cases"]) == 13


def test_what_was_chosen_stands_among_the_facts(build, registry, observation):
    asked = {"clauses": ["LANG-10-05"], "paths": ["ir/test_matmul.py"]}
    document = "".join(page(build([observation("abi/a")], complete=False, chosen=asked), registry))
    assert dict(json.loads(island(document, "data"))["facts"])["chosen"] == "clause LANG-10-05, path ir/test_matmul.py"
    whole = "".join(page(build([observation("abi/a")]), registry))
    assert "chosen" not in dict(json.loads(island(whole, "data"))["facts"])


def test_places_of_the_template_inside_the_data_stay_text(build, registry, observation):
    document = "".join(page(build([observation("abi/a", title="@@SCRIPT@@ @@DATA@@")]), registry))
    assert "@@SCRIPT@@ @@DATA@@" in island(document, "data")


def test_long_texts_are_cut_and_say_so(build, registry, observation):
    sent = [{"method": "a.b", "params": {"x": "y" * 9000}, "observation": {"returned": 1}, "run": {}}]
    document = "".join(page(build([observation("abi/a", exchanges=sent)]), registry))
    kept = json.loads(island(document, "details"))["exchanges"][0]["params"]["x"]
    assert kept == "y" * LONGEST_PASSED + f" ... ({9000 - LONGEST_PASSED} more characters)"


@pytest.fixture
def visit(open_file, registry):
    """Opens the published page of a report."""

    def go(report, address="", width=1400):
        publish(report, registry)
        return open_file(report.path.parent / "index.html", address, width)

    return go


def cases_shown(tab):
    return tab.locator("#list .id").all_inner_texts()


def open_case(tab, case):
    tab.click(f"#list a:has-text('{case}')")
    await_case(tab, case)


def await_case(tab, case):
    tab.locator("#detail h2", has_text=case).wait_for()


def test_the_counts_are_those_of_the_report(visit, build, registry, observations):
    report = build(observations, problems=["deviation 'x' expired"])
    tab = visit(report)
    assert tab.locator("h1").inner_text() == "acme-runtime 2.1 on acme-x1"
    assert tab.locator("#claim").inner_text().split("\n") == [
        "FAILURE",
        "7 cases count against it and 1 problem with the run",
        "runtime_abi: 2 judged, 2 passed, 0 unsupported, 0 untested of 2 testable MUST clauses",
    ]
    assert tab.locator("#problems li").all_inner_texts() == ["deviation 'x' expired"]
    counts = tally(clause_results(report, registry).values())
    assert tab.locator("#covered").inner_text().startswith(f"{counts['pass']} of 10 testable clauses pass; 1 more")
    assert len(cases_shown(tab)) == 13
    chips = {chip.get_attribute("data-verdict"): chip.inner_text() for chip in tab.locator(".chip").all()}
    assert {name: int(text.split()[-1]) for name, text in chips.items()} == report.footer["verdicts"]
    assert tab.locator("#invalid").is_hidden()
    assert tab.locator("#by-level .number").all_inner_texts() == ["2 of 7", "0 of 2", "0 of 1", "not testable"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_rooflines_are_drawn_in_the_colours_of_the_page(visit, build, observation, scheme):
    figures = [{"plot": "compute", "line": "product", "size": 10**n, "picoseconds": 10**6} for n in (3, 5)]
    run = {"seconds": 0.1, "figures": figures}
    tab = visit(build([observation("collectives/products", clauses=["COLL-06-02"], run=run)]))
    tab.emulate_media(color_scheme=scheme)
    plots = tab.locator("#rooflines .plots")
    assert plots.locator("polyline").count() == 1
    assert plots.locator(".label").all_text_contents() == ["best measured (dashed)", "product"]
    colour = "rgb(31, 92, 153)" if scheme == "light" else "rgb(125, 179, 232)"
    assert plots.locator("polyline").evaluate("line => getComputedStyle(line).stroke") == colour


BACKGROUND = "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(251, 251, 249)", "rgb(20, 24, 27)"


def test_it_is_light_or_dark_as_the_system_is_until_a_reader_chooses(visit, build, observation):
    tab = visit(build([observation("abi/a")]))
    for scheme, colour, other in (("light", LIGHT, "Dark"), ("dark", DARK, "Light")):
        tab.emulate_media(color_scheme=scheme)
        tab.locator("#scheme", has_text=other).wait_for()
        assert tab.evaluate(BACKGROUND) == colour
    tab.click("#scheme")
    assert (tab.evaluate(BACKGROUND), tab.locator("#scheme").inner_text()) == (LIGHT, "Dark")
    tab.click("#scheme")
    tab.emulate_media(media="print")
    assert tab.locator("h1").evaluate("each => getComputedStyle(each).color") == "rgb(29, 35, 41)"


def test_print_has_the_causes_the_failures_and_the_number_of_the_other_cases(visit, build, observation):
    failing = {"verdict": "fail", "checks": [CHECK]}
    lines = [observation(f"abi/wrong/{number:03}", **failing) for number in range(120)]
    lines += [observation(f"abi/right/{number:03}") for number in range(880)]
    tab = visit(build(lines))
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown = cases_shown(tab)
    assert [name for name in shown if "wrong" in name] == [f"abi/wrong/{number:03}" for number in range(120)]
    assert tab.locator("#left-out").inner_text() == "and 850 more cases, which are in the page"
    for name in ("#filters", ".copy", "#scheme"):
        assert tab.locator(name).first.is_hidden(), name
    assert tab.locator("#cause-list .command").first.inner_text().startswith("tessera-conformance reproduce")
    tab.emulate_media(media="screen")
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.locator("#left-out").is_hidden()


def deadlocked(**changes):
    """A result: p waits in a scope for the window, a task for a token, q for a full channel; p and its scope cycle."""
    use = {"size": 2, "used": 2, "high_water": 2}
    report = {
        "time": 20,
        "window": use,
        "resources": {"task_ring": use},
        "channels": [{"name": "c", "state": "full", "capacity": 1, "tokens": 1, "closed": False}],
        "waiting": [
            {"process": "q", "reason": "CHANNEL_FULL_WAIT", "for": "c", "statement": "body/3"},
            {"process": "p", "reason": "TASK_RING_FULL", "for": "task_ring", "statement": "body/0/body/2"},
            {"task": 7, "process": "p", "reason": "TASK_WAIT", "for": "tasks", "statement": "body/0/body/1"},
        ],
        "cycle": ["process p", "resource task_ring", "scope of p"],
        "scopes": [{"process": "p", "depth": 1, "held": 2}],
        "held_by_scopes": True,
        "mitigations": [],
    }
    return {"outcome": "deadlock", "statistics": {}, "deadlock": report | changes}


def showing(build, observation, *returned):
    sent = [{"method": "wsp.run", "params": {}, "observation": {"returned": answer}, "run": {}} for answer in returned]
    return build([observation("runtime/wsp/a", exchanges=sent)])


def test_a_deadlock_that_a_case_observed_is_drawn(visit, build, observation):
    """The picture shows waiting processes with the report's words, arrows with reasons, and the cycle in red."""
    tab = visit(showing(build, observation, deadlocked(), {"outcome": "completed"}))
    open_case(tab, "runtime/wsp/a")
    graph = tab.locator("#detail svg.deadlock")
    assert graph.count() == 1
    assert graph.get_attribute("aria-label") == "deadlock at 20: 3 wait, a cycle of 3"
    assert graph.locator("> text:not(.reason)").evaluate_all("all => all.map((each) => each.lastChild.data)") == [
        "process p",
        "process q",
        "task 7",
        "resource task_ring",
        "channel c",
        "scope of p",
    ]
    assert graph.locator(".reason").all_text_contents() == ["TASK_RING_FULL", "CHANNEL_FULL_WAIT"]
    assert graph.locator("line.cycle, path.cycle").count() == 3
    assert graph.locator("line.wait, path.wait").count() == 1
    red = tab.locator("#detail").evaluate("each => getComputedStyle(each).getPropertyValue('--fail')")
    box = graph.locator("rect.cycle").first
    probe = f"each => (each.style.color = '{red}', getComputedStyle(each).color)"
    assert box.evaluate("each => getComputedStyle(each).stroke") == tab.locator("#detail h2").evaluate(probe)


@pytest.mark.parametrize("changes", [{"cycle": 3}, {"waiting": [{}]}, {"waiting": None}])
def test_a_report_of_a_deadlock_that_cannot_be_read_is_shown_as_text(visit, build, observation, changes):
    tab = visit(showing(build, observation, deadlocked(**changes)))
    open_case(tab, "runtime/wsp/a")
    assert tab.locator("#detail svg").count() == 0
    assert '"outcome"' in tab.locator("#detail").inner_text()


def test_names_in_a_drawn_deadlock_cannot_break_the_page(visit, build, observation):
    waits = [{"process": NASTY, "reason": "CHANNEL_EMPTY_WAIT", "for": NASTY, "statement": NASTY}]
    tab = visit(showing(build, observation, deadlocked(waiting=waits, cycle=[], channels=[])))
    open_case(tab, "runtime/wsp/a")
    assert tab.locator("#detail svg.deadlock > text").count() == 3
    assert tab.locator("#detail script").count() == 0


def test_failures_come_first_and_the_first_is_open(visit, build, observations):
    tab = visit(build(observations))
    assert cases_shown(tab)[:3] == ["ir/matmul/k-tail", "ir/matmul/nasty", "ir/known/unexpected"]
    assert tab.locator("#detail h2").inner_text() == "ir/matmul/k-tail"


def test_a_failing_case_shows_bits_ulp_clauses_and_the_command(visit, build, observations):
    tab = visit(build(observations))
    open_case(tab, "ir/matmul/k-tail")
    detail = tab.locator("#detail").inner_text()
    for part in (
        "element [3, 7]",
        "0x3f811fff",
        "0x3f812000",
        "1 ULP",
        "2 of 128 elements",
        "What LANG-15-01 demands",
        "tessera-conformance reproduce ir/matmul/k-tail --impl=",
        "language.execute",
        "fp32[3]",
        "[0]  3f800000  1",
        "[2]  40400000  3",
        '{"size":24}',
    ):
        assert part in detail, part
    assert tab.locator("#detail mark").first.inner_text() == "1"
    assert tab.evaluate("location.hash") == "#case=ir%2Fmatmul%2Fk-tail"


def test_a_fault_shows_its_standard_error_and_an_address_opens_its_case(visit, build, observations):
    tab = visit(build(observations), "#case=runtime%2Flaunch%2Fcrash")
    assert tab.locator("#detail h2").inner_text() == "runtime/launch/crash"
    assert tab.locator("#detail .stderr").inner_text() == "Segmentation fault\x1b[31m at 0x0"
    assert tab.evaluate("document.querySelector('#detail .reason + .field + .stderr') !== null")
    assert "SIGSEGV in launch; it came back when the calls were replayed" in tab.locator("#detail").inner_text()


def test_markup_in_titles_reasons_sources_and_summaries_stays_text(visit, build, observations):
    tab = visit(build(observations))
    open_case(tab, "ir/matmul/nasty")
    assert tab.locator("#detail .title").inner_text() == NASTY
    assert NASTY in tab.locator("#detail .reason").inner_text()
    assert f"// {NASTY}" in tab.locator("#detail .exchanges").inner_text()
    open_case(tab, "collectives/ring/order")
    assert NASTY in tab.locator("#detail .clause-list").inner_text()
    assert tab.locator("script").count() == 3


def test_filters(visit, build, observations):
    tab = visit(build(observations))
    tab.click(".chip[data-verdict=fail]")
    assert set(cases_shown(tab)) == {"ir/matmul/k-tail", "ir/matmul/nasty", "ir/known/rounding"}
    tab.click(".chip[data-verdict=hang]")
    assert len(cases_shown(tab)) == 4
    tab.fill("#text", "MATMUL  tail")
    assert cases_shown(tab) == ["ir/matmul/k-tail"]
    assert tab.locator("#shown").inner_text() == "1 of 13 cases"
    tab.fill("#text", "nowhere")
    assert tab.locator("#list .empty").inner_text() == "No case matches these filters."
    tab.click("#clear")
    assert len(cases_shown(tab)) == 13
    tab.select_option("#document", "runtime_abi")
    assert len(cases_shown(tab)) == 7
    tab.select_option("#level", "SHOULD")
    assert cases_shown(tab) == ["runtime/fp8/cast"]
    tab.click("#clear")
    tab.fill("#clause", "rt-12")
    assert len(cases_shown(tab)) == 5
    tab.fill("#clause", "LANG-15-02")
    assert set(cases_shown(tab)) == {"ir/matmul/k-tail", "ir/matmul/nasty"}


def test_documents_open_to_sections_clauses_and_their_cases(visit, build, observations):
    tab = visit(build(observations))
    tab.click("#by-document > details:has-text('Language') > summary .name")
    tab.click("#by-document details details:has-text('section 15') > summary .name")
    clauses = tab.locator("#by-document .clauses li")
    assert [text.split("\n")[0] for text in clauses.all_inner_texts()] == ["LANG-15-01", "LANG-15-02"]
    assert "says what LANG-15-01 says" in clauses.nth(1).inner_text()
    tab.click("#by-document .clauses a:has-text('LANG-15-01')")
    tab.locator("#shown", has_text="2 of 13").wait_for()
    assert set(cases_shown(tab)) == {"ir/matmul/k-tail", "ir/matmul/nasty"}


def test_it_can_be_used_by_keyboard(visit, build, observations):
    tab = visit(build(observations))
    tab.keyboard.press("/")
    tab.keyboard.type("launch")
    assert len(cases_shown(tab)) == 4
    tab.keyboard.press("Escape")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    await_case(tab, "runtime/launch/hang")
    assert tab.evaluate("document.activeElement.id") == "detail"
    tab.keyboard.press("Escape")
    assert tab.evaluate("document.activeElement.getAttribute('aria-current')") == "true"


def test_j_and_k_go_through_the_list_o_opens_and_a_question_mark_lists_the_keys(visit, build, observation):
    tab = visit(build([observation(f"abi/case/{number:03}") for number in range(200)]))
    focused = "document.activeElement.querySelector('.id')?.textContent"
    for key, name in (("j", "000"), ("j", "001"), ("j", "002"), ("k", "001")):
        tab.keyboard.press(key)
        assert tab.evaluate(focused) == f"abi/case/{name}"
    tab.keyboard.press("o")
    await_case(tab, "abi/case/001")
    tab.locator("#detail:focus").wait_for()
    for _ in range(120):  # far beyond the rows that the page began with
        tab.keyboard.press("j")
    assert tab.evaluate(focused) == "abi/case/121"
    tab.keyboard.press("k")
    assert tab.evaluate(focused) == "abi/case/120"
    tab.keyboard.press("?")
    assert "next case, case before" in tab.locator("#keys").inner_text()
    tab.keyboard.press("j")
    tab.keyboard.press("Escape")
    assert tab.locator("#keys").is_hidden()
    assert tab.evaluate(focused) == "abi/case/120"
    tab.keyboard.press("/")
    tab.keyboard.type("jko?/")
    assert tab.locator("#text").input_value() == "jko?/"


def test_cases_of_what_is_not_implemented_have_a_filter_of_their_own(visit, build, observations, lacking):
    tab = visit(build([*observations, lacking("ir/a", "language.verify")]))
    assert tab.locator(".chip[data-verdict=not_implemented]").inner_text().split() == ["not", "implemented", "1"]
    tab.click(".chip[data-verdict=not_implemented]")
    assert cases_shown(tab) == ["ir/a"]
    assert tab.locator("#list .verdict").inner_text() == "not implemented"
    tab.click(".chip[data-verdict=not_implemented]")
    tab.click(".chip[data-verdict=fail]")
    assert len(cases_shown(tab)) == 4


def test_a_case_that_is_no_longer_listed_is_closed(visit, build, observations):
    tab = visit(build(observations), "#case=ir%2Fmatmul%2Fk-tail")
    tab.fill("#text", "matmul")
    assert tab.locator("#detail h2").inner_text() == "ir/matmul/k-tail"
    tab.fill("#text", "launch")
    assert tab.locator("#detail").is_hidden()
    assert tab.evaluate("location.hash") == "#text=launch"


def test_a_narrow_window_shows_the_list_first(visit, build, observations):
    tab = visit(build(observations), width=400)
    assert tab.locator("#detail").is_hidden()
    open_case(tab, "runtime/launch/hang")
    assert 0 <= tab.locator("#detail").bounding_box()["y"] < 100
    tab.click("#detail .back")
    assert tab.locator("#detail").is_hidden()
    assert tab.evaluate("document.activeElement.textContent").startswith("hangruntime/launch/hang")


def test_the_badge_says_what_deviations_excuse(visit, build, observation):
    lines = [observation("abi/a"), observation("ir/known/a", "fail", disposition="known_deviation")]
    tab = visit(build(lines))
    assert tab.locator("#claim strong").inner_text() == "SUCCESS, with 1 case excused by deviations"


def test_an_implementation_that_did_not_start_shows_what_it_wrote(visit, not_started):
    tab = visit(not_started)
    assert tab.locator("#start-stderr").inner_text().startswith("line 1\nline 2\n")


def test_what_was_decided_shows_with_an_interpretation(visit, build, observations):
    tab = visit(build(observations), "#case=abi%2Fbuffer%2Fsize")
    assert tab.locator("#detail abbr").inner_text() == "AMB-RT-16"
    assert tab.locator("#detail abbr").get_attribute("title") == "Sizes are rounded up"


def test_an_invalid_report_says_so(visit, killed, observations):
    tab = visit(read(killed(observations)))
    assert "invalid and supports no claim: there is no footer" in tab.locator("#invalid").inner_text()
    assert tab.locator("#claim strong").inner_text() == "INVALID"
    assert len(cases_shown(tab)) == 13


def test_an_address_brings_its_case_into_view_however_far_down_the_list_it_stands(visit, build, observation):
    report = build([observation(f"abi/case/{number:04}") for number in range(5000)])
    for width in (1400, 375):
        tab = visit(report, "#case=abi%2Fcase%2F3210", width=width)
        await_case(tab, "abi/case/3210")
        assert 0 <= tab.locator("#detail h2").bounding_box()["y"] < 500
    tab = visit(report, "#case=abi%2Fcase%2F3210")
    row = tab.locator("#list a[aria-current]")
    assert row.locator(".id").inner_text() == "abi/case/3210"
    assert 0 <= row.bounding_box()["y"] < 900


def caused(observation):
    """Three wrong values of one clause, a crash, and what passes."""
    wrong = {"checks": [CHECK], "reason": "the size", "verdict": "fail", "clauses": ["RT-10.1-01"]}
    crashed = {"verdict": "crash", "reason": "ended by SIGSEGV", "clauses": ["RT-12-01"]}
    lines = [observation(f"abi/size/{name}", **wrong) for name in "abc"]
    return [*lines, observation("runtime/launch/a", **crashed), observation("runtime/launch/b", clauses=["RT-12-02"])]


CHECK = {"kind": "equal", "passed": False, "what": "size", "expected": 1, "actual": 2, "difference": None}


def test_the_causes_stand_on_the_first_screen_and_lead_to_their_cases(visit, build, observation):
    report = build(caused(observation))
    tab = visit(report)
    rows = tab.locator("#cause-list li")
    assert rows.locator(".sentence").all_text_contents() == [
        "3 casesa wrong value, all of clause RT-10.1-01: size",
        "1 casethe implementation ends in execute (SIGSEGV)",
    ]
    first = rows.first.inner_text()
    assert "RT-10.1-01 What RT-10.1-01 demands" in first
    assert "1 clause holds once it is mended" in first
    assert "tessera-conformance reproduce abi/size/a --impl=" in first
    assert rows.last.bounding_box()["y"] < 600
    assert tab.locator("#by-document").bounding_box()["y"] < 800
    rows.first.locator(".sentence").click()
    tab.locator("#shown", has_text="3 of 5").wait_for()
    assert addressed(tab) == "#cause=1"
    assert tab.evaluate("document.getElementById('cases').getBoundingClientRect().top") < 100
    assert tab.locator("#followed").inner_text().startswith("cause 1: 3 cases: a wrong value")
    tab.click("#followed")
    assert len(cases_shown(tab)) == 5
    again = visit(report, "#cause=2")
    assert cases_shown(again) == ["runtime/launch/a"]
    again.locator("#cause-list .smallest a").first.click()
    await_case(again, "abi/size/a")
    assert addressed(again) == "#cause=1&case=abi/size/a"
    assert len(cases_shown(visit(report, "#cause=3"))) == 5


def test_causes_beyond_the_fourth_show_when_asked_for(visit, build, observation):
    verdicts = ("crash", "hang", "protocol_error", "harness_error", "not_run")
    tab = visit(build([observation(f"abi/{verdict}", verdict) for verdict in verdicts]))
    assert tab.locator("#cause-list li").count() == 4
    tab.click("#causes .more")
    assert tab.locator("#cause-list li").count() == 5
    assert tab.locator("#causes .more").count() == 0


def test_sections_without_anything_do_not_show(visit, build, observation):
    tab = visit(build([observation("abi/a")]))
    for name in ("problems", "causes", "rooflines"):
        assert tab.locator(f"#{name}").is_hidden(), name
    assert (
        tab.locator("#by-document > details > summary").all_inner_texts()[-1]
        == "2 documents without a case in this run"
    )
    tab.click("#by-document > details:has-text('Runtime') > summary .name")
    rows = tab.locator("#by-document details details > summary .name")
    rows.first.wait_for()
    assert rows.all_inner_texts() == ["section 10.1", "2 sections without a case in this run"]


def test_the_map_counts_cases_by_verdict_and_leads_to_them(visit, build, observations):
    tab = visit(build(observations))
    tab.click("#by-document > details:has-text('Runtime') > summary .name")
    section = tab.locator("#by-document details details:has-text('section 12') > summary")
    assert section.locator(".cells a").all_inner_texts() == ["1"] * 5
    section.locator(".cells a.is-crash").click()
    tab.locator("#shown", has_text="1 of 13").wait_for()
    assert addressed(tab) == "#verdict=crash&clause=RT-12-"
    assert cases_shown(tab) == ["runtime/launch/crash"]


@pytest.mark.parametrize("width", [320, 375, 768])
def test_nothing_is_wider_than_a_phone(visit, build, observation, observations, width):
    """Long names, commands and addresses break; no part of the page has to be moved sideways."""
    long = f"rpc:/opt/acme/{'deep/' * 40}runtime --device='acme-x1'"
    lines = [*observations, *caused(observation), observation(f"abi/{'long-name-' * 20}", "fail", checks=[CHECK])]
    implementation = {"label": long, "hello": None, "fault": None}
    tab = visit(build(lines, header={"implementation": implementation}), width=width)
    open_case(tab, "abi/long-name")
    tab.click("#by-document > details:has-text('Runtime') > summary .name")
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    for command in tab.locator(".command pre").all():
        assert command.evaluate("each => each.scrollWidth <= each.clientWidth")


def addressed(tab):
    return tab.evaluate("decodeURIComponent(location.hash)")


def test_the_filters_stand_in_the_address_and_come_back_from_it(visit, build, observations):
    report = build(observations)
    tab = visit(report)
    tab.click(".chip[data-verdict=fail]")
    tab.fill("#text", "matmul")
    tab.select_option("#document", "language_ir")
    tab.fill("#clause", "LANG-15")
    open_case(tab, "ir/matmul/nasty")
    address = addressed(tab)
    assert address == "#verdict=fail&text=matmul&clause=LANG-15&document=language_ir&case=ir/matmul/nasty"
    again = visit(report, "#level=MUST&verdict=fail,hang&text=ir%2F&case=ir%2Fmatmul%2Fnasty")
    assert set(cases_shown(again)) == {"ir/matmul/k-tail", "ir/matmul/nasty", "ir/known/rounding"}
    assert again.locator("#detail h2").inner_text() == "ir/matmul/nasty"
    assert again.locator(".chip[aria-pressed=true]").count() == 2
    assert again.locator("#level").input_value() == "MUST"
    again.click("#clear")
    assert addressed(again) == "#case=ir/matmul/nasty"


def test_an_address_that_says_nothing_known_shows_all(visit, build, observations):
    tab = visit(build(observations), "#verdict=nothing&case=nowhere&document=none&other=1")
    assert len(cases_shown(tab)) == 13


def test_going_back_restores_the_case_and_its_filters(visit, build, observations):
    tab = visit(build(observations), "#text=matmul")
    open_case(tab, "ir/matmul/nasty")
    tab.evaluate("location.hash = '#text=launch'")
    tab.locator("#shown", has_text="4 of 13").wait_for()
    tab.go_back()
    await_case(tab, "ir/matmul/nasty")
    assert len(cases_shown(tab)) == 2


WORDS = [  # dtype, storage code, decimal: by the definitions of the formats
    ("fp32", "3f800000", "1"),
    ("fp32", "3dcccccd", "0.1"),
    ("fp32", "80000000", "-0"),
    ("fp32", "7f800000", "Infinity"),
    ("fp32", "00000001", "1e-45"),
    ("fp64", "3fb999999999999a", "0.1"),
    ("fp16", "3c00", "1"),
    ("fp16", "fbff", "-65504"),
    ("fp16", "7c01", "NaN"),
    ("bf16", "c040", "-3"),
    ("bf16", "ff80", "-Infinity"),
    ("fp8_e4m3", "7e", "448"),
    ("fp8_e4m3", "7f", "NaN"),
    ("fp8_e4m3", "01", "0.001953125"),
    ("fp8_e5m2", "7b", "57344"),
    ("fp8_e5m2", "fc", "-Infinity"),
    ("int8", "80", "-128"),
    ("int16", "7fff", "32767"),
    ("int32", "ffffffff", "-1"),
    ("int64", "8000000000000000", "-9223372036854775808"),
    ("bool", "01", "true"),
    ("complex64", "3f800000c0000000", "(1, -2)"),
]


def test_words_are_shown_in_decimal_beside_hexadecimal_with_the_index(visit, build, observation):
    inputs = [{"$tensor": {"dtype": dtype, "shape": [1, 1], "bits": bits}} for dtype, bits, _ in WORDS]
    sent = [{"method": "a.b", "params": {"x": one}, "observation": {"returned": 1}, "run": {}} for one in inputs]
    tab = visit(build([observation("abi/a", exchanges=sent)]))
    open_case(tab, "abi/a")
    rows = [text.split("\n")[1].strip().split("  ") for text in tab.locator("#detail .tensor").all_inner_texts()]
    assert [(index, value) for index, _, value in rows] == [("[0, 0]", told) for _, _, told in WORDS]
    assert [digits.replace(" ", "") for _, digits, _ in rows] == [bits for _, bits, _ in WORDS]


def test_an_address_of_64_bits_keeps_its_digits(visit, build, observation):
    pointer = 12457238044535159809  # no double has this value
    sent = [{"method": "a.b", "params": {"x": [pointer, 0.5]}, "observation": {"returned": pointer}, "run": {}}]
    tab = visit(build([observation("abi/a", exchanges=sent)]))
    open_case(tab, "abi/a")
    assert tab.locator("#detail .exchanges pre").all_inner_texts() == [f"[{pointer},0.5]", str(pointer)]


def test_the_elements_that_differ_are_marked_wherever_they_stand(visit, build, observation):
    """300 elements, of which the last and one NaN of another payload differ; only the former is a difference."""
    expected = ["3f800000"] * 299 + ["40000000"]
    actual = ["7fc00001", *["3f800000"] * 298, "40000001"]
    expected[0] = "7fc00000"
    tensors = [{"$tensor": {"dtype": "fp32", "shape": [3, 100], "bits": "".join(bits)}} for bits in (expected, actual)]
    check = {"kind": "bits", "passed": False, "what": "the bits", "expected": tensors[0], "actual": tensors[1]}
    difference = {"reason": "bits differ", "index": [2, 99], "expected_bits": "0x40000000", "actual_bits": "0x40000001"}
    check["difference"] = difference | {"ulp": 1, "elements": 1, "of": 300}
    tab = visit(build([observation("ir/a", "fail", checks=[check], exchanges=[])]))
    await_case(tab, "ir/a")
    marks = tab.locator("#detail .checks .tensor mark")
    assert marks.all_inner_texts() == ["[2, 99]  40000000  2", "[2, 99]  40000001  2.0000002"]
    assert "... 43 more elements" in tab.locator("#detail .checks .tensor").first.inner_text()


def test_sections_have_the_titles_of_the_documents(visit, build, observations):
    tab = visit(build(observations), "#case=ir%2Fmatmul%2Fk-tail")
    assert "section 15: Appendix B" in tab.locator("#detail .clause-list").inner_text()


def test_a_pass_without_its_evidence_says_what_there_is_of_it(visit, build, observation):
    kept = {"checks": {"equal": 3, "bits": 1}, "exchanges": 4, "digest": "ab" * 12}
    tab = visit(build([observation("abi/a", evidence=kept)]))
    open_case(tab, "abi/a")
    detail = tab.locator("#detail").inner_text()
    assert "checks equal 3, bits 1; 4 exchanges; digest abab" in detail
    assert "reproduce abi/a" in detail


def test_a_run_of_sixteen_thousand_cases_opens_and_filters_within_a_second(visit, build, observation):
    """A page of the suite's size is under 5 MB, and it and a case of its last block are shown within a second."""
    kept = [
        {"checks": {"equal": 3}, "exchanges": 4, "digest": hashlib.md5(str(number).encode()).hexdigest()}
        for number in range(16_000)
    ]
    titles = [f"Case {number} of sixteen thousand: {one['digest']}" for number, one in enumerate(kept)]
    lines = [
        observation(f"ir/family-{number % 97}/case-{number:05}", evidence=kept[number], title=titles[number])
        for number in range(16_000)
    ]
    report = build(lines)
    tab = visit(report)
    assert (report.path.parent / "index.html").stat().st_size < 5_000_000
    times = []
    for _ in range(3):
        tab.reload()
        tab.locator("main:not([aria-busy])").wait_for()
        times.append(tab.evaluate("performance.mark('shown').startTime"))
    assert min(times) < 1000
    begun = tab.evaluate("performance.now()")
    tab.fill("#text", "case-15999")
    open_case(tab, "case-15999")
    assert tab.evaluate("performance.now()") - begun < 1000


# Several reports in one page: implementations side by side, their histories, and the badge of a report.


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
    actual = re.search(r'id="data">([A-Za-z0-9+/=]*)<', "".join(compared_page(three, registry)))
    assert actual is not None
    data = json.loads(gzip.decompress(base64.b64decode(actual[1])))
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
    actual = re.search(r'id="data">([A-Za-z0-9+/=]*)<', text)
    assert actual is not None
    assert json.loads(gzip.decompress(base64.b64decode(actual[1])))["notes"] == [
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
    actual = [text.split()[0] for text in tab.locator("#matrix .clause").all_inner_texts()]
    assert actual == ["RT-10.1-01", "RT-10.1-02"]
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


# The annotated specifications in a browser; their texts are made up.


@pytest.fixture
def visit_specifications(open_file, tmp_path):
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
    write_text(tmp_path / "index.html", first_page(registry.documents.values()))

    def go(name="collectives.html", address="", width=1400):
        return open_file(tmp_path / name, address, width)

    return go


def test_the_box_leaves_what_is_marked(visit_specifications):
    tab = visit_specifications()
    everything = tab.locator(".passage:visible").count()
    marked = tab.locator(".passage:has(.marks)").count()
    assert 0 < marked < everything
    tab.check("#open-only")
    assert tab.locator(".passage:visible").count() == marked


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("name", ["collectives.html", "index.html"])
def test_no_page_is_wider_than_its_window(visit_specifications, name, width):
    tab = visit_specifications(name, width=width)
    assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_notes_stand_beside_the_lines_and_on_a_phone_below_them(visit_specifications):
    for width, beside in ((1400, True), (360, False)):
        passage = visit_specifications(width=width).locator(".passage:has(#COLL-02\\.1-01)")
        lines, notes = passage.locator("pre").bounding_box(), passage.locator(".notes").bounding_box()
        assert (notes["x"] >= lines["x"] + lines["width"]) == beside
        assert (notes["y"] >= lines["y"] + lines["height"]) != beside


def test_a_link_to_an_interpretation_scrolls_to_it_and_its_note_unfolds(visit_specifications):
    tab = visit_specifications(address="#AMB-COLL-14")
    note = tab.locator("#AMB-COLL-14")
    assert note.evaluate("element => element.getBoundingClientRect().top < innerHeight")
    assert not note.locator("dl").is_visible()
    note.locator("> summary").click()
    assert note.locator("dl").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_scheme_of_the_system(visit_specifications, scheme):
    tab = visit_specifications()
    tab.emulate_media(color_scheme=scheme)
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(251, 251, 249)", "dark": "rgb(20, 24, 27)"}[scheme]


def test_notes_are_printed_unfolded(visit_specifications):
    tab = visit_specifications()
    tab.emulate_media(media="print")
    assert tab.locator("label").is_hidden()
    assert tab.locator("#AMB-COLL-14 dl").evaluate("element => element.getBoundingClientRect().height") > 0
