"""Collectives run in one order and lose nothing on the wire (runtime specification, 2, 3, 4.7, 6 and 13)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.collectives import (
    FUNCTIONS,
    GUARD,
    contributions,
    done,
    filled,
    gathered,
    held,
    joined,
    judge_reduced,
    parts_of,
    share,
)
from tessera_conformance.chapters.runtime.kit.mesh_session import MAX, SUM, MeshSession, meshed
from tessera_conformance.chapters.runtime.kit.mesh_session import devices as devices_of
from tessera_conformance.chapters.runtime.kit.policies import LEVELS
from tessera_conformance.chapters.runtime.kit.schedules import seeded, seeds_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted

ORDERED = ("RT-13-01", "RT-02-09", "RT-03-01", "RT-06-03", "RT-04.7-03")


def deterministic_policy(impl: Implementation) -> dict[str, int]:
    """Deterministic, and at the strict level stable: otherwise the order is the one that is declared (AMB-LANG-44)."""
    return LEVELS["strict" if impl.level == "strict" else "deterministic"]


def spread(ranks: int, count: int, seed: int, dtype: str = "fp32") -> list[Tensor]:
    """Contributions of very different sizes: another order of their sum has other bits."""
    return [counted(dtype, (count,), seed=seed + rank, exponents=(-7, 7)) for rank in range(ranks)]


def summed(session: MeshSession, inputs: list[Tensor], flow: str = "all_reduce") -> list[Tensor]:
    """Return the ranks' tensors after an all-reduce, or after a reduce-scatter and an all-gather."""
    count, dtype = inputs[0].shape[0], inputs[0].dtype
    pointer = filled(session, inputs)
    if flow == "all_reduce":
        done(session, "all_reduce", pointer, count, dtype, op=SUM, axis="dp")
    else:
        done(session, "reduce_scatter", pointer, count, dtype, op=SUM, axis="dp")
        done(session, "all_gather", pointer, count, dtype, axis="dp")
    session.synchronize()
    return held(session, pointer, inputs)


def deterministic(session: MeshSession) -> MeshSession:
    """The session, its context with a deterministic policy."""
    session.set_policy(deterministic_policy(session.impl))
    return session


@feature("rank-memory")
@clause(*ORDERED, "RT-06-04")
@pytest.mark.parametrize("dtype", ["fp32", "fp64", "bf16"])
@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
def test_sums_have_the_same_bits_on_every_run(impl, check, ranks, dtype):
    """Every run and rank has the bits of the order that the numerics level asks for."""
    session = deterministic(gathered(impl, check, dp=ranks))
    inputs = spread(ranks, 16, 500, dtype)
    first = summed(session, inputs)
    judge_reduced(impl, check, first[0], inputs, SUM, "the sum over the ranks")
    for _ in range(4):
        for rank, tensor in enumerate(summed(session, inputs)):
            check.bits(tensor, first[0], f"what rank {rank} has on another run")


@feature("rank-memory")
@clause("RT-04.7-10", "RT-06-04")
def test_a_later_policy_leaves_queued_sums_alone(impl, check):
    """Sums are queued behind others, then the policy changes: theirs is that of their calls (AMB-RT-48)."""
    session = deterministic(gathered(impl, check, dp=5))
    inputs = spread(5, 16, 530)
    pointers = [filled(session, inputs) for _ in range(4)]
    for pointer in pointers:
        done(session, "all_reduce", pointer, 16, "fp32", op=SUM, axis="dp")
    session.set_policy(LEVELS["fast" if impl.level == "strict" else "strict"])
    for pointer in pointers:
        judge_reduced(impl, check, held(session, pointer, inputs)[0], inputs, SUM, "the sum over the ranks")


@seeded
@feature("rank-memory")
@clause(*ORDERED, "RT-06-04")
def test_sums_have_the_same_bits_under_seeded_schedules(impl, check, block, untimed):
    """Four ranks, which come in any order."""
    context = check.returns(impl.runtime.tessInit(), "tessInit succeeds")["context"]
    check.returns(
        impl.runtime.tessSetNumericsPolicy(context=context, policy=deterministic_policy(impl)), "the policy is set"
    )
    inputs = spread(4, 6, 520)
    first: Tensor | None = None
    for seed in seeds_of(impl, check, block, untimed):
        session = meshed(impl, check, context, devices_of(impl, check, 4))
        actual = summed(session, inputs)
        first = first or actual[0]
        for rank, tensor in enumerate(actual):
            check.bits(tensor, first, f"what rank {rank} has under seed {seed}")
        session.close_mesh()
    assert first is not None, "there are seeds"
    judge_reduced(impl, check, first, inputs, SUM, "the sum over the ranks")


