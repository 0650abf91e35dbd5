"""A finding as text for the terminal, as Markdown, as JSON, and its tree as SVG."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from tessera_conformance.arithmetic.tree import NodeArithmetic, Tree
from tessera_conformance.probe.reveal import abbreviated
from tessera_conformance.probe.run import Finding

# A tree as SVG: leaves in a row, nodes above their children by depth, large subtrees as triangles.
#
# The drawing scales with the page, carries its own colours for light and dark, and needs nothing from outside.


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
    """A subtree on its way into the drawing: its children, its leaves and its height."""

    children: tuple[_Part, ...]
    leaf: str
    leaves: int
    first: int
    last: int
    height: int


def drawing(tree: Tree, title: str) -> str:
    """The whole SVG document."""
    root = _part(tree)
    closed = _closed(root)
    height = _height(root, closed)
    row = min(ROW, TALLEST / max(height, 1))
    shapes: list[str] = []
    width = _drawn(root, closed, row, height, shapes)
    wide, tall = max(2 * MARGIN + width, 8.0 * len(title) + 2 * MARGIN), TITLE + height * row + 3 * MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {tall:.0f}" width="{wide:.0f}" '
            f'height="{tall:.0f}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            f'<rect width="{wide:.0f}" height="{tall:.0f}"/>',
            f'<text class="t" x="{MARGIN:.0f}" y="24">{escape(title)}</text>',
            *shapes,
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


def _closed(root: _Part) -> set[int]:
    """Return the subtrees that become triangles: the largest are opened first, until the drawing is full."""
    count, closed = 1, {id(root)}
    waiting = [root]
    while waiting:
        part = max(waiting, key=lambda candidate: candidate.leaves)
        waiting.remove(part)
        if not part.children:
            closed.discard(id(part))
        elif count + len(part.children) - 1 <= MOST_DRAWN:
            count += len(part.children) - 1
            closed.discard(id(part))
            closed |= {id(child) for child in part.children}
            waiting += part.children
    return closed


def _height(root: _Part, closed: set[int]) -> int:
    heights: dict[int, int] = {}
    for part in _postfix(root, closed):
        heights[id(part)] = _level(part, closed, heights)
    return heights[id(root)]


def _level(part: _Part, closed: set[int], heights: dict[int, int]) -> int:
    """Rows above the base line: a leaf is on it, a triangle is one row high."""
    if id(part) in closed or not part.children:
        return 1 if part.children else 0
    return 1 + max(heights[id(child)] for child in part.children)


def _drawn(root: _Part, closed: set[int], row: float, height: int, shapes: list[str]) -> float:
    """Draw every part; the width that was needed."""
    places: dict[int, tuple[float, float]] = {}
    heights: dict[int, int] = {}
    next_column = MARGIN
    base = TITLE + height * row
    column = max(COLUMN, 7.0 * len(str(root.last)) + 6)
    for part in _postfix(root, closed):
        heights[id(part)] = _level(part, closed, heights)
        y = base - heights[id(part)] * row
        if part.children and id(part) not in closed:
            inside = [places[id(child)] for child in part.children]
            place = (sum(x for x, _ in inside) / len(inside), y)
            shapes += [_line(place, child) for child in inside]
            shapes.append(_node(place, part))
        else:
            width = column * (2.6 if part.children else 1)
            place = (next_column + width / 2, y)
            shapes += _triangle(place, base, part) if part.children else _leaf(place, part)
            next_column += width
        places[id(part)] = place
    return next_column - MARGIN


def _postfix(root: _Part, closed: set[int]) -> list[_Part]:
    """Return the drawn parts, children before parents, from left to right."""
    order: list[_Part] = []
    waiting: list[tuple[_Part, bool]] = [(root, False)]
    while waiting:
        part, done = waiting.pop()
        if done or id(part) in closed or not part.children:
            order.append(part)
        else:
            waiting.append((part, True))
            waiting += [(child, False) for child in reversed(part.children)]
    return order


def _line(one: tuple[float, float], other: tuple[float, float]) -> str:
    return f'<line x1="{one[0]:.1f}" y1="{one[1]:.1f}" x2="{other[0]:.1f}" y2="{other[1]:.1f}"/>'


def _node(place: tuple[float, float], part: _Part) -> str:
    fused = len(part.children) > 2
    label = f"{len(part.children)} terms at once, {part.leaves} leaves" if fused else f"{part.leaves} leaves"
    mark = ' class="n"' if fused else ""
    x, y = place
    return f'<circle{mark} cx="{x:.1f}" cy="{y:.1f}" r="{4.5 if fused else 3}"><title>{label}</title></circle>'


def _leaf(place: tuple[float, float], part: _Part) -> list[str]:
    return [f'<text x="{place[0]:.1f}" y="{place[1] + 14:.1f}" text-anchor="middle">{part.leaf}</text>']


def _triangle(place: tuple[float, float], base: float, part: _Part) -> list[str]:
    x, y = place
    corners = f"{x:.1f},{y:.1f} {x - COLUMN * 0.9:.1f},{base:.1f} {x + COLUMN * 0.9:.1f},{base:.1f}"
    whole = part.last - part.first + 1 == part.leaves
    label = f"{part.first}-{part.last}" if whole else f"{part.leaves} leaves"
    return [
        f'<polygon points="{corners}"><title>{part.leaves} leaves, depth {part.height}</title></polygon>',
        f'<text x="{x:.1f}" y="{base + 14:.1f}" text-anchor="middle">{label}</text>',
    ]


LONGEST_WITNESS = 400


def as_text(finding: Finding) -> str:
    """Return the findings of a probe, line by line."""
    subject = finding.subject
    element = f", element {list(subject.watched)}" if subject.watched else ""
    lines = [f"{finding.implementation}: {subject} -> {subject.result_dtype}{element}"]
    lines += [f"  {name:<12}{value}" for name, value in _facts(finding)]
    return "\n".join(lines) + "\n"


def as_markdown(finding: Finding, drawing: str | None) -> str:
    """A section about one finding; `drawing` is the name of its SVG file."""
    lines = [f"### {finding.subject}", ""]
    lines += [f"- **{name}**: {_code(name, value)}" for name, value in _facts(finding) if name != "time"]
    if drawing is not None:
        lines += ["", f"![the order of {finding.subject}]({drawing})"]
    return "\n".join([*lines, ""])


def as_json(finding: Finding) -> str:
    """The machine-readable finding."""
    return json.dumps(finding.to_json(), indent=1) + "\n"


def model_sentence(model: NodeArithmetic, products: bool) -> str:
    """A node arithmetic in words."""
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
