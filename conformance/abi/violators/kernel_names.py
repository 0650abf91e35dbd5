"""Kernels whose names are cut, padded or compared in part (runtime specification, 8.1 and 10.3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced, violates
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.runtime.launches import LoadedModule

from ...runtime.violators.changes import BuildsOnce
from .kernels import renamed

DECLARED = re.compile(r"\bkernel (\w+)")


def compared(name: str, description: str, part: Callable[[str], object]) -> Violation:
    """Return a violation that finds kernels by a part of their names."""

    def entry(module: LoadedModule, expected: str) -> Any:
        return next((kernel for kernel in module.fatbin.metadata.kernels if part(kernel.name) == part(expected)), None)

    return replaced("RT-08.1-07", description, BuildsOnce, ("runtime.launches.LoadedModule.entry", entry), name=name)


TABLES = [
    renamed("RT-10.3-01", "of_32", "loses the last character of names of 32",
        lambda name: (name[:-1] if len(name) == 32 else name)),
]  # fmt: skip

SEARCHED = [
    compared("first_62", "compares 62 characters of a name", lambda name: name[:62]),
    compared("ends", "compares the length of a name and its ends", lambda name: (len(name), name[:1], name[-2:])),
]


@violates("RT-10.3-01", "cuts names after 63 characters")
class CutAt63(ReferenceAdapter):
    def abi_compile(self, *, source: str, **options: Any) -> dict[str, Any]:
        taken: list[str] = []

        def cut(match: re.Match[str]) -> str:
            name = match[1][:63]
            taken.append(name)
            return f"kernel {name if taken.count(name) == 1 else name[:62] + str(taken.count(name))}"

        return super().abi_compile(source=DECLARED.sub(cut, source), **options)


@violates("RT-10.3-01", "refuses kernels and parameters that are named as registers")
class NoRegisters(ReferenceAdapter):
    def abi_compile(self, *, source: str, **options: Any) -> dict[str, Any]:
        if re.search(r"[ (](?:r0|v0|s0|tid|exec)[:(]", source):
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", "a register is declared twice")
        return super().abi_compile(source=source, **options)


@violates("RT-10.1-01", "takes parameters in the order of their names where one is a register")
class ByName(ReferenceAdapter):
    def abi_compile(self, *, source: str, **options: Any) -> dict[str, Any]:
        def ordered(match: re.Match[str]) -> str:
            parameters = match[2].split(", ")
            return f"kernel {match[1]}({', '.join(sorted(parameters))})"

        named = re.compile(r"kernel (\w+)\(((?:r0|rd1|p1|f2|tid|v0|vcc|ret): [^)]*)\)")
        return super().abi_compile(source=named.sub(ordered, source), **options)
