"""The options of a conformance run, for pytest and for the help of the command line."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tessera_conformance.reports.lines import EVIDENCE
from tessera_conformance.session import DEADLINE, START_DEADLINE
from tessera_conformance.transports.locate import COMPILERS, FORMS
from tessera_conformance.verdicts import LEVELS, WAYS

EXECUTORS = "dask:tcp://HOST:PORT or dask:tls://HOST:PORT, the address of a scheduler of dask.distributed"
UNIT_SECONDS = 4.0
_SEVERAL: Mapping[str, Any] = {"action": "append", "default": []}


def add_options(add: Callable[..., Any]) -> None:
    """Declare every option through `add`, which takes the arguments of `argparse.ArgumentParser.add_argument`."""
    add("--impl", default="reference", metavar="IMPL", help=FORMS)
    add("--compiler", metavar="COMPILER", help=COMPILERS)
    add("--profile", default="extended", choices=("core", "extended"), help="which clauses the claim covers")
    add("--level", choices=LEVELS, help="numerics level (default: the one IMPL claims)")
    ways = "ask for arithmetic in programs, or for single operations, of an implementation without a parser"
    add("--via", default="programs", choices=WAYS, help=ways)
    add("--deviations", metavar="FILE", type=Path, help="known deviations, a TOML file")
    add("--report-dir", metavar="DIR", type=Path, help="where the report goes (default: report)")
    add("--shard", metavar="k/N", help="run one of N parts, by a hash of the case id")
    deadline: dict[str, Any] = {"type": _seconds, "metavar": "SECONDS"}
    add("--deadline", default=DEADLINE, **deadline, help="for each call (default: 30)")
    add("--start-deadline", default=START_DEADLINE, **deadline, help="for session.open (default: 60)")
    kept = "what the report keeps of cases that pass: counts and digests, or all that was sent, answered and checked"
    add("--evidence", default="digests", choices=EVIDENCE, help=kept)
    ids = "cases by their ids, such as 'ir/matmul/*'; repeatable"
    add("--case", **_SEVERAL, dest="cases", metavar="PATTERN", help=ids)
    add("--clause", **_SEVERAL, dest="clauses", metavar="ID", help="cases that judge a clause, or a pattern of clauses")
    add("--feature", **_SEVERAL, dest="features", metavar="NAME", help="cases that need a feature")
    add("--failed", metavar="REPORT", type=Path, help="cases that failed in a report.jsonl, which is kept")
    resumed = "go on with a run that was cut off: what its report.jsonl has judged is kept"
    add("--resume", metavar="REPORT", type=Path, help=resumed)
    add("--seed", default=0, type=_seed, metavar="N", help="of the inputs that a run draws for some cases (default: 0)")
    add("--list", action="store_true", dest="list_cases", help="print the ids of the cases chosen, and run none")
    add("--keep-going", action="store_true", help="run on where the first ten cases have no answer at all")
    add_executor(add, UNIT_SECONDS)
    add("--reproduce", metavar="CASE", help="run one case and write a standalone script")
    add("--today", type=_day, help="the day by which deviations expire")


def add_executor(add: Callable[..., Any], least: float) -> None:
    """Declare the options of a run on a cluster; `least` is the default of the least seconds of a unit."""
    add("--executor", metavar="ADDRESS", help=f"spread the work over a cluster: {EXECUTORS}")
    help_of_units = f"the least that a worker of the cluster is given at a time, by estimate (default: {least:g})"
    add("--unit-seconds", default=least, type=_seconds, metavar="SECONDS", help=help_of_units)


def _day(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: expected a day such as 2027-01-31") from None


def _seed(text: str) -> int:
    if not (text.isdecimal() and len(text) <= 18):
        raise argparse.ArgumentTypeError(f"{text[:40]}: expected a whole number of at most 18 digits")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: expected a positive number of seconds")
    return seconds
