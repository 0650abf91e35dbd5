"""Caches with incomplete keys, outdated entries or unvalidated ones (runtime spec 8.2, 15, 19.A)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tessera_conformance.strength import Violation, replaced, violates
from tessera_reference.abi import cache
from tessera_reference.abi.cache import CacheEntry, CacheKey, CacheStore, CacheTags
from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.compilation.executables import Executable
from tessera_reference.numerics.array import Array
from tessera_reference.runtime import collectives, launches
from tessera_reference.runtime.launches import CodeCache

GET, PUT, READ, PATH = CacheStore.get, CacheStore.put, CacheStore._read, CacheStore.path
KEY, EXECUTABLE, ENTRY = launches._key, CodeCache.executable, cache.entry_of_bytes
TUNED_KEY = collectives.CacheKey


def storing(clause: str, name: str, description: str, attribute: str, value: Any) -> Violation:
    """Return a violation that replaces one method of the store."""
    return replaced(clause, description, make, (CacheStore, attribute, value), name=name)


def keyed(clause: str, name: str, description: str, change: Callable[[CacheKey], CacheKey]) -> Violation:
    """Return a violation that stores binaries under another key."""
    return replaced(clause, description, make, ("runtime.launches._key", lambda *of: change(KEY(*of))), name=name)


def tuned_under(clause: str, name: str, description: str, change: Callable[[CacheKey], CacheKey]) -> Violation:
    """Return a violation that stores autotune results under another key."""
    return replaced(
        clause, description, make, ("runtime.collectives.CacheKey", lambda *of: change(TUNED_KEY(*of))), name=name
    )


# Keys


KEYS = [
    keyed("RT-08.2-01", "without_kernel", "keeps one binary for all kernels", lambda key: replace(key, kernel="k")),
    keyed("RT-15-06", "without_hash", "knows kernels by their names alone",
        lambda key: replace(key, kernel=key.kernel[0] if isinstance(key.kernel, tuple) else key.kernel)),
    tuned_under("RT-08.2-02", "tuned_without_shape", "keeps one autotune result for all shapes",
                lambda key: replace(key, shape=())),
    tuned_under("RT-08.2-03", "tuned_without_arch", "keeps one autotune result for all architectures",
                lambda key: replace(key, arch="any")),
]  # fmt: skip


# Stored content


def results_never_found(self: CacheStore, kind: str, *of: Any, **named: Any) -> bytes | None:
    return None if kind == "autotune" else GET(self, kind, *of, **named)


KEPT = [
    replaced("RT-08.2-01", "spells directories in ASCII", make,
        ("runtime.launches.path_named", lambda name: Path(name.encode("ascii", "replace").decode())),
        name="ascii_directories"),
    storing("RT-08.2-02", "results_never_found", "finds no autotune results", "get", results_never_found),
]  # fmt: skip


# Identities


def blind_to(name: str) -> Callable[..., bytes | None]:
    """Return a lookup that ignores one tag of its entries."""

    def get(self: CacheStore, kind: str, key: CacheKey, tags: CacheTags, *, same_policy: bool) -> bytes | None:
        entry = self._read(self.path(kind, key))
        if entry is not None:
            tags = replace(tags, **{name: getattr(entry.tags, name)})
        return GET(self, kind, key, tags, same_policy=same_policy)

    return get


IDENTITIES = [
    storing("RT-08.2-04", "any_driver", "goes on after a change of the driver", "get", blind_to("driver")),
]  # fmt: skip


@violates("RT-08.2-03", "launches what loaded modules were compiled to before a change of the architecture")
class LoadedBefore(ReferenceAdapter):
    def runtime_tessxSetIdentity(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        kept = [(module.executables, dict(module.executables)) for _, module in self.runtime.handles.live("module")]
        answer: dict[str, Any] = super().runtime_tessxSetIdentity(**arguments)  # type: ignore[misc]
        for executables, before in kept:
            executables.update(before)
        return answer


# Policies


def without_policy(switch: str) -> Callable[..., bytes | None]:
    def get(self: CacheStore, kind: str, key: CacheKey, tags: CacheTags, *, same_policy: bool) -> bytes | None:
        entry = self._read(self.path(kind, key))
        if entry is not None:
            policy = replace(tags.policy, **{switch: getattr(entry.tags.policy, switch)})
            tags = replace(tags, policy=policy)
        return GET(self, kind, key, tags, same_policy=same_policy)

    return get


class Rough:
    """A kernel compiled without determinism: its floats differ by a bit."""

    def __init__(self, made: Executable) -> None:
        self.made = made

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made, name)

    def run(self, *of: Any) -> dict[str, Array]:
        """Return results that differ by a bit."""
        return {name: _rough(array) for name, array in self.made.run(*of).items()}


def _rough(array: Array) -> Array:
    data = bytearray(array.to_bits())
    if array.dtype.kind == "float" and data:
        data[0] ^= 1
    return Array.from_bits(array.dtype, array.shape, bytes(data))


def shared_among_policies(
    self: CodeCache, module: Any, entry: Any, target: str, extents: Any, policy: NumericsPolicy
) -> Any:
    known = (entry.name, target, tuple(sorted(extents.items())))
    if known not in module.executables:
        made = EXECUTABLE(self, module, entry, target, extents, policy)
        module.executables[known] = made if policy.deterministic else Rough(made)
    return module.executables[known]


POLICIES = [
    *(
        storing("RT-08.2-06", f"any_{switch}", f"finds entries of another {switch}", "get", without_policy(switch))
        for switch in ("stableReductions", "deterministic", "rngStateless", "allowFastMath")
    ),
    replaced("RT-08.2-06", "shares what a module compiled among policies", make,
             ("runtime.launches.CodeCache.executable", shared_among_policies), name="shared_among_policies"),
]  # fmt: skip


# Validation


def trusting(name: str, description: str, accepts: Callable[[bytes], bytes]) -> Violation:
    """Return a violation whose store repairs an entry before validating it."""

    def read(content: bytes) -> CacheEntry:
        return ENTRY(accepts(content))

    return replaced("RT-19.A-11", description, make, ("abi.cache.entry_of_bytes", read), name=name)


def with_checksum(content: bytes) -> bytes:
    body = content[:-32]
    return body + cache.sha256(body).digest()


def any_name(self: CacheStore, path: Path) -> CacheEntry | None:
    try:
        return ENTRY(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return READ(self, path)


def all_but_the_last(tags: CacheTags) -> tuple[str, str]:
    return tags.driver[:-1], tags.abi_hash[:-1]


VALIDATION = [
    replaced("RT-08.2-05", "compares all but the last character of an ABI hash", make,
             ("abi.cache._identity", all_but_the_last), name="all_but_the_last"),
    trusting("no_checksum", "does not look at the checksum", with_checksum),
    trusting("trailing_bytes", "ignores bytes behind an entry", lambda content: content[:-1] if content[-1:] == b"\0"
             and len(content) > 1 else content),
    storing("RT-15-06", "any_name", "runs whatever entry a file holds", "_read", any_name),
]  # fmt: skip
