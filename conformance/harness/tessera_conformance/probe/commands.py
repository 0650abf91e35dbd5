"""`tessera-conformance probe`: one sum, the shapes of the golden vectors, or all-reduce algorithms; its output."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from itertools import groupby
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tessera_conformance.arithmetic.nodes import NodeArithmetic
from tessera_conformance.cases import vectors_directory
from tessera_conformance.oracle.trees import Tree, TreeError
from tessera_conformance.probe.calls import (
    DTYPES,
    MOST_TERMS,
    OPERATIONS,
    AllReduceBox,
    CannotProbe,
    Subject,
    box_for,
    words_of,
)
from tessera_conformance.probe.node_arithmetic import MOST_RANKS, groups_of
from tessera_conformance.probe.reveal import abbreviated, pattern
from tessera_conformance.probe.run import Finding, alike_elements, probe
from tessera_conformance.protocol import Hello, Returned, Unsupported, describe
from tessera_conformance.reports.publish import write_text, write_toml
from tessera_conformance.reports.summary import table
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.terminal import reporting_errors
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import FORMS, locate
from tessera_conformance.vectors import load

# A tree as SVG: leaves in a row, nodes above their children by depth, large subtrees as triangles.
#
# The drawing scales with the page, has its own colours for light and dark, and needs no other file.


MOST_DRAWN = 72
"""Leaves and triangles in one drawing."""
COLUMN, ROW, MARGIN, TITLE = 22.0, 26.0, 18.0, 44.0
TALLEST = 900.0

STYLE = (
    "text{font:11px ui-monospace,monospace;fill:#222}.t{font-size:13px}line{stroke:#667;stroke-width:1.2}"
    "circle{fill:#3566a8}.n{fill:#b3541e}polygon{fill:#3566a833;stroke:#3566a8}rect{fill:#fff}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}line{stroke:#99a}rect{fill:#16181c}circle{fill:#7fb0f0}"
    ".n{fill:#f0a060}polygon{fill:#7fb0f033;stroke:#7fb0f0}}"
)


@dataclass(frozen=True)
class _Part:
    """A subtree to draw: its children, its leaves and its height."""

    children: tuple[_Part, ...]
    leaf: str
    leaves: int
    first: int
    last: int
    height: int


def drawing(tree: Tree, title: str) -> str:
    """Return the whole SVG document."""
    canvas = _Canvas(_part(tree))
    wide, tall = max(2 * MARGIN + canvas.width, 8.0 * len(title) + 2 * MARGIN), canvas.base + 3 * MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {tall:.0f}" width="{wide:.0f}" '
            f'height="{tall:.0f}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            f'<rect width="{wide:.0f}" height="{tall:.0f}"/>',
            f'<text class="t" x="{MARGIN:.0f}" y="24">{escape(title)}</text>',
            *canvas.shapes,
            "</svg>",
            "",
        ]
    )


def _part(tree: Tree) -> _Part:
    def leaf(step: int) -> _Part:
        number = max(step, 0)
        return _Part((), "c" if step < 0 else str(step), 1, number, number, 0)

    def node(children: list[_Part]) -> _Part:
        leaves = sum(child.leaves for child in children)
        first, last = min(child.first for child in children), max(child.last for child in children)
        return _Part(tuple(children), "", leaves, first, last, 1 + max(child.height for child in children))

    return tree.folded(leaf, node)


def _opened(root: _Part) -> set[int]:
    """Return the nodes that are drawn with their children: the largest first, until the drawing is full."""
    count, opened, waiting = 1, set[int](), [root]
    while waiting:
        part = max(waiting, key=lambda candidate: candidate.leaves)
        waiting.remove(part)
        if part.children and count + len(part.children) - 1 <= MOST_DRAWN:
            count += len(part.children) - 1
            opened.add(id(part))
            waiting += part.children
    return opened


class _Canvas:
    """The shapes of a tree, children before their parents, from left to right."""

    def __init__(self, root: _Part) -> None:
        self.shapes: list[str] = []
        self._opened = _opened(root)
        rows = self._rows(root)
        self._row = min(ROW, TALLEST / max(rows, 1))
        self.base = TITLE + rows * self._row
        """The height of the leaves."""
        self._column = max(COLUMN, 7.0 * len(str(root.last)) + 6)
        self.width = 0.0
        self._draw(root)

    def _rows(self, part: _Part) -> int:
        """Return the height of a part in rows: a leaf has 0, a triangle 1."""
        if id(part) in self._opened:
            return 1 + max(map(self._rows, part.children))
        return 1 if part.children else 0

    def _draw(self, part: _Part) -> tuple[float, float]:
        """Draw a part with everything below it; return its position."""
        y = self.base - self._rows(part) * self._row
        if id(part) in self._opened:
            inside = [self._draw(child) for child in part.children]
            x = sum(place for place, _ in inside) / len(inside)
            lines = (f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{left:.1f}" y2="{below:.1f}"/>' for left, below in inside)
            self.shapes += [*lines, _node(x, y, part)]
            return x, y
        width = self._column * (2.6 if part.children else 1)
        x = MARGIN + self.width + width / 2
        self.width += width
        self.shapes += self._triangle(x, y, part) if part.children else [_label(x, y, part.leaf)]
        return x, y

    def _triangle(self, x: float, y: float, part: _Part) -> list[str]:
        corners = f"{x:.1f},{y:.1f} {x - COLUMN * 0.9:.1f},{self.base:.1f} {x + COLUMN * 0.9:.1f},{self.base:.1f}"
        whole = part.last - part.first + 1 == part.leaves
        return [
            f'<polygon points="{corners}"><title>{part.leaves} leaves, depth {part.height}</title></polygon>',
            _label(x, self.base, f"{part.first}-{part.last}" if whole else f"{part.leaves} leaves"),
        ]


def _node(x: float, y: float, part: _Part) -> str:
    fused = len(part.children) > 2
    label = f"{len(part.children)} terms at once, {part.leaves} leaves" if fused else f"{part.leaves} leaves"
    mark = ' class="n"' if fused else ""
    return f'<circle{mark} cx="{x:.1f}" cy="{y:.1f}" r="{4.5 if fused else 3}"><title>{label}</title></circle>'


def _label(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y + 14:.1f}" text-anchor="middle">{text}</text>'


LONGEST_WITNESS = 400


def as_text(finding: Finding) -> str:
    """Return the findings of a probe, line by line."""
    subject = finding.subject
    element = f", element {list(subject.watched)}" if subject.watched else ""
    lines = [f"{finding.implementation}: {subject} -> {subject.result_dtype}{element}"]
    lines += [f"  {name:<12}{value}" for name, value in _facts(finding)]
    return "\n".join(lines) + "\n"


def as_markdown(finding: Finding, drawing: str | None) -> str:
    """Return a section about one finding; `drawing` is the name of its SVG file."""
    lines = [f"### {finding.subject}", ""]
    lines += [f"- **{name}**: {_code(name, value)}" for name, value in _facts(finding) if name != "time"]
    if drawing is not None:
        lines += ["", f"![the order of {finding.subject}]({drawing})"]
    return "\n".join([*lines, ""])


def as_json(finding: Finding) -> str:
    """Return the machine-readable finding."""
    return json.dumps(finding.to_json(), indent=1) + "\n"


def model_sentence(model: NodeArithmetic, products: bool) -> str:
    """Return a node arithmetic in words."""
    parts = [f"{model.accumulator} accumulator", f"rounding {model.rounding.replace('_', ' ')}"]
    parts += [f"products {model.product}"] if products else []
    parts += [f"fused nodes keep {model.alignment_bits} bits"] if model.alignment_bits is not None else []
    return ", ".join([*parts, f"subnormals {model.subnormals}"])


def _facts(finding: Finding) -> Iterator[tuple[str, str]]:
    if finding.kind != "no fixed tree" or finding.tree is not None:
        yield "order", finding.pattern if finding.evidence is None else f"the masks show {finding.pattern}"
    if finding.tree is not None:
        yield "tree", abbreviated(finding.tree)
    products = finding.subject.operation == "matmul"
    if finding.arithmetic is not None:
        yield "arithmetic", model_sentence(finding.arithmetic.model, products)
        if finding.arithmetic.alike:
            others = "; ".join(_apart(finding.arithmetic.model, other) for other in finding.arithmetic.alike[:4])
            yield "or", f"{others} (no tried input distinguishes these)"
    if finding.seen is not None and finding.seen.start is not None:
        begins = {"+0": "a sum of negative zeros is +0", "none": "a sum of negative zeros is -0"}
        yield "start", begins[finding.seen.start]
    if finding.seen is not None and finding.seen.subnormals == "mixed":
        yield "subnormals", "some are flushed and some are not"
    if finding.others is not None:
        yield "elsewhere", finding.others.sentence()
    if finding.evidence is not None:
        yield "no tree", f"{finding.evidence}{_witness(finding.evidence.witness)}"
    for group in finding.groups if len(finding.groups) > 1 else ():
        yield "chunk", group.sentence()
    if not finding.ranks_agree:
        yield "ranks", "the ranks got different bits"
    yield from _judged(finding)
    yield "calls", str(finding.calls)
    yield "time", f"{finding.seconds:.3f} s"


def _judged(finding: Finding) -> Iterator[tuple[str, str]]:
    if finding.declared is None:
        yield "verdict", "nothing declared"
        return
    declared = finding.declared
    if finding.verdict == "agrees":
        blind = finding.kind == "exact sum" and finding.tree != declared.tree.without_start().canonical()
        remark = "; no input distinguishes the orders" if blind else ""
        yield "verdict", f"agrees with the declaration ({declared.source}){remark}"
        return
    yield "declared", f"{abbreviated(declared.tree)} ({declared.source})"
    for departure in finding.departures:
        yield "differs", f"{departure.aspect}: {departure.sentence}{_witness(departure.witness)}"
    yield "verdict", "differs from the declaration"


def _apart(model: NodeArithmetic, other: NodeArithmetic) -> str:
    mine, others = model.to_json(), other.to_json()
    return ", ".join(f"{key.replace('_', ' ')} {others[key]}" for key in mine if mine[key] != others[key])


def _witness(witness: Mapping[str, Any]) -> str:
    shown = {key: value for key, value in witness.items() if key in ("replayed", "found", "declared", "first", "again")}
    inputs = witness.get("inputs")
    parts = [f"{key} {value}" for key, value in shown.items()]
    if isinstance(inputs, Mapping):
        parts += [f"{name} {_cut(' '.join(words))}" for name, words in inputs.items()]
    return f" [{'; '.join(parts)}]" if parts else ""


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_WITNESS else f"{text[:LONGEST_WITNESS]} ..."


def _code(name: str, value: str) -> str:
    return f"`{value}`" if name == "tree" else value


# The orders of every product and sum of the golden vectors, as a file that declares them: `probe --write`.
#
# The first element of each shape is probed in full, and all elements are replayed in its order. The first element with
# another order is probed too, and so on. An element without a fixed tree leaves its shape undeclared.


MOST_ORDERS = 8
"""The most different orders within one result."""
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
        """The tree by name, if it has one for any number of terms."""
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
    """Return every product and sum of two or more floats in the golden vectors, once each."""
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
    """Return the orders of all elements of one shape.

    Raises `CannotProbe`: the implementation does not answer, or some element has no fixed tree that can be replayed.
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
    """Return the numbers of elements as runs: 0-3,8."""
    places = np.flatnonzero(mask).tolist()
    runs = [[place for _, place in run] for _, run in groupby(enumerate(places), lambda pair: pair[1] - pair[0])]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def as_toml(implementation: str, rows: Sequence[ShapeOrder]) -> str:
    """Return the file that declares the orders; shapes of one order share an entry."""
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
    """Yield the orders of one operation and dtype by the number of terms: a library may switch between them."""
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


