"""The bits of every algorithm, and the messages by which it gets them (collectives specification, 2.3, 3.1, 4.4)."""

from __future__ import annotations

import pytest

from tessera_conformance.arithmetic import canonical, replay
from tessera_conformance.chapters.collectives.kit.exchanges import (
    OWN_OR_NAMED,
    RANKS,
    contributions,
    followed,
    named_algorithm,
    share,
    unordered,
)
from tessera_conformance.chapters.collectives.kit.readings import (
    recognize_chunk_orders,
    recognize_powers_of_two,
    refuses_remainders,
)
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import Question, golden, judge, judge_declared

WITH_CLAUSES = [
    pytest.param("ring", marks=clause("RT-13-03")),
    pytest.param("tree", marks=clause("RT-13-04")),
    pytest.param("hierarchical", marks=clause("RT-13-05", "COLL-04.4-04")),
    pytest.param("halving_doubling", marks=clause("COLL-03.1-02")),
    pytest.param("direct", marks=clause("COLL-03.1-04")),
]


def brought(dtype: str, ranks: int, count: int, seed: int) -> list[Tensor]:
    """Contributions whose sum depends on the order."""
    return [counted(dtype, (count,), seed=seed + rank, exponents=(-7, 7)) for rank in range(ranks)]


@golden("collectives/algorithms")
def test_golden(impl, check, vector):
    """The frozen bits of every algorithm, confirmed by exact rational arithmetic (AMB-COLL-33)."""
    judge(impl, check, vector)


@feature("operation-access", "algorithm-control")
@clause("LANG-09-06", "LANG-15-16", "RT-13-01")
@pytest.mark.parametrize("algorithm", WITH_CLAUSES)
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_under_strict_every_algorithm_gives_the_bits_of_the_canonical_tree(impl, check, dtype, algorithm):
    """Adjacent pairs, an odd one kept, combined in fp32, rounded once (AMB-RT-26, AMB-COLL-29, AMB-COLL-33)."""
    for ranks in RANKS:
        inputs = brought(dtype, ranks, 3 * ranks + 2, seed=800 + 10 * ranks)
        expected = replay.all_reduce(inputs, Tree.from_text("pairwise"), canonical(dtype))
        given = {"inputs": inputs, "op": "sum", "algorithm": algorithm, "level": "strict"}
        for rank, output in enumerate(check.returns(impl.collectives.run(operation="all_reduce", **given))["outputs"]):
            check.bits(output, expected, f"all_reduce, rank {rank} of {ranks}")
        shares = check.returns(impl.collectives.run(operation="reduce_scatter", **given))["outputs"]
        words = expected.words()
        for rank, output in enumerate(shares):
            own = words[share(len(words), rank, ranks)]
            check.bits(output, Tensor(dtype, own.shape, own.tobytes()), f"reduce_scatter, rank {rank} of {ranks}")


@feature("operation-access", "algorithm-control")
@clause("LANG-09-05", "LANG-15-10", "RT-06-04")
@pytest.mark.parametrize("algorithm", WITH_CLAUSES)
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_under_deterministic_every_algorithm_has_the_order_that_is_declared_for_it(impl, check, dtype, algorithm):
    """Replayed element by element; the same bits on every rank and on every run (AMB-COLL-33)."""
    for ranks in RANKS:
        inputs = brought(dtype, ranks, 2 * ranks + 1, seed=850 + 10 * ranks)
        given = {"inputs": inputs, "op": "sum", "algorithm": algorithm, "level": "deterministic"}
        first = check.returns(impl.collectives.run(operation="all_reduce", **given))["outputs"]
        judge_declared(impl, check, Question("all_reduce", inputs, {"op": "sum", "algorithm": algorithm}), first[0])
        again = check.returns(impl.collectives.run(operation="all_reduce", **given))["outputs"]
        for rank, output in enumerate([*first, *again]):
            check.bits(output, first[0], f"rank {rank % ranks} of {ranks} and rank 0")


