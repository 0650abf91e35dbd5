"""Which cases execute which functions of a package: the cases that can tell a mutant of a function."""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from tessera_conformance.adapter import Adapter
from tessera_conformance.registry import Registry
from tessera_conformance.strength.matrix import DEADLINE, judge
from tessera_conformance.strength.mutants.sites import CodeKey, code_key
from tessera_conformance.strength.processes import isolated
from tessera_conformance.suite_run import SuiteRun
from tessera_conformance.transports.direct import DirectTransport

__all__ = ["Executions", "executions"]

CHUNK = 60
"""Cases that a process runs: each new process begins without what an implementation keeps between cases."""
SLOWED = 10
"""A traced case may take so many times the deadline."""
PATIENCE = 3600.0
"""Seconds for a chunk."""


@dataclass(frozen=True)
class Executions:
    """The control's run: what each case took, and the cases that execute each function, by place in the suite."""

    seconds: Mapping[int, float]
    cases: Mapping[CodeKey, Sequence[int]]


def executions(
    items: Sequence[pytest.Function], registry: Registry, control: Callable[[], Adapter], package: str, jobs: int
) -> Executions:
    """Run every case against the control, in processes of their own; cases that it does not pass are left out."""
    folder = sys.modules[package].__path__[0]

    def trace(first: int) -> tuple[dict[int, float], dict[CodeKey, list[int]]]:
        transport = DirectTransport(control, "control")
        run = SuiteRun(transport, registry, deadlines=(SLOWED * DEADLINE, SLOWED * DEADLINE))
        seconds: dict[int, float] = {}
        cases: dict[CodeKey, list[int]] = {}
        for place in range(first, min(first + CHUNK, len(items))):
            start = time.monotonic()
            with _Trace(folder) as seen:
                verdict = judge(run, items[place]).verdict
            if verdict == "pass":
                seconds[place] = time.monotonic() - start
                for code in seen:
                    cases.setdefault(code_key(code), []).append(place)
        return seconds, cases

    seconds: dict[int, float] = {}
    cases: dict[CodeKey, list[int]] = {}
    for _, found in isolated(jobs, trace, range(0, len(items), CHUNK), patience=PATIENCE):
        of_cases, of_functions = found or ({}, {})
        seconds |= of_cases
        for key, places in of_functions.items():
            cases.setdefault(key, []).extend(places)
    return Executions(seconds, cases)


class _Trace:
    """The code objects of files below a folder that are called meanwhile, in this thread."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._seen: dict[types.CodeType, None] = {}

    def __enter__(self) -> dict[types.CodeType, None]:
        seen, folder = self._seen, self._folder

        def profile(frame: types.FrameType, event: str, argument: object) -> None:
            if event == "call" and frame.f_code not in seen and frame.f_code.co_filename.startswith(folder):
                seen[frame.f_code] = None

        sys.setprofile(profile)
        return seen

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)
