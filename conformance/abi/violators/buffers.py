"""Parameter buffers that are laid out or filled wrongly in one way (runtime specification, 9, 10.1, 18)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, violates
from tessera_reference.abi import parameters
from tessera_reference.abi import parameters as signatures
from tessera_reference.abi.parameters import (
    PARAMETER_TYPES,
    Parameter,
    ParameterLayout,
    _code_of_magnitude,
    code_of_float,
)
from tessera_reference.adapter import ReferenceAdapter

from ...ir.violators.changes import changed

_layout_of = parameters.layout_of


def laid(clause: str, name: str, description: str, lay: Callable[[Sequence[Parameter]], ParameterLayout]) -> Violation:
    """Return a violation that computes parameter layouts by another function."""
    return changed(clause, name, description, ("adapter.abi.layout_of", lay))


def aligned(clause: str, name: str, description: str, rule: Callable[[int], int]) -> Violation:
    """Return a violation that aligns arguments by another rule of their size."""
    return changed(
        clause, name, description, ("abi.parameters.ParameterType.alignment", property(lambda self: rule(self.size)))
    )


def rounded(clause: str, name: str, description: str, to: int) -> Violation:
    """Return a violation whose buffers have sizes of another multiple."""
    return changed(clause, name, description, ("abi.parameters.BUFFER_ALIGNMENT", to))


def sized(clause: str, type_: str, size: int, letter: str) -> Violation:
    """Return a violation that gives a type another size."""
    types = PARAMETER_TYPES | {type_: replace(PARAMETER_TYPES[type_], size=size, letter=letter)}
    description = f"gives {type_} {size} bytes"
    return changed(clause, f"{type_}_of_{size}", description, ("abi.parameters.PARAMETER_TYPES", types))


def spelled(clause: str, spelling: str, dtype: str) -> Violation:
    """Return a violation in which a spelling of C stands for another dtype."""
    types = signatures._SCALAR_TYPES | {spelling: dtype}
    return changed(
        clause, f"{spelling}_is_{dtype}", f"reads {spelling} as {dtype}", ("abi.parameters._SCALAR_TYPES", types)
    )


def moved(layout: ParameterLayout, by: int, which: Callable[[Parameter], bool] = lambda _: True) -> ParameterLayout:
    """Return a layout with greater offsets of some or all arguments."""
    offsets = tuple(
        offset + by * which(parameter) for parameter, offset in zip(layout.parameters, layout.offsets, strict=True)
    )
    end = max((o + s for o, s in zip(offsets, layout.sizes, strict=True)), default=0)
    return ParameterLayout(layout.parameters, offsets, layout.sizes, end, (end + 7) // 8 * 8)


def reordered(key: Callable[[Parameter], int]) -> Callable[[Sequence[Parameter]], ParameterLayout]:
    """Return a layout function that reports arguments in declared order but stores them in another."""

    def lay(given: Sequence[Parameter]) -> ParameterLayout:
        layout = _layout_of(sorted(given, key=key))
        places = dict(zip((parameter.name for parameter in layout.parameters), layout.offsets, strict=True))
        offsets = tuple(places[parameter.name] for parameter in given)
        return replace(
            layout, parameters=tuple(given), offsets=offsets, sizes=tuple(parameter.kind.size for parameter in given)
        )

    return lay


def overlapping(given: Sequence[Parameter]) -> ParameterLayout:
    layout = _layout_of(given)
    return replace(layout, offsets=(*layout.offsets[:-1], layout.offsets[-2])) if len(given) > 9 else layout


def big_endian(layout: ParameterLayout) -> struct.Struct:
    text, end = ">", 0
    for parameter, offset in zip(layout.parameters, layout.offsets, strict=True):
        text += "x" * (offset - end) + parameter.kind.letter
        end = offset + parameter.kind.size
    return struct.Struct(text)


LAYOUTS = [
    laid("RT-10.1-01", "overlapping", "lays the last of many arguments over the one before", overlapping),
    aligned("RT-10.1-03", "natural", "aligns complex128 to 16", lambda size: size),
    rounded("RT-10.1-04", "rounded_to_four", "rounds the size to 4", 4),
    rounded("RT-10.1-04", "rounded_to_sixteen", "rounds the size to 16", 16),
    sized("RT-10.1-05", "ptr", 4, "I"),
    sized("RT-10.1-06", "int32", 8, "q"),
    sized("RT-10.1-07", "fp32", 8, "Q"),
    spelled("RT-10.1-06", "int", "int64"),
    spelled("RT-10.1-07", "float", "fp64"),
    laid("RT-10.1-08", "hidden_word", "begins with a hidden word", lambda given: moved(_layout_of(given), 8)),
    laid(
        "RT-10.1-09",
        "ints_backwards",
        "lays ints last to first",
        lambda given: reordered(
            lambda parameter: {"ptr": -200, "int32": -ord(parameter.name[0])}.get(parameter.type, 0)
        )(given),
    ),
    laid("RT-10.1-10", "floats_before_ints", "lays floats before ints",
        reordered(lambda parameter: ["ptr", "fp32"].index(parameter.type) if parameter.type in ("ptr", "fp32") else 2)),
    laid("RT-10.1-11", "argument_count", "adds a word with the number of arguments",
        lambda given: replace(_layout_of(given), size=_layout_of(given).size + 8)),
    laid("RT-10.1-13", "pointers_first", "lays pointers first", reordered(lambda parameter: parameter.type != "ptr")),
    laid("RT-10.1-13", "largest_first", "lays large arguments first", reordered(lambda given: -given.kind.size)),
]  # fmt: skip


def without_small_halves(magnitude: float, dtype: Any) -> int:
    code = _code_of_magnitude(magnitude, dtype)
    return 0 if dtype.bits == 16 and code < 1 << dtype.fraction_bits else code


BYTES = [
    changed("RT-10.1-02", "through_doubles", "rounds large whole numbers to a double first",
        ("abi.parameters.code_of_float", lambda value, dtype: code_of_float(float(value), dtype))),
    changed("RT-10.1-02", "small_halves_flushed", "writes zero for a subnormal number of 16 bits",
        ("abi.parameters._code_of_magnitude", without_small_halves)),
    changed("RT-10.1-02", "one_zero_of_fp8", "writes a zero of fp8 without its sign", ("abi.parameters.code_of_float",
        lambda value, dtype: code_of_float(value, dtype) if value or dtype.bits > 8 else 0)),
    changed(
        "RT-10.1-02",
        "rounded_twice",
        "rounds numbers to fp32 first",
        (
            "abi.parameters.PARAMETER_TYPES",
            PARAMETER_TYPES
            | {
                "bf16": replace(
                    PARAMETER_TYPES["bf16"],
                    store=lambda value: PARAMETER_TYPES["bf16"].store(struct.unpack("<f", struct.pack("<f", value))[0]),
                )
            },
        ),
    ),
]  # fmt: skip


@violates("RT-09-07", "aligns the buffer to 4")
class BufferOfFour(ReferenceAdapter):
    def abi_parameter_layout(self, *, signature: str) -> dict[str, Any]:
        return super().abi_parameter_layout(signature=signature) | {"alignment": 4}


@violates("RT-10.1-02", "reads true from 1 alone")
class TrueIsOne(ReferenceAdapter):
    def abi_unpack(self, *, signature: str, buffer: str) -> dict[str, Any]:
        answer = super().abi_unpack(signature=signature, buffer=buffer)["values"]
        layout = super().abi_parameter_layout(signature=signature)["parameters"]
        for value, place in zip(answer, layout, strict=True):
            if place["type"] == "bool" and buffer[2 * place["offset"] :][:2] != "01":
                value["bits"] = "00"
        return {"values": answer}


@violates("RT-10.1-12", "refuses padding that is not zero")
class PaddingIsRead(ReferenceAdapter):
    def abi_unpack(self, *, signature: str, buffer: str) -> dict[str, Any]:
        layout = super().abi_parameter_layout(signature=signature)
        if buffer[2 * layout["end_of_last_argument"] :].strip("0"):
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", "the padding is not zero")
        return super().abi_unpack(signature=signature, buffer=buffer)


@violates("RT-10.1-04", "takes a buffer that ends too early")
class ShortBuffersTaken(ReferenceAdapter):
    def abi_unpack(self, *, signature: str, buffer: str) -> dict[str, Any]:
        return super().abi_unpack(signature=signature, buffer=buffer.ljust(1024, "0"))


@violates("RT-10.1-01", "takes fewer values than arguments")
class FewerValuesTaken(ReferenceAdapter):
    def abi_pack(self, *, signature: str, values: Sequence[Any]) -> dict[str, Any]:
        count = len(super().abi_parameter_layout(signature=signature)["parameters"])
        return super().abi_pack(signature=signature, values=[*values, *[0] * (count - len(values))])


@violates("RT-18-03", "exchanges the last two arguments of the sample")
class SampleExchanged(ReferenceAdapter):
    def abi_pack(self, *, signature: str, values: Sequence[Any]) -> dict[str, Any]:
        buffer = super().abi_pack(signature=signature, values=values)["buffer"]
        if "int D, float scale" in signature:
            buffer = buffer[: 2 * 0x2C] + buffer[2 * 0x30 : 2 * 0x34] + buffer[2 * 0x2C : 2 * 0x30] + buffer[2 * 0x34 :]
        return {"buffer": buffer}
