"""Answers with control and format characters wherever it may: they clear a screen, and turn the reading order."""

from __future__ import annotations

from echo import Echo

ACTING = "\x1b[2J\x9b2K\u202egnp\u2066\u200b\x07"


class Acting(Echo):
    def hello(self) -> dict:
        return {**super().hello(), "implementation": {"name": ACTING, "version": ACTING}}

    def language_execute(self, **params: object) -> dict:
        raise RuntimeError(ACTING)