@feature("operation-access", "algorithm-control")
@clause("LANG-09-05", "LANG-15-10", "RT-06-04")
@pytest.mark.parametrize("algorithm", WITH_CLAUSES)
@pytest.mark.parametrize(("ranks", "per_node"), [(33, 11), (40, 8), (65, 13)])
def test_under_deterministic_many_ranks_have_the_order_that_is_declared(impl, check, ranks, per_node, algorithm):
    """More than 32, in nodes where the algorithm has stages; a sum of negative zeros stays one (AMB-COLL-33)."""
    nodes = {"per_node": per_node} if algorithm == "hierarchical" else {}
    inputs = brought("fp32", ranks, ranks + 1, seed=4700)
    zero = (1 << 31).to_bytes(4, "little")
    inputs = [Tensor("fp32", operand.shape, zero + operand.data[4:-4] + zero) for operand in inputs]
    attributes = {"op": "sum", "algorithm": algorithm, **nodes}
    given = {"operation": "all_reduce", "inputs": inputs, **attributes, "level": "deterministic"}
    outputs = check.returns(impl.collectives.run(**given))["outputs"]
    judge_declared(impl, check, Question("all_reduce", inputs, attributes), outputs[0])
    for rank, output in enumerate(outputs):
        check.bits(output, outputs[0], f"rank {rank} and rank 0")


@feature("operation-access")
@clause("COLL-02.3-01")
@pytest.mark.parametrize("at", ["deterministic", pytest.param("strict", marks=level("strict"))])
@pytest.mark.parametrize("algorithm", OWN_OR_NAMED)
def test_chunks_change_no_bit(impl, check, algorithm, at):
    """The chunks end inside a share, across shares, or there are none (AMB-COLL-04, AMB-COLL-29)."""
    for ranks in (3, 5, 8):
        inputs = brought("fp32", ranks, 23, seed=900 + ranks)
        given = {"operation": "all_reduce", "inputs": inputs, "op": "sum", "level": at, **named_algorithm(algorithm)}
        observed = impl.collectives.run(**given)
        recognize_powers_of_two(check, observed, algorithm, ranks)
        whole = check.returns(observed)["outputs"][0]
        for chunk in (1, 2, 7, 16, 22, 23, 24, 1000):
            outputs = check.returns(impl.collectives.run(**given, chunk=chunk))["outputs"]
            if at == "deterministic" and any(output.data != whole.data for output in outputs):
                recognize_chunk_orders(impl, check, given, chunk, outputs)
            for rank, output in enumerate(outputs):
                check.bits(output, whole, f"chunks of {chunk} elements, rank {rank} of {ranks}")


@feature("operation-access", "collective-messages")
@clause("COLL-02.3-01")
@pytest.mark.parametrize("algorithm", OWN_OR_NAMED)
def test_no_message_crosses_the_end_of_a_chunk(impl, check, algorithm):
    """The pieces of all chunks are exactly the elements sent without chunks."""
    inputs = brought("fp32", 5, 23, seed=911)
    given = {"operation": "all_reduce", "inputs": inputs, "op": "sum", "messages": True, **named_algorithm(algorithm)}
    observed = impl.collectives.run(**given)
    recognize_powers_of_two(check, observed, algorithm, 5)
    whole = pieces(check.returns(observed)["messages"])
    check.true(len(whole) > 0, "there are messages", len(whole))
    for chunk in (1, 4, 7, 22, 23, 40):
        messages = check.returns(impl.collectives.run(**given, chunk=chunk))["messages"]
        for message in messages:
            crosses = message["first"] // chunk != (message["first"] + message["count"] - 1) // chunk
            check.true(not crosses, f"a message stays within a chunk of {chunk} elements", message)
        check.equal(pieces(messages), whole, f"what is sent in chunks of {chunk} elements")


def pieces(messages):
    """Every element that every message sends, in order of step, source, target and place."""
    return sorted(
        [message["step"], message["source"], message["target"], place, message["combines"]]
        for message in messages
        for place in range(message["first"], message["first"] + message["count"])
    )


