"""Kernels that read a value in padding, or false in a byte that is not zero (runtime spec, 10.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tessera_conformance.strength import Violation, replaced
from tessera_reference.abi.fatbin import KernelEntry
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DType
from tessera_reference.runtime import calls
from tessera_reference.runtime.launches import LaunchWork

from ...runtime.violators.changes import BuildsOnce

SCALARS, ARGUMENTS, ARRAY = calls.scalars_of, LaunchWork._arguments, Array.from_bits
Found = tuple[Mapping[str, int], Mapping[str, Array]]


def reading(name: str, description: str, scalars_of: Callable[[KernelEntry, bytes], Found]) -> Violation:
    """Return a violation that reads arguments differently."""
    return replaced("RT-10.1-12", description, BuildsOnce, ("runtime.calls.scalars_of", scalars_of), name=name)


def truth_by(truth: Callable[[bytes], bool]) -> Callable[[KernelEntry, bytes], Found]:
    """Return a reader whose bools follow a rule over their byte and those behind it up to the next multiple of four."""

    def scalars_of(entry: KernelEntry, buffer: bytes) -> Found:
        pointers, scalars = SCALARS(entry, buffer)
        read = dict(scalars)
        for parameter, offset in zip(entry.parameters, entry.layout.offsets, strict=True):
            if parameter.type == "bool":
                word = buffer[offset : offset // 4 * 4 + 4]
                read[parameter.name] = ARRAY(scalars[parameter.name].dtype, (), bytes([truth(word)]))
        return pointers, read

    return scalars_of


def words_before_pointers(entry: KernelEntry, buffer: bytes) -> Found:
    pointers, scalars = SCALARS(entry, buffer)
    read, layout = dict(scalars), entry.layout
    for place, (parameter, offset) in enumerate(zip(entry.parameters, layout.offsets, strict=True)):
        gap = place + 1 < len(layout.offsets) and layout.offsets[place + 1] >= offset + 8
        if parameter.type == "int32" and gap and buffer[offset + 7] & 0x80:
            read[parameter.name] = ARRAY(scalars[parameter.name].dtype, (), bytes(4))
    return pointers, read


def raw_truth(dtype: DType, shape: tuple[int, ...], data: bytes) -> Array:
    """Return tensors of truth values in which only a byte of 1 is true."""
    if dtype.name == "bool" and shape:
        return ARRAY(dtype, shape, (np.frombuffer(data, np.uint8) == 1).tobytes())
    return ARRAY(dtype, shape, data)


def arguments(self: LaunchWork, executable: Any, rank: int) -> dict[str, Array]:
    found = ARGUMENTS(self, executable, rank)
    for name, tensor in self.tensors.items():
        if tensor.region is not None and tensor.dtype.name == "bool":
            data = self.stream.mesh.peek(tensor.region, rank, tensor.bytes)
            found[name] = raw_truth(tensor.dtype, tensor.shape, data)
    return found


READ = [
    reading("truth_of_a_word", "reads a bool as a word of four bytes", truth_by(any)),
    reading("words_before_pointers", "lets padding behind a number count", words_before_pointers),
    replaced("RT-19.B-11", "reads a byte of 1 alone as true in tensors", BuildsOnce,
             ("runtime.launches.LaunchWork._arguments", arguments), name="one_alone_in_tensors"),
]  # fmt: skip
