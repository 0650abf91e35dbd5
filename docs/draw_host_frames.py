"""Writes the attention example as messages into `docs/host_io.md`, between marks: `python docs/draw_host_frames.py`.

`tests/host_io/test_messages.py` holds them current.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tessera_reference.host_io.endpoint import Endpoint
from tessera_reference.runtime.bridged import run_example

PAGE = Path(__file__).with_name("host_io.md")
BEGIN, END = "<!-- attention as messages -->\n", "<!-- end -->"


def page(before: str) -> str:
    """The page with the frames of today."""
    head, rest = before.split(BEGIN)
    return head + BEGIN + "\n".join(["", "```text", *lines(), "```", "", ""]) + END + rest.split(END, 1)[1]


def lines() -> Iterator[str]:
    """The frames, without those that differ from another in the PE alone; each shortened to a line, or few."""
    for exchange in run_example("attention", Endpoint()).exchanges:
        value = json.loads(exchange.frame)
        if 1 in (value.get("dst_pe"), value.get("src_pe")):
            continue
        del value["target_device"]
        if value["msg_type"] == "KernelLaunch":
            yield from launch(value)
        else:
            yield json.dumps(value)


def launch(value: dict[str, Any]) -> Iterator[str]:
    """A launch with the first of its tensors."""
    kernel, (first, *others) = value.pop("kernel_ref"), value.pop("args")
    shards = ",\n    ".join(map(json.dumps, first["tensor_pa_map"]["shards"]))
    yield f"{json.dumps(value)[:-1]},"
    yield f'  "kernel_ref": {json.dumps(kernel)},'
    yield f'  "args": [{{"arg_kind": "{first["arg_kind"]}", "tensor_pa_map": {{"shards": ['
    yield f"    {shards}]}}}}, and {len(others)} more]}}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
