"""`tessera.tile.part` and `tessera.tile.complex`: complex numbers of a lane taken apart and put together (section 7).

Graph IR needs no such operations: what it computes by component, such as a mean, is one operation there, and several
steps in a kernel. Their names are ours (AMB-LANG-240).
"""

from __future__ import annotations

from ..ir.operation import Attribute, Operand, operation, require
from ..ir.types import Scalar
from ..numerics import complex_numbers
from ..numerics.array import Array
from ..numerics.formats import DTYPES
from .block import BlockState
from .operation import KernelOperation

PARTS = ("real", "imaginary")


@operation("tessera.tile.part", clauses=("LANG-08.2-03",))
class Part(KernelOperation):
    """The real or the imaginary part of a complex number."""

    x: Operand[Scalar]
    which: Attribute[str]

    def infer(self) -> Scalar:
        """The component of the operand's dtype."""
        require(self.which in PARTS, "types", f"there is no part {self.which!r}", " or ".join(PARTS), "LANG-11-01")
        require(
            self.x.dtype.kind == "complex",
            "types",
            f"is not defined on {self.x.dtype}",
            "a complex dtype",
            "LANG-11-01",
        )
        return Scalar(self.x.dtype.component)

    def run(self, block: BlockState, x: Array) -> Array:
        """The part."""
        return Array(x.dtype.component, complex_numbers.parts(x.values)[PARTS.index(self.which)])


@operation("tessera.tile.complex", clauses=("LANG-08.2-03",))
class Complex(KernelOperation):
    """The complex number of two parts."""

    real: Operand[Scalar]
    imaginary: Operand[Scalar]

    def infer(self) -> Scalar:
        """The complex dtype of which both parts are components."""
        require(
            self.real == self.imaginary and self.real.dtype.name in _WHOLE,
            "types",
            f"the parts are {self.real} and {self.imaginary}",
            "both fp32 or both fp64",
            "LANG-11-01",
        )
        return Scalar(DTYPES[_WHOLE[self.real.dtype.name]])

    def run(self, block: BlockState, real: Array, imaginary: Array) -> Array:
        """The number."""
        whole = DTYPES[_WHOLE[real.dtype.name]]
        return Array(whole, complex_numbers.join(real.values, imaginary.values))


_WHOLE = {"fp32": "complex64", "fp64": "complex128"}
