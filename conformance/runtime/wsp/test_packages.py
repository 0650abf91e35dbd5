"""The contents of a package: version, kernel registry, schedule, CSP payload, slots, symbols (sections 7 and 7.2)."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry

from tessera_conformance.chapters.runtime.wsp.kit.packages import (
    ABI,
    altered,
    canonical,
    content_hash,
    document_of,
    example,
)
from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    channel,
    elements,
    filler,
    instruction,
    kernel,
    load,
    op,
    process,
    program,
    receive,
    run,
    schedule,
    send,
    slot,
    symbol,
    symbol_of,
    task,
    tensor,
    work,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import compiled, instants, ran, statistics
from tessera_conformance.chapters.runtime.wsp.kit.targets import targets
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected
from tessera_conformance.schemas import schemas

pytestmark = feature("wsp-kernels", "wsp-packages")


def opened(impl, check, one):
    """The document of a program's package."""
    return document_of(check, compiled(impl, check, one))


def part(check, document, *path):
    """A part of a document that has to be there."""
    for key in path:
        there = key in document if isinstance(document, dict) else isinstance(key, int) and key < len(document)
        check.true(there, f"the package has {'/'.join(map(str, path))}", document if len(str(document)) < 300 else key)
        document = document[key]
    return document


def process_of(check, document, name):
    """The process of a name in a document, whatever the order of its processes."""
    found = [stated for stated in part(check, document, "csp", "processes") if stated.get("name") == name]
    check.equal(len(found), 1, f"the number of processes {name}")
    return found[0]


def presume_policy(impl, check, policy):
    """A case presumes that the target enforces this policy: of those beside round_robin the document asks for one."""
    state = check.returns(impl.wsp.capabilities(target="cpu_sim"))["directives"].get(f"dispatch.{policy}")
    check.given(state == "enforced", f"the target enforces the policy {policy}", state)


@feature("wsp-expressions", "wsp-resources", "wsp-slots")
@clause("WSP-07-01", "WSP-07.2-14")
def test_a_package_states_the_version_of_its_abi(impl, check):
    """And that of its form; it is loaded by what it says of itself."""
    package = compiled(impl, check, example())
    document = document_of(check, package)
    check.true(isinstance(document.get("wsp_runtime_abi"), str), "the ABI version is a text", document.get("target"))
    check.equal(document.get("wsp_runtime_abi"), ABI, "the ABI version")
    check.equal(document.get("format"), 1, "the form")
    answer = check.returns(impl.wsp.load(package=package))
    check.equal(answer["name"], "example", "the name")
    check.equal(answer["target"], "cpu_sim", "the target")
    check.equal(sorted({"fill", "double"} - {*answer["kernels"]}), [], "the kernels that are not there")
    check.equal(sorted(answer["channels"]), ["left", "right"], "the channels")
    check.equal(sorted(answer["processes"]), ["consumer", "listener", "producer"], "the processes")
    check.equal(sorted(answer["slots"]), ["done", "i", "seen", "x"], "the slots")
    check.equal(answer["symbols"], ["count", "first"], "the symbols")
    check.equal(answer["tensors"][:2], ["t", "u"], "the tensors")


@clause("WSP-07-01")
@pytest.mark.parametrize("target", targets())
def test_a_package_follows_its_schema(impl, check, target):
    """Packages for every target are valid by `schemas/wsp_package.schema.json`; section 7.2 lets them carry more."""
    one = program(process("p", task("fill", "t", 7)), kernels=[filler("fill", 5)], tensors=[tensor("t", "u8", [1])])
    document = document_of(check, compiled(impl, check, one, target))
    open_schemas = {name: opened_schema(schema) for name, schema in schemas().items()}
    registry = Registry().with_contents(open_schemas.items())
    judge = Draft202012Validator(open_schemas["tessera:wsp-package"], registry=registry)
    errors = [error.message[:200] for error in judge.iter_errors(document)]
    check.equal(errors, [], "what does not follow the schema")


def opened_schema(schema):
    """Return a schema whose objects may have more members than it names."""
    if isinstance(schema, dict):
        kept = {name: part for name, part in schema.items() if (name, part) != ("additionalProperties", False)}
        return {name: opened_schema(part) for name, part in kept.items()}
    return list(map(opened_schema, schema)) if isinstance(schema, list) else schema


@clause("WSP-07.2-15")
def test_the_key_of_the_abi_version(impl, check):
    """The key is spelled as in the example."""
    check.equal(opened(impl, check, program(process("p"))).get("wsp_runtime_abi"), "v10.0", "wsp_runtime_abi")


