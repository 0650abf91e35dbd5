"""Other words: a text for people is nobody's contract (runtime specification, 7; AMB-RT-82)."""

from __future__ import annotations

import re
from typing import Any

from tessera_conformance.strength import altered
from tessera_reference.abi.status import Failure
from tessera_reference.adapter import ReferenceAdapter

from .reach import RUNTIME, Lacking

REACH = (*RUNTIME, "abi/*")


NAMES = re.compile(r"TESSERA_\w+|\b(?:nvlink|pcie|rdma|nv)\w*|'[^']*'|\b(?:ring|tree|direct|halving_doubling)\b", re.I)
"""Names that a text has to keep: variables and their values, links (AMB-RT-181, COLL-01-06)."""


def terse(failure: Failure) -> Any:
    """The function, that it failed, and names."""
    named = NAMES.findall(f"{failure.given} {failure.allowed}")
    return f"{failure.function}() échoua : {' '.join(named)}"


TERSE = altered(
    "AMB-RT-82",
    "says of a failure nothing but function and names, in another language",
    REACH,
    ReferenceAdapter,
    (Failure, "__str__", terse),
    name="other_words",
)


class Wordless(Lacking):
    """The reference without the claim that its messages name what is wrong."""

    absent = ("last-error",)


WORDLESS = altered(
    "AMB-RT-82",
    "says of a failure that there is one, and claims no more",
    ("collectives/[acelpqstw]*", "runtime/algorithm*", "runtime/link*"),
    Wordless,
    (Failure, "__str__", lambda failure: f"{failure.function} failed"),
    name="no_words",
)