# The orders in which each algorithm of an all-reduce combines the ranks' inputs: as declared, and as probed.
#
# At the level deterministic an algorithm has an order of its own for each share (AMB-RT-26), which `numerics.declared`
# returns for the attributes `algorithm` and `per_node`. At strict every algorithm has the declared order of the
# operation. Every pair of ranks is masked once, which measures the pair in all elements.


ALGORITHMS = ("ring", "tree", "halving_doubling", "hierarchical", "direct")
LEVELS = ("strict", "deterministic")
RANKS = (1, 2, 6, 7, 8)
"""One, powers of two, a prime, and a number that is neither."""

ALONE = "one term"


@dataclass(frozen=True)
class Row:
    """Elements first..last, both included, of an all-reduce by one algorithm: the declared and the probed order.

    `declared` is None without a declaration; `probed` is None if the elements have no tree. A single rank has a tree of
    one leaf, and `probed` is None if its result is not its own input.
    """

    algorithm: str
    level: str
    ranks: int
    per_node: int | None
    first: int
    last: int
    declared: Tree | None
    probed: Tree | None

    @property
    def verdict(self) -> str:
        """Return the verdict on the declared order."""
        if self.declared is None:
            return "nothing declared"
        return "agrees" if self.probed == self.declared else "differs"

    def to_json(self) -> dict[str, Any]:
        """Return the row for the machine-readable table."""
        trees = {name: tree and tree.to_text() for name, tree in (("declared", self.declared), ("probed", self.probed))}
        return {**vars(self), **trees, "verdict": self.verdict}


