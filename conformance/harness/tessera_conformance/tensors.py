"""Tensors in messages: a dtype name, a shape and the bits of every element.

In a message a tensor is `{"$tensor": {"dtype": ..., "shape": [...], "bits": "..."}}`. `bits` holds the storage codes in
row-major order. Each word is a fixed number of hexadecimal digits, the most significant first: fp32 1.0 reads
`3f800000`. A complex element is two words, real then imaginary. Large tensors may instead name a file of the same words
in little-endian bytes, with its SHA-256.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np  # takes 100 ms, and a process that only passes tensors on does not need it

INLINE_LIMIT = 64 * 1024
"""Larger tensors, in bytes, cross a process boundary as files."""
MOST_ELEMENTS = 1 << 48
"""A shape of more elements is malformed."""
MOST_DIMENSIONS = 256
"""A shape of more dimensions is malformed; with so many extents of 64 bits the product takes microseconds."""
MOST_FILE_BYTES = 1 << 30
"""A larger file is not read: a sparse one takes no space on a disk, and all the memory here."""


@dataclass(frozen=True)
class ElementFormat:
    """The storage of one element: bytes a word, words an element and, for floats, the fraction and exponent widths."""

    word_bytes: int
    words: int = 1
    exponent_bits: int = 0
    fraction_bits: int = 0
    has_infinity: bool = True

    @property
    def is_float(self) -> bool:
        """True if the words are floating-point codes with a sign bit on top."""
        return self.exponent_bits > 0


ELEMENT_FORMATS: dict[str, ElementFormat] = {
    "fp8_e4m3": ElementFormat(1, exponent_bits=4, fraction_bits=3, has_infinity=False),
    "fp8_e5m2": ElementFormat(1, exponent_bits=5, fraction_bits=2),
    "fp16": ElementFormat(2, exponent_bits=5, fraction_bits=10),
    "bf16": ElementFormat(2, exponent_bits=8, fraction_bits=7),
    "fp32": ElementFormat(4, exponent_bits=8, fraction_bits=23),
    "fp64": ElementFormat(8, exponent_bits=11, fraction_bits=52),
    "int8": ElementFormat(1),
    "int16": ElementFormat(2),
    "int32": ElementFormat(4),
    "int64": ElementFormat(8),
    "bool": ElementFormat(1),
    "complex64": ElementFormat(4, words=2, exponent_bits=8, fraction_bits=23),
    "complex128": ElementFormat(8, words=2, exponent_bits=11, fraction_bits=52),
    "tf32": ElementFormat(4, exponent_bits=8, fraction_bits=23),
}


class MalformedTensor(ValueError):
    """An inconsistent tensor message; the text has the fault and what was expected."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """An immutable tensor: `data` holds little-endian words in row-major order.

    Raises `MalformedTensor`: the dtype is unknown, an extent is negative, or the byte count does not fit the shape.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def __post_init__(self) -> None:
        layout = _format(self.dtype)
        if type(self.data) is not bytes:
            raise MalformedTensor(f"data is {type(self.data).__name__}, expected bytes: use .tobytes()")
        if type(self.shape) is not tuple or not all(type(extent) is int for extent in self.shape):
            raise MalformedTensor("expected the shape as a tuple of plain integers")
        _require_bounded(self.shape)
        if self.size >= MOST_ELEMENTS:
            raise MalformedTensor("more elements than any tensor of the suite has")
        expected = self.size * layout.word_bytes * layout.words
        if len(self.data) != expected:
            raise MalformedTensor(
                f"{self.dtype} of shape {list(self.shape)} takes {expected} bytes, but {len(self.data)} were given"
            )

    @property
    def format(self) -> ElementFormat:
        """The storage of an element."""
        return ELEMENT_FORMATS[self.dtype]

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def sha256(self) -> str:
        """SHA-256 of the little-endian bytes."""
        return hashlib.sha256(self.data).hexdigest()

    def words(self) -> np.ndarray[Any, np.dtype[np.unsignedinteger[Any]]]:
        """Return the storage codes as unsigned integers, flat; two per complex element."""
        import numpy as np

        return np.frombuffer(self.data, dtype=f"<u{self.format.word_bytes}")

    def bits(self) -> str:
        """Return the words as hexadecimal digits, most significant digit first."""
        return _reversed_words(self.data, self.format.word_bytes).hex()

    @classmethod
    def from_words(cls, dtype: str, shape: Sequence[int], words: Sequence[int]) -> Tensor:
        """Return a tensor from its storage codes, row-major."""
        width = _format(dtype).word_bytes
        return cls(dtype, tuple(shape), b"".join(int(word).to_bytes(width, "little") for word in words))

    @classmethod
    def from_bits(cls, dtype: str, shape: Sequence[int], bits: str) -> Tensor:
        """Return a tensor from the hexadecimal digits of `bits()`."""
        width = _format(dtype).word_bytes
        try:
            raw = bytes.fromhex(bits)
        except ValueError as error:
            raise MalformedTensor(f"bits are not hexadecimal digits: {error}") from None
        if len(bits) != 2 * len(raw):
            raise MalformedTensor("bits are not hexadecimal digits only")
        if len(raw) % width:
            raise MalformedTensor(f"{len(bits)} digits are not a whole number of {2 * width}-digit {dtype} words")
        return cls(dtype, tuple(shape), _reversed_words(raw, width))

    def to_message(self, exchange: Path | None = None) -> dict[str, Any]:
        """Return the wire form; a tensor larger than `INLINE_LIMIT` becomes a file in `exchange` where one is given."""
        body: dict[str, Any] = {"dtype": self.dtype, "shape": list(self.shape)}
        if exchange is not None and len(self.data) > INLINE_LIMIT:
            path = exchange / f"{self.sha256}.bin"
            if not path.exists():
                path.write_bytes(self.data)
            return {"$tensor": body | {"file": str(path), "sha256": self.sha256}}
        return {"$tensor": body | {"bits": self.bits()}}

    @classmethod
    def from_message(cls, body: Any) -> Tensor:
        """Return the tensor of the object under `$tensor`.

        Raises `MalformedTensor`: a field is missing or of the wrong type, or the data does not fit.
        """
        if not isinstance(body, dict):
            raise MalformedTensor(f"expected an object with dtype, shape and bits, got {type(body).__name__}")
        unknown = body.keys() - {"dtype", "shape", "bits", "file", "sha256"}
        if unknown or ("bits" in body) == ("file" in body):
            raise MalformedTensor("expected the fields dtype, shape and either bits, or file and sha256")
        dtype, shape = body.get("dtype"), body.get("shape")
        if not isinstance(dtype, str):
            raise MalformedTensor("field dtype: expected a dtype name")
        if not isinstance(shape, list) or not all(isinstance(n, int) and not isinstance(n, bool) for n in shape):
            raise MalformedTensor("field shape: expected a list of integers")
        _require_bounded(shape)
        if isinstance(body.get("bits"), str):
            return cls.from_bits(dtype, shape, body["bits"])
        if isinstance(body.get("file"), str):
            return cls._from_file(dtype, shape, Path(body["file"]), body.get("sha256"))
        raise MalformedTensor("field bits or file: expected text")

    @classmethod
    def _from_file(cls, dtype: str, shape: list[int], path: Path, sha256: object) -> Tensor:
        try:
            expected = prod(shape) * _format(dtype).word_bytes * _format(dtype).words
            if expected > MOST_FILE_BYTES:
                raise MalformedTensor(f"field shape: {expected} bytes, more than any tensor of the suite has")
            whole = path.is_file() and path.stat().st_size == expected
            data = path.read_bytes() if whole else b""
        except MalformedTensor:
            raise
        except (OSError, ValueError) as error:
            raise MalformedTensor(f"field file: cannot be read: {error}") from None
        if not whole:
            raise MalformedTensor(f"field file: {path} is no plain file of as many bytes as the shape takes")
        tensor = cls(dtype, tuple(shape), data)
        if tensor.sha256 != sha256:
            raise MalformedTensor(f"field sha256: {path.name} holds {tensor.sha256}, but the message says {sha256}")
        return tensor


