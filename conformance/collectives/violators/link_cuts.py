"""Messages that are lost, doubled or kept when a link fails midway (collectives specification, 1, 3.2, 4.2, 4.3)."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.protocol import Rejected
from tessera_conformance.strength import Violation
from tessera_reference.adapter import collectives
from tessera_reference.collectives import travel as progress
from tessera_reference.collectives.travel import Cut, Progress, Transfer

from ...ir.violators.changes import changed, nothing
from .answers import Answer, answered, asked, left_out, lenient, refusing, silent
from .travel import travelling

TRAVEL, WAY = collectives.travel, progress.way_between
CUT, LOSE, REROUTE = Progress._cut, Progress._lose, Progress._reroute


def engine(clause: str, name: str, description: str, method: str, instead: Any) -> Violation:
    """An engine that does one thing otherwise, and does not check its credits."""
    return changed(clause, name, description, (Progress, method, instead), (Progress, "check", nothing))


def forgets(self: Progress, now: int, failed: Set[str]) -> list[Any]:
    """Do not send lost messages again."""
    LOSE(self, now, failed)
    return []


def forgets_one(self: Progress, now: int, failed: Set[str]) -> list[Any]:
    """Do not send the last of several messages again that are lost at once."""
    found = LOSE(self, now, failed)
    return found[:-1] if len(found) > 1 else found


def keeps_credits(self: Progress, now: int, failed: Set[str]) -> list[Any]:
    """Credits of what is lost are not returned."""
    found = LOSE(self, now, failed)
    for unit in found:
        for lane in unit.lanes:
            lane.credits -= 1
    return found


def keeps_other_credits(self: Progress, now: int, failed: Set[str]) -> list[Any]:
    """The credits of the failed link alone are returned."""
    found = LOSE(self, now, failed)
    for unit in found:
        for lane, (name, _) in zip(unit.lanes, unit.way.directions, strict=True):
            lane.credits -= name not in failed
    return found


def returns_twice(self: Progress, now: int, failed: Set[str]) -> list[Any]:
    """Credits of what is lost are returned twice."""
    found = LOSE(self, now, failed)
    for unit in found:
        for lane in unit.lanes:
            lane.credits += 1
    return found


def stays_busy(self: Progress, now: int, failed: Set[str]) -> list[Any]:
    """The links of what is lost are not free again until something else leaves them."""
    before = {id(lane): lane.free for lane in self._lanes.values()}
    found = LOSE(self, now, failed)
    for lane in self._lanes.values():
        lane.free = before[id(lane)]
    return found


def lost_alone(self: Progress, now: int, leaving: Sequence[Any]) -> dict[int, Any]:
    """Keep the way of messages that wait or leave later."""
    whole, self._needs = self._needs, {}
    waiting = [dict(lane.waiting) for lane in self._lanes.values()]
    for lane in self._lanes.values():
        lane.waiting.clear()
    found = CUT(self, now, ())
    self._needs = whole
    for lane, units in zip(self._lanes.values(), waiting, strict=True):
        lane.waiting.update(units)
        found |= units
    return found


def for_auto(self: Progress, unit: Any) -> None:
    """After a cut every path is auto."""
    self._path = "auto"
    self._ways.clear()
    REROUTE(self, unit)


def never_down(topology: Any, source: int, target: int, down: frozenset[str], path: str = "auto") -> Any:
    """Links that have failed are taken."""
    return WAY(topology, source, target, frozenset(), path)


def by_rdma(topology: Any, source: int, target: int, down: frozenset[str], path: str = "auto") -> Any:
    """Once a link has failed RDMA is taken wherever it is there."""
    return WAY(topology, source, target, down, "rdma" if down else path)


def delivered(found: list[Transfer]) -> list[Transfer]:
    """Report lost messages as arrived too."""
    return [replace(each, lost=False) for each in found]


def unseen(found: list[Transfer]) -> list[Transfer]:
    """Do not report lost messages."""
    return [each for each in found if not each.lost]


def restarted(found: list[Transfer]) -> list[Transfer]:
    """Report a message that is sent again from its first sending on."""
    first = {str(each.sent): each.start for each in found if each.lost}
    return [each if each.lost else replace(each, start=first.get(str(each.sent), each.start)) for each in found]


def first_cut(*arguments: Any, cuts: Sequence[Cut] = (), **options: Any) -> Any:
    """The first link alone fails."""
    return TRAVEL(*arguments, cuts=sorted(cuts)[:1], **options)


def from_the_start(*arguments: Any, cuts: Sequence[Cut] = (), **options: Any) -> Any:
    """A link that fails was down from the start."""
    options["down"] = options.get("down", frozenset()) | {cut.link for cut in cuts}
    return TRAVEL(*arguments, **options)


def too_early(*arguments: Any, cuts: Sequence[Cut] = (), **options: Any) -> Any:
    """Lose the message that would arrive as the link fails."""
    return TRAVEL(*arguments, cuts=[Cut(max(cut.at - 1, 0), cut.link) for cut in cuts], **options)


def unsupported(rejected: Rejected) -> Refusal:
    """Another status."""
    return Refusal("TESS_ERR_UNSUPPORTED", rejected.phase, rejected.message)


def lost_arrive(answer: Answer) -> None:
    """The answer does not say what is lost."""
    for transfer in answer["transfers"]:
        transfer.pop("lost", None)


def travels(clause: str, name: str, description: str, instead: Any) -> Violation:
    """Other transfers of the same question."""
    return changed(clause, name, description, (collectives, "travel", instead))


MESSAGES = [
    engine("COLL-04.3-01", "lost_forgotten", "does not send again what a failed link lost", "_lose", forgets),
    engine("COLL-04.3-02", "last_forgotten", "does not send again one of several lost messages", "_lose", forgets_one),
    travelling("COLL-04.3-01", "delivered_twice", "delivers what was lost and sent again twice", delivered),
    answered("COLL-04.3-02", "lost_not_marked", "tells what was lost as arrived", "transfers", lost_arrive),
    travelling("COLL-08-19", "lost_not_told", "keeps no record of what was lost", unseen),
    travelling("COLL-04.3-01", "sent_again_too_early", "sends again before the link has failed", restarted),
    travels("COLL-04.3-01", "lost_on_arrival", "loses what arrives as the link fails", too_early),
    travels("COLL-01-06", "first_cut_alone", "takes note of one failed link", first_cut),
    travels("COLL-04.3-01", "down_from_the_start", "knows beforehand which link fails", from_the_start),
]

WAYS = [
    asked("COLL-01-06", "cuts_ignored", "goes on over links that have failed", "transfers", left_out("cuts")),
    changed("COLL-01-06", "failed_link_used", "uses a failed link again", (progress, "way_between", never_down)),
    engine("COLL-04.3-01", "waiting_keep_their_way", "lets what waits go by the failed link", "_cut", lost_alone),
    engine("COLL-03.2-05", "path_forgotten", "forgets the path once a link has failed", "_reroute", for_auto),
    asked("COLL-03.2-05", "path_not_timed", "ignores the path of messages", "transfers", left_out("path")),
    changed("COLL-03.2-02", "back_to_rdma", "falls back to RDMA within a node", (progress, "way_between", by_rdma)),
    refusing("COLL-01-06", "no_way_unsupported", "tells of no way left as unsupported", "transfers", "no way",
             unsupported),
    refusing("COLL-01-06", "failed_link_not_named", "does not name the failed link", "transfers", "no way", silent),
    lenient("COLL-01-06", "no_way_no_matter", "goes on where no way is left", "transfers", "no way", left_out("cuts")),
    lenient("COLL-03.2-05", "unknown_cut_ignored", "ignores an unknown link that fails", "transfers", "link ",
            left_out("cuts", "down")),
    lenient("COLL-03.2-05", "unknown_timed_path_ignored", "takes an unknown path of messages for auto", "transfers",
            "path ", left_out("path")),
]  # fmt: skip

CREDITS = [
    engine("COLL-04.2-03", "credits_of_lost_kept", "keeps the credits of what is lost", "_lose", keeps_credits),
    engine("COLL-04.2-03", "other_credits_kept", "returns credits of the failed link alone", "_lose",
           keeps_other_credits),
    engine("COLL-04.2-03", "credits_returned_twice", "returns credits of what is lost twice", "_lose", returns_twice),
    engine("COLL-04.2-03", "links_stay_busy", "does not free the links of what is lost", "_lose", stays_busy),
]  # fmt: skip