class _AlgorithmBox(AllReduceBox):
    """The sum over ranks by one algorithm, through `collectives.run`."""

    method = "collectives.run"

    def __init__(self, session: Session, subject: Subject, level: str, request: Mapping[str, Any]) -> None:
        super().__init__(session, subject, level)
        self.asked = request
        self.options = {"operation": "all_reduce", **request}


def probe_algorithms(session: Session, dtype: str = "fp32", ranks: Sequence[int] = RANKS) -> list[Row]:
    """Return the rows of every algorithm at both levels over `ranks` ranks, of two elements a share and one more.

    `hierarchical` has as many ranks on a node as the least prime that divides their number, if it is not that number.

    Raises `CannotProbe`: the ranks or the dtype cannot be probed, an answer is missing, or `collectives.run` is
    unsupported.
    """
    if beyond := [count for count in ranks if not 1 <= count <= MOST_RANKS]:
        raise CannotProbe(f"{beyond[0]} ranks: expected 1 to {MOST_RANKS}")
    return [
        row
        for count in ranks
        for algorithm in ALGORITHMS
        for level in LEVELS
        for row in _rows(session, dtype, count, algorithm, level)
    ]


def _rows(session: Session, dtype: str, ranks: int, algorithm: str, level: str) -> Iterator[Row]:
    """Yield the runs of elements that share both orders."""
    per_node = _least_factor(ranks) if algorithm == "hierarchical" else None
    request = {"algorithm": algorithm, **({"per_node": per_node} if per_node else {})}
    elements = 2 * ranks + 1
    probed = _probed(session, dtype, ranks, level, request)
    declared = [_declared(session, dtype, ranks, level, request, element) for element in range(elements)]
    first = 0
    for last in range(elements):
        if last + 1 == elements or (declared[last + 1], probed[last + 1]) != (declared[last], probed[last]):
            yield Row(algorithm, level, ranks, per_node, first, last, declared[last], probed[last])
            first = last + 1