def _require_bounded(shape: Sequence[int]) -> None:
    """Raise `MalformedTensor` for extents that no tensor can have, before they are multiplied."""
    if len(shape) > MOST_DIMENSIONS:
        raise MalformedTensor(f"{len(shape)} dimensions, more than any tensor of the suite has")
    if min(shape, default=0) < 0:
        raise MalformedTensor("negative extent in the shape")
    if max(shape, default=0) >> 64:
        raise MalformedTensor("an extent of more than 64 bits")


def _format(dtype: str) -> ElementFormat:
    if dtype not in ELEMENT_FORMATS:
        raise MalformedTensor(f"unknown dtype {dtype!r}; expected one of {', '.join(ELEMENT_FORMATS)}")
    return ELEMENT_FORMATS[dtype]


def _reversed_words(words: bytes, width: int) -> bytes:
    """Return the bytes of each word in the other order."""
    if width == 1:
        return words
    turned = array({2: "H", 4: "I", 8: "Q"}[width], words)
    turned.byteswap()
    return turned.tobytes()


def shape_of(values: Any) -> tuple[int, ...]:
    """The shape of nested lists; of a bare number, no dimensions. Raises `ValueError`: the rows differ in length."""
    if not isinstance(values, Sequence):
        return ()
    rows = {() if isinstance(row, int | float) else shape_of(row) for row in values}
    if len(rows) > 1:
        raise ValueError(f"rows of different lengths in {values!r}")
    return (len(values), *(rows.pop() if rows else ()))


def to_wire(value: Any, exchange: Path | None = None) -> Any:
    """`value` with every `Tensor` replaced by its message."""
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, Tensor):
        return value.to_message(exchange)
    if isinstance(value, dict):  # most are of scalars: a call for each would take twice as long
        return {key: item if isinstance(item, _SCALARS) else to_wire(item, exchange) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_wire(item, exchange) for item in value]
    return value


def from_wire(value: Any) -> Any:
    """`value` with every tensor message replaced by its `Tensor`.

    Raises `MalformedTensor`: some tensor message does not hold together.
    """
    if isinstance(value, _AS_THEY_ARE):
        return value
    if isinstance(value, dict):
        if "$tensor" in value:
            if len(value) != 1:
                raise MalformedTensor("there are other fields beside $tensor")
            return Tensor.from_message(value["$tensor"])
        return {key: item if isinstance(item, _AS_THEY_ARE) else from_wire(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return list(map(from_wire, value))
    raise MalformedTensor(f"{type(value).__name__} is no JSON value")


_SCALARS = (str, int, float, NoneType)
_AS_THEY_ARE = (*_SCALARS, Tensor)
