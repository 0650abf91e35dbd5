"""Programs: from syntax to Graph IR (spec sections 2.3, 3, 5; LANG-02-01).

Analysis goes on after an error wherever that makes sense, so that one run reports many.
"""

from __future__ import annotations

from ..ir.module import Module
from . import syntax as s
from .functions import lower_function
from .modules import ModuleLowering
from .scope import Findings


def lower_program(program: s.Program, findings: Findings) -> tuple[Module, ...]:
    """The modules of a program; meaningless when `findings` then hold an error."""
    modules: dict[str, Module] = {}
    for declaration in program.modules:
        if declaration.name in modules:
            findings.report(
                "types",
                f"module {declaration.name!r} is declared twice",
                declaration.span,
                requirement="one declaration of a name",
                clause="AMB-LANG-86",
            )
        modules[declaration.name] = ModuleLowering(declaration, findings, lower_function).lower()
    return tuple(modules.values())
