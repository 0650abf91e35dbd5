"""Enumerators and flags of the C interface (runtime specification, 4.1, 4.4, 4.6, 6)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.abi.kit.c_names import (
    COLLECTIVE_OPERATORS,
    COPY_KINDS,
    LAUNCH_FLAGS,
    MEMORY_KINDS,
    STATUSES,
)
from tessera_conformance.marks import clause, feature

pytestmark = feature("c-abi")

CONSTANTS = {
    **{name: (f"RT-04.1-{place:02}", place - 3) for place, name in enumerate(STATUSES, 3)},
    **{name: (f"RT-04.4-{place:02}", place - 1) for place, name in enumerate(MEMORY_KINDS, 1)},
    **{name: (f"RT-04.4-{place:02}", place - 7) for place, name in enumerate(COPY_KINDS, 7)},
    **{name: (f"RT-04.6-{place:02}", place - 1) for place, name in enumerate(COLLECTIVE_OPERATORS, 1)},
    "TESS_LAUNCH_DEFAULT": ("RT-06-07", 0),
    "TESS_LAUNCH_DETERMINISTIC": ("RT-06-08", 0b0001),
    "TESS_LAUNCH_CAPTURE": ("RT-06-10", 0b0010),
    "TESS_LAUNCH_PERSISTENT": ("RT-06-12", 0b0100),
    "TESS_LAUNCH_LOW_LATENCY": ("RT-06-14", 0b1000),
}

KINDS = {
    "statuses": ("TESS_OK", "TESS_ERR_", STATUSES, [f"RT-04.1-{number:02}" for number in range(3, 15)]),
    "memory-kinds": ("TESS_MEM_", "TESS_MEM_", MEMORY_KINDS, ["RT-04.4-01", "RT-04.4-02"]),
    "copy-kinds": ("TESS_COPY_", "TESS_COPY_", COPY_KINDS, ["RT-04.4-07", "RT-04.4-08", "RT-04.4-09"]),
    "collective-operators": (
        "TESS_COLL_",
        "TESS_COLL_",
        COLLECTIVE_OPERATORS,
        ["RT-04.6-01", "RT-04.6-02", "RT-04.6-03"],
    ),
    "launch-flags": (
        "TESS_LAUNCH_",
        "TESS_LAUNCH_",
        LAUNCH_FLAGS,
        ["RT-06-07", "RT-06-08", "RT-06-10", "RT-06-12", "RT-06-14"],
    ),
}


@pytest.mark.parametrize(
    ("name", "value"),
    [pytest.param(name, value, marks=clause(number), id=name) for name, (number, value) in CONSTANTS.items()],
)
def test_a_constant_has_the_value_of_its_table(impl, check, name, value):
    """An enumerator counts from 0 in the order of its declaration; a flag is the bit that the table gives it."""
    constants = check.returns(impl.abi.constants())["constants"]
    check.equal(constants.get(name), value, f"the value of {name}")


@pytest.mark.parametrize(
    ("first", "prefix", "names"),
    [
        pytest.param(first, prefix, names, marks=clause(*clauses), id=kind)
        for kind, (first, prefix, names, clauses) in KINDS.items()
    ],
)
def test_no_two_constants_of_a_kind_have_one_value(impl, check, first, prefix, names):
    """Each value names one constant; all the names of the specification are there."""
    constants = check.returns(impl.abi.constants())["constants"]
    actual = {name: value for name, value in constants.items() if name.startswith((first, prefix))}
    check.equal([name for name in names if name not in actual], [], "the constants that are missing")
    given = sorted(actual.values())
    check.equal(given, sorted(set(given)), "the values")
