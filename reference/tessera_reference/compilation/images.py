"""From a source to the image of a module, with collective plans and explanations (runtime spec 8.1, 16, 17)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import prod
from typing import Any, Literal

from ..abi.fatbin import (
    CollectivePlan,
    Explanation,
    Fatbin,
    FusionGroup,
    KernelEntry,
    Metadata,
    Section,
    TileShape,
    write,
)
from ..abi.policy import NumericsPolicy
from ..abi.status import ABI_VERSION, AbiVersion, invalid
from ..collectives.planner import DIALECT
from ..collectives.selection import row_of, tables
from ..graph.collectives import AllGather, Collective
from ..graph.futures import WIRES, FutureCollective, GroupCollective, IssueAllGather
from ..ir.attributes import attribute_text
from ..ir.diagnostics import MissingTool, Rejection, UnsupportedConstruct
from ..ir.operation import Function, Instruction, Module, Refusal
from ..ir.targets import Target, UnknownTarget, target_of
from ..ir.types import Mesh, Shard, Tensor, Type
from ..language import compile_source
from ..levels.emission import bitcode, emit, joined
from ..levels.execution import for_shapes, lower
from ..levels.texts import read_at
from ..schedule.choices import Options, annotated
from ..schedule.lowering import lowering_refused, specialized_alone, to_schedule
from ..schedule.nests import Nest, with_nests_replaced
from ..target_ir.lowering import to_target
from .extents import named_dimensions
from .kernels import Offered, canonical_text, entry_of, offered, require_kernels, with_resources

# The plans of a module, from the collectives of its functions (runtime spec 8.1, collectives spec 3.1, 8).
#
# RT-08.1-10, RT-17-09, COLL-08-12; AMB-COLL-85, -86. The plan of a collective has the program's attributes. If it
# leaves the algorithm open, the table by size decides, or the runtime where the size is known only at launch.


def plans_of(modules: Sequence[Module]) -> tuple[CollectivePlan, ...]:
    """Return a plan of every collective, in the order of the text; equal plans of a function are listed once."""
    plans: dict[CollectivePlan, None] = {}
    for module in modules:
        for function in module.functions.values():
            for instruction in function.body.walk():
                operation = instruction.operation
                planned = isinstance(operation, GroupCollective) or type(operation) in DIALECT
                if planned and isinstance(operation, Collective):
                    plans[_plan(operation, function.name, module.meshes)] = None
    return tuple(plans)


def _plan(operation: Collective, function: str, meshes: Mapping[str, Mesh]) -> CollectivePlan:
    name, size = DIALECT.get(type(operation), operation.name), _bytes(operation)
    collective = name.rpartition(".")[2]
    if not isinstance(operation, FutureCollective):
        algorithm = _by_size(collective, size)
        return CollectivePlan(collective, operation.axis, algorithm, "default", function, bytes=size)
    axis, subgroup = _place(operation.met, meshes[operation.grid])
    hint = None if operation.algo == "auto" else operation.algo
    return CollectivePlan(
        collective,
        axis,
        hint or _by_size(collective, size),
        "hint" if hint else "default",
        function,
        subgroup,
        size,
        None if operation.chunk_size is None else int(operation.chunk_size),
        WIRES[operation.dtype] if operation.dtype else None,
        operation.path,
        operation.scope,
        _kept(operation.priority),
        _kept(operation.overlap),
        _kept(operation.qos),
    )


def _place(met: Shard, mesh: Mesh) -> tuple[str | None, str | None]:
    """Return the axis of the collective, or its subgroup, or neither for the whole mesh."""
    if len(met.axes) == 1:
        return met.axes[0], None
    whole = set(met.axes) == set(mesh.axes) or met.groups == (tuple(range(mesh.size)),)
    return None, None if whole else str(met)


def _bytes(operation: Collective) -> int | None:
    """Return the size in bytes of the full buffer, for a gather that of its result; None if an extent is unknown."""
    extents = [extent for extent in operation.x.shape if isinstance(extent, int)]
    if len(extents) != len(operation.x.shape):
        return None
    parts = operation.group if isinstance(operation, AllGather | IssueAllGather) else 1
    return prod(extents) * operation.x.dtype.storage_bytes * parts


def _by_size(collective: str, size: int | None) -> str:
    return "auto" if size is None else row_of(tables()[collective], size).algorithm


def _kept(value: object) -> int | str | None:
    """Return a number or a text unchanged, and anything else as IR text prints it (AMB-COLL-19)."""
    if value is None or isinstance(value, str) or (type(value) is int and -(1 << 63) <= value < 1 << 63):
        return value
    return attribute_text(value)  # type: ignore[arg-type]  # an operation's attribute values


# The sources of compilation, programs and IR texts, as verified modules (language spec 4).


Start = Literal["dsl", "graph", "tile", "target"]
"""The level of a source."""

SETTINGS = tuple(field.name for field in fields(Options))
"""The names of options, which are also those of the annotations."""


def read_graph(source: str, at: Start, target: Target, filename: str) -> tuple[Module, ...]:
    """Return the modules of a program, or of a text of Graph IR. Raises `Rejection` and `UnsupportedConstruct`."""
    return compile_source(source, filename).modules if at == "dsl" else read_at("graph", source, target, filename)


def read_kernels(source: str, at: Start, target: Target, filename: str) -> tuple[Module, ...]:
    """Return the modules of a text of Tile or Target IR, verified for a target.

    Raises `Rejection`, also for a kernel of another target, `UnsupportedConstruct`, and `Failure` for an unknown level.
    """
    if at != "tile" and at != "target":
        raise invalid("compile", f"a source at {at!r}", "dsl, graph, tile or target")
    return read_at(at, source, target, filename)


def made_for(module: Module, target: Target) -> Module:
    """Return the module with this target on every kernel that names none."""

    def stated(function: Function) -> Function:
        return replace(function, attributes={"target": target.name, **function.attributes})

    functions = {name: stated(function) if function.device else function for name, function in module.functions.items()}
    return replace(module, functions=functions)


def with_options(modules: Sequence[Module], options: Options) -> tuple[Module, ...]:
    """Return modules whose functions state the options themselves, so that kernels specialised at launch agree.

    A function's own annotation takes precedence over the options, as in the lowering. Raises `Rejection`.
    """
    if options == Options():
        return tuple(modules)
    return tuple(
        replace(module, functions={name: _annotated(function, options) for name, function in module.functions.items()})
        for module in modules
    )


def _annotated(function: Function, options: Options) -> Function:
    """Return a function whose annotation states each option that differs from the default."""
    pairs: Any = function.attributes.get("schedule", ())
    try:
        chosen = annotated(options, function)
    except Refusal as refusal:
        raise lowering_refused(refusal, function.location) from refusal
    default = Options()
    stated = {name: getattr(chosen, name) for name in SETTINGS if getattr(chosen, name) != getattr(default, name)}
    pairs_left = [(name, value) for name, value in pairs if name not in stated]
    return replace(function, attributes={**function.attributes, "schedule": (*pairs_left, *stated.items())})


# Kernels with named dimensions, lowered ahead of a launch for one choice of extents (runtime spec 8.1; AMB-RT-60).
#
# A launch runs code for the extents of its arguments. The image holds binary code all the same: for the first of a few
# extents, equal in every dimension, with which the kernel can be lowered. The Target IR beside the binary states them
# in the types of the program.


EXTENTS = (16, 8, 32, 64, 4, 128, 2, 1)
"""The extents in the order of trial: most kernels take any, some a multiple of their tile."""


def example(kernel: Offered, target: Target) -> Module | None:
    """Return a kernel with named dimensions and its callees at Target IR; None where none of the extents fits."""
    for extent in EXTENTS:
        try:
            types = tuple(_with_extent(parameter.type, extent) for parameter in kernel.function.parameters)
            return lower(specialized_alone(kernel.module, {kernel.function.name: types}), "target", target)
        except (Refusal, Rejection, UnsupportedConstruct):
            continue
    return None


def _with_extent(type_: Type, extent: int) -> Type:
    """Return a type with this extent for every named dimension."""
    if not isinstance(type_, Tensor):
        return type_
    return replace(type_, shape=tuple(size if isinstance(size, int) else extent for size in type_.shape))


# Explanations of compilation: fusion groups and tile shapes (runtime spec 17; RT-17-03, -08, -09).
#
# They are read off Schedule IR, nest by nest. A kernel whose dimensions are known only at launch has no nests before;
# `executables.explain_launch` returns those of a launch. The author of a Tile or Target IR kernel has scheduled it
# already.


def explanation_of(kernel: str, module: Module, target: Target) -> Explanation:
    """Return the decisions about a kernel for its shapes; `module` holds everything it runs. Raises `Rejection`."""
    nests: list[Nest] = []

    def found(nest: Nest) -> tuple[Instruction, ...]:
        nests.append(nest)
        return ()

    with_nests_replaced(to_schedule(module, target), target, found)
    groups = tuple(FusionGroup(kernel, tuple(map(_described, nest.operations))) for nest in nests)
    tiles = tuple(TileShape(kernel, _described(nest.lead), _tile(nest)) for nest in nests)
    return Explanation(groups, tiles)


def _described(instruction: Instruction) -> str:
    """Return a text such as `%C = matmul -> tensor<20x18xbf16>`, which distinguishes it from the others."""
    results = ", ".join(f"%{value.name}" for value in instruction.results)
    types = ", ".join(str(value.type) for value in instruction.results)
    return f"{results} = {instruction.operation.short_name} -> {types}"


def _tile(nest: Nest) -> tuple[tuple[str, int], ...]:
    """Return the extents by name; k and the pipeline's depth for contractions only."""
    m, n, k = nest.tile
    depth = (("depth", nest.depth),)
    return (*depth, ("k", k), ("m", m), ("n", n)) if nest.kind == "contract" else (("m", m), ("n", n))


