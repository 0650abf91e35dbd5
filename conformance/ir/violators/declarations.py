"""Implementations that break one rule of declarations, aliases, constants or types without values (2.2, 2.3, 5.2)."""

from dataclasses import replace
from functools import partial

import numpy as np

from tessera_conformance.strength import Around
from tessera_reference.ir.types import ROW_MAJOR, Tensor
from tessera_reference.language import syntax
from tessera_reference.language.expressions import Surroundings
from tessera_reference.numerics.array import Array

from .changes import after, instead, wrapped
from .language_semantics import shown
from .language_syntax import refuses, rewrites


def twice_of_a_kind(usual, self, declaration):
    named = [same_name for same_name in self.declaration.declarations if same_name.name == declaration.name]
    if len({type(same_name) for same_name in named}) < len(named):
        usual(self, declaration)
    else:
        self._declare(declaration)


def declared_before(usual, module, expressions, call, name):
    known = [declaration.name for declaration in module.declaration.declarations]
    calling = next((caller for caller in module.in_progress), name)
    return usual(module, expressions, call, name) and known.index(name) < known.index(calling)


def crashing(usual, module, expressions, call, name):
    if name in module.in_progress:
        raise RuntimeError("the stack is exhausted")
    return usual(module, expressions, call, name)


def in_one_space(usual, self, declaration):
    usual(self, declaration)
    if isinstance(declaration, syntax.Let):
        shared = vars(self.findings).setdefault("constants", {})
        self.constants[declaration.name] = shared.setdefault(declaration.name, declaration)


def without_signs(usual, self, known, span):
    values = known.array.values
    unsigned = Array(known.array.dtype, np.where(values == 0, np.zeros_like(values), values))
    return usual(self, replace(known, array=unsigned), span)


def inner_constant(usual, self, name, dtype):
    if self.scope.parent is not None and name.text not in self.scope.names and name.text in self.around.constants:
        constant = self.around.value_of(name.text)
        return self.given(constant, name.span) if constant is not None else None
    return usual(self, name, dtype)


def of_the_first_module(usual, modules, name):
    """The first function of a name, whatever module stands before it."""
    short = name.rpartition(".")[2]
    return usual([module for module in modules if short in module.functions][:1], short)


VIOLATIONS = [
    rewrites("LANG-02.3-03", "statements", "takes statements in modules", r"(?m)^  (?:barrier|assert|a)\(\w*\);$", ""),
    instead("LANG-02.3-03", "other_kind", "calls a constant a variable", "adapter.language.KINDS",
        Around(lambda kinds: {**kinds, syntax.Let: "type"})),
    wrapped("LANG-02.3-03", "declared_before", "drops calls of funcs that are declared later",
        "language.modules._callable", declared_before),
    wrapped("LANG-02.3-03", "crashing", "crashes on recursion", "language.modules._callable", crashing),
    wrapped("LANG-02.3-04", "twice_of_a_kind", "lets declarations of two kinds share a name",
        "language.modules.ModuleLowering._twice", twice_of_a_kind),
    refuses("LANG-02.3-04", "value_aliases", "has aliases of scalars and tensors only",
        r"\btype \w+ = (?:memref|fragment|mesh|fn)\b"),
    refuses("LANG-02.3-04", "one_step", "has no aliases of aliases",
        r"\btype (\w+) = [^;]*;\s*(?:type \w+ = [^;]*;\s*)*type \w+ = \1;"),
    instead("LANG-02.3-04", "aliases_anywhere", "knows an alias above its declaration",
        "language.modules.ModuleLowering.surroundings", lambda self, place, call, reference=None:
            Surroundings(call, self.constants, self.constant, self.aliases, reference)),
    refuses("LANG-02.3-47", "reserved_words", "reserves the words of types", r"\b(?:fn|memref|fragment|addrspace) = "),
    instead("LANG-02.3-04", "alias_without_layout", "loses the layout of an alias", "language.values._resolve_name",
        after(lambda found: replace(found, layout=ROW_MAJOR) if isinstance(found, Tensor) else found)),
    refuses("LANG-02.2-15", "comma", "has no comma before the layout of a fragment", r"fragment<[^>]*, ?layout"),
    refuses("LANG-02.3-49", "semicolon", "has no semicolon before the layout of a fragment", r"fragment<[^>]*;"),
    instead("LANG-02.2-19", "local_memref", "takes local for an address space of a memref", "ir.text.ADDRESS_SPACES",
        ("shared", "global", "local")),
    refuses("LANG-02.3-48", "bare_memref", "wants an address space of every memref", r"memref<[^>]*>(?! ?\[)"),
    refuses("LANG-02.3-47", "mesh_types", "has meshes as declarations only", r": mesh<"),
    rewrites("LANG-02.3-47", "quoted_types", "takes a string for a type", r': "(\w+)"', r": \1"),
    refuses("LANG-02.3-51", "fn_of_something", "wants a parameter in every fn type", r"\bfn ?\( ?\)"),
    wrapped("LANG-02.3-51", "order_of_the_rest", "ignores the order of the parameters behind the first",
        "language.values.FunctionType",
        lambda usual, given, result: usual((*given[:1], *sorted(given[1:], key=str)), result)),
    wrapped("LANG-02.3-05", "without_signs", "drops the signs of zeros", "language.expressions.Expressions.given",
        without_signs),
    instead("LANG-02.3-05", "untyped", "types the literals of a constant apart", "language.expressions.dtype_of",
        lambda _: None),
    refuses("LANG-02.3-05", "literal_constants", "has literals only as constants",
        r"(?m)^  let \w+: \w+ = [^;]* [-+*/]"),
    wrapped("LANG-02.3-05", "inner_constant", "takes a constant for the name that hides it, in a block",
        "language.expressions.Expressions._name", inner_constant),
    wrapped("LANG-02.3-05", "one_space", "shares constants among modules", "language.modules.ModuleLowering._declare",
        in_one_space),
    wrapped("LANG-02.3-05", "circles", "lets a constant depend on itself", "language.modules.ModuleLowering.constant",
        lambda usual, self, name: None if name in self.computing else usual(self, name)),
    refuses("LANG-02.3-05", "literal_defaults", "has no constants in defaults", r": \w+ = [a-z]\w*[,) ]"),
    instead("LANG-02.3-35", "ones", "takes a tensor expression for ones", "language.expressions.ConstTensor",
        Around(lambda usual: partial(usual, value=1))),
    refuses("LANG-02.3-35", "bare_expressions", "has no layouts in tensor expressions", r"(?:=|return) tensor<[^>]*;"),
    shown("LANG-05.2-01", "other_name", "lowers constant tensors to an operation of another name",
        lambda operation: operation | {"name": operation["name"].replace("const_tensor", "zeros")}),
    instead("LANG-05.2-01", "first_number", "fills a constant tensor with the first of its numbers",
        "graph.constant.ConstTensor.execute", after(lambda filled:
            Array(filled.dtype, np.broadcast_to(filled.values.reshape(-1)[:1].reshape(()), filled.shape).copy()))),
    wrapped("LANG-05-03", "of_the_first_module", "runs the first function of a name, whatever module is named",
        ("adapter.language.find_function", "levels.texts.find_function"), of_the_first_module),
]  # fmt: skip
