"""The reference answers generated programs as it must."""

from __future__ import annotations

import pytest

from tessera_conformance.cli import main


@pytest.mark.parametrize("seed", [11, 12])
def test_the_reference_is_without_findings(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["fuzz", "--impl=reference", "--count=150", f"--seed={seed}"])
    assert code == 0, capsys.readouterr().out
