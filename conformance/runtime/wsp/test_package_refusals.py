"""Packages that are refused: another ABI, truncated, altered, incomplete, without meaning (sections 7 and 7.2)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.packages import ABI, altered, document_of, example, sealed, setting
from tessera_conformance.chapters.runtime.wsp.kit.programs import kernel, process, program, task
from tessera_conformance.chapters.runtime.wsp.kit.runs import compiled
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected

pytestmark = feature("wsp-packages")

CODES = {"UNKNOWN_ABI", "TRUNCATED", "MALFORMED", "MISSING_PAYLOAD", "ALTERED", "INVALID"}


def refused(impl, check, package, code):
    """The package is neither loaded nor run; gives the message."""
    message = ""
    for method in (impl.wsp.load, impl.wsp.run, impl.wsp.start):
        observation = method(package=package)
        check.status(observation, code)
        message = observation.message if isinstance(observation, Rejected) else ""
        check.true(bool(message), "the refusal says why", message)
    return message


@feature("wsp-expressions", "wsp-kernels", "wsp-resources", "wsp-slots", "wsp-statistics", "wsp-steps")
@clause("WSP-07-01", "WSP-07.2-14")
@pytest.mark.parametrize(
    "abi",
    [
        "v10",
        "v10.",
        "v10.00",
        "v10.0.0",
        "v10.01",
        "v10.1",
        "V10.0",
        " v10.0",
        "v10.0\n",
        "v1",
        "v9.0",
        "v11.0",
        "10.0",
        "",
    ],
)
def test_another_abi_is_refused(impl, check, abi):
    """Also one that begins with this version, or with which this version begins; both are named (AMB-WSP-16)."""
    package = altered(check, compiled(impl, check, example()), setting("/wsp_runtime_abi", abi))
    message = refused(impl, check, package, "UNKNOWN_ABI")
    check.true(ABI in message, "the message names the version that is known", message)
    check.true(
        repr(abi) in message or (abi and abi in message), "the message names the version of the package", message
    )


@feature("wsp-expressions", "wsp-kernels", "wsp-resources", "wsp-slots", "wsp-statistics", "wsp-steps")
@clause("WSP-07-01", "WSP-07.2-14")
@pytest.mark.parametrize("abi", [None, 10.0, 10, ["v10.0"], {"v10.0": 1}], ids=str)
def test_a_package_without_a_version_is_refused(impl, check, abi):
    """So is one whose version is no text."""
    package = altered(check, compiled(impl, check, example()), setting("/wsp_runtime_abi", abi))
    check.true(ABI in refused(impl, check, package, "UNKNOWN_ABI"), "the message names the version that is known")


@feature("wsp-expressions", "wsp-kernels", "wsp-resources", "wsp-slots", "wsp-statistics")
@clause("WSP-07.2-14", "WSP-07-01")
def test_a_truncated_package_is_refused(impl, check):
    """A package cut at any length is refused, also without the line feed at its end."""
    package = compiled(impl, check, example())
    for length in (*range(1, len(package) - 1, 97), len(package) // 2, len(package) - 2, len(package) - 1):
        check.status(impl.wsp.load(package=package[:length]), "TRUNCATED")
        check.status(impl.wsp.run(package=package[:length]), "TRUNCATED")


@feature("wsp-statistics", "wsp-steps")
@clause("WSP-07.2-14")
@pytest.mark.parametrize(
    "text",
    ["[]\n", "17\n", '"package"\n', "nothing}\n", '{"wsp_runtime_abi":"v10.0",}\n', '{"a":1,"a":2}\n', '{"a":NaN}\n'],
)
def test_what_is_no_package_is_refused(impl, check, text):
    """JSON of another kind, and what is no JSON."""
    refused(impl, check, text, "MALFORMED")


ALTERATIONS = {
    "cycles": setting("/kernels/0/cycles/fixed", 6),
    "an instruction": setting("/kernels/1/payload/instructions/0/op", "sub"),
    "the policy": setting("/schedule/policy/id", "hash"),
    "the window": setting("/schedule/task_window/size", 8),
    "a resource": setting("/schedule/resources/heap_arena", 101),
    "a capability": setting("/schedule/capabilities/dispatch.hash", "recorded"),
    "a capacity": setting("/csp/channels/1/capacity", 2),
    "a latency": setting("/csp/channels/0/latency", 1),
    "a statement": setting("/csp/processes/1/body/1", None),
    "a default": setting("/symbols/0/default", 3),
    "a width": setting("/symbols/1/width", 17),
    "a slot's name": setting("/slots/0/name", "z"),
    "data": setting("/tensors/0/initial", "00" * 12),
    "the target": setting("/target", "aie"),
    "the phase": setting("/phase", 1),
    "the name": setting("/name", "another"),
    "the hash": setting("/hash", "sha256:" + "0" * 64),
    "the kind of hash": setting("/hash", "md5:" + "0" * 32),
    "no hash text": setting("/hash", 0),
}


@feature("wsp-expressions", "wsp-kernels", "wsp-resources", "wsp-slots", "wsp-statistics", "wsp-steps")
@clause("WSP-07.2-14")
@pytest.mark.parametrize("change", ALTERATIONS.values(), ids=ALTERATIONS)
def test_an_altered_package_is_refused(impl, check, change):
    """Any change without a new hash is refused."""
    refused(impl, check, altered(check, compiled(impl, check, example()), change, seal=False), "ALTERED")


@feature("wsp-expressions", "wsp-kernels", "wsp-resources", "wsp-slots")
@clause("WSP-07.2-14")
def test_no_digit_of_a_package_can_be_changed(impl, check):
    """Every digit of the text, one after the other: each is refused for some reason."""
    package = compiled(impl, check, example())
    places = [place for place, letter in enumerate(package) if letter.isdigit()]
    accepted = []
    for place in places[::5]:
        digit = str((int(package[place]) + 1) % 10)
        observation = impl.wsp.load(package=package[:place] + digit + package[place + 1 :])
        if not (isinstance(observation, Rejected) and observation.code in CODES):
            accepted.append(place)
    check.equal(accepted, [], "the places at which another digit is accepted")


PAYLOADS = {
    "kernels": "WSP-07.2-01",
    "schedule": "WSP-07.2-04",
    "csp": "WSP-07.2-07",
    "slots": "WSP-07.2-10",
    "symbols": "WSP-07.2-10",
    "tensors": "WSP-07.2-10",
    "hash": "WSP-07.2-14",
    "format": "WSP-07.2-14",
    "target": "WSP-07.2-14",
}


@feature("wsp-expressions", "wsp-kernels", "wsp-resources", "wsp-slots", "wsp-statistics", "wsp-steps")
@pytest.mark.parametrize("member", [pytest.param(payload, marks=clause(its)) for payload, its in PAYLOADS.items()])
def test_a_package_without_a_payload_is_refused(impl, check, member):
    """The error names the missing payload."""
    document = document_of(check, compiled(impl, check, example()))
    package = altered(check, sealed(document), setting(f"/{member}", None), seal=member != "hash")
    message = refused(impl, check, package, "MISSING_PAYLOAD")
    check.true(member in message, f"the message names {member}", message)


MEANINGLESS = [
    pytest.param("/kernels/0/executor", None, marks=clause("WSP-07.2-02"), id="no executor"),
    pytest.param("/kernels/0/entry", None, marks=clause("WSP-07.2-17"), id="no entry"),
    pytest.param("/kernels/0/cycles/per_element", None, marks=clause("WSP-07.2-16"), id="no cycles of an element"),
    pytest.param("/schedule/task_window/unit", None, marks=clause("WSP-07.2-05"), id="no unit of the window"),
    pytest.param("/schedule/task_window/mode", None, marks=clause("WSP-07.2-05"), id="no mode of the window"),
    pytest.param("/schedule/resources/ready_queue", None, marks=clause("WSP-07.2-05"), id="no size of a resource"),
    pytest.param("/schedule/policy/parameters", None, marks=clause("WSP-07.2-18"), id="no parameters"),
    pytest.param("/csp/channels/1/id", None, marks=clause("WSP-07.2-07"), id="a channel without an id"),
    pytest.param("/csp/channels/0/capacity", None, marks=clause("WSP-07.2-08"), id="no capacity"),
    pytest.param("/csp/channels/1/latency", None, marks=clause("WSP-07.2-09"), id="no latency"),
    pytest.param("/symbols/1/width", None, marks=clause("WSP-07.2-11"), id="no width"),
    pytest.param("/symbols/0/default", None, marks=clause("WSP-07.2-12"), id="no default"),
    pytest.param("/symbols/0/update", None, marks=clause("WSP-07.2-12"), id="no update protocol"),
    pytest.param("/kernels/0/executor", "gpu", marks=clause("WSP-07.2-02"), id="an unknown executor"),
    pytest.param("/kernels/0/payload", None, marks=clause("WSP-07.2-16"), id="no kernel payload"),
    pytest.param("/kernels/0/entry", "", marks=clause("WSP-07.2-17"), id="no entry symbol"),
    pytest.param("/kernels/1/id", 0, marks=clause("WSP-07.2-01"), id="two kernels of one id"),
    pytest.param("/schedule/policy", None, marks=clause("WSP-07.2-04"), id="no policy"),
    pytest.param("/schedule/policy/id", "roundrobin", marks=clause("WSP-07.2-04"), id="an unknown policy"),
    pytest.param("/schedule/policy/parameters", {}, marks=clause("WSP-07.2-18"), id="no workers"),
    pytest.param("/schedule/policy/parameters/workers", 0, marks=clause("WSP-07.2-18"), id="zero workers"),
    pytest.param("/schedule/task_window", None, marks=clause("WSP-07.2-05"), id="no task window"),
    pytest.param("/schedule/task_window/size", 0, marks=clause("WSP-07.2-05"), id="a window of no slot"),
    pytest.param("/schedule/capabilities", None, marks=clause("WSP-07.2-06"), id="no capabilities"),
    pytest.param("/schedule/capabilities/prefetch", "maybe", marks=clause("WSP-07.2-06"), id="a fifth state"),
    pytest.param("/csp/channels", None, marks=clause("WSP-07.2-07"), id="no channels"),
    pytest.param("/csp/channels/1/id", 7, marks=clause("WSP-07.2-07"), id="a channel of an unknown id"),
    pytest.param("/csp/processes/0/body/0/body/0/channel", 2, marks=clause("WSP-07.2-07"), id="a send to no channel"),
    pytest.param("/csp/channels/0/capacity", -1, marks=clause("WSP-07.2-08"), id="a negative capacity"),
    pytest.param("/csp/channels/0/capacity", "1", marks=clause("WSP-07.2-08"), id="a capacity that is a text"),
    pytest.param("/csp/channels/0/latency", -1, marks=clause("WSP-07.2-09"), id="a negative latency"),
    pytest.param("/csp/channels/0/latency", 0.5, marks=clause("WSP-07.2-09"), id="half a cycle"),
    pytest.param("/symbols/0/id", 1, marks=clause("WSP-07.2-10"), id="two symbols of one id"),
    pytest.param("/slots/0/width", 65, marks=clause("WSP-07.2-11"), id="a slot of 65 bits"),
    pytest.param("/symbols/1/width", 2, marks=clause("WSP-07.2-11"), id="a default that is too wide"),
    pytest.param("/symbols/1/default", 1 << 16, marks=clause("WSP-07.2-11"), id="a default of one bit more"),
    pytest.param("/symbols/0/update", "never", marks=clause("WSP-07.2-12"), id="another update protocol"),
    pytest.param("/kernels/0/cycles/fixed", -5, marks=clause("WSP-07.2-16"), id="negative cycles"),
    pytest.param("/symbols/1/width", 65, marks=clause("WSP-07.2-11"), id="a symbol of 65 bits"),
    pytest.param("/csp/channels/0/capacity", True, marks=clause("WSP-07.2-08"), id="a capacity that is true"),
    pytest.param("/csp/channels/1/name", "left", marks=clause("WSP-07.2-07"), id="two channels of one name"),
    pytest.param("/tensors/0/count", 0, marks=clause("WSP-07.2-10"), id="a tensor of no element"),
    pytest.param("/tensors/0/initial", "00", marks=clause("WSP-07.2-10"), id="data of another size"),
    pytest.param("/tensors/0/dtype", "fp9", marks=clause("WSP-07.2-10"), id="an unknown dtype"),
    pytest.param("/csp/processes/0/body/0/op", "loop", marks=clause("WSP-07.2-07"), id="an unknown statement"),
    pytest.param("/csp/processes/2/body", [7], marks=clause("WSP-07.2-07"), id="a statement that is a number"),
    pytest.param(
        "/csp/processes/0/body/0/count",
        {"input": "task"},
        marks=clause("WSP-07.2-07"),
        id="an input of the policy in a process",
    ),
    pytest.param("/csp/processes/0/body/0/index", 99, marks=clause("WSP-07.2-10"), id="an index in no slot"),
    pytest.param(
        "/csp/processes/1/body/0/body/0/arguments", [], marks=clause("WSP-07.2-07"), id="a task without its arguments"
    ),
    pytest.param(
        "/kernels/1/payload/instructions/0/op", "div", marks=clause("WSP-07.2-16"), id="an unknown instruction"
    ),
    pytest.param(
        "/kernels/1/payload/instructions/0/operands",
        [],
        marks=clause("WSP-07.2-16"),
        id="an instruction without operands",
    ),
    pytest.param(
        "/kernels/1/payload/instructions/0/destination",
        "z",
        marks=clause("WSP-07.2-16"),
        id="an instruction into nothing",
    ),
    pytest.param("/schedule/resources/heap_arena", 0, marks=clause("WSP-07.2-05"), id="a resource of no size"),
    pytest.param("/format", 2, marks=clause("WSP-07.2-14"), id="another form"),
    pytest.param("/phase", 3, marks=clause("WSP-07.2-14"), id="a third phase"),
    pytest.param("/phase", 1, marks=clause("WSP-07.1-09"), id="a phase that its target has not"),
    pytest.param("/target", "gpu9000", marks=clause("WSP-07.2-14"), id="an unknown target"),
]


def in_package(document, path):
    """The path of a part of the example in its package, whose processes may stand in another order."""
    start, order = "/csp/processes/", [stated["name"] for stated in document["csp"]["processes"]]
    if not path.startswith(start):
        return path
    number, rest = path.removeprefix(start).split("/", 1)
    return f"{start}{order.index(example()['csp']['processes'][int(number)]['name'])}/{rest}"


@feature("wsp-expressions", "wsp-kernels", "wsp-resources", "wsp-slots", "wsp-statistics", "wsp-steps")
@pytest.mark.parametrize(("path", "value"), MEANINGLESS)
def test_a_package_without_meaning_is_refused(impl, check, path, value):
    """Sealed, so that nothing but the member is wrong; the message names the place."""
    package = compiled(impl, check, example())
    place = in_package(document_of(check, package), path)
    message = refused(impl, check, altered(check, package, setting(place, value)), "INVALID")
    parent = place.rsplit("/", 1)[0]
    check.true(parent in message, f"the message names {parent}", message)


@feature("wsp-expressions", "wsp-kernels", "wsp-resources", "wsp-slots", "wsp-statistics", "wsp-steps")
@clause("WSP-07.2-16")
@pytest.mark.parametrize("dtype", ["u32", "fp32"])
def test_a_call_with_tensors_of_two_dtypes_is_refused(impl, check, dtype):
    """The elements of `add` have one dtype; the bytes of the tensor stay as they are (AMB-WSP-62)."""
    package = altered(check, compiled(impl, check, example()), setting("/tensors/1/dtype", dtype))
    refused(impl, check, package, "INVALID")


HOST_GRAPH = "pto_runtime_a2a3sim_host_graph"
CLAIMS = {
    "an enforced window": setting("/schedule/capabilities/task_window.mode.stall", "enforced"),
    "an enforced unit": setting("/schedule/capabilities/task_window.unit.tasks", "enforced"),
    "an enforced pool": setting("/schedule/capabilities/resources.heap_arena", "enforced"),
    "a channel": setting("/csp/channels", [{"id": 0, "name": "c", "capacity": 1, "latency": 0}]),
    "phase 2": setting("/phase", 2),
}


@feature("phase1-host-graph", "wsp-packages", "wsp-steps")
@clause("WSP-07.1-03", "WSP-07.1-09")
@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_package_of_phase_1_cannot_claim_what_phase_2_has(impl, check, claim):
    """Backpressure on an orchestration that has run to its end, and channels that nothing waits at."""
    stated = program(process("p", task("k")), kernels=[kernel("k", {}, [])])
    package = compiled(impl, check, stated, HOST_GRAPH)
    check.returns(impl.wsp.load(package=package))
    refused(impl, check, altered(check, package, claim), "INVALID")
