"""All benchmarks: `python benchmarks/run.py [name ...]`. Exit code 1 where a limit is missed.

Figures of one machine mean little; the ratio to the peer, measured in turns in the same run, is what to compare.
"""

from __future__ import annotations

import sys

import attention
import clauses_check
import harness_overhead
import rpc_call

BENCHMARKS = {
    "attention": attention.measure,
    "rpc_call": rpc_call.measure,
    "clauses_check": clauses_check.measure,
    "harness_overhead": harness_overhead.measure,
}


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all of them."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    missed = False
    for name in names or BENCHMARKS:
        measurement = BENCHMARKS[name]()
        print(measurement.row(), flush=True)
        missed = missed or not measurement.met
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
