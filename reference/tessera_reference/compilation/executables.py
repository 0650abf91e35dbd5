"""Kernels of a loaded module, ready to run for one target (runtime spec 4.5, 6, 8.2; language spec 8.1).

A program runs its host function, which launches its kernels, whatever the grid; a tile kernel runs on the grid and the
blocks of the launch. Kernels with named dimensions are lowered for the extents of a launch first: `specialise` gives
the Target IR that a cache may keep, `executable_from` what runs it. Data only; time is the runtime's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ..abi.fatbin import Explanation, Fatbin, KernelEntry
from ..abi.status import Failure, Status, invalid
from ..graph.interpreter import reachable
from ..ir.module import Instruction, Module
from ..ir.targets import Target, UnknownTarget, target_of
from ..ir.types import Tensor
from ..levels.execution import Level, for_shapes, lower
from ..levels.texts import read_at
from ..numerics.trees import FOLD, PAIRWISE, Tree
from .canonical_text import canonical_text
from .executable import Executable
from .extents import named_dimensions, shapes_of
from .kernels import Offered, offered
from .programs import ProgramExecutable
from .tile_kernels import TileExecutable

__all__ = [
    "Executable",
    "code_digest",
    "executable_from",
    "executables_of",
    "explain_launch",
    "reduction_orders",
    "specialise",
]

Reading: TypeAlias = Callable[[Level, str, Target, str], tuple[Module, ...]]
"""`read_at`, or what keeps its results: the kernels of a module stand in one text."""

ORDERS: Mapping[Tree, frozenset[str]] = {
    FOLD: frozenset(f"tessera.graph.{name}" for name in ("matmul", "flash_attention", "scatter_add", "grad")),
    PAIRWISE: frozenset(
        f"tessera.graph.{name}"
        for name in (
            *("sum", "mean", "prod", "logsumexp", "softmax", "flash_attention", "layer_norm", "rms_norm"),
            *("batch_norm", "fft", "ifft", "all_reduce", "reduce_scatter", "root_sum", "grad"),
        )
    ),
}
"""The canonical orders, and the operations that add in them: adjoints may in either."""


def executables_of(
    fatbin: Fatbin,
    kernel_name: str,
    target_name: str,
    shapes: Mapping[str, int] | None = None,
    read: Reading = read_at,
) -> Executable:
    """A kernel of a module ready to run on a target, its named dimensions as `shapes` says; `read` reads its texts.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for an unknown kernel or an extent that is missing, with
    TESS_ERR_ARCH_MISMATCH where the module is not for the target; `Rejection` and `UnsupportedConstruct` where the
    kernel cannot be lowered for these extents, or the module's IR is malformed.
    """
    entry = entry_named(fatbin, kernel_name)
    _target_in(fatbin, target_name)
    section = fatbin.section("target-ir", target_name)
    if section is not None and not named_dimensions(entry):
        return executable_from(section.data, entry, target_name, read)
    return executable_from(specialise(fatbin, kernel_name, target_name, shapes, read), entry, target_name, read)


def specialise(
    fatbin: Fatbin,
    kernel_name: str,
    target_name: str,
    shapes: Mapping[str, int] | None = None,
    read: Reading = read_at,
) -> bytes:
    """The Target IR of a kernel for these extents, as text: what a cache keeps of it (RT-08.2-01).

    Of a module that was written in Tile or Target IR, that of all its kernels. Raises as `executables_of`.
    """
    entry, target = entry_named(fatbin, kernel_name), _target_in(fatbin, target_name)
    section = fatbin.section("target-ir", target_name)
    if section is not None and fatbin.section("graph-ir") is None:
        return section.data
    lowered = lower(_special(fatbin, entry, target, shapes or {}, read), "target", target)
    return canonical_text([lowered]).encode()


def code_digest(fatbin: Fatbin, target_name: str) -> str:
    """The SHA-256 of the IR that `specialise` reads, whatever hash the header of the image claims."""
    source, made = fatbin.section("graph-ir"), fatbin.section("target-ir", target_name)
    if source is not None:
        return hashlib.sha256(source.data).hexdigest()
    return hashlib.sha256(b"target-ir\0" + (b"" if made is None else made.data)).hexdigest()


def executable_from(payload: bytes, entry: KernelEntry, target_name: str, read: Reading = read_at) -> Executable:
    """The kernel of an entry in a text of Target IR, as `specialise` made it or a module carries it.

    Raises `Rejection` for a text that is none, `Failure` with TESS_ERR_INVALID_VALUE where the kernel is not in it.
    """
    target = target_of(target_name)
    found = _offered(payload, "target", entry, target, read)
    if entry.level == "tile":
        return TileExecutable(entry, target, found.function)
    return ProgramExecutable(entry, target, found.module, found.function)


def explain_launch(
    fatbin: Fatbin, kernel_name: str, target_name: str, shapes: Mapping[str, int] | None = None
) -> Explanation:
    """The fusion groups and tile shapes of a program for one target and these extents. Raises as `executables_of`."""
    entry, target = entry_named(fatbin, kernel_name), _target_in(fatbin, target_name)
    if entry.level == "tile":
        return Explanation()
    from .explanation import explanation_of  # imports the lowering to Schedule IR

    return explanation_of(entry.name, _special(fatbin, entry, target, shapes or {}), target)


def reduction_orders(fatbin: Fatbin, kernel_name: str, target_name: str) -> frozenset[Tree]:
    """The orders in which a program adds what rounds; none where it adds no such. Raises as `executables_of`."""
    entry, section = entry_named(fatbin, kernel_name), fatbin.section("graph-ir")
    if section is None or entry.level == "tile":
        return frozenset()
    kernel = _offered(section.data, "graph", entry, _target_in(fatbin, target_name))
    names = {each.operation.name for each in reachable(kernel.module, kernel.function) if _rounds(each)}
    return frozenset(order for order, operations in ORDERS.items() if names & operations)


def _rounds(instruction: Instruction) -> bool:
    """Whether it takes tensors of other numbers than whole ones, whose sums are the same in any order."""
    types = [each.type for each in instruction.operands]
    return any(isinstance(each, Tensor) and each.dtype.kind != "int" for each in types)


def entry_named(fatbin: Fatbin, kernel_name: str) -> KernelEntry:
    """The entry of a kernel. Raises `Failure` with TESS_ERR_INVALID_VALUE."""
    entry = fatbin.metadata.kernel(kernel_name)
    if entry is None:
        known = ", ".join(each.name for each in fatbin.metadata.kernels)
        raise invalid("tessKernelGet", f"no kernel {kernel_name!r}", f"one of {known or 'none'}")
    return entry


def _target_in(fatbin: Fatbin, name: str) -> Target:
    if name in fatbin.targets:
        try:
            return target_of(name)
        except UnknownTarget:
            pass
    allowed = f"one of {', '.join(fatbin.targets)}"
    raise Failure(Status.TESS_ERR_ARCH_MISMATCH, "tessModuleLoad", f"a module without code for {name}", allowed)


def _special(
    fatbin: Fatbin, entry: KernelEntry, target: Target, extents: Mapping[str, int], read: Reading = read_at
) -> Module:
    section = fatbin.section("graph-ir")
    if section is None:
        raise invalid("tessModuleLoad", f"kernel {entry.name} without its Graph IR", "a module with a section graph-ir")
    shapes = shapes_of(entry, extents)
    kernel = _offered(section.data, "graph", entry, target, read)
    return for_shapes(kernel.module, kernel.function, shapes)


def _offered(text: bytes, level: Level, entry: KernelEntry, target: Target, read: Reading = read_at) -> Offered:
    """The kernel of an entry among those that a text offers. Raises `Rejection` and `Failure`."""
    modules = read(level, text.decode(), target, f"<{level}-ir>")
    kind = entry.level == "tile"
    for kernel in offered(modules):
        if kernel.name == entry.name and bool(kernel.function.device) == kind:
            return kernel
    raise invalid(
        "tessModuleLoad", f"no kernel {entry.name} in the {level} IR of the module", "the kernels of its table"
    )