@feature("operation-access", "collective-messages", "algorithm-control")
@pytest.mark.parametrize("algorithm", WITH_CLAUSES)
@pytest.mark.parametrize("operation", ["all_reduce", "reduce_scatter", "all_gather", "broadcast"])
def test_messages_bring_every_rank_what_it_has_afterwards(impl, check, operation, algorithm):
    """Each contribution once, none lost, whatever the number of ranks; a remainder may be refused (AMB-RT-04)."""
    for ranks, count in [(ranks, 2 * ranks + rest) for ranks in RANKS for rest in (0, 1)]:
        shares = [share(count, rank, ranks) for rank in range(ranks)]
        root = ranks - 1
        inputs = [tensor_of("int32", [1] * count) for _ in range(ranks)]
        if operation == "all_gather":
            inputs = [tensor_of("int32", [1] * (own.stop - own.start)) for own in shares]
        given = {"root": root} if operation == "broadcast" else {}
        given |= {"op": "sum"} if operation in ("all_reduce", "reduce_scatter") else {}
        observed = impl.collectives.run(
            operation=operation, inputs=inputs, algorithm=algorithm, messages=True, chunk=3, **given
        )
        recognize_powers_of_two(check, observed, algorithm, ranks)
        if refuses_remainders(observed, operation, count, ranks):
            continue
        messages = check.returns(observed)["messages"]
        held = [[rank] * count for rank in range(ranks)]
        if operation == "all_gather":
            held = [
                [rank if own.start <= p < own.stop else None for p in range(count)] for rank, own in enumerate(shares)
            ]
        if operation == "broadcast":
            held = [[root if rank == root else None] * count for rank in range(ranks)]
        actual = followed(check, messages, held)
        for rank, own in enumerate(shares):
            for place in range(own.start, own.stop) if operation == "reduce_scatter" else range(count):
                wanted = {
                    "all_gather": next(index for index, s in enumerate(shares) if s.start <= place < s.stop),
                    "broadcast": root,
                }
                there = contributions(actual[rank][place])
                all_of = frozenset(range(ranks))
                expected = frozenset((wanted[operation],)) if operation in wanted else all_of
                check.equal(sorted(there), sorted(expected), f"element {place} on rank {rank} of {ranks}")


@feature("operation-access", "collective-messages", "algorithm-control")
@clause("LANG-09-05", "RT-06-04")
@pytest.mark.parametrize("algorithm", WITH_CLAUSES)
def test_the_declared_order_is_that_of_the_messages(impl, check, algorithm):
    """Element by element, but for the order of the two operands of a sum (AMB-COLL-33)."""
    for ranks in (2, 3, 5, 8):
        count = ranks + 3
        inputs = brought("fp32", ranks, count, seed=920 + ranks)
        arguments = {"op": "sum", "algorithm": algorithm}
        observed = impl.collectives.run(
            operation="all_reduce", inputs=inputs, **arguments, level="deterministic", messages=True
        )
        messages = check.returns(observed)["messages"]
        actual = followed(check, messages, [[rank] * count for rank in range(ranks)])
        for place in range(count):
            said = impl.numerics.declared(
                operation="all_reduce", dtype="fp32", shapes=[[count]] * ranks, attributes=arguments, element=place
            )
            declared = Tree.from_json(check.returns(said)["tree"]).over(ranks).to_json()
            for rank in range(ranks):
                same = actual[rank][place] == unordered(declared)
                check.true(same, f"element {place} of rank {rank} of {ranks} is combined as declared", declared)


@feature("operation-access", "collective-messages", "algorithm-control")
@clause("RT-13-03")
@pytest.mark.parametrize("operation", ["all_reduce", "reduce_scatter", "all_gather"])
def test_a_ring_sends_to_the_next_rank_alone(impl, check, operation):
    """Each rank sends to one neighbour, in n - 1 steps around, or twice as many for an all-reduce; primes too."""
    for ranks in RANKS:
        shares = [share(24, rank, ranks) for rank in range(ranks)]
        inputs = [tensor_of("int32", [1] * 24) for _ in range(ranks)]
        if operation == "all_gather":
            inputs = [tensor_of("int32", [1] * (own.stop - own.start)) for own in shares]
        given = {"op": "sum"} if operation != "all_gather" else {}
        observed = impl.collectives.run(operation=operation, inputs=inputs, algorithm="ring", messages=True, **given)
        messages = check.returns(observed)["messages"]
        for message in messages:
            check.equal(
                message["target"], (message["source"] + 1) % ranks, f"the neighbour of rank {message['source']}"
            )
        rounds = (ranks - 1) * (2 if operation == "all_reduce" else 1)
        check.equal(len({message["step"] for message in messages}), rounds, f"steps of {ranks} ranks")


