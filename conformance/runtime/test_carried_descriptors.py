"""The descriptors that launches and collectives of streams carry (runtime specification, 11; AMB-RT-23, AMB-RT-46).

Those of single operations are in `test_descriptor`.
"""

from __future__ import annotations

import pytest

from tessera_conformance.arithmetic import canonical, replay
from tessera_conformance.chapters.runtime.kit.encoding import packed
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    CAPTURE,
    COUNT,
    DETERMINISTIC,
    DTYPE_IDS,
    SUM,
    opened,
    two_contexts,
)
from tessera_conformance.chapters.runtime.kit.policies import FAST, REDUCTION_ORDERS, STRICT
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.oracle.compositions import uniform
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.protocol import Rejected, Returned
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted

STABLE = {"softmax": True, "log_sum_exp": True, "clamp": True}
COLLECTIVES = {
    "tessAllReduce": {"op": SUM, "axis": "dp"},
    "tessReduceScatter": {"op": SUM, "axis": "dp"},
    "tessAllGather": {"axis": "dp"},
    "tessBroadcast": {"root": 0},
}


def collective(session, function, pointer):
    """Queue a collective over a tensor of int32."""
    name = "buffer" if function in ("tessAllReduce", "tessBroadcast") else "inout"
    whole = {"mesh": session.mesh, name: pointer, "count": COUNT, "dtype": DTYPE_IDS["int32"]}
    session.ask(function, **whole, **COLLECTIVES[function], stream=session.stream)


def fill(session, kernel, pointer, **stated):
    """Queue a launch."""
    session.launch(kernel, packed(("int32", 7), ("ptr", pointer)), **stated)


def carried(session):
    """Return the descriptors carried by the work queued on the stream."""
    return session.ask("tessxDescriptors", stream=session.stream)["descriptors"]


def set_descriptor(session, **descriptor):
    """Set the descriptor of later work."""
    session.ask("tessxSetDescriptor", context=session.context, descriptor=descriptor)


DRAWING = """module drawing {
  kernel both(x: tensor<8xfp32>, y: tensor<8xfp32>) {
    x = op.uniform() @{shape=[8]};
    y = op.uniform() @{shape=[8]};
  }
  kernel told(x: tensor<8xfp32>) { x = op.uniform() @{shape=[8], seed=3, stream=5}; }
}
"""


def drawn(session, kernel, *pointers):
    """Return a launch's tensors of eight numbers, once it has run."""
    session.launch(kernel, packed(*(("ptr", pointer) for pointer in pointers)))
    return [Tensor("fp32", (8,), session.download(pointer, 32)) for pointer in pointers]


@level("strict")
@feature("random-ops", "philox", "descriptor-access")
@clause("RT-11-03", "RT-11-04")
@pytest.mark.parametrize(("seed", "stream"), [(0, 0), (9, 0), (0, 7), ((1 << 63) + 1, 1 << 40), (2, (1 << 64) - 1)])
def test_random_numbers_of_a_launch_begin_where_its_descriptor_says(impl, check, seed, stream):
    """Two operations that name neither draw from the seed, the first from the stream and the second from the next."""
    session = opened(impl, check)
    kernel, pointers = session.kernel("both", DRAWING), [session.allocate(32) for _ in range(2)]
    set_descriptor(session, seed=seed, stream=stream)
    for number, actual in enumerate(drawn(session, kernel, *pointers)):
        expected = uniform(seed=seed, stream=(stream + number) % (1 << 64), shape=(8,))
        check.bits(actual, expected, f"the numbers of operation {number}")


MEETING = """module meeting {
  mesh g = mesh<axes=[dp], shape=[2]>;
  kernel largest(x: tensor<8xfp32>) { x = dist.all_reduce(op.uniform() @{shape=[8]}) @{axis=dp, op="max"}; }
}
"""


@level("strict")
@feature("random-ops", "philox", "descriptor-access", "mesh-collectives")
@clause("RT-11-03", "RT-11-04")
def test_random_numbers_of_ranks_that_meet_begin_where_the_descriptor_says(impl, check):
    """Both ranks draw the same numbers, of which the larger is the same again (AMB-RT-175)."""
    session = opened(impl, check, 2)
    kernel, pointer = session.kernel("largest", MEETING), session.allocate(32)
    set_descriptor(session, seed=9, stream=7)
    check.bits(drawn(session, kernel, pointer)[0], uniform(seed=9, stream=7, shape=(8,)), "the numbers on rank 0")


