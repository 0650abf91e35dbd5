"""Vectors of the parameter buffer: where the arguments of a kernel lie, and their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tessera_conformance.vectors.building import Question
from tessera_conformance.vectors.model import Call, Check

LAYOUT_CLAUSES = ("RT-10.1-01", "RT-10.1-03", "RT-10.1-04")
BUFFER_CLAUSES = ("RT-10.1-01", "RT-10.1-02")


def layout(signature: str) -> Question:
    """`abi.parameter_layout`; the outputs are the offsets, the sizes, and the ends of arguments and buffer."""
    arguments = {"signature": signature}
    return Question(
        Call("abi.parameter_layout", arguments), Check("oracle.parameter_layout", (), arguments), LAYOUT_CLAUSES
    )


def buffer(signature: str, values: Sequence[Any]) -> Question:
    """`abi.pack`; the output is the bytes of the buffer."""
    arguments = {"signature": signature, "values": list(values)}
    return Question(Call("abi.pack", arguments), Check("oracle.parameter_buffer", (), arguments), BUFFER_CLAUSES)
