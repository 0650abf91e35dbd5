"""What is wrong with a text whose syntax is sound: collected, so that one reading reports many."""

from __future__ import annotations

from dataclasses import replace

from .diagnostics import Diagnostic, Location, Rejection
from .operation import Refusal
from .refusals import diagnostic_of
from .text_tokens import LONGEST_SHOWN, Tokens
from .text_tree import TextOperation

MOST_FOUND = 100
"""Findings after which the reading ends."""


class Findings:
    """Diagnostics, and the places of operations in the text. Raises `Rejection` once there are too many."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.found: list[Diagnostic] = []

    def report(self, operation: TextOperation, message: str, requirement: str, clause: str, remedy: str = "") -> None:
        """Keep a finding of category types about an operation; the reading goes on."""
        self.refused(Refusal("types", message, requirement, clause, remedy), operation)

    def refused(
        self,
        refusal: Refusal,
        operation: TextOperation,
        operands: tuple[str, ...] = (),
        place: tuple[int, int] | None = None,
    ) -> None:
        """Keep what was refused about an operation, or about the part of it at `place`."""
        place_found = self.tokens.location(*(place or (operation.start, operation.end)))
        message = f"{operation.name.rpartition('.')[2][:LONGEST_SHOWN]}: {refusal.message}"
        self.found.append(replace(diagnostic_of(refusal, place_found, operands), message=message))
        if len(self.found) == MOST_FOUND:
            raise Rejection(self.found)

    def place(self, operation: TextOperation) -> Location:
        """Where an operation comes from: the place that the text states, else where it stands in the text."""
        return operation.location or self.tokens.location(operation.start, operation.end)
