"""Profilers that write no file, another one, or at another path (runtime specification, 4.8)."""

from pathlib import Path

from .changes import afterwards, answering, unless


def appended(adapter, call, given):
    path = Path(given["outJsonPath"] or "/")
    before = path.read_bytes() if path.is_file() else b""
    answer = call(**given)
    path.write_bytes(before + path.read_bytes())
    return answer


def in_ascii(adapter, call, given):
    path = Path(given["outJsonPath"])
    path.rename(path.with_name(path.name.encode("ascii", "ignore").decode()))


def is_early(adapter, given):
    """True if work is queued."""
    return any(stream.queued for _, mesh in adapter.runtime.handles.live("mesh") for stream in mesh.streams.values())


PROFILERS = [
    answering("RT-04.8-04", "in_ascii", "leaves letters out of the name", "tessProfilerStop", afterwards(in_ascii)),
    answering("RT-04.8-04", "appended", "writes behind what is there", "tessProfilerStop", appended),
    answering("RT-04.8-04", "early", "refuses while work is queued", "tessProfilerStop", unless(is_early)),
    answering("RT-04.8-05", "of_the_first", "profiles the first context", "tessProfilerStart",
        lambda adapter, call, given: call(context=given["context"] and adapter.runtime.handles.live("context")[0][0])),
]  # fmt: skip
