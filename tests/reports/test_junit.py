"""The report as JUnit XML."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from tessera_conformance.reports.journal import read
from tessera_conformance.reports.junit import junit

EXPECTED = {
    "abi/buffer/padding": None,
    "abi/buffer/size": None,
    "ir/matmul/k-tail": ("failure", "fail"),
    "ir/matmul/nasty": ("failure", "fail"),
    "ir/known/rounding": ("skipped", "known_deviation"),
    "ir/known/waived": ("skipped", "waived"),
    "ir/known/unexpected": ("failure", "unexpected_pass"),
    "runtime/launch/crash": ("error", "crash"),
    "runtime/launch/hang": ("error", "hang"),
    "runtime/launch/garbled": ("error", "protocol_error"),
    "runtime/launch/harness": ("error", "harness_error"),
    "runtime/fp8/cast": ("skipped", "unsupported"),
    "collectives/ring/order": ("skipped", "inapplicable"),
    "abi/never": ("error", "not_run"),
}


@pytest.fixture
def root(build, registry, observations):
    report = build(observations, planned=["abi/never"], problems=["deviation 'x' expired"])
    return ElementTree.fromstring("".join(junit(report, registry)).encode())


def properties(case):
    return [(one.get("name"), one.get("value")) for one in case.iterfind("properties/property")]


def test_every_verdict_has_its_element(root):
    found = {}
    for case in root.iter("testcase"):
        results = [child for child in case if child.tag in ("failure", "error", "skipped")]
        assert len(results) <= 1
        name = dict(properties(case)).get("case", "problem")
        found[name] = (results[0].tag, results[0].get("type")) if results else None
    assert found == EXPECTED | {"problem": ("error", "problem")}


def test_the_structure_is_what_readers_expect(root):
    assert root.tag == "testsuites"
    assert [suite.get("name") for suite in root] == ["abi", "collectives", "ir", "runtime", "report"]
    for element in [root, *root]:
        cases = list(element.iter("testcase"))
        assert element.get("tests") == str(len(cases))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert element.get(attribute) == str(sum(case.find(tag) is not None for case in cases))
    for case in root.iter("testcase"):
        assert set(case.keys()) == {"classname", "name", "time"}
        assert float(case.get("time")) >= 0
        order = ["properties", "skipped", "error", "failure", "system-out", "system-err"]
        tags = [child.tag for child in case]
        assert tags == sorted(tags, key=order.index)


def test_clauses_verdict_and_disposition_are_properties(root):
    case = next(case for case in root.iter("testcase") if case.get("name") == "rounding")
    assert case.get("classname") == "ir.known"
    assert {("clause", "LANG-05-01"), ("verdict", "fail"), ("disposition", "known_deviation")} <= set(properties(case))
    assert "rounds twice (owner ada, until 2027-01-01)" in case.find("skipped").get("message")


def test_what_a_case_judged_is_a_property(build, registry, observation):
    report = build([observation("abi/a", judges=["effect", "refusal"])])
    (case,) = ElementTree.fromstring("".join(junit(report, registry))).iter("testcase")
    assert [value for name, value in properties(case) if name == "judges"] == ["effect", "refusal"]


def test_what_xml_forbids_is_escaped_and_markup_stays_text(root):
    nasty = next(case for case in root.iter("testcase") if case.get("name") == "nasty")
    assert nasty.find("failure").get("message") == "<script>alert(1)</script> ]]> & \\x00\\x1b\ud7ff\\ufffe"
    crash = next(case for case in root.iter("testcase") if case.get("name") == "crash")
    assert crash.find("system-err").text == "Segmentation fault\\x1b[31m at 0x0"


def test_an_invalid_report_is_an_error(killed, registry, observation):
    root = ElementTree.fromstring("".join(junit(read(killed([observation("abi/a")])), registry)))
    assert root.get("errors") == "1"
    assert "did not end" in root.find("testsuite[@name='report']/testcase/error").get("message")
