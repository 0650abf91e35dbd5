"""Messages that are lost, doubled or kept when a link fails midway (collectives specification, 1, 3.2, 4.2, 4.3)."""

from dataclasses import replace

from .changes import answered, at, left_out, lenient, refusing, result_of, silent


def stays_busy(usual, self, now, failed):
    before = {id(lane): lane.free for lane in self._lanes.values()}
    found = usual(self, now, failed)
    for lane in self._lanes.values():
        lane.free = before[id(lane)]
    return found


def for_auto(usual, self, unit):
    self._path = "auto"
    self._ways.clear()
    usual(self, unit)


travelling = result_of("adapter.collectives.travel")

VIOLATIONS = [
    travelling("COLL-04.3-01", "delivered_twice", "delivers what was lost and sent again twice",
        lambda found: [replace(message, lost=False) for message in found]),
    answered("COLL-04.3-02", "lost_not_marked", "tells what was lost as arrived", "transfers",
        lambda answer: answer | {"transfers": [left_out("lost")(transfer) for transfer in answer["transfers"]]}),
    travelling("COLL-08-19", "lost_not_told", "keeps no record of what was lost",
        lambda found: [message for message in found if not message.lost]),
    at("adapter.collectives.travel")("COLL-01-06", "first_cut_alone", "takes note of one failed link",
        lambda usual, *given, cuts=(), **options: usual(*given, cuts=sorted(cuts)[:1], **options)),
    at("collectives.travel.Progress._reroute")("COLL-03.2-05", "path_forgotten",
        "forgets the path once a link has failed", for_auto),
    at("collectives.travel.preferred_route")("COLL-03.2-02", "back_to_rdma", "falls back to RDMA within a node",
        lambda usual, topology, source, target, path, down: (
            usual(topology, source, target, "rdma" if down else path, down))),
    refusing("COLL-01-06", "failed_link_not_named", "does not name the failed link", "transfers", "no way", silent),
    lenient("COLL-03.2-05", "unknown_cut_ignored", "ignores an unknown link that fails", "transfers", "link ",
            left_out("cuts", "down")),
    lenient("COLL-03.2-05", "unknown_timed_path_ignored", "takes an unknown path of messages for auto", "transfers",
            "path ", left_out("path")),
    at("collectives.travel.Progress._lose")("COLL-04.2-03", "links_stay_busy",
        "does not free the links of what is lost", stays_busy),
]  # fmt: skip
