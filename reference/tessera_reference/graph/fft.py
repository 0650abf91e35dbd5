"""`tessera.graph.fft` and its inverse (spec section 5.2; AMB-LANG-46, AMB-LANG-116)."""

from dataclasses import dataclass
from typing import ClassVar, get_args

from ..ir.operation import Attribute, Environment, Operand, Operation, operation, require
from ..ir.types import Tensor
from ..numerics import fourier
from ..numerics.array import Array


@dataclass(frozen=True)
class FourierTransform(Operation):
    """What the transform and its inverse share: float or complex operands, the last axis, a norm, a complex result."""

    x: Operand[Tensor]
    norm: Attribute[str] = "ortho"

    inverse: ClassVar[bool]

    def infer(self) -> Tensor:
        """The operand's shape, of at least one element along the last axis, complex."""
        x = self.x
        require(
            x.dtype.kind in ("complex", "float"),
            "types",
            f"is not defined on {x.dtype}",
            "a float or a complex dtype",
            "LANG-05.2-04",
            "cast the operand with op.cast",
        )
        require(x.shape[-1] != 0, "shapes", "the last axis has no elements", "at least 1 element", "LANG-05.2-04")
        norms = get_args(fourier.Norm)
        require(self.norm in norms, "numerics", f"there is no norm {self.norm!r}", " or ".join(norms), "LANG-05.2-04")
        return x.with_dtype(fourier.result_dtype(x.dtype))

    def execute(self, x: Array, env: Environment) -> Array:
        """The transform by the canon."""
        transform = fourier.ifft if self.inverse else fourier.fft
        return transform(x, self.norm)  # type: ignore[arg-type]  # infer has checked it


@operation("tessera.graph.fft", spellings=("op.fft",), clauses=("LANG-05.2-04",))
class FFT(FourierTransform):
    """The discrete Fourier transform along the last axis."""

    inverse = False


@operation("tessera.graph.ifft", spellings=("op.ifft",), clauses=("LANG-05.2-04",))
class InverseFFT(FourierTransform):
    """The inverse transform along the last axis."""

    inverse = True
