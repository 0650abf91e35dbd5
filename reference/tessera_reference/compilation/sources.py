"""The sources of compilation, programs and IR texts, as verified modules (language spec 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Literal

from ..abi.status import invalid
from ..ir.module import Function, Module
from ..ir.operation import Refusal
from ..ir.targets import Target
from ..language import compile_source
from ..levels.texts import read_at
from ..schedule.options import Options, annotated
from ..schedule.specialize import lowering_refused

__all__ = ["Start", "made_for", "read_graph", "read_kernels", "with_options"]

Start = Literal["dsl", "graph", "tile", "target"]
"""What a source is."""

SETTINGS = tuple(field.name for field in fields(Options))
"""What options say, by the names that an annotation has for it."""


def read_graph(source: str, at: Start, target: Target, filename: str) -> tuple[Module, ...]:
    """A program, or a text of Graph IR, as modules of Graph IR. Raises `Rejection` and `UnsupportedConstruct`."""
    return compile_source(source, filename).modules if at == "dsl" else read_at("graph", source, target, filename)


def read_kernels(source: str, at: Start, target: Target, filename: str) -> tuple[Module, ...]:
    """A text of Tile or Target IR, verified for a target.

    Raises `Rejection`, also for a kernel that is made for another target, `UnsupportedConstruct`, and `Failure` for a
    level that there is not.
    """
    if at != "tile" and at != "target":
        raise invalid("compile", f"a source at {at!r}", "dsl, graph, tile or target")
    return read_at(at, source, target, filename)


def made_for(module: Module, target: Target) -> Module:
    """A module whose kernels all say which target they are for: this one, where a text leaves it open."""

    def stated(function: Function) -> Function:
        return replace(function, attributes={"target": target.name, **function.attributes})

    functions = {name: stated(each) if each.device else each for name, each in module.functions.items()}
    return replace(module, functions=functions)


def with_options(modules: Sequence[Module], options: Options) -> tuple[Module, ...]:
    """Graph IR that says itself how it is to be scheduled, so that kernels specialised at launch are made alike.

    A function's own annotation stands before the options, as it does for the lowering. Raises `Rejection`.
    """
    if options == Options():
        return tuple(modules)
    return tuple(
        replace(module, functions={name: _annotated(each, options) for name, each in module.functions.items()})
        for module in modules
    )


def _annotated(function: Function, options: Options) -> Function:
    """A function whose annotation says what of its schedule is not the default."""
    pairs: Any = function.attributes.get("schedule", ())
    try:
        wished = annotated(options, function)
    except Refusal as refusal:
        raise lowering_refused(refusal, function.location) from refusal
    default = Options()
    said = {name: getattr(wished, name) for name in SETTINGS if getattr(wished, name) != getattr(default, name)}
    kept = [(name, value) for name, value in pairs if name not in said]
    return replace(function, attributes={**function.attributes, "schedule": (*kept, *said.items())})
