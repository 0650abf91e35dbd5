"""Programs with sends and receives (collectives specification, 2.1 and 8; AMB-COLL-59)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.protocol import Observation
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted

from .programs import BRANCHED, awaits, branch, issue, program, returns


def send(result: str, value: str, attributes: str) -> str:
    """Return a send in the form of section 9.1."""
    return issue(result, value, attributes, "send")


def recv(result: str, buffer: str, attributes: str) -> str:
    """Return a receive into a value with the type of a buffer."""
    return issue(result, buffer, attributes, "recv")


def rows_of(ranks: int, dtype: str = "fp32", count: int = 8) -> list[Tensor]:
    """Return each rank's input: bits of its own."""
    return [counted(dtype, (count,), seed=1600 + rank) for rank in range(ranks)]


def run(impl: Any, text: str, inputs: list[dict[str, Tensor]], **more: Any) -> Observation:
    """Return the observation of @f on every rank."""
    answer: Observation = impl.collectives.execute(text=text, function="f", ranks=inputs, **more)
    return answer


def from_first_to_last(attributes: str = "", mesh: str = "dp=2", first: str = "peer=1", last: str = "peer=0") -> str:
    """Return a program in which ranks with %c send %x and the others receive it; every rank returns it."""
    more = f", {attributes}" if attributes else ""
    then = [send("%f", "%x", first + more), awaits("%y", "%f")]
    otherwise = [recv("%g", "%x", last + more), awaits("%z", "%g")]
    return program(branch(then, otherwise), returns("%r"), takes=BRANCHED, mesh=mesh)