@feature("rank-memory", "algorithm-control")
@clause(*ORDERED, "RT-06-04")
@pytest.mark.parametrize("source", ["hint", "autotuner"])
@pytest.mark.parametrize("algorithm", ["ring", "tree", "hierarchical"])
def test_no_algorithm_changes_the_bits(impl, check, algorithm, source):
    """Every algorithm gives the sum of the declared order (AMB-RT-26)."""
    session = deterministic(gathered(impl, check, dp=8))
    inputs = spread(8, 24, 540)
    plain = summed(session, inputs)
    chosen = {"collective": "all_reduce", "algorithm": algorithm, "source": source}
    session.ask("tessxSetAlgorithm", context=session.context, **chosen)
    for rank, tensor in enumerate(summed(session, inputs)):
        check.bits(tensor, plain[rank], f"what rank {rank} has under {algorithm}")


@feature("rank-memory")
@clause("RT-13-01", "RT-02-09", "RT-06-04")
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_shares_of_a_reduction_are_those_of_the_whole(impl, check, ranks):
    """Reduce-scatter and all-gather together have bits of their own level, the same on every run (AMB-RT-04)."""
    session = deterministic(gathered(impl, check, dp=ranks))
    inputs = spread(ranks, 4 * ranks, 560)
    first = summed(session, inputs, "reduce_scatter")
    for rank in range(ranks):
        part = share(first[0], rank, ranks)
        shares = [share(operand, rank, ranks) for operand in inputs]
        judge_reduced(impl, check, part, shares, SUM, f"share {rank}")
    for rank, tensor in enumerate(summed(session, inputs, "reduce_scatter")):
        check.bits(tensor, first[0], f"what rank {rank} has on another run")


# Several collectives


def a_mixture(session: MeshSession, streams: int) -> tuple[list[str], list[str]]:
    """Every collective on streams in turn, each on a buffer of its own: what ranks hold, and are to hold."""
    sessions = [session, *(session.another_stream() for _ in range(streams - 1))]
    ranks, inputs = session.ranks, {function: contributions("int32", 8, session.ranks, 580) for function in FUNCTIONS}
    pointers = {name: filled(session, tensors) for name, tensors in inputs.items()}
    for place, name in enumerate(FUNCTIONS):
        operator = {"op": MAX} if name in ("all_reduce", "reduce_scatter") else {}
        on = sessions[place % streams]
        done(on, name, pointers[name], 8, "int32", **(parts_of(name) | operator))
    for owner in reversed(sessions):
        owner.synchronize()
    given = inputs["all_reduce"]
    largest = Tensor.from_words("int32", (8,), [_largest(given, place) for place in range(8)])
    gathered_ = joined([share(tensor, rank, ranks) for rank, tensor in enumerate(given)])
    actual, expected = [], []
    for name, whole in (("all_reduce", largest), ("all_gather", gathered_), ("broadcast", given[0])):
        actual += [tensor.data.hex() for tensor in held(session, pointers[name], inputs[name])]
        expected += [whole.data.hex()] * ranks
    shares = held(session, pointers["reduce_scatter"], inputs["reduce_scatter"])
    actual += [share(tensor, rank, ranks).data.hex() for rank, tensor in enumerate(shares)]
    expected += [share(largest, rank, ranks).data.hex() for rank in range(ranks)]
    return actual, expected


def _largest(inputs: list[Tensor], place: int) -> int:
    """The word of the largest int32 at a place."""
    signed = [int.from_bytes(operand.data[4 * place : 4 * place + 4], "little", signed=True) for operand in inputs]
    return max(signed) % (1 << 32)


@feature("rank-memory")
@clause("RT-13-01", "RT-02-09")
@pytest.mark.parametrize("streams", [1, 2, 4])
@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives_of_several_streams_do_not_mix(impl, check, streams, ranks):
    """All four kinds are under way together; each has the ranks and the data of its own call (AMB-RT-04)."""
    actual, expected = a_mixture(gathered(impl, check, dp=ranks), streams)
    check.equal(actual, expected, "what the ranks hold")


