"""From a source to the image of a module: Graph IR, kernels of every target, metadata (runtime spec 8.1, 16; RT-17-03).

Kernels whose extents are numbers are lowered here, for each target; those with named dimensions are lowered at launch,
from the Graph IR that the image carries, and here for one choice of extents. The same source and options give the same
bytes everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..abi.fatbin import Explanation, Fatbin, KernelEntry, Metadata, Section, write
from ..abi.policy import NumericsPolicy
from ..abi.status import invalid
from ..abi.version import ABI_VERSION, AbiVersion
from ..ir.missing_tool import MissingTool
from ..ir.module import Module
from ..ir.targets import Target, UnknownTarget, target_of
from ..levels.emission import bitcode, emit
from ..levels.execution import for_shapes, lower
from ..levels.symbols import joined
from ..schedule.options import Options
from ..schedule.specialize import specialized_alone
from ..target.lowering import to_target
from .canonical_text import canonical_text
from .collective_plans import plans_of
from .examples import example
from .explanation import explanation_of, merged
from .kernels import Offered, entry_of, offered, require_kernels, with_resources
from .sources import Start, made_for, read_graph, read_kernels, with_options

__all__ = ["BINARIES", "compile_module", "image_of_graph"]

BINARIES: Mapping[str, str] = {"nvidia": "ptx", "amd": "rocdl"}
"""The kind of binary section that is made for a vendor."""


@dataclass(frozen=True)
class Extras:
    """What an image says or bears besides its kernels; `abi_version` is that of this runtime unless given."""

    abi_version: AbiVersion | None = None
    policy: NumericsPolicy | None = None
    signing_key: bytes | None = None


def compile_module(
    source: str,
    targets: Sequence[str],
    *,
    options: Options | None = None,
    abi_version: AbiVersion | None = None,
    policy: NumericsPolicy | None = None,
    signing_key: bytes | None = None,
    at: Start = "dsl",
    ir_pack: bool = False,
    filename: str = "<source>",
) -> bytes:
    """The image of a program, or of IR text of a level, for some targets; an IR-pack leaves out all binaries.

    Raises `Rejection` for a source that is illegal, or has no kernels that a host can launch, `UnsupportedConstruct`
    for what goes beyond this reference, and `Failure` for a target that is unknown, and as `fatbin.write`.
    """
    known = targets_named(targets)
    extras = Extras(abi_version, policy, signing_key)
    if at in ("dsl", "graph"):
        modules = read_graph(source, at, known[0], filename)
        return image_of_graph(modules, known, options or Options(), extras, ir_pack, filename)
    return _image_of_kernels(source, at, known, extras, ir_pack, filename)


def targets_named(names: Sequence[str]) -> tuple[Target, ...]:
    """The targets of an image. Raises `Failure` with TESS_ERR_INVALID_VALUE for none, one unknown or named twice."""
    if isinstance(names, str) or not names:
        raise invalid("compile", f"targets {names!r}", "a list of at least one")
    if len(set(names)) != len(names):
        raise invalid("compile", f"targets {', '.join(names)}", "each once")
    try:
        return tuple(target_of(name) for name in names)
    except UnknownTarget as unknown:
        raise invalid("compile", f"target {unknown.name!r}", ", ".join(unknown.known)) from None


def image_of_graph(
    modules: Sequence[Module],
    targets: Sequence[Target],
    options: Options,
    extras: Extras,
    ir_pack: bool = False,
    filename: str = "<source>",
) -> bytes:
    """The image of modules of Graph IR. Raises as `compile_module`."""
    modules = with_options(modules, options)
    kernels = offered(modules)
    require_kernels(kernels, filename)
    sections = [Section("graph-ir", None, canonical_text(modules).encode())]
    entries = [entry_of(kernel) for kernel in kernels]
    explained: list[Explanation] = []
    closed = [kernel for kernel in kernels if not kernel.is_open]
    if not ir_pack:
        every: list[Module] = []
        for target in targets:
            alone = [(each.name, for_shapes(each.module, each.function, {})) for each in closed]
            explained += [explanation_of(name, module, target) for name, module in alone]
            lowered = [lower(each, "target", target) for each in _closed(modules, closed)]
            tried = [example(each, target) for each in kernels if each.is_open]
            named = joined([*lowered, *(found for found in tried if found is not None)])
            every += named[: len(lowered)]
            sections += _sections(named, target) if named else []
        entries = [with_resources(entry, every) for entry in entries]
    return _image(modules, targets, sections, entries, merged(explained), extras)


def _closed(modules: Sequence[Module], kernels: Sequence[Offered]) -> list[Module]:
    """The modules with the kernels whose extents are known, and what those call, for the shapes with which they do."""
    found = []
    for module in modules:
        functions = [kernel.function for kernel in kernels if kernel.module is module]
        if functions:
            types = {each.name: tuple(parameter.type for parameter in each.parameters) for each in functions}
            found.append(specialized_alone(module, types))
    return found


def _image_of_kernels(
    source: str, at: Start, targets: Sequence[Target], extras: Extras, ir_pack: bool, filename: str
) -> bytes:
    """The image of a text of Tile or Target IR. Raises as `compile_module`."""
    sections: list[Section] = []
    entries: list[KernelEntry] = []
    source_ir: Sequence[Module] = ()
    for target in targets:
        read = read_kernels(source, at, target, filename)
        modules = joined([made_for(module, target) for module in read])
        kernels = offered(modules)
        require_kernels(kernels, filename)
        lowered = [to_target(module, target) for module in modules]
        if not entries:
            source_ir = read
            entries = [with_resources(entry_of(kernel), lowered) for kernel in kernels]
        sections += _sections(lowered, target, ir_pack)
    return _image(source_ir, targets, sections, entries, Explanation(), extras)


def _sections(modules: Sequence[Module], target: Target, ir_pack: bool = False) -> list[Section]:
    """The kernels of a target as text, and as code for its vendor's tools where LLVM is installed."""
    sections = [Section("target-ir", target.name, canonical_text(modules).encode())]
    functions = {name: each for module in modules for name, each in module.functions.items() if each.device}
    if functions and not ir_pack:
        kind = BINARIES[target.vendor]
        kernels = Module("kernels", functions, modules[0].location)
        try:
            code = bitcode(kernels, target) if kind == "rocdl" else emit(kernels, kind, target).encode()
        except MissingTool:
            return sections
        sections.append(Section(kind, target.name, code))
    return sections


def _image(
    modules: Sequence[Module],
    targets: Sequence[Target],
    sections: Sequence[Section],
    entries: Sequence[KernelEntry],
    explanation: Explanation,
    extras: Extras,
) -> bytes:
    names = tuple(target.name for target in targets)
    metadata = Metadata(tuple(entries), extras.policy, plans_of(modules), explanation)
    version = extras.abi_version or ABI_VERSION
    hashed = hashlib.sha256(canonical_text(modules).encode()).digest()
    return write(Fatbin(version, hashed, names, tuple(sections), metadata), extras.signing_key)
