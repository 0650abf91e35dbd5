"""Stage one of a hierarchical collective: partial values of warps and blocks (collectives specification 4.4).

An input holds the partial values of a device along its first two axes, blocks and warps (AMB-COLL-66).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import pytest

from tessera_conformance.arithmetic import canonical, replay
from tessera_conformance.chapters.collectives.kit.exchanges import share
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import Question, judge_declared

pytestmark = feature("operation-access", "hierarchical")

MACHINES = [(1, 1), (2, 1), (2, 2), (4, 2), (6, 3), (5, 1)]
"""Ranks, and how many of them are on a node."""
PARTIALS = [(1, 1), (1, 3), (5, 1), (2, 4), (3, 7)]
"""Blocks of a device, and warps of a block: one, powers of two, primes."""


def values(dtype: str, ranks: int, partials: tuple[int, int], count: int) -> list[Tensor]:
    """The partial values of all devices, in order of device, block and warp; their sum depends on the order."""
    seeds = range(1700, 1700 + ranks * prod(partials))
    return [counted(dtype, (count,), seed=seed, exponents=(-7, 7)) for seed in seeds]


def devices(partial: Sequence[Tensor], partials: tuple[int, int]) -> list[Tensor]:
    """Return each device's partial values in one tensor."""
    per_device, shape = prod(partials), partial[0].shape
    parts = [partial[at : at + per_device] for at in range(0, len(partial), per_device)]
    return [Tensor(own[0].dtype, (*partials, *shape), b"".join(x.data for x in own)) for own in parts]


def call(inputs: Sequence[Tensor], partials: tuple[int, int], per_node: int, **more: Any) -> dict[str, Any]:
    """The arguments of a hierarchical all-reduce of partial values."""
    given = {"operation": "all_reduce", "inputs": inputs, "op": "sum", "algorithm": "hierarchical"}
    return {**given, "per_node": per_node, "partials": list(partials), **more}


@clause("COLL-04.4-01", "COLL-04.4-04")
@pytest.mark.parametrize("partials", PARTIALS)
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_under_strict_all_partial_values_are_combined_over_the_canonical_tree(impl, check, dtype, partials):
    """In order of device, block and warp, in fp32, rounded once: nothing is rounded between stages."""
    for ranks, per_node in MACHINES:
        partial = values(dtype, ranks, partials, count=2 * ranks + 3)
        expected = replay.all_reduce(partial, Tree.from_text("pairwise"), canonical(dtype))
        given = call(devices(partial, partials), partials, per_node, level="strict")
        for rank, output in enumerate(check.returns(impl.collectives.run(**given))["outputs"]):
            check.bits(output, expected, f"all_reduce, rank {rank} of {ranks}")
        shares = check.returns(impl.collectives.run(**given | {"operation": "reduce_scatter"}))["outputs"]
        words = expected.words()
        for rank, output in enumerate(shares):
            own = words[share(len(words), rank, ranks)]
            check.bits(output, Tensor(dtype, own.shape, own.tobytes()), f"reduce_scatter, rank {rank} of {ranks}")


@feature("algorithm-control")
@clause("COLL-04.4-01", "RT-06-04")
@pytest.mark.parametrize("partials", PARTIALS)
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_under_deterministic_partial_values_are_combined_as_declared(impl, check, dtype, partials):
    """The declared tree over all partial values, replayed; the same bits on every rank and on every run."""
    for ranks, per_node in MACHINES:
        partial = values(dtype, ranks, partials, count=2 * ranks + 1)
        given = call(devices(partial, partials), partials, per_node, level="deterministic")
        first = check.returns(impl.collectives.run(**given))["outputs"]
        arguments = {name: given[name] for name in ("op", "algorithm", "per_node", "partials")}
        judge_declared(impl, check, Question("all_reduce", partial, arguments), first[0])
        again = check.returns(impl.collectives.run(**given))["outputs"]
        for rank, output in enumerate([*first, *again]):
            check.bits(output, first[0], f"rank {rank % ranks} of {ranks} and rank 0")


def subtrees(tree: Any) -> Iterator[frozenset[int]]:
    """The leaves below each node, and each leaf."""
    if isinstance(tree, int):
        yield frozenset((tree,))
        return
    below = [list(subtrees(child)) for child in tree]
    for subtree in below:
        yield from subtree
    yield frozenset().union(*(branch[-1] for branch in below))


