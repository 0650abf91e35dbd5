"""Elements moved, joined and counted out: nothing is computed, every bit arrives, and arrives where it belongs."""

from __future__ import annotations

from fractions import Fraction

from tessera_conformance import oracle
from tessera_conformance.chapters.ir.kit.elements import every_element, require_different
from tessera_conformance.chapters.ir.kit.questions import moved
from tessera_conformance.oracle.exact import float_format
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import COMPLEX, FLOATS, INTEGERS, Question, Topic, codes, counted, tensor

topic = Topic(__doc__)

EVERY = [*FLOATS, *INTEGERS, "bool", *COMPLEX]
SOME = ["fp8_e4m3", "bf16", "fp64", "int8", "bool"]
ONE = ["bf16", "int32"]


# Another order


@topic.vector("{dtype}/transpose/reversed", "LANG-02.3-32", dtype=EVERY)
def transposed(dtype: str) -> Question:
    """The axes of a matrix in reverse order."""
    return moved("transpose", every_element(dtype, (3, 5)))


@topic.vector("{dtype}/transpose/perm-{perm}", dtype=ONE, perm=["012", "021", "102", "120", "201", "210"])
def permuted(dtype: str, perm: str) -> Question:
    """Axis k of the result is axis perm[k] of the operand, not the other way round."""
    return moved("transpose", every_element(dtype, (2, 3, 4)), perm=[int(axis) for axis in perm])


@topic.vector("{dtype}/transpose/{rank}", dtype=ONE, rank=["vector", "four-axes"])
def other_ranks(dtype: str, rank: str) -> Question:
    """A vector is its own transpose; four axes are reversed as a whole."""
    return moved("transpose", every_element(dtype, (5,) if rank == "vector" else (2, 3, 1, 2)))


@topic.vector("{dtype}/reshape/{shape}", dtype=ONE, shape=["8x3", "24", "2x1x12", "6x-1", "-1", "1x24x1"])
def reshaped(dtype: str, shape: str) -> Question:
    """Elements keep their row-major order; -1 stands for what is left."""
    return moved("reshape", every_element(dtype, (4, 6)), shape=[int(extent) for extent in shape.split("x")])


@topic.vector("{dtype}/reshape/matrix", dtype=EVERY)
def any_element(dtype: str) -> Question:
    """Four by three to two by six, every bit as it was."""
    return moved("reshape", every_element(dtype, (4, 3)), shape=[2, 6])


@topic.vector("{dtype}/reshape/{direction}-scalar", dtype=ONE, direction=["to", "from"])
def of_one_element(dtype: str, direction: str) -> Question:
    """One element is a scalar where the shape has no dimensions, and a scalar may be given some (AMB-LANG-27)."""
    if direction == "to":
        return moved("reshape", tensor(dtype, [[3]]), shape=[])
    return moved("reshape", tensor(dtype, 3), shape=[1, 1])


@topic.vector("{dtype}/layout_cast/{layout}", "LANG-03.3-02", dtype=ONE, layout=["row_major", "col_major"])
def stored_otherwise(dtype: str, layout: str) -> Question:
    """A layout says how elements are stored: every element is what it was."""
    return moved("layout_cast", every_element(dtype, (3, 4)), to=layout)


# More of the same


@topic.vector("{dtype}/broadcast/rows", dtype=EVERY)
def repeated(dtype: str) -> Question:
    """A row becomes three equal rows."""
    return moved("broadcast", every_element(dtype, (4,)), shape=[3, 4])


@topic.vector(
    "{dtype}/broadcast/{kind}",
    dtype=ONE,
    kind=["columns", "middle", "both", "same", "new", "square", "scalar", "rows-and-new"],
)
def broadcast(dtype: str, kind: str) -> Question:
    """Axes of extent 1 are repeated and new ones come in front; nothing else moves."""
    operand, shape = {
        "columns": ((3, 1), [3, 4]),
        "middle": ((2, 1, 3), [2, 4, 3]),
        "both": ((3, 1), [2, 3, 4]),
        "same": ((2, 3), [2, 3]),
        "new": ((1, 2), [1, 1, 2]),
        "square": ((3,), [3, 3]),
        "scalar": ((), [2, 3]),
        "rows-and-new": ((1, 3), [2, 2, 4, 3]),
    }[kind]
    return moved("broadcast", every_element(dtype, operand), shape=shape)


