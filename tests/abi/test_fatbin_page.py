"""The page of fatbins: its image is one, and says what the page says."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from tessera_reference.abi.fatbin import Fatbin, KernelEntry, KernelParameter, Metadata, Section, read, write
from tessera_reference.abi.fatbin.image import KINDS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def page() -> str:
    return (DOCS / "fatbin.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def image(page: str) -> bytes:
    """The bytes of the dump, whose offsets must go on where the line before ends."""
    found = b""
    for offset, line in re.findall(r"^0x([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)", page, re.MULTILINE):
        assert int(offset, 16) == len(found)
        found += bytes.fromhex(line)
    return found


def test_the_image_is_the_module_that_the_page_names(image: bytes) -> None:
    parameters = (
        KernelParameter("x", "ptr", "fp32", ("n",), written=True),
        KernelParameter("n", "int32"),
        KernelParameter("factor", "fp32"),
    )
    module = Fatbin(
        abi_version=(1, 0),
        ir_hash=hashlib.sha256(b"module sample").digest(),
        targets=("sm_90",),
        sections=(Section("graph-ir", None, b"module sample"), Section("ptx", "sm_90", b".version 8.0")),
        metadata=Metadata((KernelEntry("scale", "sample", parameters, None, (128, 1, 1)),)),
    )
    assert read(image) == module
    assert write(module) == image


def test_the_dump_says_what_the_bytes_are(page: str, image: bytes) -> None:
    assert f"image size {len(image)}\n" in page
    for offset, count in re.findall(r"offset 0x([0-9a-f]{4})\n.*  (\d+) bytes\n", page):
        assert f"\n0x{offset}  " in page
        assert f"\n0x{int(offset, 16) + int(count):04x}  " in page


def test_every_kind_of_section_is_in_the_table(page: str) -> None:
    rows = re.findall(r"^\| (\d) \| `([a-z-]+)` \| (?:yes|no) \|", page, re.MULTILINE)
    assert {name: int(number) for number, name in rows} == KINDS


def test_the_page_is_linked() -> None:
    assert "\nfatbin\n" in (DOCS / "index.md").read_text(encoding="utf-8")