@level("strict")
@feature("random-ops", "philox", "descriptor-access", "rank-memory")
@clause("RT-11-03", "RT-11-04")
def test_every_rank_draws_the_numbers_of_its_launch(impl, check):
    """Two ranks that do not meet: the numbers follow from seed, stream and element alone (AMB-RT-74, AMB-RT-175)."""
    session = opened(impl, check, 2)
    kernel, pointers = session.kernel("both", DRAWING), [session.allocate(32) for _ in range(2)]
    set_descriptor(session, seed=9, stream=7)
    drawn(session, kernel, *pointers)
    for rank in range(2):
        actual = Tensor("fp32", (8,), session.peek(rank, pointers[0], 32))
        check.bits(actual, uniform(seed=9, stream=7, shape=(8,)), f"the numbers of rank {rank}")


@level("strict")
@feature("random-ops", "philox", "descriptor-access")
@clause("RT-11-03", "RT-11-04")
def test_an_operation_that_names_seed_and_stream_draws_from_these(impl, check):
    """Whatever the descriptor says (AMB-RT-175)."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("told", DRAWING), session.allocate(32)
    set_descriptor(session, seed=9, stream=7)
    check.bits(drawn(session, kernel, pointer)[0], uniform(seed=3, stream=5, shape=(8,)), "the numbers")


@level("strict")
@feature("random-ops", "philox", "descriptor-access")
@clause("RT-11-03", "RT-11-04")
def test_a_launch_draws_by_the_descriptor_that_it_was_queued_with(impl, check):
    """One that is set later is that of later launches, also where the first has not run yet."""
    session = opened(impl, check)
    kernel, pointers = session.kernel("both", DRAWING), [session.allocate(32) for _ in range(4)]
    for seed, (one, other) in ((4, pointers[:2]), (6, pointers[2:])):
        set_descriptor(session, seed=seed)
        session.launch(kernel, packed(("ptr", one), ("ptr", other)))
    set_descriptor(session, seed=8)
    for seed, pointer in ((4, pointers[0]), (6, pointers[2])):
        actual = Tensor("fp32", (8,), session.download(pointer, 32))
        check.bits(actual, uniform(seed=seed, shape=(8,)), f"the numbers of seed {seed}")


@feature("descriptor-access")
@pytest.mark.parametrize(
    "name", [pytest.param("seed", marks=clause("RT-11-03")), pytest.param("stream", marks=clause("RT-11-04"))]
)
@pytest.mark.parametrize("value", [-1, 1 << 64], ids=["below", "above"])
def test_a_seed_or_stream_beyond_64_bits_is_refused(impl, check, name, value):
    """It is an invalid value, and later work carries what was set before (AMB-RT-74)."""
    session = opened(impl, check)
    other = "stream" if name == "seed" else "seed"
    kept = {name: (1 << 64) - 1, other: 7}
    set_descriptor(session, **kept)
    answer = session.attempt("tessxSetDescriptor", context=session.context, descriptor={name: value, other: 3})
    check.status(answer, "TESS_ERR_INVALID_VALUE")
    fill(session, session.kernel("fill"), session.allocate(BYTES))
    actual = [{field: descriptor[field] for field in kept} for descriptor in carried(session)]
    check.equal(actual, [kept], "the seed and the stream that a launch carries")


@clause("RT-11-01")
def test_every_launch_and_collective_carries_a_descriptor(impl, check):
    """One for each of them, in their order, with seed 0, stream 0 and stable math where nothing else was set."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("fill"), session.upload(bytes(BYTES))
    check.equal(carried(session), [], "the descriptors before any launch")
    for number, flags in enumerate((0, DETERMINISTIC, 0), 1):
        fill(session, kernel, pointer, flags=flags)
        check.equal(len(carried(session)), number, "the number of descriptors, launch by launch")
    for function in COLLECTIVES:
        collective(session, function, pointer)
    actual = carried(session)
    check.equal(len(actual), 3 + len(COLLECTIVES), "the number of descriptors")
    for number, descriptor in enumerate(actual):
        check.equal((descriptor["seed"], descriptor["stream"]), (0, 0), f"seed and stream of work {number}")
        check.equal(descriptor["stable"], STABLE, f"the toggles of work {number}")
        check.true(descriptor["reduction_order"] is not None, f"work {number} has a reduction order")
    check.equal([launch["name"] for launch in actual[:3]], ["fill"] * 3, "the names of the launches")
    session.synchronize()


