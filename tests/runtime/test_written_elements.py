"""Which bytes a launch leaves in a tensor that its kernel reads and writes (AMB-RT-56, AMB-RT-96)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from tessera_reference.compilation.images import compile_module

SOURCE = """module written {
  kernel truth(x: tensor<4xbool>) { x[0:2] = true; }
  kernel twice(x: tensor<2xfp32>) { x = x * 2; }
}
"""


@pytest.fixture(scope="module")
def image() -> bytes:
    return compile_module(SOURCE, ["sm_90"])


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("truth", bytes([5, 0, 1, 0]), bytes([1, 1, 1, 0])),
        ("twice", struct.pack("<If", 0x7FC00001, 1.5), struct.pack("<If", 0x7FC00000, 3.0)),
    ],
)
def test_what_is_written_has_the_bytes_of_its_dtype(
    used: Callable[..., Any], name: str, before: bytes, after: bytes
) -> None:
    """Also where the memory holds others of the same value: another byte that is true, another NaN."""
    it = used(1)
    it.ask("tessxPoke", it.mesh, 0, it.memory, before)
    it.launch(it.kernel(name), struct.pack("<Q", it.memory))
    it.ask("tessStreamSynchronize", it.stream)
    assert bytes(it.ask("tessxPeek", it.mesh, 0, it.memory, len(after))) == after
