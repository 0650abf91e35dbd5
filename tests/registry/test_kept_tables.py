"""TOML files kept as JSON: what is kept is used for the text that it was made from, and for nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tessera_conformance.registry import cache
from tessera_conformance.registry.cache import cache_folder, table_of

TEXT = '[a]\nnumbers = [1, 2]\ntext = "é"\n'
TABLE = {"a": {"numbers": [1, 2], "text": "é"}}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "some.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def kept() -> Path:
    (found,) = cache_folder().iterdir()
    return found


def test_a_table_is_parsed_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert table_of(file) == TABLE
    monkeypatch.setattr(cache, "read_toml", None)
    assert table_of(file) == TABLE


def test_a_text_that_changed_is_read_again(file: Path) -> None:
    table_of(file)
    file.write_text("b = 3\n", encoding="utf-8")
    assert table_of(file) == {"b": 3}
    assert json.loads(kept().read_text())["table"] == {"b": 3}


@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 10**5, '{"sha256":"0","table":{}}'])
def test_what_is_no_table_of_the_text_is_not_used(file: Path, content: str) -> None:
    table_of(file)
    kept().write_text(content, encoding="utf-8")
    assert table_of(file) == TABLE


def test_no_folder_to_write_to_is_no_failure(file: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("", encoding="utf-8")
    assert table_of(file) == TABLE


def test_a_date_is_read_each_time(file: Path) -> None:
    file.write_text("day = 2026-11-20\n", encoding="utf-8")
    assert str(table_of(file)["day"]) == "2026-11-20"
    assert list(cache_folder().glob("*")) == []


@pytest.mark.parametrize("text", [b"a =", b"\xff"])
def test_what_is_no_toml_raises(file: Path, text: bytes) -> None:
    file.write_bytes(text)
    with pytest.raises(ValueError, match=r"not TOML|can't decode"):
        table_of(file)
