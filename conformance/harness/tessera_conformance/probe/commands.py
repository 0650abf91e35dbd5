"""`tessera-conformance probe`: one sum, the shapes of the golden vectors, or all-reduce algorithms; its output."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby, product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tessera_conformance.arithmetic import NodeArithmetic
from tessera_conformance.cases import vectors_directory
from tessera_conformance.oracle.trees import START, Tree
from tessera_conformance.probe.calls import DTYPES, OPERATIONS, Box, CannotProbe, Subject, hello_of
from tessera_conformance.probe.reveal import MOST_RANKS, abbreviated, groups_of, pattern
from tessera_conformance.probe.run import Finding, declared_by_call, plain, probe
from tessera_conformance.reports.publish import write_text, write_toml
from tessera_conformance.reports.summary import table
from tessera_conformance.session import Session
from tessera_conformance.terminal import reporting_errors
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import FORMS, locate
from tessera_conformance.vectors import load

# A tree as SVG: leaves in a row, and nodes above their children, by height.
#
# The drawing scales with the page, has its own colours for light and dark, and needs no other file.


COLUMN, ROW, MARGIN, TITLE = 22.0, 26.0, 18.0, 44.0
TALLEST = 900.0

STYLE = (
    "text{font:11px ui-monospace,monospace;fill:#222}.t{font-size:13px}line{stroke:#667;stroke-width:1.2}"
    "circle{fill:#3566a8}.n{fill:#b3541e}rect{fill:#fff}@media(prefers-color-scheme:dark){"
    "text{fill:#ddd}line{stroke:#99a}rect{fill:#16181c}circle{fill:#7fb0f0}.n{fill:#f0a060}}"
)


class Drawn(NamedTuple):
    """A drawn subtree: the middle of its root, the nodes on the longest path below it, and its leaves."""

    x: float
    height: int
    leaves: int


def drawing(tree: Tree, title: str) -> str:
    """Return the whole SVG document: children before their parents, from left to right."""
    row, column = min(ROW, TALLEST / max(tree.depth, 1)), max(COLUMN, 7.0 * len(str(tree.leaves - 1)) + 6)
    base, right = TITLE + tree.depth * row, MARGIN
    shapes: list[str] = []

    def leaf(number: int) -> Drawn:
        nonlocal right
        x, right = right + column / 2, right + column
        text = "c" if number == START else str(number)
        shapes.append(f'<text x="{x:.1f}" y="{base + 14:.1f}" text-anchor="middle">{text}</text>')
        return Drawn(x, 0, 1)

    def node(children: list[Drawn]) -> Drawn:
        x = sum(child.x for child in children) / len(children)
        height, leaves = 1 + max(child.height for child in children), sum(child.leaves for child in children)
        y = base - height * row
        for child in children:
            below = base - child.height * row
            shapes.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{child.x:.1f}" y2="{below:.1f}"/>')
        mark, radius, label = "", 3.0, ""
        if len(children) > 2:
            mark, radius, label = ' class="n"', 4.5, f"{len(children)} terms at once, "
        circle = f'<circle{mark} cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}">'
        shapes.append(f"{circle}<title>{label}{leaves} leaves</title></circle>")
        return Drawn(x, height, leaves)

    tree.folded(leaf, node)
    width, height = max(MARGIN + right, 8.0 * len(title) + 2 * MARGIN), base + 3 * MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" {size} role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f"<rect {size}/>",
        f'<text class="t" x="{MARGIN:.0f}" y="24">{escape(title)}</text>',
        *shapes,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


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
    facts = [(name, f"`{value}`" if name == "tree" else value) for name, value in _facts(finding)]
    lines += [f"- **{name}**: {value}" for name, value in facts if name != "time"]
    if drawing is not None:
        lines += ["", f"![the order of {finding.subject}]({drawing})"]
    return "\n".join([*lines, ""])


def as_json(found: Finding | list[Row]) -> str:
    """Return a finding, or the rows of algorithms, for machines."""
    message = [row.to_json() for row in found] if isinstance(found, list) else found.to_json()
    return json.dumps(message, indent=1) + "\n"


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
    shown = ("replayed", "found", "declared", "first", "again")
    parts = [f"{key} {value}" for key, value in witness.items() if key in shown]
    for name, words in witness.get("inputs", {}).items():
        text = " ".join(words)
        parts.append(f"{name} {text if len(text) <= LONGEST_WITNESS else f'{text[:LONGEST_WITNESS]} ...'}")
    return f" [{'; '.join(parts)}]" if parts else ""


# The orders of every product and sum of the golden vectors, as a file that declares them: `probe --write`.
#
# The first element of each shape is probed in full, and all elements are replayed in its order. The first element with
# another order is probed too, and so on. An element without a fixed tree leaves its shape undeclared.


MOST_ORDERS = 8
"""The most different orders within one result."""


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
            if operation not in ("matmul", "sum"):
                continue
            first, *others = (vector.call.inputs[name] for name in check.operands)
            with suppress(CannotProbe):
                if operation == "matmul":
                    extents, out = (*first.shape[-2:], others[0].shape[-1]), check.arguments.get("out", first.dtype)
                    chosen[Subject("matmul", extents, first.dtype, out=out)] = None
                else:
                    axis = int(check.arguments.get("axis", -1)) % len(first.shape)
                    chosen[Subject("sum", first.shape, first.dtype, axis)] = None
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
        mine = np.ones(count, bool) if finding.others is None else finding.others.same & open_
        if not mine[finding.subject.flat_element]:
            raise CannotProbe(f"{subject}: the watched element does not replay among others")
        elements = "" if mine.all() else _runs(mine)
        rows.append(ShapeOrder(subject, finding.arithmetic.tree, finding.arithmetic.model, elements))
        open_ &= ~mine
        if open_.any():
            element = tuple(map(int, np.unravel_index(np.flatnonzero(open_)[0], subject.result)))
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
    for same in entries.values():
        lines += ["[[order]]", *(f"{name} = {_value(value)}" for name, value in same[0].facts.items())]
        lines += [f"shapes = {json.dumps([row.subject.shapes for row in same])}", ""]
    return "\n".join(lines)


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
RANKS = (2, 6, 7, 8)
"""Powers of two, a prime, and a number that is neither."""


@dataclass(frozen=True)
class Row:
    """Elements first..last, both included, of an all-reduce by one algorithm: the declared and the probed order.

    `declared` is None without a declaration; `probed` is None if the elements have no tree.
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
        return {**plain(self), "verdict": self.verdict}


