"""The grammar as tables: what Lark compiles `grammar.lark` to, in the form that the parser and the lexer read.

A terminal that the grammar quotes is called by its spelling, any other by its name. How a rule's children become the
arguments of its node follows Lark's notation: quoted terminals are left out, what a rule with an underscore or a
repetition gathers is passed on to its parent, `?` passes an only child on, and `[...]` leaves None where it is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from lark import Lark
from lark.grammar import Rule, Symbol, Terminal
from lark.lexer import PatternStr, TerminalDef
from lark.parsers.lalr_analysis import Shift

END = "$END"
"""The terminal after the last token."""

Gather = Callable[[list[Any]], list[Any]]


class Production(NamedTuple):
    """A rule, as the parser needs it."""

    size: int
    """The number of its symbols."""
    origin: str
    node: str
    """The name of what it builds; empty where its children are passed on."""
    gather: Gather
    """From the values of its symbols to the arguments of its node, or to the list that is passed on."""
    only: int
    """The symbol whose value it passes on unchanged, or -1."""
    levels: int
    """How many levels of nesting end with it: its sign or its arrow; brackets close by themselves (nesting.py)."""


@dataclass(frozen=True)
class Tables:
    """An LALR(1) automaton. An action that is not negative is the state to go to; ~action is the rule to reduce by."""

    actions: Sequence[dict[str, int]]
    gotos: Sequence[dict[str, int]]
    productions: Sequence[Production]
    start: int
    end: int
    words: frozenset[str]
    """The words that the grammar quotes."""
    punctuation: frozenset[str]
    patterns: dict[str, str]
    """The regular expressions of the named terminals."""


@cache
def tables() -> Tables:
    """The compiled grammar; building it takes a tenth of a second, once."""
    text = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    lark = Lark(text, start="program", parser="lalr", lexer="basic", maybe_placeholders=True)
    table = lark.parse_interactive("").parser_state.parse_conf.parse_table
    quoted = _quoted(lark.terminals)
    numbers = {rule: index for index, rule in enumerate(lark.rules)}
    origins = {rule.origin.name for rule in lark.rules}
    actions: list[dict[str, int]] = [{} for _ in table.states]
    gotos: list[dict[str, int]] = [{} for _ in table.states]
    for state, row in table.states.items():
        for name, (kind, target) in row.items():
            where = gotos if name in origins else actions
            where[state][quoted.get(name, name)] = target if kind is Shift else ~numbers[target]
    return Tables(
        actions,
        gotos,
        [_production(rule, quoted) for rule in lark.rules],
        table.start_states["program"],
        table.end_states["program"],
        frozenset(spelling for spelling in quoted.values() if spelling.isidentifier()),
        frozenset(spelling for spelling in quoted.values() if not spelling.isidentifier()),
        {terminal.name: terminal.pattern.to_regexp() for terminal in lark.terminals if terminal.name not in quoted},
    )


def _quoted(terminals: Collection[TerminalDef]) -> dict[str, str]:
    """The spelling of each terminal that has only one."""
    return {terminal.name: terminal.pattern.value for terminal in terminals if isinstance(terminal.pattern, PatternStr)}


def _production(rule: Rule, quoted: dict[str, str]) -> Production:
    origin = str(rule.origin.name)
    spellings = [quoted.get(symbol.name, symbol.name) for symbol in rule.expansion]
    kept = [
        index
        for index, symbol in enumerate(rule.expansion)
        if rule.options.keep_all_tokens or not (isinstance(symbol, Terminal) and symbol.filter_out)
    ]
    passes_on = rule.options.expand1 and len(kept) == 1 and not _flattened(rule.expansion[kept[0]])
    return Production(
        size=len(spellings),
        origin=origin,
        node="" if origin.startswith("_") else rule.alias or origin,
        gather=_gather(rule, kept),
        only=kept[0] if passes_on else -1,
        levels=sum(spelling in ("sign", "->") for spelling in spellings) - (origin == "sign"),
    )


def _flattened(symbol: Symbol) -> bool:
    return not symbol.is_term and symbol.name.startswith("_")


def _gather(rule: Rule, kept: Sequence[int]) -> Gather:
    """The function from all values of a rule to those that its node is made of."""
    absent = _absent(rule)
    flattened = {index for index in kept if _flattened(rule.expansion[index])}
    if not any(absent) and not flattened:
        return lambda values: [values[index] for index in kept]

    def gather(values: list[Any]) -> list[Any]:
        gathered: list[Any] = []
        for index, value in enumerate(values):
            gathered += [None] * absent[index]
            if index in flattened:  # the list of a repetition grows in place, one item after the other
                gathered = gathered + value if gathered else value
            elif index in kept:
                gathered.append(value)
        gathered += [None] * absent[-1]
        return gathered

    return gather


def _absent(rule: Rule) -> list[int]:
    """How many optional symbols are absent before each symbol, and after the last."""
    marks = rule.options.empty_indices or (False,) * len(rule.expansion)
    return [len(run) for run in "".join("-" if mark else "." for mark in marks).split(".")]
