"""Wrong programs: legal ones with a statement, declaration, token or character added, removed or changed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from tessera_conformance.dsl import DTYPES, RESERVED
from tessera_conformance.fuzz import expressions
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.rendering import Style, plain, render
from tessera_conformance.fuzz.statements import GeneratedProgram
from tessera_conformance.fuzz.tree import Chooser

# The texts of `texts.toml`: wrong statements and declarations, and fragments that mutations insert.


_TABLES = tomllib.loads(Path(__file__).with_name("texts.toml").read_text(encoding="utf-8"))


class WrongText(NamedTuple):
    """A mistake as tokens separated by blanks, with the categories that may refuse it."""

    what: str
    text: str
    categories: tuple[str, ...]

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens."""
        return tuple(self.text.split(" "))


def wrong_texts(table: str) -> tuple[WrongText, ...]:
    """Return the entries of `statements` or `declarations`."""
    return tuple(WrongText(what, entry["text"], tuple(entry["categories"])) for what, entry in _TABLES[table].items())


_FRAGMENTS = ("numbers", "types", "statements")
FRAGMENTS: Mapping[str, Sequence[str]] = {fragment: _TABLES["fragments"][fragment] for fragment in _FRAGMENTS}
"""Texts that a mutation inserts between tokens."""

BRACKETS: Sequence[tuple[str, str]] = [(before, after) for before, after in _TABLES["fragments"]["brackets"]]
"""Pairs of texts that a mutation inserts before and after a token."""

# Places between statements: the names visible there, and the program with statements inserted.


@dataclass(frozen=True)
class Slot:
    """A place before a statement or at the end of a block: the names with a value there, and the enclosing function."""

    visible: Mapping[str, t.Type]
    function: t.Function


def slots_of(program: t.Program) -> list[Slot]:
    """Return every reachable place for a statement, in source order."""
    walk = _Walk(None, ())
    walk.program(program)
    return walk.slots


def with_statements(program: t.Program, number: int, statements: Sequence[t.Stmt]) -> t.Program:
    """Return the program with statements inserted into one of its slots."""
    return _Walk(number, tuple(statements)).program(program)


class _Walk:
    """Visits a program once, counts its slots, and inserts statements into one of them."""

    def __init__(self, target: int | None, statements: tuple[t.Stmt, ...]) -> None:
        self.slots: list[Slot] = []
        self._target = target
        self._statements = statements

    def program(self, program: t.Program) -> t.Program:
        return t.Program(tuple(self._module(module) for module in program.modules))

    def _module(self, module: t.Module) -> t.Module:
        constants = {
            declaration.name: declaration.type for declaration in module.declarations if isinstance(declaration, t.Let)
        }
        declarations = [
            self._function(declaration, constants) if isinstance(declaration, t.Function) else declaration
            for declaration in module.declarations
        ]
        return t.Module(module.name, tuple(declarations))

    def _function(self, function: t.Function, constants: Mapping[str, t.Type]) -> t.Function:
        visible = {**constants, **{parameter.name: parameter.type for parameter in function.parameters}}
        body = self._block(function.body, visible, function)
        return replace(function, body=body)

    def _block(self, block: t.Block, outer: Mapping[str, t.Type], function: t.Function) -> t.Block:
        visible = dict(outer)
        pending: dict[str, t.Type] = {}
        statements: list[t.Stmt] = []
        for statement in block:
            statements += self._slot(visible, function)
            statements.append(self._inside(statement, visible, function))
            if isinstance(statement, t.Let) and statement.value is None:
                pending[statement.name] = statement.type
                visible.pop(statement.name, None)
            elif isinstance(statement, t.Let):
                visible[statement.name] = statement.type
            visible.update(pending if isinstance(statement, t.Assign | t.If) else {})
        if not block or not ends(block[-1]):
            statements += self._slot(visible, function)
        return tuple(statements)

    def _slot(self, visible: Mapping[str, t.Type], function: t.Function) -> tuple[t.Stmt, ...]:
        self.slots.append(Slot(dict(visible), function))
        return self._statements if len(self.slots) - 1 == self._target else ()

    def _inside(self, statement: t.Stmt, visible: Mapping[str, t.Type], function: t.Function) -> t.Stmt:
        match statement:
            case t.If(condition, then, otherwise):
                first = self._block(then, visible, function)
                second = None if otherwise is None else self._block(otherwise, visible, function)
                return t.If(condition, first, second)
            case t.For():
                inner = {**visible, statement.name: t.Type("int32")}
                body = self._block(statement.body, inner, function)
                return replace(statement, body=body)
            case t.While(condition, body):
                return t.While(condition, self._block(body, visible, function))
        return statement


