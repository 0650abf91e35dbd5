"""The report that a run keeps in memory equals the report file."""

from __future__ import annotations

import pytest

from tessera_conformance.reports.journal import JournalWriter, read


@pytest.mark.slow
def test_the_sealed_report_is_what_is_read_back(shared_checkout, tmp_path):
    done = shared_checkout.run()
    assert done.report.problem is None
    writer = JournalWriter(tmp_path / "report.jsonl")
    writer.header({key: value for key, value in done.report.header.items() if key not in ("record", "format")})
    plan = done.report.plan
    writer.plan(plan["cases"], plan["musts"], plan["profiles"])
    for line in reversed(done.report.observations):
        writer.observation({key: value for key, value in line.items() if key != "record"})
    kept, found = writer.finish(done.report.footer["problems"], {"seconds": 1}), read(tmp_path / "report.jsonl")
    assert (kept.header, kept.plan, kept.observations) == (found.header, found.plan, found.observations)
    assert (kept.footer, kept.problem, kept.claim) == (found.footer, found.problem, found.claim)
    assert found.observations == done.report.observations
