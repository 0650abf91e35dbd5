"""Runs a small program on four simulated devices and draws its trace, for runtime.md: `python docs/draw_trace.py`."""

from __future__ import annotations

import json
import struct
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tessera_reference.abi.status import Status
from tessera_reference.compilation.images import compile_module
from tessera_reference.mesh.topology import MeshAxes
from tessera_reference.runtime import Runtime
from tessera_reference.runtime.launches import LaunchConfig

SOURCE = """module step {
  kernel backward(x: tensor<65536xfp32>, g: tensor<65536xfp32>) { g = x * x; }
}
"""
COUNT = 65536
HEIGHT, LEFT, RIGHT, TOP = 26, 200, 20, 30
WIDTH = 1000
SVG = "http://www.w3.org/2000/svg"
COLOURS = {"kernel": "#4878a8", "copy": "#7aa661", "collective": "#c1764a", "event": "#444444", "wait": "#bbbbbb"}


def done(answer: Any) -> Any:
    """The output of a call that has to succeed."""
    status, output = answer if isinstance(answer, tuple) else (answer, None)
    assert status is Status.TESS_OK, status.name
    return output


def trace() -> dict[str, Any]:
    """Two halves of a step: while the second is computed, the first is reduced on another stream."""
    runtime = Runtime()
    context = done(runtime.tessInit())
    mesh = done(runtime.tessMeshCreate(context, [0, 1, 2, 3], 4, MeshAxes(dp=4)))
    compute, reduce = (done(runtime.tessStreamCreate(mesh, priority)) for priority in (0, 1))
    image = compile_module(SOURCE, ["sm_90"])
    kernel = done(runtime.tessKernelGet(done(runtime.tessModuleLoad(context, image, len(image))), "backward"))
    host = done(runtime.tessHostAlloc(4 * COUNT, 1))
    done(runtime.tessxHostWrite(host, bytes(4 * COUNT)))
    profiler = done(runtime.tessProfilerStart(context))
    for _ in range(2):
        x, g = (done(runtime.tessMalloc(mesh, 4 * COUNT)) for _ in "xg")
        ready = done(runtime.tessEventCreate())
        done(runtime.tessMemcpyAsync(x, host, 4 * COUNT, 0, compute))
        arguments = struct.pack("<QQ", x, g)
        done(runtime.tessLaunch(kernel, mesh, LaunchConfig((64, 1, 1)), arguments, len(arguments), compute))
        done(runtime.tessEventRecord(ready, compute))
        done(runtime.tessStreamWaitEvent(reduce, ready))
        done(runtime.tessAllReduce(mesh, g, COUNT, 5, 0, "dp", reduce))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        done(runtime.tessProfilerStop(profiler, str(path)))
        read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return read


def drawing(trace: Mapping[str, Any]) -> str:
    """The slices of a trace on their tracks, and the flows between them."""
    events = trace["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    titles = [event for event in events if event["ph"] == "M" and "name" in event["args"]]
    names = {(title["pid"], title.get("tid")): title["args"]["name"] for title in titles}
    tracks = sorted({(part["pid"], part["tid"]) for part in slices})
    begin = min(part["ts"] for part in slices)
    lasting = max(part["ts"] + part["dur"] for part in slices) - begin
    scale = (WIDTH - LEFT - RIGHT) / lasting
    places = {track: TOP + HEIGHT * row for row, track in enumerate(tracks)}

    def x(time: float) -> float:
        return LEFT + (time - begin) * scale

    height = TOP + HEIGHT * len(tracks) + 30
    return "\n".join(
        [
            f'<svg xmlns="{SVG}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
            *_tracks(places, names),
            *_slices(slices, places, x, scale),
            *_flows(events, places, x),
            f'<text x="{LEFT}" y="{height - 10}">0 µs</text>',
            f'<text x="{WIDTH - RIGHT}" y="{height - 10}" text-anchor="end">{lasting:.1f} µs of the machine</text>',
            "</svg>",
        ]
    )


def _tracks(places: Mapping[Any, float], names: Mapping[Any, str]) -> Iterator[str]:
    for (pid, tid), top in places.items():
        owner = names.get((pid, None)) or names.get((pid, 0), str(pid))
        yield f'<text x="{LEFT - 8}" y="{top + 16}" text-anchor="end">{owner}, {names.get((pid, tid), tid)}</text>'
        below = top + HEIGHT - 2
        yield f'<line x1="{LEFT}" y1="{below}" x2="{WIDTH - RIGHT}" y2="{below}" stroke="#dddddd"/>'


def _slices(slices: Any, places: Mapping[Any, float], x: Any, scale: float) -> Iterator[str]:
    for part in slices:
        top, width = places[part["pid"], part["tid"]], max(part["dur"] * scale, 1.5)
        colour = COLOURS.get(part.get("cat", ""), "#999999")
        yield f'<rect x="{x(part["ts"]):.1f}" y="{top + 2}" width="{width:.1f}" height="{HEIGHT - 6}" fill="{colour}"/>'
        if width > 7 * len(part["name"]):
            yield f'<text x="{x(part["ts"]) + 4:.1f}" y="{top + 16}" fill="white">{part["name"]}</text>'


def _flows(events: Any, places: Mapping[Any, float], x: Any) -> Iterator[str]:
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    for end in (event for event in events if event["ph"] == "f"):
        start = starts[end["id"]]
        (x1, y1), (x2, y2) = ((x(event["ts"]), places[event["pid"], event["tid"]] + 12) for event in (start, end))
        bend = f"{x1 + 14:.1f} {y1} {x2 - 14:.1f} {y2}"
        yield f'<path d="M {x1:.1f} {y1} C {bend} {x2:.1f} {y2}" fill="none" stroke="#aa3333"/>'


if __name__ == "__main__":
    (Path(__file__).parent / "images" / "trace.svg").write_text(drawing(trace()) + "\n", encoding="utf-8")