def probe_algorithms(session: Session, dtype: str = "fp32", ranks: Sequence[int] = RANKS) -> list[Row]:
    """Return the rows of every algorithm at both levels over `ranks` ranks, of two elements a share and one more.

    `hierarchical` has as many ranks on a node as the least prime that divides their number, if it is not that number.

    Raises `CannotProbe`: the ranks or the dtype cannot be probed, an answer is missing, or `collectives.run` is
    unsupported.
    """
    if beyond := [count for count in ranks if not 2 <= count <= MOST_RANKS]:
        raise CannotProbe(f"{beyond[0]} ranks: expected 2 to {MOST_RANKS}")
    rows: list[Row] = []
    for count, algorithm, level in product(ranks, ALGORITHMS, LEVELS):
        least_factor = next((factor for factor in range(2, count) if count % factor == 0), None)
        per_node = least_factor if algorithm == "hierarchical" else None
        request = {"algorithm": algorithm, **({"per_node": per_node} if per_node else {})}
        subject = Subject("all_reduce", (count, 2 * count + 1), dtype)
        probed = _probed(Box(session, subject, level, "collectives.run", {"operation": "all_reduce", **request}))
        attributes = request if level == "deterministic" else {}
        orders: list[tuple[Tree | None, Tree | None]] = []
        for place, tree in enumerate(probed):
            stated = declared_by_call(Box(session, replace(subject, element=(place,)), level), attributes)
            orders.append((None if stated is None else stated.tree.canonical(), tree))
        for (declared, found), run in groupby(range(len(orders)), orders.__getitem__):
            first, *others = run
            rows.append(Row(algorithm, level, count, per_node, first, first + len(others), declared, found))
    return rows


def _probed(box: Box) -> list[Tree | None]:
    """Return the tree of each element of an all-reduce; None for one without a tree."""
    trees: list[Tree | None] = [None] * box.subject.result[0]
    for group in groups_of(box):
        tree = group.tree.canonical() if group.tree and box.ranks_agree else None
        trees[group.first : group.last + 1] = [tree] * (group.last + 1 - group.first)
    return trees


def as_table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    return table(("ranks", "algorithm", "level", "elements", "declared", "probed", "verdict"), map(_cells, rows)) + "\n"


def _cells(row: Row) -> Sequence[str]:
    name = f"`{row.algorithm}`" + (f", {row.per_node} a node" if row.per_node else "")
    elements = f"{row.first} to {row.last}" if row.first != row.last else str(row.first)
    declared = f"`{abbreviated(row.declared)}`" if row.declared else "nothing"
    probed = f"{pattern(row.probed)}: `{abbreviated(row.probed)}`" if row.probed else "no tree"
    return str(row.ranks), name, row.level, elements, declared, probed, row.verdict


