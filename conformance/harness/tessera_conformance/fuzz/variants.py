"""Other texts of the same meaning: no answer may depend on names, spaces, parentheses, order or spelling."""

from __future__ import annotations

from collections.abc import Mapping

from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.choices import Chooser
from tessera_conformance.fuzz.generator import GeneratedProgram
from tessera_conformance.fuzz.names import renaming
from tessera_conformance.fuzz.rendering import Style, names_of, render
from tessera_conformance.fuzz.spacing import odd, plain
from tessera_conformance.tensors import Tensor

VARIANTS = (
    "other names",
    "other spaces and comments",
    "more parentheses",
    "other order",
    "other spelling",
    "all of it",
)


def vary(program: GeneratedProgram, chooser: Chooser) -> tuple[str, str, str, Mapping[str, Tensor]]:
    """What was changed, the other text, and the function and inputs by their names in it."""
    what = chooser.pick(VARIANTS)
    everything = what == "all of it"
    tree = program.tree
    if everything or what == "other order":
        tree = reordered(tree, chooser)
    names: dict[str, str] = {}
    if everything or what == "other names":
        names = renaming(names_of(tree), chooser)
    style = Style(
        names,
        chooser,
        parentheses=everything or what == "more parentheses",
        respelled=everything or what == "other spelling",
        keywords=everything or what == "other spelling",
    )
    text = render(tree, style)
    source = odd(text, chooser) if everything or what == "other spaces and comments" else plain(text)
    function = ".".join(names.get(part, part) for part in program.function.split("."))
    return what, source, function, {names.get(name, name): value for name, value in program.inputs.items()}


def reordered(program: t.Program, chooser: Chooser) -> t.Program:
    """The same program with its functions in another order; aliases, constants and meshes stay before them."""
    return t.Program(tuple(t.Module(each.name, _reordered(each.declarations, chooser)) for each in program.modules))


def _reordered(declarations: tuple[t.Decl, ...], chooser: Chooser) -> tuple[t.Decl, ...]:
    functions = [each for each in declarations if isinstance(each, t.Function)]
    before = [each for each in declarations if not isinstance(each, t.Function)]
    others = functions[1:] + functions[:1]
    return (*before, *chooser.shuffled(others))
