"""Verification of SSA form, regions, symbols and types (LANG-01-03, LANG-01-06, LANG-05-01, -03, section 11).

The front end builds only what verifies; this is for IR that comes from elsewhere, and to keep the front end honest.
What belongs to one operation alone, its class declares: what it takes, what results, what its regions take and yield.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from .diagnostics import Diagnostic, Rejection
from .function_verifier import FunctionVerifier
from .module import Module
from .operation import Refusal
from .profiles import looser_calls
from .refusals import diagnostic_of, recursion
from .type_text import sound_mesh

__all__ = ["verify"]


def verify(module: Module) -> None:
    """Raise `Rejection` unless the module is well formed, `UnsupportedConstruct` where this is beyond the reference."""
    found: list[Diagnostic] = []
    for mesh in module.meshes.values():
        try:
            sound_mesh(mesh.axes, mesh.shape)
        except Refusal as refusal:
            found.append(diagnostic_of(refusal, module.location))
    for name in sorted(module.functions.keys() & module.meshes.keys()):
        twice = Refusal("types", f"@{name} is a function and a mesh", "one definition of a symbol", "LANG-05-03", "")
        found.append(diagnostic_of(twice, module.functions[name].location))
    calls: dict[str, list[str]] = {}
    for name, function in module.functions.items():
        calls[name] = FunctionVerifier(module, function, found).verify()
    order = _order(module, calls, found)
    found += looser_calls(module, [name for name in order if name in module.functions])
    if found:
        raise Rejection(found)


def _order(module: Module, calls: dict[str, list[str]], found: list[Diagnostic]) -> list[str]:
    """The functions, each behind those that it calls: no function comes back to itself (AMB-LANG-97)."""
    try:
        return list(TopologicalSorter(calls).static_order())
    except CycleError as error:
        circle = error.args[1]
        found.append(diagnostic_of(recursion(circle), module.functions[circle[-1]].location))
        return []
