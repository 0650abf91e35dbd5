"""Whatever is done to frozen vectors is noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.vectors.check import integrity
from tessera_conformance.vectors.files import canonical, digest


def reseal(folder: Path, path: Path, data: bytes) -> None:
    """Edit a file and cover it up in the manifest."""
    path.write_bytes(data)
    manifest = folder / "MANIFEST.json"
    document = json.loads(manifest.read_text(encoding="utf-8"))
    document["files"][path.relative_to(folder).as_posix()] = digest(data)
    manifest.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def test_an_untouched_folder_is_sound(frozen: Any) -> None:
    assert frozen("check") == (0, "2 vectors in 1 files compared with their sources: 0 problem(s)\n")
    assert frozen("check", "--recompute")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("mask", [0x01, 0x20, 0x80])
def test_every_flipped_byte_is_noticed(frozen: Any, mask: int) -> None:
    """Every byte of the vector file and of the manifest, and a byte in every 499 of the tensors."""
    for path in [frozen.lines, frozen.vectors / "MANIFEST.json", *frozen.vectors.glob("ir/*.bin")]:
        sound = path.read_bytes()
        for place in range(0, len(sound), 499 if path.suffix == ".bin" else 1):
            path.write_bytes(sound[:place] + bytes([sound[place] ^ mask]) + sound[place + 1 :])
            assert list(integrity(frozen.vectors)), f"{path.name} byte {place}"
        path.write_bytes(sound)
    assert list(integrity(frozen.vectors)) == []


def test_an_edited_line_is_noticed_without_the_manifest(frozen: Any) -> None:
    reseal(frozen.vectors, frozen.lines, frozen.lines.read_bytes().replace(b"3f800001", b"3f800002", 1))
    code, said = frozen("check")
    assert (code, "does not have the hash it names" in said, "sums.jsonl:2" in said) == (1, True, True)


def test_another_formatting_is_noticed(frozen: Any) -> None:
    reseal(frozen.vectors, frozen.lines, frozen.lines.read_bytes().replace(b'","', b'", "', 1))
    code, said = frozen("check")
    assert (code, "canonical form" in said) == (1, True)


def test_reordered_lines_are_noticed(frozen: Any) -> None:
    header, *cases = frozen.lines.read_bytes().splitlines(keepends=True)
    reseal(frozen.vectors, frozen.lines, b"".join([header, *reversed(cases)]))
    code, said = frozen("check")
    assert (code, "another order" in said) == (1, True)


def test_a_wrong_answer_that_was_sealed_is_found_by_computing_it_again(frozen: Any) -> None:
    header, ties, large = frozen.lines.read_text(encoding="utf-8").splitlines()
    case = json.loads(ties)
    case["expected"]["outputs"][0]["$tensor"]["bits"] = "3f800001" * 2 + "7fc00000"
    del case["sha256"]
    case["sha256"] = digest(canonical(case).encode())
    reseal(frozen.vectors, frozen.lines, "\n".join([header, canonical(case), large, ""]).encode())
    assert frozen("check")[0] == 0
    code, said = frozen("check", "--recompute")
    assert (code, "0x3f800000, expected 0x3f800001" in said) == (1, True)


def test_a_line_without_a_source_and_a_source_without_a_line(frozen: Any) -> None:
    frozen.edit_source('"large"', '"huge"')
    code, said = frozen("check")
    assert code == 1
    assert "this line has no source\n  where:  ir/sums/large" in said
    assert "this source case has no frozen line\n  where:  ir/sums/huge" in said


def test_a_source_that_asks_something_else(frozen: Any) -> None:
    frozen.edit_source("2.0**-23", "2.0**-22")
    code, said = frozen("check")
    assert (code, "differ in call" in said) == (1, True)


def test_missing_and_extra_files(frozen: Any) -> None:
    tensor = next(frozen.vectors.glob("ir/*.bin"))
    tensor.rename(tensor.with_name("other.bin"))
    code, said = frozen("check")
    assert code == 1
    assert "which is missing" in said
    assert "does not list this file" in said
    assert "there is no file" in said


def test_a_folder_without_a_manifest(frozen: Any) -> None:
    (frozen.vectors / "MANIFEST.json").unlink()
    code, said = frozen("check")
    assert (code, "there is no manifest" in said) == (1, True)


def test_nothing_frozen_is_not_sound(project: Any) -> None:
    assert project("check")[0] == 2
    project.vectors.mkdir()
    assert project("check")[0] == 1


def test_sources_that_are_not_there(frozen: Any) -> None:
    frozen.source.unlink()
    frozen.source.parent.rmdir()
    frozen.sources.rmdir()
    code, said = frozen("check")
    assert (code, "--sources" in said) == (2, True)
