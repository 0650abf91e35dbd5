"""Types and numbers as LLVM IR spells them."""

from __future__ import annotations

import struct

import numpy as np

from ...ir.types import Pointer, Scalar, Type, Vector
from ...numerics.array import Array
from ...numerics.formats import DType

NAMES = {
    "fp64": "double",
    **dict.fromkeys(("fp32", "tf32"), "float"),
    "fp16": "half",
    "bf16": "bfloat",
    **dict.fromkeys(("fp8_e4m3", "fp8_e5m2", "int8"), "i8"),
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "bool": "i1",
    "complex64": "i64",
    "complex128": "i128",
}
"""The type of a value of each dtype that kernels hold; of a complex number its bits, to be moved (AMB-LANG-221)."""

SUFFIXES = {
    "fp64": "f64",
    **dict.fromkeys(("fp32", "tf32"), "f32"),
    "fp16": "f16",
    "bf16": "bf16",
    "fp8_e4m3": "e4m3",
    "fp8_e5m2": "e5m2",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
}
"""What the names of functions and intrinsics end in."""


def llvm_type(type_: Type, flat: bool = False) -> str:
    """A type; `flat` where there is one address space only, as on a host."""
    if isinstance(type_, Scalar):
        return NAMES[type_.dtype.name]
    if isinstance(type_, Vector):
        return f"<{type_.extent} x {NAMES[type_.dtype.name]}>"
    assert isinstance(type_, Pointer), type_
    return "ptr" if flat or type_.space == 0 else f"ptr addrspace({type_.space})"


def in_memory(dtype: DType) -> str:
    """The type of an element in memory: a bool takes a byte."""
    return "i8" if dtype.kind == "bool" else NAMES[dtype.name]


def literal(value: float | bool, dtype: DType) -> str:
    """A number; floats by their bits, so that what is read is what was written."""
    if dtype.kind == "bool":
        return "true" if value else "false"
    if dtype.kind == "int":
        return str(value)
    code = Array(dtype, np.asarray(value, dtype.carrier)).to_bits()[::-1].hex().upper()
    if dtype.bits == 8:
        return str(int(code, 16))
    if dtype.bits == 16:
        return f"0x{'H' if dtype.name == 'fp16' else 'R'}{code}"
    if dtype.bits == 64:
        return f"0x{code}"
    return f"0x{struct.pack('>d', float(value)).hex().upper()}"  # a float is written as the double of its value
