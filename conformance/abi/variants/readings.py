"""Compilers, packers and loaders that follow a listed alternative (runtime specification, 10, 16)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import altered, varies
from tessera_reference.abi.fatbin import image
from tessera_reference.abi.status import AbiVersion
from tessera_reference.adapter import ReferenceAdapter

from ...runtime.kit.parameter_readings import NARROW, parameters_of

C_KEYWORD = re.compile(r"\bkernel (int|double|register|sizeof)\b")
KERNELS = ("abi/kernel-buffers/*", "abi/kernel-padding/*", "abi/kernel-convention/*", "abi/loaded-images/*")


@varies("AMB-RT-105", "renames kernels whose names C reserves", *KERNELS)
class KeywordsRenamed(ReferenceAdapter):
    """A name that is a keyword of C has an underscore behind it."""

    def abi_compile(self, *, source: str, **options: Any) -> dict[str, Any]:
        """The image of a program whose kernels are renamed."""
        return super().abi_compile(source=C_KEYWORD.sub(r"kernel \1_", source), **options)


@varies("AMB-RT-19", "refuses kernels that declare a scalar before a buffer", *KERNELS)
class BuffersFirst(ReferenceAdapter):
    """Pointers come first."""

    def abi_compile(self, *, source: str, **options: Any) -> dict[str, Any]:
        """The image, where no scalar stands before a pointer."""
        for types in parameters_of(source):
            pointers = [place for place, type_ in enumerate(types) if type_ == "*"]
            if pointers and pointers != list(range(len(pointers))):
                raise Refusal("TESS_ERR_UNSUPPORTED", "call", "a scalar stands before a buffer")
        return super().abi_compile(source=source, **options)


@varies("AMB-RT-17", "refuses scalars of fewer than 32 bits", *KERNELS)
class WideScalars(ReferenceAdapter):
    """Scalars have 32 or 64 bits."""

    def abi_compile(self, *, source: str, **options: Any) -> dict[str, Any]:
        """The image, where every scalar is wide enough."""
        if any(type_ in NARROW for types in parameters_of(source) for type_ in types):
            raise Refusal("TESS_ERR_UNSUPPORTED", "call", "a narrow scalar")
        return super().abi_compile(source=source, **options)


@varies("AMB-RT-102", "takes integers modulo the range of their type", "abi/parameter-values/*")
class IntegersWrap(ReferenceAdapter):
    """Cuts off what does not fit."""

    def abi_pack(self, *, signature: str, values: Sequence[Any]) -> dict[str, Any]:
        """The buffer of the lowest bits."""
        places = super().abi_parameter_layout(signature=signature)["parameters"]
        if len(values) == len(places):
            values = [wrapped(value, place) for value, place in zip(values, places, strict=True)]
        return super().abi_pack(signature=signature, values=values)


def wrapped(value: Any, place: dict[str, Any]) -> Any:
    """The bytes of an integer that is too large; other values as they are."""
    if type(value) is not int or not place["type"].startswith(("int", "ptr")):
        return value
    return {"bits": (value % (1 << 8 * place["size"])).to_bytes(place["size"], "little").hex()}


@varies("AMB-RT-44", "makes images with binaries where an IR-pack is asked for", "abi/module-images/an-image-of-ir-*")
class NoPacks(ReferenceAdapter):
    """Knows one kind of image."""

    def abi_compile(self, *, ir_pack: bool = False, **options: Any) -> dict[str, Any]:
        """The image with binaries."""
        return super().abi_compile(**options)


def same_major(module: AbiVersion, runtime: AbiVersion) -> bool:
    """A module of the runtime's major loads, whatever its minor."""
    return module[0] == runtime[0]


NEWER_MINORS = altered(
    "AMB-RT-32",
    "loads modules of newer minors",
    ("abi/loaded-images/*", "abi/module-images/*", "runtime/module-versions/*"),
    ReferenceAdapter,
    (image, "is_compatible", same_major),
    name="newer_minors",
)