def _probed(session: Session, dtype: str, ranks: int, level: str, request: Mapping[str, Any]) -> list[Tree | None]:
    """Return the tree of each element; None for one without a tree."""
    elements = 2 * ranks + 1
    if ranks == 1:
        return [_alone(session, dtype, level, request)] * elements
    box = _AlgorithmBox(session, Subject("all_reduce", (ranks, elements), dtype), level, request)
    trees: list[Tree | None] = [None] * elements
    for group in groups_of(box):
        for element in range(group.first, group.last + 1):
            trees[element] = group.tree.canonical() if group.tree and box.ranks_agree else None
    return trees


def _alone(session: Session, dtype: str, level: str, request: Mapping[str, Any]) -> Tree | None:
    """Return a tree of one leaf if a single rank gets its own input back, bit by bit: small whole numbers."""
    words = words_of([Fraction(1), Fraction(-2), Fraction(3)], dtype)
    contribution = Tensor.from_words(dtype, (3,), words.tolist())
    params = {"operation": "all_reduce", "inputs": [contribution], "op": "sum", "level": level, **request}
    observation = session.call("collectives.run", params)
    if not isinstance(observation, Returned):
        raise CannotProbe(f"collectives.run of one rank: {describe(observation)}")
    outputs = observation.value.get("outputs")
    return Tree.explicit([0]) if outputs == [contribution] else None


