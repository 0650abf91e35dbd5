"""The command `interface` refuses a method whose clause the registry does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tessera_conformance.cli import main
from tessera_conformance.interface import generated
from tessera_conformance.interface.declarations import read_files


def test_an_unknown_clause_is_refused_with_its_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """RT-04.1-16 exists, RT-04.1-99 does not; nothing is written although `--write` is given."""
    path = tmp_path / "interface.toml"
    method = '[runtime.{}]\ncall = "() -> ()"\nclauses = ["{}"]\n'
    methods = method.format("tessOne", "RT-04.1-16") + method.format("tessTwo", "RT-04.1-99")
    path.write_text(f'[areas.runtime]\ntitle = "x"\n{methods}', encoding="utf-8")
    monkeypatch.setattr(generated, "interface", lambda: read_files([path]))
    monkeypatch.setattr(Path, "write_text", lambda *_arguments, **_options: pytest.fail("a file is written"))
    assert main(["interface", "--write"]) == 1
    told = capsys.readouterr().out
    assert told.count("error: ") == 1
    assert "there is no clause RT-04.1-99\n  where:    runtime.tessTwo\n" in told
