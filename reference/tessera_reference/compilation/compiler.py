"""A compiler with a cache of its results: programs, texts, images and kernels, by their source content.

A result is immutable and depends on the arguments alone. Two compilers share nothing. Code that replaces functions of
this package, as the suite's violators do, creates a compiler afterwards: neither it nor another compiler sees the
other's results. Refusals are not cached. Each stage is imported on first use: a session that launches nothing needs
none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from ..abi.fatbin import Fatbin
from ..ir.operation import Module
from ..ir.targets import Target
from ..numerics.array import Array

if TYPE_CHECKING:
    from ..language.modules import CompiledModule
    from ..levels.execution import Level, Options
    from .executables import Executable, Reading

MOST = 128
"""The number of results cached of each kind, those used last."""


class Compiler:
    """A compiler that parses, lowers and prepares, each once for the same arguments."""

    def __init__(self) -> None:
        self._programs = lru_cache(MOST)(_program)
        self._texts = lru_cache(MOST)(_text)
        self._specials = lru_cache(MOST)(_specialized)
        self._lowered = lru_cache(MOST)(_lowered)
        self._images = lru_cache(MOST)(_image)
        self._executables = lru_cache(MOST)(partial(_executable, self.text))

    def program(self, source: str) -> CompiledModule:
        """Return a program as Graph IR. Raises as `compile_source` does."""
        return self._programs(source)

    def text(self, level: Level, text: str, target: Target, filename: str = "<ir>") -> tuple[Module, ...]:
        """Return the modules of a text at a level. Raises as `read_at` does."""
        return self._texts(level, text, target, filename)

    def lowered(
        self, module: Module, function: str, inputs: Mapping[str, Array], to: Level, target: Target, options: Options
    ) -> Module:
        """Return a function of Graph IR with its callees, lowered to a level for inputs of these shapes.

        Raises as `specialized` and `lower` do.
        """
        from ..levels.execution import LEVELS, shapes_of

        lowered = self._specials(module, function, tuple(shapes_of(module, function, inputs).items()))
        for level in LEVELS[1 : LEVELS.index(to) + 1]:
            lowered = self._lowered(lowered, level, target, options)
        return lowered

    def image(self, source: str, targets: Sequence[str], **options: Any) -> bytes:
        """Return the image of a program or text, with the options of `compile_module`. Raises as it does."""
        return self._images(source, tuple(targets), **options)

    def executable(self, fatbin: Fatbin, kernel: str, target: str, extents: Mapping[str, int]) -> Executable:
        """Return the executable of a module's kernel. Raises as `executables_of` does."""
        return self._executables(fatbin, kernel, target, tuple(extents.items()))


def _program(source: str) -> CompiledModule:
    from ..language.modules import compile_source

    return compile_source(source)


def _text(level: Level, text: str, target: Target, filename: str) -> tuple[Module, ...]:
    from ..levels.texts import read_at

    return read_at(level, text, target, filename)


def _specialized(module: Module, function: str, shapes: tuple[tuple[str, tuple[int, ...]], ...]) -> Module:
    from ..levels.execution import for_shapes

    return for_shapes(module, module.functions[function], dict(shapes))


def _lowered(module: Module, to: Level, target: Target, options: Options) -> Module:
    from ..levels.execution import lower_from_above

    return lower_from_above(module, to, target, options)


def _image(source: str, targets: tuple[str, ...], **options: Any) -> bytes:
    from .images import compile_module

    return compile_module(source, targets, **options)


def _executable(
    read: Reading, fatbin: Fatbin, kernel: str, target: str, extents: tuple[tuple[str, int], ...]
) -> Executable:
    from .executables import executables_of

    return executables_of(fatbin, kernel, target, dict(extents), read)
