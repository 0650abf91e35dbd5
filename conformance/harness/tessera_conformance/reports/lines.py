"""The JSON of an observation line: encoded once as text from what a case did, and parsed on demand."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from sys import intern
from types import MappingProxyType
from typing import Any, TypeVar

from tessera_conformance.check import CheckRecord
from tessera_conformance.protocol import Fault, Returned, write_outcome
from tessera_conformance.session import Exchange
from tessera_conformance.tensors import Tensor
from tessera_conformance.verdicts import LEVELS

# The short form of lines: observations omit fields with their default, plans share the common parts of case ids.
#
# The file holds short lines; `journal.read` returns whole ones.


DEFAULTS: Mapping[str, Any] = {
    "levels": [*LEVELS],
    "needs": [],
    "judges": ["effect"],
    "disposition": "none",
    "reason": "",
    "cause": "",
    "interpretation": "",
    "leans": [],
    "cites": [],
    "methods": [],
    "traits": [],
}
"""By field, the value that is not written."""
EVIDENCE = ("digests", "all")
"""The kinds of evidence that a report may keep of cases that pass."""
LONG = ("checks", "exchanges")
"""The fields that a line with `evidence` does not have: it has their counts and a digest instead."""


def short(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line as it is written to the file."""
    if line.get("record") == "plan":
        folders: dict[str, list[str]] = {}  # the last parts of ids by the part before them: most tests have many cases
        for case in line["cases"]:
            before, slash, last = case.rpartition("/")
            folders.setdefault(before + slash, []).append(last)
        return {**line, "cases": folders}
    if line.get("record") != "observation":
        return dict(line)
    omitted = {name for name, value in DEFAULTS.items() if line.get(name) == value}
    omitted |= {*LONG} if "evidence" in line else set()
    return {name: value for name, value in line.items() if name not in omitted}