@topic.vector("{dtype}/pad/frame", dtype=[*FLOATS, *INTEGERS, "bool"])
def framed(dtype: str) -> Question:
    """One row before, two columns after, and another number at each of the four sides."""
    x = every_element(dtype, (2, 3))
    return moved("pad", x, low=[1, 0], high=[3, 2], value=dtype == "bool" or 1)


@topic.vector("{dtype}/pad/zero", dtype=[*SOME, "complex64"])
def padded_with_zeros(dtype: str) -> Question:
    """Where no value is given the frame is 0."""
    return moved("pad", every_element(dtype, (2, 3)), low=[0, 2], high=[1, 0])


@topic.vector("{dtype}/pad/{side}", dtype=ONE, side=["before", "after", "nowhere"])
def padded_vector(dtype: str, side: str) -> Question:
    """A vector lengthened at one end, and not at all."""
    low, high = {"before": (2, 0), "after": (0, 2), "nowhere": (0, 0)}[side]
    return moved("pad", every_element(dtype, (4,)), low=[low], high=[high], value=-1)


@topic.vector("{dtype}/pad/literal", "LANG-02.3-72", dtype=FLOATS)
def literal(dtype: str) -> Question:
    """The value is the number of the type that is nearest to one tenth."""
    return moved("pad", every_element(dtype, (3,)), low=[1], high=[1], value="0.1")


@topic.vector("{dtype}/pad/negative-zero", dtype=FLOATS)
def negative_zero(dtype: str) -> Question:
    """The value is -0, which is not +0."""
    return moved("pad", every_element(dtype, (3,)), low=[1], high=[1], value="-0.0")


@topic.vector("{dtype}/const_tensor/negative-zero", dtype=FLOATS)
def constant_zeros(dtype: str) -> Question:
    """Zeros of both signs in a list."""
    return moved("const_tensor", shape=[3], dtype=dtype, value=[-0.0, 0.0, 1])


# Less


@topic.vector("{dtype}/slice/matrix", "LANG-14.2-07", dtype=EVERY)
def sliced(dtype: str) -> Question:
    """Rows 1 to 2 and columns 0 to 3: a stop is no longer part of the slice."""
    return moved("slice", every_element(dtype, (4, 5)), starts=[1, 0], stops=[3, 4], steps=[1, 1])


SLICES = {
    "every-other": ([0, 1], [4, 6], [2, 2]),
    "last-step-short": ([0, 0], [4, 6], [3, 4]),
    "down": ([3, 4], [0, 1], [-1, -1]),
    "down-by-two": ([3, 5], [0, 0], [-2, -2]),
    "whole": ([0, 0], [4, 6], [1, 1]),
    "one": ([2, 3], [3, 4], [1, 1]),
}


@topic.vector("{dtype}/slice/{kind}", "LANG-14.2-07", dtype=ONE, kind=list(SLICES))
def strided(dtype: str, kind: str) -> Question:
    """Steps upwards and downwards from the start."""
    starts, stops, steps = SLICES[kind]
    return moved("slice", every_element(dtype, (4, 6)), starts=starts, stops=stops, steps=steps)


@topic.vector("{dtype}/gather/axis-{axis}", dtype=ONE, axis=["0", "1", "2", "-1", "-3"])
def gathered(dtype: str, axis: str) -> Question:
    """The dimensions of the indices, here 2 and 2, take the place of the axis, whichever it is."""
    indices = tensor("int32", [[1, 0], [1, 1]])
    return moved("gather", every_element(dtype, (2, 3, 2)), indices, axis=int(axis))


@topic.vector("{dtype}/gather/rows", dtype=EVERY)
def gathered_rows(dtype: str) -> Question:
    """Rows in any order, one of them twice, one never, the first and the last of all."""
    return moved("gather", every_element(dtype, (4, 3)), tensor("int32", [3, 0, 3, 1, 0]), axis=0)


@topic.vector("{dtype}/gather/{index}-index", dtype=ONE, index=["int64", "scalar"])
def other_indices(dtype: str, index: str) -> Question:
    """int64 indices; a scalar index drops the axis."""
    indices = tensor("int32", 2) if index == "scalar" else tensor("int64", [2, 0, 1])
    return moved("gather", every_element(dtype, (3, 2)), indices, axis=0)


