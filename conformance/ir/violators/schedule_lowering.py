"""Lowerings from Graph to Schedule IR that omit or ignore a part of the schedule (section 8.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tessera_conformance.strength import Violation, replaced, violates
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.ir.operation import Function, Instruction, Operation
from tessera_reference.ir.types import Tensor, Type, Value
from tessera_reference.schedule import fusion, lowering
from tessera_reference.schedule import lowering as specialize
from tessera_reference.schedule.choices import Choices
from tessera_reference.schedule.lowering import Scheduling
from tessera_reference.schedule.operations import Pipeline, Prefetch, Tile


def choosing(name: str, clause: str, description: str, **changed: Any) -> Violation:
    """Return a violation with other choices for every operation."""

    def of(cls: type[Choices], *arguments: Any) -> Choices:
        found: Choices = _of(cls, *arguments)
        return replace(found, **changed)

    return replaced(clause, description, make, ("schedule.choices.Choices.of", classmethod(of)), name=name)


_of = Choices.of.__func__  # type: ignore[attr-defined]  # the function behind the classmethod


def undirected(name: str, clause: str, description: str, *directives: str) -> Violation:
    """Return a violation that does not follow some directives."""
    followed: Mapping[str, type[Operation]] = {
        key: value for key, value in lowering.DIRECTIVES.items() if key.removeprefix("schedule.") not in directives
    }
    return replaced(clause, description, make, ("schedule.lowering.DIRECTIVES", followed), name=name)


def putting(name: str, clause: str, description: str, about: type[Operation], **changed: Any) -> Violation:
    """Return a violation that writes other attributes."""

    def put(self: Scheduling, at: Any, operation: Any, *arguments: Any, **attributes: Any) -> Any:
        changes = {key: value(attributes[key]) for key, value in changed.items() if attributes.get(key) is not None}
        return _put(self, at, operation, *arguments, **attributes | (changes if operation is about else {}))

    return replaced(clause, description, make, ("schedule.lowering.Scheduling._put", put), name=name)


def _exchanged(self: Scheduling, at: Any, operation: Any, *arguments: Any, **attributes: Any) -> Any:
    if operation is Tile and attributes.get("pad") is None:
        attributes |= {"m": attributes["n"], "n": attributes["m"]}
    return _put(self, at, operation, *arguments, **attributes)


_put = Scheduling._put


def _outside_regions(instruction: Instruction) -> bool:
    return bool(instruction.operation.effects or instruction.operation.calls)


def _but_calls(instruction: Instruction) -> bool:
    return not instruction.operation.calls and _has_effects(instruction)


def _by_the_default(function: Function, parameter: Value, shapes: Mapping[str, Any]) -> Type:
    default = function.defaults.get(parameter.name)
    if default is None or not isinstance(parameter.type, Tensor):
        return _type_of(function, parameter, shapes)
    return replace(parameter.type, shape=default.shape)


@violates("LANG-08.2-13", "fuses nothing on devices of AMD")
class FusesOnOneVendor(ReferenceAdapter):
    def language_lower(self, *, target: str = "sm_90", schedule: Any = None, **request: Any) -> dict[str, Any]:
        asked = {**(schedule or {}), "fuse": False} if target.startswith("gfx") else schedule
        return super().language_lower(target=target, schedule=asked, **request)


_has_effects, _type_of = fusion.has_effects, specialize._type_of

CHOICES = [
    choosing("left_only", "LANG-08.2-14", "prefetches the first operand only", prefetched=(0,)),
    choosing("shared_always", "LANG-08.2-14", "prefetches to shared memory whatever is asked for", scope="shared"),
    replaced("LANG-11-09", "chooses rows by shared memory alone", make, ("schedule.choices.RESERVED", -1000),
        name="registers_not_asked"),
]  # fmt: skip

ASKED_FOR = [
    replaced("LANG-08.2-02", "exchanges the sizes of tiles", make, ("schedule.lowering.Scheduling._put", _exchanged),
        name="exchanged"),
    putting("half_of_k", "LANG-13.1-05", "tiles k by half of what is asked for", Tile, k=lambda k: max(k // 2, 1)),
    putting("no_double_buffer", "LANG-13.1-08", "never has two buffers take turns", Pipeline,
        double_buffer=lambda given: False),
    putting("align_16", "LANG-06.1-04", "aligns everything to 16 bytes", Prefetch, align=lambda align: 16),
]  # fmt: skip

DIRECTED = [
    undirected("tile_directives", "LANG-06.1-01", "does not follow tile directives", "tile"),
    undirected("pipeline_directives", "LANG-06.1-03", "does not follow pipeline directives", "pipeline"),
    undirected("fuse_directives", "LANG-06.1-02", "does not follow fuse directives", "fuse"),
]

ORDER = [
    replaced(
        "LANG-08.2-01", f"moves draws {where} behind others", make, ("schedule.fusion.has_effects", check), name=name
    )
    for name, where, check in (
        ("draws_in_branches_move", "in branches", _outside_regions),
        ("draws_of_calls_move", "of called functions", _but_calls),
    )
]

DEFAULTS = [
    replaced("LANG-08.2-01", "has the shape of the default where another is given", make,
        ("schedule.lowering._type_of", _by_the_default), name="shape_of_the_default"),
]  # fmt: skip