def whole(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line with every field, from its written form."""
    if line["record"] == "plan":
        return {**line, "cases": sorted(folder + last for folder, names in line["cases"].items() for last in names)}
    if line["record"] != "observation":
        return dict(line)
    added = {name: value for name, value in DEFAULTS.items() if name not in line}
    return {**line, **added, **{name: [] for name in LONG if name not in line}}


# An observation line as a run keeps it: encoded once, as text, and parsed on demand.
#
# Checks and exchanges are nearly all of a report, so that the text is kept compressed. The same text is written to the
# file and sealed.


FOLDER = "<folder>"
"""The placeholder of the folder of a case's files, which is another one in every run."""


class ObservedLine(Mapping[str, Any]):
    """The line of one case."""

    __slots__ = ("_packed", "_parsed")

    def __init__(self, text: str) -> None:
        self._packed = zlib.compress(text.encode(), 1)
        self._parsed: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The whole line."""
        return zlib.decompress(self._packed).decode()

    @property
    def text_without_run(self) -> str:
        """The text in canonical spelling, without parts that differ between two runs of the same behaviour."""
        return _ENCODER.encode(short(without_run(whole(json.loads(self.text)))))

    @property
    def _short(self) -> dict[str, Any]:
        if self._parsed is None:
            line = whole(json.loads(self.text))
            self._parsed = {intern(key): value for key, value in line.items() if key not in LONG}
        return self._parsed

    def __getitem__(self, key: str) -> Any:
        return self._short[key] if key in self._short else _long_fields(self._packed)[key]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._short, *LONG])

    def __len__(self) -> int:
        return len(self._short) + len(LONG)


@lru_cache(maxsize=1)  # readers ask for both in turn
def _long_fields(packed: bytes) -> dict[str, Any]:
    """Return the checks and the exchanges of a line."""
    line = json.loads(zlib.decompress(packed))
    return {name: line.get(name, []) for name in LONG}


def without_run(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line without its fields `run`, which differ between two runs of the same behaviour."""
    result = {key: value for key, value in line.items() if key != "run"}
    if "exchanges" in result:
        result["exchanges"] = [without_run(exchange) for exchange in result["exchanges"]]
    return result


# Traits: features of a case's calls, in words, that other cases may share, such as `tessMemcpyAsync bytes>=256`.
#
# Of two cases that call one function, one may pass and one fail: the values of their arguments distinguish them.
# Handles and addresses have no traits. A number is shown by its value if it is small, else by the thresholds that it
# reaches. A program is shown by its operations and dtypes, a tensor by its dtype and number of elements. A report keeps
# the traits of failed cases in words, and those of passed cases, which are only counted, as digests.


LARGEST_VALUE = 16
"""The largest number that is shown by its value."""
THRESHOLDS = (32, 256, 1024, 4096, 65536)
LARGEST_SIZE = 1 << 32
"""The least number that is taken for a handle or an address."""
WORD = 64
"""Bytes or elements that implementations often move at once."""
_NAME = re.compile(r"[\w.+-]{1,24}")
_TOLD = re.compile(
    r"\b(?:op|dist|schedule|kernel|tile)\s*\.\s*[a-z_]\w*|(?<![a-wyz_])(?:fp|bf|int|complex|tf)\d+(?:_e\dm\d)?|\bbool\b"
)

_HEX = re.compile("[0-9a-f]*")
_TOLD_IN_HEX = re.compile(r"bf(?<![a-wyz_]bf)\d+")
"""Finds in hex digits, as images of modules are, what `_TOLD` finds; ten times as fast."""


def traits(exchanges: Iterable[Exchange]) -> list[str]:
    """Return the traits of the calls of a case, sorted; a method itself is one."""
    names: set[str] = set()
    for exchange in exchanges:
        if exchange.method != "session.reset":
            names.add(exchange.method)
            of_arguments: set[str] = set()
            _add_of_arguments(of_arguments, "", exchange.params)
            names.update(f"{exchange.method} {trait}" for trait in of_arguments)
    return sorted(names)


def _add_of_arguments(names: set[str], path: str, value: Any) -> None:
    """Add the traits of an argument, or of a part of it at this path."""
    if isinstance(value, str):
        names.update([f"{path}={value}"] if _NAME.fullmatch(value) else _of_text(value))
    elif isinstance(value, bool):
        names.add(f"{path}={value}".lower())
    elif isinstance(value, int):
        if value < 0:
            names.add(f"{path}<0")
        if abs(value) <= LARGEST_VALUE:
            names.add(f"{path}={value}")
        elif 0 < value < LARGEST_SIZE:
            names.update(_of_size(path, value))
    elif isinstance(value, list | tuple):
        names.update(_of_size(f"number of {path}", len(value)))
        for part in value[:LARGEST_VALUE]:
            _add_of_arguments(names, path, part)
    elif isinstance(value, Tensor):
        names.add(f"{path}:{value.dtype}")
        names.update(_of_size(f"elements of {path}", value.size))
    elif isinstance(value, Mapping):
        for name, part in value.items():
            _add_of_arguments(names, f"{path}.{name}" if path else str(name), part)


@lru_cache(maxsize=1 << 14)
def _of_size(path: str, size: int) -> tuple[str, ...]:
    names = [f"{path}={size}"] if size <= LARGEST_VALUE else []
    for threshold in THRESHOLDS:
        if size >= threshold:
            names.append(f"{path}>={threshold}")
            if size % WORD:
                names.append(f"{path}>={threshold}, no multiple of {WORD}")
    return tuple(names)


@cache
def digest(trait: str) -> str:
    """Return the four characters for a trait of a passing case: 24 bits for some thousands of traits."""
    return base64.urlsafe_b64encode(hashlib.blake2b(trait.encode(), digest_size=3).digest()).decode()


def digests(names: Sequence[str]) -> str:
    """Return the concatenated digests of traits."""
    return "".join(map(digest, names))


def digests_of(digests: str | Sequence[str]) -> list[str]:
    """Return the digests of the traits in the line of a case, which are written as digests or in words."""
    if isinstance(digests, str):
        return [digests[start : start + 4] for start in range(0, len(digests), 4)]
    return [*map(digest, digests)]


@cache
def _of_text(text: str) -> tuple[str, ...]:
    pattern = _TOLD_IN_HEX if _HEX.fullmatch(text) else _TOLD
    return tuple(sorted({"".join(found.split()) for found in pattern.findall(text)}))


# From what a case did to the JSON of its observation line: each part is encoded once.


Entry = TypeVar("Entry")

WHOLE_TENSOR = 2048
"""Tensors of more bytes than this are shown by their first words and their SHA-256."""
HEAD_WORDS = 16
WHOLE_TEXT = 8192
"""Texts of more characters than this, images of modules among them, are shown by their beginning and their SHA-256."""
HEAD_TEXT = 256
DIGEST_DIGITS = 24
"""Hexadecimal digits kept of a SHA-256: 96 bits distinguish evidence, and thousands of digests are most of a report."""
WHOLE_CASE = 128
"""The number of checks and exchanges shown of a passing case: the first and the last ones."""


def observed_line(
    head: Mapping[str, Any],
    checks: Sequence[CheckRecord],
    exchanges: Sequence[Exchange],
    tail: Mapping[str, Any],
    folder: Path | None,
    *,
    digest: bool = False,
    whole: bool = False,
) -> ObservedLine:
    """Return the line with the head's fields first and the tail's last.

    With `digest` it has `evidence` instead of checks and exchanges: their numbers and their digest. With `whole` no
    answer is shortened, so that the case can be replayed.
    """
    parts = [encoded(short({"record": "observation", **head}))[:-1]]
    if digest:
        parts.append(f'"evidence":{encoded(_evidence(checks, exchanges, folder))}')
    else:
        parts.append(_long(checks, (_exchange(exchange, _run(exchange), whole) for exchange in exchanges)))
    parts += [f'"{name}":{encoded(value)}' for name, value in tail.items()]
    return ObservedLine(_without_folder(f"{','.join(parts)}}}", folder))


def _long(checks: Sequence[CheckRecord], exchanges: Iterable[str]) -> str:
    """Return the fields `checks` and `exchanges`; the exchanges are JSON already."""
    return f'"checks":[{",".join(encoded(_check(record)) for record in checks)}],"exchanges":[{",".join(exchanges)}]'


def _without_folder(text: str, folder: Path | None) -> str:
    """Return JSON with the placeholder instead of the path of the folder of the case's files."""
    return text if folder is None else text.replace(json.dumps(str(folder))[1:-1], FOLDER)


def _evidence(checks: Sequence[CheckRecord], exchanges: Sequence[Exchange], folder: Path | None) -> dict[str, Any]:
    """Return checks by kind, the number of exchanges, and a digest of both as the line would hold them, without run."""
    text = _long(checks, map(_exchange, exchanges))
    kinds = Counter(record.kind for record in checks)
    digest = hashlib.sha256(_without_folder(text, folder).encode()).hexdigest()[:DIGEST_DIGITS]
    return {"checks": dict(sorted(kinds.items())), "exchanges": len(exchanges), "digest": digest}


def _check(record: CheckRecord) -> dict[str, Any]:
    fields = {name: value for name, value in vars(record).items() if name not in ("after", "answer")}
    return fields | {"difference": asdict(record.difference) if record.difference is not None else None}


def _exchange(exchange: Exchange, run: Mapping[str, Any] = MappingProxyType({}), whole: bool = False) -> str:
    """Return an exchange as JSON.

    With `whole` the answer is not shortened; long values of the request are, since a test makes them again.
    """
    request = {"method": exchange.method, "params": _brief(exchange.params)}
    answer = exchange.observation
    if isinstance(answer, Fault):
        fault = {"kind": answer.kind, "detail": answer.detail, "reproducible": answer.reproducible}
        return encoded({**request, "observation": {"fault": fault}, **run})
    if not isinstance(answer, Returned):
        return encoded({**request, "observation": write_outcome(answer), **run})
    if whole:
        returned = {"returned": plain(answer.value, whole=True)}
        return _ENCODER.encode({**plain(request), "observation": returned, **run})
    return encoded({**request, "observation": {"returned": _brief(answer.value)}, **run})


def _run(exchange: Exchange) -> dict[str, Any]:
    """Return the field of an exchange that differs in every run."""
    answer = exchange.observation
    stderr = {"stderr": answer.stderr} if isinstance(answer, Fault) and answer.stderr else {}
    return {"run": {"seconds": round(exchange.seconds, 6), **stderr}}


def _brief(message: Any) -> Any:
    """Return a message with long texts shortened as `plain` does, so that modules are not encoded first."""
    if not isinstance(message, dict):
        return message
    long = {name: plain(value) for name, value in message.items() if isinstance(value, str) and len(value) > WHOLE_TEXT}
    return message | long


def encoded(value: Any) -> str:
    """Return `plain(value)` as JSON; a short value without special characters is encoded as it is."""
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError):
        text = ""
    # 3,000 digits, from which on numbers are shortened, fill a block; a search for them takes a hundred times as long
    blocks = (text[first : first + BLOCK] for first in range(0, len(text) - BLOCK + 1, BLOCK))
    long_number = len(text) >= BLOCK and any(block.isdigit() for block in blocks)
    is_long = long_number or has_long_text(text, WHOLE_TEXT)
    return _ENCODER.encode(plain(value)) if not text or "\\ud" in text or is_long else text


