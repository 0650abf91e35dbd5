"""Runtimes that answer `wsp.execute` alone, with losses, wrong counts or wrong reports (PTO-WSP v10, 1.2 to 3.3)."""

from ....ir.violators.changes import breaks, changed, finding, wrapped
from .answers import answered, of_report


@breaks("WSP-01.2-05", "reports the cycles of a kernel once", answered, "execute")
def first_run_alone(answer):
    for name, reports in answer["kernels"].items():
        answer["kernels"][name] = list({report["kernel"]: report for report in reports}.values())


@breaks("WSP-03.1-01", "places tasks on workers that there are not", answered, "execute")
def no_such_worker(answer):
    for task in answer["tasks"]:
        task["worker"] += 16


def reporting(clause, name, description, change):
    return answered(clause, name, description, of_report(change), "execute")


@breaks("WSP-02.1-01", "takes the first channel or kernel that begins alike", "wsp.forms.Reader.resolve")
def first_alike(usual, self, kind, value, path):
    alike = next((name for name in self.ids[kind] if str(value)[:32] == name[:32]), value)
    return usual(self, kind, alike, path)


NETWORKS = [
    reporting("WSP-03.3-10", "all_empty", "calls every blocking channel empty",
        lambda report: [channel.update(state="empty") for channel in report["channels"]]),
    reporting("WSP-03.3-10", "all_full", "calls every blocking channel full",
        lambda report: [channel.update(state="full") for channel in report["channels"]]),
    answered("WSP-02.1-04", "last_token_first", "gives the tokens backwards", lambda answer: answer.update(
        arrivals={name: tokens[::-1] for name, tokens in answer["arrivals"].items()}), "execute"),
    reporting("WSP-03.3-06", "first_channel", "names the first blocking channel alone",
        lambda report: report.update(channels=report["channels"][:1])),
    reporting("WSP-03.3-07", "first_waiting", "names the first process that waits alone",
        lambda report: report.update(waiting=report["waiting"][:1])),
    reporting("WSP-03.3-08", "names_for_reasons", "names the process for the reason",
        lambda report: [wait.update(reason=wait["process"]) for wait in report["waiting"]]),
    reporting("WSP-03.3-09", "no_suggestion", "suggests nothing", lambda report: report.update(mitigations=[])),
    reporting("WSP-03.3-05", "no_mark", "tells a high-water mark of 0",
        lambda report: report["window"].update(high_water=0)),
    reporting("WSP-03.3-04", "other_size", "tells another size of the window",
        lambda report: report["window"].update(size=report["window"]["size"] + 1)),
    answered("WSP-03.3-03", "no_report", "ends a deadlock without a report",
        lambda answer: answer.pop("deadlock", None) and None, "execute"),
    wrapped("WSP-02.1-04", "lost_beside_another", "loses a token where another producer waits",
        "wsp.machine.ChannelState.send",
        lambda usual, self, party, value: bool(self.senders) or usual(self, party, value)),
    wrapped("WSP-02.1-01", "outer_token", "sends on the token of the outer consume",
        "wsp.networks._Translation.statement", lambda usual, self, value, path, slots:
        usual(self, value, path, slots[:2] if value.get("op") == "send" else slots)),
    changed("WSP-02.4-05", "free_dependences", "starts a task before those that it depends on are complete",
        ("wsp.machine.TensorMap.dependencies", lambda self, reads, writes: {})),
    finding("WSP-03.1-01", "last_reader", "lets a write follow the last read before it alone",
        "wsp.machine.TensorMap.dependencies", "readers",
        lambda self: [dict([*reader.items()][-1:]) for reader in self.readers]),
]  # fmt: skip
