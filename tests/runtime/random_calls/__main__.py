"""Random calls for as long as one likes: `python tests/runtime/random_calls --minutes 10 --seed 1`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from random_calls.model import Seeded
from random_calls.session import Session, Wrong
from random_calls.steps import STEPS, begin, finish, take

CHOICES = [step for step, weight in STEPS.items() for _ in range(weight)]
LENGTH = 80


def main() -> int:
    """Sessions of 80 steps until the time is over, or something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--session", type=int, help="take only this session of the seed")
    parser.add_argument("--steps", type=int, default=LENGTH)
    given = parser.parse_args()
    tally: Counter[str] = Counter()
    until, number, taken = time.monotonic() + 60 * given.minutes, given.session or 0, 0
    while time.monotonic() < until:
        with tempfile.TemporaryDirectory() as scratch:
            choose = Seeded((given.seed, number))
            session = Session(choose, Path(scratch) if choose.below(4) == 0 else None, tally)
            try:
                begin(session)
                for _ in range(given.steps):
                    take(session, CHOICES[choose.below(len(CHOICES))])
                    taken += 1
                finish(session)
            except Wrong as wrong:
                print(f"seed {given.seed}, session {number}: {wrong}")
                return 1
            except Exception:
                print(f"seed {given.seed}, session {number}:\n  " + "\n  ".join(session.history[-400:]))
                raise
        number += 1
        if given.session is not None:
            break
    tell(tally, number, taken)
    return 0


def tell(tally: Counter[str], sessions: int, steps: int) -> None:
    """Print the statuses reached, and the calls and successes of each function."""
    functions = sorted(name for name in tally if name.startswith("tess") and " " not in name)
    print(f"{sessions} sessions, {steps} steps, {sum(tally[name] for name in functions)} calls")
    for name in sorted(name for name in tally if name.startswith("TESS_")):
        print(f"  {name} {tally[name]}")
    for name in functions:
        print(f"  {name} {tally[name]}, of which {tally[f'{name} succeeds']} succeed")


if __name__ == "__main__":
    sys.exit(main())
