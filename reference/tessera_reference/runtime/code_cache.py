"""Kernels made ready to run, in memory and in the directory TESS_CACHE_DIR (runtime spec 8.2; AMB-RT-22, AMB-RT-69)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..abi.cache_entry import CacheKey, CacheTags
from ..abi.cache_store import CacheStore
from ..abi.fatbin import KernelEntry
from ..abi.policy import NumericsPolicy
from ..compilation.compiler import Compiler
from ..compilation.extents import shapes_of
from .contexts import Context
from .machine import Machine
from .modules import LoadedModule

if TYPE_CHECKING:
    from ..compilation.executable import Executable

__all__ = ["CodeCache"]


@dataclass(eq=False)
class CodeCache:
    """Finds or makes the executable of a launch; counts hits and misses of the directory."""

    machine: Machine
    compiler: Compiler
    hits: int = 0
    misses: int = 0
    _stores: dict[str, CacheStore] = field(default_factory=dict)

    def store(self, context: Context) -> CacheStore | None:
        """The directory of a context, if its environment names one. Raises `Failure`."""
        directory = context.environment.cache_dir
        if directory is None:
            return None
        if directory not in self._stores:
            self._stores[directory] = CacheStore(Path(directory))
        return self._stores[directory]

    def tags(self, policy: NumericsPolicy) -> CacheTags:
        """The tags under which results are valid now."""
        return CacheTags(self.machine.driver, self.machine.abi_hash, policy)

    def arch(self, *targets: str) -> tuple[str, ...]:
        """The architecture that results are for (RT-08.2-03)."""
        return (*targets, self.machine.revision) if self.machine.revision else targets

    def executable(
        self, module: LoadedModule, entry: KernelEntry, target: str, extents: Mapping[str, int], policy: NumericsPolicy
    ) -> Executable:
        """A kernel for a target and these extents, under a policy (RT-08.2-01, RT-08.2-06).

        Raises `Failure` with TESS_ERR_CACHE_CORRUPT, and as `executables_of`.
        """
        known = (entry.name, target, tuple(sorted(extents.items())), policy)
        if known not in module.executables:
            module.executables[known] = self._made(module, entry, target, extents, policy)
        return module.executables[known]

    def _made(
        self, module: LoadedModule, entry: KernelEntry, target: str, extents: Mapping[str, int], policy: NumericsPolicy
    ) -> Executable:
        store = self.store(module.context)
        if store is None:
            return self.compiler.executable(module.fatbin, entry.name, target, extents)
        from ..compilation.executables import executable_from, specialise

        key = _key(module, entry, extents, target, self.arch(target))
        payload = store.get("binary", key, self.tags(policy), same_policy=bool(policy.deterministic))
        if payload is not None:
            self.hits += 1
        else:
            self.misses += 1
            payload = specialise(module.fatbin, entry.name, target, extents, self.compiler.text)
            store.put("binary", key, self.tags(policy), payload)
        return executable_from(payload, entry, target, self.compiler.text)


def _key(
    module: LoadedModule, entry: KernelEntry, extents: Mapping[str, int], target: str, arch: tuple[str, ...]
) -> CacheKey:
    """Kernel, shape, dtype and architecture; a kernel is known by its name and the IR that it is made from."""
    from ..compilation.executables import code_digest

    shapes = tuple((name, shape) for name, shape in shapes_of(entry, extents).items())
    dtypes = tuple((each.name, each.dtype or each.type) for each in entry.parameters)
    return CacheKey((entry.name, code_digest(module.fatbin, target)), shapes, dtypes, arch)
