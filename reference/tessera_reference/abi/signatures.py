"""Kernel signatures as the specification writes them (runtime spec 10.1): `scale(X*, Y*, int n, float factor)`.

A star after a name makes it a pointer; `float* x` and `const void *x` are pointers too. Scalars have a type of C or a
dtype of the ABI. Structures, arrays and other aggregates by value are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..numerics.errors import shown
from .identifiers import is_c_identifier
from .parameter_types import PARAMETER_TYPES, Parameter
from .status import Failure, invalid

__all__ = ["Signature", "parse_signature"]


@dataclass(frozen=True)
class Signature:
    """The name of a kernel and its parameters in declared order."""

    name: str
    parameters: tuple[Parameter, ...]


_SIGNATURE = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*;?\s*", re.ASCII)
_NAMED_POINTER = re.compile(r"(\w+)\s*\*", re.ASCII)
_TYPED_POINTER = re.compile(r"(?:const\s+)?(\w+)(?:\s+const)?\s*\*\s*(\w+)", re.ASCII)
_SCALAR = re.compile(r"(?:const\s+)?(\w+)\s+(\w+)", re.ASCII)

_C_TYPES = {
    "int": "int32",
    "float": "fp32",
    "double": "fp64",
    "int8_t": "int8",
    "int16_t": "int16",
    "int32_t": "int32",
    "int64_t": "int64",
}
_SCALAR_TYPES = {**{name: name for name in PARAMETER_TYPES if name != "ptr"}, **_C_TYPES}

_FORM = "name(parameter, ...), each parameter being `X*`, `T* x` or `T x` with T one of " + ", ".join(_SCALAR_TYPES)


def parse_signature(text: str) -> Signature:
    """Read a signature. Raises `Failure` with TESS_ERR_INVALID_VALUE for whatever is none.

    A name that is given twice is refused by `layout_of`.
    """
    whole = _SIGNATURE.fullmatch(text) if isinstance(text, str) else None
    if whole is None:
        raise _refused(f"the signature {shown(text)}")
    name, inside = whole.groups()
    if not is_c_identifier(name):
        raise _refused(f"the kernel name {shown(name)}")
    declarations = [] if inside.strip() in ("", "void") else inside.split(",")
    return Signature(name, tuple(_parameter(declaration.strip()) for declaration in declarations))


def _parameter(text: str) -> Parameter:
    if found := _NAMED_POINTER.fullmatch(text):
        name, type_name = found[1], "ptr"
    elif found := _TYPED_POINTER.fullmatch(text):
        name, type_name = found[2], "ptr"
    elif (found := _SCALAR.fullmatch(text)) and found[1] in _SCALAR_TYPES:
        name, type_name = found[2], _SCALAR_TYPES[found[1]]
    else:
        raise _refused(f"the parameter {shown(text)}")
    if not is_c_identifier(name) or name in _SCALAR_TYPES:
        raise _refused(f"the parameter {shown(text)}, which has no name")
    return Parameter(name, type_name)


def _refused(given: str) -> Failure:
    return invalid("parameter layout", given, _FORM)
