"""Draws the trees of numerics.md: `python docs/draw_trees.py`."""

from __future__ import annotations

from pathlib import Path

from tessera_conformance.oracle.trees import FOLD, PAIRWISE, Tree
from tessera_conformance.probe.commands import drawing

TREES = {
    "tree-fold": (FOLD.over(8), "fold"),
    "tree-pairwise": (PAIRWISE.over(7), "pairwise: an odd tail is carried"),
    "tree-fused": (Tree.from_text("((c 0 1 2 3) 4 5 6 7)"), "two steps of a tensor core"),
}

if __name__ == "__main__":
    for name, (tree, title) in TREES.items():
        path = Path(__file__).parent / "images" / f"{name}.svg"
        path.write_text(drawing(tree, title) + "\n", encoding="utf-8")
