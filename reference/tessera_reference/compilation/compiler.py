"""A compiler that keeps what it made: programs, texts, images and kernels, by the content that they come from.

What it keeps is immutable and depends on the arguments alone. Two compilers share nothing: code that replaces functions
of this package, as the suite's violators do, makes a compiler after that, which never meets results of the functions
that were replaced, nor do other compilers meet its own. Refusals are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ..abi.fatbin import Fatbin
from ..ir.module import Module
from ..ir.targets import Target
from ..language import CompiledModule, compile_source
from ..levels.execution import LEVELS, Level, Options, for_shapes, lower_from_above, shapes_of
from ..levels.texts import read_at
from ..numerics.array import Array
from .executables import Executable, executables_of
from .images import compile_module

__all__ = ["Compiler"]

MOST = 128
"""Results of a kind that are kept, those used last."""


class Compiler:
    """Compiles, reads and prepares, each once for the same arguments."""

    def __init__(self) -> None:
        self._programs = lru_cache(MOST)(compile_source)
        self._texts = lru_cache(MOST)(read_at)
        self._specials = lru_cache(MOST)(_specialized)
        self._lowered = lru_cache(MOST)(lower_from_above)
        self._images = lru_cache(MOST)(compile_module)
        self._executables = lru_cache(MOST)(_executable)

    def program(self, source: str) -> CompiledModule:
        """A program as Graph IR. Raises as `compile_source`."""
        return self._programs(source)

    def text(self, level: Level, text: str, target: Target) -> tuple[Module, ...]:
        """The modules of a text of a level. Raises as `read_at`."""
        return self._texts(level, text, target)

    def lowered(
        self, module: Module, function: str, inputs: Mapping[str, Array], to: Level, target: Target, options: Options
    ) -> Module:
        """A function of Graph IR and what it runs, for inputs of these shapes, at a level, through those above it.

        Raises as `specialized` and `lower`.
        """
        found = self._specials(module, function, tuple(shapes_of(module, function, inputs).items()))
        for level in LEVELS[1 : LEVELS.index(to) + 1]:
            found = self._lowered(found, level, target, options)
        return found

    def image(self, source: str, targets: Sequence[str], **options: Any) -> bytes:
        """The image of a program or text, with the options of `compile_module`. Raises as that."""
        return self._images(source, tuple(targets), **options)

    def executable(self, fatbin: Fatbin, kernel: str, target: str, extents: Mapping[str, int]) -> Executable:
        """A kernel of a module ready to run. Raises as `executables_of`."""
        return self._executables(fatbin, kernel, target, tuple(extents.items()))


def _specialized(module: Module, function: str, shapes: tuple[tuple[str, tuple[int, ...]], ...]) -> Module:
    return for_shapes(module, module.functions[function], dict(shapes))


def _executable(fatbin: Fatbin, kernel: str, target: str, extents: tuple[tuple[str, int], ...]) -> Executable:
    return executables_of(fatbin, kernel, target, dict(extents))
