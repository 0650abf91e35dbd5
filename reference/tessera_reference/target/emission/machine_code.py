"""PTX and AMDGCN from LLVM IR, by LLVM itself (LANG-08-02, LANG-08-03).

llvmlite brings LLVM with both backends; it is an optional dependency. Separate products and sums stay separate: nothing
in the IR permits fusing, and without that no backend fuses.
"""

from __future__ import annotations

from typing import Any

from ...ir.missing_tool import MissingTool
from ...ir.targets import Target
from .entry import FEATURES, TRIPLES
from .strictness import permissions

INSTALL = "pip install 'tessera-conformance[llvm]'"


class NotAccepted(Exception):
    """LLVM does not take the text, or the text permits what it must not; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def binding() -> Any:
    """llvmlite's binding, its targets initialised. Raises `MissingTool`."""
    try:
        import llvmlite.binding as llvm
    except ImportError:
        raise MissingTool("llvmlite", INSTALL) from None
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


def checked(text: str) -> Any:
    """The text as a module that LLVM's verifier accepts. Raises `NotAccepted` and `MissingTool`."""
    llvm = binding()
    for line in permissions(text):
        raise NotAccepted(f"it permits what the canon does not: {line}")
    try:
        # A context of its own: in a shared one the bits of a module depend on what was read before it.
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise NotAccepted(str(error)) from None
    return module


class OtherVendor(Exception):
    """A kind of assembly is not one of the target's vendor."""

    def __init__(self, kind: str, target: Target) -> None:
        super().__init__(f"{target.name} takes no {kind}: it is {target.vendor}'s")


VENDORS = {"ptx": "nvidia", "amdgcn": "amd"}
"""Whose assembly each kind is."""


def ptx(text: str, target: Target) -> str:
    """PTX of LLVM IR for an NVIDIA target. Raises `OtherVendor`, `NotAccepted` and `MissingTool`."""
    return assembly(text, "ptx", target)


def amdgcn(text: str, target: Target) -> str:
    """Assembly of LLVM IR for an AMD target. Raises `OtherVendor`, `NotAccepted` and `MissingTool`."""
    return assembly(text, "amdgcn", target)


def assembly(text: str, kind: str, target: Target) -> str:
    """The assembly of that kind. Raises `OtherVendor`, `NotAccepted` and `MissingTool`."""
    require_vendor(kind, target)
    code: str = _machine(target).emit_assembly(checked(text))
    return code


def require_vendor(kind: str, target: Target) -> None:
    """Raise `OtherVendor` for assembly that the target does not run."""
    if VENDORS[kind] != target.vendor:
        raise OtherVendor(kind, target)


def bitcode(text: str) -> bytes:
    """The bitcode of LLVM IR, which every LLVM of this version or a later one reads. Raises `NotAccepted`."""
    code: bytes = checked(text).as_bitcode()
    return code


def amdgcn_object(text: str, target: Target) -> bytes:
    """A relocatable object, which a linker makes a code object. Raises `NotAccepted` and `MissingTool`."""
    code: bytes = _machine(target).emit_object(checked(text))
    return code


def _machine(target: Target) -> Any:
    found = binding().Target.from_triple(TRIPLES[target.vendor])
    return found.create_target_machine(cpu=target.name, features=FEATURES.get(target.name, ""), opt=2)
