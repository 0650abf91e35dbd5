"""Wrong execution of schedules: stale buffers, wrong tails, another order of terms (sections 4, 6.1, 6.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import make
from tessera_reference.graph import constant
from tessera_reference.ir.operation import Instruction
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.rounding import cast
from tessera_reference.schedule import execution
from tessera_reference.schedule.execution import Grid, Ring
from tessera_reference.schedule.operations import Annotations, Fuse

Step = Callable[[int], None]


def buffering(name: str, clause: str, description: str, method: str, substitute: Any) -> Violation:
    """Return a violation with another use of a ring of buffers."""
    return replaced(clause, description, make, (Ring, method, substitute), name=name)


def pipelining(name: str, clause: str, description: str, pipelined: Any) -> Violation:
    """Return a violation with another order of pipeline steps."""
    return replaced(clause, description, make, ("schedule.execution.pipelined", pipelined), name=name)


def _leaving_the_rest(self: Ring, step: int, tile: Any, padding: Any = None) -> None:
    _fill(self, step, tile, None)


_read, _fill = Ring.read, Ring.fill


def _without_the_last(steps: int, depth: int, stage: Step, compute: Step) -> None:
    _pipelined(steps - 1 if steps > depth > 1 else steps, depth, stage, compute)


def _backwards(steps: int, depth: int, stage: Step, compute: Step) -> None:
    for step in reversed(range(steps)):
        stage(step)
        compute(step)


_pipelined = execution.pipelined

STAGES = [
    buffering("stale", "LANG-04-11", "computes with what was loaded for the step before", "read",
        lambda self, step, shape: _read(self, max(step - 1, 0), shape)),
    pipelining("last_step", "LANG-06.1-03", "forgets the last step of a deep pipeline", _without_the_last),
]  # fmt: skip


def _transposed(self: Grid) -> Iterator[Any]:
    for place, covered in _tiles(self):
        *batch, rows, columns = covered
        tail = slice(columns.start, min(columns.stop, columns.start + rows.stop - rows.start))
        yield place, (*batch, rows, tail)


_tiles = Grid.tiles

TAILS = [
    buffering("padding", "LANG-06.3-01", "leaves in a buffer what a tail does not fill", "fill", _leaving_the_rest),
    replaced("LANG-06.3-01", "takes one extent for the other", make, ("schedule.execution.Grid.tiles", _transposed),
        name="square_tails"),
]  # fmt: skip


def _rounded_each_time(a: Array, b: Array, *rest: Any, addend: Array, accumulator: Any) -> Array:
    found = matmul(a, b, *rest, addend=addend, accumulator=accumulator)
    return cast(cast(found, dtype("bf16")), found.dtype) if a.dtype.name == "bf16" else found


SUMS = [
    replaced("LANG-08.2-01", "rounds the accumulator after every tile", make,
        ("schedule.execution.matmul", _rounded_each_time), name="narrow_accumulator"),
]  # fmt: skip


def _of_one_batch_dimension(self: execution.Contraction, place: Any, covered: Any) -> Array:
    first, *others = covered
    if len(covered) > 3 and others[0].stop <= self.operands[0].shape[0]:
        first = others[0]
    return TILE(self, place, (first, *others))


TILE = execution.Contraction.tile
ONE_BATCH_DIMENSION = replaced(
    "LANG-06.2-01",
    "takes the operands of a batch of two dimensions by the second alone",
    make,
    ("schedule.execution.Contraction.tile", _of_one_batch_dimension),
    name="one_batch_dimension",
)


def _first_of_a_fusion(self: Annotations, instruction: Instruction) -> None:
    _note(self, instruction)
    if isinstance(instruction.operation, Fuse):
        self._roots[instruction.results[0]] = self.root(instruction.operands[0])


_note = Annotations._note


def _in_another_order(self: constant.LayoutCast, x: Array, env: Any) -> Array:
    if self.to != "col_major":
        return x
    return Array(x.dtype, x.values.T.reshape(x.shape))


def _of_the_first_batch(self: Grid, values: Any, covered: tuple[slice, ...]) -> Any:
    if values.ndim > 3 and values.shape[0] == 1:
        covered = (covered[0], slice(0, 1), *covered[2:])
    return PART(self, values, covered)


PART = Grid.part

VALUES = [
    replaced("LANG-08.2-01", "takes the first matrix of an operand that broadcasts along an outer axis", make,
        ("schedule.execution.Grid.part", _of_the_first_batch), name="of_the_first_batch"),
    replaced("LANG-06.1-02", "gives the first value of a fusion", make,
        ("schedule.operations.Annotations._note", _first_of_a_fusion), name="first_value"),
    replaced("LANG-06.1-05", "reorders elements with their layout", make,
        ("graph.constant.LayoutCast.execute", _in_another_order), name="reordered"),
    replaced("LANG-06.3-02", "copies the columns of a blocked layout back to front", make,
        ("graph.constant.LayoutCast.execute",
        lambda self, x, env: Array(x.dtype, x.values[..., ::-1]) if self.to.startswith("blocked") else x),
        name="back_to_front"),
]  # fmt: skip