def _declared(
    session: Session, dtype: str, ranks: int, level: str, request: Mapping[str, Any], element: int
) -> Tree | None:
    """Return the declared tree of an element; None where there is none."""
    params: dict[str, Any] = {"operation": "all_reduce", "dtype": dtype, "shapes": [[2 * ranks + 1]] * ranks}
    params |= {"element": element, **({"attributes": dict(request)} if level == "deterministic" else {})}
    observation = session.call("numerics.declared", params)
    if isinstance(observation, Unsupported):
        return None
    if not isinstance(observation, Returned):
        raise CannotProbe(f"numerics.declared of all_reduce: {describe(observation)}")
    try:
        return Tree.from_json(observation.value.get("tree")).over(ranks).canonical()
    except TreeError as error:
        raise CannotProbe(f"numerics.declared of all_reduce by {request['algorithm']}: {error}") from None


def _least_factor(ranks: int) -> int | None:
    """Return the least factor of a number other than 1 and itself."""
    return next((factor for factor in range(2, ranks) if ranks % factor == 0), None)


def as_table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    return table(("ranks", "algorithm", "level", "elements", "declared", "probed", "verdict"), map(_cells, rows)) + "\n"


def _cells(row: Row) -> Sequence[str]:
    name = f"`{row.algorithm}`" + (f", {row.per_node} a node" if row.per_node else "")
    elements = f"{row.first} to {row.last}" if row.first != row.last else str(row.first)
    declared = f"`{abbreviated(row.declared)}`" if row.declared else "nothing"
    probed = f"{_order(row.probed)}: `{abbreviated(row.probed)}`" if row.probed else "no tree"
    return str(row.ranks), name, row.level, elements, declared, probed, row.verdict


def _order(tree: Tree) -> str:
    return ALONE if tree.leaves == 1 else pattern(tree)


# The command line `tessera-conformance probe`: the order and the arithmetic of an implementation's sums.
#
# Exit codes: 0 if the implementation does what it declares, or declares nothing; 1 if it does not; 2 if the probe
# cannot be made.


DEFAULT_SHAPES = {"matmul": "64x64x64", "sum": "256", "all_reduce": "8x64"}
ABOUT = """Reveal the order in which an implementation adds the terms of one result element, by calls alone, identify
the arithmetic of each addition by replaying random inputs bit for bit, and compare both with what it declares. Orders
depend on shapes: exactly the shape asked for is probed, and one element of it, the first unless --element names
another."""


def configure_probe(parser: argparse.ArgumentParser) -> None:
    """The command `probe`."""
    parser.description = ABOUT
    parser.add_argument("--impl", default="reference", metavar="IMPL", help=FORMS)
    parser.add_argument("--operation", default="matmul", choices=OPERATIONS, help="default: matmul")
    parser.add_argument(
        "--shape",
        type=extents,
        metavar="SHAPE",
        help="MxKxN for matmul (default 64x64x64), the operand's shape for sum (256), RANKSxELEMENTS for all_reduce "
        "(8x64)",
    )
    parser.add_argument("--dtype", default="fp32", choices=DTYPES, help="of the operands (default: fp32)")
    parser.add_argument("--out", choices=DTYPES, help="of the result of matmul (default: the operands', fp32 for fp8)")
    parser.add_argument("--axis", type=int, default=0, help="of sum (default: 0)")
    parser.add_argument("--element", type=places, default=(), metavar="I,J", help="of the result (default: the first)")
    parser.add_argument("--full", action="store_true", help="reveal the tree even where the declared one is confirmed")
    parser.add_argument("--seed", type=int, default=0, help="of pivots and random terms (default: 0)")
    parser.add_argument("--deadline", type=float, default=30.0, metavar="SECONDS", help="for each call (default: 30)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the finding as JSON")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw the tree")
    parser.add_argument("--report", type=Path, metavar="DIR", help="write Markdown, JSON and drawing into a folder")
    parser.add_argument(
        "--write",
        type=Path,
        metavar="FILE",
        help="instead: probe every product and sum of the golden vectors, and write the orders as a declaration",
    )
    parser.add_argument(
        "--algorithms",
        action="store_true",
        help="instead: the declared and the probed order of each algorithm of all_reduce, as a table",
    )
    parser.add_argument(
        "--ranks", type=counts, default=RANKS, metavar="N,N", help="of --algorithms (default: 1,2,6,7,8)"
    )
    parser.set_defaults(handler=reporting_errors(run, CannotProbe, ImplementationUnavailable))