# The command line `tessera-conformance probe`: the order and the arithmetic of an implementation's sums.
#
# Exit codes: 0 if the implementation does what it declares, or declares nothing; 1 if it does not; 2 if the probe
# cannot be made.


DEFAULT_SHAPES = {"matmul": (64, 64, 64), "sum": (256,), "all_reduce": (8, 64)}
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
        type=_numbers("x", "extents such as 64x64x64"),
        metavar="SHAPE",
        help="MxKxN for matmul (default 64x64x64), the operand's shape for sum (256), RANKSxELEMENTS for all_reduce "
        "(8x64)",
    )
    parser.add_argument("--dtype", default="fp32", choices=DTYPES, help="of the operands (default: fp32)")
    parser.add_argument("--out", choices=DTYPES, help="of the result of matmul (default: the operands', fp32 for fp8)")
    parser.add_argument("--axis", type=int, default=0, help="of sum (default: 0)")
    places, counts = _numbers(",", "an element such as 0,0"), _numbers(",", "numbers of ranks such as 2,7,8")
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
    parser.add_argument("--ranks", type=counts, default=RANKS, metavar="N,N", help="of --algorithms (default: 2,6,7,8)")
    parser.set_defaults(handler=reporting_errors(run, CannotProbe, ImplementationUnavailable))


def run(arguments: argparse.Namespace) -> int:
    """Probe, print the finding, and write the requested files."""
    if arguments.algorithms:
        return _run_algorithms(arguments)
    if arguments.write:
        return _write_declaration(arguments)
    shape = arguments.shape or DEFAULT_SHAPES[arguments.operation]
    subject = Subject(arguments.operation, shape, arguments.dtype, arguments.axis, arguments.element, arguments.out)
    with closing(Session(locate(arguments.impl), arguments.deadline)) as session:
        finding = probe(session, subject, arguments.seed, arguments.full)
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
    rows: list[ShapeOrder] = []
    without: list[str] = []
    with closing(Session(locate(arguments.impl), arguments.deadline)) as session:
        hello = hello_of(session)
        for subject in subjects():
            try:
                rows += orders(session, subject)
            except CannotProbe as reason:
                without.append(str(reason).splitlines()[0])
    write_toml(arguments.write, as_toml(f"{hello.name} {hello.version}", rows), "declared")
    print(f"{arguments.write}: {len(rows)} orders of {len({row.subject for row in rows})} shapes")
    for line in without:
        print(f"  not declared: {line}")
    return 0


def _run_algorithms(arguments: argparse.Namespace) -> int:
    """Probe the algorithms of all_reduce, print their table, and write the files requested."""
    with closing(Session(locate(arguments.impl), arguments.deadline)) as session:
        rows = probe_algorithms(session, arguments.dtype, arguments.ranks)
    sys.stdout.write(as_table(rows))
    if arguments.json:
        write_text(arguments.json, as_json(rows))
    if arguments.report:
        arguments.report.mkdir(parents=True, exist_ok=True)
        write_text(arguments.report / "algorithms.json", as_json(rows))
        write_text(arguments.report / "algorithms.md", as_table(rows))
    return 1 if any(row.verdict == "differs" for row in rows) else 0


def draw(finding: Finding) -> str:
    """Return the tree as SVG. Raises `CannotProbe`: there is no tree to draw."""
    if finding.tree is None:
        raise CannotProbe(f"{finding.subject}: no tree to draw: {finding.evidence}")
    return drawing(finding.tree, f"{finding.implementation}: {finding.subject}: {finding.pattern}")


def write_finding(finding: Finding, directory: Path) -> None:
    """Write JSON, Markdown and, if there is a tree, its drawing."""
    directory.mkdir(parents=True, exist_ok=True)
    name = name_of(finding.subject)
    write_text(directory / f"{name}.json", as_json(finding))
    image = None if finding.tree is None else f"{name}.svg"
    if image:
        write_text(directory / image, draw(finding))
    write_text(directory / f"{name}.md", as_markdown(finding, image))


def name_of(subject: Subject) -> str:
    """Return a file name from the parts of a subject."""
    return str(subject).replace("all_reduce", "all-reduce").replace(" ", "-")


def _numbers(separator: str, expected: str) -> Callable[[str], tuple[int, ...]]:
    """Return a type of arguments: whole numbers with a separator between them."""

    def numbers(text: str) -> tuple[int, ...]:
        try:
            return tuple(int(part) for part in text.split(separator))
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r}: expected {expected}") from None

    return numbers
