"""Requests whose handles, addresses and images are references to earlier answers, and no numbers.

Asked again, an implementation gives out other handles and other memory. A value of a request is bound to an earlier
answer that gave it under the same name, or that gave out the memory it is in. In the request it is replaced by
`{"$from": [exchange, path], "$plus": offset}`. An address within the bytes of an argument buffer is named beside them:
`{"$bytes": digits, "$addresses": [[place, source], ...]}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tessera_conformance.protocol import Returned
from tessera_conformance.session import Exchange

MEMORY = ("devPtr", "hostPtr")
"""The names of results that are memory; its size is the request's `bytes`."""
LEAST_ADDRESS = 1 << 16
"""Smaller numbers are counts and offsets, or handles by their names."""
LEAST_HANDLE = 1 << 32
"""Larger results are handles and addresses."""
ADDRESS = 8
"""The bytes of an address, little-endian, at a multiple of so many."""
LEAST_TEXT = 16
"""The characters of a text, such as an image, from which on it is no name."""
_DIGITS = re.compile(r"(?:[0-9a-f]{2})+")

_ENDING = re.compile("Free|Destroy|Unload|Shutdown|Stop")

Path = tuple[Any, ...]


@dataclass(frozen=True)
class Source:
    """A place in the result of an exchange."""

    exchange: int
    path: Path


@dataclass
class Sources:
    """All that the exchanges so far gave out."""

    named: dict[tuple[str, Any], Source] = field(default_factory=dict)
    blocks: list[tuple[int, int, Source]] = field(default_factory=list)
    """The first address and the number of bytes of each piece of memory."""

    def add(self, number: int, exchange: Exchange) -> None:
        """Remember what an exchange gave."""
        if not isinstance(exchange.observation, Returned):
            return
        for path, value in _leaves(exchange.observation.value):
            name = path[-1] if path else ""
            self.named[str(name), value] = Source(number, path)
            if name in MEMORY and isinstance(value, int):
                size = exchange.params.get("bytes", 0)
                self.blocks.append((value, size if isinstance(size, int) else 0, Source(number, path)))

    def bind(self, name: str, value: Any) -> Any:
        """Return a value of a request, bound where an earlier answer gave it."""
        if isinstance(value, Mapping):
            return {key: self.bind(str(key), item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.bind(name, item) for item in value]
        if isinstance(value, bool) or not isinstance(value, int | str):
            return value
        source = self.named.get((name, value))
        if source is not None and (isinstance(value, int) or len(value) >= LEAST_TEXT):
            return {"$from": [source.exchange, list(source.path)], "$plus": 0}
        if isinstance(value, int):
            return self._address(value) or value
        return self._addresses_in(value)

    def _address(self, value: int) -> dict[str, Any] | None:
        if value < LEAST_ADDRESS:
            return None
        for start, size, source in reversed(self.blocks):
            if start <= value <= start + size:
                return {"$from": [source.exchange, list(source.path)], "$plus": value - start}
        return None

    def _addresses_in(self, text: str) -> Any:
        if not self.blocks or len(text) % (2 * ADDRESS) or not _DIGITS.fullmatch(text):
            return text
        data = bytes.fromhex(text)
        addresses: list[list[Any]] = []
        for place in range(0, len(data), ADDRESS):
            source = self._address(int.from_bytes(data[place : place + ADDRESS], "little"))
            if source is not None:
                addresses.append([place, source])
        return {"$bytes": text, "$addresses": addresses} if addresses else text


def bound_requests(exchanges: Sequence[Exchange]) -> list[dict[str, Any]]:
    """Return the parameters of each exchange with what earlier answers gave bound to them."""
    sources = Sources()
    requests = []
    for number, exchange in enumerate(exchanges):
        requests.append({name: sources.bind(name, value) for name, value in exchange.params.items()})
        sources.add(number, exchange)
    return requests


def given_out(exchanges: Sequence[Exchange]) -> list[list[Path]]:
    """Return for each exchange the paths of what it gave out: handles, which are large numbers, and memory."""
    results = (
        exchange.observation.value if isinstance(exchange.observation, Returned) else {} for exchange in exchanges
    )
    return [[path for path, value in _leaves(result) if path and _is_given_out(path[-1], value)] for result in results]


def given_twice(exchanges: Sequence[Exchange]) -> bool:
    """True if a handle or memory was given out twice: no request says which of the two it means."""
    live: set[int] = set()
    for exchange in exchanges:
        if isinstance(exchange.observation, Returned):
            if _ENDING.search(exchange.method):
                live -= {value for value in exchange.params.values() if isinstance(value, int)}
            results = ((path, value) for path, value in _leaves(exchange.observation.value) if len(path) == 1)
            handles = [value for path, value in results if isinstance(value, int) and _is_given_out(path[0], value)]
            if len({*handles} & live) or len({*handles}) < len(handles):
                return True
            live |= {value for value in handles if value}
    return False


def _is_given_out(name: Any, value: int | str) -> bool:
    return isinstance(value, int) and (name in MEMORY or value >= LEAST_HANDLE)


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the numbers and texts inside a result with their paths."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, number))
    elif isinstance(value, int | str) and not isinstance(value, bool):
        yield path, value
