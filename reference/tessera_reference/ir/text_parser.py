"""Parsing IR text to a syntax tree: tokens, literals, entries of kernels (spec sections 5.2, 8.1, 13.1)."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn

from ..numerics.formats import DType, dtype
from ..numerics.rounding import round_exact
from .attributes import UNITS, ByteCount, float_of_bits, string_of
from .diagnostics import Category, Diagnostic, Location, Phase, Rejection, Span, UnsupportedConstruct, did_you_mean
from .operation import OPERATIONS, Operation, Refusal, Walk, diagnostic_of, trampoline
from .text import DEVICE_KERNELS, DIALECT, ENDINGS, read_type
from .types import FunctionType, Scalar, Type

# The tokens of IR text, one at a time, and their places (spec section 13.1; AMB-LANG-31 for hexadecimal).
#
# A comment goes from `//` or, as in the examples of the collectives, from `;` to the end of its line (AMB-COLL-12).


_TOKEN = re.compile(
    r"""(?:[ \t\r\n]+|(?://|;)[^\n]*)*(?:
      (?P<mark>->|[(){}\[\]<>,:=])
    | (?P<value>%(?:[0-9]+|[A-Za-z_$.-][\w$.-]*)(?:\#[0-9]+)?)
    | (?P<string>"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*")
    | (?P<type>(?:(?:!tessera\.)?(?:tensor|memref|fragment|mesh|vector|shard)|!llvm\.ptr)<[^<>]*>(?:\[addrspace=\w*\])?
      |(?:!tessera\.)?future<(?:[^<>]|<[^<>]*>)*>)
    | (?P<float>-?[0-9]+(?:\.[0-9]*(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+))
    | (?P<int>-?(?:0x[0-9A-Fa-f]+|[0-9]+))
    | (?P<word>!?[A-Za-z_][\w$.]*)
    | (?P<symbol>@[A-Za-z_][\w$.-]*)
    | (?P<block>\^[\w$.-]+)
    | (?P<end>\Z)
    | (?P<strange>.)
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)

LONGEST_SHOWN = 40


class Tokens:
    """The current token of a text: `kind`, `text`, `start` and `end`; `previous_end` is the end of the token before."""

    def __init__(self, source: str, filename: str) -> None:
        self.source = source
        self.filename = filename
        self._matches: Iterator[re.Match[str]] = _TOKEN.finditer(source)
        self._lines: list[int] = []
        self.text = ""
        self.end = 0
        self.advance()

    def advance(self) -> str:
        """Advance to the next token; return the text of the previous one. Raises `Rejection` for an invalid token."""
        text, self.previous_end = self.text, self.end
        match = next(self._matches)
        self.kind = kind = match.lastgroup or ""
        self.text = match[kind]
        self.start, self.end = match.span(kind)
        if kind == "strange":
            self._refuse_character()
        return text

    def accept(self, mark: str) -> bool:
        """Return True if this is the token `mark`, and advance past it."""
        if self.text != mark:
            return False
        self.advance()
        return True

    def expect(self, mark: str, where: str) -> None:
        """Advance past the token `mark`. Raises `Rejection` when the token is another."""
        if not self.accept(mark):
            self.refuse(f"expected {mark!r} {where}, found {self.shown()}", f"{mark!r} {where}")

    def on_same_line(self) -> bool:
        """True if the current token is on the line on which the previous one ended."""
        return "\n" not in self.source[self.previous_end : self.start]

    def shown(self) -> str:
        """Return the current token as a diagnostic shows it."""
        if self.kind == "end":
            return "the end of the text"
        short = self.text if len(self.text) <= LONGEST_SHOWN else f"{self.text[:LONGEST_SHOWN]}..."
        return short if self.kind == "string" else f"{short!r}"

    def refuse(self, message: str, requirement: str, clause: str = "AMB-LANG-66", remedy: str = "") -> NoReturn:
        """Raise a syntax error at the current token."""
        self.reject("syntax", "parse", message, self.span(self.start, self.end), requirement, clause, remedy)

    def reject(
        self, category: Category, phase: Phase, message: str, span: Span, requirement: str, clause: str, remedy: str
    ) -> NoReturn:
        """Raise an error anywhere in the text."""
        finding = Diagnostic(category, phase, message, span, self.filename, (), requirement, clause, remedy)
        raise Rejection([finding])

    def span(self, start: int, end: int) -> Span:
        """Return the span of a stretch of the text."""
        line, column = self._place(start)
        end_line, end_column = self._place(max(end, start + 1))
        return Span(line, column, end_line, end_column)

    def location(self, start: int, end: int) -> Location:
        """Return the location of a stretch of the text, in its file."""
        return Location(self.filename, self.span(start, end))

    def _place(self, offset: int) -> tuple[int, int]:
        if not self._lines:
            self._lines = [0, *(match.end() for match in re.finditer("\n", self.source))]
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def _refuse_character(self) -> NoReturn:
        span = self.span(self.start, self.end)
        if self.text == '"':
            message, requirement = "a string does not end on its line", 'a closing "'
        else:
            message, requirement = f"unexpected character {self.text!r}", "a token of IR text"
        self.reject("syntax", "lex", message, span, requirement, "AMB-LANG-66", "")


# Reading the numbers and strings of IR text, each beginning at the current token (AMB-LANG-31).


MOST_DIGITS = 3500
"""The most digits; as many hexadecimal ones make at most 4,300 decimal digits, the most that Python prints."""


FLOAT_TYPES = {
    "f64": "fp64",
    "f32": "fp32",
    "f16": "fp16",
    "bf16": "bf16",
    "f8E4M3FN": "fp8_e4m3",
    "f8E5M2": "fp8_e5m2",
}
"""MLIR's float types that may follow a number, each with its dtype."""


def number(tokens: Tokens) -> int | float | ByteCount:
    """Return an integer such as `7 : i8`, the bits of a float such as `0x7FC0 : bf16`, or bytes such as `4KiB`."""
    start, text = tokens.start, tokens.text
    value = integer(tokens)
    if _is_unit(tokens):
        return _bytes_of(tokens, value)
    suffix = _suffix(tokens)
    span = tokens.span(start, tokens.previous_end)
    if suffix not in FLOAT_TYPES:
        return _of_width(tokens, value, suffix, text, span) if suffix else value
    type_ = dtype(FLOAT_TYPES[suffix])
    if not text.startswith("0x"):
        return _held(tokens, Fraction(value), type_, text, span)
    if value >> type_.bits:
        message, requirement = f"{text[:40]} is no {suffix} of {type_.bits} bits", f"at most {type_.bits // 4} digits"
        tokens.reject("syntax", "parse", message, span, requirement, "AMB-LANG-31", "")
    return float_of_bits(value, type_)


def _of_width(tokens: Tokens, value: int, suffix: str, text: str, span: Span) -> int | bool:
    """Return an integer that fits the type after it; as in MLIR, a signless type also takes the unsigned spelling."""
    type_ = re.fullmatch(r"(s|u)?i([1-9][0-9]{0,6})", "i64" if suffix == "index" else suffix)
    if type_ is None:
        expected = f"an integer type such as i8, index, or one of {', '.join(FLOAT_TYPES)}"
        tokens.reject("syntax", "parse", f"{suffix[:40]!r} is no type of numbers", span, expected, "LANG-02.3-38", "")
    sign, bits = type_[1], int(type_[2])
    least = 0 if sign == "u" else -(1 << bits - 1)
    largest = (1 << bits - (sign == "s")) - 1
    if not least <= value <= largest:
        requirement = f"a value from {least} to {largest}" if bits <= 64 else f"a value of {bits} bits"
        tokens.reject("types", "verify", f"{text[:40]} does not fit {suffix}", span, requirement, "AMB-LANG-54", "")
    if suffix == "i1":
        return bool(value)
    return value if sign or value < 1 << bits - 1 else value - (1 << bits)


def fraction(tokens: Tokens) -> float | ByteCount:
    """Return a float, rounded once to the type after it, or a number of bytes such as `1.5MiB`."""
    text = digits(tokens)
    if _is_unit(tokens) and "e" not in text.lower():
        return _bytes_of(tokens, Fraction(text.rstrip(".")))
    start = tokens.previous_end - len(text)
    suffix = _suffix(tokens)
    span = tokens.span(start, tokens.previous_end)
    if suffix and suffix not in FLOAT_TYPES:
        expected = f"one of {', '.join(FLOAT_TYPES)}"
        tokens.reject("syntax", "parse", f"{suffix[:40]!r} is no type of floats", span, expected, "LANG-02.3-38", "")
    rounded, name = float(text), FLOAT_TYPES[suffix or "f64"]
    if math.isinf(rounded):
        _beyond(tokens, text, name, span)
    if name == "fp64":
        return rounded
    exact = Fraction(text.rstrip(".") if 1e-60 < abs(rounded) < 1e60 else rounded)
    return math.copysign(_held(tokens, exact, dtype(name), text, span), rounded)


def _held(tokens: Tokens, exact: Fraction, type_: DType, text: str, span: Span) -> float:
    """Return a number rounded once to a float dtype. Refuse one beyond the largest finite value."""
    value = round_exact(exact, type_, overflow="nonfinite")
    return value if math.isfinite(value) else _beyond(tokens, text, type_.name, span)


def _beyond(tokens: Tokens, text: str, name: str, span: Span) -> NoReturn:
    requirement = f"a magnitude up to {dtype(name).storage.max_finite!r}, or the bits of an infinity"
    tokens.reject("types", "verify", f"{text[:20]} does not fit {name}", span, requirement, "AMB-LANG-54", "")


def integer(tokens: Tokens) -> int:
    """Return an integer, decimal or hexadecimal."""
    text = digits(tokens)
    return int(text, 16) if "x" in text else int(text)


def digits(tokens: Tokens) -> str:
    """Return the text of a number, which has at most `MOST_DIGITS` digits."""
    if len(tokens.text) > MOST_DIGITS:
        tokens.refuse(f"a number of {len(tokens.text)} digits", f"at most {MOST_DIGITS}", "LANG-02.1-02")
    return tokens.advance()


def string(tokens: Tokens) -> str:
    """Return the value of a string."""
    try:
        text = string_of(tokens.text)
    except ValueError:
        tokens.refuse("a string has an escape that is none", r"\\, \", \n, \t or two hexadecimal digits")
    tokens.advance()
    return text


def _is_unit(tokens: Tokens) -> bool:
    """True if a word follows a number immediately."""
    return tokens.kind == "word" and tokens.start == tokens.previous_end


def _bytes_of(tokens: Tokens, count: Fraction | int) -> ByteCount:
    """Return the count of `B`, `KiB`, `MiB` or `GiB` directly after a number (AMB-COLL-01, AMB-COLL-35)."""
    unit = tokens.text
    if unit not in UNITS:
        remedy = did_you_mean(unit, UNITS)
        tokens.refuse(f"{unit!r} is no unit of bytes", f"one of {', '.join(UNITS)}", "AMB-COLL-01", remedy)
    try:
        count_ = ByteCount.of(count, unit)
    except ValueError as no_bytes:
        tokens.refuse(str(no_bytes), "a whole number of bytes", "AMB-COLL-35")
    tokens.advance()
    return count_


def _suffix(tokens: Tokens) -> str:
    """Return the word of a type after a number, such as `: i64`, or ""."""
    if not tokens.accept(":"):
        return ""
    if tokens.kind != "word":
        tokens.refuse(f"expected a type, found {tokens.shown()}", "i64 or f64 behind a number")
    return tokens.advance()


# The syntax tree of IR text, without meanings: operations in blocks, names, attributes and types.


@dataclass(slots=True)
class Name:
    """A value's name, without its `%`, and its place."""

    text: str
    start: int
    type: Type | None = None
    """The type of a block's argument."""
    label: str = ""
    """The label of an operand written `%wrt(%x)`."""
    count: int = 1
    """The number of results in `%x:2`."""


@dataclass(slots=True)
class Given:
    """An attribute's value and the attribute's place."""

    value: Any
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Signature:
    """A type attribute, `(T, T) -> (T)`."""

    operands: tuple[Type, ...]
    results: tuple[Type, ...]


@dataclass(slots=True)
class TextBlock:
    """A region; it has one block."""

    arguments: list[Name] = field(default_factory=list)
    operations: list[TextOperation] = field(default_factory=list)
    end: int = 0
    """The place of its closing brace."""


@dataclass(slots=True)
class TextOperation:
    """An operation as written; `start` and `end` enclose the text before its regions."""

    name: str
    start: int
    end: int
    results: list[Name]
    operands: list[Name]
    regions: list[TextBlock] = field(default_factory=list)
    attributes: dict[str, Given] = field(default_factory=dict)
    operand_types: tuple[Type, ...] | None = None
    result_types: tuple[Type, ...] | None = None
    location: Location | None = None

    def walk(self) -> Iterator[TextOperation]:
        """Yield this operation and every operation in its regions."""
        pending = [self]
        while pending:
            operation = pending.pop()
            yield operation
            pending += [inner for block in operation.regions for inner in block.operations]


# Parsing IR text to its syntax tree (spec sections 5.2, 13.1; AMB-LANG-31, AMB-LANG-66).
#
# Operations read in MLIR's generic form, `%y = "tessera.graph.add"(%a, %b) {...} : (T, T) -> T`, and in the short one
# of section 5.2, `%y = tessera.graph.add %a, %b {...} : (T, T) -> T`, where a single type is that of the result.
# Everything but the name may be left out; the reader of the tree decides what an omission means. The entry of a kernel
# also reads as in section 8.1. The first error ends the parse.


WORD = "kernel"

SCALARS = {
    name: Scalar(dtype(own)) for name, own in (("i32", "int32"), ("i64", "int64"), ("f32", "fp32"), ("f64", "fp64"))
}
"""The scalar parameters of an entry, as LLVM names them."""

MOST_NESTED = 64
"""The depth of lists in lists, and of function types in function types."""
MOST_REGIONS = 4000
"""The depth of regions in regions."""


def parse_text(source: str, filename: str) -> tuple[list[TextOperation], Tokens]:
    """Return the operations at the top of a text, and its tokens, which know the places.

    Raises `Rejection` with phase lex or parse, `UnsupportedConstruct` for lists nested too deep.
    """
    parser = _Parser(Tokens(source, filename))
    return trampoline(parser.operations("")), parser.tokens


class _Parser:
    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.types: dict[str, Type] = {}
        self.open = 0
        """The number of operations whose regions are being read."""

    def operations(self, closing: str) -> Walk[list[TextOperation]]:
        """Return the operations up to the closing brace or another block; `closing` is empty at the end of the text."""
        tokens, operations = self.tokens, []
        while tokens.text != closing and tokens.kind != "end" and not (closing and tokens.kind == "block"):
            operations.append((yield self.operation()))
        return operations

    # Operations

    def operation(self) -> Walk[TextOperation]:
        tokens = self.tokens
        start = tokens.start
        results = self.results() if tokens.kind == "value" else []
        if tokens.kind not in ("string", "word") or tokens.text.startswith("!"):
            tokens.refuse(f"expected an operation, found {tokens.shown()}", 'a name such as "tessera.graph.add"')
        name = string(tokens) if tokens.kind == "string" else tokens.advance()
        if name == WORD and tokens.kind == "symbol" and not results:
            entry: TextOperation = yield self.kernel_entry()
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
            self.attributes(operation)  # after the type, as the collectives document writes them
        operation.location = self.place()
        if not operation.regions:
            operation.end = tokens.previous_end
        return operation

    def results(self) -> list[Name]:
        """Return the results of `%a, %b =` or `%c:2 =`."""
        tokens, names = self.tokens, []
        while True:
            name = self.value("a result")
            count = 1
            if tokens.accept(":"):
                if tokens.kind != "int" or re.fullmatch("[1-9][0-9]{0,3}", tokens.text) is None:
                    tokens.refuse(f"{tokens.shown()} results of one name", "1 to 9999")
                count = integer(tokens)
            names.append(Name(name.text, name.start, count=count))
            if not tokens.accept(","):
                tokens.expect("=", "behind the results")
                return names

    def operands(self, operation: TextOperation) -> bool:
        """Read operands, with or without parentheses. Return True if a list of regions was opened last."""
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
        """Read operands between commas. Return True if a list of regions was opened after the last."""
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
        """Read `({...}, {...})`, after its parenthesis."""
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
        """Read `^bb0(%x: T, %i: int32):`."""
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
        """Read `<{...}>`, in which MLIR prints the attributes of the operations that it knows."""
        if self.tokens.accept("<"):
            self.attributes(operation)
            self.tokens.expect(">", "behind the properties")

    def attributes(self, operation: TextOperation) -> None:
        if self.tokens.text == "{" and self.tokens.kind == "mark":
            self.entries(operation.attributes, 0)

    def entries(self, attributes: dict[str, Given], depth: int) -> None:
        """Read `{name = value, flag, ...}`; a name alone means true."""
        tokens = self.tokens
        tokens.expect("{", "to open the attributes")
        for _ in self.items("}", "between attributes"):
            start = tokens.start
            if tokens.kind not in ("word", "string"):
                tokens.refuse(f"expected an attribute, found {tokens.shown()}", "name = value")
            name = string(tokens) if tokens.kind == "string" else tokens.text
            if name in attributes:
                tokens.refuse(f"attribute {name!r} is given twice", "each attribute once", "LANG-01-07")
            if tokens.kind == "word":
                tokens.advance()
            value = self.attribute(depth) if tokens.accept("=") else True
            attributes[name] = Given(value, start, tokens.previous_end)

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
        """Return a list or a dictionary."""
        tokens = self.tokens
        self.limit(depth)
        if tokens.text == "{":
            entries: dict[str, Given] = {}
            self.entries(entries, depth + 1)
            return {name: attribute.value for name, attribute in entries.items()}
        tokens.advance()
        return tuple([self.attribute(depth + 1) for _ in self.items("]", "between the items of a list")])

    def more(self, closing: str, where: str) -> bool:
        """Return True if a comma promises another item; advance past it, or past the end of the list."""
        if self.tokens.accept(closing):
            return False
        self.tokens.expect(",", where)
        return True

    def items(self, closing: str, where: str) -> Iterator[None]:
        """Yield before each item of a list, which may be empty, and advance past its commas and its end."""
        if not self.tokens.accept(closing):
            yield
            while self.more(closing, where):
                yield

    # Types

    def signature(self, operation: TextOperation) -> None:
        """Read `: (T, T) -> T`, `: T -> T`, or `: T` alone for the result."""
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
        self.tokens.expect("(", "before the types")
        return tuple([self.type(depth) for _ in self.items(")", "between types")])

    def type(self, depth: int = 0) -> Type:
        tokens = self.tokens
        text = tokens.text
        cached = self.types.get(text) if tokens.kind in ("type", "word") else None
        if cached is not None:
            tokens.advance()
            return cached
        if tokens.kind not in ("type", "word"):
            tokens.refuse(f"expected a type, found {tokens.shown()}", "a type such as tensor<4xfp32>", "LANG-02.2-01")
        if text.removeprefix(DIALECT) == "fn":
            return self.function_type(depth)
        try:
            type_ = self.types[text] = read_type(text)
        except Refusal as refusal:
            place = tokens.location(tokens.start, tokens.end)
            raise Rejection([diagnostic_of(refusal, place, phase="parse")]) from None
        tokens.advance()
        return type_

    def function_type(self, depth: int) -> FunctionType:
        """Return the type `fn(T) -> T`, exported as `!tessera.fn<(T) -> T>`."""
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
        """Return the location `loc("file":1:2)`, or None for `loc(unknown)` and for none."""
        tokens = self.tokens
        if tokens.text != "loc" or tokens.kind != "word":
            return None
        tokens.advance()
        tokens.expect("(", "behind loc")
        location = None
        if tokens.kind == "string":
            filename, numbers = string(tokens), []
            for _ in range(2):
                tokens.expect(":", "in a location")
                if tokens.kind != "int" or not re.fullmatch("[0-9]{1,9}", tokens.text):
                    tokens.refuse(f"expected a number, found {tokens.shown()}", 'loc("file":line:column)')
                numbers.append(integer(tokens))
            line, column = numbers
            if line and column:  # MLIR writes 0 where it does not know
                location = Location(filename, Span(line, column, line, column + 1))
        elif not tokens.accept("unknown"):
            tokens.refuse(f"expected a location, found {tokens.shown()}", 'loc("file":line:column)', "LANG-12-01")
        tokens.expect(")", "behind a location")
        return location

    # Reading a kernel's entry as section 8.1 prints it (LANG-08.1-01; AMB-LANG-280).
    #
    # kernel @tss_kernel_k(%arg0: !llvm.ptr<global>, %arg1: i64, %arg2: f32)
    # attributes { grid=(2,1,1), block=(32,1,1), smem_bytes=64, stream=S }
    #
    # It is the `tessera.target.kernel` of the generic form. A body in braces may follow; without one the entry computes
    # nothing. The reader of the tree decides what must be stated.

    def kernel_entry(self) -> Walk[TextOperation]:
        """Return the entry whose symbol is the current token. Raises `Rejection` for a malformed one."""
        tokens = self.tokens
        entry = TextOperation(DEVICE_KERNELS["target"], tokens.start, tokens.end, [], [])
        symbol = Given(tokens.text[1:], tokens.start, tokens.end)
        tokens.advance()
        block = TextBlock(self.entry_parameters())
        types = tuple(name.type for name in block.arguments if name.type is not None)
        signature = Given(Signature(types, ()), symbol.end, tokens.previous_end)
        entry.end = tokens.previous_end
        entry.attributes = {"sym_name": symbol, "function_type": signature}
        if tokens.accept("attributes"):
            entry.attributes |= self.entry_attributes()
        if tokens.accept("{"):
            block.operations = yield self.operations("}")
            block.end = tokens.start
            tokens.expect("}", "at the end of a kernel")
        else:
            block.operations = [TextOperation(ENDINGS["return"], entry.start, entry.end, [], [])]
        entry.regions = [block]
        return entry

    def entry_parameters(self) -> list[Name]:
        tokens, names = self.tokens, list[Name]()
        tokens.expect("(", "before the parameters of a kernel")
        for _ in self.items(")", "between parameters"):
            name = self.value("a parameter")
            tokens.expect(":", f"behind %{name.text}")
            scalar = SCALARS.get(tokens.text)
            if scalar is not None:
                tokens.advance()
            names.append(Name(name.text, name.start, scalar or self.type()))
        return names

    def entry_attributes(self) -> dict[str, Given]:
        """Return the attributes `{ grid=(2,1,1), stream=S }`."""
        tokens, attributes = self.tokens, dict[str, Given]()
        tokens.expect("{", "to open the attributes")
        for _ in self.items("}", "between attributes"):
            start, name = tokens.start, tokens.text
            if tokens.kind != "word" or name in attributes:
                message = f"expected another attribute, found {tokens.shown()}"
                tokens.refuse(message, "name=value, each once", "LANG-08.1-01")
            tokens.advance()
            tokens.expect("=", f"behind {name}")
            attributes[name] = Given(self.entry_value(), start, tokens.previous_end)
        return attributes

    def entry_value(self) -> Any:
        """Return three extents in parentheses, a bare name, or a value of the generic form."""
        tokens = self.tokens
        if tokens.kind == "word" and tokens.text not in ("true", "false"):
            return tokens.advance()
        if not tokens.accept("("):
            return self.attribute(0)
        extents = [self.attribute(0)]
        while self.more(")", "between extents"):
            extents.append(self.attribute(0))
        return tuple(extents)
