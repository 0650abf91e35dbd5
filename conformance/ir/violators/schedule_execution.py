"""Wrong execution of schedules: stale buffers, wrong tails, another order of terms (sections 4, 6.1, 6.2)."""

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.rounding import cast
from tessera_reference.schedule.operations import Fuse

from .changes import breaks, instead, wrapped


@breaks("LANG-06.3-01", "takes one extent for the other", "schedule.execution.Grid.tiles")
def square_tails(usual, self):
    for place, covered in usual(self):
        *batch, rows, columns = covered
        tail = slice(columns.start, min(columns.stop, columns.start + rows.stop - rows.start))
        yield place, (*batch, rows, tail)


@breaks("LANG-08.2-01", "rounds the accumulator after every tile", "schedule.execution.matmul")
def narrow_accumulator(usual, a, *operands, **types):
    found = usual(a, *operands, **types)
    return cast(cast(found, dtype("bf16")), found.dtype) if a.dtype.name == "bf16" else found


def _of_one_batch_dimension(usual, self, place, covered):
    first, *others = covered
    if len(covered) > 3 and others[0].stop <= self.operands[0].shape[0]:
        first = others[0]
    return usual(self, place, (first, *others))


@breaks("LANG-06.1-02", "gives the first value of a fusion", "schedule.operations.Annotations._note")
def first_value(usual, self, instruction):
    usual(self, instruction)
    if isinstance(instruction.operation, Fuse):
        self._roots[instruction.results[0]] = self.root(instruction.operands[0])


def _of_the_first_batch(usual, self, values, covered):
    if values.ndim > 3 and values.shape[0] == 1:
        covered = (covered[0], slice(0, 1), *covered[2:])
    return usual(self, values, covered)


VALUES = [
    wrapped("LANG-04-11", "stale", "computes with what was loaded for the step before", "schedule.execution.Ring.read",
        lambda usual, self, step, shape: usual(self, max(step - 1, 0), shape)),
    wrapped("LANG-06.1-03", "last_step", "forgets the last step of a deep pipeline", "schedule.execution.pipelined",
        lambda usual, steps, depth, stage, compute:
        usual(steps - 1 if steps > depth > 1 else steps, depth, stage, compute)),
    wrapped("LANG-06.3-01", "padding", "leaves in a buffer what a tail does not fill", "schedule.execution.Ring.fill",
        lambda usual, self, step, tile, padding=None: usual(self, step, tile, None)),
    wrapped("LANG-06.2-01", "one_batch_dimension",
        "takes the operands of a batch of two dimensions by the second alone", "schedule.execution.Contraction.tile",
        _of_one_batch_dimension),
    wrapped("LANG-08.2-01", "of_the_first_batch",
        "takes the first matrix of an operand that broadcasts along an outer axis", "schedule.execution.Grid.part",
        _of_the_first_batch),
    instead("LANG-06.1-05", "reordered", "reorders elements with their layout", "graph.constant.LayoutCast.execute",
        lambda self, x, env: x if self.to != "col_major" else Array(x.dtype, x.values.T.reshape(x.shape))),
    instead("LANG-06.3-02", "back_to_front", "copies the columns of a blocked layout back to front",
        "graph.constant.LayoutCast.execute",
        lambda self, x, env: Array(x.dtype, x.values[..., ::-1]) if self.to.startswith("blocked") else x),
]  # fmt: skip
