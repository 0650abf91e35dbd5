"""Dispatch and the task window, by workers and times of tasks (PTO-WSP v10, 3.1 and 3.2), through `wsp.execute`."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.networks import (
    channels,
    completed,
    completed_runs,
    consume,
    deadlocked,
    ended,
    judge_reports,
    network,
    offered_policies,
    process,
    run,
    send,
    task,
    work,
    workers_of_tasks,
)
from tessera_conformance.marks import clause, feature

WORKERS = pytest.mark.parametrize("workers", [1, 2, 3, 5, 16])
WINDOWS = pytest.mark.parametrize("window", [1, 2, 3, 8])
KEYS = [5, 5, 5, 0, 17, 5, 1 << 31, 17, 256, 0, 65536, 1, 2, 3]


def tasks(count, workers, window=None, policy="round_robin", kernel="w5"):
    """A process that issues tasks of one kernel."""
    return network(
        process("p", *[task(kernel)] * count), kernels=work(5, 10), policy=policy, workers=workers, window=window
    )


@clause("WSP-03.1-01")
@WORKERS
@pytest.mark.parametrize("count", [1, 7, 20])
def test_every_task_is_executed_once_on_one_worker(impl, check, workers, count):
    """Each task has a worker, one of those that there are."""
    ending = completed(impl, check, tasks(count, workers))
    check.equal([task["kernel"] for task in ending["tasks"]], ["w5"] * count, "the tasks that were executed")
    strange = [worker for worker in workers_of_tasks(ending) if not 0 <= worker < workers]
    check.equal(strange, [], "the workers that there are not")
    judge_reports(check, tasks(count, workers), ending)


@clause("WSP-03.1-02")
@WORKERS
@pytest.mark.parametrize("count", [1, 4, 17])
def test_round_robin_gives_task_i_to_worker_i_modulo_n(impl, check, workers, count):
    """Tasks of one kernel and one process, in the order of issue."""
    ending = completed(impl, check, tasks(count, workers))
    check.equal(workers_of_tasks(ending), [place % workers for place in range(count)], "the worker of each task")


@clause("WSP-03.1-02")
@WORKERS
def test_round_robin_counts_the_tasks_of_all_kernels(impl, check, workers):
    """Two kernels in turn, pairs of one kernel, and kernels of the process between (AMB-WSP-05)."""
    issued = ["w3", "w4", "w4", "w4", "w3", "w3", "w4", "w3", "w3", "w3"]
    program = network(
        process("p", *(step for kernel in issued for step in (task(kernel), run("w2")))),
        kernels=work(2, 3, 4),
        policy="round_robin",
        workers=workers,
    )
    ending = completed(impl, check, program)
    actual = workers_of_tasks(ending)
    of_each = [issued[:place].count(kernel) % workers for place, kernel in enumerate(issued)]
    expected = [place % workers for place in range(len(issued))]
    check.reading("AMB-WSP-05", "per-kernel counters", actual == of_each != expected)
    check.equal(actual, expected, "the worker of each task")


@clause("WSP-03.1-03")
@pytest.mark.parametrize("workers", [2, 3, 7])
def test_another_policy_places_tasks_otherwise(impl, check, workers):
    """One policy beside round_robin is there: `affinity`, `hash`, or one that the implementation calls `other`."""
    program = network(
        process("p", task("w50", 5), *(task("w1", key) for key in KEYS)),
        kernels=work(1, 50),
        policy="round_robin",
        workers=workers,
    )
    endings = offered_policies(impl, check, program)
    check.true(bool(endings), "a policy beside round_robin is there", sorted(endings))
    circle = [place % workers for place in range(len(KEYS) + 1)]
    for policy, ending in endings.items():
        check.equal(ending["outcome"], "completed", f"the outcome under {policy}")
        placed = workers_of_tasks(ending)
        check.equal(len(placed), len(KEYS) + 1, f"the tasks that {policy} placed")
        check.true(placed != circle, f"{policy} places otherwise than round_robin", placed)


@clause("WSP-03.1-03")
@pytest.mark.parametrize("workers", [2, 5])
def test_policies_by_key_place_equal_keys_on_equal_workers(impl, check, workers):
    """In this program, and a hash also in one with other tasks before (AMB-WSP-28, AMB-WSP-49).

    Affinity may choose the worker of a key by what came before it.
    """

    def keyed(keys):
        return network(
            process("p", *(task("w1", key) for key in keys)), kernels=work(1), policy="round_robin", workers=workers
        )

    first, second = (offered_policies(impl, check, keyed(keys)) for keys in (KEYS, [9, 9, 9, *KEYS]))
    check.equal(sorted(first), sorted(second), "the policies")
    for policy in sorted(set(first) - {"other"}):
        placed = workers_of_tasks(first[policy])
        check.equal(len(placed), len(KEYS), f"the tasks that {policy} placed")
        pairs = set(zip(KEYS, placed, strict=True))
        check.equal(len(pairs), len(set(KEYS)), f"the pairs of key and worker under {policy}")
        after = workers_of_tasks(second[policy])[3:]
        check.equal(len(set(zip(KEYS, after, strict=True))), len(set(KEYS)), f"the pairs afterwards under {policy}")
        if policy == "hash":
            check.equal(after, placed, "the workers in the other program under hash")


@clause("WSP-03.2-02", "WSP-03.2-06")
@WINDOWS
def test_a_window_in_tasks_that_stalls_is_accepted(impl, check, window):
    """`TaskWindow(n, unit="tasks", mode=STALL)`: all tasks are executed."""
    ending = completed(impl, check, tasks(9, 4, window))
    check.equal(len(ending["tasks"]), 9, "the tasks that were executed")


@clause("WSP-03.2-01", "WSP-03.2-03", "WSP-03.4-02", "WSP-03.4-07", "WSP-07.1-06")
@pytest.mark.parametrize("workers", [1, 2, 4, 9])
@pytest.mark.parametrize("count", [2, 9])
def test_a_window_of_one_makes_tasks_follow_one_another(impl, check, workers, count):
    """On any number of workers the time is the sum of the kernels, by every reading of it (AMB-WSP-23)."""
    program = tasks(count, workers, 1, kernel="w10")
    for ending in completed_runs(impl, check, program):
        check.equal(ending["total_cycles"], sum(task["cycles"] for task in ending["tasks"]), "the time of the run")
        judge_reports(check, program, ending)


@clause("WSP-03.2-03", "WSP-03.4.1-02")
@WINDOWS
@pytest.mark.parametrize("workers", [1, 4])
def test_an_issue_that_stalled_goes_on(impl, check, window, workers):
    """No task is lost, doubled or out of order, however often the window is full."""
    issued = ["w5", "w10", "w1"] * 8
    program = network(
        process("p", *map(task, issued)), kernels=work(1, 5, 10), policy="round_robin", workers=workers, window=window
    )
    for ending in completed_runs(impl, check, program, 5):
        check.equal([task["kernel"] for task in ending["tasks"]], issued, "the tasks in order of issue")


@clause("WSP-03.2-01", "WSP-03.3-04", "WSP-03.3-05", "WSP-03.4-07")
@WINDOWS
@pytest.mark.parametrize("workers", [1, 4])
def test_never_more_tasks_are_in_flight_than_the_window_has(impl, check, window, workers):
    """A deadlock report has the most that were in flight, of ten tasks that a process issued before it waited."""
    program = network(
        process(
            "p",
            *[task("w10")] * 10,
            consume("c", send("d")),
        ),
        process("q", consume("d", send("c"))),
        channels=channels("c", "d"),
        kernels=work(10),
        policy="round_robin",
        workers=workers,
        window=window,
    )
    for _ in range(5):
        stated = deadlocked(impl, check, program)["window"]
        check.equal(stated["size"], window, "the size of the window")
        check.true(1 <= stated["high_water"] <= window, f"the most in flight is from 1 to {window}", stated)
        check.true(stated["used"] <= stated["high_water"], "no more are in flight than were at most", stated)


@feature("wsp-task-channels")
@clause("WSP-03.3-01", "WSP-03.2-01", "WSP-03.2-03", "WSP-07.1-07", "WSP-07.1-08")
@pytest.mark.parametrize("window", [1, 2, 5])
def test_a_window_that_is_full_of_waiting_tasks_is_a_deadlock(impl, check, window):
    """Tasks wait for tokens that their issuer sends after the last of them; a window with one more slot is enough."""

    def waiting(size):
        return network(
            process("p", *[task("w7", waits=["go"])] * (window + 1), *[send("go", 1)] * (window + 1)),
            channels=channels("go"),
            kernels=work(7),
            policy="round_robin",
            workers=2,
            window=size,
        )

    report = deadlocked(impl, check, waiting(window))
    check.equal(report["window"], {"size": window, "used": window, "high_water": window}, "the window")
    why = {(waiter["process"], waiter["for"]) for waiter in report["waiting"]}
    check.equal(sorted(why - {("p", "go")}), [("p", "task_window")], "who waits, beside the tasks that wait for tokens")
    check.equal(ended(impl, check, waiting(window + 1))["outcome"], "completed", "the outcome with one more slot")
