"""The content of a refusal: its status, and words in its message."""

from __future__ import annotations

from tessera_conformance.check import Check
from tessera_conformance.protocol import Observation, Rejected


def refused(check: Check, observation: Observation, status: str, *words: str) -> None:
    """Check that the call is refused with this status, and that its message names all of these if words are judged."""
    check.status(observation, status)
    message = observation.message if isinstance(observation, Rejected) else ""
    check.names(message, *words)