def ends(statement: t.Stmt) -> bool:
    """True if no statement after this one is reached."""
    if isinstance(statement, t.If):
        return statement.otherwise is not None and all(
            bool(block) and ends(block[-1]) for block in (statement.then, statement.otherwise)
        )
    return isinstance(statement, t.Return)


# Statements that are wrong in every place, and statements that are wrong about a name in scope.


TYPES, SHAPES, EITHER = ("types",), ("shapes",), ("types", "shapes")

MISTAKES = wrong_texts("statements")


class NamedMistake(NamedTuple):
    """A wrong statement about a name in scope: the mistake, the candidate names, the statement, the categories."""

    what: str
    names: Callable[[Slot], Sequence[str]]
    make: Callable[[Chooser, Slot, str], t.Stmt]
    categories: tuple[str, ...]


def _visible(slot: Slot) -> list[str]:
    return list(slot.visible)


def _static_tensors(slot: Slot) -> list[str]:
    return [name for name, type_ in slot.visible.items() if type_.shape and type_.is_static]


def _no_conditions(slot: Slot) -> list[str]:
    return [name for name, type_ in slot.visible.items() if type_ != t.Type("bool")]


def _other_numbers(slot: Slot, name: str) -> list[str]:
    """Return the names of numeric variables of another dtype."""
    numbers = {other: type_.dtype for other, type_ in slot.visible.items() if type_.dtype in expressions.NUMBERS}
    return [other for other, dtype in numbers.items() if name in numbers and dtype != numbers[name]]


def _in_two_dtypes(slot: Slot) -> list[str]:
    return [name for name in slot.visible if _other_numbers(slot, name)]


def _with_result(slot: Slot) -> list[str]:
    return [slot.function.name] if slot.function.result is not None else []


