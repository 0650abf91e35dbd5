"""Cases take the ids of devices from the implementation (AMB-RT-120)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tessera_conformance.reports.journal import Report


def test_the_listing_of_the_binding_runs_on_a_machine_with_other_ids(
    tmp_path: Path, run_suite: Callable[..., tuple[Report, str]]
) -> None:
    report, told = run_suite("py:other_devices:OtherDevices", "strict", tmp_path, "runtime/test_binding.py")
    verdicts = [line["verdict"] for line in report.observations]
    assert set(verdicts) == {"pass"}, told
    assert len(verdicts) >= 28
