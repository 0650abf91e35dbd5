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

Broken = tuple[str, str, tuple[str, ...]]
"""What was done, the text, and the categories."""

SYNTAX, TYPES = ("syntax",), ("types",)
NEEDED = frozenset("{}();")
"""Tokens that no program can do without."""
DECLARING = frozenset({"module", "func", "kernel", "type", "let"})
"""Words before a name that is declared."""

DECLARATIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("an alias of itself", "type bad = bad ;", TYPES),
    ("an alias of an unknown name", "type bad = nowhere ;", TYPES),
    (
        "a mesh with an extent too few",
        "mesh bad = mesh < axes = [ a , b ] , shape = [ 2 ] > ;",
        ("distributed", "shapes"),
    ),
    (
        "a mesh with an axis twice",
        "mesh bad = mesh < axes = [ a , a ] , shape = [ 2 , 2 ] > ;",
        ("distributed", "types"),
    ),
    ("a mesh without ranks", "mesh bad = mesh < axes = [ a ] , shape = [ 0 ] > ;", ("distributed",)),
    ("a parameter twice", "func bad ( a : int32 , a : int32 ) { }", TYPES),
    ("an unknown type", "func bad ( a : fp31 ) { }", TYPES),
    ("a result that is missing", "func bad ( ) -> int32 { }", TYPES),
    ("a kernel with a result", "kernel bad ( ) -> int32 { return 1 ; }", TYPES),
    ("a kernel that returns", "kernel bad ( a : int32 ) { return a ; }", TYPES),
    ("a default on a kernel", "kernel bad ( a : int32 = 1 ) { }", (*TYPES, *SYNTAX)),
    ("a default before none", "func bad ( a : int32 = 1 , b : int32 ) { }", (*TYPES, *SYNTAX)),
    ("a constant of another type", "let bad : int32 = true ;", TYPES),
    ("a constant without a value", "let bad : int32 ;", SYNTAX),
    ("a function without a block", "func bad ( ) ;", SYNTAX),
    ("a function without parentheses", "func bad { }", SYNTAX),
    ("a statement in a module", "return ;", SYNTAX),
    ("a module in a module", "module bad { }", SYNTAX),
    (
        "an unknown address space",
        "type bad = memref < 4xfp32 > [ addrspace = private ] ;",
        ("tile", "types", "layouts"),
    ),
    ("two results", "func bad ( ) -> int32 , int32 { return 1 , 2 ; }", SYNTAX),
    ("a comma too many in attributes", 'func bad ( ) @ { numerics_profile = "strict" , } { }', SYNTAX),
    ("an unknown profile", 'func bad ( ) @ { numerics_profile = "loose" } { }', ("numerics",)),
)
"""Declarations that no module may hold."""


def break_program(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """A legal program with one mistake in it."""
    return chooser.pick(WAYS)(program, chooser)


def _statement(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """A wrong statement in a place that is reached."""
    slots = slots_of(program.tree)
    number = chooser.below(len(slots))
    slot = slots[number]
    named = [(what, make) for what, make in MISTAKES_WITH_NAMES if make(chooser, slot, dry=True) is not None]
    if named and chooser.below(2):
        what, make = chooser.pick(named)
        found = make(chooser, slot, dry=False)
        assert found is not None
        statements, categories = found
    else:
        what, text, categories = chooser.pick(MISTAKES)
        statements = (t.Raw(tuple(text.split(" "))),)
    tree = with_statements(program.tree, number, statements)
    return what, _text(tree), categories


def _declaration(program: GeneratedProgram, chooser: Chooser) -> Broken:
    """A wrong declaration at the end of a module."""
    what, text, categories = chooser.pick(DECLARATIONS)
    *others, last = program.tree.modules
    module = t.Module(last.name, (*last.declarations, t.Raw(tuple(text.split(" ")))))
    return what, _text(t.Program((*others, module))), categories


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
