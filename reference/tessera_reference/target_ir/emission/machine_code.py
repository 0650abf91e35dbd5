"""Kernels as LLVM IR, and PTX and AMDGCN made from it by LLVM (LANG-08-02, LANG-08-03; spec section 16)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...ir.diagnostics import MissingTool
from ...ir.operation import Function, Module
from ...ir.targets import OtherVendor, Target
from ...ir.types import Value
from ...kernel_machine.block import extents_of
from ...tile.operations import AXES
from ..operation import Entry, Writer, llvm_type

# The entry of a kernel in LLVM IR: calling convention, parameters, launch bounds (sections 8.1 and 16).
#
# Parameters are the buffers, then the scalars, then the hidden launch metadata: the extents of the grid (AMB-LANG-220).
# Those of the block are fixed when a kernel is compiled. Shared memory is declared as globals of address space 3; the
# dynamic segment, where there is one, begins after them.


TRIPLES = {"nvidia": "nvptx64-nvidia-cuda", "amd": "amdgcn-amd-amdhsa"}
CONVENTIONS = {"nvidia": "ptx_kernel", "amd": "amdgpu_kernel"}
"""The calling conventions of the targets (LANG-16-08)."""
FEATURES = {"sm_80": "+ptx78", "sm_90": "+ptx84"}
"""The version of PTX for a target: one that has all its instructions."""

HIDDEN = tuple(f"grid_dim_{axis}" for axis in AXES)
"""The hidden metadata, each an i32, in the order in which they follow the scalars."""

ALIGNMENT = 16
"""The alignment in bytes of every buffer (LANG-16-05)."""


def llvm_module_text(module: Module, target: Target) -> str:
    """Return LLVM IR of every kernel of a module at the Target level, which the verifier has passed."""
    kernels = [function for function in module.functions.values() if function.device == "target"]
    declared: dict[str, None] = {}
    bodies = []
    for number, kernel in enumerate(kernels):
        hidden = {name: f"%{name}" for name in HIDDEN}
        text = Writer(Entry(target.vendor, target.warp, extents_of(kernel, "block"), hidden), kernel.name)
        bodies.append(_definition(text, kernel, number))
        declared |= text.globals | text.declarations
    bounds = [_attributes(kernel, target, number) for number, kernel in enumerate(kernels)]
    head = [f'target triple = "{TRIPLES[target.vendor]}"', "", *declared, ""]
    return "\n".join([*head, *bodies, *bounds, ""])


def _definition(text: Writer, kernel: Function, number: int) -> str:
    names = parameter_names(kernel.parameters)
    text.block(kernel.body, names)
    own = [_parameter(value, name) for value, name in zip(kernel.parameters, names, strict=True)]
    parameters = ", ".join([*own, *(f"i32 %{name}" for name in HIDDEN)])
    if kernel.attributes.get("dynamic_smem"):
        text.globals[f"@{kernel.name}.dynamic = external addrspace(3) global [0 x i8], align {ALIGNMENT}"] = None
    convention = CONVENTIONS[text.entry.vendor]
    lines = [
        f"define {convention} void @{kernel.name}({parameters}) #{number} {{",
        "entry:",
        *text.lines,
        "  ret void",
        "}",
    ]
    return "\n".join([*lines, ""])


def parameter_names(parameters: tuple[Value, ...]) -> tuple[str, ...]:
    """Return a name for each parameter, like its own as far as LLVM's letters allow."""
    letters = [re.sub("[^A-Za-z0-9_]", "_", value.name) for value in parameters]
    return tuple(f"%{'_' if name[0].isdigit() else ''}{name}.{index}" for index, name in enumerate(letters))


def _parameter(value: Value, name: str) -> str:
    type_ = llvm_type(value.type)
    return f"{type_} align {ALIGNMENT} {name}" if type_.startswith("ptr") else f"{type_} {name}"


