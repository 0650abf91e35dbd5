"""What is fixed as data: versions and address spaces (runtime spec 9, 16)."""

from __future__ import annotations

import pytest

from tessera_reference.abi import ABI_VERSION, ADDRESS_SPACES, RUNTIME_VERSION
from tessera_reference.abi.status import is_compatible


def test_the_address_spaces_of_the_specification() -> None:
    rows = [(each.number, each.name, each.purpose) for each in ADDRESS_SPACES]
    assert rows == [
        (0, "generic", "Generic (ptr casts)"),
        (1, "global", "Global (HBM)"),
        (3, "shared", "Shared (SMEM/LDS)"),
        (4, "constant", "Constant"),
        (5, "local", "Local (stack spills)"),
    ]


def test_one_number_serves_every_backend() -> None:
    for each in ADDRESS_SPACES:
        assert each.llvm == each.nvvm == each.rocdl == each.number


def test_the_runtime_version_begins_with_the_abi_version() -> None:
    assert RUNTIME_VERSION[:2] == ABI_VERSION == (1, 0)


@pytest.mark.parametrize(
    ("module", "runtime", "loads"),
    [
        ((1, 0), (1, 0), True),
        ((1, 0), (1, 3), True),
        ((1, 3), (1, 3), True),
        ((1, 4), (1, 3), False),
        ((2, 0), (1, 3), False),
        ((0, 3), (1, 3), False),
        ((1, 3), (2, 0), False),
    ],
)
def test_another_major_or_a_newer_minor_is_incompatible(
    module: tuple[int, int], runtime: tuple[int, int], loads: bool
) -> None:
    assert is_compatible(module, runtime) is loads
