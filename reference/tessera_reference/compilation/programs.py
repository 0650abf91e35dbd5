"""Programs: kernels of the language, whose host function launches kernels of the device (language spec 4, 8.1).

The grid of a launch does not say how a program is tiled, which Schedule IR does: its blocks share the work out, and any
number of them leaves the whole result. So neither grid nor block reaches the host function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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
            return self._written(execute(self.module, self.function.name, self._inputs(arguments), source=source))
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