@feature("operation-access", "collective-messages", "algorithm-control")
@clause("RT-13-04")
def test_a_tree_takes_as_many_steps_as_it_has_levels(impl, check):
    """Twice the logarithm of the number of ranks, rounded up; one message to each rank each way."""
    for ranks in RANKS:
        inputs = [tensor_of("int32", [1] * 5) for _ in range(ranks)]
        observed = impl.collectives.run(
            operation="all_reduce", inputs=inputs, op="sum", algorithm="tree", messages=True
        )
        messages = check.returns(observed)["messages"]
        check.equal(
            len({message["step"] for message in messages}), 2 * (ranks - 1).bit_length(), f"steps of {ranks} ranks"
        )
        check.equal(len(messages), 2 * (ranks - 1), f"messages of {ranks} ranks")


@feature("operation-access", "collective-messages", "hierarchical")
@clause("COLL-04.4-02", "COLL-04.4-03", "COLL-03.1-03")
@pytest.mark.parametrize(("nodes", "per_node"), [(2, 4), (3, 3), (4, 2), (5, 1), (1, 6)])
def test_hierarchical_exchanges_within_nodes_and_by_a_tree_between_them(impl, check, nodes, per_node):
    """A rank exchanges with the ranks of other nodes that have its place in the node, in a logarithm of steps.

    The ranks of a node share out the buffer, so that no two of them send the same elements across.
    """
    ranks, count = nodes * per_node, 4 * nodes * per_node + 1
    inputs = [tensor_of("int32", [1] * count) for _ in range(ranks)]
    observed = impl.collectives.run(
        operation="all_reduce", inputs=inputs, op="sum", algorithm="hierarchical", per_node=per_node, messages=True
    )
    messages = check.returns(observed)["messages"]
    across = [message for message in messages if message["source"] // per_node != message["target"] // per_node]
    inside = [message for message in messages if message["source"] // per_node == message["target"] // per_node]
    check.equal(len({message["step"] for message in inside}), 2 if per_node > 1 else 0, "steps within nodes")
    check.equal(len({message["step"] for message in across}), 2 * (nodes - 1).bit_length(), "steps between nodes")
    for outer in across:
        check.equal(outer["source"] % per_node, outer["target"] % per_node, f"places of {outer} in their nodes")
    sent = sum(message["count"] for message in across)
    check.equal(sent, 2 * (nodes - 1) * count, "elements that cross between nodes, each once to and once from a node")


@feature("operation-access", "collective-messages", "algorithm-control")
@clause("COLL-03.1-04")
def test_direct_send_takes_one_step_each_way(impl, check):
    """Every rank sends to every other rank."""
    for ranks in RANKS:
        inputs = [tensor_of("int32", [1] * 2 * ranks) for _ in range(ranks)]
        observed = impl.collectives.run(
            operation="all_reduce", inputs=inputs, op="sum", algorithm="direct", messages=True
        )
        messages = check.returns(observed)["messages"]
        check.equal(len({message["step"] for message in messages}), 2 if ranks > 1 else 0, f"steps of {ranks} ranks")
        pairs = {(message["source"], message["target"]) for message in messages}
        check.equal(len(pairs), ranks * (ranks - 1), f"pairs of {ranks} ranks")


@feature("operation-access", "collective-messages", "algorithm-control")
@clause("COLL-03.1-02")
def test_halving_and_doubling_takes_a_logarithm_of_steps(impl, check):
    """Two for each power of two among the ranks, and two more where ranks are beyond it; few elements in the last."""
    for ranks in RANKS:
        count, levels = 16 * ranks, ranks.bit_length() - 1
        inputs = [tensor_of("int32", [1] * count) for _ in range(ranks)]
        observed = impl.collectives.run(
            operation="all_reduce", inputs=inputs, op="sum", algorithm="halving_doubling", messages=True
        )
        messages = check.returns(observed)["messages"]
        beyond = 2 if ranks != 1 << levels else 0
        check.equal(len({message["step"] for message in messages}), 2 * levels + beyond, f"steps of {ranks} ranks")
        if not beyond:
            for rank in range(ranks):
                sent = sum(message["count"] for message in messages if message["source"] == rank)
                check.equal(sent, 2 * (count - count // ranks), f"elements that rank {rank} of {ranks} sends")
