"""The figures of the two rooflines: rates of collectives and of products, from traces (collectives specification, 6).

What is judged is that traces tell bytes and times from which rates follow that the machine can have; the rates
themselves are kept for the plot of the report and never judged.
"""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from tessera_conformance.chapters.collectives.kit.exchanges import ALGORITHMS
from tessera_conformance.chapters.collectives.kit.machines import devices_of, machine
from tessera_conformance.chapters.collectives.kit.timelines import distinct
from tessera_conformance.chapters.runtime.kit.encoding import packed
from tessera_conformance.chapters.runtime.kit.mesh_session import opened
from tessera_conformance.chapters.runtime.kit.traces import number, slices, started, stopped
from tessera_conformance.marks import clause, feature

COUNTS = (257, 4_099, 65_537, 1_048_583, 16_777_259)
"""Elements of a buffer: primes, from a kibibyte to 64 mebibytes of fp32."""

EXTENTS = (8, 16, 31, 64, 127)
"""The extents of square products."""

SECOND = 10**12
"""In picoseconds."""


@feature("link-credits", "chunk-trace")
@clause("COLL-06-02")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_traces_of_collectives_give_rates_below_the_roof(impl, check, algorithm):
    """No rank sends more bytes than its only link carries from its first record to its last, whatever the size."""
    document = machine(nodes=1, per_node=4, transports=("nvlink",))
    bandwidth = document["links"][0]["bandwidth"]
    check.figure("communication", "roof", bytes_per_second=bandwidth)
    given = {"operation": "all_reduce", "algorithm": algorithm, "element_bytes": 4, "topology": json.dumps(document)}
    for count in COUNTS:
        actual = check.returns(impl.collectives.transfers(**given, count=count, devices=devices_of(1, 4), trace=True))
        records = distinct(slices(json.loads(actual["trace"])["traceEvents"], "send"))
        sent = defaultdict(list)
        for record in records:
            start = round(record["ts"] * 10**6)
            args = (int(number(check, record["args"], name)) for name in ("rank", "bytes"))
            sent[next(args)].append((next(args), start, start + round(record["dur"] * 10**6)))
        check.true(bool(sent), "the trace has records of what is sent", sorted(sent))
        for rank, record in sorted(sent.items()):
            volume = sum(size for size, _, _ in record)
            lasts = max(stop for _, _, stop in record) - min(start for _, start, _ in record)
            check.true(volume * SECOND <= bandwidth * lasts, f"rank {rank} sends below the roof", (volume, lasts))
        whole = [one for messages in sent.values() for one in messages]
        lasts = max(stop for _, _, stop in whole) - min(start for _, start, _ in whole)
        check.figure("communication", algorithm, size=4 * count, picoseconds=lasts)


@clause("COLL-06-02")
def test_traces_of_products_give_rates(impl, check, tmp_path):
    """A product of n x n has n**3 multiplications and as many additions; its slice takes time, and tells it.

    A block for each element.
    """
    session = opened(impl, check)
    declared = "\n".join(
        f"  kernel product{n}(A: tensor<{n}x{n}xfp32>, B: tensor<{n}x{n}xfp32>, C: tensor<{n}x{n}xfp32>)"
        " { C = op.matmul(A, B); }"
        for n in EXTENTS
    )
    module = session.load(f"module products {{\n{declared}\n}}\n")
    profiler = started(session)
    for n in EXTENTS:
        pointers = [session.upload(bytes(4 * n * n)) for _ in range(3)]
        kernel, arguments = (
            session.kernel_of(module, f"product{n}"),
            packed(*(("ptr", pointer) for pointer in pointers)),
        )
        session.launch(kernel, arguments, grid=[n, n, 1], block=[1, 1, 1])
        session.synchronize()
    events = stopped(session, profiler, tmp_path / "trace.json")
    for n in EXTENTS:
        actual = [part for part in slices(events) if part["name"] == f"product{n}"]
        check.equal(len(actual), 1, f"the slices of the product of {n} x {n}")
        start, stop = (number(check, actual[0]["args"], name) for name in ("start", "stop"))
        check.true(stop > start, "a product takes time", (start, stop))
        check.figure("compute", "product", size=2 * n**3, picoseconds=round((stop - start) * 1000))