@feature("wsp-expressions", "wsp-resources", "wsp-slots")
@clause("WSP-07.2-01")
def test_the_kernel_registry_has_an_id_for_each_kernel(impl, check):
    """Different ones, by which statements name kernels (AMB-WSP-17)."""
    document = opened(impl, check, example())
    kernels = part(check, document, "kernels")
    ids = {part(check, kernel, "name"): part(check, kernel, "id") for kernel in kernels}
    check.equal(len(set(ids.values())), len(kernels), "the different ids")
    issued = part(check, document, "csp", "processes", 1, "body", 0, "body", 0)
    check.equal(issued.get("kernel"), ids["fill"], "the kernel of the consumer's task")


@pytest.mark.parametrize(
    ("member", "values"),
    [
        pytest.param("executor", ["dma", "matrix", "vector"], marks=clause("WSP-07.2-02"), id="executor"),
        pytest.param("entry", None, marks=clause("WSP-07.2-17"), id="entry"),
        pytest.param("payload", None, marks=clause("WSP-07.2-16"), id="payload"),
    ],
)
def test_an_entry_of_the_kernel_registry(impl, check, member, values):
    """Each kernel has it; the executor is the one that the program asks for."""
    kernels = [kernel(name, cycles=3, executor=name) for name in ("vector", "matrix", "dma")]
    document = opened(impl, check, program(process("p", run("dma"), run("matrix")), kernels=kernels))
    actual = {kernel["name"]: part(check, kernel, member) for kernel in part(check, document, "kernels")}
    actual.pop("note", None)
    check.equal([name for name, value in actual.items() if not value], [], f"the kernels with no {member}")
    if values is not None:
        check.equal(actual, {value: value for value in values}, "the executors")
    else:
        check.true(len({str(value) for value in actual.values()}) > 0, f"there is a {member}", actual)


@feature("wsp-expressions", "wsp-resources", "wsp-slots")
@clause("WSP-07.2-16", "WSP-07.2-17")
def test_the_payload_of_a_kernel_is_what_runs(impl, check):
    """Two kernels of one form have payloads and entries that differ where they differ."""
    kernels = {kernel["name"]: kernel for kernel in part(check, opened(impl, check, example()), "kernels")}
    left, right = part(check, kernels, "fill", "payload"), part(check, kernels, "double", "payload")
    check.true(left != right, "the payloads differ", left)
    check.true(kernels["fill"]["entry"] != kernels["double"]["entry"], "the entries differ", kernels["fill"])


PAYLOADS = {
    "as compiled": ({}, [8, -15]),
    "another operation": ({"op": "sub"}, [6, -9]),
    "a product": ({"op": "mul"}, [7, 36]),
    "operands exchanged": ({"op": "sub", "operands": [{"parameter": "b"}, {"parameter": "a"}]}, [-6, 9]),
    "a constant": ({"operands": [{"parameter": "a"}, {"constant": 100}]}, [107, 88]),
    "another destination": ({"destination": "b"}, [0, 0]),
}
"""Changes of an instruction `c = a + b`, and the elements of c after it."""


@feature("wsp-statistics")
@clause("WSP-07.2-16")
@pytest.mark.parametrize(("change", "expected"), PAYLOADS.values(), ids=PAYLOADS)
def test_what_a_payload_holds_is_what_is_executed(impl, check, change, expected):
    """The package of `c = a + b` with another instruction and the hash that fits, run beside the package itself."""
    parameters = {"a": "tensor", "b": "tensor", "c": "tensor"}
    one = program(
        process("p", run("k", "a", "b", "c")),
        kernels=[kernel("k", parameters, [instruction("add", "c", "a", "b")], cycles=2)],
        tensors=[tensor("a", "i32", [7, -12]), tensor("b", "i32", [1, -3]), tensor("c", "i32", [0, 0])],
    )
    package = compiled(impl, check, one)
    for target, result in (
        (package, [8, -15]),
        (altered(check, package, patched(change)), expected),
        (package, [8, -15]),
    ):
        actual = statistics(impl, check, target)
        check.equal(elements("i32", actual["tensors"]["c"]), result, "what the kernel computes")


def patched(change):
    """A change of the members of the first kernel's only instruction."""

    def patch(document):
        document["kernels"][0]["payload"]["instructions"][0].update(change)

    return patch


