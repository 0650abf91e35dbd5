"""All syntax errors of a text in one pass (spec section 12).

Where the automaton cannot go on, the error is reported and the text repaired: by a change of one token, at the error or
a little before it, or else by reading on at the next statement, declaration or block. What a wrong repair leads to is
not reported again.
"""

from __future__ import annotations

from ..ir.diagnostics import Diagnostic, Span
from . import messages
from .automaton import Stack, acceptable, advance, empty_stack, misfit
from .lexer import MOST_PROBLEMS, Lexer, Token
from .nesting import NESTING_LIMIT
from .repairs import Repair, Window, best_change, next_place
from .tables import END

ATTEMPTS = 1000
"""After trying so many places to read on, the rest of the text is left alone."""


def diagnose(source: str, filename: str) -> tuple[Diagnostic, ...]:
    """What is wrong with a text that is no program, in its order, ten findings at most."""
    lexer = Lexer(source)
    recovery = _Recovery(lexer, filename)
    recovery.run()
    sure = lexer.doubtful_line
    found = [messages.lexical(problem, filename) for problem in lexer.problems]
    found += [diagnostic for diagnostic in recovery.found if sure is None or diagnostic.span.line < sure]
    return tuple(sorted(found, key=lambda diagnostic: diagnostic.span)[:MOST_PROBLEMS])


class _Recovery:
    """Reading a text that has errors."""

    def __init__(self, lexer: Lexer, filename: str) -> None:
        self.found: list[Diagnostic] = []
        self._lexer = lexer
        self._filename = filename
        self._window = Window(lexer)
        self._balance = 0
        """How many more braces are open than in the text, because of repairs."""
        self._attempts = ATTEMPTS

    def run(self) -> None:
        """Read to the end, or to where reading on makes no sense."""
        window = self._window
        stack: Stack | None = empty_stack()
        while stack is not None:
            token = window.token(window.position)
            misplaced: list[Token] = []
            following = advance(stack, token, misplaced)
            if following is None:
                stack = self._recover(stack, token)
                continue
            self._report_misplaced(misplaced)
            if following.level > NESTING_LIMIT:
                self._report(messages.nested_too_deep(token.span, self._filename))
                return
            if token.kind == END:
                return
            window.remember(stack)
            window.position += 1
            stack = following

    def _recover(self, stack: Stack, token: Token) -> Stack | None:
        """The stack to go on with after an error at the token at hand, or None."""
        window = self._window
        stack, pieces = misfit(stack, token)
        window.split(pieces)
        window.remember(stack)
        repair = best_change(window)
        if repair is None:
            repair, self._attempts = next_place(window, self._attempts)
        if not self._is_consequence(pieces[0], repair):
            previous = window.token(window.position - 1) if window.position else None
            following = window.token(window.position + 1)
            expected = acceptable(stack)
            self._report(messages.unexpected(pieces[0], previous, following, expected, self._filename))
        if repair is None or len(self.found) >= MOST_PROBLEMS:
            return None
        self._balance += repair.balance
        window.go_on(repair)
        return repair.stack

    def _is_consequence(self, token: Token, repair: Repair | None) -> bool:
        """Whether the error is reported already: as a lexical one, or as the one that was not repaired well."""
        if token.kind == END and (self._lexer.cut_short or (repair is None and self._balance > 0)):
            return True
        start, end = token.start, token.end
        if any(start <= (problem.span.line, problem.span.column) < end for problem in self._lexer.problems):
            return True
        return repair is not None and self._balance * repair.balance < 0

    def _report_misplaced(self, arguments: list[Token]) -> None:
        """Positional arguments, by their first tokens, that end before the token at hand."""
        for first in arguments:
            last = self._window.token(self._window.position - 1)
            if first.line:
                span = Span(first.line, first.column, last.end_line, last.end_column)
                self._report(messages.misplaced_argument(span, self._filename))

    def _report(self, diagnostic: Diagnostic) -> None:
        if diagnostic not in self.found:
            self.found.append(diagnostic)
