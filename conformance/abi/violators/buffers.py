"""Parameter buffers that are laid out or filled wrongly in one way (runtime specification, 9, 10.1, 18)."""

import struct
from dataclasses import replace

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import violates
from tessera_reference.abi import parameters
from tessera_reference.abi.parameters import PARAMETER_TYPES
from tessera_reference.adapter import ReferenceAdapter

from ...ir.violators.changes import breaks, changed, wrapped

LAYOUT_OF = parameters.layout_of
ADAPTER = "adapter.ReferenceAdapter.abi_"


def laid(clause, name, description, lay):
    return changed(clause, name, description, ("adapter.abi.layout_of", lay))


def rounded(clause, name, description, to):
    return changed(clause, name, description, ("abi.parameters.BUFFER_ALIGNMENT", to))


def sized(clause, type_, size, letter):
    types = PARAMETER_TYPES | {type_: replace(PARAMETER_TYPES[type_], size=size, letter=letter)}
    description = f"gives {type_} {size} bytes"
    return changed(clause, f"{type_}_of_{size}", description, ("abi.parameters.PARAMETER_TYPES", types))


def spelled(clause, spelling, dtype):
    types, description = parameters._SCALAR_TYPES | {spelling: dtype}, f"reads {spelling} as {dtype}"
    return changed(clause, f"{spelling}_is_{dtype}", description, ("abi.parameters._SCALAR_TYPES", types))


def reordered(key):
    """Return a layout function that reports arguments in declared order but stores them in another."""

    def lay(given):
        layout = LAYOUT_OF(sorted(given, key=key))
        places = dict(zip((parameter.name for parameter in layout.parameters), layout.offsets, strict=True))
        offsets = tuple(places[parameter.name] for parameter in given)
        sizes = tuple(parameter.kind.size for parameter in given)
        return replace(layout, parameters=tuple(given), offsets=offsets, sizes=sizes)

    return lay


@breaks("RT-10.1-08", "begins with a hidden word", laid)
def hidden_word(given):
    layout = LAYOUT_OF(given)
    offsets = tuple(offset + 8 for offset in layout.offsets)
    end = max((offset + size for offset, size in zip(offsets, layout.sizes, strict=True)), default=0)
    return replace(layout, offsets=offsets, end_of_last_argument=end, size=(end + 7) // 8 * 8)


@breaks("RT-10.1-01", "lays the last of many arguments over the one before", laid)
def overlapping(given):
    layout = LAYOUT_OF(given)
    return replace(layout, offsets=(*layout.offsets[:-1], layout.offsets[-2])) if len(given) > 9 else layout


@breaks("RT-10.1-02", "writes zero for a subnormal number of 16 bits", "abi.parameters._code_of_magnitude")
def small_halves_flushed(usual, magnitude, dtype):
    code = usual(magnitude, dtype)
    return 0 if dtype.bits == 16 and code < 1 << dtype.fraction_bits else code


def rounded_first(value):
    return PARAMETER_TYPES["bf16"].store(struct.unpack("<f", struct.pack("<f", value))[0])


@violates("RT-10.1-02", "reads true from 1 alone")
class TrueIsOne(ReferenceAdapter):
    def abi_unpack(self, *, signature, buffer):
        answer = super().abi_unpack(signature=signature, buffer=buffer)["values"]
        layout = super().abi_parameter_layout(signature=signature)["parameters"]
        for value, place in zip(answer, layout, strict=True):
            if place["type"] == "bool" and buffer[2 * place["offset"] :][:2] != "01":
                value["bits"] = "00"
        return {"values": answer}


@violates("RT-10.1-12", "refuses padding that is not zero")
class PaddingIsRead(ReferenceAdapter):
    def abi_unpack(self, *, signature, buffer):
        layout = super().abi_parameter_layout(signature=signature)
        if buffer[2 * layout["end_of_last_argument"] :].strip("0"):
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", "the padding is not zero")
        return super().abi_unpack(signature=signature, buffer=buffer)


@violates("RT-10.1-01", "takes fewer values than arguments")
class FewerValuesTaken(ReferenceAdapter):
    def abi_pack(self, *, signature, values):
        count = len(super().abi_parameter_layout(signature=signature)["parameters"])
        return super().abi_pack(signature=signature, values=[*values, *[0] * (count - len(values))])


@violates("RT-18-03", "exchanges the last two arguments of the sample")
class SampleExchanged(ReferenceAdapter):
    def abi_pack(self, *, signature, values):
        buffer = super().abi_pack(signature=signature, values=values)["buffer"]
        if "int D, float scale" in signature:
            buffer = buffer[: 2 * 0x2C] + buffer[2 * 0x30 : 2 * 0x34] + buffer[2 * 0x2C : 2 * 0x30] + buffer[2 * 0x34 :]
        return {"buffer": buffer}


VIOLATORS = [
    changed("RT-10.1-03", "natural", "aligns complex128 to 16",
        ("abi.parameters.ParameterType.alignment", property(lambda self: self.size))),
    rounded("RT-10.1-04", "rounded_to_four", "rounds the size to 4", 4),
    rounded("RT-10.1-04", "rounded_to_sixteen", "rounds the size to 16", 16),
    sized("RT-10.1-05", "ptr", 4, "I"),
    sized("RT-10.1-06", "int32", 8, "q"),
    sized("RT-10.1-07", "fp32", 8, "Q"),
    spelled("RT-10.1-06", "int", "int64"),
    spelled("RT-10.1-07", "float", "fp64"),
    laid("RT-10.1-09", "ints_backwards", "lays ints last to first",
        reordered(lambda parameter: {"ptr": -200, "int32": -ord(parameter.name[0])}.get(parameter.type, 0))),
    laid("RT-10.1-10", "floats_before_ints", "lays floats before ints",
        reordered(lambda parameter: ["ptr", "fp32"].index(parameter.type) if parameter.type in ("ptr", "fp32") else 2)),
    laid("RT-10.1-11", "argument_count", "adds a word with the number of arguments",
        lambda given: replace(LAYOUT_OF(given), size=LAYOUT_OF(given).size + 8)),
    laid("RT-10.1-13", "pointers_first", "lays pointers first", reordered(lambda parameter: parameter.type != "ptr")),
    laid("RT-10.1-13", "largest_first", "lays large arguments first", reordered(lambda given: -given.kind.size)),
    wrapped("RT-10.1-02", "through_doubles", "rounds large whole numbers to a double first",
        "abi.parameters.code_of_float", lambda usual, value, dtype: usual(float(value), dtype)),
    wrapped("RT-10.1-02", "one_zero_of_fp8", "writes a zero of fp8 without its sign", "abi.parameters.code_of_float",
        lambda usual, value, dtype: usual(value, dtype) if value or dtype.bits > 8 else 0),
    changed("RT-10.1-02", "rounded_twice", "rounds numbers to fp32 first", ("abi.parameters.PARAMETER_TYPES",
        PARAMETER_TYPES | {"bf16": replace(PARAMETER_TYPES["bf16"], store=rounded_first)})),
    wrapped("RT-09-07", "BufferOfFour", "aligns the buffer to 4", ADAPTER + "parameter_layout",
        lambda usual, self, signature: usual(self, signature=signature) | {"alignment": 4}),
    wrapped("RT-10.1-04", "ShortBuffersTaken", "takes a buffer that ends too early", ADAPTER + "unpack",
        lambda usual, self, signature, buffer: usual(self, signature=signature, buffer=buffer.ljust(1024, "0"))),
]  # fmt: skip
