"""Arrays in .npy files: values that numpy has a dtype for, or storage codes as unsigned integers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..ir.module import Function
from ..ir.types import Numeric, Scalar, Tensor
from ..numerics.array import Array
from ..numerics.errors import NumericsFailure


class BadInput(Exception):
    """An option or a file of the user cannot be used; the message says why."""


@dataclass(frozen=True)
class Assignment:
    """`NAME=FILE`, `NAME@RANK=FILE`, and each with `:bits` behind the name."""

    name: str
    rank: int | None
    bits: bool
    path: str

    @classmethod
    def read(cls, text: str) -> Assignment:
        """What an option says. Raises `BadInput`."""
        found = re.fullmatch(r"([^=@:]+)(?:@([0-9]{1,9}))?(:bits)?=(.+)", text)
        if found is None:
            raise BadInput(f"{text!r} is not of the form NAME=FILE.npy")
        return cls(found[1], None if found[2] is None else int(found[2]), found[3] is not None, found[4])

    @property
    def subject(self) -> str:
        """What is assigned, as the user wrote it."""
        return self.name if self.rank is None else f"{self.name}@{self.rank}"


def load(name: str, path: str, bits: bool, function: Function) -> Array:
    """An input file as an array of its parameter's dtype."""
    try:
        with open(path, "rb") as file:  # numpy leaves one open that it takes for an archive and is none
            values = np.load(file, allow_pickle=False)
    except OSError as error:
        raise BadInput(f"input {name}: {path}: {error.strerror or error}") from error
    except MemoryError as error:
        raise BadInput(f"input {name}: {path} does not fit into memory") from error
    except Exception as error:  # what numpy raises depends on how the file is broken: zipfile's, tokenize's, its own
        raise BadInput(f"input {name}: {path} is no .npy file of numbers") from error
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biufc":
        raise BadInput(f"input {name}: {path} is no .npy file of numbers")
    parameter = next((parameter for parameter in function.parameters if parameter.name == name), None)
    if parameter is None:
        names = ", ".join(parameter.name for parameter in function.parameters)
        raise BadInput(f"input {name} is not a parameter; {function.name} takes {names or 'none'}")
    if not isinstance(parameter.type, Tensor | Scalar):
        raise BadInput(f"input {name}: no file holds a {parameter.type}")
    return (_from_codes if bits else _from_values)(name, values, parameter.type)


def _from_codes(name: str, values: np.ndarray[Any, Any], expected: Numeric) -> Array:
    dtype = expected.dtype
    if values.dtype.kind != "u" or values.dtype.itemsize != dtype.storage_bytes:
        wanted = f"codes of {expected} as uint{8 * dtype.storage_bytes}"
        raise BadInput(f"input {name}: expected {wanted}, the file holds {_held(values)}")
    little = values.astype(values.dtype.newbyteorder("<"))
    return Array.from_bits(dtype, values.shape, np.ascontiguousarray(little).tobytes())


def _from_values(name: str, values: np.ndarray[Any, Any], expected: Numeric) -> Array:
    kinds = {"b": "bool", "i": "int", "u": "int", "f": "float", "c": "complex"}
    if kinds[values.dtype.kind] != expected.dtype.kind:
        raise BadInput(f"input {name}: expected {expected}, the file holds {_held(values)}")
    try:
        return Array.checked(expected.dtype, values)
    except NumericsFailure as failure:
        remedy = f"round it first, or give codes with {name}:bits="
        raise BadInput(f"input {name}: {failure}, and the file holds {_held(values)}; {remedy}") from failure


def _held(values: np.ndarray[Any, Any]) -> str:
    return f"{values.dtype} of shape {list(values.shape)}"


def save(array: Array, path: str, bits: bool) -> None:
    """A result as values that numpy has a dtype for, or as storage codes."""
    if bits:
        codes = np.frombuffer(array.to_bits(), f"<u{array.dtype.storage_bytes}").reshape(array.shape)
        written: np.ndarray[Any, Any] = codes
    else:
        written = array.values.astype(np.float16) if array.dtype.name == "fp16" else array.values
    try:
        with Path(path).open("wb") as file:
            np.save(file, np.ascontiguousarray(written).reshape(array.shape), allow_pickle=False)
    except OSError as error:
        raise BadInput(f"output {path}: {error.strerror}") from error
