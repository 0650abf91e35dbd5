"""Implementations of other bits behind the C API: what a runtime launches and combines, in their own way.

A launched program runs as its Graph IR does, whose sums and products take the declared order; the lowered kernels of
the reference have the canonical one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from tessera_reference.abi.fatbin import Fatbin, KernelEntry
from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.compilation.executables import Arguments, Executable, Extents, ProgramExecutable, _special
from tessera_reference.graph.interpreter import FROM_ZERO, RandomSource
from tessera_reference.ir.targets import target_of
from tessera_reference.numerics.array import Array
from tessera_reference.runtime.collectives import CollectiveWork
from tessera_reference.runtime.launches import CodeCache, LoadedModule

MADE = CodeCache.executable
COMBINED = CollectiveWork._combined


class Own(Protocol):
    """An implementation with orders and functions of its own."""

    orders: Any

    def must_not(self, policy: NumericsPolicy, flags: int) -> bool:
        """True if a policy wants the canonical bits."""

    def under(self, policy: NumericsPolicy | None) -> AbstractContextManager[None]:
        """The implementation's own way, as far as a policy permits it."""


def own_collectives(own: Own) -> Callable[..., Mapping[int, Array]]:
    """`CollectiveWork._combined`, in the declared order of ranks."""

    def combined(work: CollectiveWork, *arguments: Any) -> Mapping[int, Array]:
        with own.under(work.policy), own.orders.called("all_reduce"):
            return COMBINED(work, *arguments)

    return combined


def own_executables(own: Own) -> Callable[..., Executable]:
    """`CodeCache.executable`, for programs run by their Graph IR."""

    def executable(
        cache: CodeCache,
        module: LoadedModule,
        entry: KernelEntry,
        target: str,
        extents: Mapping[str, int],
        policy: NumericsPolicy,
    ) -> Executable:
        made = MADE(cache, module, entry, target, extents, policy)
        has_graph = module.fatbin.section("graph-ir") is not None
        if own.must_not(policy, 0) or not has_graph or not isinstance(made, ProgramExecutable):
            return made
        return graph_program(own, module.fatbin, entry, target, extents, policy)

    return executable


def graph_program(
    own: Own, fatbin: Fatbin, entry: KernelEntry, target: str, extents: Mapping[str, int], policy: NumericsPolicy
) -> OwnProgram:
    """The program of an entry at Graph IR."""
    module = _special(fatbin, entry, target_of(target), extents)
    return OwnProgram(entry, target_of(target), module, module.functions[entry.name], own, policy)


@dataclass(frozen=True, eq=False)
class OwnProgram(ProgramExecutable):
    """A program whose operations are computed in an implementation's own way."""

    own: Own
    policy: NumericsPolicy

    def run(
        self,
        arguments: Arguments,
        grid: Extents = (1, 1, 1),
        block: Extents = (0, 0, 0),
        source: RandomSource = FROM_ZERO,
    ) -> dict[str, Array]:
        """Run the program in its own way."""
        with self.own.under(self.policy):
            return super().run(arguments, grid, block, source)

    def run_on_mesh(
        self, arguments: Sequence[Arguments], mesh: str | None = None, source: RandomSource = FROM_ZERO
    ) -> tuple[dict[str, Array], ...]:
        """Run the program in its own way."""
        with self.own.under(self.policy):
            return super().run_on_mesh(arguments, mesh, source)
