"""Runtimes that answer `wsp.execute` alone, with losses, wrong counts or wrong reports (PTO-WSP v10, 1.2 to 3.3)."""

from __future__ import annotations

from itertools import count
from typing import Any

from tessera_reference.wsp.forms import Reader
from tessera_reference.wsp.machine import ChannelState, Party, TensorMap
from tessera_reference.wsp.networks import _Translation as Translation

from .answers import Answer, answered
from .changes import changed

SEND, STATEMENT = ChannelState.send, Translation.statement
EXECUTIONS = count()


def of_report(change: Any) -> Any:
    """Return a change of the report, if there is one."""

    def of_answer(answer: Answer) -> None:
        if "deadlock" in answer:
            change(answer["deadlock"])

    return of_answer


def now_and_then(answer: Answer) -> None:
    answer["total_cycles"] += next(EXECUTIONS) % 7 == 6


def lost_beside_another(self: Any, party: Party, value: int) -> bool:
    return bool(self.senders) or SEND(self, party, value)


def of_the_outer_consume(self: Translation, value: Any, path: str, slots: Any) -> None:
    STATEMENT(self, value, path, slots[:2] if value.get("op") == "send" else slots)


def after_the_last_read(self: TensorMap, reads: Any, writes: Any) -> dict[int, Any]:
    readers = self.readers
    self.readers = [dict([*reader.items()][-1:]) for reader in readers]
    try:
        return DEPENDENCIES(self, reads, writes)
    finally:
        self.readers = readers


DEPENDENCIES = TensorMap.dependencies


def without_last(answer: Answer) -> None:
    answer["arrivals"] = {name: tokens[:-1] for name, tokens in answer["arrivals"].items()}


def reversed_arrivals(answer: Answer) -> None:
    answer["arrivals"] = {name: tokens[::-1] for name, tokens in answer["arrivals"].items()}


def one_report_a_kernel(answer: Answer) -> None:
    for name, reports in answer["kernels"].items():
        answer["kernels"][name] = list({report["kernel"]: report for report in reports}.values())


def next_worker(answer: Answer) -> None:
    for task in answer["tasks"]:
        task["worker"] += 16


def of_states(state: str) -> Any:
    """Return a change that gives all channels of a report one state."""
    return of_report(lambda report: [channel.update(state=state) for channel in report["channels"]])


SIGNIFICANT = 32


def first_alike(self: Reader, kind: str, value: Any, path: str) -> int:
    """Return the id of the first name with the same beginning."""
    alike = next((name for name in self.ids[kind] if str(value)[:SIGNIFICANT] == name[:SIGNIFICANT]), value)
    return RESOLVE(self, kind, alike, path)


RESOLVE = Reader.resolve

NETWORKS = [
    changed("WSP-02.1-01", "first_alike", "takes the first channel or kernel that begins alike",
        ("wsp.forms.Reader.resolve", first_alike)),
    answered("WSP-02.1-04", "last_token_first", "gives the tokens backwards", reversed_arrivals, "execute"),
    answered("WSP-01.2-05", "first_run_alone", "reports the cycles of a kernel once", one_report_a_kernel, "execute"),
    answered("WSP-03.1-01", "no_such_worker", "places tasks on workers that there are not", next_worker, "execute"),
    answered("WSP-03.3-10", "all_empty", "calls every blocking channel empty", of_states("empty"), "execute"),
    answered("WSP-03.3-10", "all_full", "calls every blocking channel full", of_states("full"), "execute"),
    answered("WSP-03.3-06", "first_channel", "names the first blocking channel alone",
        of_report(lambda report: report.update(channels=report["channels"][:1])), "execute"),
    answered("WSP-03.3-07", "first_waiting", "names the first process that waits alone",
        of_report(lambda report: report.update(waiting=report["waiting"][:1])), "execute"),
    answered("WSP-03.3-08", "no_reason", "names no reason",
        of_report(lambda report: [wait.update(reason="") for wait in report["waiting"]]), "execute"),
    answered("WSP-03.3-09", "no_suggestion", "suggests nothing",
        of_report(lambda report: report.update(mitigations=[])), "execute"),
    answered("WSP-03.3-05", "no_mark", "tells a high-water mark of 0",
        of_report(lambda report: report["window"].update(high_water=0)), "execute"),
    answered("WSP-03.3-04", "other_size", "tells another size of the window",
        of_report(lambda report: report["window"].update(size=report["window"]["size"] + 1)), "execute"),
    answered("WSP-03.3-03", "no_report", "ends a deadlock without a report",
        lambda answer: answer.pop("deadlock", None) and None, "execute"),
    changed("WSP-02.1-04", "lost_beside_another", "loses a token where another producer waits",
        ("wsp.machine.ChannelState.send", lost_beside_another)),
    changed("WSP-02.1-01", "outer_token", "sends on the token of the outer consume",
        ("wsp.networks._Translation.statement", of_the_outer_consume)),
    changed("WSP-03.1-01", "last_reader", "lets a write follow the last read before it alone",
        ("wsp.machine.TensorMap.dependencies", after_the_last_read)),
    changed("WSP-02.4-05", "free_dependences", "starts a task before those that it depends on are complete",
        ("wsp.machine.TensorMap.dependencies", lambda self, reads, writes: {})),
]  # fmt: skip
