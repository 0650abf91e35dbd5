"""Where a thread is, in the special registers of each vendor (sections 8.1, 8.2; AMB-LANG-220).

NVVM reads special registers of PTX. ROCDL reads the ids; the extents of the block are known when a kernel is compiled,
and those of the grid come as hidden parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from ...ir.operation import operation
from ...ir.types import Scalar
from ...numerics.array import Array
from ...tile.block import BlockState
from ...tile.indices import AXES
from ...tile.operation import INT32
from ..emission.writer import Writer
from ..operation import TargetOperation

_CLAUSES = ("LANG-08.1-07", "LANG-08.1-08")


class Register(TargetOperation):
    """An int32 that says where a thread is."""

    quantity: ClassVar[str]
    axis: ClassVar[int]

    def infer(self) -> Scalar:
        """An int32."""
        return INT32

    def run(self, block: BlockState) -> Array:
        """The same as the operation of Tile IR."""
        if self.quantity == "thread":
            return block.threads[self.axis]
        numbers = {"block": block.position, "block_dim": block.extents, "grid_dim": block.grid}
        return block.uniform(numbers[self.quantity][self.axis])

    def emit(self, text: Writer) -> str:
        """The intrinsic; where there is none, a hidden parameter or a constant of the compiled kernel."""
        hidden = f"{self.quantity}_{AXES[self.axis]}"
        if not text.entry.is_host and self.name in INTRINSICS:
            return text.call("i32", INTRINSICS[self.name])
        return text.entry.hidden.get(hidden, str(text.entry.block[self.axis]))


NVIDIA = {"thread": "tid", "block": "ctaid", "block_dim": "ntid", "grid_dim": "nctaid"}
AMD = {"thread": "workitem.id", "block": "workgroup.id", "block_dim": "workgroup.dim", "grid_dim": "grid.dim"}


def _names() -> Iterator[tuple[str, str, str, int]]:
    for axis, letter in enumerate(AXES):
        for quantity, register in NVIDIA.items():
            yield f"nvvm.read.ptx.sreg.{register}.{letter}", "nvidia", quantity, axis
        for quantity, register in AMD.items():
            yield f"rocdl.{register}.{letter}", "amd", quantity, axis


def _declared(name: str, vendor: str, quantity: str, axis: int) -> type[Register]:
    namespace: dict[str, Any] = {
        "__doc__": f"The {quantity.replace('_', ' ')} along {AXES[axis]}.",
        "__module__": __name__,
        "vendor": vendor,
        "quantity": quantity,
        "axis": axis,
    }
    declare: Callable[[type[Register]], type[Register]] = operation(name, clauses=_CLAUSES)
    return declare(type(f"{vendor.title()}{quantity.title()}{AXES[axis].upper()}", (Register,), namespace))


REGISTERS: dict[tuple[str, str, int], type[Register]] = {
    (vendor, quantity, axis): _declared(name, vendor, quantity, axis) for name, vendor, quantity, axis in _names()
}
"""The operation for a vendor, a quantity and an axis."""

INTRINSICS = {
    **{made.name: f"llvm.{made.name}" for made in REGISTERS.values() if made.vendor == "nvidia"},
    **{
        made.name: f"llvm.amdgcn.{made.name.removeprefix('rocdl.')}"
        for made in REGISTERS.values()
        if made.vendor == "amd" and made.quantity in ("thread", "block")
    },
}
"""What each is called in LLVM; the extents have no intrinsic on AMD."""
