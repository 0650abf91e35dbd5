"""Reading a kernel's entry as section 8.1 prints it (LANG-08.1-01; AMB-LANG-280).

    kernel @tss_kernel_k(%arg0: !llvm.ptr<global>, %arg1: i64, %arg2: f32)
        attributes { grid=(2,1,1), block=(32,1,1), smem_bytes=64, stream=S }

It is the `tessera.target.kernel` of the generic form. A body may stand behind it in braces; without one the entry
computes nothing. What must be stated is for the reader of the tree to say.
"""

from __future__ import annotations

from typing import Any, Protocol

from ..numerics.formats import dtype
from .text import DEVICE_KERNELS, TERMINATORS
from .text_tokens import Tokens
from .text_tree import Given, Name, Signature, TextBlock, TextOperation
from .trampoline import Walk
from .types import Scalar, Type

WORD = "kernel"

SCALARS = {
    name: Scalar(dtype(held)) for name, held in (("i32", "int32"), ("i64", "int64"), ("f32", "fp32"), ("f64", "fp64"))
}
"""The scalar parameters of an entry, as LLVM names them."""


class Parser(Protocol):
    """What reading an entry needs of the parser of the text around it."""

    tokens: Tokens

    def value(self, what: str) -> Name:
        """The name of a value."""

    def type(self, depth: int = 0) -> Type:
        """A type."""

    def attribute(self, depth: int) -> Any:
        """The value of an attribute of the generic form."""

    def operations(self, closing: str) -> Walk[list[TextOperation]]:
        """Operations up to the closing brace."""


def kernel_entry(parser: Parser) -> Walk[TextOperation]:
    """The entry whose symbol is the current token. Raises `Rejection` for what has not its form."""
    tokens = parser.tokens
    entry = TextOperation(DEVICE_KERNELS["target"], tokens.start, tokens.end, [], [])
    symbol = Given(tokens.text[1:], tokens.start, tokens.end)
    tokens.advance()
    block = TextBlock(_parameters(parser))
    types = tuple(name.type for name in block.arguments if name.type is not None)
    signature = Given(Signature(types, ()), symbol.end, tokens.previous_end)
    entry.end = tokens.previous_end
    entry.attributes = {"sym_name": symbol, "function_type": signature}
    if tokens.accept("attributes"):
        entry.attributes |= _attributes(parser)
    if tokens.accept("{"):
        block.operations = yield parser.operations("}")
        block.end = tokens.start
        tokens.expect("}", "at the end of a kernel")
    else:
        returns = next(name for name, exit in TERMINATORS.items() if exit == "return")
        block.operations = [TextOperation(returns, entry.start, entry.end, [], [])]
    entry.regions = [block]
    return entry


def _parameters(parser: Parser) -> list[Name]:
    tokens, found = parser.tokens, list[Name]()
    tokens.expect("(", "before the parameters of a kernel")
    while not tokens.accept(")"):
        if found:
            tokens.expect(",", "between parameters")
        name = parser.value("a parameter")
        tokens.expect(":", f"behind %{name.text}")
        scalar = SCALARS.get(tokens.text)
        if scalar is not None:
            tokens.advance()
        found.append(Name(name.text, name.start, scalar or parser.type()))
    return found


def _attributes(parser: Parser) -> dict[str, Given]:
    """`{ grid=(2,1,1), stream=S }`."""
    tokens, found = parser.tokens, dict[str, Given]()
    tokens.expect("{", "to open the attributes")
    while not tokens.accept("}"):
        if found:
            tokens.expect(",", "between attributes")
        start, name = tokens.start, tokens.text
        if tokens.kind != "word" or name in found:
            tokens.refuse(
                f"expected another attribute, found {tokens.shown()}", "name=value, each once", "LANG-08.1-01"
            )
        tokens.advance()
        tokens.expect("=", f"behind {name}")
        found[name] = Given(_value(parser), start, tokens.previous_end)
    return found


def _value(parser: Parser) -> Any:
    """Three extents in parentheses, a bare name, or what the generic form has."""
    tokens = parser.tokens
    if tokens.kind == "word" and tokens.text not in ("true", "false"):
        return tokens.advance()
    if not tokens.accept("("):
        return parser.attribute(0)
    extents = [parser.attribute(0)]
    while not tokens.accept(")"):
        tokens.expect(",", "between extents")
        extents.append(parser.attribute(0))
    return tuple(extents)
