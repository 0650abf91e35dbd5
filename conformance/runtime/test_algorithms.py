"""The choice of a collective's algorithm, on which no bits depend (spec 8.1 and 13; AMB-RT-26, AMB-COLL-13)."""

from __future__ import annotations

import pytest

from tessera_conformance.arithmetic import canonical, replay
from tessera_conformance.chapters.runtime.kit.algorithms import NAMES, choose, planned
from tessera_conformance.chapters.runtime.kit.mesh_session import DTYPE_IDS, SUM, opened, two_contexts
from tessera_conformance.chapters.runtime.kit.planned_modules import load_hinting, module_text
from tessera_conformance.chapters.runtime.kit.policies import STRICT
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.vectors.building import counted

ALGORITHMS = [
    pytest.param("ring", marks=clause("RT-13-03")),
    pytest.param("tree", marks=clause("RT-13-04")),
    pytest.param("hierarchical", marks=clause("RT-13-05")),
]
COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
FUNCTIONS = dict(
    zip(COLLECTIVES, ("tessAllReduce", "tessReduceScatter", "tessAllGather", "tessBroadcast"), strict=True)
)
COUNT = 64


def results(session, collective, brought):
    """Return each rank's tensor after a collective."""
    size = 4 * COUNT
    pointer = session.allocate(size)
    for rank, data in enumerate(brought):
        session.poke(rank, pointer, data.data)
    name = "buffer" if collective in ("all_reduce", "broadcast") else "inout"
    whole = {"mesh": session.mesh, name: pointer, "count": COUNT, "dtype": DTYPE_IDS["fp32"]}
    operator = {"op": SUM} if "reduce" in collective else {}
    place = {"root": 3} if collective == "broadcast" else {"axis": "dp"}
    session.ask(FUNCTIONS[collective], **whole, **operator, **place, stream=session.stream)
    session.synchronize()
    actual = [session.peek(rank, pointer, size).hex() for rank in range(8)]
    if collective != "reduce_scatter":
        return actual
    return [buffer[16 * rank * 4 : 16 * (rank + 1) * 4] for rank, buffer in enumerate(actual)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_an_algorithm_is_available(impl, check, algorithm, collective):
    """A hint on eight devices that a switch joins selects it."""
    session = opened(impl, check, 8)
    choose(session, algorithm, "hint", collective)
    check.equal(planned(session, collective), (algorithm, "hint"), "the plan of the collective")


@feature("rank-memory")
@level("strict", "deterministic")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_an_algorithm_changes_no_bits(impl, check, algorithm, collective):
    """Eight ranks whose sums depend on their order have the bits that they have without a hint (AMB-RT-04)."""
    session = opened(impl, check, 8)
    session.set_policy(STRICT)
    brought = [counted("fp32", (COUNT,), seed=640 + rank, exponents=(-12, 12)) for rank in range(8)]
    without = results(session, collective, brought)
    choose(session, algorithm, "hint", collective)
    actual = results(session, collective, brought)
    for rank in range(8):
        check.equal(actual[rank], without[rank], f"the bits on rank {rank}")


@feature("rank-memory")
@level("strict")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_sums_are_those_of_the_canonical_tree(impl, check, algorithm):
    """Under strict, whichever algorithm ran (AMB-RT-26)."""
    session = opened(impl, check, 8)
    brought = [counted("fp32", (COUNT,), seed=650 + rank, exponents=(-12, 12)) for rank in range(8)]
    choose(session, algorithm, "hint")
    expected = replay.all_reduce(brought, Tree.from_json("pairwise"), canonical("fp32")).data.hex()
    for rank, actual in enumerate(results(session, "all_reduce", brought)):
        check.equal(actual, expected, f"the sums on rank {rank}")


# Which one is chosen


@clause("RT-13-06")
@pytest.mark.parametrize("hint", ["ring", "tree", "hierarchical"])
@pytest.mark.parametrize("tuned", [None, "ring", "tree", "hierarchical"])
def test_a_hint_decides(impl, check, hint, tuned):
    """Whatever the autotuner has found, before the hint or after it."""
    session = opened(impl, check, 8)
    choose(session, tuned, "autotuner")
    choose(session, hint, "hint")
    check.equal(planned(session), (hint, "hint"), "the plan with a hint")
    choose(session, tuned, "autotuner")
    check.equal(planned(session), (hint, "hint"), "the plan with a hint before the autotuner's result")


@clause("RT-13-07")
@pytest.mark.parametrize("tuned", ["ring", "tree", "hierarchical"])
def test_without_a_hint_the_autotuner_decides(impl, check, tuned):
    """The autotuner decides without a hint, also once a hint is taken back."""
    session = opened(impl, check, 8)
    choose(session, tuned, "autotuner")
    check.equal(planned(session), (tuned, "autotuner"), "the plan without a hint")
    choose(session, "ring" if tuned == "tree" else "tree", "hint")
    choose(session, None, "hint")
    check.equal(planned(session), (tuned, "autotuner"), "the plan without the hint again")


@clause("RT-13-08")
@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_without_both_a_default_decides(impl, check, ranks, collective):
    """For any number of ranks, and again once hint and result are taken back."""
    session = opened(impl, check, ranks)
    first = planned(session, collective, count=40)
    check.equal(first[1], "default", "who decides")
    check.true(first[0] in NAMES, "the algorithm has a name", first[0])
    choose(session, "tree", "hint", collective)
    choose(session, "ring", "autotuner", collective)
    choose(session, None, "hint", collective)
    choose(session, None, "autotuner", collective)
    check.equal(planned(session, collective, count=40), first, "the default again")


@clause("RT-13-06", "RT-13-07")
@pytest.mark.parametrize("source", ["hint", "autotuner"])
def test_a_choice_is_for_one_collective_of_one_context(impl, check, source):
    """Other collectives and other contexts keep their default."""
    session, other = two_contexts(impl, check, 8)
    choose(session, "tree", source, "all_gather")
    check.equal(planned(session, "all_gather"), ("tree", source), "the collective of the choice")
    check.equal(planned(session, "all_reduce")[1], "default", "who decides for another collective")
    check.equal(planned(other, "all_gather")[1], "default", "who decides in another context")


# The plans of a module


@feature("graph-ir-text")
@clause("RT-08.1-11")
@pytest.mark.parametrize("algorithm", ["ring", "tree", "hierarchical"])
def test_the_plan_of_a_module_is_a_hint(impl, check, algorithm):
    """While the module is loaded it decides for its collective and axis, and for no other (AMB-RT-167)."""
    session = opened(impl, check, 8, tp=1, dp=8)
    module = load_hinting(session, algorithm)
    check.equal(planned(session), (algorithm, "hint"), "the plan of the collective")
    check.equal(planned(session, "all_gather")[1], "default", "who decides for another collective")
    request = {"collective": "all_reduce", "count": COUNT, "dtype": DTYPE_IDS["fp32"], "axis": "tp"}
    actual = session.ask("tessxCollectivePlan", mesh=session.mesh, **request)
    check.equal(actual["source"], "default", "who decides along another axis")
    session.ask("tessModuleUnload", module=module)
    check.equal(planned(session)[1], "default", "who decides without the module")


@feature("graph-ir-text")
@clause("RT-08.1-11")
@pytest.mark.parametrize("algorithm", ["ring", "tree", "hierarchical"])
def test_the_schedule_may_choose_otherwise_than_the_module(impl, check, algorithm):
    """A hint of the schedule on this machine counts more than the plan in the module."""
    session = opened(impl, check, 8)
    load_hinting(session, algorithm)
    for other in ("ring", "tree", "hierarchical"):
        choose(session, other, "hint")
        check.equal(planned(session), (other, "hint"), "the plan with a hint of the schedule")


@feature("rank-memory", "graph-ir-text")
@level("strict", "deterministic")
@clause("RT-08.1-11")
@pytest.mark.parametrize("algorithm", ["ring", "tree", "hierarchical"])
def test_the_plan_of_a_module_changes_no_bits(impl, check, algorithm):
    """A hint changes how long a collective takes, not what it gives."""
    session = opened(impl, check, 8)
    session.set_policy(STRICT)
    brought = [counted("fp32", (COUNT,), seed=660 + rank, exponents=(-12, 12)) for rank in range(8)]
    without = results(session, "all_reduce", brought)
    load_hinting(session, algorithm)
    check.equal(results(session, "all_reduce", brought), without, "the bits on every rank")


@feature("graph-ir-text")
@clause("RT-08.1-11")
def test_a_plan_that_no_program_chose_is_no_hint(impl, check):
    """A choice of the compiler by size is no hint: the autotuner of this machine takes precedence (AMB-COLL-85)."""
    session = opened(impl, check, 8, tp=1, dp=8)
    session.load(module_text(("all_reduce", 'op="sum", axis="dp"')), at="graph")
    check.equal(planned(session)[1], "default", "who decides")
    for tuned in ("ring", "tree"):
        choose(session, tuned, "autotuner")
        check.equal(planned(session), (tuned, "autotuner"), "the plan with a result of the autotuner")


@feature("graph-ir-text")
@clause("RT-08.1-11")
@pytest.mark.parametrize(
    ("subgroup", "source"),
    [("axes=[tp, dp]", "hint"), ("groups=[[0, 5], [1, 2]]", "default"), ("axes=[dp]", "default")],
    ids=["whole-mesh", "groups", "axis"],
)
def test_the_plan_of_a_subgroup_is_none_of_the_whole_mesh(impl, check, subgroup, source):
    """A broadcast spans the mesh: it follows the plan of all axes, and no other (AMB-COLL-85)."""
    session = opened(impl, check, 8, tp=2, dp=4)
    grouped = f'algo="tree", subgroup=!tessera.shard<{subgroup}>'
    session.load(module_text(("broadcast", grouped), mesh="tp=2 dp=4"), at="graph")
    request = {"collective": "broadcast", "count": COUNT, "dtype": DTYPE_IDS["fp32"], "axis": None}
    actual = session.ask("tessxCollectivePlan", mesh=session.mesh, **request)
    check.equal(actual["source"], source, "who decides for a broadcast")
