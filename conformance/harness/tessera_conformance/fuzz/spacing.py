"""Tokens written as text: laid out plainly, or with any space, newline and comment that section 14.1 allows."""

from __future__ import annotations

from tessera_conformance.fuzz.choices import Chooser
from tessera_conformance.fuzz.rendering import Text

GAPS = (
    " ",
    "",
    "  ",
    "\n",
    "\t",
    "\r\n",
    " /* c */ ",
    " // c\n",
    " /**/",
    " /* \" ' { ; // */ ",
    ' // /* " } \\ é\n',
    "\n/* two\n * lines **/\n",
)
"""What may stand between two tokens; a comment never touches the token before it."""
ENDINGS = ("", "\n", " // the end of the text ends a comment", "/* */")
FUSING = frozenset({(">", "="), ("<", "="), ("=", "="), ("/", "/"), ("/", "*"), ("-", ">")})
"""Neighbours that would become another token."""


def plain(text: Text) -> str:
    """One statement a line, indented by braces."""
    lines: list[str] = []
    line: list[str] = []
    depth, previous, in_attributes = 0, "", False
    for place, token in enumerate(text.tokens):
        in_attributes = in_attributes or (token == "{" and previous == "@")
        if token == "}" and not in_attributes:
            _end(lines, line, depth)
            depth -= 1
        close = place in text.tight or previous in ("(", "[")
        line.append(token if not line or close else f" {token}")
        follows = text.tokens[place + 1] if place + 1 < len(text.tokens) else ""
        if (token == ";" and follows != "layout") or (token in ("{", "}") and not in_attributes and follows != ";"):
            _end(lines, line, depth)
            depth += token == "{"
        in_attributes = in_attributes and token != "}"
        previous = token
    _end(lines, line, depth)
    return "\n".join(lines) + "\n" if lines else ""


def odd(text: Text, chooser: Chooser) -> str:
    """Any gaps that keep the tokens apart, more often small ones."""
    parts: list[str] = []
    previous = ""
    for token in text.tokens:
        gap = GAPS[chooser.below(len(GAPS))] if chooser.below(4) == 3 else " "
        if not gap and _touches(previous, token):
            gap = " "
        parts += (gap, token)
        previous = token
    return "".join(parts) + chooser.pick(ENDINGS)


def _touches(left: str, right: str) -> bool:
    """Whether two tokens need something between them."""
    if not left:
        return False
    last, first = left[-1], right[0]
    return (_in_word(last) and _in_word(first)) or (last, first) in FUSING


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _end(lines: list[str], line: list[str], depth: int) -> None:
    if line:
        lines.append("  " * depth + "".join(line))
        line.clear()
