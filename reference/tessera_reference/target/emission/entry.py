"""The entry of a kernel in LLVM IR: calling convention, parameters, launch bounds (sections 8.1 and 16).

Parameters are the buffers, then the scalars, then the hidden launch metadata: the extents of the grid (AMB-LANG-220).
The block's are fixed when a kernel is compiled. Shared memory is declared as globals of address space 3; the dynamic
segment, where there is one, begins after them.
"""

from __future__ import annotations

import re

from ...ir.module import Function, Module, Value
from ...ir.targets import Target
from ...tile.indices import AXES
from .types import llvm_type
from .writer import Entry, Writer

TRIPLES = {"nvidia": "nvptx64-nvidia-cuda", "amd": "amdgcn-amd-amdhsa"}
CONVENTIONS = {"nvidia": "ptx_kernel", "amd": "amdgpu_kernel"}
"""Those of the targets (LANG-16-08)."""
FEATURES = {"sm_80": "+ptx78", "sm_90": "+ptx84"}
"""The version of PTX that a target is written in: that which has all its instructions."""

HIDDEN = tuple(f"grid_dim_{axis}" for axis in AXES)
"""The hidden metadata, each an i32, in the order in which they follow the scalars."""

ALIGNMENT = 16
"""Bytes at whose multiples every buffer begins (LANG-16-05)."""


def llvm_text(kernel: Function, target: Target) -> str:
    """LLVM IR of one kernel at the Target level, which the verifier has passed."""
    return _module_text([kernel], target)


def llvm_module_text(module: Module, target: Target) -> str:
    """LLVM IR of every kernel of a module."""
    return _module_text([each for each in module.functions.values() if each.device == "target"], target)


def _module_text(kernels: list[Function], target: Target) -> str:
    declared: dict[str, None] = {}
    bodies = []
    for number, kernel in enumerate(kernels):
        text = Writer(_entry_of(kernel, target), kernel.name)
        bodies.append(_definition(text, kernel, number))
        declared |= text.globals | text.declarations
    bounds = [_attributes(kernel, target, number) for number, kernel in enumerate(kernels)]
    head = [f'target triple = "{TRIPLES[target.vendor]}"', "", *declared, ""]
    return "\n".join([*head, *bodies, *bounds, ""])


def extents_of(kernel: Function, name: str) -> tuple[int, int, int]:
    """The grid or the block of a kernel, which the verifier has seen to."""
    x, y, z = kernel.attributes[name]  # type: ignore[misc, str-unpack]  # three integers
    return int(x), int(y), int(z)


def _entry_of(kernel: Function, target: Target) -> Entry:
    return Entry(target.vendor, target.warp, extents_of(kernel, "block"), {name: f"%{name}" for name in HIDDEN})


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
    """A name for each parameter, like its own as far as LLVM's letters go."""
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
