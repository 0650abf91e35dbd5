"""Messages that are lost, doubled or kept when a link fails midway (collectives specification, 1, 3.2, 4.2, 4.3)."""

from dataclasses import replace

from tessera_reference.adapter import collectives
from tessera_reference.collectives import travel as progress
from tessera_reference.collectives.travel import Progress

from ...ir.violators.changes import changed
from .changes import answered, left_out, lenient, refusing, silent
from .travel import travelling

TRAVEL, WAY = collectives.travel, progress.preferred_route
CUT, LOSE, REROUTE = Progress._cut, Progress._lose, Progress._reroute


def engine(clause, name, description, method, instead):
    """Return a violation with another method of the engine."""
    return changed(clause, name, description, (Progress, method, instead))


def stays_busy(self, now, failed):
    before = {id(lane): lane.free for lane in self._lanes.values()}
    found = LOSE(self, now, failed)
    for lane in self._lanes.values():
        lane.free = before[id(lane)]
    return found


def for_auto(self, unit):
    self._path = "auto"
    self._ways.clear()
    REROUTE(self, unit)


def by_rdma(topology, source, target, path, down):
    return WAY(topology, source, target, "rdma" if down else path, down)


def lost_arrive(answer):
    for transfer in answer["transfers"]:
        transfer.pop("lost", None)


def travels(clause, name, description, instead):
    """Return a violation with other transfers for the same question."""
    return changed(clause, name, description, ("adapter.collectives.travel", instead))


MESSAGES = [
    travelling("COLL-04.3-01", "delivered_twice", "delivers what was lost and sent again twice",
        lambda found: [replace(message, lost=False) for message in found]),
    answered("COLL-04.3-02", "lost_not_marked", "tells what was lost as arrived", "transfers", lost_arrive),
    travelling("COLL-08-19", "lost_not_told", "keeps no record of what was lost",
        lambda found: [message for message in found if not message.lost]),
    travels("COLL-01-06", "first_cut_alone", "takes note of one failed link",
        lambda *arguments, cuts=(), **options: TRAVEL(*arguments, cuts=sorted(cuts)[:1], **options)),
]  # fmt: skip

WAYS = [
    engine("COLL-03.2-05", "path_forgotten", "forgets the path once a link has failed", "_reroute", for_auto),
    changed("COLL-03.2-02", "back_to_rdma", "falls back to RDMA within a node",
        ("collectives.travel.preferred_route", by_rdma)),
    refusing("COLL-01-06", "failed_link_not_named", "does not name the failed link", "transfers", "no way", silent),
    lenient("COLL-03.2-05", "unknown_cut_ignored", "ignores an unknown link that fails", "transfers", "link ",
            left_out("cuts", "down")),
    lenient("COLL-03.2-05", "unknown_timed_path_ignored", "takes an unknown path of messages for auto", "transfers",
            "path ", left_out("path")),
]  # fmt: skip

CREDITS = [
    engine("COLL-04.2-03", "links_stay_busy", "does not free the links of what is lost", "_lose", stays_busy),
]  # fmt: skip
