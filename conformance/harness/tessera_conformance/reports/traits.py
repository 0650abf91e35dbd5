"""Traits: what the calls of a case have in common with those of others, in words, such as `tessMemcpyAsync bytes>=256`.

Of two cases that call one function, one may pass and one fail: the values of their arguments tell them apart. Handles
and addresses tell nothing. A number is told by its value where it is small, else by the thresholds that it reaches, a
program by its operations and dtypes, a tensor by its dtype and the number of its elements. A report keeps them in words
of the cases that went wrong, and as digests of those that pass, which are only counted.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from tessera_conformance.session import Exchange
from tessera_conformance.tensors import Tensor

LARGEST_VALUE = 16
"""The largest number that is told by its value."""
THRESHOLDS = (32, 256, 1024, 4096, 65536)
LARGEST_SIZE = 1 << 32
"""Larger numbers are handles and addresses."""
WORD = 64
"""Bytes or elements that implementations like to move at once."""
_NAME = re.compile(r"[\w.+-]{1,24}")
_TOLD = re.compile(
    r"\b(?:op|dist|schedule|kernel|tile)\s*\.\s*[a-z_]\w*|(?<![a-wyz_])(?:fp|bf|int|complex|tf)\d+(?:_e\dm\d)?|\bbool\b"
)


def traits(exchanges: Iterable[Exchange]) -> list[str]:
    """Return the traits of the calls of a case, sorted; a method itself is one."""
    found: set[str] = set()
    for exchange in exchanges:
        if exchange.method != "session.reset":
            found.add(exchange.method)
            found.update(f"{exchange.method} {trait}" for trait in _of_arguments("", exchange.params))
    return sorted(found)


def _of_arguments(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _of_arguments(f"{path}.{name}" if path else str(name), part)
    elif isinstance(value, Tensor):
        yield f"{path}:{value.dtype}"
        yield from _of_size(f"elements of {path}", value.size)
    elif isinstance(value, bool):
        yield f"{path}={value}".lower()
    elif isinstance(value, int):
        if value < 0:
            yield f"{path}<0"
        if abs(value) <= LARGEST_VALUE:
            yield f"{path}={value}"
        elif 0 < value < LARGEST_SIZE:
            yield from _of_size(path, value)
    elif isinstance(value, str):
        yield from [f"{path}={value}"] if _NAME.fullmatch(value) else _of_text(value)
    elif isinstance(value, list | tuple):
        yield from _of_size(f"number of {path}", len(value))
        for part in value[:LARGEST_VALUE]:
            yield from _of_arguments(path, part)


def _of_size(path: str, size: int) -> Iterator[str]:
    if size <= LARGEST_VALUE:
        yield f"{path}={size}"
    for threshold in THRESHOLDS:
        if size >= threshold:
            yield f"{path}>={threshold}"
            if size % WORD:
                yield f"{path}>={threshold}, no multiple of {WORD}"


@cache
def digest(trait: str) -> str:
    """Return the four characters that stand for a trait of a case that passes: 24 bits, of some thousand traits."""
    return base64.urlsafe_b64encode(hashlib.blake2b(trait.encode(), digest_size=3).digest()).decode()


def digests(names: Sequence[str]) -> str:
    """Return the digests of traits, one behind the other."""
    return "".join(map(digest, names))


def digests_of(kept: str | Sequence[str]) -> list[str]:
    """Return the digests of the traits in the line of a case, which are written as digests or in words."""
    if isinstance(kept, str):
        return [kept[start : start + 4] for start in range(0, len(kept), 4)]
    return [*map(digest, kept)]


@cache
def _of_text(text: str) -> tuple[str, ...]:
    return tuple(sorted({"".join(found.split()) for found in _TOLD.findall(text)}))
