"""All syntax errors of a text in one pass (spec section 12).

Where the parser cannot go on, the error is reported and the tokens are edited: one is inserted, removed or replaced if
the text then reads on, or else all up to the next statement, declaration or block are skipped. What a wrong edit leads
to is not reported again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from lark.exceptions import UnexpectedToken

from ..ir.diagnostics import Diagnostic
from . import messages
from .lexer import BRACKETS, END, MOST_PROBLEMS, RESERVED, Lexer, Token, as_accepted, spellings, terminals
from .nesting import Nesting, steps
from .tree import MisplacedArgument, Parser, start_parser

HORIZON = 25
"""How many tokens behind the error an edit is tried on."""

LOOKBACK = 6
"""How many tokens before the error an edit may be made."""

CONVINCING = 3
"""How many tokens behind an edit must read on."""

FARTHEST = 20_000
"""How many tokens are skipped in search of a place to read on."""

STATEMENTS = frozenset({"LET", "RETURN", "IF", "FOR", "WHILE", "BARRIER", "ASSERT"})
DECLARATIONS = frozenset({"FUNC", "KERNEL", "TYPE", "MESH", "LET"})
BRACES = {"LBRACE": 1, "RBRACE": -1}

HEADINGS = {"stmt": "while ( IDENT )", "decl": "func IDENT ( )", "module_decl": "module IDENT"}
"""What a block may follow, by what the list around it holds."""

STATEMENT_HEADINGS = {"stmt": "", "decl": "func IDENT ( ) {", "module_decl": "module IDENT { func IDENT ( ) {"}
"""What statements may follow, by what the list around them holds."""


class OpenList(NamedTuple):
    """A block, a module or the program, not closed yet."""

    holds: str
    """The rule of its items."""
    parser: Parser
    """The parser behind its last whole item."""
    item: int
    """The place of the token behind that."""


Lists: TypeAlias = tuple[OpenList, ...]


class Edit(NamedTuple):
    """Put `given` in the place of the tokens from `place` up to `resume`, and read on there with `parser`."""

    parser: Parser
    lists: Lists
    """What is open at that place."""
    place: int
    given: list[Token]
    resume: int
    balance: int = 0
    """How many more braces are open then than in the text."""


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
    """Parsing a text that has errors."""

    def __init__(self, lexer: Lexer, filename: str) -> None:
        self.found: list[Diagnostic] = []
        self._lexer = lexer
        self._filename = filename
        self._rest = iter(lexer)
        self._tokens: list[Token] = []
        self._position = 0
        self._parser = start_parser()
        self._before: deque[tuple[Parser, Lists]] = deque(maxlen=LOOKBACK + 1)
        """The parser and the lists before the token at hand, last, and before those that an edit may change."""
        self._lists: Lists = (OpenList("module_decl", _copy(self._parser), 0),)
        """What is open around the token at hand, the innermost last."""
        self._balance = 0
        """How many more braces are open than in the text, because of edits."""

    def run(self) -> None:
        """Read to the end, or to where reading on makes no sense."""
        nesting = Nesting()
        while len(self.found) < MOST_PROBLEMS:
            token = self._token(self._position)
            before = _copy(self._parser)
            self._before.append((before, self._lists))
            accepted = before.choices()
            self._tokens[self._position : self._position + 1] = [token, *_] = as_accepted(token, accepted)
            step = steps().get(token.type)
            if step and (excess := step(nesting, "STAR" in accepted)):
                self._report(messages.beyond_limit(excess, token.span, self._filename))
                return
            try:
                self._parser.feed_token(token)
            except UnexpectedToken:
                if not self._recover(before, token):
                    return
                nesting = Nesting()
            except MisplacedArgument as misplaced:
                self._remove(misplaced)
            else:
                if token.type == END:
                    return
                self._position += 1
                self._note_lists(token)

    def _token(self, index: int) -> Token:
        """A token, or the end of the text."""
        while index >= len(self._tokens):
            self._tokens.append(next(self._rest, self._tokens[-1] if self._tokens else _made(END)))
        return self._tokens[index]

    def _note_lists(self, token: Token) -> None:
        """Keep track of the open lists behind a brace or a semicolon."""
        if token.type not in ("LBRACE", "RBRACE", "SEMICOLON"):
            return
        holds = _held(self._parser)
        if not holds:
            return
        outer = self._lists if token.type == "LBRACE" else self._lists[: -1 - (token.type == "RBRACE")]
        self._lists = (*outer, OpenList(holds, _copy(self._parser), self._position))

    def _remove(self, misplaced: MisplacedArgument) -> None:
        """Report a positional argument behind one by keyword, and read its statement again without it."""
        self._report(messages.misplaced_argument(misplaced.span, self._filename))
        start = misplaced.span.line, misplaced.span.column
        _, parser, item = self._lists[-1]
        first = next(index for index in range(item, self._position) if self._tokens[index].start == start)
        del self._tokens[first - 1 : self._position]
        self._position, self._parser = item, _copy(parser)
        self._before.clear()

    def _recover(self, before: Parser, token: Token) -> bool:
        """Whether there is a way to go on after an error at the token at hand."""
        edit = self._best_change() or self._next_place()
        if not self._is_consequence(token, edit):
            index = self._position
            previous = next((known for known in reversed(self._tokens[:index]) if known.line), None)
            expected = before.accepts()
            self._report(messages.unexpected(token, previous, self._token(index + 1), expected, self._filename))
        if edit is None:
            return False
        self._balance += edit.balance
        self._tokens[edit.place : edit.resume] = edit.given
        self._position, self._parser, self._lists = edit.place, _copy(edit.parser), edit.lists
        self._before.clear()
        return True

    def _is_consequence(self, token: Token, edit: Edit | None) -> bool:
        """Whether the error is reported already: as a lexical one, or as the one that was not edited well."""
        if token.type == END and (self._lexer.cut_short or (edit is None and self._balance > 0)):
            return True
        start, end = token.start, (token.end_line, token.end_column)
        if any(start <= (problem.span.line, problem.span.column) < end for problem in self._lexer.problems):
            return True
        return edit is not None and self._balance * edit.balance < 0

    def _report(self, diagnostic: Diagnostic) -> None:
        if diagnostic not in self.found and diagnostic.span.line:
            self.found.append(diagnostic)

    def _best_change(self) -> Edit | None:
        """The change of one token, at the error or a little before it, that reads on farthest, if any convinces."""
        error = self._position
        best, farthest = None, error
        for place in range(error, error - len(self._before), -1):
            parser, lists = self._before[place - error - 1]
            for resume, given in self._changes(parser, place):
                reach = resume + self._reach(parser, given, resume, error + HORIZON - resume)
                if reach > farthest and reach >= max(error + 1, resume) + CONVINCING:
                    balance = _balance(given) - _balance(self._tokens[place:resume])
                    best, farthest = Edit(parser, lists, place, given, resume, balance), reach
            if farthest == error + HORIZON:
                break
        return best

    def _changes(self, parser: Parser, place: int) -> Iterator[tuple[int, list[Token]]]:
        """A token put in, left out or exchanged, the likeliest first: where to read on, and behind what."""
        kinds = sorted(parser.accepts(), key=lambda kind: (spellings().get(kind, "a").isidentifier(), kind))
        token = self._token(place)
        yield from ((place, [_made(kind)]) for kind in kinds)
        if token.value in BRACKETS:
            word = token.retyped("_ATTRIBUTES" if token.value == "@" else terminals()[token.value])
            yield from ((place + gone, [word, _made(BRACKETS[token.value])]) for gone in (1, 2))
        if token.type != END:
            yield place + 1, []
            yield from ((place + 1, [_made(kind)]) for kind in kinds)

    def _reach(self, parser: Parser, given: Sequence[Token], resume: int, limit: int) -> int:
        """How many tokens from `resume` on can be read behind the given ones, up to a limit; -1 if those cannot."""
        parser = _copy(parser)
        try:
            for token in given:
                parser.feed_token(token)
        except (UnexpectedToken, MisplacedArgument):
            return -1
        for count in range(limit):
            token = self._token(resume + count)
            try:
                for piece in as_accepted(token, parser.choices()):
                    parser.feed_token(piece)
            except (UnexpectedToken, MisplacedArgument):
                return count
            if token.type == END:
                break
        return limit

    def _next_place(self) -> Edit | None:
        """The next place where a statement, a declaration or a block can be read."""
        depth, inner, previous = 0, len(self._lists) - 1, ""
        for index in range(self._position, self._position + FARTHEST):
            kind = self._token(index).type
            if kind == END:
                break
            if depth == 0 and previous != "DOT":
                begins = previous == "block" or (index == self._position and _begins_call(self._token(index)))
                for level, heading, skipped in self._places(inner, kind, previous, begins):
                    parser, given = self._lists[level].parser, [_made(text) for text in heading.split()]
                    wanted = 1 if skipped else CONVINCING  # behind a semicolon all begins anew
                    if self._reach(parser, given, index + skipped, wanted) == wanted:
                        balance = _balance(given) - (inner - level)
                        return Edit(parser, self._lists[: level + 1], self._position, given, index + skipped, balance)
            depth += BRACES.get(kind, 0)
            if depth < 0:
                depth, inner = 0, max(inner - 1, 0)
            previous = "block" if kind == "RBRACE" and depth == 0 else kind
        return None

    def _places(self, inner: int, kind: str, previous: str, begins_statement: bool) -> Iterator[tuple[int, str, int]]:
        """What may be read from a token on, the likeliest first: in which list, behind which words, how far on."""
        holds = self._lists[inner].holds
        if kind == "SEMICOLON" and inner:
            yield inner, "", 1
        elif kind == "RBRACE" and inner:
            yield inner, "", 0
        elif kind == "LBRACE" and previous != "_ATTRIBUTES":
            yield inner, HEADINGS[holds], 0
        if kind in DECLARATIONS:
            yield (1, "", 0) if inner else (0, "module IDENT {", 0)
        if kind in STATEMENTS or begins_statement:
            yield inner, STATEMENT_HEADINGS[holds], 0
        if kind == "MODULE":
            yield 0, "", 0


def _copy(parser: Parser) -> Parser:
    return parser.copy(deepcopy_values=False)


def _held(parser: Parser) -> str:
    """The rule of the items of the list that the parser is in, between two of them; otherwise nothing."""
    first = {"RETURN": "stmt", "FUNC": "decl", "MODULE": "module_decl"}
    return next((rule for kind, rule in first.items() if kind in parser.choices()), "")


def _begins_call(token: Token) -> bool:
    """Whether it is a name, as words that are not reserved may be, or the head of a dotted one."""
    return token.type in ("OP", "DIST", "SCHEDULE", "NUMERICS") or token.value.isidentifier() > (
        token.value in RESERVED
    )


def _balance(tokens: Sequence[Token]) -> int:
    return sum(BRACES.get(token.type, 0) for token in tokens)


def _made(text: str) -> Token:
    """A token that is not in the text, by its spelling or its type."""
    kind = terminals().get(text, text)
    return Token(kind, spellings().get(kind, ""), 0, 0, 0, 0)