@feature("algorithm-control")
@pytest.mark.parametrize(
    "stage",
    [
        pytest.param("block", marks=clause("COLL-04.4-01")),
        pytest.param("device", marks=clause("COLL-04.4-01")),
        pytest.param("node", marks=clause("COLL-04.4-02")),
    ],
)
@pytest.mark.parametrize("partials", PARTIALS)
def test_the_declared_order_has_stages(impl, check, partials, stage):
    """Warps of a block are combined first, then blocks of a device, devices of a node, and nodes."""
    for ranks, per_node in MACHINES:
        count, (blocks, warps) = ranks + 2, partials
        size = {"block": warps, "device": blocks * warps, "node": per_node * blocks * warps}[stage]
        total = ranks * blocks * warps
        attributes = {"op": "sum", "algorithm": "hierarchical", "per_node": per_node, "partials": list(partials)}
        for element in range(count):
            said = impl.numerics.declared(
                operation="all_reduce", dtype="fp32", shapes=[[count]] * total, attributes=attributes, element=element
            )
            actual = set(subtrees(Tree.from_json(check.returns(said)["tree"]).over(total).to_json()))
            for first in range(0, total, size):
                together = frozenset(range(first, first + size)) in actual
                what = f"the {stage} of partial values {first} to {first + size - 1} is one subtree"
                check.true(together, f"element {element} of {ranks} ranks: {what}", sorted(map(sorted, actual)))


@feature("collective-messages")
@clause("COLL-04.4-01", "COLL-04.4-02")
@pytest.mark.parametrize("operation", ["all_reduce", "reduce_scatter"])
def test_stage_one_sends_nothing(impl, check, operation):
    """The messages are those of devices with one value each, for any number of partial values."""
    for ranks, per_node in MACHINES:
        count = 3 * ranks + 1
        one = [tensor_of("int32", [1] * count) for _ in range(ranks)]
        given = {"operation": operation, "messages": True, "chunk": 4}
        plain = {name: value for name, value in call(one, (1, 1), per_node, **given).items() if name != "partials"}
        expected = check.returns(impl.collectives.run(**plain))["messages"]
        for partials in PARTIALS[1:]:
            tensors = [tensor_of("int32", [[[1] * count] * partials[1]] * partials[0]) for _ in range(ranks)]
            actual = check.returns(impl.collectives.run(**call(tensors, partials, per_node, **given)))["messages"]
            check.equal(actual, expected, f"the messages of {ranks} ranks with {partials} partial values")


SMALL = {
    "sum": (sum, ("fp64", "fp32", "fp16", "bf16", "int16", "int32", "int64")),
    "prod": (prod, ("fp64", "fp32", "bf16", "int32", "int64")),
    "mean": (lambda column: Fraction(sum(column), len(column)), ("fp64", "fp32", "bf16", "fp16")),
    "max": (max, ("fp32", "fp8_e5m2", "int8", "int64")),
    "min": (min, ("fp32", "fp8_e4m3", "int16", "int32")),
}


@pytest.mark.parametrize("op", SMALL)
@clause("COLL-04.4-01")
def test_every_operator_combines_the_partial_values_of_all_devices(impl, check, op):
    """The numbers are small, so results are exact; a mean divides by the number of values; shapes are kept."""
    combine, dtypes = SMALL[op]
    for ranks, per_node, partials in ((4, 2, (2, 4)), (2, 2, (1, 8)), (2, 1, (4, 2))):
        total = ranks * prod(partials)
        for shape in ((), (5,), (3, 2)):
            count = prod(shape)
            numbers = (-1, 1, 1, -1) if op == "prod" else (-2, -1, 0, 1, 2)
            rows = [[numbers[(3 * at + k * k + k // 3) % len(numbers)] for at in range(count)] for k in range(total)]
            wanted = [combine(column) for column in zip(*rows, strict=True)]
            for dtype in dtypes:
                partial = [Tensor(dtype, shape, tensor_of(dtype, row).data) for row in rows]
                observed = impl.collectives.run(**call(devices(partial, partials), partials, per_node, op=op))
                for rank, output in enumerate(check.returns(observed)["outputs"]):
                    expected = Tensor(dtype, shape, tensor_of(dtype, wanted).data)
                    check.bits(output, expected, f"{op} of {dtype}{list(shape)}, rank {rank} of {ranks}")


MISTAKES = {
    "other_blocks": ({"partials": [3, 3]}, "TESS_ERR_INVALID_VALUE"),
    "swapped": ({"partials": [3, 2]}, "TESS_ERR_INVALID_VALUE"),
    "no_axes": ({"inputs": [tensor_of("fp32", [1, 2])] * 2}, "TESS_ERR_INVALID_VALUE"),
    "one_device": (
        {"inputs": [tensor_of("fp32", [[[1] * 4] * 3] * 2), tensor_of("fp32", [[[1] * 4] * 2] * 3)]},
        "TESS_ERR_COLLECTIVE_MISMATCH",
    ),
    "nothing_combined": ({"operation": "all_gather", "op": None}, "TESS_ERR_INVALID_VALUE"),
    "ring": ({"algorithm": "ring", "per_node": None}, "TESS_ERR_UNSUPPORTED"),
}


@clause("COLL-04.4-01")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_partial_values_that_do_not_fit_are_refused(impl, check, mistake):
    """Other numbers of blocks or warps, an operation without a combiner and an unknown algorithm are refused."""
    legal = call([tensor_of("fp32", [[[1] * 4] * 3] * 2)] * 2, (2, 3), 2)
    check.returns(impl.collectives.run(**legal))
    changes, status = MISTAKES[mistake]
    given = {name: value for name, value in (legal | changes).items() if value is not None}
    check.status(impl.collectives.run(**given), status)
