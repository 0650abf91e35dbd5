"""Parameter buffers: the rule of the runtime specification, 10.1, and the bytes of arguments (RT-10.1-01 to -04).

Each argument is at the next multiple of the smaller of its size and eight; the whole is a multiple of eight. Integers
and pointers are little-endian; numbers are rounded once from their exact value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tessera_conformance.oracle.exact import FORMATS, BadArgument, value_of
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

SIZES = {"ptr": 8} | {name: entry.word_bytes * entry.words for name, entry in ELEMENT_FORMATS.items() if name != "tf32"}
"""The types of arguments and their sizes."""

SPELLINGS = {"int": "int32", "float": "fp32", "double": "fp64"}
"""C names of some dtypes."""


@dataclass(frozen=True)
class Place:
    """The place of an argument."""

    name: str
    type: str
    offset: int
    size: int


@dataclass(frozen=True)
class Layout:
    """A parameter buffer: its arguments in declared order, the end of the last one, and its size."""

    places: tuple[Place, ...]
    end_of_last_argument: int
    size: int


def parameter_layout(*, signature: str) -> tuple[Tensor, ...]:
    """The offsets of the arguments, their sizes, and the end of the last one with the size of the buffer."""
    layout = by_the_rule(arguments_of(signature))
    rows = (
        [place.offset for place in layout.places],
        [place.size for place in layout.places],
        [layout.end_of_last_argument, layout.size],
    )
    return tuple(Tensor.from_words("int32", (len(row),), row) for row in rows)


def parameter_buffer(*, signature: str, values: Sequence[Any]) -> Tensor:
    """The bytes of a buffer of these values, padding as zeros."""
    layout = by_the_rule(arguments_of(signature))
    if len(values) != len(layout.places):
        raise BadArgument("values", f"{len(values)} of them", f"{len(layout.places)}, one an argument")
    buffer = bytearray(layout.size)
    for place, value in zip(layout.places, values, strict=True):
        buffer[place.offset : place.offset + place.size] = _bytes(place, value)
    return Tensor.from_words("int8", (len(buffer),), list(buffer))


def by_the_rule(arguments: Sequence[tuple[str, str]]) -> Layout:
    """Return the layout of arguments, each a name and a type."""
    places: list[Place] = []
    end = 0
    for name, type_ in arguments:
        size = SIZES[type_]
        offset = _next_multiple(end, min(size, 8))
        places.append(Place(name, type_, offset, size))
        end = offset + size
    return Layout(tuple(places), end, _next_multiple(end, 8))


def arguments_of(signature: str) -> list[tuple[str, str]]:
    """Return name and type of each argument of a signature as the suite writes them: `x*` or `int n`."""
    inside = signature[signature.index("(") + 1 : signature.rindex(")")]
    arguments = []
    for text in filter(None, map(str.strip, inside.split(","))):
        if text.endswith("*"):
            arguments.append((text[:-1].strip(), "ptr"))
        else:
            type_, name = text.split()
            arguments.append((name, SPELLINGS.get(type_, type_)))
    return arguments


def _bytes(place: Place, value: Any) -> bytes:
    if isinstance(value, Mapping):
        bits = bytes.fromhex(value["bits"])
        if len(bits) != place.size:
            raise BadArgument(place.name, value["bits"], f"{place.size} bytes")
        return bits
    if place.type == "ptr" or place.type.startswith("int") or place.type == "bool":
        return int(value).to_bytes(place.size, "little", signed=place.type.startswith("int"))
    exact = value_of(value) if isinstance(value, float) else Fraction(value)
    return FORMATS[place.type].encode(exact, nonfinite=True).to_bytes(place.size, "little")


def _next_multiple(number: int, of: int) -> int:
    return -(-number // of) * of


def padding_of(layout: Layout) -> list[int]:
    """Return the bytes of a buffer that belong to no argument."""
    owned = {place.offset + i for place in layout.places for i in range(place.size)}
    return [i for i in range(layout.size) if i not in owned]


def without_padding(text: str, buffer: bytes) -> bytes:
    """Return a buffer of that signature with zeros for padding (AMB-RT-55); one of another size is unchanged."""
    layout = by_the_rule(arguments_of(text))
    padding = frozenset(padding_of(layout)) if len(buffer) == layout.size else frozenset()
    return bytes(0 if place in padding else byte for place, byte in enumerate(buffer))