@feature("wsp-capabilities")
@clause("WSP-07.2-04", "WSP-07.2-18")
@pytest.mark.parametrize(("policy", "workers"), [("round_robin", 1), ("round_robin", 5), ("affinity", 3), ("hash", 4)])
def test_the_schedule_has_the_policy_and_its_parameters(impl, check, policy, workers):
    """The policy and its parameters are those of the program."""
    presume_policy(impl, check, policy)
    document = opened(impl, check, program(process("p"), schedule=schedule(policy, workers)))
    stated = part(check, document, "schedule", "policy")
    check.equal(part(check, stated, "id"), policy, "the id of the policy")
    check.equal(part(check, stated, "parameters").get("workers"), workers, "its parameter")


@feature("wsp-capabilities", "wsp-expressions")
@clause("WSP-07.2-18")
def test_an_expression_is_a_parameter_of_a_policy(impl, check):
    """A user's policy differs in the package from another one."""
    presume_policy(impl, check, "expression")
    actual = []
    for divisor in (2, 3):
        placed = {"worker": op("mod", {"input": "task"}, divisor)}
        one = program(process("p"), schedule=schedule("expression", 4, parameters=placed))
        actual.append(part(check, opened(impl, check, one), "schedule", "policy", "parameters"))
    check.true(actual[0] != actual[1], "the parameters differ", actual)


@clause("WSP-07.2-05")
@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_the_schedule_has_the_task_window(impl, check, size):
    """The schedule states the size, unit and mode of the window."""
    window = part(check, opened(impl, check, program(process("p"), schedule=schedule(window=size))), "schedule")
    stated = part(check, window, "task_window")
    check.equal(stated, {"size": size, "unit": "tasks", "mode": "stall"}, "the task window")


@feature("wsp-capabilities", "wsp-expressions", "wsp-resources", "wsp-slots")
@clause("WSP-07.2-06")
def test_the_schedule_declares_the_capabilities_of_its_target(impl, check):
    """The matrix of directives that the target exposes (AMB-WSP-29)."""
    declared = part(check, opened(impl, check, example()), "schedule", "capabilities")
    matrix = check.returns(impl.wsp.capabilities(target="cpu_sim"))["directives"]
    check.equal(declared, matrix, "the capability declarations")


@feature("wsp-capabilities")
@clause("WSP-07.2-06")
@pytest.mark.parametrize("target", targets())
def test_a_package_of_every_target_declares_its_capabilities(impl, check, target):
    """The whole matrix of that target's directives, whatever the program uses (AMB-WSP-29)."""
    package = document_of(check, compiled(impl, check, program(process("p")), target))
    declared = part(check, package, "schedule", "capabilities")
    matrix = check.returns(impl.wsp.capabilities(target=target))["directives"]
    check.equal(declared, matrix, "the capability declarations")


@feature("wsp-expressions", "wsp-resources", "wsp-slots")
@clause("WSP-07.2-07")
def test_the_csp_payload_has_an_id_for_each_channel(impl, check):
    """Different ones, by which statements name channels."""
    document = opened(impl, check, example())
    ids = {
        part(check, channel, "name"): part(check, channel, "id") for channel in part(check, document, "csp", "channels")
    }
    check.equal(sorted(ids), ["left", "right"], "the channels")
    check.equal(len(set(ids.values())), 2, "the different ids")
    sent = part(check, process_of(check, document, "producer"), "body", 0, "body", 0)
    check.equal(sent.get("channel"), ids["left"], "the channel of the producer's send")


@pytest.mark.parametrize(
    ("member", "values"),
    [
        pytest.param("capacity", [1, 1, 7, 3], marks=clause("WSP-07.2-08", "WSP-07.2-19"), id="capacity"),
        pytest.param("latency", [0, 11, 0, 5], marks=clause("WSP-07.2-09", "WSP-07.2-20"), id="latency"),
    ],
)
def test_the_csp_payload_has_capacities_and_latencies(impl, check, member, values):
    """They are those of the program, or 1 token and 0 cycles where it names none."""
    channels = [channel("a"), channel("b", latency=11), channel("c", 7), channel("d", 3, 5)]
    document = opened(impl, check, program(process("p"), channels=channels))
    actual = [part(check, channel, member) for channel in part(check, document, "csp", "channels")]
    check.equal(actual, values, f"the {member} of each channel")


