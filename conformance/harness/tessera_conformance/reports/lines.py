"""From what a case did to the JSON of its observation line: each part is encoded once."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from tessera_conformance.check import CheckRecord
from tessera_conformance.observations import Fault, Observation, Returned
from tessera_conformance.protocol import write_outcome
from tessera_conformance.reports.line_defaults import short
from tessera_conformance.reports.observed_line import LineBuilder, ObservedLine
from tessera_conformance.session import Exchange
from tessera_conformance.tensors import Tensor

Entry = TypeVar("Entry")

WHOLE_TENSOR = 2048
"""Tensors of more bytes than this are shown by their first words and their SHA-256."""
HEAD_WORDS = 16
WHOLE_TEXT = 8192
"""Texts of more characters than this, images of modules among them, are shown by their beginning and their SHA-256."""
HEAD_TEXT = 256
DIGEST_DIGITS = 24
"""Hexadecimal digits kept of a SHA-256: 96 bits tell evidence apart, and thousands of digests are most of a report."""
WHOLE_CASE = 128
"""So many checks and exchanges of a case that passes are shown: the first and the last ones."""


def observed_line(
    head: Mapping[str, Any],
    checks: Sequence[CheckRecord],
    exchanges: Sequence[Exchange],
    tail: Mapping[str, Any],
    folder: Path | None,
    *,
    digest: bool = False,
) -> ObservedLine:
    """The line that begins with the fields of the head and ends with those of the tail, the last of which is run.

    With `digest` it has `evidence` instead of checks and exchanges: how many there are, and what they are by digest.
    """
    line = LineBuilder(folder)
    line.add(encoded(short({"record": "observation", **head}))[:-1])
    if digest:
        evidence = _evidence(checks, exchanges, folder)
        start = end = line.length
        line.add(f',"evidence":{encoded(evidence)}')
    else:
        line.add(",")
        start = line.length
        _add_long(line, checks, exchanges)
        end = line.length
    for name, value in tail.items():
        if name == "run":
            line.add_run(encoded(value))
        else:
            line.add(f',"{name}":{encoded(value)}')
    line.add("}")
    return line.line((start, end))


def _add_long(line: LineBuilder, checks: Sequence[CheckRecord], exchanges: Sequence[Exchange]) -> None:
    """The fields `checks` and `exchanges`."""
    line.add(f'"checks":[{",".join(encoded(_check(record)) for record in checks)}],"exchanges":[')
    for position, exchange in enumerate(exchanges):
        line.add(f"{',' if position else ''}{encoded(_exchange(exchange))[:-1]}")
        line.add_run(_run(exchange))
        line.add("}")
    line.add("]")


def _evidence(checks: Sequence[CheckRecord], exchanges: Sequence[Exchange], folder: Path | None) -> dict[str, Any]:
    """Checks by kind, the number of exchanges, and a digest of what the line would hold of both, without run."""
    asked = ",".join(map(encoded, map(_exchange, exchanges)))  # one by one: in some is the image of a module
    long = LineBuilder(folder)
    long.add(f'"checks":{encoded(list(map(_check, checks)))},"exchanges":[{asked}]')
    kinds = Counter(record.kind for record in checks)
    digest = hashlib.sha256(long.text().encode()).hexdigest()[:DIGEST_DIGITS]
    return {"checks": dict(sorted(kinds.items())), "exchanges": len(exchanges), "digest": digest}


def _check(record: CheckRecord) -> dict[str, Any]:
    told = {name: value for name, value in vars(record).items() if name not in ("after", "answer")}
    return told | {"difference": asdict(record.difference) if record.difference is not None else None}


def _exchange(exchange: Exchange) -> dict[str, Any]:
    outcome = _outcome(exchange.observation)
    return {"method": exchange.method, "params": _brief(exchange.params), "observation": outcome}


def _outcome(observation: Observation) -> Mapping[str, Any]:
    if isinstance(observation, Returned):
        return {"returned": _brief(observation.value)}
    if not isinstance(observation, Fault):
        return write_outcome(observation)
    fault = {"kind": observation.kind, "detail": observation.detail, "reproducible": observation.reproducible}
    return {"fault": fault}


def _brief(message: Any) -> Any:
    """A message whose long texts are shown as `plain` shows them: modules are not encoded to be shortened then."""
    if not isinstance(message, dict):
        return message
    return {
        name: plain(value) if isinstance(value, str) and len(value) > WHOLE_TEXT else value
        for name, value in message.items()
    }


def _run(exchange: Exchange) -> str:
    """The field run of an exchange; of a call that answered, one number, for which no encoder is set up."""
    seconds = round(exchange.seconds, 6)
    if isinstance(exchange.observation, Fault) and exchange.observation.stderr:
        return encoded({"seconds": seconds, "stderr": exchange.observation.stderr})
    return f'{{"seconds":{seconds!r}}}'


def encoded(value: Any) -> str:
    """`plain(value)` as JSON; what is short and has nothing unusual in it goes to the encoder as it is."""
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError):
        text = ""
    has_long = len(text) >= BLOCK and (_has_long_number(text) or _has_long_text(text))
    return _ENCODER.encode(plain(value)) if not text or "\\ud" in text or has_long else text


BLOCK = 1000
"""So many digits in a row are looked for, a third of the least number that is shortened."""


def _has_long_number(encoded_text: str) -> bool:
    """Whether JSON may hold 3,000 digits in a row, some thousand of which then fill a block of their own.

    A hundred times as fast as to search for the digits, which was a tenth of a whole run.
    """
    blocks = range(0, len(encoded_text) - BLOCK + 1, BLOCK)
    return any(encoded_text[first : first + BLOCK].isdigit() for first in blocks)


def _has_long_text(encoded_text: str) -> bool:
    """Whether JSON may hold a text to be shortened: more characters than are shown between two quotation marks."""
    if len(encoded_text) <= WHOLE_TEXT:
        return False
    return max(map(len, encoded_text.replace('\\"', "__").split('"'))) > WHOLE_TEXT


def plain(value: Any) -> Any:
    """`value` as JSON: tensors shortened where they are long, and anything unknown by its repr."""
    if isinstance(value, Tensor):
        return shortened(value)
    if isinstance(value, dict | Mapping):  # to ask for a Mapping alone takes ten times as long
        return {plain(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=json.dumps)  # a set has no order of its own
    if isinstance(value, str):
        text = value.encode("utf-8", "backslashreplace").decode()  # half of a surrogate pair has no UTF-8 form
        return text if len(text) <= WHOLE_TEXT else _beginning(text)
    if isinstance(value, list | Sequence) and not isinstance(value, bytes):
        return [plain(item) for item in value]
    if isinstance(value, Fraction):
        return str(value)
    if value is None or (isinstance(value, int) and value.bit_length() < 10_000):
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    return hex(value) if isinstance(value, int) else repr(value)


def _beginning(text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{text[:HEAD_TEXT]}... ({len(text)} characters, SHA-256 {digest})"


_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=plain)


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
