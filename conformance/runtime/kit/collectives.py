"""Collectives of the runtime on data that differs by rank: arguments, groups of ranks, judgement of results.

Runtime spec, 4.6 and 13; AMB-RT-02, -04, -05. Ranks are filled and read one by one, which needs rank-memory. The oracle
of all-reduce gives the expected values; the other collectives move elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

import pytest

from tessera_conformance.arithmetic import canonical as arithmetic_of
from tessera_conformance.check import Check, first_difference
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.collectives import all_reduce
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.protocol import Observation, Returned
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import Declaration, Question, declaration, judge_declared, replayed

from .mesh_session import DTYPE_IDS, MAX, MIN, SUM, MeshSession, opened
from .policies import LEVELS
from .readings import rejected

AXES = ("tp", "pp", "dp", "ep")
"""From the slowest to the fastest coordinate of a rank (AMB-RT-02)."""

OPERATORS = {SUM: "sum", MAX: "max", MIN: "min"}

DTYPE_OPERATORS = {
    f"{operator} of {dtype}": (dtype, op)
    for dtype in DTYPE_IDS
    for op, operator in OPERATORS.items()
    if not (dtype == "bool" and op == SUM) and not (dtype.startswith("complex") and op != SUM)
}
"""Every dtype with every operator that it has (AMB-RT-28, AMB-RT-57)."""

MESHES = {
    "eight along dp": {"dp": 8},
    "tp of a cube": {"tp": 2, "pp": 2, "dp": 2},
    "tp by dp": {"tp": 2, "dp": 4},
    "pp by ep": {"pp": 3, "ep": 2},
    "all four": {"tp": 2, "pp": 1, "dp": 2, "ep": 2},
    "three": {"ep": 3},
}
MESH_AXES = [
    pytest.param(sizes, axis, id=f"{axis} of {name}")
    for name, sizes in MESHES.items()
    for axis in AXES
    if axis in sizes
]
"""Each axis of each mesh."""

FUNCTIONS = {
    "all_reduce": "tessAllReduce",
    "reduce_scatter": "tessReduceScatter",
    "all_gather": "tessAllGather",
    "broadcast": "tessBroadcast",
}

GUARD = b"\x5a" * 64
"""Bytes behind each buffer, which must not change."""


def gathered(impl: Implementation, check: Check, **sizes: int) -> MeshSession:
    """Return a mesh with these axes under the policy of the run's level."""
    session = opened(impl, check, prod(size for size in sizes.values() if size), **sizes)
    session.set_policy(LEVELS[impl.level])
    return session


