"""Links that fail during a collective of the runtime (runtime specification, 7 and 19.A; AMB-RT-182, AMB-COLL-79)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.algorithms import NAMES, Traced, choose
from tessera_conformance.chapters.runtime.kit.mesh_session import opened
from tessera_conformance.chapters.runtime.kit.policies import STRICT
from tessera_conformance.chapters.runtime.kit.readings import rejected
from tessera_conformance.chapters.runtime.kit.refusals import refused
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.protocol import Rejected
from tessera_conformance.vectors.building import counted

pytestmark = [feature("fault-injection", "link-cuts")]

RANKS, COUNT = 4, 20_011
LAUNCH_FAILED, TIMEOUT = "TESS_ERR_LAUNCH_FAILED", "TESS_ERR_TIMEOUT"
MOST_LINKS = 16
"""Links over which data may leave one device."""
STEPS = 12


def plan(session, *cuts):
    """Let these links fail so many nanoseconds from now, and nothing else."""
    faults = [{"kind": "link_cut", "link": link, "nanoseconds": at} for link, at in cuts]
    session.ask("tessxSetFaults", context=session.context, faults=faults)


def reduced(session, pointer, path):
    """The slices of an all-reduce, one a rank."""
    with Traced(session, path) as traced:
        session.all_reduce(pointer, count=COUNT)
    return traced.slices


@feature("rank-memory", "algorithm-control")
@level("strict", "deterministic")
@clause("RT-07-07", "RT-19.A-04")
@pytest.mark.parametrize("algorithm", NAMES)
def test_a_link_that_fails_midway_changes_no_bits(impl, check, tmp_path, algorithm):
    """Whenever the link fails; and sometimes the collective then takes longer, as its messages go another way."""
    session = opened(impl, check, RANKS)
    session.set_policy(STRICT)
    choose(session, algorithm, "hint")
    brought = [counted("fp32", (COUNT,), seed=1890 + rank, exponents=(-12, 12)) for rank in range(RANKS)]
    pointer = session.allocate(4 * COUNT)

    def run(*cuts):
        for rank, data in enumerate(brought):
            session.poke(rank, pointer, data.data)
        plan(session, *cuts)
        with Traced(session, tmp_path / "trace.json") as traced:
            session.all_reduce(pointer, count=COUNT, dtype="fp32")
        failed = bool(cuts) and rejected(traced.answer, LAUNCH_FAILED)
        check.reading("AMB-COLL-79", "a collective during which a link fails is failed", failed)
        check.returns(traced.answer, "the synchronization succeeds")
        return traced.slices, [session.peek(rank, pointer, 4 * COUNT) for rank in range(RANKS)]

    slices, bits = run()
    link = slices[0]["args"].get("link")
    check.true(isinstance(link, str), "a slice names its link", slices[0]["args"])
    nanoseconds = 1000 * max(part["dur"] for part in slices)
    longer = 0
    for step in range(STEPS):
        others, actual = run((link, int(nanoseconds * step / STEPS)))
        check.true(actual == bits, f"the bits on every rank where {link} fails at {step} of {STEPS}")
        longer += 1000 * max(other["dur"] for other in others) > nanoseconds
    check.true(longer > 0, "the collective takes longer for some times of the cut", longer)


@feature("timeout", "last-error")
@clause("RT-07-07", "RT-19.A-04")
@pytest.mark.parametrize("timeout", [0, 10**12], ids=["no timeout", "timeout"])
def test_a_collective_goes_on_until_no_link_is_left(impl, check, tmp_path, timeout):
    """One link after another is cut that carries what rank 0 sends; without one, the collective fails once."""
    session = opened(impl, check, RANKS)
    session.ask("tessxSetTimeout", context=session.context, nanoseconds=timeout)
    pointer = session.upload(bytes(4 * COUNT))
    session.synchronize()
    cut = []
    for _ in range(MOST_LINKS):
        plan(session, *((link, 0) for link in cut))
        session.all_reduce(pointer, count=COUNT)
        answer = session.attempt("tessStreamSynchronize", stream=session.stream)
        if isinstance(answer, Rejected):
            break
        slices = reduced(session, pointer, tmp_path / "trace.json")
        link = next(part["args"]["link"] for part in slices if part["args"]["rank"] == 0)
        check.true(link not in cut, f"{link} has not been cut", cut)
        cut.append(link)
    check.true(0 < len(cut) < MOST_LINKS, "some links carried what rank 0 sends", cut)
    check.status(answer, TIMEOUT if timeout else LAUNCH_FAILED)
    if not timeout:
        text = session.ask("tessxLastError")["text"]
        check.true(cut[-1] in text, f"the last error names {cut[-1]}", text)
    session.synchronize()
    plan(session)
    session.all_reduce(pointer, count=COUNT)
    session.synchronize()


@clause("RT-07-07")
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_every_rank_names_a_link_that_is_up(impl, check, tmp_path, ranks):
    """The one that carried what a rank sent is cut, and is not named again while another carries it (AMB-RT-182)."""
    session = opened(impl, check, ranks)
    pointer = session.upload(bytes(4 * COUNT))
    session.synchronize()
    for rank in range(ranks):
        plan(session)
        first = reduced(session, pointer, tmp_path / "trace.json")[rank]["args"].get("link")
        check.true(isinstance(first, str), f"rank {rank} names a link", first)
        plan(session, (first, 0))
        for transfer in reduced(session, pointer, tmp_path / "trace.json"):
            link = transfer["args"].get("link")
            check.true(isinstance(link, str) and link != first, f"a link other than {first}", link)


@clause("RT-07-07")
def test_a_link_that_the_machine_does_not_have_is_refused(impl, check):
    """The plan before it stays in force."""
    session = opened(impl, check, 2)
    faults = [{"kind": "link_cut", "link": "no such link", "nanoseconds": 0}]
    answer = session.attempt("tessxSetFaults", context=session.context, faults=faults)
    refused(check, answer, "TESS_ERR_INVALID_VALUE")
