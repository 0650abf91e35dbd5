"""Data-dependent control: tensor elements in slots, cond and keys that read them (PTO-WSP v10, 4.2)."""

from __future__ import annotations

import math
import struct

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    FORMATS,
    channel,
    cond,
    elements,
    filler,
    instruction,
    kernel,
    load,
    note,
    op,
    process,
    program,
    receive,
    repeat,
    run,
    schedule,
    send,
    slot,
    symbol,
    symbol_of,
    task,
    tensor,
    tensor_argument,
    wait,
    work,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import (
    compiled,
    ends_with_error,
    noted,
    ran,
    statistics,
    under_seeds,
)
from tessera_conformance.marks import clause, feature

pytestmark = feature("wsp-kernels", "wsp-packages")

ELEMENTS = {
    "i8": [0, 127, -128, -1],
    "i16": [-32768, 300, -2],
    "i32": [-(1 << 31), (1 << 31) - 1, -3],
    "i64": [-(1 << 63), (1 << 63) - 1, -4],
    "u8": [255, 128, 1],
    "u16": [65535, 32768],
    "u32": [(1 << 32) - 1, 1 << 31],
    "u64": [(1 << 64) - 1, 1 << 63, (1 << 53) + 1],
    "fp32": [0.0, -0.0, 3.0, 2.0**24, 2.0**63, 2.0**64 - 2.0**40],
    "fp64": [0.0, -0.0, 2.0**53 - 1, 2.0**63, 2.0**64 - 2.0**11, 1.0],
    "bool": [False, True, True],
}
"""Elements that can be brought into slots: signs, sizes, and zeros of both signs."""

NO_ELEMENTS = {
    "fp32": [-1.0, 0.5, math.nan, math.inf, -math.inf, 2.0**64, 2.0**-149, -(2.0**-149)],
    "fp64": [-1.0, 1.5, math.nan, math.inf, -math.inf, 2.0**64, 5e-324, 2.0**51 + 0.5],
}
"""Elements that are no whole number from 0 below 2^64."""


@feature("wsp-seeds", "wsp-slots", "wsp-statistics")
@clause("WSP-04.2-01", "WSP-04.2-03")
@pytest.mark.parametrize("issued", ["run", "task"])
@pytest.mark.parametrize("value", [0, 1, 1 << 40])
def test_what_a_kernel_writes_steers_a_cond(impl, check, issued, value):
    """A kernel in the process or a task of 6 cycles writes the tensor; the load comes after it, then the cond."""
    writes = run("f", "t", value) if issued == "run" else task("f", "t", value)
    source = program(
        process("p", load("s", "t", 1), writes, load("s", "t", 1), cond(slot("s"), [note(1)], [note(2)]), note(3)),
        process("q", note(6, "other"), cond(slot("nobody"), [note(1, "other")]), note(7, "other")),
        kernels=[filler("f", 6)],
        tensors=[tensor("t", "u64", [5, 0 if value else 5])],
        logs=["log", "other"],
    )
    actual = under_seeds(impl, check, source)
    check.equal(noted(actual), "13" if value else "23", "the branch that was taken")
    check.equal(noted(actual, "other"), "67", "a cond without an otherwise, on a slot that nobody set")
    check.equal(actual["slots"]["s"], str(value), "the slot")


@feature("wsp-slots", "wsp-statistics")
@clause("WSP-04.2-02")
@pytest.mark.parametrize("dtype", sorted(ELEMENTS))
def test_an_element_becomes_a_number_of_64_bits(impl, check, dtype):
    """Integers extend in two's complement, floats are whole numbers, -0.0 is 0, bool is 0 or 1 (AMB-WSP-13)."""
    given = ELEMENTS[dtype]
    source = program(
        process("p", *(load(f"x{place}", "t", place) for place in range(len(given)))),
        tensors=[tensor("before", dtype, given[::-1]), tensor("t", dtype, given)],
    )
    expected = {f"x{place}": str(int(element) % (1 << 64)) for place, element in enumerate(given)}
    check.equal(statistics(impl, check, source)["slots"], expected, "the slots")


@feature("wsp-expressions", "wsp-slots", "wsp-statistics")
@clause("WSP-04.2-02")
@pytest.mark.parametrize("dtype", sorted(NO_ELEMENTS))
def test_an_element_that_is_no_whole_number_is_an_error(impl, check, dtype):
    """Negative, fractional, too large or not finite: never rounded, and the slot keeps its value (AMB-WSP-13)."""
    given = NO_ELEMENTS[dtype]
    source = program(
        process("p", load("x", "u"), load("x", "t", symbol("at")), note(1)),
        tensors=[tensor("t", dtype, given), tensor("u", "u8", [77])],
        symbols=[symbol_of("at")],
    )
    package = compiled(impl, check, source)
    for place in range(len(given)):
        result = ran(impl, check, package, symbols={"at": str(place)})
        ends_with_error(check, result, "SLOT_VALUE", "p")
        check.equal(result["statistics"]["slots"]["x"], "77", "the slot after the error")


