"""A compiler with a cache of its results: programs, texts, images and kernels, by their source content.

A result is immutable and depends on the arguments alone. Two compilers share nothing. Code that replaces functions of
this package, as the suite's violators do, creates a compiler afterwards: neither it nor another compiler sees the
other's results. Refusals are not cached. Each stage is imported on first use: a session that launches nothing needs
none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

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

T = TypeVar("T")


class Compiler:
    """A compiler that parses, lowers and prepares, each once for the same arguments."""

    def __init__(self) -> None:
        self._cached: dict[Callable[..., Any], Callable[..., Any]] = {}

    def _once(self, function: Callable[..., T], *arguments: Hashable, **options: Any) -> T:
        """Return the result of a function, computed once for these arguments."""
        if function not in self._cached:
            self._cached[function] = lru_cache(MOST)(function)
        result: T = self._cached[function](*arguments, **options)
        return result

    def program(self, source: str) -> CompiledModule:
        """Return a program as Graph IR. Raises as `compile_source` does."""
        from ..language.modules import compile_source

        return self._once(compile_source, source)

    def text(self, level: Level, text: str, target: Target, filename: str = "<ir>") -> tuple[Module, ...]:
        """Return the modules of a text at a level. Raises as `read_at` does."""
        from ..levels.texts import read_at

        return self._once(read_at, level, text, target, filename)

    def lowered(
        self, module: Module, function: str, inputs: Mapping[str, Array], to: Level, target: Target, options: Options
    ) -> Module:
        """Return a function of Graph IR with its callees, lowered to a level for inputs of these shapes.

        Raises as `specialized` and `lower` do.
        """
        from ..levels.execution import LEVELS, lower_from_above, shapes_of

        lowered = self._once(_specialized, module, function, tuple(shapes_of(module, function, inputs).items()))
        for level in LEVELS[1 : LEVELS.index(to) + 1]:
            lowered = self._once(lower_from_above, lowered, level, target, options)
        return lowered

    def image(self, source: str, targets: Sequence[str], **options: Any) -> bytes:
        """Return the image of a program or text, with the options of `compile_module`. Raises as it does."""
        from .images import compile_module

        return self._once(compile_module, source, tuple(targets), **options)

    def executable(self, fatbin: Fatbin, kernel: str, target: str, extents: Mapping[str, int]) -> Executable:
        """Return the executable of a module's kernel. Raises as `executables_of` does."""
        return self._once(_executable, fatbin, kernel, target, tuple(extents.items()), self.text)


def _specialized(module: Module, function: str, shapes: tuple[tuple[str, tuple[int, ...]], ...]) -> Module:
    from ..levels.execution import for_shapes

    return for_shapes(module, module.functions[function], dict(shapes))


def _executable(
    fatbin: Fatbin, kernel: str, target: str, extents: tuple[tuple[str, int], ...], read: Reading
) -> Executable:
    from .executables import executables_of

    return executables_of(fatbin, kernel, target, dict(extents), read)