def run(arguments: argparse.Namespace) -> int:
    """Probe, print the finding, and write the requested files."""
    if arguments.algorithms:
        return _run_algorithms(arguments)
    if arguments.write:
        return _write_declaration(arguments)
    shape = arguments.shape or extents(DEFAULT_SHAPES[arguments.operation])
    subject = Subject(arguments.operation, shape, arguments.dtype, arguments.axis, arguments.element, arguments.out)
    session = Session(locate(arguments.impl), arguments.deadline)
    try:
        finding = probe(session, subject, arguments.seed, arguments.full)
    finally:
        session.close()
    sys.stdout.write(as_text(finding))
    if arguments.json:
        write_text(arguments.json, as_json(finding))
    if arguments.svg:
        write_text(arguments.svg, draw(finding))
    if arguments.report:
        write_finding(finding, arguments.report)
    return 1 if finding.verdict == "differs" else 0


def _write_declaration(arguments: argparse.Namespace) -> int:
    """Probe all shapes of the suite, and write the file that declares their orders; report shapes without one."""
    session = Session(locate(arguments.impl), arguments.deadline)
    rows: list[ShapeOrder] = []
    without: list[str] = []
    try:
        hello = session.open()
        for subject in subjects():
            try:
                rows += orders(session, subject)
            except CannotProbe as reason:
                without.append(str(reason).splitlines()[0])
    finally:
        session.close()
    name = f"{hello.name} {hello.version}" if isinstance(hello, Hello) else arguments.impl
    write_toml(arguments.write, as_toml(name, rows), "declared")
    print(f"{arguments.write}: {len(rows)} orders of {len({row.subject for row in rows})} shapes")
    for line in without:
        print(f"  not declared: {line}")
    return 0


def _run_algorithms(arguments: argparse.Namespace) -> int:
    """Probe the algorithms of all_reduce, print their table, and write the files requested."""
    session = Session(locate(arguments.impl), arguments.deadline)
    try:
        rows = probe_algorithms(session, arguments.dtype, arguments.ranks)
    finally:
        session.close()
    sys.stdout.write(as_table(rows))
    if arguments.json:
        write_text(arguments.json, algorithms_json(rows))
    if arguments.report:
        arguments.report.mkdir(parents=True, exist_ok=True)
        write_text(arguments.report / "algorithms.json", algorithms_json(rows))
        write_text(arguments.report / "algorithms.md", as_table(rows))
    return 1 if any(row.verdict == "differs" for row in rows) else 0


def algorithms_json(rows: Sequence[Row]) -> str:
    """Return the rows of the algorithms for machines."""
    return json.dumps([row.to_json() for row in rows], indent=1) + "\n"


def draw(finding: Finding) -> str:
    """Return the tree as SVG. Raises `CannotProbe`: there is no tree to draw."""
    if finding.tree is None:
        raise CannotProbe(f"{finding.subject}: no tree to draw: {finding.evidence}")
    return drawing(finding.tree, f"{finding.implementation}: {finding.subject}: {finding.pattern}")


def write_finding(finding: Finding, directory: Path) -> str:
    """Write JSON, Markdown and, if there is a tree, its drawing; return their common name."""
    directory.mkdir(parents=True, exist_ok=True)
    name = name_of(finding.subject)
    write_text(directory / f"{name}.json", as_json(finding))
    if finding.tree is not None:
        write_text(directory / f"{name}.svg", draw(finding))
    image = f"{name}.svg" if finding.tree is not None else None
    write_text(directory / f"{name}.md", as_markdown(finding, image))
    return name


def name_of(subject: Subject) -> str:
    """Return a file name from the parts of a subject."""
    parts = [subject.operation.replace("_", "-"), "x".join(map(str, subject.shape)), subject.dtype]
    return "-".join(parts)


def extents(text: str) -> tuple[int, ...]:
    """Return the extents of 64x64x64."""
    return _numbers(text, "x", "extents such as 64x64x64")


def counts(text: str) -> tuple[int, ...]:
    """Return numbers of ranks, 1,7,8."""
    return _numbers(text, ",", "numbers of ranks such as 1,7,8")


def places(text: str) -> tuple[int, ...]:
    """Return the indices of an element, 0,0."""
    return _numbers(text, ",", "an element such as 0,0")


def _numbers(text: str, separator: str, expected: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(separator))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected {expected}") from None