@feature("wsp-expressions", "wsp-slots", "wsp-statistics")
@clause("WSP-04.2-02")
def test_the_element_of_a_load_is_an_expression(impl, check):
    """The last element comes first; one beyond the last is an error (AMB-WSP-58)."""
    source = program(
        process("p", repeat(symbol("n"), load("x", "t", op("sub", 4, slot("i"))), note(slot("x")), index="i")),
        tensors=[tensor("t", "i16", [1, 2, 3, 4, 5])],
        symbols=[symbol_of("n", 5)],
    )
    package = compiled(impl, check, source)
    check.equal(noted(statistics(impl, check, package)), "54321", "the elements")
    result = ran(impl, check, package, symbols={"n": "6"})
    ends_with_error(check, result, "ELEMENT_OUT_OF_RANGE", "p")


@feature("wsp-expressions", "wsp-slots", "wsp-statistics")
@clause("WSP-04.2-02")
@pytest.mark.parametrize("element", [5, 256, 1 << 16, 1 << 32, (1 << 32) + 4, 1 << 63, (1 << 64) - 1])
def test_an_element_that_a_tensor_has_not_is_an_error(impl, check, element):
    """Of five, whatever is left of its number in fewer bits; the slot keeps its value (AMB-WSP-58)."""
    source = program(
        process("p", load("x", "t", 4), load("x", "t", symbol("at")), note(1)),
        tensors=[tensor("t", "u8", [1, 2, 3, 4, 77])],
        symbols=[symbol_of("at")],
    )
    result = ran(impl, check, compiled(impl, check, source), symbols={"at": str(element)})
    ends_with_error(check, result, "ELEMENT_OUT_OF_RANGE", "p")
    check.equal(result["statistics"]["slots"]["x"], "77", "the slot after the error")


@feature("wsp-slots", "wsp-statistics")
@clause("WSP-04.1-02")
@pytest.mark.parametrize("turns", [255, 257, 1000])
def test_a_repeat_takes_each_of_many_turns(impl, check, turns):
    """The index counts from 0 up, and a kernel of one cycle runs in each."""
    source = program(process("p", repeat(turns, run("w1"), index="i")), kernels=work(1))
    actual = statistics(impl, check, source)
    check.equal(actual["kernels"]["w1"]["runs"], turns, "the runs of the kernel")
    check.equal(actual["total_cycles"], turns, "the makespan")
    check.equal(actual["slots"]["i"], str(turns - 1), "the last index")


@feature("wsp-seeds", "wsp-slots", "wsp-statistics")
@clause("WSP-04.2-02")
def test_a_slot_keeps_what_was_loaded(impl, check):
    """A later write to the tensor does not change it; the next load does."""
    source = program(
        process("p", load("x", "t"), run("f", "t", 9), note(slot("x")), load("x", "t"), note(slot("x"))),
        kernels=[filler("f")],
        tensors=[tensor("t", "u8", [4, 4])],
    )
    check.equal(noted(under_seeds(impl, check, source)), "49", "the slot")


@feature("wsp-expressions", "wsp-seeds", "wsp-slots", "wsp-statistics")
@clause("WSP-04.2-03")
def test_a_cond_reads_its_slot_each_time(impl, check):
    """A cond in a loop, whose slot changes in each round, from 0 and back to 0; nested conds too."""
    inner = cond(op("eq", slot("x"), 2), [note(2)], [note(1)])
    source = program(
        process("p", repeat(6, load("x", "t", slot("i")), cond(slot("x"), [inner], [note(10)]), index="i")),
        tensors=[tensor("t", "u8", [0, 1, 2, 0, 2, 1])],
    )
    check.equal(noted(under_seeds(impl, check, source)), "a12a21", "the branches that were taken")


@feature("wsp-expressions", "wsp-seeds", "wsp-slots", "wsp-statistics")
@clause("WSP-04.2-03")
def test_a_predicate_and_a_count_over_several_slots(impl, check):
    """Slots of two processes, by token; a repeat takes its count when it begins."""
    source = program(
        process("p", load("a", "t", 0), send("c", op("add", slot("a"), 1))),
        process(
            "q", receive("c", "n"), repeat(slot("n"), load("n", "t", 1), note(slot("n"))), cond(slot("a"), [note(5)])
        ),
        channels=[channel("c")],
        tensors=[tensor("t", "u8", [2, 7])],
    )
    check.equal(noted(under_seeds(impl, check, source)), "7775", "rounds of the loop, and the cond")


