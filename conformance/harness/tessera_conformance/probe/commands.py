"""The command line `tessera-conformance probe`: in which order an implementation adds, and with which arithmetic.

Exit codes: 0 where the implementation does what it declares, or declares nothing; 1 where it does not; 2 where the
probe cannot be made.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tessera_conformance.probe.algorithms import RANKS, Row, as_table, probe_algorithms
from tessera_conformance.probe.calls import DTYPES, OPERATIONS, CannotProbe, Subject
from tessera_conformance.probe.rendering import as_json, as_markdown, as_text, drawing
from tessera_conformance.probe.run import Finding, probe
from tessera_conformance.probe.shapes import ShapeOrder, as_toml, orders, subjects
from tessera_conformance.protocol import Hello
from tessera_conformance.reports.publish import write_text, write_toml
from tessera_conformance.session import Session
from tessera_conformance.terminal import reporting_errors
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import FORMS, locate

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
    """Probe, print the finding, and write the files requested."""
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
    """Probe all shapes of the suite, and write the file that declares their orders; a shape without one is reported."""
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
    sys.stdout.write("\n".join([*as_table(rows), ""]))
    if arguments.json:
        write_text(arguments.json, algorithms_json(rows))
    if arguments.report:
        arguments.report.mkdir(parents=True, exist_ok=True)
        write_text(arguments.report / "algorithms.json", algorithms_json(rows))
        write_text(arguments.report / "algorithms.md", "\n".join([*as_table(rows), ""]))
    return 1 if any(row.verdict == "differs" for row in rows) else 0


def algorithms_json(rows: Sequence[Row]) -> str:
    """The rows of the algorithms for machines."""
    return json.dumps([row.to_json() for row in rows], indent=1) + "\n"


def draw(finding: Finding) -> str:
    """The tree as SVG.

    Raises:
        CannotProbe: there is no tree to draw.
    """
    if finding.tree is None:
        raise CannotProbe(f"{finding.subject}: no tree to draw: {finding.evidence}")
    return drawing(finding.tree, f"{finding.implementation}: {finding.subject}: {finding.pattern}")


def write_finding(finding: Finding, directory: Path) -> str:
    """Write JSON, Markdown and, where there is a tree, its drawing; the name they share."""
    directory.mkdir(parents=True, exist_ok=True)
    name = name_of(finding.subject)
    write_text(directory / f"{name}.json", as_json(finding))
    if finding.tree is not None:
        write_text(directory / f"{name}.svg", draw(finding))
    image = f"{name}.svg" if finding.tree is not None else None
    write_text(directory / f"{name}.md", as_markdown(finding, image))
    return name


def name_of(subject: Subject) -> str:
    """A file name for what is known of a subject."""
    parts = [subject.operation.replace("_", "-"), "x".join(map(str, subject.shape)), subject.dtype]
    return "-".join(parts)


def extents(text: str) -> tuple[int, ...]:
    """The extents of 64x64x64."""
    return _numbers(text, "x", "extents such as 64x64x64")


def counts(text: str) -> tuple[int, ...]:
    """Numbers of ranks, 1,7,8."""
    return _numbers(text, ",", "numbers of ranks such as 1,7,8")


def places(text: str) -> tuple[int, ...]:
    """The place of an element, 0,0."""
    return _numbers(text, ",", "an element such as 0,0")


def _numbers(text: str, separator: str, expected: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(separator))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected {expected}") from None
