"""All benchmarks: `python benchmarks/run.py [name ...]`. Exit code 1 where a limit is missed.

Figures of one machine mean little; the ratio to the peer, measured in turns in the same run, is what to compare.
A figure whose peer is not installed is not measured and says what to install; `pip install '.[kernels,peers]'`
brings all of them.
"""

from __future__ import annotations

import sys

import attention
import c_library
import cabi_call
import clauses_check
import collectives
import elementary
import exact_sum
import harness_overhead
import host_io
import interpreter
import levels
import many_machines
import many_ranks
import matmul_bf16
import matmul_fp32
import packing
import parse
import probe
import rpc_call
import runtime
import softmax
import startup
import transformer
import wsp

BENCHMARKS = {
    "matmul_fp32": matmul_fp32.measure,
    "matmul_bf16": matmul_bf16.measure,
    "softmax": softmax.measure,
    "elementary": elementary.measure,
    "exact_sum": exact_sum.measure,
    "probe": probe.measure,
    "attention": attention.measure,
    "transformer": transformer.measure,
    "interpreter": interpreter.measure,
    "levels": levels.measure,
    "parse": parse.measure,
    "packing": packing.measure,
    "collectives": collectives.measure,
    "runtime": runtime.measure,
    "host_io": host_io.measure,
    "wsp": wsp.measure,
    "rpc_call": rpc_call.measure,
    "c_library": c_library.measure,
    "cabi_call": cabi_call.measure,
    "clauses_check": clauses_check.measure,
    "startup": startup.measure,
    "many_machines": many_machines.measure,
    "many_ranks": many_ranks.measure,
    "harness_overhead": harness_overhead.measure,
    "harness_recomputation": harness_overhead.measure_recomputation,
}


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all of them."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    missed = False
    for name in names or BENCHMARKS:
        found = BENCHMARKS[name]()
        for outcome in found if isinstance(found, list) else [found]:
            print(outcome.row(), flush=True)
            missed = missed or not outcome.met
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
