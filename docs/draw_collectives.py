"""Draws the pictures and fills the tables of collectives.md: `python docs/draw_collectives.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import log2, log10
from pathlib import Path

from tessera_reference.collectives.links import topology_of
from tessera_reference.collectives.operations import messages, orders
from tessera_reference.collectives.queues import INFLIGHT, Run, data_parallel, idle, in_sequence, simulate
from tessera_reference.collectives.schedules import ALGORITHMS, algorithm
from tessera_reference.collectives.travel import collective_duration

DOCS = Path(__file__).parent
PAGE = DOCS / "collectives.md"
MARKED = re.compile(r"(<!-- drawn: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
SVG = "http://www.w3.org/2000/svg"
COLOURS = {"compute": "#4878a8", "gather": "#7aa661", "scatter": "#c1764a"}
MICROSECOND = 10**6

LAYERS, BYTES, LAYER = 4, 64 << 20, 150 * MICROSECOND
MACHINE = "eight-sm90"

SIZES = [1 << exponent for exponent in range(10, 31, 2)]
LINES = {
    "ring": "#4878a8", "tree": "#7aa661", "halving_doubling": "#c1764a", "hierarchical": "#8a5aa8", "direct": "#444444"
}  # fmt: skip


def main() -> None:
    """Write both pictures and the page."""
    for name, drawing in PICTURES.items():
        (DOCS / "images" / name).write_text(drawing(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def page(text: str) -> str:
    """The page with its tables as they are now."""
    return MARKED.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n{found[3]}", text)


def algorithms() -> str:
    """Return the messages of every algorithm for an all-reduce, and its tree."""
    rows = ["| algorithm | steps | messages | shares a rank sends, at most | tree of the first share of four ranks |"]
    rows += ["|---|---|---|---|---|"]
    for name in ALGORITHMS:
        per_node = 4 if name == "hierarchical" else None
        sent = messages("all_reduce", algorithm(name, 8, per_node), 8)
        loads = [sum(message.elements for message in sent if message.source == rank) for rank in range(8)]
        tree = orders(name, 4, 2 if name == "hierarchical" else None)[0]
        steps = len({message.step for message in sent})
        rows.append(f"| `{name}` | {steps} | {len(sent)} | {max(loads)} | `{tree}` |")
    return "\n".join(rows) + "\n"


@cache
def runs() -> Mapping[str, Run]:
    """A step of training, overlapped and with a barrier after every unit."""
    units = data_parallel(LAYERS, BYTES, LAYER, range(8))
    given = {"with barriers": in_sequence(units), "overlapped": units}
    return {title: simulate(program, topology_of(MACHINE), max_inflight=INFLIGHT) for title, program in given.items()}


def overlap() -> str:
    """Return the durations of the steps, and the idle time."""
    rows = ["| | duration | a device computes nothing for | nothing is in flight for |", "|---|---|---|---|"]
    for title, run in runs().items():
        idles = [idle(run, queue) / len(run.devices) for queue in ("compute", "comm")]
        numbers = " | ".join(f"{duration / MICROSECOND:.1f} µs" for duration in (run.duration, *idles))
        rows.append(f"| {title} | {numbers} |")
    return "\n".join(rows) + "\n"


def roofline() -> str:
    """The bandwidth of an all-reduce by size and algorithm, in GB a second."""
    rows = ["| bytes | " + " | ".join(f"`{name}`" for name in LINES) + " |", "|---|" + "---|" * len(LINES)]
    for size in SIZES:
        rows.append(f"| {size_text(size)} | " + " | ".join(f"{rate(name, size) / 1e9:.2f}" for name in LINES) + " |")
    return "\n".join(rows) + "\n"


def size_text(size: int) -> str:
    """A number of bytes with its unit."""
    unit = next(name for name, least in (("GiB", 30), ("MiB", 20), ("KiB", 10)) if size >= 1 << least)
    return f"{size >> {'GiB': 30, 'MiB': 20, 'KiB': 10}[unit]} {unit}"


@cache
def rate(name: str, size: int) -> float:
    """Bytes of the buffer for each second that an all-reduce of eight devices takes."""
    machine = topology_of(MACHINE)
    devices = tuple(device.id for device in machine.devices)
    return size * 1e12 / collective_duration(machine, devices, "all_reduce", size, name)


TOP, ROW, LEFT, WIDTH = 34, 24, 150, 1000


def timeline_picture() -> str:
    """Both runs on the first device, one above the other, on one scale."""
    longest = max(run.duration for run in runs().values())
    scale = (WIDTH - LEFT - 20) / longest
    height = 2 * (TOP + 2 * ROW) + 40
    lines = [*_head(height)]
    for number, (title, run) in enumerate(runs().items()):
        top = number * (TOP + 2 * ROW) + TOP
        lines.append(f'<text x="{LEFT}" y="{top - 8}" font-weight="bold">{title}</text>')
        for row, queue in enumerate(("compute", "comm")):
            y = top + row * ROW
            label = {"compute": "ComputeQ", "comm": "CommQ"}[queue]
            lines.append(f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">device 0, {label}</text>')
            lines += _bars(run, queue, y, scale)
    lines.append(f'<text x="{LEFT}" y="{height - 12}">0 µs</text>')
    end = f"{longest / MICROSECOND:.0f} µs"
    lines.append(f'<text x="{WIDTH - 20}" y="{height - 12}" text-anchor="end">{end}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _bars(run: Run, queue: str, y: float, scale: float) -> Iterator[str]:
    """A bar for each unit on the first device, from its first start to its last end."""
    slots = [slot for slot in run.slots if (slot.device, slot.queue) == (run.devices[0], queue)]
    for name in {slot.id: None for slot in slots}:
        own = [slot for slot in slots if slot.id == name]
        start, end = min(slot.start for slot in own), max(slot.end for slot in own)
        x, width = LEFT + start * scale, (end - start) * scale
        colour = COLOURS["compute" if queue == "compute" else name.rstrip("0123456789")]
        yield f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 4}" fill="{colour}" stroke="white"/>'
        if width > 7 * len(name):
            yield f'<text x="{x + 4:.1f}" y="{y + 14}" fill="white">{name}</text>'


def roofline_picture() -> str:
    """Bandwidth over size, both logarithmic, a line for each algorithm, and the bandwidth of a link above."""
    height, bottom, right = 420, 380, 800
    link = max(connection.bandwidth for connection in topology_of(MACHINE).links)
    least = min(rate(name, size) for name in LINES for size in SIZES)
    low, high = int(log10(least)), log10(link) + 0.15

    def x(size: int) -> float:
        return 80 + (log2(size) - log2(SIZES[0])) / (log2(SIZES[-1]) - log2(SIZES[0])) * (right - 80)

    def y(bandwidth: float) -> float:
        return bottom - (log10(bandwidth) - low) / (high - low) * (bottom - 20)

    lines = [*_head(height)]
    for exponent in range(low, int(high) + 1):
        level, label = y(10**exponent), f"{10 ** (exponent - 9):g} GB/s"
        lines.append(f'<line x1="80" y1="{level:.1f}" x2="{right}" y2="{level:.1f}" stroke="#dddddd"/>')
        lines.append(f'<text x="72" y="{level + 4:.1f}" text-anchor="end">{label}</text>')
    for size in SIZES[::2]:
        lines.append(f'<text x="{x(size):.1f}" y="{bottom + 20}" text-anchor="middle">{size_text(size)}</text>')
    roof = y(link)
    lines.append(f'<line x1="80" y1="{roof:.1f}" x2="{right}" y2="{roof:.1f}" stroke="#aa3333"/>')
    lines.append(f'<text x="{right + 8}" y="{roof + 4:.1f}">one link</text>')
    lines += _curves(x, y)
    return "\n".join([*lines, "</svg>", ""])


def _curves(x: Callable[[int], float], y: Callable[[float], float]) -> Iterator[str]:
    """The lines of the algorithms; names that would stand on one another are moved down."""
    used = 0.0
    for name in sorted(LINES, key=lambda line: -rate(line, SIZES[-1])):
        points = " ".join(f"{x(size):.1f},{y(rate(name, size)):.1f}" for size in SIZES)
        used = max(y(rate(name, SIZES[-1])) + 4, used + 15)
        yield f'<polyline points="{points}" fill="none" stroke="{LINES[name]}" stroke-width="2"/>'
        yield f'<text x="{x(SIZES[-1]) + 8:.1f}" y="{used:.1f}" fill="{LINES[name]}">{name}</text>'


def _head(height: int) -> Sequence[str]:
    size = f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12"'
    return [f'<svg xmlns="{SVG}" {size}>', f'<rect width="{WIDTH}" height="{height}" fill="white"/>']


TABLES = {"algorithms": algorithms, "overlap": overlap, "roofline": roofline}
PICTURES = {"overlap.svg": timeline_picture, "roofline.svg": roofline_picture}


if __name__ == "__main__":
    main()
