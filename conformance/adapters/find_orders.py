"""Find the orders in which engines add over ranks, and write them to `orders.json`.

    python -m conformance.adapters.find_orders --impl=rpc:"mpirun -n 8 python -m conformance.adapters.mpi_adapter"

The numbers of ranks and elements are those of the cases of `conformance/collectives`. What was known of this engine in
any version is replaced.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from conformance.adapters.orders import FILE, known

from tessera_conformance.probe import CannotProbe, Finding, Subject, probe
from tessera_conformance.session import Session
from tessera_conformance.transports.locate import locate

SHAPES = (
    *((ranks, 24) for ranks in (2, 3, 5, 6, 7, 8)),
    *((ranks, 48) for ranks in (2, 3, 5, 8)),
    (3, 6),
)
"""Ranks and elements."""
DTYPES = ("fp64", "fp32", "fp16", "bf16")
ENGINES = {"torch": "gloo"}
"""The engine of an implementation, where it goes by another name."""


def orders(session: Session, most_ranks: int) -> Iterator[dict[str, Any]]:
    """Yield one entry for each shape and dtype for which an order was recovered."""
    for ranks, elements in SHAPES:
        if ranks > most_ranks:
            continue
        for dtype in DTYPES:
            subject = Subject("all_reduce", (ranks, elements), dtype)
            try:
                finding = probe(session, subject, in_full=True)
            except CannotProbe as reason:
                print(f"  {subject}: {str(reason).splitlines()[0]}", file=sys.stderr)
                continue
            entry = _entry(finding, ranks, elements)
            print(f"  {subject}: {finding.pattern if entry else 'no order'}", file=sys.stderr)
            if entry:
                yield entry


def _entry(finding: Finding, ranks: int, elements: int) -> dict[str, Any] | None:
    """The entry of a sum that has one order and arithmetic for each element, on all ranks alike."""
    trees = [group.tree for group in finding.groups if group.tree is not None]
    if finding.arithmetic is None or len(trees) < len(finding.groups) or not finding.ranks_agree:
        return None
    if finding.seen is not None and finding.seen.start == "+0":
        trees = [tree.with_start(ranks) for tree in trees]
    name, _, version = finding.implementation.rpartition(" ")
    return {
        "engine": ENGINES.get(name, name),
        "version": version,
        "ranks": ranks,
        "elements": elements,
        "dtype": finding.subject.dtype,
        "arithmetic": finding.arithmetic.model.to_json(),
        "orders": [
            {"first": group.first, "last": group.last, "tree": tree.to_text()}
            for group, tree in zip(finding.groups, trees, strict=True)
        ],
    }


def main() -> int:
    """Find, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--impl", required=True)
    parser.add_argument("--ranks", type=int, default=8, help="the most that the engine has (default: 8)")
    arguments = parser.parse_args()
    session = Session(locate(arguments.impl), deadline=60.0)
    try:
        found = list(orders(session, arguments.ranks))
    finally:
        session.close()
    engines = {order["engine"] for order in found}
    whole = [order for order in known() if order["engine"] not in engines] + found
    whole.sort(key=lambda order: [order[key] for key in ("engine", "version", "ranks", "elements", "dtype")])
    lines = ",\n".join(json.dumps(order) for order in whole)
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