@clause("RT-11-01")
def test_streams_do_not_mix_their_descriptors(impl, check):
    """Each has those of the work that was queued on it."""
    session = opened(impl, check)
    other = session.another_stream()
    kernel, pointer = session.kernel("fill"), session.upload(bytes(BYTES))
    session.synchronize()
    set_descriptor(session, seed=5)
    fill(session, kernel, pointer)
    set_descriptor(session, seed=6)
    for _ in range(2):
        fill(other, kernel, pointer)
    check.equal([descriptor["seed"] for descriptor in carried(session)], [5], "the seeds on the first stream")
    check.equal([descriptor["seed"] for descriptor in carried(other)], [6, 6], "the seeds on the second stream")


@clause("RT-11-01")
@feature("graph-replay")
def test_each_replay_carries_what_its_launches_carried(impl, check):
    """Captured work is listed at each replay, with the descriptor and the policy of its capture (AMB-RT-170)."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("fill"), session.upload(bytes(BYTES))
    session.synchronize()
    session.set_policy(STRICT)
    set_descriptor(session, seed=5)
    fill(session, kernel, pointer, flags=CAPTURE)
    collective(session, "tessAllReduce", pointer)
    session.set_policy(FAST)
    set_descriptor(session, seed=7)
    fill(session, kernel, pointer, flags=CAPTURE)
    graph = session.ask("tessxGraphInstantiate", stream=session.stream)["graph"]
    check.equal(carried(session), [], "the descriptors before a replay")
    session.set_policy(STRICT | {"rngStateless": 0})
    set_descriptor(session, seed=6)
    for number in (1, 2):
        session.ask("tessxGraphLaunch", graph=graph, stream=session.stream)
        actual = [(descriptor["seed"], descriptor["policy"]) for descriptor in carried(session)]
        expected = [(5, STRICT), (5, STRICT), (7, FAST)] * number
        check.equal(actual, expected, f"the seeds and the policies after replay {number}")
    session.synchronize()


@clause("RT-11-01")
@pytest.mark.parametrize("policy", [STRICT, FAST], ids=["strict", "fast"])
@pytest.mark.parametrize("flags", [0, DETERMINISTIC])
def test_a_descriptor_follows_from_policy_and_flag(impl, check, policy, flags):
    """The policy of the context, deterministic where the flag asks for it; another context has its own."""
    session = opened(impl, check)
    opened(impl, check)
    session.set_policy(policy)
    kernel, pointer = session.kernel("fill"), session.upload(bytes(BYTES))
    fill(session, kernel, pointer, flags=flags)
    collective(session, "tessAllReduce", pointer)
    launched, reduced = carried(session)
    check.equal(launched["policy"]["deterministic"], max(policy["deterministic"], flags), "of the launch")
    for switch in ("stableReductions", "rngStateless"):
        check.equal(launched["policy"][switch], policy[switch], f"{switch} of the launch")
    check.equal(reduced["policy"], policy, "the policy of the collective")


SETTINGS = [
    pytest.param("reduction_order", ["fold", "pairwise", {"ring": 2}], marks=clause("RT-11-02")),
    pytest.param("seed", [1, 2**63 + 1, 0], marks=clause("RT-11-03")),
    pytest.param("stream", [1, 2**63 + 1, 0], marks=clause("RT-11-04")),
]


@pytest.mark.parametrize(("field", "values"), SETTINGS)
def test_what_is_set_is_carried_by_later_work_alone(impl, check, field, values):
    """Launches and collectives carry what was set last when they were queued."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("fill"), session.upload(bytes(BYTES))
    fill(session, kernel, pointer)
    for value in values:
        set_descriptor(session, **{field: value})
        fill(session, kernel, pointer)
        for function in COLLECTIVES:
            collective(session, function, pointer)
    actual = [descriptor[field] for descriptor in carried(session)][1:]
    expected = [value for value in values for _ in range(1 + len(COLLECTIVES))]
    check.equal(actual, expected, f"the {field} of each launch and collective")
    session.synchronize()


