"""From kernels at the Target level to LLVM IR, PTX, AMDGCN and native code (LANG-08-02, LANG-08-03)."""

from __future__ import annotations

from ...ir.module import Module
from ...ir.targets import Target

TEXTS = ("llvm", "ptx", "amdgcn")
"""What a module of Target IR is written as."""


def emit(module: Module, to: str, target: Target) -> str:
    """The kernels of a module as LLVM IR, PTX or AMDGCN.

    Raises `WrongVendor` for the assembly of another vendor, `NotAccepted` and `MissingTool`.
    """
    from .entry import llvm_module_text
    from .machine_code import assembly

    text = llvm_module_text(module, target)
    return text if to == "llvm" else assembly(text, to, target)