def _attributes(kernel: Function, target: Target, number: int) -> str:
    x, y, z = extents_of(kernel, "block")
    bounds = [f'"target-cpu"="{target.name}"']
    if target.vendor == "nvidia":
        bounds += [f'"target-features"="{FEATURES[target.name]}"', f'"nvvm.reqntid"="{x},{y},{z}"']
    else:
        threads = x * y * z
        bounds += [f'"amdgpu-flat-work-group-size"="{threads},{threads}"', '"uniform-work-group-size"="true"']
        bounds += ['"denormal-fp-math-f32"="ieee,ieee"']
    return f"attributes #{number} = {{ {' '.join(bounds)} }}"


# Forbidden in emitted LLVM IR: permission to compute otherwise than written (section 10).


_FLAGS = re.compile(r"\b(?:fast|contract|reassoc|nnan|ninf|nsz|arcp|afn|nsw|nuw|exact)\b")
_FUSED = re.compile(r"@llvm\.(?:fma|fmuladd|experimental\.constrained)\.")
_NAMES = re.compile(r"[%@][-\w.$]+")
_INSTRUCTION = re.compile(r"= (?:tail |musttail )?[a-z]+ ")
_ATTRIBUTES = re.compile(r'"(?:unsafe|no-nans|no-infs|approx-func)-fp-math"="true"|"fp-contract"')


def permissions(text: str) -> Iterator[str]:
    """Yield each line that permits a compiler to fuse, reassociate, approximate or assume."""
    for line in text.splitlines():
        flagged = _INSTRUCTION.search(line) and _FLAGS.search(_NAMES.sub("", line))
        if flagged or _FUSED.search(line) or _ATTRIBUTES.search(line):
            yield line.strip()


# PTX and AMDGCN from LLVM IR, by LLVM itself (LANG-08-02, LANG-08-03).
#
# llvmlite provides LLVM with both backends; it is an optional dependency. Separate products and sums stay separate:
# nothing in the IR permits fusing, and without that no backend fuses.


INSTALL = "pip install 'tessera-conformance[llvm]'"


class NotAccepted(Exception):
    """LLVM rejects the text, or the text contains a forbidden permission; the message gives the reason."""


def binding() -> Any:
    """Return llvmlite's binding, with initialised targets. Raises `MissingTool`."""
    try:
        import llvmlite.binding as llvm
    except ImportError:
        raise MissingTool("llvmlite", INSTALL) from None
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


def checked(text: str) -> Any:
    """Return the text as a module that LLVM's verifier accepts. Raises `NotAccepted` and `MissingTool`."""
    llvm = binding()
    for line in permissions(text):
        raise NotAccepted(f"it permits what the reference arithmetic does not: {line}")
    try:
        # A separate context: in a shared one the bits of a module depend on the modules read earlier.
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise NotAccepted(str(error)) from None
    return module


VENDORS = {"ptx": "nvidia", "amdgcn": "amd"}
"""The vendor of each kind of assembly."""


def assembly(text: str, kind: str, target: Target) -> str:
    """Return the assembly of that kind. Raises `OtherVendor`, `NotAccepted` and `MissingTool`."""
    require_vendor(kind, target)
    code: str = machine_for(target).emit_assembly(checked(text))
    return code


def require_vendor(kind: str, target: Target) -> None:
    """Raise `OtherVendor` for assembly that the target does not run."""
    if VENDORS[kind] != target.vendor:
        raise OtherVendor(kind, target)


def bitcode(text: str) -> bytes:
    """Return the bitcode of LLVM IR, which LLVM of this or a later version reads. Raises `NotAccepted`."""
    code: bytes = checked(text).as_bitcode()
    return code


def machine_for(target: Target) -> Any:
    """Return LLVM's machine for a target. Raises `MissingTool`."""
    llvm_target = binding().Target.from_triple(TRIPLES[target.vendor])
    return llvm_target.create_target_machine(cpu=target.name, features=FEATURES.get(target.name, ""), opt=2)
