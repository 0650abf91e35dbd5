"""Messages that arrive in any order change no bit (runtime specification 6 and 13; AMB-COLL-65)."""

from __future__ import annotations

import pytest

from tessera_conformance.arithmetic import canonical, replay
from tessera_conformance.chapters.collectives.kit.exchanges import ALGORITHMS, RANKS, afterwards, share
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import Question, judge_declared

SEEDS = (0, 1, 2, 5, 13, 2**31)
MANY = {2: 100, 3: 250, 5: 300, 7: 350}
"""The number of seeds for so many ranks: a thousand together."""


def cancelling(ranks: int, count: int, seed: int) -> list[Tensor]:
    """Numbers of both signs and many binades, whose sum depends on the order."""
    return [counted("fp32", (count,), seed=seed + rank, exponents=(-12, 12)) for rank in range(ranks)]


@feature("operation-access", "algorithm-control", "delivery-order")
@clause("RT-06-04", "RT-13-01", "LANG-09-05")
@pytest.mark.parametrize("chunk", [None, 5], ids=["whole", "chunks"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_under_deterministic_every_order_of_delivery_gives_the_declared_bits(impl, check, algorithm, chunk):
    """Every rank has the bits of the declared tree, whichever message arrives first."""
    for ranks in RANKS:
        inputs = cancelling(ranks, 2 * ranks + 3, seed=1400 + 10 * ranks)
        given = {"inputs": inputs, "op": "sum", "algorithm": algorithm, "level": "deterministic"}
        given |= {} if chunk is None else {"chunk": chunk}
        first = check.returns(impl.collectives.run(operation="all_reduce", **given))["outputs"][0]
        judge_declared(impl, check, Question("all_reduce", inputs, {"op": "sum", "algorithm": algorithm}), first)
        words = first.words()
        for seed in SEEDS:
            outputs = check.returns(impl.collectives.run(operation="all_reduce", seed=seed, **given))["outputs"]
            for rank, output in enumerate(outputs):
                check.bits(output, first, f"seed {seed}, rank {rank} of {ranks}")
            shares = check.returns(impl.collectives.run(operation="reduce_scatter", seed=seed, **given))["outputs"]
            for rank, output in enumerate(shares):
                own = words[share(len(words), rank, ranks)]
                check.bits(output, Tensor("fp32", own.shape, own.tobytes()), f"seed {seed}, share {rank} of {ranks}")


@feature("operation-access", "algorithm-control", "delivery-order")
@clause("RT-06-04", "RT-13-01", "LANG-09-05")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_thousand_orders_of_delivery_give_one_set_of_bits(impl, check, algorithm):
    """Seeds 0 to 999, over two ranks and prime numbers of ranks; any of them is an order that can be asked for again.

    Those of the first order are judged by the declared tree; an order that was drawn before gives its bits again.
    """
    first_seed = 0
    for ranks, seeds in MANY.items():
        inputs = cancelling(ranks, ranks + 1, seed=1440 + 10 * ranks)
        given = {"operation": "all_reduce", "inputs": inputs, "op": "sum", "algorithm": algorithm}
        given |= {"level": "deterministic", "chunk": 2}
        actual = {}
        for seed in (*range(first_seed, first_seed + seeds), first_seed):
            outputs = check.returns(impl.collectives.run(seed=seed, **given))["outputs"]
            for output in outputs:
                actual.setdefault((output.dtype, output.shape, output.data), seed)
        check.equal(len(actual), 1, f"sets of bits on {ranks} ranks, first seen with the seeds {list(actual.values())}")
        judge_declared(impl, check, Question("all_reduce", inputs, {"op": "sum", "algorithm": algorithm}), outputs[0])
        first_seed += seeds


@feature("operation-access", "algorithm-control", "delivery-order")
@clause("RT-06-03", "LANG-09-06")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_under_strict_every_order_of_delivery_gives_the_canonical_bits(impl, check, algorithm):
    """Every rank has the bits of the canonical tree, whichever message arrives first."""
    for ranks in RANKS:
        inputs = cancelling(ranks, 2 * ranks + 3, seed=1480 + 10 * ranks)
        expected = replay.all_reduce(inputs, Tree.from_text("pairwise"), canonical("fp32"))
        for seed in SEEDS[::2]:
            observed = impl.collectives.run(
                operation="all_reduce", inputs=inputs, op="sum", algorithm=algorithm, level="strict", seed=seed
            )
            for rank, output in enumerate(check.returns(observed)["outputs"]):
                check.bits(output, expected, f"seed {seed}, rank {rank} of {ranks}")


@feature("operation-access", "algorithm-control", "delivery-order")
@clause("RT-13-01", "RT-06-04")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("op", "dtype"), [("max", "fp32"), ("min", "fp32"), ("max", "bool"), ("min", "bool")])
def test_extremes_are_the_same_in_any_order_of_delivery(impl, check, op, dtype, algorithm):
    """Each place has its largest and its smallest value on another rank."""
    rows = [[(3 * rank + place) % 5 for place in range(11)] for rank in range(5)]
    rows = [[value == 2 for value in row] for row in rows] if dtype == "bool" else rows
    expected = tensor_of(dtype, afterwards("all_reduce", rows, op)[0])
    given = {"inputs": [tensor_of(dtype, row) for row in rows], "op": op, "algorithm": algorithm}
    for seed in SEEDS[::2]:
        observed = impl.collectives.run(operation="all_reduce", level="deterministic", seed=seed, **given)
        for rank, output in enumerate(check.returns(observed)["outputs"]):
            check.bits(output, expected, f"seed {seed}, rank {rank}")


@feature("operation-access", "algorithm-control", "delivery-order")
@clause("RT-13-01")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("operation", ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"])
def test_nothing_is_lost_doubled_or_stale_in_any_order_of_delivery(impl, check, operation, algorithm):
    """Sums of such numbers show which contributions are in them, in groups whose ranks are no neighbours."""
    if operation == "all_to_all":
        algorithm = {"ring": "ring", "tree": "ring"}.get(algorithm, "direct")
    for groups in ([[0, 1, 2, 3, 4]], [[5, 0, 3], [1, 4, 2]], [[6, 2], [1, 0, 4, 5], [3]]):
        ranks = sum(map(len, groups))
        rows: list[list[int]] = [[] for _ in range(ranks)]
        expected: list[list[int]] = [[] for _ in range(ranks)]
        for group in groups:
            count = 12 * len(group) if operation == "all_to_all" else 13
            for at, rank in enumerate(group):
                own = share(count, at, len(group)) if operation == "all_gather" else slice(0, count)
                rows[rank] = [(place + 1) * 8**rank for place in range(count)[own]]
            got = afterwards(operation, [rows[rank] for rank in group], "sum")
            for at, rank in enumerate(group):
                expected[rank] = got[at]
        given = {"op": "sum"} if operation in ("all_reduce", "reduce_scatter") else {}
        given |= {"root": 0} if operation == "broadcast" else {}
        inputs = [tensor_of("int64", row) for row in rows]
        for seed in SEEDS[::2]:
            observed = impl.collectives.run(
                operation=operation, inputs=inputs, algorithm=algorithm, groups=groups, seed=seed, **given
            )
            for rank, output in enumerate(check.returns(observed)["outputs"]):
                check.bits(output, tensor_of("int64", expected[rank]), f"seed {seed}, rank {rank} of {groups}")
