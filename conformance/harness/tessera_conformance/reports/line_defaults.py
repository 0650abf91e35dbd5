"""What an observation line leaves out because most lines would say the same: a field that has its default.

The file holds short lines; whoever reads it through `journal.read` has whole ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessera_conformance.verdicts import LEVELS

DEFAULTS: Mapping[str, Any] = {
    "levels": [*LEVELS],
    "needs": [],
    "judges": [],
    "disposition": "none",
    "reason": "",
}
"""By field, the value that is not written."""
EVIDENCE = ("digests", "all")
"""What a report keeps of cases that pass."""
LONG = ("checks", "exchanges")
"""The fields that a line with `evidence` does not have: they are known by counts and a digest."""


def short(line: Mapping[str, Any]) -> dict[str, Any]:
    """An observation as it is written."""
    gone = {name for name, value in DEFAULTS.items() if line.get(name) == value}
    gone |= {*LONG} if "evidence" in line else set()
    return {name: value for name, value in line.items() if name not in gone}


def whole(line: Mapping[str, Any]) -> dict[str, Any]:
    """An observation with every field, from one as it is written."""
    added = {name: value for name, value in DEFAULTS.items() if name not in line}
    return {**line, **added, **{name: [] for name in LONG if name not in line}}
