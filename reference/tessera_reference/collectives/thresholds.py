"""Tables from message size to algorithm, which are data (collectives spec 3.1, 8).

COLL-03.1-01 to -04, COLL-08-12, COLL-08-17; AMB-COLL-44.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise

from ..abi.status import Failure, Status
from ..numerics.errors import shown
from . import schedules
from .argument_checks import require_known
from .chunk_sizes import UNITS

__all__ = ["ALGORITHMS", "Row", "parse_table", "row_of", "tables"]

ALGORITHMS = tuple(schedules.ALGORITHMS)

SIZE = re.compile(r"([0-9]{1,18})(B|KiB|MiB|GiB|)")


@dataclass(frozen=True)
class Row:
    """The algorithm of messages up to a size in bytes, that size included; None for all that are larger."""

    up_to: int | None
    algorithm: str


def parse_table(text: str, where: str) -> tuple[Row, ...]:
    """The rows of a text such as `16KiB:direct,1MiB:tree,:ring`; sizes ascend, and the last row alone has none.

    Raises `Failure` with TESS_ERR_INVALID_VALUE naming `where` and the row.
    """
    rows = tuple(_row(each.strip(), where) for each in text.split(","))
    sizes = [row.up_to for row in rows[:-1]]
    bounds = [size for size in sizes if size is not None]
    if rows[-1].up_to is not None or len(bounds) < len(sizes):
        raise _refused(where, shown(text), "sizes in every row but the last, which has none: 1MiB:tree,:ring")
    if any(a >= b for a, b in pairwise(bounds)):
        raise _refused(where, shown(text), "sizes that ascend")
    return rows


def row_of(table: Sequence[Row], bytes: int) -> Row:
    """The row of a message."""
    return next(row for row in table if row.up_to is None or bytes <= row.up_to)


@cache
def tables() -> Mapping[str, tuple[Row, ...]]:
    """The table of every collective, as the package has it."""
    text = files(__package__).joinpath("thresholds.toml").read_text(encoding="utf-8")
    return {collective: parse_table(rows, "thresholds.toml") for collective, rows in tomllib.loads(text).items()}


def _row(text: str, where: str) -> Row:
    size, colon, algorithm = text.partition(":")
    found = SIZE.fullmatch(size)
    if not colon or (size and not found):
        raise _refused(where, f"row {shown(text)}", "a size in bytes, KiB, MiB or GiB, a colon and an algorithm")
    require_known(where, "algorithm", algorithm, ALGORITHMS)
    return Row(int(found[1]) * UNITS[found[2] or "B"] if found else None, algorithm)


def _refused(where: str, given: str, expected: str) -> Failure:
    return Failure(Status.TESS_ERR_INVALID_VALUE, where, given, expected)
