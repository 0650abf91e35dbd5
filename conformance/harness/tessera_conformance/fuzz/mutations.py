"""Wrong programs: legal ones with a statement, declaration, token or character added, removed or changed."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tessera_conformance.dsl import DTYPES, RESERVED
from tessera_conformance.fuzz import expressions
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.statements import GeneratedProgram
from tessera_conformance.fuzz.tree import TOKEN, Chooser, render

# The texts of `texts.toml`: wrong statements and declarations, and fragments that mutations insert.


_TABLES = tomllib.loads(Path(__file__).with_name("texts.toml").read_text(encoding="utf-8"))


MISTAKES, DECLARATIONS = (list(_TABLES[name].items()) for name in ("statements", "declarations"))
"""Statements that are wrong in every place, and declarations that no module may hold: the mistake, text, categories."""

FRAGMENTS: Sequence[Sequence[str]] = [_TABLES["fragments"][name] for name in ("numbers", "types", "statements")]
"""Texts that a mutation inserts between tokens."""

BRACKETS: Sequence[tuple[str, str]] = [(before, after) for before, after in _TABLES["fragments"]["brackets"]]
"""Pairs of texts that a mutation inserts before and after a token."""

# Places between statements, and the names visible there.


@dataclass(frozen=True)
class Slot:
    """A place before a statement or at the end of a block: the names with a value there, and the enclosing function."""

    block: t.Block
    place: int
    visible: Mapping[str, t.Type]
    function: t.Function


def slots_of(program: t.Program) -> Iterator[Slot]:
    """Yield every reachable place for a statement, in source order."""
    for module in program:
        constants = {constant.name: constant.type for constant in module.declarations if isinstance(constant, t.Let)}
        for function in module.declarations:
            if isinstance(function, t.Function):
                parameters = {parameter.name: parameter.type for parameter in function.parameters}
                yield from _slots(function.body, constants | parameters, function)


def _slots(block: t.Block, outer: Mapping[str, t.Type], function: t.Function) -> Iterator[Slot]:
    visible = dict(outer)
    pending: dict[str, t.Type] = {}
    for place, statement in enumerate(block):
        yield Slot(block, place, dict(visible), function)
        match statement:
            case t.If(_, then, otherwise):
                for inner in (then,) if otherwise is None else (then, otherwise):
                    yield from _slots(inner, visible, function)
            case t.For(name=name, body=body):
                yield from _slots(body, visible | {name: expressions.INT32}, function)
            case t.While(_, body):
                yield from _slots(body, visible, function)
            case t.Let(name, type_, None):
                pending[name] = type_
                visible.pop(name, None)
            case t.Let(name, type_):
                visible[name] = type_
        visible |= pending if isinstance(statement, t.Assign | t.If) else {}
    if not block or not ends(block[-1]):
        yield Slot(block, len(block), visible, function)


def ends(statement: t.Stmt) -> bool:
    """True if no statement after this one is reached."""
    if isinstance(statement, t.If):
        return statement.otherwise is not None and all(
            bool(block) and ends(block[-1]) for block in (statement.then, statement.otherwise)
        )
    return isinstance(statement, t.Return)


# Statements that are wrong about a name in scope.


TYPES, SHAPES, EITHER = ("types",), ("shapes",), ("types", "shapes")


class NamedMistake(NamedTuple):
    """A wrong statement about a visible name: the mistake, its categories, the statement, and its condition."""

    what: str
    categories: tuple[str, ...]
    make: Callable[[Chooser, Slot, str], t.Stmt]
    applies: Callable[[Slot, str], bool] = lambda slot, name: True


def _other_dtype(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    type_ = slot.visible[name]
    other = chooser.pick([number for number in (*expressions.NUMBERS, "bool") if number != type_.dtype])
    return t.Let("bad", t.Type(other, type_.shape, type_.layout), t.Var(name))


def _other_extent(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    type_ = slot.visible[name]
    first, *rest = type_.shape
    assert isinstance(first, int)
    return t.Let("bad", t.Type(type_.dtype, (first + 1, *rest), type_.layout), t.Var(name))


def _other_rank(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    type_ = slot.visible[name]
    return t.Let("bad", t.Type(type_.dtype, () if type_.shape else (1,)), t.Var(name))


def _no_condition(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    statements: tuple[t.Stmt, ...] = (t.If(t.Var(name), []), t.While(t.Var(name), []), t.Assert(t.Var(name)))
    return chooser.pick(statements)


def _other_numbers(slot: Slot, name: str) -> list[str]:
    """Return the names of numeric variables of another dtype."""
    numbers = {other: type_.dtype for other, type_ in slot.visible.items() if type_.dtype in expressions.NUMBERS}
    return [other for other, dtype in numbers.items() if name in numbers and dtype != numbers[name]]


def _two_dtypes(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    other = t.Var(chooser.pick(_other_numbers(slot, name)))
    return t.Let("bad", slot.visible[name], t.Binary(chooser.pick("+-*/"), t.Var(name), other))


def _too_many_indices(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    type_ = slot.visible[name]
    return t.Let("bad", t.Type(type_.dtype), t.Index(t.Var(name), (t.Literal("0"),) * (len(type_.shape) + 1)))


def _has_extents(slot: Slot, name: str) -> bool:
    return bool(slot.visible[name].shape) and slot.visible[name].is_static


def _is_no_condition(slot: Slot, name: str) -> bool:
    return slot.visible[name] != expressions.BOOL


MISTAKES_WITH_NAMES = (
    NamedMistake("another dtype than the name's", TYPES, _other_dtype),
    NamedMistake("another extent than the name's", SHAPES, _other_extent, _has_extents),
    NamedMistake("another rank than the name's", EITHER, _other_rank),
    NamedMistake("a condition that is none", EITHER, _no_condition, _is_no_condition),
    NamedMistake(
        "two dtypes in one operator", EITHER, _two_dtypes, lambda slot, name: bool(_other_numbers(slot, name))
    ),
    NamedMistake("a string assigned", TYPES, lambda chooser, slot, name: t.Assign(name, (), t.Literal('"text"'))),
    NamedMistake("an index more than dimensions", EITHER, _too_many_indices),
    NamedMistake("a value called", TYPES, lambda chooser, slot, name: t.Call(name, (), own=True)),
    NamedMistake(
        "a return without a value",
        TYPES,
        lambda chooser, slot, name: t.If(t.Literal("true"), [t.Return(())]),
        lambda slot, name: slot.function.result is not None,
    ),
)

# Programs known to be illegal: a legal one with one statement, declaration, token or word added or removed.
#
# Each lists the categories that may refuse it (AMB-LANG-112); where two fit, either is accepted.


Broken = tuple[str, str, tuple[str, ...]]
"""The mutation, the text, and the categories."""

SYNTAX = ("syntax",)
NEEDED = frozenset("{}();")
"""Tokens that every program needs."""
DECLARING = frozenset({"module", "func", "kernel", "type", "let"})
"""Words before a declared name."""


def break_program(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """Return a legal program with one mistake in it."""
    return chooser.pick(WAYS)(copy.deepcopy(program.tree), chooser)


def _statement(tree: t.Program, chooser: Chooser) -> Broken:
    """Insert a wrong statement in a reachable place."""
    slot = chooser.pick(list(slots_of(tree)))
    named = [
        (mistake, names)
        for mistake in MISTAKES_WITH_NAMES
        if (names := [name for name in slot.visible if mistake.applies(slot, name)])
    ]
    if named and chooser.below(2):
        (what, categories, make, _), names = chooser.pick(named)
        statement = make(chooser, slot, chooser.pick(names))
    else:
        what, wrong = chooser.pick(MISTAKES)
        statement, categories = t.Raw(wrong["text"]), tuple(wrong["categories"])
    slot.block.insert(slot.place, statement)
    return what, render(tree), categories


def _declaration(tree: t.Program, chooser: Chooser) -> Broken:
    """Append a wrong declaration to a module."""
    what, wrong = chooser.pick(DECLARATIONS)
    tree[-1].declarations.append(t.Raw(wrong["text"]))
    return what, render(tree), tuple(wrong["categories"])


def _token(tree: t.Program, chooser: Chooser) -> Broken:
    """Remove one token that every program needs."""
    tokens = TOKEN.findall(render(tree))
    dropped = tokens.pop(chooser.pick([place for place, token in enumerate(tokens) if token in NEEDED]))
    return f"{dropped} dropped", " ".join(tokens) + "\n", SYNTAX


def _word(tree: t.Program, chooser: Chooser) -> Broken:
    """Use a reserved word as a declared name."""
    tokens = TOKEN.findall(render(tree))
    place = 1 + chooser.pick([place for place, token in enumerate(tokens) if token in DECLARING])
    tokens[place] = chooser.pick(RESERVED)
    return f"reserved word {tokens[place]}", " ".join(tokens) + "\n", SYNTAX


def _twice(tree: t.Program, chooser: Chooser) -> Broken:
    """Repeat a declaration of a module (AMB-LANG-86)."""
    declarations = tree[0].declarations
    declarations.append(chooser.pick(declarations))
    return "declared twice", render(tree), (*TYPES, "distributed")


def _other_end(what: str, end: t.Block, tree: t.Program, chooser: Chooser) -> Broken:
    """Replace the return of a func with an annotated result (AMB-LANG-93); without such a func, do `_statement`."""
    bodies = [
        function.body
        for function in tree[0].declarations
        if isinstance(function, t.Function) and function.result is not None and isinstance(function.body[-1], t.Return)
    ]
    if not bodies:
        return _statement(tree, chooser)
    body = chooser.pick(bodies)
    body[-1:] = end
    assert end or not body or not ends(body[-1])
    return what, render(tree), TYPES


WAYS: tuple[Callable[[t.Program, Chooser], Broken], ...] = (
    *(_statement,) * 6,
    *(_declaration,) * 2,
    _token,
    _word,
    _twice,
    partial(_other_end, "no return at the end", []),
    partial(_other_end, "an empty return", [t.Return(())]),
)

# Mutated texts: tokens and characters removed, repeated, exchanged, inserted, cut off and nested deeply.
#
# A front end must answer such a text, with a result or with diagnostics; nothing else is known about it.


Mutation: TypeAlias = Callable[[str, Chooser], str]

LONGEST = 20_000
"""The most characters; longer texts are cut, so that deep nesting does not make one text as slow as a thousand."""

WORDS = (*RESERVED, *DTYPES, "tensor", "memref", "fragment", "fn", "axes", "addrspace", "true", "assert", "row_major")
SIGNS = (*"{}()[]<>;:,.=@+-*/?x\"'\\!&|%^~#$`_", "@{", "->", "==", "<=", "!=", "//", "/*", "*/", "&&", "**", "::")
STRINGS = ('"', '"\\', '"\\q"', '"a\nb"', '"unfinished', '""""', "/* unfinished", "'a'", '"\\u0041"')
CHARACTERS = ("\x00", "\x01", "\x7f", "\x0b", "\x0c", "\u00e9", "\u2028", "\ufeff", "\U0001f600", "\u0663", "\u00a0")

EXTRAS: dict[str, tuple[str, ...]] = {
    "name": (*DTYPES, "true", "false", "nowhere", "matmul", "softmax", "sum", "row_major", "col_major"),
    "number": ("0", "1", "2", "3", "7", "1.5", "1e3"),
    "shape": ("1xfp32", "2x2xint32", "3x1x2xbf16", "0xfp16", "2x2xbool", "4xcomplex64"),
    "operator": ("+", "-", "*", "/", "@", "<", ">", "=="),
}
_TOKEN = re.compile(r'"[^"]*"|[A-Za-z_]\w*|\d[\w.]*|\s+|.', re.DOTALL)


def mutate(source: str, chooser: Chooser) -> str:
    """Return the text after one small change, or after one to four of any kind."""
    if chooser.chance(2):
        return _of_its_sort(source, chooser)[:LONGEST]
    for _ in range(chooser.pick((1, 1, 2, 1, 3, 4))):
        source = chooser.pick(MUTATIONS)(source, chooser)[:LONGEST]
    return source


def tokens_of(text: str) -> list[str]:
    """Return rough tokens of a text, which joined give it back."""
    return _TOKEN.findall(text)


def _replacing(
    split: Callable[[str], list[str]], counts: Sequence[int], instead: Callable[[list[str], Chooser], list[str]]
) -> Mutation:
    """Return a mutation that puts others in the place of some tokens or characters, as many as one of the counts."""

    def mutation(text: str, choose: Chooser) -> str:
        pieces = split(text)
        start = choose.below(len(pieces) + 1)
        end = start + (choose.pick(counts) if len(counts) > 1 else counts[0])
        return "".join([*pieces[:start], *instead(pieces[start:end], choose), *pieces[end:]])

    return mutation


def _inserted(pieces: list[str], choose: Chooser) -> list[str]:
    return [choose.pick(choose.pick((SIGNS, WORDS, *FRAGMENTS, STRINGS, CHARACTERS)))]


def _other_character(pieces: list[str], choose: Chooser) -> list[str]:
    return [choose.pick(CHARACTERS) if choose.chance(3) else chr(choose.between(32, 126))]


def _piled_up(pieces: list[str], choose: Chooser) -> list[str]:
    """Nest brackets, signs or words around or before a token, a few times or a great many."""
    before, after = choose.pick(BRACKETS)
    times = choose.pick((2, 5, 30, 2, 300, 2))
    return [before * times, *pieces, after * times]


def _exchange(text: str, choose: Chooser) -> str:
    tokens = tokens_of(text)
    if len(tokens) > 1:
        left, right = choose.below(len(tokens)), choose.below(len(tokens))
        tokens[left], tokens[right] = tokens[right], tokens[left]
    return "".join(tokens)


def _move(text: str, choose: Chooser) -> str:
    tokens = tokens_of(text)
    first, second = sorted((choose.below(len(tokens) + 1), choose.below(len(tokens) + 1)))
    place = choose.below(len(tokens) - (second - first) + 1)
    rest = tokens[:first] + tokens[second:]
    return "".join(rest[:place] + tokens[first:second] + rest[place:])


def _of_its_sort(text: str, choose: Chooser) -> str:
    """Replace a token by another of its sort (name, number, operator): the result is often well formed."""
    tokens = tokens_of(text)
    sorts = [_sort(token) for token in tokens]
    places = [place for place, sort in enumerate(sorts) if sort]
    if places:
        place = choose.pick(places)
        others = [token for token, sort in zip(tokens, sorts, strict=True) if sort == sorts[place]]
        tokens[place] = choose.pick([*others, *EXTRAS[sorts[place]]])
    return "".join(tokens)


def _sort(token: str) -> str:
    if token[0].isalpha() or token[0] == "_":
        return "name"
    if token[0].isdigit():
        return "shape" if "x" in token else "number"
    return "operator" if token in "+-*/@<>" else ""


MUTATIONS: tuple[Mutation, ...] = (
    _of_its_sort,
    _replacing(tokens_of, (1, 1, 1, 2, 5, 20), lambda pieces, choose: []),
    _replacing(tokens_of, (0, 1), _inserted),
    _exchange,
    _replacing(tokens_of, (1, 1, 2, 5, 20), lambda pieces, choose: pieces * 2),
    _replacing(tokens_of, (0, 1), _inserted),
    _replacing(list, (0, 1), _other_character),
    _replacing(list, (LONGEST,), lambda pieces, choose: []),
    _move,
    _replacing(tokens_of, (1,), _piled_up),
    _replacing(tokens_of, (1, 3, 8, 2), lambda pieces, choose: pieces * choose.pick((3, 10, 3, 100))),
    lambda text, choose: text[choose.below(len(text) + 1) :],
)
