"""Numbers as the prototypes have them: within their bounds, and of no other type."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_reference.abi.status import Failure, Status
from tessera_reference.runtime.arguments import INT, SIZE, UNSIGNED, integer, one_of, required

BOUNDS = [(INT, -(2**31), 2**31 - 1), (UNSIGNED, 0, 2**32 - 1), (SIZE, 0, 2**64 - 1)]


def status_of(call: Any) -> Status:
    with pytest.raises(Failure) as caught:
        call()
    return caught.value.status


@pytest.mark.parametrize(("bounds", "least", "most"), BOUNDS)
def test_the_least_and_the_most_are_taken_and_nothing_beyond(bounds: Any, least: int, most: int) -> None:
    assert [integer("n", each, bounds) for each in (least, most)] == [least, most]
    for value in (least - 1, most + 1, float(most), True, None, "1"):
        assert status_of(lambda value=value: integer("n", value, bounds)) is Status.TESS_ERR_INVALID_VALUE


def test_an_enumeration_takes_its_numbers_only() -> None:
    assert one_of("kind", 1, [0, 1, 2], "0, 1 or 2") == 1
    for value in (3, -1, True, 1.0, "1", None):
        assert status_of(lambda value=value: one_of("kind", value, [0, 1, 2], "")) is Status.TESS_ERR_INVALID_VALUE


def test_null_is_zero_or_nothing_and_false_is_neither() -> None:
    for value in (None, 0):
        assert status_of(lambda value=value: required("p", value)) is Status.TESS_ERR_INVALID_VALUE
    assert required("p", b"") == b""
    assert required("p", False) is False
