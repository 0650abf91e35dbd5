"""Writes the page of levels, levels.md: one matrix product at each of them. `python docs/draw_levels.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tessera_reference.commands.images import summary
from tessera_reference.ir.operation import OPERATIONS, Module
from tessera_reference.ir.targets import Target, target_of
from tessera_reference.ir.text import print_module
from tessera_reference.language import compile_source
from tessera_reference.levels.execution import Level, Options, lower

PAGE = Path(__file__).parent / "levels.md"

PROGRAM = """module m {
  func product(A: tensor<32x32xbf16>, B: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
    return A @ B;
  }
}
"""

OPTIONS = Options(tile=(16, 16, 16), depth=2)

INTRODUCTION = """# The levels

One matrix product at five levels: the language, Graph IR, Schedule IR, Tile IR and Target IR. Every text below is what
`tessera-reference lower FILE --to LEVEL --tile 16x16x16 --depth 2` prints. `tessera-reference run FILE.mlir` executes
each, as printed or edited by hand, and each gives the same bits (`tessera-reference compare-levels`).
[The protocol](protocol.md#the-levels-below-graph-ir) says what the operations take.

| | what the product is | what is stated for the first time |
|---|---|---|
| language | `A @ B` | |
| Graph IR | one operation on tensors | the accumulator |
| Schedule IR | the same operation, its operands prefetched, its result tiled and pipelined | tiles, buffers, depth |
| Tile IR | a kernel and its launch | grid, block, shared memory, copies, barriers, matrix instructions |
| Target IR | the same kernel in the vendor's dialect | addresses, the registers of each lane |

This page is written by `python docs/draw_levels.py`.
"""

LEVELS: tuple[tuple[str, Level, str, str], ...] = (
    (
        "Graph IR",
        "graph",
        "sm_90",
        "Operations on whole tensors; values have types, and nothing says how they come to be.",
    ),
    (
        "Schedule IR",
        "schedule",
        "sm_90",
        "Schedule operations hand on a value; a reader of the result reads the value under that schedule.",
    ),
    (
        "Tile IR",
        "tile",
        "sm_90",
        "The loop over tiles of m and n has become the grid, that over k a loop. Each turn computes from one buffer "
        "while copies fill the other. Copied elements are read after their wait and a barrier.",
    ),
    (
        "Target IR, NVIDIA",
        "target",
        "sm_90",
        "Fragments are vectors, one of each lane, and memory is addresses.",
    ),
    ("Target IR, AMD", "target", "gfx942", "The same for wavefronts of 64 lanes."),
)


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, "## The language\n", fenced(PROGRAM)]
    for title, level, target, text in LEVELS:
        parts += [f"## {title}\n", f"{text}\n", fenced(print_module(lowered(level, target_of(target))))]
        if level in ("tile", "target"):
            parts += [*counted(lowered(level, target_of(target))), ""]
    return "\n".join(parts)


def lowered(level: Level, target: Target) -> Module:
    """The program at a level."""
    (module,) = compile_source(PROGRAM).modules
    return lower(module, level, target, OPTIONS)


def fenced(text: str) -> str:
    """A text as code."""
    return f"```\n{text.rstrip()}\n```\n"


def counted(module: Module) -> Iterator[str]:
    """The operations of the kernels, most frequent first, with what they do."""
    bodies = [function.body.walk() for function in module.functions.values() if function.device]
    counts = Counter(instruction.operation.name for body in bodies for instruction in body)
    yield "| operation | times | |"
    yield "|---|---|---|"
    for name, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        yield f"| `{name}` | {count} | {summary(OPERATIONS[name]).replace('|', '')} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
