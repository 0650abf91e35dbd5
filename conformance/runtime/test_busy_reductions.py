"""Long reductions in launches beside busy streams: their order is that of a machine at rest (runtime spec, 6, 4.7)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed
from tessera_conformance.chapters.runtime.kit.long_reductions import (
    REDUCING,
    REDUCTIONS,
    judge_launched,
    launched,
    of_each,
)
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    COUNT,
    DETERMINISTIC,
    MeshSession,
    opened,
    two_contexts,
)
from tessera_conformance.chapters.runtime.kit.policies import FAST, LEVELS, LOOSE, STRICT
from tessera_conformance.marks import clause


def deterministic_policy(level: str) -> dict[str, int]:
    """Deterministic, and at the strict level stable: otherwise the order is the one that is declared (AMB-LANG-44)."""
    return LEVELS["strict" if level == "strict" else "deterministic"]


def background_work(session: MeshSession, streams: int, launches: int) -> list[MeshSession]:
    """New streams of the mesh, each with so many launches under way."""
    fill = session.kernel("fill")
    others = [session.another_stream() for _ in range(streams)]
    for other in others:
        pointer = other.upload(elements("int32", *[0] * COUNT))
        for value in range(launches):
            other.launch(fill, packed(("int32", value), ("ptr", pointer)))
    return others


# Busy streams


@of_each(*REDUCTIONS)
@clause("RT-06-04")
@pytest.mark.parametrize("streams", [0, 2])
def test_a_long_reduction_has_its_order_beside_busy_streams(impl, check, reduction, streams):
    """Some hundred terms and a remainder, on a mesh where other streams have work: the bits of the level of the run."""
    session = opened(impl, check)
    session.set_policy(deterministic_policy(impl.level))
    kernel = session.kernel(reduction.kernel, REDUCING)
    before = background_work(session, streams, 24)
    queued = [launched(session, kernel, reduction, seed) for seed in (701, 711)]
    behind = background_work(session, streams, 5)
    for product in queued:
        judge_launched(impl, check, product, product.result(session))
    for other in (*before, *behind):
        other.synchronize()


@clause("RT-06-04")
def test_products_on_several_streams_have_their_order(impl, check):
    """Three streams with long products at the same time, two of each."""
    session = opened(impl, check)
    session.set_policy(deterministic_policy(impl.level))
    streams = [session, session.another_stream(), session.another_stream()]
    reduction = REDUCTIONS["product"]
    kernel = session.kernel(reduction.kernel, REDUCING)
    queued = [(stream, launched(stream, kernel, reduction, 720 + 2 * n)) for n, stream in enumerate(streams * 2)]
    for owner, product in reversed(queued):
        judge_launched(impl, check, product, product.result(owner))


# Policies that change while work is queued

LATER = {
    "fast": [FAST],
    "loose": [LOOSE],
    "several": [LOOSE, STRICT, FAST],
    "fast math": [STRICT | {"allowFastMath": 1}],
}


@of_each("product", "sums")
@clause("RT-04.7-10", "RT-06-04")
@pytest.mark.parametrize("later", LATER.values(), ids=LATER)
def test_a_later_policy_leaves_queued_launches_alone(impl, check, reduction, later):
    """Queued under a deterministic policy behind other work; the policy is changed before they run (AMB-RT-48)."""
    session = opened(impl, check)
    kernel = session.kernel(reduction.kernel, REDUCING)
    session.set_policy(deterministic_policy(impl.level))
    decided = launched(session, kernel, reduction, 731).result(session)
    (other,) = background_work(session, 1, 24)
    session.wait_stream(other)
    queued = [launched(session, kernel, reduction, seed) for seed in (731, 741)]
    for policy in later:
        session.set_policy(policy)
    results = [queued_launch.result(session) for queued_launch in queued]
    if results[0] != decided:
        under_the_last = launched(session, kernel, reduction, 731).result(session)
        check.reading("AMB-RT-48", "at execution time", results[0] == under_the_last)
    for launch, actual in zip(queued, results, strict=True):
        judge_launched(impl, check, launch, actual)


@clause("RT-04.7-07", "RT-04.7-10")
@pytest.mark.parametrize("field", ["deterministic", "stableReductions", "all"])
def test_the_policy_is_read_by_the_call(impl, check, field):
    """The structure behind the pointer to const is the caller's again: policies of other contexts may lie there."""
    session, other = two_contexts(impl, check)
    reduction = REDUCTIONS["product"]
    kernel = session.kernel(reduction.kernel, REDUCING)
    policy = deterministic_policy(impl.level)
    session.set_policy(policy)
    other.set_policy(LOOSE if field == "all" else policy | {field: 0})
    queued = launched(session, kernel, reduction, 751)
    other.set_policy(FAST)
    judge_launched(impl, check, queued, queued.result(session))
    kept = session.ask("tessGetNumericsPolicy", context=session.context)["policy"]
    check.equal(kept, policy, "the policy of the context")


@clause("RT-04.7-10", "RT-06-09")
def test_a_flagged_launch_is_deterministic_under_a_later_policy(impl, check):
    """Queued under a loose policy with the flag, which the policy that is set before it runs does not take back."""
    session = opened(impl, check)
    reduction = REDUCTIONS["product"]
    kernel = session.kernel(reduction.kernel, REDUCING)
    session.set_policy(deterministic_policy(impl.level) | {"deterministic": 0})
    queued = launched(session, kernel, reduction, 761, DETERMINISTIC)
    session.set_policy(FAST)
    judge_launched(impl, check, queued, queued.result(session))
