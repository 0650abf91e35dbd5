"""Capability matrices and directives with other promises or effects (WSP 1.3, 5.2, 7 and 7.1)."""

from ....ir.violators.changes import around, breaks, changed, wrapped
from .answers import answered, asked, repackaged


def declaring(clause, name, description, table, **states):
    """Return a violation with other entries of a matrix; those that are None are left out."""

    def change(answer):
        for entry, state in states.items():
            answer[table].pop(entry.replace("__", "."), None)
            if state is not None:
                answer[table][entry.replace("__", ".")] = state

    return answered(clause, name, description, change, "capabilities")


def with_bytes(usual, self, **arguments):
    answer = usual(self, **arguments)
    return answer | {"directives": answer["directives"] | {"task_window.unit.bytes": "enforced"}}


def bytes_accepted(usual, self, *, program, **arguments):
    schedule = program.get("schedule", {})
    if schedule.get("task_window", {}).get("unit") == "bytes":
        program = {**program, "schedule": schedule | {"task_window": {"size": 64}}}
    return usual(self, program=program, **arguments)


@breaks("WSP-07-04", "everything is called enforced", answered, "capabilities")
def all_enforced(answer):
    for table in ("directives", "csp", "predicates"):
        answer[table] = dict.fromkeys(answer[table], "enforced")


@breaks("WSP-07.1-03", "phase 1 claims a window", answered, "capabilities")
def phase_1_enforces(answer):
    if answer["phase"] == 1:
        answer["directives"] |= {"task_window.mode.stall": "enforced", "task_window.unit.tasks": "enforced"}


@breaks("WSP-05.2-01", "targets in any case", "adapter.ReferenceAdapter.wsp_capabilities")
def any_case(usual, self, **arguments):
    name = arguments["target"].strip().lower()
    return usual(self, target=name if name.startswith("cpu") and "_" in name else arguments["target"])


NO_CHANNELS = {"sync_only_channels": None, "payload_channels": None}
NO_MECHANISMS = {"cond": None, "dispatch_key": None, "tensor_to_slot": None}


@breaks("WSP-01.3-02", "the window has no effect", "wsp.machine.Resources.shortage")
def no_window(usual, self, amounts, worker):
    self.sizes["task_ring"] = 1 << 31
    return usual(self, amounts, worker)


def directives_of(given):
    """Return the further directives of a program."""
    return given["program"].get("schedule", {}).get("directives", [])


def rescheduled(name, **members):
    """Return a change that gives programs with this directive another schedule."""

    def change(given):
        if not any(directive["name"] == name for directive in directives_of(given)):
            return given
        return {**given, "program": {**given["program"], "schedule": given["program"]["schedule"] | members}}

    return change


def last_value(document):
    schedule = document["schedule"]
    schedule["directives"] = list({directive["name"]: directive for directive in schedule["directives"]}.values())


@breaks("WSP-01.3-04", "reported each time", "adapter.ReferenceAdapter.wsp_compile")
def each_time(usual, self, **arguments):
    answer = usual(self, **arguments)
    said = " ".join(answer["diagnostics"])
    mentions = [directive for directive in directives_of(arguments) if directive["name"] in said]
    return answer | {"diagnostics": [text for text in answer["diagnostics"] for _ in mentions]}


@breaks("WSP-01.3-05", "directives are known by prefix", "wsp.targets.Target.state")
def by_prefix(usual, self, directive, table="directives"):
    for name, state in getattr(self, table).items():
        if directive.lower().startswith(name.lower()) or name.startswith(directive):
            return state
    return "unsupported"


@breaks("WSP-01.3-05", "other modes are accepted", "wsp.targets.Target.state")
def modes_accepted(usual, self, directive, *table):
    state = usual(self, directive, *table)
    return "recorded" if state == "unsupported" and directive.startswith("task_window") else state


def seeing(name, description, seen):
    return wrapped("WSP-01.3-05", name, description, "wsp.builder.uses", lambda usual, *of: filter(seen, usual(*of)))


VIOLATORS = [
    seeing("any_producers", "compiles channels of several producers for any target",
        lambda use: use[1] != "several_producers"),
    declaring("WSP-01.3-01", "no_window_declared", "no window", "directives", task_window__mode__stall=None),
    answered("WSP-01.3-09", "upper_case", "a state in capitals", repackaged(
        lambda document: document["schedule"]["capabilities"].update(prefetch="DIAGNOSED")), "compile"),
    answered("WSP-05.2-01", "policies_only", "no resources in the matrix", lambda answer: answer | {"directives":
        {name: state for name, state in answer["directives"].items() if name.startswith("dispatch")}}, "capabilities"),
    declaring("WSP-05.2-02", "no_channels", "both kinds of channels left out", "csp", **NO_CHANNELS),
    declaring("WSP-05.2-03", "no_mechanisms", "every mechanism left out", "predicates", **NO_MECHANISMS),
    changed("WSP-07-04", "bytes_enforced", "windows of bytes are called enforced and taken for 64 tasks",
        ("adapter.ReferenceAdapter.wsp_capabilities", around(with_bytes)),
        ("adapter.ReferenceAdapter.wsp_compile", around(bytes_accepted))),
    declaring("WSP-07-04", "cond_recorded", "conditions are called recorded", "predicates", cond="recorded"),
    declaring("WSP-07-04", "tokens_recorded", "channels are called recorded", "csp", sync_only_channels="recorded"),
    declaring("WSP-07.1-09", "no_hash", "hash is called recorded", "directives", dispatch__hash="recorded"),
    asked("WSP-01.3-07", "recorded_changes", "a recorded directive changes the window",
        rescheduled("placement", task_window={"size": 1}), "compile"),
    asked("WSP-01.3-08", "diagnosed_changes", "a diagnosed directive changes the policy",
        rescheduled("prefetch", policy={"id": "affinity", "parameters": {"workers": 3}}), "compile"),
    answered("WSP-01.3-03", "last_kept", "of equal directives one is kept", repackaged(last_value), "compile"),
    wrapped("WSP-01.3-02", "no_policy", "policies have no effect", "wsp.machine.Machine.place",
        lambda usual, self, number, key: 0),
]  # fmt: skip