def merged(explanations: Sequence[Explanation]) -> Explanation:
    """Return several explanations as one; equal decisions of targets are listed once."""
    groups = dict.fromkeys(group for explanation in explanations for group in explanation.fusion_groups)
    tiles = dict.fromkeys(tile for explanation in explanations for tile in explanation.tile_shapes)
    return Explanation(tuple(groups), tuple(tiles))


def explanation_value(metadata: Metadata) -> Mapping[str, object]:
    """Return the explanation of a module as data for JSON."""
    explanation = metadata.explanation
    return {
        "kernels": {
            kernel.name: {"level": kernel.level, "decided_at_launch_for": list(named_dimensions(kernel))}
            for kernel in metadata.kernels
        },
        "fusion_groups": [asdict(fusion_group) for fusion_group in explanation.fusion_groups],
        "tile_shapes": [{**asdict(tile), "extents": dict(tile.extents)} for tile in explanation.tile_shapes],
        "collective_plans": [dict(collective_plan.members) for collective_plan in metadata.collective_plans],
    }


def explanation_json(metadata: Metadata) -> str:
    """Return the explanation of a module as JSON."""
    return json.dumps(explanation_value(metadata), indent=2, sort_keys=True) + "\n"


def explanation_text(metadata: Metadata) -> str:
    """Return the explanation of a module as text for people."""
    lines = [line for kernel in metadata.kernels for line in kernel_lines(kernel, metadata.explanation)]
    lines += [f"collective {plan}" for plan in metadata.collective_plans]
    if not metadata.collective_plans:
        lines.append("collectives: no plans; the runtime chooses")
    return "\n".join(lines) + "\n"


