"""Layouts: as attributes, words such as `col_major` or `blocked(bm=2,bn=4)`; and casts between them (section 3.3)."""

from dataclasses import replace

from ..ir.module import Value
from ..ir.operation import Applied, Attribute, Builder, Environment, Operand, Operation, operation, require
from ..ir.types import LAYOUTS, Layout, Tensor, is_layout, layout_of
from ..numerics.array import Array


def known_layout(text: str) -> Layout:
    """The layout that an attribute names. Raises `Refusal`."""
    try:
        layout = layout_of(text)
    except ValueError:
        layout = Layout(text)
    require(
        is_layout(layout),
        "layouts",
        f"{text!r} is no layout",
        f"one of {', '.join(LAYOUTS)}, blocked with bm and bn",
        "LANG-02.3-39",
    )
    return layout


@operation("tessera.graph.layout_cast", spellings=("op.layout_cast",), clauses=("LANG-03.3-02", "LANG-11-05"))
class LayoutCast(Operation):
    """The same elements in another layout: a materialized copy (AMB-LANG-67)."""

    x: Operand[Tensor]
    to: Attribute[str]

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Tensor:
        """The operand's type with the other layout."""
        return replace(self.x, layout=known_layout(self.to))

    def execute(self, x: Array, env: Environment) -> Array:
        """Elements stay where they are; a layout says how they are stored."""
        return x

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """The gradient in the operand's layout."""
        return (build(LayoutCast, at.dy, to=self.x.layout.text),)
