"""Other words: a text for people is nobody's contract (runtime specification, 7; AMB-RT-82)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.strength import altered
from tessera_reference.abi.status import Failure
from tessera_reference.adapter import ReferenceAdapter

from .reach import RUNTIME

REACH = (*RUNTIME, "abi/*")


def terse(failure: Failure) -> Any:
    """The function, and that it failed."""
    return f"{failure.function}() échoua : non."


TERSE = altered(
    "AMB-RT-82",
    "says of a failure nothing but the function, in another language",
    REACH,
    ReferenceAdapter,
    (Failure, "__str__", terse),
    name="other_words",
)
