"""The C headers, which are written by hand, declare what the interface says, and say of each function what it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tessera_conformance.chapters.abi.kit.c_header import read_header
from tessera_conformance.interface.c_declarations import CFunction, c_functions, declarations

FOLDER = Path(__file__).parents[2] / "reference/tessera_reference/abi"
HEADER = (FOLDER / "tessera.h").read_text(encoding="utf-8")
EXTENSIONS = (FOLDER / "tessera_ext.h").read_text(encoding="utf-8")
BOTH = HEADER + EXTENSIONS

DECLARED = read_header(declarations())
WRITTEN = read_header(BOTH)
FUNCTIONS = {each.name: each for each in c_functions().values()}
COMMENTED = re.compile(r"/\*\n((?: \*[^\n]*\n)+?) \*/\ntessStatus_t (\w+)\(")
COMMENTS = {name: re.sub(r"\n \* +", " ", comment) for comment, name in COMMENTED.findall(BOTH)}


def clauses_in(comment: str) -> set[str]:
    """The clauses that a comment names; `RT-04.6-08 to 13`, `RT-04.3-09 to RT-04.3-12` are all of them in between."""
    found = set()
    for section, first, last in re.findall(r"\b([A-Z]+-[\w.]+)-(\d\d)(?: to (?:[\w.-]+-)?(\d\d))?", comment):
        found |= {f"{section}-{number:02}" for number in range(int(first), int(last or first) + 1)}
    return found


def test_every_function_is_declared() -> None:
    """And no other one."""
    assert set(WRITTEN.functions) == {*DECLARED.functions, "tessxOutcome"}


@pytest.mark.parametrize("name", DECLARED.functions)
def test_a_function_has_its_prototype(name: str) -> None:
    found, wanted = WRITTEN.prototype(name), DECLARED.prototype(name)
    assert found == wanted


@pytest.mark.parametrize("name", ["tessMeshAxes", "tessLaunchConfig", "tessNumericsPolicy", "tessApi"])
def test_a_structure_has_its_members(name: str) -> None:
    assert WRITTEN.members(name) is not None
    assert WRITTEN.members(name) == DECLARED.members(name)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_says_what_it_is(function: CFunction) -> None:
    """Above it stands a sentence, and the clauses that the interface names."""
    comment = COMMENTS[function.name]
    assert re.match(r" \* [A-Z].*\.", comment)
    assert clauses_in(comment) >= set(function.method.clauses)


def test_the_table_is_in_the_order_of_the_header() -> None:
    members = [name for name, _ in WRITTEN.members("tessApi") or ()]
    assert members[:3] == ["struct_size", "major", "minor"]
    assert members[3:] == [name for name in read_header(HEADER).functions if name != "tessGetApi"]
