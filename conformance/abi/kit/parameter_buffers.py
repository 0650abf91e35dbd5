"""Parameter buffers: the specification's sample, signatures, and the layout that an implementation gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tessera_conformance.check import Check
from tessera_conformance.oracle.parameter_buffers import Place
from tessera_conformance.session import Implementation

__all__ = ["SAMPLE", "Found", "layout_of", "signature"]

SAMPLE = "flash_attention(Q*, K*, V*, O*, int B, int H, int L, int D, float scale)"
"""The kernel of the runtime specification, 10.1."""


@dataclass(frozen=True)
class Found:
    """The layout that an implementation gives a signature."""

    places: tuple[Place, ...]
    end_of_last_argument: int
    size: int
    alignment: int


def signature(*arguments: tuple[str, str]) -> str:
    """The signature of a kernel k whose arguments have these names and types."""
    return f"k({', '.join(f'{name}*' if type_ == 'ptr' else f'{type_} {name}' for name, type_ in arguments)})"


def layout_of(impl: Implementation, check: Check, text: str) -> Found:
    """Return the implementation's layout of a signature."""
    answer = check.returns(impl.abi.parameter_layout(signature=text))
    places: Sequence[Place] = [Place(**parameter) for parameter in answer["parameters"]]
    return Found(tuple(places), answer["end_of_last_argument"], answer["size"], answer["alignment"])
