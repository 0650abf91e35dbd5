"""The instructions of a kernel call as C: a loop an instruction, over tensors whose dtype and count are known.

Integers are computed without signs, which wrap as two's complement does; only orders look at the sign bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..kernels import Instruction, Kernel, Operand
from ..package import Tensor
from .c_text import block

__all__ = ["effect"]

FLOATS = {"fp32": "float", "fp64": "double"}
INTEGER = {"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}"}


def effect(name: str, kernel: Kernel, tensors: Mapping[str, int], declared: Sequence[Tensor]) -> list[str]:
    """The function `name`: what the kernel does to tensors, by parameter, given its scalars."""
    scalars = [each for each, kind in kernel.parameters.items() if kind == "scalar"]
    lines = ["(void)m;", "(void)scalars;"]
    for each in kernel.instructions:
        lines += _Loop(each, tensors, declared, scalars).lines()
    return block(f"static void {name}(Machine *m, const u64 *scalars)", lines)


class _Loop:
    def __init__(
        self, instruction: Instruction, tensors: Mapping[str, int], declared: Sequence[Tensor], scalars: Sequence[str]
    ) -> None:
        self.instruction = instruction
        self.tensors = tensors
        self.declared = declared
        self.scalars = scalars
        self.destination = declared[tensors[instruction.destination]]
        dtype = self.destination.dtype
        self.bits = 8 * self.destination.nbytes // self.destination.count
        self.signed = dtype[0] == "i"
        self.float = FLOATS.get(dtype)
        self.bool = dtype == "bool"
        self.kind = self.float or f"uint{self.bits}_t"

    def lines(self) -> Iterator[str]:
        """The instruction in braces."""
        op, operands = self.instruction.op, self.instruction.operands
        yield f"{{ /* {op} */"
        yield f"    {self.kind} *d = ({self.kind} *)m->tensors[{self.tensors[self.instruction.destination]}];"
        values = []
        for name, operand in zip("ab", operands, strict=False):
            declaration, value = self._operand(name, operand)
            yield f"    {declaration}"
            values.append(value)
        if op == "sum":
            yield from self._sum(self.declared[self.tensors[operands[0].parameter]].count)
        else:
            computed = self._computed(op, values)
            yield f"    for (size_t i = 0; i < {self.destination.count}; i++) d[i] = {computed};"
        yield "}"

    def _operand(self, name: str, operand: Operand) -> tuple[str, str]:
        if operand.parameter in self.tensors:
            data = f"(const {self.kind} *)m->tensors[{self.tensors[operand.parameter]}]"
            return f"const {self.kind} *{name} = {data};", f"{name}[i]"
        given = f"UINT64_C({operand.constant})"
        if operand.parameter:
            given = f"scalars[{self.scalars.index(operand.parameter)}]"
        converted = f"{given} != 0" if self.bool else f"({self.kind}){given}"
        return f"const {self.kind} {name} = {converted};", name

    def _computed(self, op: str, values: Sequence[str]) -> str:
        if op in ("fill", "copy"):
            return values[0]
        if op == "iota":
            return f"({self.kind})i + {values[0]}" if self.float else f"({self.kind})((u64)i + {values[0]})"
        if op in INTEGER:
            if self.float:
                return f"wsp_settled_{self.float}({INTEGER[op].format(*values)})"
            a, b = (f"(u64){each}" for each in values)
            return f"({self.kind})({INTEGER[op].format(a, b)})"
        if self.float:
            return f"wsp_{op}_{self.float}({', '.join(values)})"
        a, b = (f"((u64){each} ^ {self._sign()})" for each in values)
        chosen, other = values if op == "min" else reversed(values)
        return f"{a} < {b} ? {chosen} : {other}"

    def _sign(self) -> str:
        return f"UINT64_C({1 << (self.bits - 1)})" if self.signed else "0"

    def _sum(self, count: int) -> Iterator[str]:
        """In element order."""
        kind = self.float or "u64"
        yield f"    {kind} total = a[0];"
        yield f"    for (size_t i = 1; i < {count}; i++) total += a[i];"
        yield f"    d[0] = {f'wsp_settled_{self.float}(total)' if self.float else f'({self.kind})total'};"
