"""Writes the picture of the packages from their imports, images/architecture.svg: `python docs/draw_architecture.py`.

A box is a folder of the reference or of the harness, or a chapter of the suite. An arrow leads from a package to
one that it imports; arrows that follow from others are left out. A package stands above all that it imports. What the
root of the harness imports is not drawn: command line and plugin tie the packages together there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from html import escape
from importlib.util import resolve_name
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

REFERENCE, HARNESS, SUITE = "tessera_reference", "tessera_conformance", "tessera_conformance.chapters"
SOURCES = {
    ROOT / "reference" / REFERENCE: REFERENCE,
    ROOT / "conformance" / "harness" / HARNESS: HARNESS,
    **{ROOT / "conformance" / name: f"{SUITE}.{name}" for name in ("abi", "ir", "runtime", "collectives")},
}
COLOURS = {"reference": "#dbe7f5", "harness": "#e3f1de", "suite": "#f8ead2"}

Packages = Mapping[str, frozenset[str]]

WIDTH, HEIGHT, GAP, LEVEL, MARGIN = 124, 34, 16, 74, 20


def imports() -> Iterator[tuple[str, str]]:
    """Each module of the project and a name that it imports, both dotted; violators and variants bridge: left out."""
    for folder, package in SOURCES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            if package.startswith(SUITE) and parts[-2:-1] in (("violators",), ("variants",)):
                continue
            module = ".".join([package, *parts]).removesuffix(".__init__")
            within = module if path.name == "__init__.py" else module.rpartition(".")[0]
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    yield from ((module, alias.name) for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    base = resolve_name("." * node.level + (node.module or ""), within)
                    yield from ((module, f"{base}.{alias.name}") for alias in node.names)


def package_of(module: str) -> str | None:
    """The package of a dotted name: `reference/tile`, `harness/oracle`, `harness` for its root, `suite/ir`."""
    package, _, rest = module.partition(".")
    first = rest.partition(".")[0]
    if module.startswith(f"{SUITE}."):
        return f"suite/{module.removeprefix(f'{SUITE}.').partition('.')[0]}"
    if package == REFERENCE:
        return (
            f"reference/{first}"
            if (ROOT / "reference" / REFERENCE / first / "__init__.py").exists() and first
            else None
        )
    if package == HARNESS:
        folder = ROOT / "conformance" / "harness" / HARNESS / first
        return f"harness/{first}" if first and (folder / "__init__.py").exists() else "harness/root"
    return None


def packages() -> Packages:
    """The packages, each with those that it imports."""
    found: dict[str, set[str]] = {}
    for module, imported in imports():
        package, other = package_of(module), package_of(imported)
        if package is not None:
            found.setdefault(package, set())
            if other not in (None, package) and package != "harness/root":
                found[package].add(str(other))
    return {package: frozenset(others) for package, others in sorted(found.items())}


def reachable(graph: Packages, start: Iterable[str]) -> set[str]:
    """All packages that some packages import, directly or not, themselves included."""
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        package = waiting.pop()
        if package not in seen:
            seen.add(package)
            waiting += graph[package]
    return seen


def arrows(graph: Packages) -> Iterator[tuple[str, str]]:
    """The imports that do not follow from others (transitive reduction)."""
    for package, others in graph.items():
        for other in sorted(others):
            if other not in reachable(graph, others - {other}):
                yield package, other


def levels(graph: Packages) -> dict[str, int]:
    """Return the height of each package: one above the highest that it imports."""
    heights: dict[str, int] = {}
    for package in TopologicalSorter(graph).static_order():
        heights[package] = 1 + max((heights[other] for other in graph[package]), default=-1)
    return heights


def places(graph: Packages) -> dict[str, tuple[int, int]]:
    """The upper left corner of each box: the suite and the harness stand to the left, the reference to the right."""
    heights, found, left = levels(graph), {}, MARGIN
    for panel in (("suite", "harness"), ("reference",)):
        inside = [package for package in graph if package.startswith(panel)]
        rows = {height: [package for package in inside if heights[package] == height] for height in heights.values()}
        width = max(map(len, rows.values())) * (WIDTH + GAP)
        for height, row in rows.items():
            start = left + (width - len(row) * (WIDTH + GAP)) // 2
            top = MARGIN + (max(heights.values()) - height) * LEVEL
            found.update({package: (start + i * (WIDTH + GAP), top) for i, package in enumerate(row)})
        left += width + 2 * GAP
    return found


def picture() -> str:
    """The whole picture."""
    graph = packages()
    corners = places(graph)
    right = max(x for x, _ in corners.values()) + WIDTH + MARGIN
    bottom = max(y for _, y in corners.values()) + HEIGHT + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right} {bottom}" '
        'font-family="sans-serif" font-size="13">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#667"/></marker></defs>',
    ]
    for package, other in arrows(graph):
        (x1, y1), (x2, y2) = corners[package], corners[other]
        ends = f'x1="{x1 + WIDTH // 2}" y1="{y1 + HEIGHT}" x2="{x2 + WIDTH // 2}" y2="{y2}"'
        lines.append(f'<line {ends} stroke="#99a" marker-end="url(#tip)"/>')
    for package, (x, y) in corners.items():
        kind, _, name = package.partition("/")
        box = f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="{COLOURS[kind]}" stroke="#556"/>'
        label = f"harness ({name})" if name == "root" else name
        lines.append(f'{box}<text x="{x + WIDTH // 2}" y="{y + 22}" text-anchor="middle">{escape(label)}</text>')
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
