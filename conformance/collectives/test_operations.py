"""The results of a collective on every rank, by any algorithm (collectives specification, 2.2, 3.1, 7.2)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.collectives.kit.exchanges import (
    OPERATORS,
    RANKS,
    WAYS,
    afterwards,
    named_algorithm,
    share,
)
from tessera_conformance.chapters.collectives.kit.readings import (
    is_lacking,
    recognize_operators,
    recognize_powers_of_two,
    refuses_remainders,
)
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Returned
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import golden, judge

SIGNED = ("fp64", "fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int16", "int32", "int64")
COUNTS = (0, 1, 7, 16)
"""Empty, fewer elements than ranks, remainders."""


WITH_CLAUSES = [
    pytest.param("ring", marks=clause("RT-13-03")),
    pytest.param("tree", marks=clause("RT-13-04")),
    pytest.param("hierarchical", marks=clause("RT-13-05", "COLL-04.4-04")),
    pytest.param("halving_doubling", marks=clause("RT-13-01", "COLL-03.1-02")),
    pytest.param("direct", marks=clause("RT-13-01", "COLL-03.1-04")),
]


def small(rank: int, count: int, op: str) -> list[int]:
    """Numbers whose sums and products over eight ranks every dtype holds; without zero, whose sign a product tells."""
    values = (-2, -1, 1, 2) if op == "prod" else (-2, -1, 0, 1, 2)
    return [values[(place * 3 + rank * rank + place // 5) % len(values)] for place in range(count)]


@golden("collectives/exchanges")
def test_golden(impl, check, vector):
    """The frozen bits of reduce-scatter, all-gather and all-to-all, confirmed by exact arithmetic (AMB-COLL-31)."""
    judge(impl, check, vector)


@feature("operation-access", "algorithm-control")
@pytest.mark.parametrize("algorithm", WITH_CLAUSES)
@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("operation", ["all_reduce", "reduce_scatter"])
def test_every_algorithm_combines_the_contributions_of_all_ranks(impl, check, operation, op, algorithm):
    """The numbers have exact results, in every dtype; shares need not be of one size (AMB-COLL-31, AMB-RT-04)."""
    for ranks in (1, 2, 4, 8) if op == "mean" else RANKS:
        dtypes = [candidate for candidate in SIGNED if "int" not in candidate] if op == "mean" else SIGNED
        first, second = dtypes[ranks % len(dtypes)], dtypes[(ranks * 5 + 2) % len(dtypes)]
        for dtype, count in ((first, COUNTS[ranks % len(COUNTS)]), (second, 11)):
            rows = [small(rank, count, op) for rank in range(ranks)]
            inputs = [tensor_of(dtype, row) for row in rows]
            observed = impl.collectives.run(operation=operation, inputs=inputs, op=op, algorithm=algorithm)
            recognize_powers_of_two(check, observed, algorithm, ranks)
            if refuses_remainders(observed, operation, count, ranks):
                continue
            recognize_operators(check, observed, op)
            outputs = check.returns(observed)["outputs"]
            check.equal(len(outputs), ranks, "the number of results")
            for rank, expected in enumerate(afterwards(operation, rows, op)):
                check.bits(outputs[rank], tensor_of(dtype, expected), f"{op} of {dtype}, rank {rank} of {ranks}")


@feature("operation-access", "algorithm-control")
@pytest.mark.parametrize("algorithm", WITH_CLAUSES)
@pytest.mark.parametrize("operation", ["all_gather", "broadcast"])
def test_every_algorithm_moves_bits_unchanged(impl, check, operation, algorithm):
    """NaN, negative zero, infinity and a subnormal among them; from every root."""
    for ranks, count in [(ranks, 4 * ranks + rest) for ranks in RANKS for rest in (0, 3)]:
        whole = counted("fp32", (count,), seed=700 + ranks).words().tolist()
        whole[:4] = [0x7FC00000, 0x80000000, 0xFF800000, 0x00000001]
        for root in range(ranks) if operation == "broadcast" else (None,):
            rows = [
                whole[share(count, rank, ranks)]
                if root is None
                else [whole[(place + rank) % count] for place in range(count)]
                for rank in range(ranks)
            ]
            inputs = [words_of(row) for row in rows]
            given = {} if root is None else {"root": root}
            observed = impl.collectives.run(operation=operation, inputs=inputs, algorithm=algorithm, **given)
            recognize_powers_of_two(check, observed, algorithm, ranks)
            if refuses_remainders(observed, operation, count, ranks):
                continue
            outputs = check.returns(observed)["outputs"]
            for rank, expected in enumerate(afterwards(operation, rows, root=root or 0)):
                check.bits(outputs[rank], words_of(expected), f"rank {rank} of {ranks}")


def words_of(words):
    """A tensor of fp32 of given bits."""
    return Tensor.from_words("fp32", (len(words),), words)


@feature("operation-access", "all-to-all")
@clause("COLL-07.2-02")
@pytest.mark.parametrize(
    "algorithm", ["", *(pytest.param(name, marks=feature("algorithm-control")) for name in ("ring", "direct"))]
)
@pytest.mark.parametrize("ranks", RANKS)
def test_blocks_change_places(impl, check, algorithm, ranks):
    """Rank r's block s becomes rank s's block r (AMB-COLL-10); done twice, every block is back."""
    rows = [[100 * rank + place for place in range(3 * ranks)] for rank in range(ranks)]
    inputs = [tensor_of("int32", row) for row in rows]
    given = {"operation": "all_to_all", **named_algorithm(algorithm)}
    outputs = check.returns(impl.collectives.run(inputs=inputs, **given))["outputs"]
    for rank, expected in enumerate(afterwards("all_to_all", rows)):
        check.bits(outputs[rank], tensor_of("int32", expected), f"rank {rank} of {ranks}")
    back = check.returns(impl.collectives.run(inputs=outputs, **given))["outputs"]
    for rank in range(ranks):
        check.bits(back[rank], inputs[rank], f"twice exchanged, rank {rank}")


MANY = [
    pytest.param("all_reduce", "sum", marks=clause("RT-13-01")),
    pytest.param("all_reduce", "mean", marks=clause("RT-13-01")),
    pytest.param("all_reduce", "max", marks=clause("RT-13-01")),
    pytest.param("reduce_scatter", "sum", marks=clause("RT-13-01", "COLL-07.2-02")),
    pytest.param("all_gather", None, marks=clause("RT-13-01")),
    pytest.param("broadcast", None, marks=clause("RT-13-01")),
    pytest.param("all_to_all", None, marks=[clause("COLL-07.2-02"), feature("all-to-all")]),
]


@feature("operation-access")
@pytest.mark.parametrize(
    ("ranks", "order"),
    [
        pytest.param(12, {}, id="12"),
        pytest.param(12, {"seed": 7}, marks=feature("delivery-order"), id="12-by-seed"),
        pytest.param(33, {}, id="33"),
    ],
)
@pytest.mark.parametrize(("operation", "op"), MANY)
def test_a_collective_of_many_ranks(impl, check, operation, op, ranks, order):
    """More than eight, and more than 32: numbers of fp32 with exact results, distinct on every rank and place.

    Shares may have to be of one size (AMB-RT-04).
    """
    scale = ranks if op == "mean" else 1
    for count in (2 * ranks,) if operation == "all_to_all" else (2 * ranks, 2 * ranks + 5):
        rows = [[scale * (3 * rank + (rank + 7) * place) for place in range(count)] for rank in range(ranks)]
        if operation == "all_gather":
            rows = [row[share(count, rank, ranks)] for rank, row in enumerate(rows)]
        given = {"op": op} if op else {"root": ranks - 2} if operation == "broadcast" else {}
        inputs = [tensor_of("fp32", row) for row in rows]
        observed = impl.collectives.run(operation=operation, inputs=inputs, **given, **order)
        if refuses_remainders(observed, operation, count, ranks):
            continue
        recognize_operators(check, observed, op or "sum")
        outputs = check.returns(observed)["outputs"]
        for rank, expected in enumerate(afterwards(operation, rows, op, root=given.get("root", 0))):
            check.bits(outputs[rank], tensor_of("fp32", expected), f"rank {rank} of {ranks}")


@feature("operation-access", "all-to-all", "argument-checks")
@clause("COLL-07.2-02")
def test_blocks_of_different_sizes_are_refused(impl, check):
    """Seven elements are no three blocks of one size (AMB-COLL-34)."""
    for count, ranks in ((6, 3), (7, 3)):
        inputs = [tensor_of("int32", list(range(count))) for _ in range(ranks)]
        observed = impl.collectives.run(operation="all_to_all", inputs=inputs)
        if count % ranks:
            check.reading("AMB-COLL-34", "shares as AMB-RT-04 says", isinstance(observed, Returned))
            check.status(observed, "TESS_ERR_INVALID_VALUE")
        else:
            check.returns(observed)


@feature("operation-access", "all-to-all", "algorithm-control", "argument-checks")
@clause("COLL-07.2-02")
@pytest.mark.parametrize("algorithm", ["tree", "halving_doubling", "hierarchical"])
def test_an_algorithm_that_an_all_to_all_does_not_have_is_unsupported(impl, check, algorithm):
    """Blocks go directly or around a ring (AMB-COLL-34); an all_reduce of the same buffers has the others."""
    inputs = [tensor_of("int32", list(range(4))) for _ in range(4)]
    check.returns(
        impl.collectives.run(operation="all_reduce", op="sum", inputs=inputs, algorithm=algorithm, per_node=2)
    )
    observed = impl.collectives.run(operation="all_to_all", inputs=inputs, algorithm=algorithm, per_node=2)
    check.status(observed, "TESS_ERR_UNSUPPORTED")


GROUPS = {
    "neighbours": [[0, 1, 2], [3, 4]],
    "other_order": [[4, 2, 0], [1, 3]],
    "one_and_pairs": [[3], [0, 4], [2, 1]],
    "each_alone": [[0], [1], [2], [3], [4]],
}


@feature("operation-access", "subgroups")
@clause("COLL-02.2-03")
@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("operation", ["all_reduce", "reduce_scatter", "broadcast", "all_gather"])
def test_a_collective_acts_on_the_ranks_of_each_group_alone(impl, check, operation, groups):
    """In the order in which the group lists its ranks (AMB-COLL-32); the operands of other groups have no effect.

    A root is a place in each group, here the last of the smallest group.
    Groups gather six elements, and seven where shares may differ in size (AMB-RT-04).
    """
    op = "sum" if operation in ("all_reduce", "reduce_scatter") else ""
    root = min(map(len, groups)) - 1 if operation == "broadcast" else 0
    given = {"op": op} if op else {"root": root} if operation == "broadcast" else {}
    for total in (6, 7) if operation == "all_gather" else (6,):
        rows = [[10**rank * (place + 1) for place in range(6)] for rank in range(5)]
        if operation == "all_gather":
            for group in groups:
                for place, rank in enumerate(group):
                    own = share(total, place, len(group))
                    rows[rank] = [100 * rank + index for index in range(own.start, own.stop)]
        call = {"operation": operation, "inputs": [tensor_of("int32", row) for row in rows], "groups": groups, **given}
        for way in WAYS:
            observed = impl.collectives.run(**call, **way)
            uneven = any(refuses_remainders(observed, operation, total, len(group)) for group in groups)
            if uneven or (way and is_lacking(observed)):
                continue
            outputs = check.returns(observed)["outputs"]
            for group in groups:
                expected = afterwards(operation, [rows[rank] for rank in group], op, root)
                for rank, row in zip(group, expected, strict=True):
                    check.bits(outputs[rank], tensor_of("int32", row), f"{way}: rank {rank} in the group {group}")


@feature("operation-access", "subgroups", "argument-checks")
@clause("COLL-02.2-03")
@pytest.mark.parametrize(
    "groups",
    [[[0, 1]], [[0, 1, 2], [2]], [[0, 1], [3, 2]], [[0, 0, 1, 2]]],
    ids=["left_out", "in_two", "unknown", "twice"],
)
def test_groups_that_are_no_partition_are_refused(impl, check, groups):
    """Every rank is in one group, once (AMB-COLL-32)."""
    inputs = [tensor_of("int32", [rank, 1]) for rank in range(3)]
    check.returns(impl.collectives.run(operation="all_reduce", inputs=inputs, op="sum", groups=[[0], [2, 1]]))
    observed = impl.collectives.run(operation="all_reduce", inputs=inputs, op="sum", groups=groups)
    left_out = isinstance(observed, Returned) and groups == [[0, 1]]
    check.reading("AMB-COLL-32", "ranks may be left out", left_out)
    check.status(observed, "TESS_ERR_INVALID_VALUE")


DEFAULTS = "an argument left out has a default, one without a use is passed over"
MISTAKES = {
    "operation": ({"operation": "all_reduced"}, "TESS_ERR_INVALID_VALUE"),
    "op": ({"op": "average"}, "TESS_ERR_INVALID_VALUE"),
    "no_op": ({"op": None}, "TESS_ERR_INVALID_VALUE"),
    "algorithm": ({"algorithm": "rings"}, "TESS_ERR_INVALID_VALUE"),
    "root_without_broadcast": ({"root": 0}, "TESS_ERR_INVALID_VALUE"),
    "root_outside": ({"operation": "broadcast", "op": None, "root": 3}, "TESS_ERR_INVALID_VALUE"),
    "negative_root": ({"operation": "broadcast", "op": None, "root": -1}, "TESS_ERR_INVALID_VALUE"),
    "no_root": ({"operation": "broadcast", "op": None}, "TESS_ERR_INVALID_VALUE"),
    "op_of_a_broadcast": ({"operation": "broadcast", "root": 0}, "TESS_ERR_INVALID_VALUE"),
    "nodes_of_two": ({"algorithm": "hierarchical", "per_node": 2}, "TESS_ERR_UNSUPPORTED"),
}


@feature("operation-access", "argument-checks")
@clause("RT-13-01")
@pytest.mark.parametrize(
    "mistake",
    [pytest.param(name, marks=feature("hierarchical")) if name == "nodes_of_two" else name for name in MISTAKES],
)
def test_arguments_that_do_not_fit_are_refused(impl, check, mistake):
    """The same call without the mistake completes."""
    inputs = [tensor_of("fp32", [rank, 1, 2]) for rank in range(3)]
    legal = {"operation": "all_reduce", "inputs": inputs, "op": "sum", "algorithm": "ring"}
    check.returns(impl.collectives.run(**legal))
    changes, status = MISTAKES[mistake]
    given = {name: value for name, value in (legal | changes).items() if value is not None}
    observed = impl.collectives.run(**given)
    harmless = mistake in ("no_op", "no_root", "root_without_broadcast", "op_of_a_broadcast")
    check.reading("AMB-COLL-97", DEFAULTS, harmless and isinstance(observed, Returned))
    check.status(observed, status)


@feature("operation-access", "per-rank-issue")
@pytest.mark.parametrize(
    "other",
    [
        pytest.param(counted("fp32", (9,), seed=361), marks=clause("LANG-15-11", "LANG-09-04"), id="count"),
        pytest.param(counted("fp32", (2, 4), seed=361), marks=clause("LANG-09-04"), id="shape"),
        pytest.param(counted("bf16", (8,), seed=361), marks=clause("LANG-15-12"), id="dtype"),
    ],
)
@pytest.mark.parametrize("operation", ["all_reduce", "reduce_scatter", "broadcast", "all_to_all"])
def test_ranks_that_bring_other_buffers_are_refused(impl, check, operation, other):
    """A different buffer on any rank is TESS_ERR_COLLECTIVE_MISMATCH (AMB-RT-13)."""
    inputs = [counted("fp32", (8,), seed=362 + rank) for rank in range(8)]
    given = {"op": "sum"} if operation in ("all_reduce", "reduce_scatter") else {}
    given |= {"root": 1} if operation == "broadcast" else {}
    check.returns(impl.collectives.run(operation=operation, inputs=inputs, **given))
    for odd in range(8):
        brought = [other if rank == odd else operand for rank, operand in enumerate(inputs)]
        observed = impl.collectives.run(operation=operation, inputs=brought, **given)
        check.status(observed, "TESS_ERR_COLLECTIVE_MISMATCH")