@feature("wsp-expressions", "wsp-resources", "wsp-slots")
@clause("WSP-07.2-10")
def test_slots_and_symbols_have_ids(impl, check):
    """Different ones, by which statements name them, also slots that are only mentioned."""
    document = opened(impl, check, example())
    slots = {part(check, slot, "name"): part(check, slot, "id") for slot in part(check, document, "slots")}
    symbols = {part(check, symbol, "name"): part(check, symbol, "id") for symbol in part(check, document, "symbols")}
    check.equal(sorted(slots), ["done", "i", "seen", "x"], "the slots")
    check.equal(sorted(symbols), ["count", "first"], "the symbols")
    check.equal((len(set(slots.values())), len(set(symbols.values()))), (4, 2), "the different ids")
    loop = part(check, process_of(check, document, "producer"), "body", 0)
    check.equal(loop.get("count"), {"symbol": symbols["count"]}, "the symbol that counts")
    check.equal(loop.get("index"), slots["i"], "the slot of the index")


@feature("wsp-slots", "wsp-statistics")
@clause("WSP-07.2-11")
def test_slots_and_symbols_have_widths(impl, check):
    """Slots are 64 bits; a symbol has the bits that it was declared with, and no value that needs more (AMB-WSP-32)."""
    symbols = [symbol_of("byte", 200, 8), symbol_of("bit", 0, 1), symbol_of("long", 5), {"name": "plain"}]
    one = program(process("p", load("x", "t")), symbols=symbols, tensors=[tensor("t", "u64", [1])])
    document = opened(impl, check, one)
    actual = [part(check, symbol, "width") for symbol in part(check, document, "symbols")]
    check.equal(actual, [8, 1, 64, 64], "the widths of the symbols")
    check.equal([part(check, slot, "width") for slot in part(check, document, "slots")], [64], "the width of the slot")
    package = canonical(document)
    statistics(impl, check, package, symbols={"byte": "255", "bit": "1", "long": str(2**64 - 1)})
    for name, value in (("byte", "256"), ("bit", "2"), ("long", str(2**64))):
        refused = isinstance(impl.wsp.run(package=package, symbols={name: value}), Rejected)
        check.true(refused, f"a run with {name} = {value} is refused")


@feature("wsp-expressions", "wsp-resources", "wsp-slots")
@clause("WSP-07.2-12")
def test_symbols_have_an_update_protocol(impl, check):
    """A symbol has a default and may be updated between runs."""
    symbols = part(check, opened(impl, check, example()), "symbols")
    actual = [(symbol["name"], part(check, symbol, "update"), part(check, symbol, "default")) for symbol in symbols]
    check.equal(actual, [("count", "between-runs", 4), ("first", "between-runs", 6)], "the update protocol")


def summed():
    """Sends `first` and `first + 2^63` modulo 2^64, so often as a symbol says, and keeps what it received last."""
    return program(
        process("p", run("w3"), send("c", op("add", symbol("first"), 1 << 63))),
        process("q", receive("c", "x"), run("keep", "t", slot("x")), {"op": "cond", "when": slot("y"), "then": SPOIL}),
        channels=[channel("c")],
        kernels=[*work(3), kernel("keep", {"t": "tensor", "v": "scalar"}, KEEP)],
        tensors=[tensor("t", "u64", [0])],
        symbols=[symbol_of("first", 5), symbol_of("unused", 1, 1)],
    )


KEEP = [{"op": "add", "destination": "t", "operands": [{"parameter": "t"}, {"parameter": "v"}]}]
SPOIL = [run("keep", "t", 1000)]


@feature("wsp-expressions", "wsp-slots", "wsp-statistics")
@clause("WSP-07.2-13")
def test_symbols_are_updated_between_runs_of_one_package(impl, check):
    """Each run has the values that it is given, else the defaults; slots and tensors begin anew (AMB-WSP-12)."""
    package = compiled(impl, check, summed())
    for given, first in (({}, 5), ({"first": "0"}, 0), ({"first": str(2**64 - 1)}, 2**64 - 1), ({"unused": "0"}, 5)):
        actual = statistics(impl, check, package, symbols=given)
        check.equal(elements("u64", actual["tensors"]["t"]), [(first + 2**63) % 2**64], f"the result with {given}")
        check.equal(actual["slots"], {"x": str((first + 2**63) % 2**64), "y": "0"}, "the slots")
    result = ran(impl, check, package, tensors={"t": (7).to_bytes(8, "little").hex()})
    check.equal(elements("u64", result["statistics"]["tensors"]["t"]), [12 + 2**63], "the result on other data")
    refused = isinstance(impl.wsp.run(package=package, symbols={"second": "1"}), Rejected)
    check.true(refused, "a run with a symbol that there is not is refused")


