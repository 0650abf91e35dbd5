"""What a line of a report leaves out: of an observation fields with their default, of the plan what cases share.

The file holds short lines; whoever reads it through `journal.read` has whole ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tessera_conformance.verdicts import LEVELS

DEFAULTS: Mapping[str, Any] = {
    "levels": [*LEVELS],
    "needs": [],
    "judges": ["effect"],
    "disposition": "none",
    "reason": "",
    "cause": "",
    "interpretation": "",
    "leans": [],
    "cites": [],
    "methods": [],
    "traits": [],
}
"""By field, the value that is not written."""
EVIDENCE = ("digests", "all")
"""What a report keeps of cases that pass."""
LONG = ("checks", "exchanges")
"""The fields that a line with `evidence` does not have: they are known by counts and a digest."""


def short(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line as it is written."""
    if line.get("record") == "plan":
        return {**line, "cases": _by_folder(line["cases"])}
    if line.get("record") != "observation":
        return dict(line)
    gone = {name for name, value in DEFAULTS.items() if line.get(name) == value}
    gone |= {*LONG} if "evidence" in line else set()
    return {name: value for name, value in line.items() if name not in gone}


def whole(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line with every field, from one as it is written."""
    if line["record"] == "plan":
        return {**line, "cases": _listed(line["cases"])}
    if line["record"] != "observation":
        return dict(line)
    added = {name: value for name, value in DEFAULTS.items() if name not in line}
    return {**line, **added, **{name: [] for name in LONG if name not in line}}


def _by_folder(cases: Sequence[str]) -> dict[str, list[str]]:
    """The last names of cases, by what stands before them: most tests have many cases."""
    found: dict[str, list[str]] = {}
    for case in cases:
        before, slash, last = case.rpartition("/")
        found.setdefault(before + slash, []).append(last)
    return found


def _listed(folders: Mapping[str, Sequence[str]]) -> list[str]:
    """Every case in order of its id."""
    return sorted(folder + last for folder, names in folders.items() for last in names)
