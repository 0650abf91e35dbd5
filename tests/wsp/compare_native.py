"""Compare executor and native artifact for many random programs: `python -m tests.wsp.compare_native --count 200000`.

A program runs with one of `SETTINGS`, in turn by batch; the first differences are printed, and the exit code is 1 where
there are any. With tcc, where it is installed, this takes a tenth of the time.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .native import QUICK, Settings, differences, package_of
from .random_programs import program

__all__ = ["SETTINGS", "main"]

SETTINGS: tuple[Settings, ...] = (
    {},
    {"symbols": {"m": 2, "n": 7}, "resources": {"task_window": 2, "ready_queue": 1}},
    {"symbols": {"m": 255, "n": 1}, "resources": {"tensormap_pool": 2, "deplist_pool": 1, "heap_arena": 60}},
    {"symbols": {"m": 1, "n": 0}, "resources": {"channel.c0.capacity": 0, "scope.p0": 1, "task_window": 1}},
)
BATCH, SHOWN = 200, 5


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, required=True, help="how many programs")
    options = parser.parse_args()
    outcomes: Counter[str] = Counter()
    found = 0
    with TemporaryDirectory() as place:
        for first in range(options.first, options.first + options.count, BATCH):
            seeds = range(first, min(first + BATCH, options.first + options.count))
            packages = [package_of(program(seed)) for seed in seeds]
            chosen = [SETTINGS[first // BATCH % len(SETTINGS)]]
            path = Path(place) / "program"
            for number, settings, expected, native in differences(packages, path, QUICK, chosen, outcomes):
                found += 1
                if found <= SHOWN:
                    print(f"seed {seeds[number]}, {settings}", *_fields(expected, native), sep="\n  ", flush=True)
            if (first - options.first) % (20 * BATCH) == 0:
                print(f"{seeds[-1] + 1 - options.first} programs: {dict(outcomes)}, {found} differ", flush=True)
    print(f"{options.count} programs: {dict(outcomes)}, {found} differ")
    return 1 if found else 0


def _fields(expected: Mapping[str, Any], native: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The fields that differ, innermost."""
    for name in {**expected, **native}:
        a, b = expected.get(name), native.get(name)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            yield from _fields(a, b, f"{path}{name}.")
        elif a != b:
            yield f"{path}{name}: executor {a}, artifact {b}"


if __name__ == "__main__":
    sys.exit(main())
