"""Tokens to their experts and when they travel: `python examples/collectives/moe.py`.

Tokens are packed by expert, cast to bf16 and exchanged bucket by bucket; while the experts of one bucket compute,
others travel (collectives specification, 7.2).
"""

import numpy as np

from tessera_reference.collectives.links import topology_of
from tessera_reference.collectives.queues import dispatch, in_sequence, moe, simulate
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

EXPERTS = [[5, 0, 2, 0], [7, 7, 1, 4], [3, 6, 6, 2], [0, 1, 5, 3]]
"""The expert of each of four tokens on four ranks; rank r has experts 2r and 2r + 1."""


def main() -> None:
    """Print which tokens every expert gets, and how long the exchange of larger buckets takes."""
    ranks = len(EXPERTS)
    values = np.arange(8, dtype=np.float32).reshape(4, 2)
    tokens = [Array(dtype("fp32"), values) for _ in range(ranks)]
    for number, bucket in enumerate(dispatch(tokens, EXPERTS, 8, dtype("bf16"))):
        print(f"bucket {number}, blocks of {bucket.rows} tokens")
        for rank, expert in enumerate(bucket.experts):
            came = ", ".join(f"{count} from {source}" for source, count in enumerate(bucket.counts[rank]) if count)
            print(f"  expert {expert} on rank {rank}: {came or 'none'}")
    machine, units = topology_of("eight-sm90"), moe(8, 64 << 20, 100_000_000, range(8))
    for title, given in (("bucket beside bucket", units), ("one after another", in_sequence(units))):
        print(f"eight buckets, {title}: {simulate(given, machine, max_inflight=8).duration / 1e6:.1f} us")


if __name__ == "__main__":
    main()
