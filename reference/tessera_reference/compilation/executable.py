"""The interface of kernels that are ready to run, and which launches they refuse (AMB-RT-08, AMB-RT-61)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from ..abi.fatbin import KernelEntry
from ..abi.status import invalid
from ..graph.execution import FROM_ZERO, RandomSource
from ..ir.module import Value
from ..ir.targets import Target
from ..ir.types import Mesh, Scalar
from ..numerics.array import Array
from .kernels import abi_name

__all__ = ["Arguments", "Executable", "Extents", "held_as"]

Extents: TypeAlias = tuple[int, int, int]
Arguments: TypeAlias = Mapping[str, Array]
"""An array for each parameter of the entry, by name, scalars too."""

LARGEST_GRID = ((1 << 31) - 1,) * 3


@dataclass(frozen=True, eq=False)
class Executable(ABC):
    """A kernel of a module for one target. What it computes depends on its arguments only, never on when it runs."""

    entry: KernelEntry
    target: Target

    @property
    def needs_mesh(self) -> bool:
        """Whether it meets the other ranks of a mesh, so that it runs by `run_on_mesh`."""
        return False

    def groups_met(self) -> Sequence[tuple[int, ...]]:
        """The groups of ranks that may meet in it; none for one that needs no mesh."""
        return ()

    @property
    def most_blocks(self) -> Extents:
        """The largest grid along x, y and z; C has no larger int."""
        return LARGEST_GRID

    @property
    def reads(self) -> frozenset[str]:
        """The pointer parameters whose memory it is known to read: those that it does not write."""
        return frozenset(each.name for each in self.entry.parameters if each.type == "ptr" and not each.written)

    @property
    def meshes(self) -> Mapping[str, Mesh]:
        """The meshes that the kernel's module declares, by name."""
        return {}

    @abstractmethod
    def run(
        self,
        arguments: Arguments,
        grid: Extents = (1, 1, 1),
        block: Extents = (0, 0, 0),
        source: RandomSource = FROM_ZERO,
    ) -> dict[str, Array]:
        """Run one launch: the arrays of the written pointer parameters afterwards, by name (RT-10.2-02).

        Of a kernel that needs a mesh every rank has these arguments, and the arrays are rank 0's. Raises `Rejection`
        with phase execute for what fails while it runs, `UnsupportedConstruct` for what goes beyond this reference, and
        `Failure` with TESS_ERR_INVALID_VALUE for a configuration or arguments that do not fit the entry.
        """

    def run_on_mesh(
        self, arguments: Sequence[Arguments], mesh: str | None = None, source: RandomSource = FROM_ZERO
    ) -> tuple[dict[str, Array], ...]:
        """Run one launch on every rank of a mesh, arguments and arrays by rank. Raises as `run`."""
        return tuple(self.run(each, source=source) for each in arguments)

    def block_of(self, block: Extents) -> Extents:
        """The threads of a block, components of zero as the compiler chose them (AMB-RT-08)."""
        x, y, z = (asked or chosen for asked, chosen in zip(block, self.entry.block, strict=True))
        return x, y, z

    def require_configuration(self, grid: Extents, block: Extents, shared_bytes: int = 0) -> None:
        """Refuse what shows in the arguments of a launch already (AMB-RT-61), `shared_bytes` being the hint.

        Raises `Failure` with TESS_ERR_INVALID_VALUE.
        """
        for axis, blocks, most in zip("xyz", grid, self.most_blocks, strict=True):
            if not 1 <= blocks <= most:
                raise invalid("tessLaunch", f"{blocks} blocks along {axis}", f"1 to {most}")
        if min(block) < 0:
            raise invalid("tessLaunch", f"a block of {'x'.join(map(str, block))} threads", "extents of at least 0")
        threads, most = prod(self.block_of(block)), self.target.threads_per_block
        if threads > most:
            raise invalid("tessLaunch", f"a block of {threads} threads", f"at most {most} on {self.target.name}")
        shared, most = self.entry.shared_bytes + shared_bytes, self.target.shared_bytes
        if shared_bytes < 0 or shared > most:
            given = f"shmemBytes is {shared_bytes}, beside the {self.entry.shared_bytes} bytes of the kernel"
            raise invalid("tessLaunch", given, f"at least 0, and {most} in all on {self.target.name}")

    def in_order(self, arguments: Arguments) -> list[Array]:
        """The arguments in the order of the parameters. Raises `Failure` for one that is missing or unexpected."""
        names = [parameter.name for parameter in self.entry.parameters]
        if arguments.keys() != set(names):
            given = f"arguments {', '.join(arguments) or 'none'} for kernel {self.entry.name}"
            raise invalid("tessLaunch", given, ", ".join(names) or "none")
        return [arguments[name] for name in names]


def held_as(parameter: Value, array: Array) -> Array:
    """An argument as the kernel holds it: a scalar that is tf32 there has come as fp32 (AMB-RT-28)."""
    type_ = parameter.type
    if isinstance(type_, Scalar) and type_.dtype != array.dtype and abi_name(type_.dtype) == array.dtype.name:
        return Array(type_.dtype, array.values)
    return array