@seeded
@feature("rank-memory")
@clause("RT-13-01", "RT-02-09", "RT-03-01")
def test_collectives_of_several_streams_do_not_mix_under_seeded_schedules(impl, check, block, untimed):
    """Two ranks and three streams (AMB-RT-04)."""
    context = check.returns(impl.runtime.tessInit(), "tessInit succeeds")["context"]
    for seed in seeds_of(impl, check, block, untimed):
        session = meshed(impl, check, context, devices_of(impl, check, 2))
        actual, expected = a_mixture(session, 3)
        check.equal(actual, expected, f"what the ranks hold under seed {seed}")
        session.close_mesh()


@feature("rank-memory")
@clause("RT-13-01", "RT-04.7-03")
def test_collectives_of_one_stream_keep_their_order(impl, check):
    """A gathering, a sum and a broadcast of one buffer, which have another result in any other order (AMB-RT-04)."""
    session = gathered(impl, check, dp=2)
    inputs = [Tensor.from_words("int32", (2,), [1 + rank, 10 + rank]) for rank in range(2)]
    pointer = filled(session, inputs)
    done(session, "all_gather", pointer, 2, "int32", axis="dp")
    done(session, "all_reduce", pointer, 1, "int32", op=SUM, axis="dp")
    done(session, "broadcast", pointer + 4, 1, "int32", root=1)
    done(session, "all_reduce", pointer + 4, 1, "int32", op=SUM, axis="dp")
    for rank, tensor in enumerate(held(session, pointer, inputs)):
        check.bits(tensor, Tensor.from_words("int32", (2,), [2, 22]), f"what rank {rank} has")


# The wire


WHOLE_NUMBERS = [0x3F800001, 0x40000001, 0x4B7FFFFF, 0x0D800001, 0xBF7FFFFF, 0x7F7FFFFF, 0x3DCCCCCD, 0x80800001]
"""Words of fp32 that no narrower format has."""

DEMANDING = [
    {"stableReductions": stable, "deterministic": 1, "rngStateless": 1, "allowFastMath": fast}
    for stable in (0, 1)
    for fast in (0, 1)
]


@feature("rank-memory")
@clause("RT-13-09")
@pytest.mark.parametrize("collective", FUNCTIONS)
@pytest.mark.parametrize("policy", DEMANDING, ids=["plain", "fast", "stable", "stable and fast"])
def test_nothing_is_lost_on_the_wire(impl, check, collective, policy):
    """Under every policy with deterministic = 1 numbers arrive whole: moved, or added to zeros (AMB-RT-27).

    As AMB-RT-04 has it.
    """
    session = gathered(impl, check, dp=4)
    session.set_policy(policy)
    whole = Tensor.from_words("fp32", (8,), WHOLE_NUMBERS)
    rows = [whole if rank == 0 else Tensor("fp32", (8,), bytes(32)) for rank in range(4)]
    if collective == "all_gather":
        rows = [whole] * 4
    pointer = filled(session, rows)
    done(session, collective, pointer, 8, "fp32", **parts_of(collective))
    actual = held(session, pointer, rows)
    for rank, tensor in enumerate(actual):
        expected = share(whole, rank, 4) if collective == "reduce_scatter" else whole
        check.bits(
            share(tensor, rank, 4) if collective == "reduce_scatter" else tensor, expected, f"what rank {rank} has"
        )


@feature("rank-memory")
@clause("RT-13-09")
@pytest.mark.parametrize("count", [1, 4096])
def test_nothing_is_lost_on_the_wire_of_large_buffers(impl, check, count):
    """Every element of a large buffer arrives whole, though compression would save time."""
    session = deterministic(gathered(impl, check, dp=2))
    row = counted("fp32", (count,), seed=620)
    pointer = filled(session, [row, Tensor("fp32", (count,), bytes(4 * count))])
    done(session, "all_reduce", pointer, count, "fp32", op=SUM, axis="dp")
    for rank in range(2):
        data = session.peek(rank, pointer, 4 * count + len(GUARD))
        check.equal(data.hex(), (row.data + GUARD).hex(), f"what rank {rank} has")