REFUSED = {
    "symbol": {"symbols": {"first": "9", "second": "1"}},
    "value": {"symbols": {"first": "9", "unused": "2"}},
    "tensor": {"symbols": {"first": "9"}, "tensors": {"t": "07" + "00" * 7, "u": "00"}},
    "size": {"symbols": {"first": "9"}, "tensors": {"t": "07"}},
    "capacity": {"symbols": {"first": "9"}, "resources": {"channel.c.capacity": 7, "channel.d.capacity": 7}},
    "package": {"symbols": {"first": "9"}, "package": "{}"},
}
"""Members of requests to run that are refused; some of them would be right in another request."""


@feature("wsp-expressions", "wsp-slots", "wsp-statistics")
@clause("WSP-07.2-13")
@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
def test_a_refused_run_leaves_nothing_for_the_next(impl, check, given):
    """The next run has the defaults, in its symbols, tensors and channels."""
    package = compiled(impl, check, summed())
    before = statistics(impl, check, package)
    for _ in range(2):
        answer = impl.wsp.run(**({"package": package} | given))
        check.true(isinstance(answer, Rejected), f"a run with {given} is refused", answer)
        check.equal(statistics(impl, check, package), before, "the statistics of a run after it")


@feature("wsp-expressions", "wsp-resources", "wsp-slots", "wsp-statistics", "wsp-steps")
@clause("WSP-03.4.2-06")
def test_refused_requests_leave_a_run_as_it_stands(impl, check):
    """Between its instants: runs that were never started, packages cut off, symbols and sizes that there are not."""
    package = compiled(impl, check, example())
    usual = list(instants(impl, check, package))
    number = check.returns(impl.wsp.start(package=package))["run"]
    never = number + (1 << 52)  # runs may be numbered in any order
    for expected in usual:
        for refused in (
            impl.wsp.step(run=never, instants=1),
            impl.wsp.statistics(run=never),
            impl.wsp.start(package=package[:-9]),
            impl.wsp.run(package=package, symbols={"count": "2", "second": "1"}),
            impl.wsp.start(package=package, symbols={"count": "2"}, resources={"heap_arena": 0}),
        ):
            check.true(isinstance(refused, Rejected), "the request is refused", refused)
        check.equal(check.returns(impl.wsp.step(run=number, instants=1))["statistics"], expected, "the next instant")
        check.equal(check.returns(impl.wsp.statistics(run=number))["statistics"], expected, "the same, read again")


@feature("wsp-expressions", "wsp-resources", "wsp-slots")
@clause("WSP-07.2-01", "WSP-07.2-07", "WSP-07.2-10")
def test_every_build_of_a_program_is_the_same_package(impl, check):
    """Builds are equal byte for byte, whatever was compiled between, for any order of the program's members."""
    first = compiled(impl, check, example())
    compiled(impl, check, summed())
    check.equal(compiled(impl, check, example()), first, "the package of a second build")
    document_of(check, first)
    turned = {name: example()[name] for name in reversed(example())}
    turned["csp"] = dict(reversed(turned["csp"].items()))
    check.equal(compiled(impl, check, turned), first, "the package of a program with its members in another order")


@feature("wsp-expressions", "wsp-resources", "wsp-slots")
@clause("WSP-07.2-14", "WSP-07.2-10")
def test_the_hash_of_a_package_covers_its_content(impl, check):
    """Its bytes are canonical; two programs that differ in one cycle have different hashes."""
    package = compiled(impl, check, example())
    document = document_of(check, package)
    check.equal(document.get("hash"), content_hash(document), "the hash")
    check.equal(package, canonical(document), "the canonical bytes")
    other = json.loads(json.dumps(example()).replace('"fixed": 5', '"fixed": 6'))
    check.true(opened(impl, check, other).get("hash") != document["hash"], "another program has another hash")


@feature("wsp-expressions", "wsp-resources", "wsp-slots", "wsp-statistics")
@clause("WSP-07.2-10")
def test_a_package_runs_as_it_says(impl, check):
    """Tokens 6 to 9 fill a tensor in turn; what is loaded decides that it is doubled."""
    actual = statistics(impl, check, example())
    check.equal(elements("i32", actual["tensors"]["t"]), [9, 9, 9], "the first tensor")
    check.equal(elements("i32", actual["tensors"]["u"]), [18, 18, 18], "the second tensor")
    check.equal(actual["slots"]["seen"], "9", "the slot")
    check.equal(actual["assignments"], [0, 1, 2, 0, 1], "the workers of five tasks in turn")