LATE = {
    "run": ([run("slow", "t", slot("x"))], [], lambda actual: elements("i32", actual["tensors"]["t"])[0]),
    "load": ([task("count", "u", 40), load("y", "u", slot("x"))], [], lambda actual: int(actual["slots"]["y"]) - 40),
    "task": (
        [task("slow", "u", 9), task("slow", "t", slot("x"))],
        [],
        lambda actual: elements("i32", actual["tensors"]["t"])[0],
    ),
    "key": ([task("slow", "u", 9), task("slow", "t", 3, key=slot("x"))], [], lambda actual: actual["assignments"][1]),
    "send": (
        [send("c", 9), send("c", slot("x"))],
        [run("w9"), receive("c", "y"), receive("c", "y")],
        lambda actual: int(actual["slots"]["y"]),
    ),
}
"""Statements that begin while x is 1 and go on after it is 2, what the other process does then, and what x they had."""


@feature("wsp-expressions", "wsp-slots", "wsp-statistics")
@clause("WSP-04.1-04", "WSP-04.2-07")
@pytest.mark.parametrize(("late", "then", "observed"), LATE.values(), ids=LATE)
def test_operands_are_evaluated_when_a_statement_begins(impl, check, late, then, observed):
    """A kernel that runs, and what waits for a task, a window or a channel, has the slot as it was (AMB-WSP-47)."""
    source = program(
        process("p", load("x", "old"), *late),
        process("q", run("w3"), load("x", "new"), *then),
        channels=[channel("c")],
        kernels=[
            filler("slow", 9),
            kernel("count", {"t": "tensor", "by": "scalar"}, [instruction("iota", "t", "by")], 9),
            *work(3, 9),
        ],
        tensors=[
            tensor("old", "u8", [1]),
            tensor("new", "u8", [2]),
            tensor("t", "i32", [0]),
            tensor("u", "i32", [0] * 3),
        ],
        schedule=schedule("affinity", 3, 1),
    )
    actual = observed(statistics(impl, check, source))
    check.reading("AMB-WSP-47", "no order but wait", actual == -40)
    check.equal(actual, 1, "the value of the slot that the statement had")


@feature("wsp-expressions", "wsp-slots", "wsp-statistics")
@clause("WSP-04.2-01")
def test_a_wait_is_for_the_tasks_of_its_own_process(impl, check):
    """It ends at 5 while the task of another process, issued before, runs until 60, and that of a third until 5."""
    source = program(
        process("long", task("fill", "a", 7, key=1)),
        process("p", task("short", "b", 8, key=2), wait(), load("x", "b"), note(slot("x")), run("w9")),
        process("idle", wait(), note(1)),
        kernels=[filler("fill", 60), filler("short", 5), *work(9)],
        tensors=[tensor("a", "u8", [0]), tensor("b", "u8", [0])],
        schedule=schedule("affinity", 3, 8),
    )
    actual = statistics(impl, check, source)
    check.equal(noted(actual), "18", "what is noted")
    check.equal(actual["processes"], {"long": 0, "p": 14, "idle": 0}, "the times of the processes")


def searching():
    """A process that counts the elements before the first 0, by tasks that a cond issues or not."""
    element = load("x", "t", slot("i"))
    body = cond(slot("x"), [cond(op("not", slot("off")), [note(slot("x"))])], [load("off", "ones")])
    return program(
        process("p", repeat(symbol("n"), element, body, index="i"), note(15)),
        tensors=[tensor("t", "u8", [3, 1, 0, 4, 2]), tensor("ones", "i8", [-1])],
        symbols=[symbol_of("n", 5)],
    )


@feature("wsp-expressions", "wsp-slots", "wsp-statistics")
@clause("WSP-04.2-04", "WSP-04.2-06", "WSP-01.1-01", "WSP-01.1-05")
def test_one_package_follows_its_data(impl, check):
    """Compiled once, run with other tensors and symbols, forth and back: no trace of the first data is in it."""
    package = compiled(impl, check, searching())
    impl.wsp.compile(program=program(process("p", note(9)), name="case"), target="cpu_sim")
    runs = [
        ({}, "31f"),
        ({"tensors": {"t": "0405060708"}}, "45678f"),
        ({"tensors": {"t": "0001020304"}}, "f"),
        ({"symbols": {"n": "1"}}, "3f"),
        ({"tensors": {"t": "0900000000"}, "symbols": {"n": "0"}}, "f"),
        ({}, "31f"),
    ]
    for given, expected in runs:
        check.equal(noted(statistics(impl, check, package, **given)), expected, f"what is noted with {given}")


