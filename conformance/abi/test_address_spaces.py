"""The address spaces (runtime specification, section 9)."""

from __future__ import annotations

import pytest

from tessera_conformance.marks import clause, feature

pytestmark = feature("address-spaces")

SPACES = {0: "generic", 1: "global", 3: "shared", 4: "constant", 5: "local"}


def table(impl, check):
    """The rows of the table, each with its number once."""
    spaces = check.returns(impl.abi.address_spaces())["spaces"]
    numbers = [space["number"] for space in spaces]
    check.equal(sorted(numbers), sorted(set(numbers)), "the numbers of the spaces, each once")
    return spaces


@pytest.mark.parametrize(
    ("number", "purpose"),
    [
        pytest.param(number, purpose, marks=clause(f"RT-09-{place:02}"), id=purpose)
        for place, (number, purpose) in enumerate(SPACES.items(), 1)
    ],
)
def test_an_address_space_has_one_number_and_one_purpose(impl, check, number, purpose):
    """A space has the same number in LLVM, NVVM and ROCDL, and no other has its purpose."""
    actual = [space for space in table(impl, check) if space["purpose"] == purpose or space["number"] == number]
    row = {"number": number, "purpose": purpose, "llvm": number, "nvvm": number, "rocdl": number}
    check.equal(actual, [row], f"the space of {purpose} memory")


@clause("RT-09-09")
def test_one_number_serves_every_backend(impl, check):
    """In every row of the table the three backends have the number of the space."""
    for space in table(impl, check):
        expected = [space["number"]] * 3
        check.equal(
            [space["llvm"], space["nvvm"], space["rocdl"]], expected, f"the numbers of {space['purpose']} memory"
        )
