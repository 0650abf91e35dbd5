"""A control case uses its own construct and none after it, so that what blocks a case is what fails in it."""

from __future__ import annotations

import re

import pytest

from tessera_conformance.locations import clauses_directory
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import load_registry
from tessera_conformance.strength.matrix import put, suite_of
from tessera_conformance.suite_run import SuiteRun
from tessera_conformance.transports.direct import DirectTransport
from tessera_reference.adapter import ReferenceAdapter

REGISTRY = load_registry(clauses_directory())


@pytest.mark.slow
def test_the_program_of_a_control_case_has_its_construct_and_none_after_it():
    constructs = [construct for construct in REGISTRY.constructs if construct.pattern]
    items = {item.stash[CASE].id: item for item in suite_of(["ir/constructs/", "ir/readings-of-texts/"]).items}
    run = SuiteRun(DirectTransport(ReferenceAdapter, "reference"), REGISTRY)
    for place, construct in enumerate(constructs):
        case, judgement = put(run, items[construct.control])
        assert judgement.verdict == "pass"
        source = case.exchanges[0].params["source"]
        uses = [other for other, row in enumerate(constructs) if re.search(row.pattern, source, re.MULTILINE)]
        assert place in uses, f"{construct.id}: its pattern does not find {source!r}"
        assert max(uses) == place, f"{construct.id}: its program uses {constructs[max(uses)].id} too"
