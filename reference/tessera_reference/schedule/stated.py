"""Whether the schedule that a program states can be followed at all (spec section 6; LANG-06.2-01 to -05, -06.3-01).

A program is verified without a target: it is refused where no target can follow its directives and annotations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..graph.directive import Directive
from ..ir.diagnostics import Rejection
from ..ir.module import Function, Module
from ..ir.targets import Target
from .lowering import to_schedule


def verify_stated_schedules(modules: Iterable[Module], targets: Sequence[Target]) -> None:
    """Raise `Rejection`, with what is wrong for the first target, unless a target can follow each module's schedule."""
    for module in modules:
        if any(_states_schedule(function) for function in module.functions.values()):
            _verify(module, targets)


def _verify(module: Module, targets: Sequence[Target]) -> None:
    refused = []
    for target in targets:
        try:
            to_schedule(module, target)
        except Rejection as rejection:
            refused.append(rejection)
        else:
            return
    raise Rejection([replace(each, phase="verify") for each in refused[0].diagnostics])


def _states_schedule(function: Function) -> bool:
    return "schedule" in function.attributes or any(
        isinstance(each.operation, Directive) and each.operation.directive.startswith("schedule.")
        for each in function.body.walk()
    )
