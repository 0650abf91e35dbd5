"""The content of a refusal: its status, and words that its message holds."""

from __future__ import annotations

from tessera_conformance.check import Check
from tessera_conformance.protocol import Observation, Rejected


def refused(check: Check, observation: Observation, status: str, *words: str) -> None:
    """The call is refused with this status, and the message names all of these where words are judged."""
    check.status(observation, status)
    message = observation.message if isinstance(observation, Rejected) else ""
    check.names(message, *words)
