"""Kernels of Target IR as text, with the parts that most of them need: thread numbers, constants, addresses (8.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .kernel_texts import KernelText, Value
from .level_programs import WARPS

POINTER, LDS = "!llvm.ptr<1>", "!llvm.ptr<3>"
"""Pointers to global and to shared memory."""


class TargetKernel(KernelText):
    """A kernel of a target with some buffers, by default x and y and one warp; `thread` is the thread's number."""

    def __init__(
        self,
        target: str = "sm_90",
        lanes: int = 0,
        *,
        buffers: Sequence[str] = "xy",
        smem_bytes: int = 4096,
        **attributes: Any,
    ) -> None:
        """`lanes` is the number of threads of a block."""
        stated = {"block": (lanes or WARPS[target], 1, 1), "smem_bytes": smem_bytes, **attributes}
        super().__init__(dict.fromkeys(buffers, POINTER), level="target", target=target, **stated)
        amd = target.startswith("gfx")
        self.thread = self.op("rocdl.workitem.id.x" if amd else "nvvm.read.ptx.sreg.tid.x", gives="int32")

    def number(self, value: int, dtype: str = "int32") -> Value:
        """Return a constant."""
        return self._one("llvm.mlir.constant", gives=dtype, value=value)

    def integers(self, name: str, a: Value, b: Value | int) -> Value:
        """Return an operation of two integers."""
        return self._one(f"llvm.{name}", a, self.number(b) if isinstance(b, int) else b, gives="int32")

    def less(self, a: Value, bound: int) -> Value:
        """Return a bool that is true if an integer is below a number."""
        return self._one("llvm.icmp", a, self.number(bound), gives="bool", predicate="slt")

    def tile(self, elements: int, elem_type: str = "int32") -> Value:
        """Return a piece of shared memory."""
        stated = {"elements": elements, "elem_type": elem_type, "alignment": 16}
        return self._one("llvm.mlir.addressof", gives=LDS, global_name="tile", **stated)

    def at(self, pointer: Value, index: Value, elem_type: str = "int32") -> Value:
        """Return the address of an element, by its index from a pointer."""
        return self._one("llvm.getelementptr", pointer, index, gives=pointer.type, elem_type=elem_type)
