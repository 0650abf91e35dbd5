"""Dispatch: tasks on workers, by policies (PTO-WSP v10, 3.1)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    op,
    process,
    program,
    repeat,
    run,
    schedule,
    slot,
    symbol,
    symbol_of,
    task,
    work,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import compiled, ends_with_error, ran, statistics, under_seeds
from tessera_conformance.marks import clause, feature

pytestmark = feature("wsp-kernels", "wsp-packages", "wsp-statistics")

POLICIES = ("affinity", "hash")
"""The policies beside round_robin, of which an implementation has one at least."""
KEYS = [5, 5, 0, 1 << 63, 17, 5, (1 << 64) - 1, 17, 256, 0, 65536, 1, 2, 3]


def keyed(policy, workers, keys=KEYS, name="case"):
    """A program that issues a task for each key."""
    issues = [task("w3", key=key) for key in keys]
    return program(process("p", *issues), kernels=work(3), schedule=schedule(policy, workers), name=name)


def offered(impl, check):
    """Those of the policies by key that the target enforces."""
    directives = check.returns(impl.wsp.capabilities(target="cpu_sim"))["directives"]
    return [policy for policy in POLICIES if directives.get(f"dispatch.{policy}") == "enforced"]


@feature("wsp-capabilities", "wsp-seeds")
@clause("WSP-03.1-01")
@pytest.mark.parametrize("policy", ["round_robin", "affinity", "hash"])
def test_every_task_is_executed_once_on_one_worker(impl, check, policy):
    """Fourteen tasks on three workers: each has a worker, and the figures of workers and kernels agree with that."""
    made = keyed(policy, 3)
    if policy in POLICIES and policy not in offered(impl, check):
        check.rejects(impl.wsp.compile(program=made, target="cpu_sim"), category="UNSUPPORTED_DIRECTIVE")
        return
    actual = under_seeds(impl, check, made)
    assigned = actual["assignments"]
    check.equal(len(assigned), len(KEYS), "the tasks that have a worker")
    expected = [{"busy": 3 * assigned.count(index), "tasks": assigned.count(index)} for index in range(3)]
    check.equal(actual["workers"], expected, "what the workers did")
    check.equal(actual["kernels"]["w3"]["runs"], len(KEYS), "runs of the kernel")


@feature("wsp-seeds", "wsp-slots")
@clause("WSP-03.1-02")
@pytest.mark.parametrize("workers", [1, 2, 3, 5, 16])
def test_round_robin_gives_task_i_to_worker_i_modulo_n(impl, check, workers):
    """Tasks go to workers in the order of issue over two kernels and two processes, for any keys (AMB-WSP-05)."""
    source = program(
        process("p", task("w3", key=7), task("w4", key=7), task("w4", key=7), run("w9"), task("w3", key=7), task("w4")),
        process("q", run("w2"), repeat(6, task("w4", key=slot("i")), task("w3"), index="i")),
        kernels=work(2, 3, 4, 9),
        schedule=schedule("round_robin", workers),
    )
    actual = under_seeds(impl, check, source)
    check.equal(actual["assignments"], [index % workers for index in range(17)], "the worker of each task")
    check.equal(len(actual["workers"]), workers, "the workers")


@clause("WSP-03.1-02")
@pytest.mark.parametrize("workers", [3, 7])
def test_round_robin_counts_every_task(impl, check, workers):
    """The count exceeds a byte: there are 600 tasks (AMB-WSP-05)."""
    source = program(process("p", repeat(600, task("w3"))), kernels=work(3), schedule=schedule("round_robin", workers))
    assigned = statistics(impl, check, source)["assignments"]
    check.equal(assigned, [index % workers for index in range(600)], "the worker of each task")


@clause("WSP-03.1-01", "WSP-02.4-05")
@pytest.mark.parametrize("busy", range(5))
def test_every_worker_runs_one_task_at_a_time(impl, check, busy):
    """One of five workers has three tasks of five cycles, two while it is busy; the others have tasks of none."""
    tasks = [task("w5" if number == busy else "w0") for number in range(5)]
    source = program(
        process("p", repeat(3, *tasks, run("w1"))), kernels=work(0, 1, 5), schedule=schedule("round_robin", 5)
    )
    actual = statistics(impl, check, source)
    check.equal(actual["total_cycles"], 15, "the time of the run")
    check.equal(actual["workers"][busy], {"busy": 15, "tasks": 3}, "what the worker did")


@feature("wsp-capabilities", "wsp-seeds")
@clause("WSP-03.1-03")
def test_another_policy_places_tasks_by_their_keys(impl, check):
    """Tasks of one key share a worker, which round_robin does not do; every policy but it is held to that."""
    policies = offered(impl, check)
    check.true(bool(policies), "a policy beside round_robin is there", policies)
    for policy in policies:
        for workers in (2, 3, 7):
            assigned = under_seeds(impl, check, keyed(policy, workers))["assignments"]
            check.equal(len(assigned), len(KEYS), f"the tasks that {policy} placed")
            pairs = set(zip(KEYS, assigned, strict=True))
            check.equal(len(pairs), len(set(KEYS)), f"pairs of key and worker, {policy} over {workers}")
            check.true(len(set(assigned)) > 1, f"{policy} over {workers} uses several workers", assigned)
            circle = [index % workers for index in range(len(KEYS))]
            check.true(assigned != circle, f"{policy} over {workers} differs from round_robin", assigned)


@feature("wsp-capabilities")
@clause("WSP-03.1-03")
@pytest.mark.parametrize("policy", POLICIES)
def test_equal_keys_have_equal_workers_in_every_run_and_program(impl, check, policy):
    """A program of another name places its tasks alike, and a hash a key after other tasks, too (AMB-WSP-28)."""
    if policy not in offered(impl, check):
        check.rejects(impl.wsp.compile(program=keyed(policy, 3), target="cpu_sim"), category="UNSUPPORTED_DIRECTIVE")
        return
    first = statistics(impl, check, keyed(policy, 5))["assignments"]
    again = statistics(impl, check, keyed(policy, 5, name="other"))["assignments"]
    check.equal(again, first, "the workers of the keys in another program")
    if policy == "hash":
        later = statistics(impl, check, keyed(policy, 5, [9, 9, 9, *reversed(KEYS)], "other"))["assignments"]
        check.equal(later[3:], first[::-1], "the workers of the keys after other tasks")


@feature("wsp-capabilities")
@clause("WSP-03.1-03")
@pytest.mark.parametrize("policy", POLICIES)
def test_equal_keys_have_equal_workers_in_another_process(impl, check, policy):
    """One package runs before and after the implementation is started anew (AMB-WSP-28)."""
    if policy not in offered(impl, check):
        check.rejects(impl.wsp.compile(program=keyed(policy, 3), target="cpu_sim"), category="UNSUPPORTED_DIRECTIVE")
        return
    package = compiled(impl, check, keyed(policy, 5))
    first = statistics(impl, check, package)["assignments"]
    impl.restart()
    check.equal(statistics(impl, check, package)["assignments"], first, "the workers in another process")


@feature("wsp-capabilities", "wsp-expressions")
@clause("WSP-03.1-01")
def test_a_policy_of_the_user_places_by_its_expression(impl, check):
    """Over issue number, key and a symbol, which changes between runs; a worker that is not there is an error."""
    placed = op("mod", op("add", {"input": "task"}, op("mul", {"input": "key"}, symbol("s"))), 7)
    source = program(
        process("p", *(task("w3", key=number) for number in (4, 0, 9, 2))),
        kernels=work(3),
        symbols=[symbol_of("s", 1)],
        schedule=schedule("expression", 6, parameters={"worker": placed}),
    )
    directives = check.returns(impl.wsp.capabilities(target="cpu_sim"))["directives"]
    if directives.get("dispatch.expression") != "enforced":
        check.rejects(impl.wsp.compile(program=source, target="cpu_sim"), category="UNSUPPORTED_DIRECTIVE")
        return
    package = compiled(impl, check, source)
    check.equal(statistics(impl, check, package, symbols={"s": "0"})["assignments"], [0, 1, 2, 3], "with s = 0")
    check.equal(statistics(impl, check, package)["assignments"], [4, 1, 4, 5], "with the default of 1")
    ends_with_error(check, ran(impl, check, package, symbols={"s": "2"}), "WORKER_OUT_OF_RANGE", "p")
