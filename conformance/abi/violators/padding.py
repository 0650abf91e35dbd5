"""Kernels that read a value in padding, or false in a byte that is not zero (runtime spec, 10.1)."""

import numpy as np

from tessera_reference.numerics.array import Array

from ...ir.violators.changes import breaks
from ...runtime.violators.changes import BuildsOnce

ARRAY = Array.from_bits
SCALARS_OF, ARGUMENTS = "runtime.calls.scalars_of", "runtime.launches.LaunchWork._arguments"


@breaks("RT-10.1-12", "reads a bool as a word of four bytes", SCALARS_OF, make=BuildsOnce)
def truth_of_a_word(usual, entry, buffer):
    pointers, scalars = usual(entry, buffer)
    read = dict(scalars)
    for parameter, offset in zip(entry.parameters, entry.layout.offsets, strict=True):
        if parameter.type == "bool":
            word = buffer[offset : offset // 4 * 4 + 4]
            read[parameter.name] = ARRAY(scalars[parameter.name].dtype, (), bytes([any(word)]))
    return pointers, read


@breaks("RT-10.1-12", "lets padding behind a number count", SCALARS_OF, make=BuildsOnce)
def words_before_pointers(usual, entry, buffer):
    pointers, scalars = usual(entry, buffer)
    read, layout = dict(scalars), entry.layout
    for place, (parameter, offset) in enumerate(zip(entry.parameters, layout.offsets, strict=True)):
        gap = place + 1 < len(layout.offsets) and layout.offsets[place + 1] >= offset + 8
        if parameter.type == "int32" and gap and buffer[offset + 7] & 0x80:
            read[parameter.name] = ARRAY(scalars[parameter.name].dtype, (), bytes(4))
    return pointers, read


@breaks("RT-19.B-11", "reads a byte of 1 alone as true in tensors", ARGUMENTS, make=BuildsOnce)
def one_alone_in_tensors(usual, self, executable, rank):
    found = usual(self, executable, rank)
    for name, tensor in self.tensors.items():
        if tensor.region is not None and tensor.dtype.name == "bool":
            data = self.stream.mesh.peek(tensor.region, rank, tensor.bytes)
            raw = (np.frombuffer(data, np.uint8) == 1).tobytes() if tensor.shape else data
            found[name] = ARRAY(tensor.dtype, tensor.shape, raw)
    return found
