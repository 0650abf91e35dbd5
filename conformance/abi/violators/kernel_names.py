"""Kernels whose names are cut, padded or compared in part (runtime specification, 8.1 and 10.3)."""

import re

from tessera_conformance.adapter import Refusal

from ...ir.violators.changes import wrapped
from ...runtime.violators.changes import BuildsOnce
from .kernels import renamed

COMPILE = "adapter.ReferenceAdapter.abi_compile"


def compared(name, description, part):
    def entry(usual, module, expected):
        return next((kernel for kernel in module.fatbin.metadata.kernels if part(kernel.name) == part(expected)), None)

    return wrapped("RT-08.1-07", name, description, "runtime.launches.LoadedModule.entry", entry, BuildsOnce)


def cut_at_63(usual, self, *, source, **options):
    taken = []

    def cut(match):
        taken.append(match[1][:63])
        return f"kernel {taken[-1] if taken.count(taken[-1]) == 1 else taken[-1][:62] + str(taken.count(taken[-1]))}"

    return usual(self, source=re.sub(r"\bkernel (\w+)", cut, source), **options)


def no_registers(usual, self, *, source, **options):
    if re.search(r"[ (](?:r0|v0|s0|tid|exec)[:(]", source):
        raise Refusal("TESS_ERR_INVALID_VALUE", "call", "a register is declared twice")
    return usual(self, source=source, **options)


def by_name(usual, self, *, source, **options):
    def ordered(match):
        return f"kernel {match[1]}({', '.join(sorted(match[2].split(', ')))})"

    named = re.compile(r"kernel (\w+)\(((?:r0|rd1|p1|f2|tid|v0|vcc|ret): [^)]*)\)")
    return usual(self, source=named.sub(ordered, source), **options)


VIOLATORS = [
    renamed("RT-10.3-01", "of_32", "loses the last character of names of 32",
        lambda name: name[:-1] if len(name) == 32 else name),
    compared("first_62", "compares 62 characters of a name", lambda name: name[:62]),
    compared("ends", "compares the length of a name and its ends", lambda name: (len(name), name[:1], name[-2:])),
    wrapped("RT-10.3-01", "CutAt63", "cuts names after 63 characters", COMPILE, cut_at_63),
    wrapped("RT-10.3-01", "NoRegisters", "refuses kernels and parameters that are named as registers", COMPILE,
        no_registers),
    wrapped("RT-10.1-01", "ByName", "takes parameters in the order of their names where one is a register", COMPILE,
        by_name),
]  # fmt: skip
