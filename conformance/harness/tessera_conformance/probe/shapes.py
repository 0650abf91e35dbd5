"""The orders of every product and sum that the golden vectors ask for, as a file that declares them: `probe --write`.

The first element of each shape is probed in full, and all elements are replayed in its order. The first element that
has another order is probed too, and so on. An element without a fixed tree leaves its shape undeclared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import prod
from typing import Any

import numpy as np

from tessera_conformance.arithmetic import NodeArithmetic, Tree
from tessera_conformance.cases import vectors_directory
from tessera_conformance.probe.calls import MOST_TERMS, CannotProbe, Subject, box_for
from tessera_conformance.probe.pattern import pattern
from tessera_conformance.probe.run import alike_elements, probe
from tessera_conformance.session import Session
from tessera_conformance.vectors import load

MOST_ORDERS = 8
"""Different orders within one result."""
REDUCING = ("matmul", "sum")


@dataclass(frozen=True)
class ShapeOrder:
    """The order of some elements of one shape."""

    subject: Subject
    tree: Tree
    arithmetic: NodeArithmetic
    elements: str = ""

    @property
    def tree_text(self) -> str:
        """The tree by name, where it has one for any number of terms."""
        name = pattern(self.tree)
        return "fold" if self.tree.leaves == 2 else name if name in ("fold", "pairwise") else self.tree.to_text()

    @property
    def facts(self) -> Mapping[str, Any]:
        """Return the fields that the rows of one entry share, as they are written."""
        subject = self.subject
        return {
            "operation": subject.operation,
            "dtype": subject.dtype,
            **({"axis": subject.axis} if subject.operation == "sum" else {}),
            **({"out": subject.out} if subject.out and subject.out != subject.dtype else {}),
            **({"elements": self.elements} if self.elements else {}),
            "tree": self.tree_text,
            "arithmetic": {name: value for name, value in self.arithmetic.to_json().items() if value is not None},
        }


def subjects() -> Sequence[Subject]:
    """Every product and sum of floats that a golden vector asks for, of two terms or more, once."""
    chosen: dict[Subject, None] = {}
    for path in sorted((vectors_directory() / "ir").glob("*.jsonl")):
        for vector in load(f"ir/{path.stem}"):
            check = vector.provenance.check
            operation = check.function.removeprefix("oracle.")
            inputs = [vector.call.inputs[name] for name in check.operands]
            if operation not in REDUCING or not inputs[0].format.is_float or inputs[0].format.words > 1:
                continue
            shapes, dtype = [tensor.shape for tensor in inputs], inputs[0].dtype
            axis = int(check.arguments.get("axis", -1)) % len(shapes[0]) if operation == "sum" else 0
            extents = (*shapes[0][-2:], shapes[1][-1]) if operation == "matmul" else shapes[0]
            terms = extents[1] if operation == "matmul" else extents[axis]
            if min(extents) > 0 and 2 <= terms <= MOST_TERMS:
                out = check.arguments.get("out", dtype) if operation == "matmul" else None
                chosen[Subject("matmul" if operation == "matmul" else "sum", extents, dtype, axis, out=out)] = None
    return list(chosen)


def orders(session: Session, subject: Subject) -> Sequence[ShapeOrder]:
    """The orders of all elements of one shape.

    Raises:
        CannotProbe: the implementation does not answer, or some element has no fixed tree that can be replayed.
    """
    rows: list[ShapeOrder] = []
    count = prod(subject.result)
    open_ = np.ones(count, bool)
    element: tuple[int, ...] = ()
    while open_.any():
        if len(rows) == MOST_ORDERS:
            raise CannotProbe(f"{subject}: more than {MOST_ORDERS} orders in one result")
        finding = probe(session, replace(subject, element=element), in_full=True)
        if finding.arithmetic is None:
            raise CannotProbe(f"{subject}: {finding.evidence or 'no fixed tree'}")
        alike = alike_elements(box_for(session, finding.subject), finding.arithmetic)
        mine = np.ones(count, bool) if alike is None else alike & open_
        if not mine[finding.subject.flat_element]:
            raise CannotProbe(f"{subject}: the watched element does not replay among others")
        rows.append(
            ShapeOrder(subject, finding.arithmetic.tree, finding.arithmetic.model, "" if mine.all() else _runs(mine))
        )
        open_ &= ~mine
        if open_.any():
            element = tuple(
                int(coordinate) for coordinate in np.unravel_index(np.flatnonzero(open_)[0], subject.result)
            )
    return rows


def _runs(mask: Any) -> str:
    """The numbers of elements as runs: 0-3,8."""
    places = np.flatnonzero(mask).tolist()
    runs = [[place for _, place in run] for _, run in groupby(enumerate(places), lambda pair: pair[1] - pair[0])]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def as_toml(implementation: str, rows: Sequence[ShapeOrder]) -> str:
    """The file that declares the orders; shapes of one order share an entry."""
    lines = [f"# The orders of {implementation} on one machine, found by `tessera-conformance probe --write`.", ""]
    lines += ["format = 1", f"implementation = {json.dumps(implementation)}", ""]
    entries: dict[str, list[ShapeOrder]] = {}
    for row in rows:
        entries.setdefault(json.dumps(row.facts, sort_keys=True), []).append(row)
    last_title = ""
    for same in entries.values():
        subject = same[0].subject
        if (title := f"{subject.operation} of {subject.dtype}") != last_title:
            last_title = title
            lines += [f"# {title}, by the number of terms: {sentence}" for sentence in _conditions(rows, subject)]
        lines += ["[[order]]", *(f"{name} = {_value(value)}" for name, value in same[0].facts.items())]
        lines += [f"shapes = {json.dumps([row.subject.shapes for row in same])}", ""]
    return "\n".join(lines)


def _conditions(rows: Sequence[ShapeOrder], subject: Subject) -> Iterator[str]:
    """The orders of one operation and dtype by the number of terms: a library may switch between them."""
    own = [row for row in rows if (row.subject.operation, row.subject.dtype) == (subject.operation, subject.dtype)]
    named = sorted({(row.subject.terms, _short(pattern(row.tree))) for row in own if row.subject.terms > 2})
    by_terms = {terms: " or ".join(name for _, name in same) for terms, same in groupby(named, lambda pair: pair[0])}
    for name, run in groupby(by_terms.items(), lambda entry: entry[1]):
        counts = [terms for terms, _ in run]
        yield f"{name} for {counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{name} for {counts[0]}"


def _short(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:57]}..."


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {json.dumps(item)}" for name, item in value.items()) + " }"
    return json.dumps(value)
