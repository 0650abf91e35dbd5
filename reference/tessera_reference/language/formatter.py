"""The formatter: a program in its canonical spelling, with its comments (`tessera-reference fmt`).

Two blanks of indentation, one statement a line, blanks around operators and behind commas, one blank line around
functions, no more than one anywhere; lists and chains of operators that go beyond 100 columns are broken. Parentheses,
numbers and words stay as written. What is printed parses to the same tree, and prints as itself.
"""

from __future__ import annotations

from .comments import woven
from .lexer import Lexer
from .lines import written
from .parser import parse
from .spelling import spelled
from .syntax import Node, Program


def format_program(program: Program | str, filename: str = "<source>") -> str:
    """The text of a program; from a text, with its comments. Raises `Rejection` if the text is no program."""
    if isinstance(program, Node):
        return written(spelled(program))
    tree = parse(program, filename)
    lexer = Lexer(program)
    tokens = list(lexer)
    return written(woven(spelled(tree), tokens, lexer.comments))