@feature("wsp-expressions", "wsp-statistics")
@clause("WSP-04.2-06", "WSP-01.1-02", "WSP-01.1-05")
def test_a_package_runs_as_it_was_compiled(impl, check):
    """Two packages of one name, run in turns by a new process, each by what it holds itself (AMB-WSP-22)."""

    def made(digit, cycles):
        return program(
            process("p", run(f"w{cycles}"), repeat(symbol("n"), note(digit))),
            kernels=work(cycles),
            symbols=[symbol_of("n", 2)],
        )

    first, second = compiled(impl, check, made(3, 5)), compiled(impl, check, made(8, 7))
    impl.restart()
    for package, digit, cycles in ((first, "3", 5), (second, "8", 7), (first, "3", 5)):
        for rounds in (1, 4):
            actual = statistics(impl, check, package, symbols={"n": str(rounds)})
            check.equal(
                (noted(actual), actual["total_cycles"]), (digit * rounds, cycles), f"{rounds} rounds of {digit}"
            )


@feature("wsp-expressions", "wsp-seeds", "wsp-slots", "wsp-statistics")
@clause("WSP-01.1-01", "WSP-01.1-02")
def test_every_statement_has_its_effect_in_the_package_alone(impl, check):
    """Kernels, tasks, keys, channels, conds, loads, loops: the run has the package and no more (AMB-WSP-22)."""
    source = program(
        process(
            "p", repeat(4, task("f", "t", op("add", slot("i"), 5), key=slot("i"), signals=["c"]), index="i"), wait()
        ),
        process("q", repeat(4, receive("c", "x"), load("y", "t", 2), cond(slot("y"), [note(slot("y"))]))),
        channels=[channel("c", 4, 1)],
        kernels=[filler("f", 3, 2)],
        tensors=[tensor("t", "i32", [0, 0, 0])],
        schedule=schedule("round_robin", 2, 3),
    )
    actual = under_seeds(impl, check, source)
    check.equal(noted(actual), "8888", "the elements, each loaded after the tasks that were in flight")
    check.equal(actual["assignments"], [0, 1, 0, 1], "the workers of the tasks")
    check.equal(actual["kernels"]["f"], {"runs": 4, "cycles": 36}, "the kernel")


@feature("wsp-capabilities", "wsp-expressions", "wsp-slots", "wsp-statistics")
@clause("WSP-04.2-07")
@pytest.mark.parametrize("policy", ["affinity", "hash"])
def test_a_key_reads_the_slot_of_its_task(impl, check, policy):
    """Keys come from a tensor, in the run: tasks have the workers of a program whose keys are constants."""

    def made(key):
        body = repeat(6, load("k", "t", slot("i")), task("w4", key=key), index="i")
        return program(
            process("p", body),
            kernels=work(4),
            tensors=[tensor("t", "u16", [4, 9, 4, 0, 9, 3])],
            schedule=schedule(policy, 5),
        )

    directives = check.returns(impl.wsp.capabilities(target="cpu_sim"))["directives"]
    if directives.get(f"dispatch.{policy}") != "enforced":
        compiles = impl.wsp.compile(program=made(slot("k")), target="cpu_sim")
        check.rejects(compiles, category="UNSUPPORTED_DIRECTIVE")
        return
    package = compiled(impl, check, made(op("add", slot("k"), 1)))
    for keys in ([4, 9, 4, 0, 9, 3], [3, 3, 3, 3, 3, 3], [1, 2, 3, 4, 5, 6]):
        data = struct.pack(f"<6{FORMATS['u16']}", *keys).hex()
        constant = process("p", *(task("w4", key=key + 1) for key in keys))
        stated = program(constant, kernels=work(4), schedule=schedule(policy, 5))
        expected = statistics(impl, check, stated)["assignments"]
        check.equal(len(expected), len(keys), "the tasks that were placed")
        check.equal(len(set(zip(keys, expected, strict=True))), len(set(keys)), f"the pairs of key and worker, {keys}")
        check.equal(len(set(expected)) > 1, len(set(keys)) > 1, "whether several workers have tasks")
        actual = statistics(impl, check, package, tensors={"t": data})
        check.equal(actual["assignments"], expected, f"the workers of tasks with keys {keys}")


@clause("WSP-04.2-05")
def test_nothing_but_a_load_brings_an_element_into_control(impl, check):
    """A cond, a count, a key or a token that names a tensor is refused."""
    named = tensor_argument("t")
    for statement in (
        {"op": "cond", "when": named, "then": []},
        {"op": "repeat", "count": named, "body": []},
        {"op": "task", "kernel": "w4", "arguments": [], "key": named},
        {"op": "send", "channel": "c", "value": named},
    ):
        source = program(
            process("p", statement), channels=[channel("c")], kernels=work(4), tensors=[tensor("t", "u8", [1])]
        )
        check.rejects(impl.wsp.compile(program=source, target="cpu_sim"), category="INVALID_PROGRAM")
