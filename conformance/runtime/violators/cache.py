"""Caches with incomplete keys, outdated entries or unvalidated ones (runtime spec 8.2, 15, 19.A)."""

from dataclasses import replace
from pathlib import Path

from tessera_conformance.strength import Around, replaced, violates
from tessera_reference.abi import cache
from tessera_reference.abi.cache import CacheStore
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.runtime.launches import CodeCache

from .changes import nudged, result


def caching(clause, name, description, place, value):
    """Return a violation of a runtime that shares no compiled images with others."""
    return replaced(clause, description, make, (place, value), name=name)


def keyed(clause, name, description, change):
    """Return a violation that stores binaries under another key."""
    return caching(clause, name, description, "runtime.launches._key", result(change))


def tuned_under(clause, name, description, change):
    """Return a violation that stores autotune results under another key."""
    return caching(clause, name, description, "runtime.collectives.CacheKey", result(change))


def blind(tags):
    """Return a lookup with other tags, `tags(wanted, stored)`."""

    def around(usual):
        def get(self, kind, key, wanted, *, same_policy):
            entry = self._read(self.path(kind, key))
            return usual(self, kind, key, tags(wanted, entry.tags) if entry else wanted, same_policy=same_policy)

        return get

    return Around(around)


def without_policy(switch):
    return blind(lambda wanted, stored: replace(
        wanted, policy=replace(wanted.policy, **{switch: getattr(stored.policy, switch)})))  # fmt: skip


@violates("RT-08.2-03", "launches what loaded modules were compiled to before a change of the architecture")
class LoadedBefore(ReferenceAdapter):
    def runtime_tessxSetIdentity(self, **arguments):  # noqa: N802
        kept = [(module.executables, dict(module.executables)) for _, module in self.runtime.handles.live("module")]
        answer = super().runtime_tessxSetIdentity(**arguments)
        for executables, before in kept:
            executables.update(before)
        return answer


class Rough:
    """A kernel compiled without determinism: its floats differ by a bit."""

    def __init__(self, made):
        self.made = made

    def __getattr__(self, name):
        return getattr(self.made, name)

    def run(self, *of):
        return {name: nudged(array) for name, array in self.made.run(*of).items()}


EXECUTABLE = CodeCache.executable


def shared_among_policies(self, module, entry, target, extents, policy):
    known = (entry.name, target, tuple(sorted(extents.items())))
    if known not in module.executables:
        made = EXECUTABLE(self, module, entry, target, extents, policy)
        module.executables[known] = made if policy.deterministic else Rough(made)
    return module.executables[known]


def trusting(name, description, accepts):
    """Return a violation whose store repairs an entry before validating it."""
    repaired = Around(lambda usual: lambda content: usual(accepts(content)))
    return caching("RT-19.A-11", name, description, "abi.cache.entry_of_bytes", repaired)


def any_name(self, path, right=CacheStore._read):
    try:
        return cache.entry_of_bytes(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return right(self, path)


VIOLATORS = [
    keyed("RT-08.2-01", "without_kernel", "keeps one binary for all kernels", lambda key: replace(key, kernel="k")),
    keyed("RT-15-06", "without_hash", "knows kernels by their names alone",
        lambda key: replace(key, kernel=key.kernel[0] if isinstance(key.kernel, tuple) else key.kernel)),
    tuned_under("RT-08.2-02", "tuned_without_shape", "keeps one autotune result for all shapes",
        lambda key: replace(key, shape=())),
    tuned_under("RT-08.2-03", "tuned_without_arch", "keeps one autotune result for all architectures",
        lambda key: replace(key, arch="any")),
    caching("RT-08.2-01", "ascii_directories", "spells directories in ASCII", "runtime.launches.path_named",
        lambda name: Path(name.encode("ascii", "replace").decode())),
    caching("RT-08.2-02", "results_never_found", "finds no autotune results", "abi.cache.CacheStore.get",
        Around(lambda usual: lambda self, kind, *of, **named:
            None if kind == "autotune" else usual(self, kind, *of, **named))),
    caching("RT-08.2-04", "any_driver", "goes on after a change of the driver", "abi.cache.CacheStore.get",
        blind(lambda wanted, stored: replace(wanted, driver=stored.driver))),
    *(caching("RT-08.2-06", f"any_{switch}", f"finds entries of another {switch}", "abi.cache.CacheStore.get",
        without_policy(switch)) for switch in ("stableReductions", "deterministic", "rngStateless", "allowFastMath")),
    caching("RT-08.2-06", "shared_among_policies", "shares what a module compiled among policies",
        "runtime.launches.CodeCache.executable", shared_among_policies),
    caching("RT-08.2-05", "all_but_the_last", "compares all but the last character of an ABI hash",
        "abi.cache._identity", lambda tags: (tags.driver[:-1], tags.abi_hash[:-1])),
    trusting("no_checksum", "does not look at the checksum",
        lambda content: content[:-32] + cache.sha256(content[:-32]).digest()),
    trusting("trailing_bytes", "ignores bytes behind an entry",
        lambda content: content[:-1] if content[-1:] == b"\0" and len(content) > 1 else content),
    caching("RT-15-06", "any_name", "runs whatever entry a file holds", "abi.cache.CacheStore._read", any_name),
]  # fmt: skip
