"""A long run is shared out to processes where the implementation allows it and the user says nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tessera_conformance.commands import suite_process
from tessera_conformance.commands.suite_process import ALONE, LONG, processes
from tessera_conformance.registry.case_index import IndexedCase

FAKES = Path(__file__).parent / "fakes"


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run of the whole suite of two long cases on four processors, with xdist."""
    monkeypatch.syspath_prepend(FAKES)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(4)), raising=False)
    index = {f"ir/a/{name}": IndexedCase(f"ir/test_a.py::test_{name}", (), (), ()) for name in "bc"}
    monkeypatch.setattr(suite_process, "current_index", lambda: index)
    monkeypatch.setattr(suite_process, "seconds_of_case", lambda case: LONG / 2)
    option = dict.fromkeys(ALONE) | {"impl": "reference", "compiler": None, "shard": None, "dist": "no"}
    option |= {"deadline": 5.0, "start_deadline": 5.0, "maxfail": 0}
    return SimpleNamespace(
        option=SimpleNamespace(**option),
        pluginmanager=SimpleNamespace(hasplugin=lambda name: name == "xdist"),
        args_source=pytest.Config.ArgsSource.TESTPATHS,
        args=[],
    )


def test_the_reference_runs_on_every_processor(config: Any) -> None:
    assert processes(config) == 4


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("numprocesses", 0),
        ("numprocesses", 3),
        ("list_cases", True),
        ("maxfail", 1),
        ("cases", ["ir/*"]),
        ("keyword", "a"),
        ("reproduce", "ir/a/b"),
        ("shard", "1/2"),
        ("dist", "loadfile"),
        ("impl", "py:nowhere:make"),
        ("impl", "py:echo:Echo"),
    ],
)
def test_it_stays_in_one_process(config: Any, option: str, value: Any) -> None:
    """Where the user says so or asks for a part, where it is short, and where the Hello does not allow it."""
    setattr(config.option, option, value)
    assert processes(config) == 0


def test_a_hello_allows_it(config: Any) -> None:
    config.option.impl = "py:answers_in_parallel:Parallel"
    assert processes(config) == 4


def test_one_processor_is_one_process(config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0}, raising=False)
    assert processes(config) == 0


def test_a_short_place_is_one_process(config: Any, tmp_path: Path) -> None:
    config.args_source, config.args = pytest.Config.ArgsSource.ARGS, ["ir/test_sums.py"]
    config.invocation_params = SimpleNamespace(dir=tmp_path)
    assert processes(config) == 0