def _other_dtype(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    """Declare its value with another dtype."""
    type_ = slot.visible[name]
    other = chooser.pick([number for number in (*expressions.NUMBERS, "bool") if number != type_.dtype])
    return t.Let("bad", t.Type(other, type_.shape, type_.layout), t.Var(name))


def _other_extent(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    """Declare its value with a first dimension one larger."""
    type_ = slot.visible[name]
    first, *rest = type_.shape
    assert isinstance(first, int)
    return t.Let("bad", t.Type(type_.dtype, (first + 1, *rest), type_.layout), t.Var(name))


def _other_rank(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    """Declare its value as a tensor instead of a scalar, or the other way round."""
    type_ = slot.visible[name]
    return t.Let("bad", t.Type(type_.dtype, () if type_.shape else (1,)), t.Var(name))


def _no_condition(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    """Use a value that is no bool as a condition."""
    statements: tuple[t.Stmt, ...] = (t.If(t.Var(name), ()), t.While(t.Var(name), ()), t.Assert(t.Var(name)))
    return chooser.pick(statements)


def _two_dtypes(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    """Use two names of different dtypes in one operator."""
    other = t.Var(chooser.pick(_other_numbers(slot, name)))
    return t.Let("bad", slot.visible[name], t.Binary(chooser.pick("+-*/"), t.Var(name), other))


def _assigned(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    return t.Assign(name, (), t.Literal('"text"'))


def _too_many_indices(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    """Use one index more than there are dimensions."""
    type_ = slot.visible[name]
    items = (t.Literal("0"),) * (len(type_.shape) + 1)
    return t.Let("bad", t.Type(type_.dtype), t.Index(t.Var(name), items))


def _called(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    return t.Call(name, (), own=True)


def _empty_return(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    return t.If(t.Literal("true"), (t.Return(()),))


MISTAKES_WITH_NAMES = (
    NamedMistake("another dtype than the name's", _visible, _other_dtype, TYPES),
    NamedMistake("another extent than the name's", _static_tensors, _other_extent, SHAPES),
    NamedMistake("another rank than the name's", _visible, _other_rank, EITHER),
    NamedMistake("a condition that is none", _no_conditions, _no_condition, EITHER),
    NamedMistake("two dtypes in one operator", _in_two_dtypes, _two_dtypes, EITHER),
    NamedMistake("a string assigned", _visible, _assigned, TYPES),
    NamedMistake("an index more than dimensions", _visible, _too_many_indices, EITHER),
    NamedMistake("a value called", _visible, _called, TYPES),
    NamedMistake("a return without a value", _with_result, _empty_return, TYPES),
)

# Programs known to be illegal: a legal one with one statement, declaration, token or word added or removed.
#
# Each lists the categories that may refuse it (AMB-LANG-112); where two fit, either is accepted.


Broken = tuple[str, str, tuple[str, ...]]
"""The mutation, the text, and the categories."""

SYNTAX, KINDS_OF_TYPES = ("syntax",), ("types",)
NEEDED = frozenset("{}();")
"""Tokens that every program needs."""
DECLARING = frozenset({"module", "func", "kernel", "type", "let"})
"""Words before a declared name."""

DECLARATIONS = wrong_texts("declarations")
"""Declarations that no module may hold."""


def break_program(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """Return a legal program with one mistake in it."""
    return chooser.pick(WAYS)(program, chooser)


def _statement(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """Insert a wrong statement in a reachable place."""
    slots = slots_of(program.tree)
    number = chooser.below(len(slots))
    slot = slots[number]
    named = [mistake for mistake in MISTAKES_WITH_NAMES if mistake.names(slot)]
    if named and chooser.below(2):
        mistake = chooser.pick(named)
        statement = mistake.make(chooser, slot, chooser.pick(mistake.names(slot)))
        what, categories = mistake.what, mistake.categories
    else:
        wrong = chooser.pick(MISTAKES)
        statement, what, categories = t.Raw(wrong.tokens), wrong.what, wrong.categories
    return what, _text(with_statements(program.tree, number, [statement])), categories


def _declaration(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """Append a wrong declaration to a module."""
    wrong = chooser.pick(DECLARATIONS)
    *others, last = program.tree.modules
    module = t.Module(last.name, (*last.declarations, t.Raw(wrong.tokens)))
    return wrong.what, _text(t.Program((*others, module))), wrong.categories


def _token(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """Remove one token that every program needs."""
    tokens = list(render(program.tree, Style()).tokens)
    place = chooser.pick([place for place, token in enumerate(tokens) if token in NEEDED])
    dropped = tokens.pop(place)
    return f"{dropped} dropped", " ".join(tokens) + "\n", SYNTAX


def _word(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """Use a reserved word as a declared name."""
    tokens = list(render(program.tree, Style()).tokens)
    place = chooser.pick([place for place, token in enumerate(tokens) if place and tokens[place - 1] in DECLARING])
    tokens[place] = chooser.pick(RESERVED)
    return f"reserved word {tokens[place]}", " ".join(tokens) + "\n", SYNTAX


def _twice(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """Repeat a declaration of a module (AMB-LANG-86)."""
    module, *others = program.tree.modules
    again = chooser.pick(module.declarations)
    tree = t.Program((t.Module(module.name, (*module.declarations, again)), *others))
    return "declared twice", _text(tree), (*KINDS_OF_TYPES, "distributed")


def _no_return(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """Remove the return from the end of a func with an annotated result (AMB-LANG-93)."""
    return _on_function(program, chooser, "no return at the end", lambda function: function.body[:-1])


def _declared_empty_return(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """Return no value from a func with an annotated result."""
    return _on_function(program, chooser, "an empty return", lambda function: (*function.body[:-1], t.Return(())))


def _on_function(
    program: GeneratedProgram, chooser: Chooser, what: str, change: Callable[[t.Function], t.Block]
) -> Broken:
    """Replace the body of a func with an annotated result; without such a func, insert a wrong statement."""
    module, *others = program.tree.modules
    places = [
        place
        for place, declaration in enumerate(module.declarations)
        if isinstance(declaration, t.Function)
        and declaration.result is not None
        and isinstance(declaration.body[-1], t.Return)
    ]
    if not places:
        return _statement(program, chooser)
    place = chooser.pick(places)
    declarations = list(module.declarations)
    function = declarations[place]
    assert isinstance(function, t.Function)
    changed = replace(function, body=change(function))
    assert not (changed.body and ends(changed.body[-1])) or what == "an empty return"
    declarations[place] = changed
    return what, _text(t.Program((t.Module(module.name, tuple(declarations)), *others))), KINDS_OF_TYPES


def _text(tree: t.Program) -> str:
    return plain(render(tree, Style()))


WAYS: tuple[Callable[[GeneratedProgram, Chooser], Broken], ...] = (
    *(_statement,) * 6,
    *(_declaration,) * 2,
    _token,
    _word,
    _twice,
    _no_return,
    _declared_empty_return,
)

# Mutated texts: tokens and characters removed, repeated, exchanged, inserted, cut off and nested deeply.
#
# A front end must answer such a text, with a result or with diagnostics; nothing else is known about it.


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
    text = source
    if chooser.chance(2):
        return _of_its_sort(text, chooser)[:LONGEST]
    for _ in range(chooser.pick((1, 1, 2, 1, 3, 4))):
        text = chooser.pick(MUTATIONS)(text, chooser)[:LONGEST]
    return text


def tokens_of(text: str) -> list[str]:
    """Return rough tokens of a text, which joined give it back."""
    return _TOKEN.findall(text)


def _drop(text: str, choose: Chooser) -> str:
    tokens = tokens_of(text)
    start, count = choose.below(len(tokens) + 1), choose.pick((1, 1, 1, 2, 5, 20))
    return "".join(tokens[:start] + tokens[start + count :])


def _double(text: str, choose: Chooser) -> str:
    tokens = tokens_of(text)
    start, count = choose.below(len(tokens) + 1), choose.pick((1, 1, 2, 5, 20))
    return "".join(tokens[: start + count] + tokens[start:])


def _exchange(text: str, choose: Chooser) -> str:
    tokens = tokens_of(text)
    if len(tokens) < 2:
        return text
    left, right = choose.below(len(tokens)), choose.below(len(tokens))
    tokens[left], tokens[right] = tokens[right], tokens[left]
    return "".join(tokens)


def _of_its_sort(text: str, choose: Chooser) -> str:
    """Replace a token by another of its sort (name, number, operator): the result is often well formed."""
    tokens = tokens_of(text)
    places = [place for place, token in enumerate(tokens) if _sort(token) is not None]
    if not places:
        return text
    place = choose.pick(places)
    sort = _sort(tokens[place])
    others = [token for token in tokens if _sort(token) == sort] + list(EXTRAS[str(sort)])
    tokens[place] = choose.pick(others)
    return "".join(tokens)


def _sort(token: str) -> str | None:
    if token[0].isalpha() or token[0] == "_":
        return "name"
    if token[0].isdigit():
        return "shape" if "x" in token else "number"
    return "operator" if token in "+-*/@<>" else None


def _put_in(text: str, choose: Chooser) -> str:
    tokens = tokens_of(text)
    start, count = choose.below(len(tokens) + 1), choose.below(2)
    options = choose.pick((SIGNS, WORDS, *FRAGMENTS.values(), STRINGS, CHARACTERS))
    return "".join([*tokens[:start], choose.pick(options), *tokens[start + count :]])


def _change_character(text: str, choose: Chooser) -> str:
    start, count = choose.below(len(text) + 1), choose.below(2)
    character = choose.pick(CHARACTERS) if choose.chance(3) else chr(choose.between(32, 126))
    return text[:start] + character + text[start + count :]


def _cut(text: str, choose: Chooser) -> str:
    return text[: choose.below(len(text) + 1)]


def _cut_front(text: str, choose: Chooser) -> str:
    return text[choose.below(len(text) + 1) :]


def _move(text: str, choose: Chooser) -> str:
    tokens = tokens_of(text)
    first, second = sorted((choose.below(len(tokens) + 1), choose.below(len(tokens) + 1)))
    place = choose.below(len(tokens) - (second - first) + 1)
    rest = tokens[:first] + tokens[second:]
    return "".join(rest[:place] + tokens[first:second] + rest[place:])


def _pile_up(text: str, choose: Chooser) -> str:
    """Nest brackets, signs or words around or before a token, a few times or a great many."""
    tokens = tokens_of(text)
    place = choose.below(len(tokens) + 1)
    before, after = choose.pick(BRACKETS)
    times = choose.pick((2, 5, 30, 2, 300, 2))
    middle = "".join(tokens[place : place + 1])
    return "".join(tokens[:place]) + before * times + middle + after * times + "".join(tokens[place + 1 :])


def _repeat(text: str, choose: Chooser) -> str:
    tokens = tokens_of(text)
    place, length = choose.below(len(tokens) + 1), choose.pick((1, 3, 8, 2))
    part = tokens[place : place + length]
    return "".join(tokens[:place] + part * choose.pick((3, 10, 3, 100)) + tokens[place + length :])


MUTATIONS: tuple[Callable[[str, Chooser], str], ...] = (
    _of_its_sort,
    _drop,
    _put_in,
    _exchange,
    _double,
    _put_in,
    _change_character,
    _cut,
    _move,
    _pile_up,
    _repeat,
    _cut_front,
)
