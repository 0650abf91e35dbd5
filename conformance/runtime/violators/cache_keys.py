"""Cache keys that do not distinguish shapes and dtypes of equally many bytes (runtime specification, 8.2)."""

from dataclasses import replace
from math import prod

from tessera_conformance.strength import Around
from tessera_reference.runtime.launches import CodeCache

from .cache import caching, keyed

EXECUTABLE = CodeCache.executable


def made_for(known):
    """Return a cache of executables by another key, `known(name, target, extents)`, and the policy."""

    def executable(self, module, entry, target, given, policy):
        key = (known(entry.name, target, list(given.values())), policy)
        if key not in module.executables:
            module.executables[key] = EXECUTABLE(self, module, entry, target, given, policy)
        return module.executables[key]

    return executable


KEYS = [
    keyed("RT-08.2-01", "first_tensor", "keeps one binary for all shapes of the tensors behind the first",
        lambda key: replace(key, shape=key.shape[:1])),
    keyed("RT-08.2-01", "last_dtype", "keeps one binary for all dtypes but the last",
        lambda key: replace(key, dtype=key.dtype[-1:], kernel=key.kernel[0])),
    caching("RT-04.5-17", "by_first_extent", "runs the program made for the same first extent",
        "runtime.launches.CodeCache.executable", made_for(lambda name, target, extents: (name, target, *extents[:1]))),
    caching("RT-08.2-01", "by_size", "runs the program made first for as many elements",
        "runtime.launches.CodeCache.executable", made_for(lambda name, target, extents: (name, prod(extents)))),
    caching("RT-08.2-02", "whatever_collective", "keeps one autotune result for all collectives in one file",
        "abi.cache.entry_name", Around(lambda usual: lambda kind, key:
            usual(kind, replace(key, kernel=key.kernel[1:]) if kind == "autotune" else key))),
]  # fmt: skip
