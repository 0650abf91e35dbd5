"""Programs known to be illegal: a legal one with one statement, declaration, token or word too many or too few.

Each says by which categories it may be refused (AMB-LANG-112); where two fit, either does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tessera_conformance.dsl import RESERVED
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.choices import Chooser
from tessera_conformance.fuzz.generator import GeneratedProgram
from tessera_conformance.fuzz.mistakes import MISTAKES, MISTAKES_WITH_NAMES
from tessera_conformance.fuzz.rendering import Style, render
from tessera_conformance.fuzz.slots import ends, slots_of, with_statements
from tessera_conformance.fuzz.spacing import plain
from tessera_conformance.fuzz.texts import wrong_texts

Broken = tuple[str, str, tuple[str, ...]]
"""What was done, the text, and the categories."""

SYNTAX, TYPES = ("syntax",), ("types",)
NEEDED = frozenset("{}();")
"""Tokens that no program can do without."""
DECLARING = frozenset({"module", "func", "kernel", "type", "let"})
"""Words before a name that is declared."""

DECLARATIONS = wrong_texts("declarations")
"""Declarations that no module may hold."""


def break_program(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """A legal program with one mistake in it."""
    return chooser.pick(WAYS)(program, chooser)


def _statement(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """A wrong statement in a place that is reached."""
    slots = slots_of(program.tree)
    number = chooser.below(len(slots))
    slot = slots[number]
    named = [each for each in MISTAKES_WITH_NAMES if each.names(slot)]
    if named and chooser.below(2):
        mistake = chooser.pick(named)
        statement = mistake.make(chooser, slot, chooser.pick(mistake.names(slot)))
        what, categories = mistake.what, mistake.categories
    else:
        wrong = chooser.pick(MISTAKES)
        statement, what, categories = t.Raw(wrong.tokens), wrong.what, wrong.categories
    return what, _text(with_statements(program.tree, number, [statement])), categories


def _declaration(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """A wrong declaration at the end of a module."""
    wrong = chooser.pick(DECLARATIONS)
    *others, last = program.tree.modules
    module = t.Module(last.name, (*last.declarations, t.Raw(wrong.tokens)))
    return wrong.what, _text(t.Program((*others, module))), wrong.categories


def _token(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """One token dropped that no program can do without."""
    tokens = list(render(program.tree, Style()).tokens)
    place = chooser.pick([place for place, token in enumerate(tokens) if token in NEEDED])
    dropped = tokens.pop(place)
    return f"{dropped} dropped", " ".join(tokens) + "\n", SYNTAX


def _word(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """A reserved word where a name is declared."""
    tokens = list(render(program.tree, Style()).tokens)
    place = chooser.pick([place for place, token in enumerate(tokens) if place and tokens[place - 1] in DECLARING])
    tokens[place] = chooser.pick(RESERVED)
    return f"reserved word {tokens[place]}", " ".join(tokens) + "\n", SYNTAX


def _twice(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """A declaration that stands in its module twice (AMB-LANG-86)."""
    module, *others = program.tree.modules
    again = chooser.pick(module.declarations)
    tree = t.Program((t.Module(module.name, (*module.declarations, again)), *others))
    return "declared twice", _text(tree), (*TYPES, "distributed")


def _no_return(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """A func whose annotated result is not returned at its end (AMB-LANG-93)."""
    return _on_function(program, chooser, "no return at the end", lambda function: function.body[:-1])


def _empty_return(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """A func that returns no value where its annotation asks for one."""
    return _on_function(program, chooser, "an empty return", lambda function: (*function.body[:-1], t.Return(())))


def _on_function(
    program: GeneratedProgram, chooser: Chooser, what: str, change: Callable[[t.Function], t.Block]
) -> Broken:
    """Another body for a func with an annotated result; a wrong statement where there is none."""
    module, *others = program.tree.modules
    places = [
        place
        for place, each in enumerate(module.declarations)
        if isinstance(each, t.Function) and each.result is not None and isinstance(each.body[-1], t.Return)
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
    return what, _text(t.Program((t.Module(module.name, tuple(declarations)), *others))), TYPES


def _text(tree: t.Program) -> str:
    return plain(render(tree, Style()))


WAYS: tuple[Callable[[GeneratedProgram, Chooser], Broken], ...] = (
    *(_statement,) * 6,
    *(_declaration,) * 2,
    _token,
    _word,
    _twice,
    _no_return,
    _empty_return,
)
