"""Control flow of a kernel: counted loops, the same for all threads of a block, and branches under a mask (section 7).

Their names are ours. A region runs at once for all lanes that take it; the others are inactive in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph.control import ZeroStep
from ..ir.dimensions import joined_all, loosened_all
from ..ir.operation import Hidden, Operand, Operands, Shown, operation, require
from ..ir.types import LAYOUTS, Memref, Scalar, Type
from ..numerics.array import Array
from .block import BlockState
from .faults import NotUniform
from .operation import INT32, KernelOperation


def _refuse_memory(types: tuple[Type, ...]) -> None:
    """Refuse memrefs as results of control flow: every access names its memory statically."""
    for type_ in types:
        require(
            not isinstance(type_, Memref),
            "types",
            f"a region hands on {type_}",
            "values other than memory",
            "LANG-11-01",
            "choose the indices instead",
        )


@operation("tessera.tile.for", clauses=("LANG-08.2-03", "LANG-01-06"))
class For(KernelOperation):
    """Counts from start to stop, excluded, by step; the region takes the int32 index and the carried values.

    Start, stop and step are the same in all active lanes; a step of zero is an error (AMB-LANG-29).
    """

    start: Operand[Scalar]
    stop: Operand[Scalar]
    step: Operand[Scalar]
    carried: Operands[Type]

    regions = ("body",)
    layouts = frozenset(LAYOUTS)

    def infer(self) -> tuple[Type, ...]:
        """The carried values, of unchanged types (AMB-LANG-92)."""
        for name, type_ in (("start", self.start), ("stop", self.stop), ("step", self.step)):
            require(
                type_ == INT32, "types", f"the range's {name} is {type_}, not int32", "an int32 scalar", "LANG-11-01"
            )
        _refuse_memory(self.carried)
        return self.carried

    @classmethod
    def region_arguments(cls, operands: tuple[Type, ...]) -> tuple[tuple[Type, ...], ...]:
        """The index and the carried values."""
        return ((INT32, *operands[3:]),)

    def region_results(self) -> tuple[tuple[Type, ...], ...]:
        """The carried values."""
        return (self.carried,)

    def run(self, block: BlockState, start: Array, stop: Array, step: Array, *carried: Any) -> tuple[Any, ...]:
        """Run the body for each index."""
        (body,) = block.regions
        first, end, stride = (
            _uniform(block, name, bound) for name, bound in (("start", start), ("stop", stop), ("step", step))
        )
        if stride == 0:
            raise ZeroStep
        turns = range(first, end, stride)
        block.budget.require(len(turns), body, block.instruction)
        for index in turns:
            carried = block.region(body, (block.uniform(index), *carried))
        return carried


def _uniform(block: BlockState, name: str, bound: Array) -> int:
    """The value of a bound, the same in every active lane. Raises `NotUniform`."""
    values = block.of_active(bound.values)
    differing = (values != values[0]).nonzero()[0]
    if differing.size:
        raise NotUniform(name, int(values[0]), int(values[differing[0]]), block.thread(block.active[differing[0]]))
    return int(values[0])


@operation("tessera.tile.if", clauses=("LANG-08.2-03", "LANG-01-06"))
class If(KernelOperation):
    """Runs `then` in the lanes where the condition holds, `otherwise` in the others."""

    condition: Operand[Scalar]
    returns: Hidden[tuple[Type, ...]]

    regions = ("then", "otherwise")

    def infer(self) -> tuple[Type, ...]:
        """What both regions yield."""
        require(
            self.condition.dtype.kind == "bool",
            "types",
            f"the condition is {self.condition}, not bool",
            "a scalar bool",
            "LANG-11-01",
        )
        _refuse_memory(self.returns)
        return self.returns

    def region_results(self) -> tuple[tuple[Type, ...], ...]:
        """Both yield the results."""
        return self.returns, self.returns

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """The results are what the regions yield."""
        both = joined_all([tuple(value.type for value in block.results) for block in shown.regions])
        require(both is not None, "types", "its regions yield different types", "regions that agree", "LANG-01-06")
        assert both is not None
        return {"returns": loosened_all(both, shown.results)}

    def run(self, block: BlockState, condition: Array) -> tuple[Any, ...]:
        """Run both regions, each under its mask, or the one that all active lanes take."""
        then, otherwise = block.regions
        taken = np.count_nonzero(block.of_active(condition.values))
        if taken == block.active.size:
            return block.region(then, ())
        if not taken:
            return block.region(otherwise, ())
        outer = block.mask
        with block.under(condition.values, outer):
            first = block.region(then, ())
        with block.under(~condition.values, outer):
            second = block.region(otherwise, ())
        return tuple(block.merged(condition.values, a, b) for a, b in zip(first, second, strict=True))
