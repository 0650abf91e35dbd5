"""`tessera.graph.flash_attention`: attention as one operation (spec sections 2, 10)."""

import math

from ..ir.module import Value
from ..ir.operation import Attribute, Builder, Operand, operation, require
from ..ir.stepwise import Composite
from ..ir.types import Tensor, show_dim
from .compositions import number, require_held_as
from .constant import Constant
from .dtypes import require_float
from .movement import Iota
from .term import Term, constant


@operation(
    "tessera.graph.flash_attention",
    spellings=("op.flash_attention",),
    clauses=("LANG-02-04", "LANG-10-02", "LANG-10-03", "LANG-10-05", "LANG-10-06"),
)
class FlashAttention(Composite):
    """softmax((q k') * scale) v, (..., L, D) x (..., S, D) x (..., S, E) -> (..., L, E).

    Everything in the accumulator type, scores and weights too, and one final rounding. Products, softmax and their
    order are those of `matmul` and `softmax`, so tf32 rounds the factors of both products: that a schedule may go over
    the keys in blocks, which `block` suggests, changes no bit. `scale` is 1 / sqrt(D), rounded once, unless given. With
    `causal`, query i takes keys 0 to i: the scores of the others become -inf; queries and keys are then as many.
    """

    q: Operand[Tensor]
    k: Operand[Tensor]
    v: Operand[Tensor]
    scale: Attribute[float | None] = None
    causal: Attribute[bool] = False
    block: Attribute[int | None] = None

    def infer(self) -> Tensor:
        """The queries' shape with the values' width; one dtype, one batch, at least one key."""
        q, k, v = self.q, self.k, self.v
        require_float(q)
        require_held_as("k", k, q)
        require_held_as("v", v, q)
        ranks = {q.rank, k.rank, v.rank}
        require(
            len(ranks) == 1 and min(ranks) >= 2,
            "shapes",
            f"operands have ranks {q.rank}, {k.rank} and {v.rank}",
            "one rank of at least 2",
            "LANG-05.2-02",
        )
        self._require_shapes()
        require(
            self.scale is None or math.isfinite(self.scale),
            "numerics",
            f"scale is {self.scale}",
            "a finite number",
            "LANG-02-04",
        )
        require(
            self.block is None or self.block > 0, "schedule", f"block is {self.block}", "block >= 1", "LANG-06.3-01"
        )
        return Tensor((*q.shape[:-1], v.shape[-1]), q.dtype)

    def _require_shapes(self) -> None:
        q, k, v = self.q, self.k, self.v
        for what, a, b, one, other in (
            ("batch dimensions", q, k, q.shape[:-2], k.shape[:-2]),
            ("batch dimensions", q, v, q.shape[:-2], v.shape[:-2]),
            ("widths of queries and keys", q, k, q.shape[-1:], k.shape[-1:]),
            ("numbers of keys and values", k, v, k.shape[-2:-1], v.shape[-2:-1]),
        ):
            require(one == other, "shapes", f"{what} differ: {a} and {b}", f"equal {what}", "LANG-05.4-01")
        require(k.shape[-2] != 0, "shapes", "there are no keys", "at least one key", "LANG-05.2-03")
        require(
            not self.causal or q.shape[-2] == k.shape[-2],
            "shapes",
            f"causal: {show_dim(q.shape[-2])} queries and {show_dim(k.shape[-2])} keys",
            "as many queries as keys",
            "LANG-03.2-03",
        )

    def decompose(self, build: Builder, *operands: Value) -> Value:
        """Scores, mask, weights, values."""
        q, k, v = (Term(operand, build) for operand in operands)
        rank, wide = self.q.rank, self.q.dtype.accumulator
        scores = q.matmul(k.transpose(perm=(*range(rank - 2), rank - 1, rank - 2)), out=wide)
        scores = scores * self._scale(scores)
        if self.causal:
            scores = self._masked(scores)
        factors = self.q.dtype if self.q.dtype.storage == wide else wide
        weights = scores.softmax(axis=-1).cast_to(factors)
        return weights.matmul(v.cast_to(factors), out=self.q.dtype).value

    def _scale(self, scores: Term) -> Term:
        if self.scale is not None:
            return scores.beside(number(self.scale))
        width = self.q.shape[-1]
        assert isinstance(width, int)
        return constant(scores.build, width, scores.dtype).rsqrt()

    def _masked(self, scores: Term) -> Term:
        """-inf where a key comes after its query; the same for every matrix of the batch."""
        build, square = scores.build, self.q.shape[-2:-1] * 2
        query, key = (Term(build(Iota, shape=square, axis=axis), build) for axis in (0, 1))
        nothing = Term(build(Constant, value=-math.inf, dtype=scores.dtype), build)
        return (key > query).select(nothing, scores)
