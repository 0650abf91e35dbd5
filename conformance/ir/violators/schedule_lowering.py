"""Lowerings from Graph to Schedule IR that omit or ignore a part of the schedule (section 8.2)."""

from dataclasses import replace

from tessera_conformance.strength import Around
from tessera_reference.ir.types import Tensor
from tessera_reference.schedule import lowering
from tessera_reference.schedule.operations import Pipeline, Prefetch, Tile

from .changes import breaks, instead, wrapped


def choosing(clause, name, description, **changed):
    """Return a violation with other choices for every operation."""

    def of(usual):
        return classmethod(lambda cls, *arguments: replace(usual(*arguments), **changed))

    return instead(clause, name, description, "schedule.choices.Choices.of", Around(of))


def undirected(clause, name, description, *directives):
    """Return a violation that does not follow some directives."""
    left_out = {f"schedule.{directive}" for directive in directives}
    followed = {key: value for key, value in lowering.DIRECTIVES.items() if key not in left_out}
    return instead(clause, name, description, "schedule.lowering.DIRECTIVES", followed)


def putting(clause, name, description, about, **changed):
    """Return a violation that writes other attributes."""

    def put(usual, self, at, operation, *arguments, **attributes):
        changes = {key: value(attributes[key]) for key, value in changed.items() if attributes.get(key) is not None}
        return usual(self, at, operation, *arguments, **attributes | (changes if operation is about else {}))

    return wrapped(clause, name, description, "schedule.lowering.Scheduling._put", put)


def unfused(usual, self, *, target="sm_90", schedule=None, **request):
    asked = {**(schedule or {}), "fuse": False} if target.startswith("gfx") else schedule
    return usual(self, target=target, schedule=asked, **request)


@breaks("LANG-08.2-02", "exchanges the sizes of tiles", "schedule.lowering.Scheduling._put")
def exchanged(usual, self, at, operation, *arguments, **attributes):
    if operation is Tile and attributes.get("pad") is None:
        attributes |= {"m": attributes["n"], "n": attributes["m"]}
    return usual(self, at, operation, *arguments, **attributes)


@breaks("LANG-08.2-01", "has the shape of the default where another is given", "schedule.lowering._type_of")
def shape_of_the_default(usual, function, parameter, shapes):
    default = function.defaults.get(parameter.name)
    if default is None or not isinstance(parameter.type, Tensor):
        return usual(function, parameter, shapes)
    return replace(parameter.type, shape=default.shape)


VIOLATIONS = [
    wrapped("LANG-08.2-13", "FusesOnOneVendor", "fuses nothing on devices of AMD",
        "adapter.ReferenceAdapter.language_lower", unfused),
    choosing("LANG-08.2-14", "left_only", "prefetches the first operand only", prefetched=(0,)),
    choosing("LANG-08.2-14", "shared_always", "prefetches to shared memory whatever is asked for", scope="shared"),
    instead("LANG-11-09", "registers_not_asked", "chooses rows by shared memory alone", "schedule.choices.RESERVED",
        -1000),
    putting("LANG-13.1-05", "half_of_k", "tiles k by half of what is asked for", Tile, k=lambda k: max(k // 2, 1)),
    putting("LANG-13.1-08", "no_double_buffer", "never has two buffers take turns", Pipeline,
        double_buffer=lambda given: False),
    putting("LANG-06.1-04", "align_16", "aligns everything to 16 bytes", Prefetch, align=lambda align: 16),
    undirected("LANG-06.1-01", "tile_directives", "does not follow tile directives", "tile"),
    undirected("LANG-06.1-03", "pipeline_directives", "does not follow pipeline directives", "pipeline"),
    undirected("LANG-06.1-02", "fuse_directives", "does not follow fuse directives", "fuse"),
    instead("LANG-08.2-01", "draws_in_branches_move", "moves draws in branches behind others",
        "schedule.fusion.has_effects",
        lambda instruction: bool(instruction.operation.effects or instruction.operation.calls)),
    wrapped("LANG-08.2-01", "draws_of_calls_move", "moves draws of called functions behind others",
        "schedule.fusion.has_effects",
        lambda usual, instruction: not instruction.operation.calls and usual(instruction)),
]  # fmt: skip
