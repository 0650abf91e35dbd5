"""What a program becomes for the tools of vendors: LLVM IR, PTX, AMDGCN of all its kernels (LANG-08-01 to -03)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..ir.module import Function, Module
from ..ir.targets import Target
from ..target.emission.entry import llvm_module_text
from ..target.emission.machine_code import amdgcn, ptx
from .execution import Options, lower

__all__ = ["TEXTS", "OtherVendor", "emit", "emit_all"]

TEXTS = ("llvm", "ptx", "amdgcn")
"""The kinds of text."""

ASSEMBLY: Mapping[str, tuple[str, Callable[[str, Target], str]]] = {"ptx": ("nvidia", ptx), "amdgcn": ("amd", amdgcn)}
"""For which vendor each is, and what makes it of LLVM IR."""

SYMBOL = "tss_kernel_"


class OtherVendor(Exception):
    """A kind of text is not one of the target's vendor."""

    def __init__(self, text: str, target: Target) -> None:
        self.text = text
        self.target = target
        super().__init__(f"{target.name} takes no {text}: it is {target.vendor}'s")


def emit(module: Module, to: str, target: Target) -> str:
    """The text of a module of Target IR. Raises `OtherVendor`, and `MissingTool` without llvmlite."""
    if to in ASSEMBLY and ASSEMBLY[to][0] != target.vendor:
        raise OtherVendor(to, target)
    text = llvm_module_text(module, target)
    return ASSEMBLY[to][1](text, target) if to in ASSEMBLY else text


def emit_all(modules: Sequence[Module], to: str, target: Target, options: Options) -> str:
    """The kernels of modules of Graph IR as one text. Raises as `emit` and `lower`."""
    lowered = [lower(module, "target", target, options) for module in modules]
    kernels: dict[str, Function] = {}
    for module in lowered:
        for kernel in module.functions.values():
            if kernel.device:
                name = kernel.name if kernel.name not in kernels else _qualified(module, kernel)
                kernels[name] = replace(kernel, name=name)
    return emit(replace(lowered[0], functions=kernels), to, target) if lowered else ""


def _qualified(module: Module, kernel: Function) -> str:
    """The symbol of a kernel that another module has one of the same name as (LANG-16-01)."""
    return f"{SYMBOL}{module.name}_{kernel.name.removeprefix(SYMBOL)}"
