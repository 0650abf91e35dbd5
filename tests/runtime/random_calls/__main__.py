"""Random calls for as long as one likes: `python tests/runtime/random_calls --minutes 10 --seed 1`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from random_calls.choose import Seeded  # noqa: E402, the path first
from random_calls.session import Session, Wrong  # noqa: E402
from random_calls.steps import STEPS, begin, finish, take  # noqa: E402

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
    calls = sum(count for name, count in tally.items() if not name.startswith("TESS_"))
    print(f"{number} sessions, {taken} steps, {calls} calls")
    for name, count in sorted(tally.items()):
        print(f"  {name} {count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
