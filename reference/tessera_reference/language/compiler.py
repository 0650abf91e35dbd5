"""The front door of the language: source text in, verified Graph IR out."""

from __future__ import annotations

from dataclasses import dataclass

from ..graph.differentiability import missing_adjoints
from ..ir.diagnostics import Diagnostic, Location, Rejection, Span, UnsupportedConstruct
from ..ir.module import Module
from ..ir.verifier import verify
from .lower import lower_program
from .nesting import deep_recursion
from .parser import parse
from .scope import Findings
from .syntax import Program


@dataclass(frozen=True)
class CompiledModule:
    """A legal program as Graph IR, with the warnings about it."""

    modules: tuple[Module, ...]
    warnings: tuple[Diagnostic, ...]
    source: str
    filename: str

    @property
    def module(self) -> Module:
        """The only module. Raises `ValueError` when there are none or several."""
        if len(self.modules) != 1:
            raise ValueError(f"{self.filename} has {len(self.modules)} modules, not one")
        return self.modules[0]


def compile_source(source: str, filename: str = "<source>") -> CompiledModule:
    """Compile a program to Graph IR.

    Raises `Rejection` for an illegal program, `UnsupportedConstruct` for a legal one that goes beyond this reference.
    """
    try:
        return _compile(source, filename)
    except RecursionError:
        raise UnsupportedConstruct("language.deep_nesting", Location(filename, Span(1, 1, 1, 2))) from None


def _compile(source: str, filename: str) -> CompiledModule:
    program = parse(source, filename)
    with deep_recursion():
        return _lower(program, source)


def _lower(program: Program, source: str) -> CompiledModule:
    filename = program.filename
    findings = Findings(source, filename)
    modules = lower_program(program, findings)
    errors = [diagnostic for diagnostic in findings.diagnostics if diagnostic.severity == "error"]
    if errors:
        raise Rejection(errors)
    for module in modules:
        verify(module)
        missing = missing_adjoints(module)
        if missing:
            raise Rejection(missing)
    return CompiledModule(modules, tuple(findings.diagnostics), source, filename)