# Together


@topic.vector("{dtype}/concat/rows", dtype=EVERY)
def joined_rows(dtype: str) -> Question:
    """Rows of the first above rows of the second."""
    return moved("concat", every_element(dtype, (2, 3)), every_element(dtype, (1, 3), seed=311), axis=0)


@topic.vector("{dtype}/concat/{kind}", dtype=ONE, kind=["columns", "three", "one", "last", "itself", "vectors"])
def joined(dtype: str, kind: str) -> Question:
    """Two and more parts along any axis, in the order in which they stand."""
    a, b, c = (every_element(dtype, (2, extent, 2), seed) for extent, seed in ((1, 312), (3, 313), (2, 314)))
    parts, axis = {
        "columns": ([a, b], 1),
        "three": ([a, b, c], 1),
        "one": ([b], 0),
        "last": ([c, c], -1),
        "itself": ([a, a, a], 0),
        "vectors": ([every_element(dtype, (3,), 315), every_element(dtype, (2,), 316)], 0),
    }[kind]
    return moved("concat", *parts, axis=axis)


@topic.vector("{dtype}/scatter_add/axis-{axis}", dtype=["bf16", "fp32", "int32"], axis=["0", "1", "-1"])
def scattered(dtype: str, axis: str) -> Question:
    """Updates added along any axis, two of them to one place, none to another."""
    shape = [2, 3, 4]
    shape[int(axis)] = 3
    indices = tensor("int32", [1, 0, 1])
    x, updates = counted(dtype, (2, 3, 4), seed=317), counted(dtype, tuple(shape), seed=318)
    return moved("scatter_add", x, indices, updates, axis=int(axis))


@topic.vector("{dtype}/scatter_add/order", dtype=["tf32", "fp32", "fp64"])
def added_in_order(dtype: str) -> Question:
    """Twelve updates of one place, whose sum differs from the left, from the right and along a tree."""
    x, updates = counted(dtype, (2, 8), seed=319, exponents=(-8, 8)), counted(dtype, (12, 8), 320, exponents=(-8, 8))
    indices = codes("int32", (12,), [1] * 12)
    column = oracle.concat(oracle.slice_(x, starts=[1], stops=[2]), updates, axis=0)
    backward = oracle.gather(column, tensor("int32", list(reversed(range(13)))), axis=0)
    sums = [oracle.sum_(values, axis=0, tree=tree) for values in (column, backward) for tree in ("fold", "pairwise")]
    require_different(sums, "from the left, from the right, and over the tree")
    return moved("scatter_add", x, indices, updates, axis=0)


@topic.vector("{dtype}/scatter_add/order-{along}", dtype=["bf16", "fp32"], along=["1", "-1", "matrix"])
def added_in_order_elsewhere(dtype: str, along: str) -> Question:
    """Twelve updates of one place along the other axes, and by a matrix of indices, whose order is row-major."""
    axis = 0 if along == "matrix" else int(along)
    x = counted(dtype, (2, 2, 2), seed=321, exponents=(-8, 8))
    shape, indices = [2, 2, 2], codes("int32", (3, 4) if along == "matrix" else (12,), [1] * 12)
    shape[axis : axis % 3 + 1] = [3, 4] if along == "matrix" else [12]
    updates = counted(dtype, tuple(shape), seed=322, exponents=(-8, 8))
    return moved("scatter_add", x, indices, updates, axis=axis)


@topic.vector("{dtype}/scatter_add/accumulator", dtype=["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"])
def added_in_wider(dtype: str) -> Question:
    """256 and many updates of which the type itself would keep none: they add up in fp32 and are rounded once."""
    small = float_format(dtype).encode(Fraction(1, 8))
    return moved(
        "scatter_add",
        tensor(dtype, [256, 0, -256]),
        codes("int32", (900,), [place % 3 for place in range(900)]),
        codes(dtype, (900,), [small] * 900),
        axis=0,
    )


@topic.vector("{dtype}/scatter_add/special", dtype=["fp8_e5m2", "bf16", "fp32"])
def added_special(dtype: str) -> Question:
    """What gets no update keeps its bits, -0 and the limits too; -0 with -0 added stays -0, with +0 it does not."""
    top = float_format(dtype).largest
    x, updates = tensor(dtype, [-0.0, -0.0, -0.0, top, -top]), tensor(dtype, [-0.0, 0, -0.0, -1])
    return moved("scatter_add", x, tensor("int32", [1, 2, 1, 4]), updates, axis=0)


