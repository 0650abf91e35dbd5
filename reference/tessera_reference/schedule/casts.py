"""`tessera.schedule.layout_cast`: a value in another layout (spec sections 3.3, 6.1, 6.3)."""

from __future__ import annotations

from dataclasses import replace

from ..graph.layouts import known_layout
from ..ir.module import Value
from ..ir.operation import Applied, Attribute, Builder, Operand, operation
from ..ir.types import Tensor
from .operations import ScheduleOperation


@operation("tessera.schedule.layout_cast", clauses=("LANG-06.1-05", "LANG-06.3-02", "LANG-03.3-02"))
class LayoutCast(ScheduleOperation):
    """The same elements in another layout: a copy if `materialize` is set, else the layout that the producer writes.

    Without a copy the producer writes that layout itself and every consumer takes it (AMB-LANG-213).
    """

    x: Operand[Tensor]
    to: Attribute[str]
    materialize: Attribute[bool] = False

    def infer(self) -> Tensor:
        """The operand's type with the other layout, a known one."""
        return replace(self.x, layout=known_layout(self.to))

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """The gradient in the operand's layout."""
        return (build(LayoutCast, at.dy, to=self.x.layout.text, materialize=True),)
