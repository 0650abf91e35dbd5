"""`tessera.graph.matmul`: the matrix product (spec sections 5.2, 5.4, 10, 15)."""

from ..ir.operation import (
    Applied,
    Attribute,
    Builder,
    Environment,
    Operand,
    Operation,
    Refusal,
    Unimplemented,
    derived,
    operation,
)
from ..ir.types import LAYOUTS, Tensor, Value, show_dim
from ..numerics.array import Array
from ..numerics.formats import DType
from ..numerics.matmul import matmul
from .term import Term, require_accumulator, require_numeric, terms


@operation(
    "tessera.graph.matmul",
    spellings=("op.matmul", "@"),
    clauses=("LANG-05.2-02", "LANG-05.4-01", "LANG-10-02", "LANG-15-01", "LANG-15-03", "LANG-15-04", "LANG-15-15"),
)
class MatMul(Operation):
    """Matrix product, (..., M, K) x (..., K, N) -> (..., M, N), of one dtype.

    Accumulates over ascending k in the accumulator type, rounding the product and the sum, then rounds once to the
    operands' dtype or to `out` (reference arithmetic, "matmul"; AMB-LANG-40). The result has the left operand's layout.
    """

    a: Operand[Tensor]
    b: Operand[Tensor]
    accum: Attribute[DType] = derived(lambda self: self.a.dtype.accumulator)
    out: Attribute[DType | None] = None

    layouts = frozenset(LAYOUTS)
    nest = "contract"
    orders = ("fold",)

    def infer(self) -> Tensor:
        """Equal inner dimensions, equal batch dimensions (AMB-LANG-42), one dtype."""
        a, b = self.a, self.b
        if a.dtype != b.dtype:
            message = f"operands have dtypes {a.dtype} and {b.dtype}"
            raise Refusal("types", message, "a.dtype == b.dtype", "LANG-05.2-02", "cast one operand with op.cast")
        require_numeric(a.dtype)
        if min(a.rank, b.rank) < 2:
            raise Refusal("shapes", f"operands have ranks {a.rank} and {b.rank}", "rank at least 2", "LANG-05.2-02")
        *batch, m, k = a.shape
        *other, k2, n = b.shape
        if k != k2:
            raise Refusal(
                "shapes",
                f"inner dimensions differ: {show_dim(k)} and {show_dim(k2)}"
                if isinstance(k, int) and isinstance(k2, int)
                else f"inner dimensions are not known to be equal: {show_dim(k)} and {show_dim(k2)}",
                "a.shape[-1] == b.shape[-2]",
                "LANG-05.4-01",
                _remedy(a, b),
            )
        if batch != other:
            raise Refusal(
                "shapes", f"batch dimensions differ: {a} and {b}", "a.shape[:-2] == b.shape[:-2]", "LANG-03.2-03"
            )
        out = self.out or a.dtype
        if out.kind == "bool" or (a.dtype.kind == "complex" and out.kind != "complex"):
            message = f"a product of {a.dtype} does not become {out}"
            raise Refusal("types", message, "a result dtype that the product can be rounded to", "LANG-05.2-02")
        require_accumulator(a.dtype, self.accum)
        if a.dtype.kind == "complex" and self.accum != a.dtype.accumulator:
            raise Unimplemented("op.matmul.accum")
        return Tensor((*batch, m, n), out, a.layout)

    def execute(self, a: Array, b: Array, env: Environment) -> Array:
        return matmul(a, b, self.out, accumulator=self.accum)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """dy @ transpose(b); transpose(a) @ dy. Accumulated like the product, and rounded once to the operands' dtype.

        Where the result has another dtype, all three are multiplied in the accumulator's.
        """
        dy, _, a, b = terms(at, build)
        if dy.dtype != a.dtype:
            dy, a, b = (operand.cast_to(self.accum) for operand in (dy, a, b))
        to_a = dy.matmul(_transposed(b), accum=self.accum, out=self.a.dtype)
        to_b = _transposed(a).matmul(dy, accum=self.accum, out=self.b.dtype)
        return to_a.value, to_b.value


def _transposed(x: Term) -> Term:
    """Every matrix of a batch transposed."""
    rank = len(x.shape)
    return x.transpose(perm=(*range(rank - 2), rank - 1, rank - 2))


def _remedy(a: Tensor, b: Tensor) -> str:
    """Return the remedy where K differs: the transpose that makes it fit, or the position of K."""
    if b.rank == 2 and a.shape[-1] == b.shape[-1]:
        return "did you mean op.matmul({a}, op.transpose({b}))?"
    if a.rank == 2 and a.shape[-2] == b.shape[-2]:
        return "did you mean op.matmul(op.transpose({a}), {b})?"
    return "K is the last dimension of {a} and the last but one of {b}"