# Out of nothing


@topic.vector("{dtype}/iota/{shape}", dtype=[*FLOATS, *INTEGERS], shape=["5-0", "2x3-0", "2x3-1", "2x3x2--2"])
def counted_out(dtype: str, shape: str) -> Question:
    """The position along one axis, whichever it is."""
    extents, _, axis = shape.partition("-")
    return moved("iota", shape=[int(extent) for extent in extents.split("x")], axis=int(axis), dtype=dtype)


@topic.vector("{dtype}/iota/rounded", dtype=["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"])
def rounded_positions(dtype: str) -> Question:
    """Positions that the type cannot hold are rounded to nearest, ties to even."""
    extent = {"fp8_e4m3": 100, "fp8_e5m2": 100, "fp16": 2060, "bf16": 600}[dtype]
    return moved("iota", shape=[extent], axis=0, dtype=dtype)


@topic.vector("{dtype}/const_tensor/{kind}", dtype=[*FLOATS, *INTEGERS], kind=["splat", "list"])
def constants(dtype: str, kind: str) -> Question:
    """One number for every element, or a number for each (AMB-LANG-53)."""
    if kind == "splat":
        return moved("const_tensor", shape=[2, 3], dtype=dtype, value=-3)
    return moved("const_tensor", shape=[6], dtype=dtype, value=[1, -2, 3, 0, 5, -6])


@topic.vector("{dtype}/const_tensor/literal", "LANG-02.3-72", dtype=FLOATS)
def constant_literal(dtype: str) -> Question:
    """0.1 is the number of the type nearest to one tenth."""
    return moved("const_tensor", shape=[2], dtype=dtype, value="0.1")


# Nothing


@topic.vector(
    "{dtype}/{operation}/nothing", dtype=ONE, operation=["transpose", "reshape", "broadcast", "slice", "gather"]
)
def nothing(dtype: str, operation: str) -> Question:
    """A tensor without elements has none in any order, however many times."""
    x = codes(dtype, (0, 3), [])
    given: dict[str, tuple[list[Tensor], dict[str, list[int] | int]]] = {
        "transpose": ([x], {}),
        "reshape": ([x], {"shape": [3, 0, 2]}),
        "broadcast": ([x], {"shape": [2, 0, 3]}),
        "slice": ([x], {"starts": [0, 1], "stops": [0, 3], "steps": [1, 1]}),
        "gather": ([x, tensor("int32", [2, 0])], {"axis": 1}),
    }
    operands, attributes = given[operation]
    return moved(operation, *operands, **attributes)


@topic.vector("{dtype}/slice/empty", dtype=ONE)
def empty_slice(dtype: str) -> Question:
    """A slice that starts where it stops takes nothing of its dimension."""
    return moved("slice", every_element(dtype, (3, 2)), starts=[1, 2], stops=[1, 2], steps=[1, 1])


@topic.vector("{dtype}/concat/beside-nothing", dtype=ONE)
def joined_with_nothing(dtype: str) -> Question:
    """A part without elements adds none."""
    return moved("concat", codes(dtype, (0, 2), []), every_element(dtype, (2, 2)), codes(dtype, (0, 2), []), axis=0)


@topic.vector("{dtype}/gather/no-indices", dtype=ONE)
def no_indices(dtype: str) -> Question:
    """Without indices nothing is gathered."""
    return moved("gather", every_element(dtype, (3, 2)), codes("int32", (0,), []), axis=0)


@topic.vector("{dtype}/pad/nothing", dtype=ONE)
def padded_nothing(dtype: str) -> Question:
    """A frame around nothing is all there is."""
    return moved("pad", codes(dtype, (0, 2), []), low=[1, 0], high=[1, 1], value=2)


@topic.vector("{dtype}/scatter_add/no-updates", dtype=ONE)
def no_updates(dtype: str) -> Question:
    """Without updates everything stays as it is."""
    indices, updates = codes("int32", (0,), []), codes(dtype, (0, 2), [])
    return moved("scatter_add", every_element(dtype, (3, 2)), indices, updates, axis=0)