def kernel_lines(kernel: KernelEntry, explanation: Explanation) -> Iterator[str]:
    """Yield the lines about one kernel."""
    yield f"kernel {kernel.name}"
    groups = [fusion_group for fusion_group in explanation.fusion_groups if fusion_group.kernel == kernel.name]
    for number, group in enumerate(groups):
        yield f"  fusion group {number}: {'; '.join(group.operations)}"
    for tile in explanation.tile_shapes:
        if tile.kernel == kernel.name:
            extents = ", ".join(f"{name}={extent}" for name, extent in tile.extents)
            yield f"  tile of {tile.operation}: {extents}"
    names = named_dimensions(kernel)
    if names and not groups:
        yield f"  fusion groups and tiles are decided at launch, for {', '.join(names)}"
    elif kernel.level == "tile":
        yield "  one group, as it was written in Tile or Target IR"
    elif not groups:
        yield "  nothing to tile: the host function computes it"


# From a source to the image of a module: Graph IR, kernels of every target, metadata (8.1, 16; RT-17-03).
#
# Kernels whose extents are numbers are lowered here, for each target. Those with named dimensions are lowered at
# launch, from the Graph IR that the image carries, and here for one choice of extents. The same source and options
# produce the same bytes everywhere.


BINARIES: Mapping[str, str] = {"nvidia": "ptx", "amd": "rocdl"}
"""The kind of binary section that is made for a vendor."""


