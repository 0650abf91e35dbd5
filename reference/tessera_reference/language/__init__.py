"""The Tessera DSL (spec sections 2, 3, 14): text to syntax tree to Graph IR.

`compile_source` is the front door. The grammar is whole; what the lowering does not carry out yet is told apart from
what is illegal: the first is an `UnsupportedConstruct`, the second a `Rejection`.
"""

from ..ir.diagnostics import Diagnostic, Rejection, UnsupportedConstruct, render
from .compiler import CompiledModule, compile_source
from .parser import parse

__all__ = ["CompiledModule", "Diagnostic", "Rejection", "UnsupportedConstruct", "compile_source", "parse", "render"]
