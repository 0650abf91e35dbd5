"""From what a case did to the JSON of its observation line."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any, TypeVar

from tessera_conformance.check import CheckRecord
from tessera_conformance.observations import Fault
from tessera_conformance.protocol import write_outcome
from tessera_conformance.session import Exchange
from tessera_conformance.tensors import Tensor

Entry = TypeVar("Entry")

WHOLE_TENSOR = 2048
"""Tensors of more bytes than this are shown by their first words and their SHA-256."""
HEAD_WORDS = 16
WHOLE_TEXT = 8192
"""Texts of more characters than this, images of modules among them, are shown by their beginning and their SHA-256."""
HEAD_TEXT = 256
WHOLE_CASE = 128
"""So many checks and exchanges of a case that passes are shown: the first and the last ones."""


def check_line(record: CheckRecord) -> dict[str, Any]:
    """A judged assertion."""
    return {
        "kind": record.kind,
        "passed": record.passed,
        "what": record.what,
        "expected": plain(record.expected),
        "actual": plain(record.actual),
        "difference": plain(asdict(record.difference)) if record.difference is not None else None,
    }


def exchange_line(exchange: Exchange) -> dict[str, Any]:
    """A request and what came of it."""
    observation = exchange.observation
    run: dict[str, Any] = {"seconds": round(exchange.seconds, 6)}
    if isinstance(observation, Fault):
        told: Mapping[str, Any] = {
            "fault": {
                "kind": observation.kind,
                "detail": observation.detail,
                "reproducible": observation.reproducible,
            }
        }
        if observation.stderr:
            run["stderr"] = plain(observation.stderr)
    else:
        told = write_outcome(observation)
    return {"method": exchange.method, "params": plain(exchange.params), "observation": plain(told), "run": run}


def plain(value: Any) -> Any:
    """`value` as JSON: tensors shortened where they are long, and anything unknown by its repr."""
    if isinstance(value, Tensor):
        return shortened(value)
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, str):
        text = value.encode("utf-8", "backslashreplace").decode()  # half of a surrogate pair has no UTF-8 form
        return text if len(text) <= WHOLE_TEXT else _beginning(text)
    if value is None or (isinstance(value, int) and value.bit_length() < 10_000):
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    return hex(value) if isinstance(value, int) else repr(value)


def _beginning(text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{text[:HEAD_TEXT]}... ({len(text)} characters, SHA-256 {digest})"


def ends_of(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The first and the last entries of a long list."""
    half = WHOLE_CASE // 2
    return entries if len(entries) <= WHOLE_CASE else [*entries[:half], *entries[-half:]]


def shortened(tensor: Tensor) -> dict[str, Any]:
    """A tensor's message, or its beginning and SHA-256 where it is long."""
    if len(tensor.data) <= WHOLE_TENSOR:
        return tensor.to_message()
    head = tensor.bits()[: 2 * tensor.format.word_bytes * HEAD_WORDS]
    body = {"dtype": tensor.dtype, "shape": list(tensor.shape), "head": head, "sha256": tensor.sha256}
    return {"$tensor": body}
