"""Parameter buffers: the specification's sample, signatures, and the layout of an implementation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tessera_conformance.check import Check
from tessera_conformance.oracle.parameter_buffers import Place
from tessera_conformance.session import Implementation
from tessera_conformance.vectors.building import Question
from tessera_conformance.vectors.files import Call
from tessera_conformance.vectors.files import Check as Confirmation

__all__ = ["SAMPLE", "Found", "buffer", "layout", "layout_of", "signature"]

SAMPLE = "flash_attention(Q*, K*, V*, O*, int B, int H, int L, int D, float scale)"
"""The kernel of the runtime specification, 10.1."""


@dataclass(frozen=True)
class Found:
    """The layout of a signature by an implementation."""

    places: tuple[Place, ...]
    end_of_last_argument: int
    size: int
    alignment: int


def signature(*arguments: tuple[str, str]) -> str:
    """Return the signature of a kernel k whose arguments have these names and types."""
    return f"k({', '.join(f'{name}*' if type_ == 'ptr' else f'{type_} {name}' for name, type_ in arguments)})"


def layout_of(impl: Implementation, check: Check, text: str) -> Found:
    """Return the implementation's layout of a signature."""
    answer = check.returns(impl.abi.parameter_layout(signature=text))
    places: Sequence[Place] = [Place(**parameter) for parameter in answer["parameters"]]
    return Found(tuple(places), answer["end_of_last_argument"], answer["size"], answer["alignment"])


# The questions of golden vectors.


def layout(text: str) -> Question:
    """`abi.parameter_layout`; the outputs are the offsets, the sizes, and the ends of arguments and buffer."""
    return _question("parameter_layout", "parameter_layout", ("RT-10.1-01", "RT-10.1-03", "RT-10.1-04"), signature=text)


def buffer(text: str, values: Sequence[Any]) -> Question:
    """`abi.pack`; the output is the bytes of the buffer."""
    clauses = ("RT-10.1-01", "RT-10.1-02")
    return _question("pack", "parameter_buffer", clauses, signature=text, values=list(values))


def _question(method: str, function: str, clauses: tuple[str, ...], **arguments: Any) -> Question:
    """Return a method and a function of the oracle that take the same arguments."""
    return Question(Call(f"abi.{method}", arguments), Confirmation(f"oracle.{function}", (), arguments), clauses)
