"""Control flow of a kernel in MLIR's scf dialect: it executes as that of Tile IR, and becomes blocks and phis."""

from __future__ import annotations

from ...ir.operation import operation
from ...tile.control import For as TileFor
from ...tile.control import If as TileIf
from ..emission.writer import Writer
from ..operation import TargetOperation

_CLAUSES = ("LANG-08-01", "LANG-01-06")


@operation("scf.for", clauses=_CLAUSES)
class For(TileFor, TargetOperation):
    """Counts from start to stop, excluded, by step, which may be negative."""

    def emit(self, text: Writer, start: str, stop: str, step: str, *carried: str) -> tuple[str, ...]:
        """A header that decides, a body, and an exit; the header's phis are the loop-carried values."""
        head, body, leave = (text.fresh(f"{part}_") for part in ("head", "body", "leave"))
        before = text.label
        text.do(f"br label %{head}")
        text.start(head)
        index = f"%v{text.fresh()}"
        here = tuple(f"%v{text.fresh()}" for _ in carried)
        phis = [text.later() for _ in (index, *here)]
        goes_on = _goes_on(text, index, stop, step)
        text.do(f"br i1 {goes_on}, label %{body}, label %{leave}")
        text.start(body)
        yielded = text.region(0, index, *here)
        following = text.value(f"add i32 {index}, {step}")
        types = ("i32", *(text.type(type_) for type_ in self.carried))
        incoming = zip((start, *carried), (following, *yielded), strict=True)
        for line, name, type_, (first, next_) in zip(phis, (index, *here), types, incoming, strict=True):
            text.fill(line, f"{name} = phi {type_} [ {first}, %{before} ], [ {next_}, %{text.label} ]")
        text.do(f"br label %{head}")
        text.start(leave)
        return here


def _goes_on(text: Writer, index: str, stop: str, step: str) -> str:
    """Whether the index is before the end, in the direction of the step."""
    if not step.startswith("%"):
        return text.value(f"icmp {'slt' if int(step) > 0 else 'sgt'} i32 {index}, {stop}")
    below, above = (text.value(f"icmp {predicate} i32 {index}, {stop}") for predicate in ("slt", "sgt"))
    rises = text.value(f"icmp sgt i32 {step}, 0")
    return text.value(f"select i1 {rises}, i1 {below}, i1 {above}")


@operation("scf.if", clauses=_CLAUSES)
class If(TileIf, TargetOperation):
    """Runs one of two regions; what it yields is the result."""

    def emit(self, text: Writer, condition: str) -> tuple[str, ...]:
        """A branch, two blocks, and phis in the block that joins them."""
        then, otherwise, join = (text.fresh(f"{part}_") for part in ("then", "else", "join"))
        text.do(f"br i1 {condition}, label %{then}, label %{otherwise}")
        ends = []
        for index, label in enumerate((then, otherwise)):
            text.start(label)
            yielded = text.region(index)
            ends.append((yielded, text.label))
            text.do(f"br label %{join}")
        text.start(join)
        (first, from_first), (second, from_second) = ends
        return tuple(
            text.value(f"phi {text.type(type_)} [ {a}, %{from_first} ], [ {b}, %{from_second} ]")
            for type_, a, b in zip(self.returns, first, second, strict=True)
        )