def groups(axis: str | None, **sizes: int) -> list[list[int]]:
    """Return the groups of ranks along an axis, each in order of their coordinate; without an axis, all of the mesh."""
    counts = {name: sizes.get(name, 0) or 1 for name in AXES}
    ranks = prod(counts.values())
    if axis is None:
        return [list(range(ranks))]
    stride = prod(counts[name] for name in AXES[AXES.index(axis) + 1 :])
    first = [rank for rank in range(ranks) if rank // stride % counts[axis] == 0]
    return [[rank + place * stride for place in range(counts[axis])] for rank in first]


def contributions(dtype: str, count: int, ranks: int, seed: int) -> list[Tensor]:
    """Return a tensor of counter bits for each rank."""
    words = ELEMENT_FORMATS[dtype].words
    if words == 1:
        return [counted(dtype, (count,), seed=seed + rank) for rank in range(ranks)]
    part = "fp32" if dtype == "complex64" else "fp64"
    return [Tensor(dtype, (count,), counted(part, (2 * count,), seed=seed + rank).data) for rank in range(ranks)]


def filled(session: MeshSession, inputs: Sequence[Tensor]) -> int:
    """Return one pointer behind which each rank has its tensor, followed by `GUARD`."""
    pointer = session.allocate(len(inputs[0].data) + len(GUARD))
    for rank, tensor in enumerate(inputs):
        session.poke(rank, pointer, tensor.data + GUARD)
    return pointer


def held(session: MeshSession, pointer: int, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the ranks' tensors once all work is done; check that the memory behind them is unchanged."""
    found = []
    for rank, tensor in enumerate(inputs):
        data = session.peek(rank, pointer, len(tensor.data) + len(GUARD))
        session.check.equal(
            data[len(tensor.data) :].hex(), GUARD.hex(), f"what stands behind the buffer of rank {rank}"
        )
        found.append(Tensor(tensor.dtype, tensor.shape, data[: len(tensor.data)]))
    return found


def asking(
    session: MeshSession, collective: str, pointer: int, count: int, dtype: str | int, **more: Any
) -> Observation:
    """Return the answer of a collective; a dtype is a name or an id, `more` an op, axis, root or other argument."""
    buffer = "buffer" if collective in ("all_reduce", "broadcast") else "inout"
    number = DTYPE_IDS[dtype] if isinstance(dtype, str) else dtype
    given: dict[str, Any] = {"mesh": session.mesh, buffer: pointer, "count": count, "dtype": number}
    answer = session.attempt(FUNCTIONS[collective], **(given | {"stream": session.stream} | more))
    if isinstance(dtype, str) and dtype not in EVERYWHERE:
        presume_dtype(session, answer, f"{collective} of {dtype}")
    return answer


EVERYWHERE = ("fp32", "int32")
"""The dtypes for which every machine has collectives; others may be unsupported (AMB-RT-59)."""


def presume_dtype(session: MeshSession, answer: Observation, what: str) -> None:
    """Presume that the machine has this collective: the call and a synchronization are not unsupported."""
    if isinstance(answer, Returned):
        answer = session.attempt("tessStreamSynchronize", stream=session.stream)
        if not rejected(answer, UNSUPPORTED):
            session.succeeds(answer, "tessStreamSynchronize")
    session.check.given(not rejected(answer, UNSUPPORTED), f"the machine has {what}", "TESS_ERR_UNSUPPORTED")


UNSUPPORTED = "TESS_ERR_UNSUPPORTED"


def done(session: MeshSession, collective: str, pointer: int, count: int, dtype: str, **more: Any) -> None:
    """Call a collective, which must succeed."""
    session.check.returns(asking(session, collective, pointer, count, dtype, **more), f"{collective} succeeds")


def share(tensor: Tensor, place: int, of: int) -> Tensor:
    """Return the elements that a member owns (AMB-RT-04)."""
    size, count = len(tensor.data) // max(tensor.shape[0], 1), tensor.shape[0]
    start, stop = place * count // of, (place + 1) * count // of
    return Tensor(tensor.dtype, (stop - start,), tensor.data[start * size : stop * size])


def joined(parts: Sequence[Tensor]) -> Tensor:
    """Return one tensor of all parts."""
    return Tensor(parts[0].dtype, (sum(part.shape[0] for part in parts),), b"".join(part.data for part in parts))


@lru_cache(maxsize=32)  # every rank's result is judged, and cases bring the same data
def canonical(op: str, *inputs: Tensor) -> Tensor:
    """Return the result in the canonical order."""
    return all_reduce(*inputs, op=op)[0]


def judge_reduced(
    impl: Implementation, check: Check, found: Tensor, inputs: Sequence[Tensor], op: int, what: str
) -> None:
    """Check that a reduction has the bits, or is within the bounds, of the run's level."""
    operator = OPERATORS[op]
    is_float, exact = inputs[0].format.is_float, op != SUM
    question = Question("all_reduce", inputs, {"op": operator})
    if not exact and inputs[0].format.word_bytes < 4 and is_float and impl.level != "fast":
        judge_steps(impl, check, question, found)
    if impl.level == "strict" or not is_float or exact:
        check.bits(found, canonical(operator, *inputs), what)
        return
    if impl.level == "deterministic" and question.is_replayed:
        judge_declared(impl, check, question, found)
        return
    check.enclosed(found, bounds.enclose("oracle.all_reduce", list(inputs), {"op": operator}), what)


def judge_steps(impl: Implementation, check: Check, question: Question, found: Tensor) -> None:
    """End the case if each step rounds a sum of a narrow dtype to it (AMB-RT-57)."""
    dtype = question.inputs[0].dtype
    strict = Declaration(Tree.from_text("pairwise"), arithmetic_of(dtype))
    declared = strict if impl.level == "strict" else declaration(impl, check, question)
    once = replayed(check, question, declared)
    stepwise = replayed(check, question, replace(declared, model=declared.model.but(accumulator=dtype)))
    follows = first_difference(found, stepwise) is None is not first_difference(found, once)
    check.reading("AMB-RT-57", "round at each step", follows)


def parts_of(collective: str, axis: str = "dp") -> dict[str, Any]:
    """Return the operator and axis, or the root, of a call: sums along dp, from rank 0."""
    if collective == "broadcast":
        return {"root": 0}
    return {"axis": axis} | ({} if collective == "all_gather" else {"op": SUM})


def mapping_of_ranks(lists: Sequence[Sequence[int]]) -> Mapping[int, tuple[int, Sequence[int]]]:
    """Return the place of each rank in its group, and the group."""
    return {rank: (place, group) for group in lists for place, rank in enumerate(group)}
