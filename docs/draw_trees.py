"""Draws the trees of numerics.md: `python docs/draw_trees.py`."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from tessera_conformance.arithmetic import FOLD, PAIRWISE, Tree

TREES = {
    "tree-fold": (FOLD.over(8), "fold"),
    "tree-pairwise": (PAIRWISE.over(7), "pairwise: an odd tail is carried"),
    "tree-fused": (Tree.from_text("((c 0 1 2 3) 4 5 6 7)"), "two steps of a tensor core"),
}
COLUMN, ROW, MARGIN, TITLE = 22, 26, 18, 44
STYLE = (
    "text{font:11px ui-monospace,monospace;fill:#222}.t{font-size:13px}line{stroke:#667;stroke-width:1.2}"
    "circle{fill:#3566a8}.n{fill:#b3541e}rect{fill:#fff}@media(prefers-color-scheme:dark){text{fill:#ddd}"
    "line{stroke:#99a}rect{fill:#16181c}circle{fill:#7fb0f0}.n{fill:#f0a060}}"
)

Place = tuple[float, int]
"""The column of a part of a tree, and its rows above the leaves."""


def drawing(tree: Tree, title: str) -> str:
    """The tree as SVG: leaves in a row, each node above its children, a node of three and more terms marked."""
    shapes: list[str] = []
    columns = count()
    base = TITLE + tree.depth * ROW

    def leaf(step: int) -> Place:
        x = MARGIN + COLUMN * (next(columns) + 0.5)
        shapes.append(f'<text x="{x:.1f}" y="{base + 14}" text-anchor="middle">{"c" if step < 0 else step}</text>')
        return x, 0

    def node(children: list[Place]) -> Place:
        x, row = sum(x for x, _ in children) / len(children), 1 + max(row for _, row in children)
        y = base - row * ROW
        shapes.extend(
            f'<line x1="{x:.1f}" y1="{y}" x2="{left:.1f}" y2="{base - below * ROW}"/>' for left, below in children
        )
        mark, radius = (' class="n"', 4.5) if len(children) > 2 else ("", 3)
        shapes.append(f'<circle{mark} cx="{x:.1f}" cy="{y}" r="{radius}"/>')
        return x, row

    tree.folded(leaf, node)
    width = max(2 * MARGIN + COLUMN * next(columns), 8 * len(title) + 2 * MARGIN)
    height = base + 3 * MARGIN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join(
        [
            f'{head} role="img">',
            f"<title>{title}</title>",
            f"<style>{STYLE}</style>",
            f'<rect width="{width}" height="{height}"/>',
            f'<text class="t" x="{MARGIN}" y="24">{title}</text>',
            *shapes,
            "</svg>",
        ]
    )


if __name__ == "__main__":
    for name, (tree, title) in TREES.items():
        path = Path(__file__).parent / "images" / f"{name}.svg"
        path.write_text(drawing(tree, title) + "\n", encoding="utf-8")
