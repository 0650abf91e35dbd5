"""Cache keys that do not distinguish shapes and dtypes of equally many bytes (runtime specification, 8.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

from tessera_conformance.strength import replaced
from tessera_reference.abi import cache
from tessera_reference.abi.cache import CacheKey
from tessera_reference.adapter import make
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.runtime.launches import CodeCache, LoadedModule

from .cache import keyed

EXECUTABLE, NAME = CodeCache.executable, cache.entry_name


def extents(key: CacheKey) -> list[tuple[str, tuple[int, ...]]]:
    """Return the shape of each tensor, by name."""
    return [(name, shape) for name, shape in key.shape]  # type: ignore[union-attr,misc]


def width(name: Any) -> str:
    """Return the bytes of an element, as text."""
    return str(DTYPES[name].storage_bytes) if name in DTYPES else str(name)


def by_width(key: CacheKey) -> CacheKey:
    return replace(key, dtype=tuple(width(name) for _, name in key.dtype), kernel=key.kernel[0])  # type: ignore[union-attr,misc,index]


def by_size(
    self: CodeCache, module: LoadedModule, entry: Any, target: str, given: Mapping[str, int], policy: Any
) -> Any:
    known = (entry.name, prod(given.values()), policy)
    if known not in module.executables:
        module.executables[known] = EXECUTABLE(self, module, entry, target, given, policy)
    return module.executables[known]


def by_first_extent(
    self: CodeCache, module: LoadedModule, entry: Any, target: str, given: Mapping[str, int], policy: Any
) -> Any:
    known = (entry.name, target, tuple(given.values())[:1], policy)
    if known not in module.executables:
        module.executables[known] = EXECUTABLE(self, module, entry, target, given, policy)
    return module.executables[known]


def whatever_collective(kind: str, key: CacheKey) -> str:
    return NAME(kind, replace(key, kernel=key.kernel[1:]) if kind == "autotune" else key)  # type: ignore[index]


KEYS = [
    keyed("RT-08.2-01", "first_tensor", "keeps one binary for all shapes of the tensors behind the first", lambda key:
          replace(key, shape=key.shape[:1])),
    keyed("RT-08.2-01", "last_dtype", "keeps one binary for all dtypes but the last", lambda key:
          replace(key, dtype=key.dtype[-1:], kernel=key.kernel[0])),
    replaced("RT-04.5-17", "runs the program made for the same first extent", make,
             ("runtime.launches.CodeCache.executable", by_first_extent), name="by_first_extent"),
    replaced("RT-08.2-01", "runs the program made first for as many elements", make,
             ("runtime.launches.CodeCache.executable", by_size), name="by_size"),
    replaced("RT-08.2-02", "keeps one autotune result for all collectives in one file", make,
             ("abi.cache.entry_name", whatever_collective), name="whatever_collective"),
]  # fmt: skip
