"""Data that one device makes and another takes behind an event, with the functions of the text alone (spec 12).

A reduce-scatter leaves every rank a share of its own. Streams of the mesh work on the shares, and what a stream behind
an event moves to other devices shows on rank 0, also where rank 0 itself was ready long before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from tessera_conformance.chapters.runtime.kit.collectives import done, share
from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import BYTES, COUNT, D2D, SUM, MeshSession, meshed, opened
from tessera_conformance.chapters.runtime.kit.mesh_session import devices as devices_of
from tessera_conformance.marks import clause
from tessera_conformance.tensors import Tensor

BEGUN = [3 + place for place in range(COUNT)]


@dataclass(frozen=True)
class ScatteredTensor:
    """A tensor of which every rank of a mesh holds a share of its own, and the kernel `digit`."""

    session: MeshSession
    digit: int
    pointer: int

    def append(self, value: int, on: MeshSession) -> None:
        """Queue on a stream: append a digit to each element, on every rank."""
        on.launch(self.digit, packed(("int32", value), ("ptr", self.pointer)))

    def broadcast(self, root: int, on: MeshSession) -> None:
        """Queue on a stream: every rank gets what the root has."""
        done(on, "broadcast", self.pointer, COUNT, "int32", root=root)

    def numbers(self, rank: int, on: MeshSession) -> list[float]:
        """Return rank 0's copy of a rank's share, when the stream is done."""
        whole = Tensor("int32", (COUNT,), on.download(self.pointer, BYTES))
        return values_of("int32", share(whole, rank, self.session.ranks).data)


def share_of(rank: int, ranks: int) -> list[int]:
    """Return a rank's own share at the beginning."""
    start, stop = rank * COUNT // ranks, (rank + 1) * COUNT // ranks
    return [ranks * value for value in BEGUN[start:stop]]


def scattered(session: MeshSession, kernel: int) -> ScatteredTensor:
    """Queue on the stream: every rank sums its share."""
    pointer = session.upload(elements("int32", *BEGUN))
    done(session, "reduce_scatter", pointer, COUNT, "int32", op=SUM, axis="dp")
    return ScatteredTensor(session, kernel, pointer)


@clause("RT-12-04", "RT-02-06")
@pytest.mark.parametrize(("ranks", "root"), [(2, 1), (4, 1), (4, 3), (8, 7)])
def test_what_a_device_made_is_taken_by_another_behind_an_event(impl, check, ranks, root):
    """One stream works on the shares, another sends that of a root to all, behind an event, and a third changes it.

    As AMB-RT-04 has it.
    """
    session = opened(impl, check, ranks)
    tensor = scattered(session, session.kernel("digit"))
    sender, last = session.another_stream(), session.another_stream()
    for value in (1, 2, 3):
        tensor.append(value, session)
    sender.wait_stream(session)
    tensor.broadcast(root, sender)
    last.wait_stream(sender)
    tensor.append(4, last)
    expected = [1000 * 10 * value + 1234 for value in share_of(root, ranks)]
    check.equal(tensor.numbers(root, last), expected, f"what rank 0 holds of rank {root}")


@clause("RT-12-04")
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_an_event_holds_back_the_work_of_every_rank(impl, check, ranks):
    """Each root in turn: a stream waits on all ranks, so what the root appends is behind the wait on its device too.

    As AMB-RT-04 has it.
    """
    session = opened(impl, check, ranks)
    kernel = session.kernel("digit")
    for root in range(1, ranks):
        tensor = scattered(session, kernel)
        other = session.another_stream()
        for value in (5, 6, 7, 8):
            tensor.append(value, session)
        other.wait_stream(session)
        tensor.append(9, other)
        tensor.broadcast(root, other)
        expected = [100000 * value + 56789 for value in share_of(root, ranks)]
        check.equal(tensor.numbers(root, other), expected, f"what rank 0 holds of rank {root}")


@clause("RT-12-04", "RT-02-06")
@pytest.mark.parametrize("ranks", [2, 4])
def test_data_goes_from_device_to_device_and_back(impl, check, ranks):
    """Two streams by turns: one changes what every rank has, the other sends it on from some rank, behind an event.

    As AMB-RT-04 has it.
    """
    session = opened(impl, check, ranks)
    tensor = scattered(session, session.kernel("digit"))
    other = session.another_stream()
    expected = share_of(1, ranks)
    for root, value in ((1, 5), (0, 6), (1, 7), (ranks - 1, 8)):
        tensor.append(value, session)
        other.wait_stream(session)
        tensor.broadcast(root, other)
        session.wait_stream(other)
        expected = [10 * element + value for element in expected]
    check.equal(tensor.numbers(1, session), expected, "what rank 0 holds of rank 1")


@clause("RT-12-04")
@pytest.mark.parametrize("ranks", [2, 4])
def test_a_copy_behind_an_event_takes_what_another_device_sent(impl, check, ranks):
    """Sums on one stream, a copy on each device behind an event on the next, a gathering on a third (AMB-RT-04)."""
    session = opened(impl, check, ranks)
    tensor = scattered(session, session.kernel("digit"))
    copying, gathering = session.another_stream(), session.another_stream()
    target = session.upload(bytes(BYTES))
    for value in (1, 2):
        tensor.append(value, session)
    copying.wait_stream(session)
    copying.copy(target, tensor.pointer, BYTES, D2D)
    gathering.wait_stream(copying)
    done(gathering, "all_gather", target, COUNT, "int32", axis="dp")
    actual = values_of("int32", gathering.download(target, BYTES))
    check.equal(actual, [100 * ranks * value + 12 for value in BEGUN], "what rank 0 has gathered")


# A device that is behind


def hold_up(session: MeshSession, device: int, streams: int, rounds: int) -> list[MeshSession]:
    """Keep a device busy: streams of a mesh of its own, with launches and copies under way."""
    alone = meshed(session.impl, session.check, session.context, [device])
    kernel = alone.kernel("digit")
    others = [alone.another_stream() for _ in range(streams)]
    for other in others:
        x, y = other.upload(bytes(BYTES)), other.upload(bytes(BYTES))
        for _ in range(rounds):
            other.launch(kernel, packed(("int32", 1), ("ptr", x)), grid=[1 << 22, 1, 1])
            other.copy(y, x, BYTES, D2D)
    return others


@clause("RT-12-04", "RT-02-06")
@pytest.mark.parametrize("copied", [False, True], ids=["launched", "copied"])
@pytest.mark.parametrize("root", [1, 3])
def test_an_event_stands_for_the_slowest_device(impl, check, root, copied):
    """The device of one rank has other work; what a stream behind the event sends from there is what was made there.

    As AMB-RT-04 has it.
    """
    session = opened(impl, check, 4)
    tensor = scattered(session, session.kernel("digit"))
    target, other = session.upload(bytes(BYTES)), session.another_stream()
    session.synchronize()
    behind = hold_up(session, devices_of(impl, check, 4)[root], 6, 8)
    for value in (1, 2, 3):
        tensor.append(value, session)
    if copied:
        session.copy(target, tensor.pointer, BYTES, D2D)
        tensor = replace(tensor, pointer=target)
    other.wait_stream(session)
    tensor.broadcast(root, other)
    expected = [1000 * value + 123 for value in share_of(root, 4)]
    check.equal(tensor.numbers(root, other), expected, f"what rank 0 holds of rank {root}")
    for event in behind:
        event.synchronize()
