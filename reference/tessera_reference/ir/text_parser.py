"""Parsing IR text to the tree of what it says (spec sections 5.2, 13.1; AMB-LANG-31, AMB-LANG-66).

Operations read in MLIR's generic form, `%y = "tessera.graph.add"(%a, %b) {...} : (T, T) -> T`, and in the short one of
section 5.2, `%y = tessera.graph.add %a, %b {...} : (T, T) -> T`, where a single type is that of the result. Everything
but the name may be left out; what it means to leave it out is for the reader of the tree to say. The entry of a kernel
reads as in section 8.1 as well. The first error ends the parse.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from .diagnostics import Location, Span, UnsupportedConstruct
from .operation import OPERATIONS, Operation, Refusal
from .text_entry import WORD, kernel_entry
from .text_literals import fraction, integer, number, string
from .text_tokens import Tokens
from .text_tree import Given, Name, Signature, TextBlock, TextOperation
from .trampoline import Walk, trampoline
from .type_text import DIALECT, read_type
from .types import FunctionType, Type

MOST_NESTED = 64
"""Lists in lists, and function types in function types."""
MOST_REGIONS = 4000
"""Regions in regions."""


def parse_text(source: str, filename: str) -> tuple[list[TextOperation], Tokens]:
    """The operations at the top of a text, and its tokens, which know where everything stands.

    Raises `Rejection` with phase lex or parse, `UnsupportedConstruct` for lists nested too deep.
    """
    parser = _Parser(Tokens(source, filename))
    return trampoline(parser.operations("")), parser.tokens


class _Parser:
    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.types: dict[str, Type] = {}
        self.open = 0
        """How many operations' regions are being read."""

    def operations(self, closing: str) -> Walk[list[TextOperation]]:
        """Operations up to the closing brace or another block; `closing` is empty at the end of the text."""
        tokens, found = self.tokens, []
        while tokens.text != closing and tokens.kind != "end" and not (closing and tokens.kind == "block"):
            found.append((yield self.operation()))
        return found

    # Operations

    def operation(self) -> Walk[TextOperation]:
        tokens = self.tokens
        start = tokens.start
        results = self.results() if tokens.kind == "value" else []
        if tokens.kind not in ("string", "word") or tokens.text.startswith("!"):
            tokens.refuse(f"expected an operation, found {tokens.shown()}", 'a name such as "tessera.graph.add"')
        name = string(tokens) if tokens.kind == "string" else tokens.advance()
        if name == WORD and tokens.kind == "symbol" and not results:
            entry: TextOperation = yield kernel_entry(self)
            return entry
        operation = TextOperation(name, start, tokens.previous_end, results, [])
        opened = self.operands(operation)
        operation.end = tokens.previous_end
        self.properties(operation)
        if opened or tokens.accept("("):
            yield self.regions(operation)
        self.attributes(operation)
        self.signature(operation)
        if not operation.attributes and not operation.regions:
            self.attributes(operation)  # behind the type, as the collectives write them
        operation.location = self.place()
        if not operation.regions:
            operation.end = tokens.previous_end
        return operation

    def results(self) -> list[Name]:
        """`%a, %b =` or `%c:2 =`."""
        tokens, found = self.tokens, []
        while True:
            name = self.value("a result")
            count = 1
            if tokens.accept(":"):
                if tokens.kind != "int" or re.fullmatch("[1-9][0-9]{0,3}", tokens.text) is None:
                    tokens.refuse(f"{tokens.shown()} results of one name", "1 to 9999")
                count = integer(tokens)
            found.append(Name(name.text, name.start, count=count))
            if not tokens.accept(","):
                tokens.expect("=", "behind the results")
                return found

    def operands(self, operation: TextOperation) -> bool:
        """With parentheses or without them; whether what was opened last is the list of regions."""
        tokens = self.tokens
        if tokens.accept("("):
            if tokens.text == "{":
                return True
            if not tokens.accept(")"):
                self.operand_list(operation)
                tokens.expect(")", "behind the operands")
        elif tokens.kind == "value" and tokens.on_same_line():  # else it is the result of the next operation
            return self.operand_list(operation)
        return False

    def operand_list(self, operation: TextOperation) -> bool:
        """Operands between commas; whether a list of regions was opened behind the last."""
        tokens = self.tokens
        while True:
            name = self.value("an operand")
            if tokens.accept("("):
                if tokens.text == "{":
                    operation.operands.append(name)
                    return True
                operation.operands.append(Name(self.value("an operand").text, name.start, label=name.text))
                while tokens.accept(","):
                    inner = self.value("an operand")
                    operation.operands.append(Name(inner.text, inner.start, label=name.text))
                tokens.expect(")", f"behind the operands of {name.text}")
            else:
                operation.operands.append(name)
            if not tokens.accept(","):
                return False

    def regions(self, operation: TextOperation) -> Walk[None]:
        """`({...}, {...})`, of which the parenthesis has been read."""
        tokens = self.tokens
        self.open += 1
        self.limit(self.open, MOST_REGIONS)
        while True:
            tokens.expect("{", "to open a region")
            block = TextBlock()
            if tokens.kind == "block":
                self.block_heading(block)
            block.operations = yield self.operations("}")
            block.end = tokens.start
            if tokens.kind == "block":
                tokens.refuse("a region has a second block", "regions of one block", "LANG-01-06")
            tokens.expect("}", "at the end of a region")
            operation.regions.append(block)
            if not self.more(")", "between regions"):
                self.open -= 1
                return

    def block_heading(self, block: TextBlock) -> None:
        """`^bb0(%x: T, %i: int32):`."""
        tokens = self.tokens
        tokens.advance()
        if tokens.accept("(") and not tokens.accept(")"):
            while True:
                name = self.value("an argument")
                tokens.expect(":", f"behind %{name.text}")
                block.arguments.append(Name(name.text, name.start, self.type()))
                self.place()
                if not tokens.accept(","):
                    break
            tokens.expect(")", "behind the arguments of a block")
        tokens.expect(":", "behind the heading of a block")

    def value(self, what: str) -> Name:
        tokens = self.tokens
        if tokens.kind != "value":
            tokens.refuse(f"expected {what}, found {tokens.shown()}", "a value such as %x")
        start = tokens.start
        return Name(tokens.advance()[1:], start)

    # Attributes

    def properties(self, operation: TextOperation) -> None:
        """`<{...}>`, where MLIR prints the attributes of the operations that it knows."""
        if self.tokens.accept("<"):
            self.attributes(operation)
            self.tokens.expect(">", "behind the properties")

    def attributes(self, operation: TextOperation) -> None:
        if self.tokens.text == "{" and self.tokens.kind == "mark":
            self.entries(operation.attributes, 0)

    def entries(self, found: dict[str, Given], depth: int) -> None:
        """`{name = value, flag, ...}`; a name alone says true."""
        tokens = self.tokens
        tokens.expect("{", "to open the attributes")
        if tokens.accept("}"):
            return
        while True:
            start = tokens.start
            if tokens.kind not in ("word", "string"):
                tokens.refuse(f"expected an attribute, found {tokens.shown()}", "name = value")
            name = string(tokens) if tokens.kind == "string" else tokens.text
            if name in found:
                tokens.refuse(f"attribute {name!r} is given twice", "each attribute once", "LANG-01-07")
            if tokens.kind == "word":
                tokens.advance()
            value = self.attribute(depth) if tokens.accept("=") else True
            found[name] = Given(value, start, tokens.previous_end)
            if not self.more("}", "between attributes"):
                return

    def attribute(self, depth: int) -> Any:
        tokens = self.tokens
        match tokens.kind:
            case "string":
                return string(tokens)
            case "int":
                return number(tokens)
            case "float":
                return fraction(tokens)
            case "symbol":
                return tokens.advance()[1:]
            case "word" if tokens.text in ("true", "false"):
                return tokens.advance() == "true"
            case "mark" if tokens.text in ("[", "{"):
                return self.nested(depth)
            case "mark" if tokens.text == "(":
                return Signature(self.types_in_parentheses(depth), self.behind_arrow())
            case "word" | "type":
                return self.type()
            case _:
                return self.no_attribute()

    def no_attribute(self) -> NoReturn:
        shown = self.tokens.shown()
        self.tokens.refuse(f"expected the value of an attribute, found {shown}", "a number, string, list or type")

    def nested(self, depth: int) -> Any:
        """A list, or a dictionary."""
        tokens = self.tokens
        self.limit(depth)
        if tokens.text == "{":
            entries: dict[str, Given] = {}
            self.entries(entries, depth + 1)
            return {name: given.value for name, given in entries.items()}
        tokens.advance()
        if tokens.accept("]"):
            return ()
        items = [self.attribute(depth + 1)]
        while self.more("]", "between the items of a list"):
            items.append(self.attribute(depth + 1))
        return tuple(items)

    def more(self, closing: str, where: str) -> bool:
        """Whether a comma promises another item; goes on behind it, or behind what closes the list."""
        if self.tokens.accept(closing):
            return False
        self.tokens.expect(",", where)
        return True

    # Types

    def signature(self, operation: TextOperation) -> None:
        """`: (T, T) -> T`, `: T -> T`, or `: T` alone for the result."""
        tokens = self.tokens
        if not tokens.accept(":"):
            return
        if tokens.text == "(":
            operation.operand_types, operation.result_types = self.types_in_parentheses(0), self.behind_arrow()
            return
        first = self.type()
        if tokens.text == "->":
            operation.operand_types, operation.result_types = (first,), self.behind_arrow()
        elif OPERATIONS.get(operation.name, Operation).lone_type == "operand":
            operation.operand_types = (first,)
        else:
            operation.result_types = (first,)

    def behind_arrow(self) -> tuple[Type, ...]:
        self.tokens.expect("->", "between the types of operands and results")
        return self.types_in_parentheses(0) if self.tokens.text == "(" else (self.type(),)

    def types_in_parentheses(self, depth: int) -> tuple[Type, ...]:
        tokens = self.tokens
        tokens.expect("(", "before the types")
        if tokens.accept(")"):
            return ()
        found = [self.type(depth)]
        while self.more(")", "between types"):
            found.append(self.type(depth))
        return tuple(found)

    def type(self, depth: int = 0) -> Type:
        tokens = self.tokens
        text = tokens.text
        known = self.types.get(text) if tokens.kind in ("type", "word") else None
        if known is not None:
            tokens.advance()
            return known
        if tokens.kind not in ("type", "word"):
            tokens.refuse(f"expected a type, found {tokens.shown()}", "a type such as tensor<4xfp32>", "LANG-02.2-01")
        if text.removeprefix(DIALECT) == "fn":
            return self.function_type(depth)
        try:
            found = self.types[text] = read_type(text)
        except Refusal as refusal:
            span = tokens.span(tokens.start, tokens.end)
            tokens.reject(
                refusal.category, "parse", refusal.message, span, refusal.requirement, refusal.clause, refusal.remedy
            )
        tokens.advance()
        return found

    def function_type(self, depth: int) -> FunctionType:
        """`fn(T) -> T`, exported as `!tessera.fn<(T) -> T>`."""
        tokens = self.tokens
        self.limit(depth)
        tokens.advance()
        bracketed = tokens.accept("<")
        parameters = self.types_in_parentheses(depth + 1)
        tokens.expect("->", "behind the parameters of a function type")
        result = self.type(depth + 1)
        if bracketed:
            tokens.expect(">", "behind a function type")
        return FunctionType(parameters, result)

    def limit(self, depth: int, most: int = MOST_NESTED) -> None:
        if depth > most:
            raise UnsupportedConstruct("ir.deep_nesting", self.tokens.location(self.tokens.start, self.tokens.end))

    # Locations

    def place(self) -> Location | None:
        """`loc("file":1:2)` or `loc(unknown)`; nothing where neither says where."""
        tokens = self.tokens
        if tokens.text != "loc" or tokens.kind != "word":
            return None
        tokens.advance()
        tokens.expect("(", "behind loc")
        found = None
        if tokens.kind == "string":
            filename, numbers = string(tokens), []
            for _ in range(2):
                tokens.expect(":", "in a location")
                if tokens.kind != "int" or not re.fullmatch("[0-9]{1,9}", tokens.text):
                    tokens.refuse(f"expected a number, found {tokens.shown()}", 'loc("file":line:column)')
                numbers.append(integer(tokens))
            line, column = numbers
            if line and column:  # MLIR writes 0 where it does not know
                found = Location(filename, Span(line, column, line, column + 1))
        elif not tokens.accept("unknown"):
            tokens.refuse(f"expected a location, found {tokens.shown()}", 'loc("file":line:column)', "LANG-12-01")
        tokens.expect(")", "behind a location")
        return found
