"""Programs: kernels of the language, whose host function launches kernels of the device (language spec 4, 8.1).

The grid of a launch does not say how a program is tiled, which Schedule IR does: its blocks share the work out, and any
number of them leaves the whole result. So neither grid nor block reaches the host function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from ..abi.status import invalid
from ..graph.execution import FROM_ZERO, InputMismatch, RandomSource, execute, execute_on_mesh
from ..graph.ranks import groups_met, meets, mesh_in_force
from ..ir.diagnostics import Rejection
from ..ir.module import Function, Module
from ..ir.types import Mesh, Tensor
from ..numerics.array import Array
from .executable import Arguments, Executable, Extents, held_as
from .refusals import refusal_at

__all__ = ["ProgramExecutable"]

MOST_KEPT = 64
"""So many results of earlier launches an executable keeps."""
KEPT_BYTES = 1024
"""Launches with arguments of more bytes than this are not kept."""

Key: TypeAlias = tuple[RandomSource, tuple[tuple[str, tuple[int, ...], bytes], ...]]
"""Where random numbers begin, and the arguments in the order of the parameters, bit by bit."""


@dataclass(frozen=True, eq=False)
class ProgramExecutable(Executable):
    """A program with the module, at Target IR, that it is a function of."""

    module: Module
    function: Function

    @cached_property
    def needs_mesh(self) -> bool:
        """Whether it comes to a collective."""
        return meets(self.module, self.function)

    def groups_met(self) -> Sequence[tuple[int, ...]]:
        """Those along the axes of its collectives. Raises `Rejection` where it is unclear which mesh runs it."""
        return groups_met(self.module, self.function) if self.needs_mesh else ()

    @cached_property
    def reads(self) -> frozenset[str]:
        """The tensors that an instruction of the host function takes."""
        taken = {value for each in self.function.body.walk() for value in each.operands}
        tensors = (each for each in self.function.parameters if isinstance(each.type, Tensor))
        return frozenset(each.name for each in tensors if each in taken)

    @property
    def meshes(self) -> Mapping[str, Mesh]:
        """The meshes that its module declares."""
        return self.module.meshes

    def run(
        self,
        arguments: Arguments,
        grid: Extents = (1, 1, 1),
        block: Extents = (0, 0, 0),
        source: RandomSource = FROM_ZERO,
    ) -> dict[str, Array]:
        """Run the host function; see `Executable.run`."""
        self.require_configuration(grid, block)
        try:
            return self._written(self._results(self._inputs(arguments), source))
        except InputMismatch as mismatch:
            raise invalid("tessLaunch", str(mismatch), f"arguments of kernel {self.entry.name}") from None

    def run_on_mesh(
        self, arguments: Sequence[Arguments], mesh: str | None = None, source: RandomSource = FROM_ZERO
    ) -> tuple[dict[str, Array], ...]:
        """Run the host function on every rank, row-major over the mesh; collectives are where they meet.

        Raises as `run`, and `Rejection` where ranks do not come together, or a mesh is not the module's.
        """
        inputs = [self._inputs(each) for each in arguments]
        if not self.needs_mesh:
            return super().run_on_mesh(arguments, mesh, source)
        try:
            self._require_ranks(len(inputs), mesh_in_force(self.module, self.function, mesh))
            every = execute_on_mesh(self.module, self.function.name, inputs, mesh, source=source)
        except InputMismatch as mismatch:
            raise invalid("tessLaunch", str(mismatch), f"arguments of kernel {self.entry.name}") from None
        return tuple(map(self._written, every))

    def _require_ranks(self, given: int, mesh: str) -> None:
        """Refuse to run on another number of ranks than the program's mesh has (AMB-LANG-108). Raises `Rejection`."""
        ranks, place = self.module.meshes[mesh].size, self.function.location
        if given != ranks:
            message = f"@{self.function.name} runs on mesh {mesh} of {ranks} ranks, not on {given}"
            wanted = f"a mesh of {ranks} ranks"
            found = refusal_at(place, "distributed", message, wanted, "AMB-LANG-108", "launch it on another mesh")
            raise Rejection([replace(found, phase="execute")])

    def _results(self, inputs: Mapping[str, Array], source: RandomSource) -> tuple[Array, ...]:
        """What the host function returns, which depends on inputs and source alone: of small ones it is kept.

        Whoever looks at orders of work launches one small kernel on the same values under many schedules; to execute
        them all was a fifteenth of the CPU time of the suite. An executable belongs to one adapter, so nothing that is
        kept outlives a violator.
        """
        key = _key(inputs.values(), source)
        results = self._kept.get(key) if key is not None else None
        if results is None:
            results = execute(self.module, self.function.name, inputs, source=source)
            if key is not None:
                if len(self._kept) == MOST_KEPT:
                    del self._kept[next(iter(self._kept))]
                self._kept[key] = results
        return results

    @cached_property
    def _kept(self) -> dict[Key, tuple[Array, ...]]:
        return {}

    def _inputs(self, arguments: Arguments) -> dict[str, Array]:
        pairs = zip(self.function.parameters, self.in_order(arguments), strict=True)
        return {parameter.name: held_as(parameter, array) for parameter, array in pairs}

    def _written(self, results: tuple[Array, ...]) -> dict[str, Array]:
        """What the host function leaves in its tensor parameters, of those that it writes."""
        return {name: results[position] for name, position in self._outputs}

    @cached_property
    def _outputs(self) -> tuple[tuple[str, int], ...]:
        tensors = [parameter.name for parameter in self.function.parameters if isinstance(parameter.type, Tensor)]
        written = {each.name for each in self.entry.parameters if each.written}
        return tuple((name, position) for position, name in enumerate(tensors) if name in written)


def _key(inputs: Iterable[Array], source: RandomSource) -> Key | None:
    """What tells inputs apart; None for those that are too large to keep."""
    held = list(inputs)
    if sum(each.values.nbytes for each in held) > KEPT_BYTES:
        return None
    return source, tuple((each.dtype.name, each.shape, each.to_bits()) for each in held)
