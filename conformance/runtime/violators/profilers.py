"""Profilers that write no file, another one, or at another path (runtime specification, 4.8)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tessera_conformance.adapter import Refusal

from .changes import INVALID, Call, Given, answering


def afterwards(change: Callable[[Path], object]) -> Any:
    """Return a call that changes the written file."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        result = call(**given)
        change(Path(given["outJsonPath"]))
        return result

    return answer


def appended(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    path = Path(given["outJsonPath"] or "/")
    before = path.read_bytes() if path.is_file() else b""
    answer = call(**given)
    path.write_bytes(before + path.read_bytes())
    return answer


def beside(path: Path) -> None:
    path.with_name(f"{path.name}.tmp").write_text("")


def in_ascii(path: Path) -> None:
    path.rename(path.with_name(path.name.encode("ascii", "ignore").decode()))


def early(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    if any(stream.queued for _, mesh in adapter.runtime.handles.live("mesh") for stream in mesh.streams.values()):
        raise Refusal(INVALID, "call", "tessProfilerStop: work is queued")
    return call(**given)


STOPPED = [
    answering("RT-04.8-04", "in_ascii", "leaves letters out of the name", "tessProfilerStop", afterwards(in_ascii)),
    answering("RT-04.8-04", "appended", "writes behind what is there", "tessProfilerStop", appended),
    answering("RT-04.8-04", "early", "refuses while work is queued", "tessProfilerStop", early),
]


def once(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    if getattr(adapter.runtime, "profiled", False):
        raise Refusal(INVALID, "call", "tessProfilerStart: once")
    adapter.runtime.profiled = True
    return call(**given)


def of_the_first(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    return call(context=adapter.runtime.handles.live("context")[0][0]) if given["context"] else call(**given)


STARTED = [
    answering("RT-04.8-05", "of_the_first", "profiles the first context", "tessProfilerStart", of_the_first),
]
