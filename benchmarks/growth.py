"""Growth of cost: eight kinds of work at growing sizes, each beside its peer.

`python benchmarks/run.py growth --write` also draws `docs/images/growth.svg`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import harness_overhead
import many_ranks
import numpy as np
import runtime
import wsp
from measurement import Measurement, in_turns

from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.elementary import FUNCTIONS
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.matmul import matmul

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "growth.svg"


class Work(NamedTuple):
    """A kind of work: the unit of its size, its peer, its sizes, and the seconds of both at a size."""

    name: str
    unit: str
    peer: str
    sizes: Sequence[int]
    cost: Callable[[int], tuple[float, float]]


def exponentials(elements: int) -> tuple[float, float]:
    """Return the seconds of exp of so many elements in fp32."""
    values = np.random.Generator(np.random.Philox(3)).standard_normal(elements, np.float32)
    return in_turns(lambda: FUNCTIONS["exp"](values, dtype("fp32")), lambda: np.exp(values), 5)


def products(side: int) -> tuple[float, float]:
    """Return the seconds of a product of two square matrices in fp32."""
    pair = np.random.Generator(np.random.Philox(4)).standard_normal((2, side, side), np.float32)
    left, right = (Array(dtype("fp32"), values) for values in pair)
    return in_turns(lambda: matmul(left, right), lambda: pair[0] @ pair[1], 5)


def statements(number: int) -> tuple[float, float]:
    """Return the seconds of checking statements, and of CPython's compiling the same ones."""
    lines = ["y = y + x;", "y = op.relu(y);"] * (number // 2)
    matrix = "tensor<4x4xfp32>"
    body = "\n".join(lines)
    program = f"module m {{ func f(x: {matrix}) -> {matrix} {{ let y: {matrix} = x;\n{body}\nreturn y; }} }}"
    return in_turns(lambda: compile_source(program), lambda: compile(body, "statements", "exec"), 1)


def ranks(number: int) -> tuple[float, float]:
    """Return the seconds of a first tessAllReduce, and of a fold of the same numbers in place."""
    values = np.ones((number, many_ranks.ELEMENTS), np.float32)
    _, fold = in_turns(lambda: None, lambda: np.add.reduce(values), 3)
    return many_ranks.cost("tessAllReduce", number).seconds, fold


def doubling(first: int, times: int) -> Sequence[int]:
    """Return a size and its doubles."""
    return [first << exponent for exponent in range(times)]


WORK = (
    Work("exp of fp32", "elements", "numpy", doubling(1 << 12, 11), exponentials),
    Work("product of fp32", "a side", "BLAS", doubling(64, 6), products),
    Work("checking", "statements", "CPython's compile", doubling(1000, 7), statements),
    Work("engine", "pauses", "SimPy", doubling(10_000, 7), lambda size: runtime.events(size // runtime.PROCESSES)),
    Work("queued work", "streams", "a deque", doubling(125, 5), runtime.on_streams),
    Work("WSP", "tasks", "SimPy", doubling(1000, 7), wsp.through_a_window),
    Work("all-reduce", "ranks", "a fold in place", doubling(256, 6), ranks),
    Work("suite", "cases", "bare pytest", doubling(125, 6), lambda size: harness_overhead.of_cases(size, 1)),
)


def measure() -> list[Measurement]:
    """Measure every size, in milliseconds of processor time."""
    costs = ((work, size, *work.cost(size)) for work in WORK for size in work.sizes)
    return [
        Measurement(f"{work.name}, {size:,} {work.unit}", ours, work.peer, peer, ours * 1e3, "ms", None)
        for work, size, ours, peer in costs
    ]


ROW = re.compile(r"(?P<name>.+), (?P<size>[\d,]+) .* (?P<ours>[\d.]+) ms .*x (?P<peer>.+) \((?P<theirs>[\d.]+) ms\)")


def draw(rows: str) -> None:
    """Draw the rows of a report, one panel for each kind of work; both axes are logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "growth", "font.size": 8}
    from matplotlib import pyplot

    found = [match.groupdict() for match in map(ROW.match, rows.splitlines()) if match]
    figure, panels = pyplot.subplots(2, 4, figsize=(11, 5.2), layout="constrained")
    for panel, work in zip(panels.flat, WORK, strict=True):
        points = [row for row in found if row["name"] == work.name]
        sizes = [int(row["size"].replace(",", "")) for row in points]
        panel.loglog(sizes, [float(row["ours"]) for row in points], marker=".", label="reference", color="#4878a8")
        panel.loglog(sizes, [float(row["theirs"]) for row in points], marker=".", label=work.peer, color="#c1764a")
        panel.set(title=work.name, xlabel=work.unit, ylabel="ms of processor time")
        panel.minorticks_off()
        panel.grid(alpha=0.3)
        panel.legend(frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None})
