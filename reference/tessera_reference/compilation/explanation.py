"""Explanations of compilation: fusion groups and tile shapes (runtime spec 17; RT-17-03, -08, -09).

It is read off Schedule IR, nest by nest. A kernel whose dimensions are known only at launch has no nests before;
`executables.explain_launch` gives those of a launch. Kernels of Tile and Target IR were scheduled by who wrote them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from ..abi.fatbin import Explanation, FusionGroup, KernelEntry, Metadata, TileShape
from ..ir.module import Instruction, Module
from ..ir.targets import Target
from ..schedule.lowering import to_schedule
from ..schedule.nests import Nest
from ..schedule.rewriting import with_nests_replaced
from .extents import named_dimensions

__all__ = ["explanation_json", "explanation_of", "explanation_text", "explanation_value", "kernel_lines", "merged"]


def explanation_of(kernel: str, module: Module, target: Target) -> Explanation:
    """What is decided for a kernel, of which `module` holds all that it runs, for its shapes. Raises `Rejection`."""
    nests: list[Nest] = []

    def found(nest: Nest) -> tuple[Instruction, ...]:
        nests.append(nest)
        return ()

    with_nests_replaced(to_schedule(module, target), target, found)
    groups = tuple(FusionGroup(kernel, tuple(map(_described, nest.operations))) for nest in nests)
    tiles = tuple(TileShape(kernel, _described(nest.lead), _tile(nest)) for nest in nests)
    return Explanation(groups, tiles)


def _described(instruction: Instruction) -> str:
    """`%C = matmul -> tensor<20x18xbf16>`: enough to distinguish it from the others."""
    results = ", ".join(f"%{value.name}" for value in instruction.results)
    types = ", ".join(str(value.type) for value in instruction.results)
    return f"{results} = {instruction.operation.short_name} -> {types}"


def _tile(nest: Nest) -> tuple[tuple[str, int], ...]:
    """The extents by name; k, and the depth of its pipeline, of contractions only."""
    m, n, k = nest.tile
    depth = (("depth", nest.depth),)
    return (*depth, ("k", k), ("m", m), ("n", n)) if nest.kind == "contract" else (("m", m), ("n", n))


def merged(explanations: Sequence[Explanation]) -> Explanation:
    """Several explanations as one; what targets decide alike stands once."""
    groups = dict.fromkeys(group for each in explanations for group in each.fusion_groups)
    tiles = dict.fromkeys(tile for each in explanations for tile in each.tile_shapes)
    return Explanation(tuple(groups), tuple(tiles))


def explanation_value(metadata: Metadata) -> Mapping[str, object]:
    """The explanation of a module as data that JSON can hold."""
    explanation = metadata.explanation
    return {
        "kernels": {
            each.name: {"level": each.level, "decided_at_launch_for": list(named_dimensions(each))}
            for each in metadata.kernels
        },
        "fusion_groups": [asdict(each) for each in explanation.fusion_groups],
        "tile_shapes": [{**asdict(each), "extents": dict(each.extents)} for each in explanation.tile_shapes],
        "collective_plans": [dict(each.members) for each in metadata.collective_plans],
    }


def explanation_json(metadata: Metadata) -> str:
    """The explanation of a module as JSON."""
    return json.dumps(explanation_value(metadata), indent=2, sort_keys=True) + "\n"


def explanation_text(metadata: Metadata) -> str:
    """The explanation of a module as a person reads it."""
    lines = [line for kernel in metadata.kernels for line in kernel_lines(kernel, metadata.explanation)]
    lines += [f"collective {plan}" for plan in metadata.collective_plans]
    if not metadata.collective_plans:
        lines.append("collectives: no plans; the runtime chooses")
    return "\n".join(lines) + "\n"


def kernel_lines(kernel: KernelEntry, explanation: Explanation) -> Iterator[str]:
    """The lines about one kernel."""
    yield f"kernel {kernel.name}"
    groups = [each for each in explanation.fusion_groups if each.kernel == kernel.name]
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
