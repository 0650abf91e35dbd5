"""Links that fail while messages travel: by hand, and with every credit counted at every event (AMB-COLL-79)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives.delivery import Sent
from tessera_reference.collectives.links import FIXED, way_between
from tessera_reference.collectives.operations import messages
from tessera_reference.collectives.schedules import ALGORITHMS
from tessera_reference.collectives.travel import Cut, Progress, travel
from tessera_reference.mesh.topology import named

TOPOLOGY = named("two-nodes")
LINKS = [link.name for link in TOPOLOGY.links]
EIGHT = range(8)


def test_a_retry_by_hand() -> None:
    """4.5 MB to the next device: 10 us on NVLink at 450 GB/s, lost after 4 us, then the whole way again by PCIe."""
    sent = [Sent(0, 0, 1, 0, 4_500_000, False)]
    (whole,) = travel(TOPOLOGY, EIGHT, sent, 1)
    nvlink = way_between(TOPOLOGY, 0, 1, frozenset())
    assert (whole.links, whole.start, whole.end) == (("nvlink0", "nvlink1"), 0, 10_000_000 + nvlink.latency + FIXED)
    lost, again = travel(TOPOLOGY, EIGHT, sent, 1, cuts=[Cut(4_000_000, "nvlink1")])
    assert (lost.links, lost.start, lost.end, lost.lost) == (("nvlink0", "nvlink1"), 0, 4_000_000, True)
    pcie = way_between(TOPOLOGY, 0, 1, frozenset(["nvlink1"]))
    assert (again.links, again.start, again.lost) == (("pcie0", "pcie1"), 4_000_000, False)
    assert again.end == 4_000_000 + pcie.time(4_500_000) + pcie.latency + FIXED


@given(
    name=st.sampled_from(sorted(ALGORITHMS)),
    operation=st.sampled_from(["all_reduce", "all_gather", "broadcast"]),
    cuts=st.lists(st.builds(Cut, st.integers(0, 60_000_000), st.sampled_from(LINKS)), max_size=5),
    path=st.sampled_from(["auto", "nvlink", "pcie", "rdma", "network"]),
)
def test_every_message_arrives_once_and_every_credit_is_back(
    name: str, operation: str, cuts: list[Cut], path: str
) -> None:
    """Or there is no way left, which the failure says."""
    sent = messages(operation, name, 8, 100_003, per_node=4, chunk=20_000)
    progress = Progress(TOPOLOGY, path=path, cuts=cuts)
    found = travelled(progress, sent)
    if isinstance(found, Failure):
        assert found.status is Status.TESS_ERR_LAUNCH_FAILED
        assert any(cut.link in str(found) for cut in cuts)
        return
    assert sorted(found, key=str) == sorted(sent, key=str)
    assert all(any(cut.link in each.links and cut.at == each.end for cut in cuts) for each in progress.lost)


def travelled(progress: Progress, sent: list[Sent]) -> list[Sent] | Failure:
    """What arrives of messages in six chunks, or why not all of it does; credits are counted at every event."""
    arrived: list[Sent] = []
    try:
        for chunk in range(6):
            progress.add(chunk, EIGHT, [each for each in sent if each.first // 20_000 == chunk], 4)
        progress.start(0)
        while progress.next is not None:
            arrived += [each.transfer.sent for each in progress.advance()]
            progress.check()
    except Failure as failure:
        return failure
    return arrived


def test_a_credit_that_is_kept_is_found_at_once() -> None:
    progress = Progress(TOPOLOGY)
    progress.add(0, EIGHT, [Sent(0, 0, 1, 0, 8, False)], 4)
    progress.start(0)
    progress.check()
    progress._lanes["nvlink0", 0].credits -= 1
    with pytest.raises(AssertionError, match="nvlink0 from 0: 14 credits left, 1 taken"):
        progress.check()


def test_a_link_that_fails_twice_fails_once() -> None:
    sent = messages("all_reduce", "ring", 8, 80_000)
    once = travel(TOPOLOGY, EIGHT, sent, 4, cuts=[Cut(9_000_000, "nvlink3")])
    assert travel(TOPOLOGY, EIGHT, sent, 4, cuts=[Cut(9_000_000, "nvlink3"), Cut(12_000_000, "nvlink3")]) == once
    assert travel(TOPOLOGY, EIGHT, sent, 4, cuts=[Cut(9_000_000, "nvlink3")] * 2) == once
