"""Tasks in processes of their own: one that dies or does not end is no loss for the others."""

from __future__ import annotations

import os
import time

from tessera_conformance.strength.processes import isolated


def act(task: str) -> str:
    if task == "dies":
        os.abort()
    if task == "never ends":
        time.sleep(3600)
    return f"{task} {os.getpid()}"


def test_every_task_has_its_result_and_a_process() -> None:
    found = dict(isolated(2, act, ["a", "b", "c"], patience=60))
    words = [str(found[place]).split() for place in range(3)]
    assert [name for name, _ in words] == ["a", "b", "c"]
    assert len({number for _, number in words} | {str(os.getpid())}) == 4


def test_a_process_that_dies_or_does_not_end_has_no_result() -> None:
    found = dict(isolated(2, act, ["dies", "never ends", "a"], patience=3))
    assert (found[0], found[1]) == (None, None)
    assert str(found[2]).startswith("a ")
