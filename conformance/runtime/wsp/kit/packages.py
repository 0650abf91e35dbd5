"""Packages in their published form: read, altered, and sealed with a new hash (section 7.2)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from .programs import (
    channel,
    cond,
    consume,
    filler,
    instruction,
    kernel,
    load,
    op,
    process,
    program,
    repeat,
    schedule,
    send,
    slot,
    symbol,
    symbol_of,
    task,
    tensor,
    wait,
)
from .runs import read_by

ABI = "v10.0"


def example() -> dict[str, Any]:
    """Return a program with two of each part of a package."""
    return program(
        process("producer", repeat(symbol("count"), send("left", op("add", slot("i"), symbol("first"))), index="i")),
        process(
            "consumer",
            consume("left", "x", task("fill", "t", slot("x"), key=slot("x"), signals=["right"])),
            wait(),
            load("seen", "t", 2),
            cond(op("gt", slot("seen"), 8), [task("double", "t", "u")]),
        ),
        process("listener", consume("right", "done")),
        channels=[channel("left"), channel("right", 3, 5)],
        kernels=[
            filler("fill", 5, per_element=2),
            kernel(
                "double",
                {"a": "tensor", "b": "tensor"},
                [instruction("add", "b", "a", "a")],
                cycles=7,
                executor="matrix",
            ),
        ],
        tensors=[tensor("t", "i32", [1, -2, 3]), tensor("u", "i32", [4, 5, 6])],
        symbols=[symbol_of("count", 4), symbol_of("first", 6, 16)],
        schedule=schedule("round_robin", 3, 7, heap_arena=100),
        name="example",
    )


def canonical(document: Mapping[str, Any]) -> str:
    """Return the canonical text: sorted members, no blanks, one line feed at the end."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"


def content_hash(document: Mapping[str, Any]) -> str:
    """Return the hash of the canonical bytes without the hash itself."""
    content = {name: value for name, value in document.items() if name != "hash"}
    return f"sha256:{hashlib.sha256(canonical(content).encode()).hexdigest()}"


def sealed(document: Mapping[str, Any]) -> str:
    """Return a package with the hash of its content."""
    return canonical({**document, "hash": content_hash(document)})


def published(package: str) -> dict[str, Any] | None:
    """Return the document of a package in the published form; None for a form of the implementation's own."""
    try:
        document = json.loads(package)
    except ValueError:
        return None
    return document if isinstance(document, dict) and len(PARTS & document.keys()) > 1 else None


PARTS = frozenset({"format", "kernels", "schedule", "csp"})
"""Members of the published form: a JSON object with two of them is one."""


def document_of(check: Any, package: str) -> dict[str, Any]:
    """Return the document of a package; a case that reads one presumes the published form."""
    document = published(package)
    form = "the package has the form of schemas/wsp_package.schema.json, in which its content can be read"
    check.given(document is not None, form, package[:16])
    members: dict[str, Any] = read_by(check, document)
    return members


def altered(check: Any, package: str, change: Callable[[dict[str, Any]], Any], seal: bool = True) -> str:
    """Return a package whose document was changed in place, with a new hash or, without `seal`, the old one."""
    document = document_of(check, package)
    change(document)
    return sealed(document) if seal else canonical(document)


def setting(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return a change of the member at a path like `/csp/channels/0/capacity`; None removes it."""

    def change(document: dict[str, Any]) -> None:
        *steps, last = [int(word) if word.isdigit() else word for word in path.strip("/").split("/")]
        target: Any = document
        for step in steps:
            target = target[step]
        if value is not None:
            target[last] = value
        elif target[last] is not None:
            del target[last]

    return change
