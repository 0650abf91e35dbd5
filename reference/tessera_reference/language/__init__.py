"""The Tessera DSL (spec sections 2, 3, 14): text to syntax tree to Graph IR.

`compile_source` is the entry of the package. A legal program that the reference does not implement raises
`UnsupportedConstruct`, an illegal one `Rejection`.
"""

from ..ir.diagnostics import Diagnostic, Rejection, UnsupportedConstruct, render
from .formatter import format_program
from .modules import CompiledModule, compile_source
from .parser import decode, parse
from .syntax import print_tree

__all__ = [
    "CompiledModule",
    "Diagnostic",
    "Rejection",
    "UnsupportedConstruct",
    "compile_source",
    "decode",
    "format_program",
    "parse",
    "print_tree",
    "render",
]
