"""A tree as SVG: leaves in a row, nodes above their children by depth, large subtrees as triangles.

The drawing scales with the page, carries its own colours for light and dark, and needs nothing from outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from tessera_conformance.arithmetic.tree import Tree

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
    """Which subtrees become triangles: the largest are opened first, until the drawing is full."""
    drawn, closed = 1, {id(root)}
    waiting = [root]
    while waiting:
        part = max(waiting, key=lambda candidate: candidate.leaves)
        waiting.remove(part)
        if not part.children:
            closed.discard(id(part))
        elif drawn + len(part.children) - 1 <= MOST_DRAWN:
            drawn += len(part.children) - 1
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
    """Rows above the base line: a leaf stands on it, a triangle is one row high."""
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
    """What is drawn, children before parents, from left to right."""
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