BLOCK = 1000
"""The block size of the search for digits, a third of the length from which numbers are shortened."""


def has_long_text(encoded_text: str, longest: int) -> bool:
    """Return True if JSON may hold a text of more characters: if two quotation marks are so far apart."""
    return len(encoded_text) > longest and max(map(len, encoded_text.replace('\\"', "__").split('"'))) > longest


def plain(value: Any, whole: bool = False) -> Any:
    """Return `value` as JSON data: long tensors and texts shortened, and values of unknown types by their repr."""
    if isinstance(value, Tensor):
        return value.to_message() if whole else shortened(value)
    if isinstance(value, dict | Mapping):  # a test for Mapping alone takes ten times as long
        return {plain(str(key)): plain(item, whole) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=json.dumps)  # a set has no order of its own
    if isinstance(value, str):
        text = value.encode("utf-8", "backslashreplace").decode()  # half of a surrogate pair has no UTF-8 form
        if whole or len(text) <= WHOLE_TEXT:
            return text
        return f"{text[:HEAD_TEXT]}... ({len(text)} characters, SHA-256 {hashlib.sha256(text.encode()).hexdigest()})"
    if isinstance(value, list | Sequence) and not isinstance(value, bytes):
        return [plain(item, whole) for item in value]
    if isinstance(value, Fraction):
        return str(value)
    if value is None or (isinstance(value, int) and value.bit_length() < 10_000):
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    return hex(value) if isinstance(value, int) else repr(value)


_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=plain)


def ends_of(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return the first and the last entries of a long list."""
    half = WHOLE_CASE // 2
    return entries if len(entries) <= WHOLE_CASE else [*entries[:half], *entries[-half:]]


def shortened(tensor: Tensor) -> dict[str, Any]:
    """Return a tensor's message; of a long tensor, its beginning and SHA-256."""
    if len(tensor.data) <= WHOLE_TENSOR:
        return tensor.to_message()
    head = tensor.bits()[: 2 * tensor.format.word_bytes * HEAD_WORDS]
    body = {"dtype": tensor.dtype, "shape": list(tensor.shape), "head": head, "sha256": tensor.sha256}
    return {"$tensor": body}