@clause("RT-11-01")
def test_a_descriptor_is_set_for_one_context(impl, check):
    """Work of another context carries seed 0."""
    first, second = two_contexts(impl, check)
    set_descriptor(first, seed=9, stream=4)
    for session, expected in ((first, (9, 4)), (second, (0, 0))):
        fill(session, session.kernel("fill"), session.upload(bytes(BYTES)))
        check.equal(
            [(descriptor["seed"], descriptor["stream"]) for descriptor in carried(session)],
            [expected],
            "seed and stream",
        )


@pytest.mark.parametrize(
    "toggle",
    [
        pytest.param("softmax", marks=clause("RT-11-05")),
        pytest.param("log_sum_exp", marks=clause("RT-11-06")),
        pytest.param("clamp", marks=clause("RT-11-07")),
    ],
)
def test_every_launch_carries_its_stable_math(impl, check, toggle):
    """On where it is set, and where another field of the descriptor is."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("fill"), session.upload(bytes(BYTES))
    set_descriptor(session, stable={toggle: True})
    fill(session, kernel, pointer)
    set_descriptor(session, seed=3)
    collective(session, "tessAllReduce", pointer)
    for descriptor in carried(session):
        check.equal(descriptor["stable"].get(toggle), True, f"stable {toggle}")


@clause("RT-11-02", "RT-19.A-01")
@pytest.mark.parametrize("function", ["tessAllReduce", "tessReduceScatter"])
@pytest.mark.parametrize("tree", [[0, 1], [[0, 1], [2, [3, 4]]], [0, 1, 2, 3, 4, 5, 6, 7]])
def test_a_tree_over_another_number_of_ranks_is_refused(impl, check, function, tree):
    """By the call, with nothing left for the synchronization; one over as many ranks as there are is taken.

    As AMB-RT-04, AMB-RT-78 and AMB-RT-174 have it.
    """
    session = opened(impl, check, 4)
    pointer = session.upload(bytes(BYTES))
    set_descriptor(session, reduction_order=tree)
    name = "buffer" if function == "tessAllReduce" else "inout"
    whole = {"mesh": session.mesh, name: pointer, "count": COUNT, "dtype": DTYPE_IDS["int32"]}
    answer = session.attempt(function, **whole, **COLLECTIVES[function], stream=session.stream)
    taken = isinstance(answer, Returned)
    fails = taken and isinstance(session.attempt("tessStreamSynchronize", stream=session.stream), Rejected)
    check.reading("AMB-RT-174", "an asynchronous failure", fails)
    check.reading("AMB-RT-78", "it is ignored", taken)
    check.status(answer, "TESS_ERR_INVALID_VALUE")
    session.synchronize()
    set_descriptor(session, reduction_order=[[0, 3], [1, 2]])
    collective(session, function, pointer)
    session.synchronize()


@clause("RT-11-02")
@feature("rank-memory")
@level("strict")
@pytest.mark.parametrize("tree", REDUCTION_ORDERS.values(), ids=REDUCTION_ORDERS)
def test_a_collective_reduces_in_the_order_of_its_descriptor(impl, check, tree):
    """Eight ranks, sums whose bits depend on their order: those of the tree that was set when it was queued."""
    session = opened(impl, check, 8)
    brought = [counted("fp32", (16,), seed=620 + rank, exponents=(-12, 12)) for rank in range(8)]
    pointer = session.allocate(64)
    for rank, data in enumerate(brought):
        session.poke(rank, pointer, data.data)
    set_descriptor(session, reduction_order=tree)
    session.all_reduce(pointer, 16, "fp32")
    later = next(order for order in REDUCTION_ORDERS.values() if order != tree)
    set_descriptor(session, reduction_order=later)
    session.synchronize()
    expected = replay.all_reduce(brought, Tree.from_json(tree), canonical("fp32"))
    for rank in range(8):
        check.equal(session.peek(rank, pointer, 64).hex(), expected.data.hex(), f"the sums on rank {rank}")
