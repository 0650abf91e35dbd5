"""What adjoints share: the terms that one starts from, and positions along an axis (section 5.5; AMB-LANG-59).

An adjoint is a composition of operations of Graph IR in the operand's dtype, each of which rounds, so that it can be
executed, traced and differentiated again like any other code.
"""

from __future__ import annotations

from ..ir.operation import OPERATIONS, Applied, Builder
from .term import Term


def terms(at: Applied, build: Builder) -> tuple[Term, ...]:
    """The gradient of the only result, the result, and the operands."""
    return tuple(Term(value, build) for value in (at.dy, at.results[0], *at.operands))


def positions_along(axis: int, like: Term) -> Term:
    """The position along an axis of every element of a tensor, as int32."""
    declared = OPERATIONS["tessera.graph.iota"]
    return Term(like.build(declared, shape=like.shape, axis=axis), like.build)
