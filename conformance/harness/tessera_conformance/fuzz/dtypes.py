"""What the generator knows of dtypes and shapes, how it spells a literal of a dtype, and the inputs it makes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tessera_conformance.dsl import tensor_of
from tessera_conformance.fuzz.choices import Chooser
from tessera_conformance.fuzz.tree import Extent, Type
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor
from tessera_conformance.vectors.counter import counter_bits

INTEGERS = ("int32", "int64", "int8", "int16")
NUMBERS = ("fp32", "int32", "bf16", "fp16", "fp64", "int64", "int8", "tf32", "fp8_e4m3", "fp8_e5m2", "int16")
"""The numeric dtypes of section 2.2, frequent ones first."""
COMPLEX = ("complex64", "complex128")
LAYOUTS = ("col_major", "blocked(bm=2,bn=2)")
"""Layouts beside row_major, for matrices; blocks are used where they divide the matrix."""

INT_LITERALS = ("0", "1", "2", "3", "7", "10", "007", "100", "127")
FLOAT_LITERALS = "1.0 0.5 2. 1e1 1.5e-3 0.1 3.14159 2.E+1 0. 12e0 0.333333333333333333333".split()
"""Literals that every float dtype holds after rounding (AMB-LANG-124)."""

ENDS = {
    "int8": ("127",),
    "int16": ("32767",),
    "int32": ("2147483647", "65536"),
    "int64": ("9223372036854775807", "4294967296"),
    "fp16": ("65504", "6e-8", "1e-50"),
    "bf16": ("3.3e38", "16777217", "1e-50"),
    "fp32": ("3.4028234663852886e38", "16777217", "1e-40", "1e-50"),
    "tf32": ("3.4028234663852886e38", "16777217", "1e-40"),
    "fp64": ("1.7976931348623157e308", "9007199254740993", "5e-324", "1e-400"),
    "fp8_e4m3": ("448", "0.001953125", "1e-50"),
    "fp8_e5m2": ("57344", "1e-5", "1e-50"),
}
"""Literals near the ends of a dtype's range; what is too small for it rounds to 0."""
INTERESTING = (0.0, 1.0, -1.0, 0.5, 2.0, -1.5, 3.0, 4.0, -0.25, 6.0)


def kind_of(dtype: str) -> str:
    """`float`, `int`, `bool` or `complex`."""
    if dtype == "bool":
        return "bool"
    if dtype in COMPLEX:
        return "complex"
    return "int" if dtype in INTEGERS else "float"


def is_float(type_: Type) -> bool:
    """Whether elements are floats."""
    return kind_of(type_.dtype) == "float"


def is_number(type_: Type) -> bool:
    """Whether elements are floats or integers."""
    return kind_of(type_.dtype) in ("float", "int")


def is_row_major(type_: Type) -> bool:
    """Whether it is a row-major tensor in which no extent is known to be 0."""
    return bool(type_.shape) and type_.layout == "row_major" and 0 not in type_.shape


def literal(dtype: str, chooser: Chooser) -> str:
    """A literal that the dtype can hold; an integer literal may stand where a float is asked for (AMB-LANG-54)."""
    if dtype == "bool":
        return chooser.pick(("true", "false"))
    if chooser.chance(16):
        return chooser.pick(ENDS[dtype])
    if kind_of(dtype) == "int" or chooser.chance(4):
        return chooser.pick(INT_LITERALS)
    return chooser.pick(FLOAT_LITERALS)


def concrete(type_: Type, sizes: Mapping[str, int]) -> Type:
    """The type with numbers for its names; an unknown dimension is looked up under its own name too."""
    shape: tuple[Extent, ...] = tuple(e if isinstance(e, int) else sizes[e] for e in type_.shape)
    return Type(type_.dtype, shape, type_.layout)


def input_for(type_: Type, chooser: Chooser) -> Tensor:
    """A tensor of a type without names: all ones, small values, or any bits at all."""
    shape = tuple(extent for extent in type_.shape if isinstance(extent, int))
    seed = chooser.below(1 << 16)
    count = prod(shape) * ELEMENT_FORMATS[type_.dtype].words
    words = [_word(type_.dtype, seed, bits) for bits in counter_bits(seed, count)]
    return Tensor.from_words(type_.dtype, shape, words)


def _word(dtype: str, seed: int, bits: int) -> int:
    """One storage code: seed 0 gives ones, three of four seeds small values, the others any code."""
    layout = ELEMENT_FORMATS[dtype]
    if dtype == "bool":
        return bits & 1 if seed else 1
    if seed % 4 == 3:
        return bits & ((1 << 8 * layout.word_bytes) - 1)
    table = _SMALL[dtype]
    return table[bits % len(table)] if seed else table[1]


def _small(dtype: str) -> tuple[int, ...]:
    real = {"complex64": "fp32", "complex128": "fp64"}.get(dtype, dtype)
    values = INTERESTING if kind_of(real) == "float" else (0, 1, 2, 3, -1, 1, 2, 5)
    return tuple(int(tensor_of(real, value).words()[0]) for value in values)


_SMALL = {dtype: _small(dtype) for dtype in (*NUMBERS, *COMPLEX)}
