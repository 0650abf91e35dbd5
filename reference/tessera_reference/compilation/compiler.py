"""A compiler that keeps what it made: programs, IR texts and images, by the text and the options they come from.

What it keeps is immutable and depends on the arguments alone, so that a caller cannot tell whether it was made now or
before. Nothing is shared between two compilers: whoever swaps functions of this package for others, as the violators
of the suite do, makes a compiler after the swap, which never meets what the right functions made, nor they its own.
Refusals are not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..ir.module import Module
from ..ir.targets import Target
from ..language import CompiledModule, compile_source
from ..levels.execution import Level
from ..levels.texts import read_at
from .images import compile_module

__all__ = ["Compiler"]

MOST = 128
"""Results of a kind that are kept, those used last."""


class Compiler:
    """Compiles programs and reads IR texts, each once for the same arguments."""

    def __init__(self) -> None:
        self._programs = lru_cache(MOST)(compile_source)
        self._texts = lru_cache(MOST)(read_at)
        self._images = lru_cache(MOST)(compile_module)

    def program(self, source: str) -> CompiledModule:
        """A program as Graph IR. Raises as `compile_source`."""
        return self._programs(source)

    def read(self, level: Level, text: str, target: Target, filename: str = "<ir>") -> tuple[Module, ...]:
        """The modules of a text of a level. Raises as `read_at`."""
        return self._texts(level, text, target, filename)

    def image(self, source: str, targets: Sequence[str], **options: Any) -> bytes:
        """The image of a program or text, with the options of `compile_module`. Raises as that."""
        return self._images(source, tuple(targets), **options)