@dataclass(frozen=True)
class Extras:
    """Parts of an image besides its kernels; `abi_version` is that of this runtime unless given."""

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
    """Return the image of a program, or of IR text of a level, for some targets; an IR-pack leaves out all binaries.

    Raises `Rejection` for a source that is illegal, or has no kernels that a host can launch, `UnsupportedConstruct`
    for what goes beyond this reference, and `Failure` for a target that is unknown, and as `fatbin.write` does.
    """
    targets_ = targets_named(targets)
    extras = Extras(abi_version, policy, signing_key)
    if at in ("dsl", "graph"):
        modules = read_graph(source, at, targets_[0], filename)
        return image_of_graph(modules, targets_, options or Options(), extras, ir_pack, filename)
    return _image_of_kernels(source, at, targets_, extras, ir_pack, filename)


def targets_named(names: Sequence[str]) -> tuple[Target, ...]:
    """Return the targets of an image. Raises `Failure` with TESS_ERR_INVALID_VALUE for none, unknown or repeated."""
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
    """Return the image of modules of Graph IR. Raises as `compile_module` does."""
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
            alone = [(kernel.name, for_shapes(kernel.module, kernel.function, {})) for kernel in closed]
            explained += [explanation_of(name, module, target) for name, module in alone]
            lowered = [lower(module, "target", target) for module in _closed(modules, closed)]
            tried = [example(kernel, target) for kernel in kernels if kernel.is_open]
            named = joined([*lowered, *(image for image in tried if image is not None)])
            every += named[: len(lowered)]
            sections += _sections(named, target) if named else []
        entries = [with_resources(entry, every) for entry in entries]
    return _image(modules, targets, sections, entries, merged(explained), extras)


def _closed(modules: Sequence[Module], kernels: Sequence[Offered]) -> list[Module]:
    """Return the modules of kernels with known extents, with their callees specialized for the calls' shapes."""
    modules_ = []
    for module in modules:
        functions = [kernel.function for kernel in kernels if kernel.module is module]
        types = {entry.name: tuple(parameter.type for parameter in entry.parameters) for entry in functions}
        if types:
            modules_.append(specialized_alone(module, types))
    return modules_


def _image_of_kernels(
    source: str, at: Start, targets: Sequence[Target], extras: Extras, ir_pack: bool, filename: str
) -> bytes:
    """Return the image of a text of Tile or Target IR. Raises as `compile_module` does."""
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
    """Return the kernels of a target as text, and as code for its vendor's tools where LLVM is installed."""
    sections = [Section("target-ir", target.name, canonical_text(modules).encode())]
    functions = {name: function for module in modules for name, function in module.functions.items() if function.device}
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
