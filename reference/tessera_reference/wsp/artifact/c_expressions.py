"""ScalarExpr as C: statements that compute temporaries in the order in which the executor evaluates operands."""

from __future__ import annotations

from collections.abc import Mapping

from ..expressions import Constant, Expression, Input, Operation, SlotValue, SymbolValue

__all__ = ["Temporaries"]

OPERATORS: Mapping[str, str] = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "wsp_div(m, {0}, {1})",
    "mod": "wsp_mod(m, {0}, {1})",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "shl": "{0} << ({1} & 63)",
    "shr": "{0} >> ({1} & 63)",
    "eq": "wsp_eq({0}, {1})",
    "ne": "wsp_ne({0}, {1})",
    "lt": "wsp_lt({0}, {1})",
    "le": "wsp_le({0}, {1})",
    "gt": "wsp_gt({0}, {1})",
    "ge": "wsp_ge({0}, {1})",
    "min": "wsp_min({0}, {1})",
    "max": "wsp_max({0}, {1})",
    "not": "~{0}",
}


class Temporaries:
    """The statements of a block so far; `m` is the machine in it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def value(self, expression: Expression) -> str:
        """What stands for the value, after the statements that compute it."""
        match expression:
            case Constant(value):
                return f"UINT64_C({value})"
            case SymbolValue(symbol):
                return f"m->symbols[{symbol}]"
            case SlotValue(slot):
                return f"m->slots[{slot}]"
            case Input(name):
                return name
            case Operation("select", (condition, chosen, other)):
                return self._select(condition, chosen, other)
            case Operation(name, operands):
                return self._named(OPERATORS[name].format(*map(self.value, operands)))

    def _named(self, computed: str) -> str:
        name = f"t{self._count}"
        self._count += 1
        self.lines.append(f"u64 {name} = {computed};")
        return name

    def _select(self, condition: Expression, chosen: Expression, other: Expression) -> str:
        """Only the chosen operand is evaluated."""
        when = self.value(condition)
        name = self._named("0")
        for head, operand in ((f"if ({when} != 0) {{", chosen), ("} else {", other)):
            self.lines.append(head)
            self.lines.append(f"{name} = {self.value(operand)};")
        self.lines.append("}")
        return name
