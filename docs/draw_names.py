"""Writes the page of names, names.md, from the table of names: `python docs/draw_names.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tessera_conformance.operations import DTYPES, LIBRARIES, OPERATIONS, Operation

PAGE = Path(__file__).parent / "names.md"
TITLES = {
    "numpy": "numpy",
    "torch": "PyTorch",
    "jax": "JAX",
    "onnx": "ONNX",
    "tosa": "TOSA",
    "stablehlo": "StableHLO",
}
INTRODUCTION = """# Operations by name

Each operation of the language as `--impl=ops:MODULE:TABLE` knows it: its operands and attributes with their defaults,
its calls in other libraries, and what differs there. The adapters for numpy, PyTorch, JAX and the engines of ONNX, TOSA
and StableHLO are made from this table.

This page is written by `python docs/draw_names.py` from `operations/names.toml` in the harness.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *_dtypes(), "", *(line for row in OPERATIONS.values() for line in _operation(row))])


def _dtypes() -> Iterator[str]:
    yield "## Dtypes\n"
    yield f"| | {' | '.join(TITLES.values())} |"
    yield f"|---|{'---|' * len(TITLES)}"
    for dtype, names in DTYPES.items():
        spelled = (f"`{names[library]}`" if library in names else "" for library in LIBRARIES)
        yield f"| `{dtype}` | {' | '.join(spelled)} |"


def _operation(row: Operation) -> Iterator[str]:
    attributes = [_attribute(row, name) for name in row.attributes]
    yield f"## `{row.name}`\n"
    operands = ", ".join(f"`{name}`" for name in row.operands) or "none"
    yield f"Operands: {operands}. Attributes: {', '.join(attributes) or 'none'}. Feature: {row.feature}.\n"
    yield "| | call | what differs |"
    yield "|---|---|---|"
    for library in LIBRARIES:
        call, differs = row.calls.get(library), row.differs.get(library, "")
        if call or differs:
            yield f"| {TITLES[library]} | {f'`{call}`' if call else 'none'} | {differs} |"
    yield ""


def _attribute(row: Operation, name: str) -> str:
    if name in row.defaults:
        return f"`{name}` (by default `{str(row.defaults[name]).lower()}`)"
    if name in row.derived:
        return f"`{name}` (by default `{row.derived[name]}`)"
    return f"`{name}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
