"""Implementations that break one rule of declarations, aliases, constants or types without values (2.2, 2.3, 5.2)."""

from dataclasses import replace
from functools import partial

import numpy as np

from tessera_conformance.strength import replaced
from tessera_reference.adapter import language as adapter
from tessera_reference.adapter import make
from tessera_reference.graph import execution
from tessera_reference.graph.constant import ConstTensor
from tessera_reference.ir.types import ROW_MAJOR, Tensor
from tessera_reference.language import expressions, modules, syntax, values
from tessera_reference.language import expressions as constants
from tessera_reference.language.expressions import Expressions, Surroundings
from tessera_reference.language.modules import ModuleLowering
from tessera_reference.levels import texts
from tessera_reference.numerics.array import Array

from .language_semantics import shown
from .language_syntax import refuses, rewrites


def _twice_of_a_kind(self, declaration):
    named = [same_name for same_name in self.declaration.declarations if same_name.name == declaration.name]
    if len({type(same_name) for same_name in named}) < len(named):
        _twice(self, declaration)
    else:
        self._declare(declaration)


def _declared_before(module, expressions, call, name):
    known = [declaration.name for declaration in module.declaration.declarations]
    calling = next((caller for caller in module.in_progress), name)
    return _callable(module, expressions, call, name) and known.index(name) < known.index(calling)


def _crashing(module, expressions, call, name):
    if name in module.in_progress:
        raise RuntimeError("the stack is exhausted")
    return _callable(module, expressions, call, name)


_twice, _callable = ModuleLowering._twice, modules._callable

DECLARATIONS = [
    rewrites("statements", "LANG-02.3-03", "takes statements in modules", r"(?m)^  (?:barrier|assert|a)\(\w*\);$", ""),
    replaced("LANG-02.3-03", "calls a constant a variable", make,
        ("adapter.language.KINDS", {**adapter.KINDS, syntax.Let: "type"}), name="other_kind"),
    replaced("LANG-02.3-03", "drops calls of funcs that are declared later", make,
        ("language.modules._callable", _declared_before), name="declared_before"),
    replaced("LANG-02.3-03", "crashes on recursion", make, ("language.modules._callable", _crashing), name="crashing"),
    replaced("LANG-02.3-04", "lets declarations of two kinds share a name", make,
        ("language.modules.ModuleLowering._twice", _twice_of_a_kind), name="twice_of_a_kind"),
]  # fmt: skip


# Aliases and types


def _all_aliases(self, place, call, reference=None):
    return Surroundings(call, self.constants, self.constant, self.aliases, reference)


def _without_layout(name, aliases):
    found = _resolve_name(name, aliases)
    return replace(found, layout=ROW_MAJOR) if isinstance(found, Tensor) else found


_resolve_name = values._resolve_name

TYPES = [
    refuses("value_aliases", "LANG-02.3-04", "has aliases of scalars and tensors only",
        r"\btype \w+ = (?:memref|fragment|mesh|fn)\b"),
    refuses("one_step", "LANG-02.3-04", "has no aliases of aliases",
        r"\btype (\w+) = [^;]*;\s*(?:type \w+ = [^;]*;\s*)*type \w+ = \1;"),
    replaced("LANG-02.3-04", "knows an alias above its declaration", make,
        ("language.modules.ModuleLowering.surroundings", _all_aliases), name="aliases_anywhere"),
    refuses("reserved_words", "LANG-02.3-47", "reserves the words of types", r"\b(?:fn|memref|fragment|addrspace) = "),
    replaced("LANG-02.3-04", "loses the layout of an alias", make, ("language.values._resolve_name", _without_layout),
        name="alias_without_layout"),
    refuses("comma", "LANG-02.2-15", "has no comma before the layout of a fragment", r"fragment<[^>]*, ?layout"),
    refuses("semicolon", "LANG-02.3-49", "has no semicolon before the layout of a fragment", r"fragment<[^>]*;"),
    replaced("LANG-02.2-19", "takes local for an address space of a memref", make,
        ("ir.text.ADDRESS_SPACES", ("shared", "global", "local")), name="local_memref"),
    refuses("bare_memref", "LANG-02.3-48", "wants an address space of every memref", r"memref<[^>]*>(?! ?\[)"),
    refuses("mesh_types", "LANG-02.3-47", "has meshes as declarations only", r": mesh<"),
    rewrites("quoted_types", "LANG-02.3-47", "takes a string for a type", r': "(\w+)"', r": \1"),
    refuses("fn_of_something", "LANG-02.3-51", "wants a parameter in every fn type", r"\bfn ?\( ?\)"),
    replaced("LANG-02.3-51", "ignores the order of the parameters behind the first", make,
        ("language.values.FunctionType",
        lambda given, result: _function_type((*given[:1], *sorted(given[1:], key=str)), result)),
        name="order_of_the_rest"),
]  # fmt: skip
_function_type = values.FunctionType


# Constants


def _in_one_space(self, declaration):
    _declare(self, declaration)
    if isinstance(declaration, syntax.Let):
        shared = vars(self.findings).setdefault("constants", {})
        self.constants[declaration.name] = shared.setdefault(declaration.name, declaration)


def _first_number(self, env):
    filled = _execute(self, env)
    return Array(filled.dtype, np.broadcast_to(filled.values.reshape(-1)[:1].reshape(()), filled.shape).copy())


_name, _declare, _constant = Expressions._name, ModuleLowering._declare, ModuleLowering.constant
_infer, _execute = ConstTensor.infer, ConstTensor.execute


def constant(name, clause, description, owner, attribute, instead):
    """Return a violation with other constants."""
    return replaced(clause, description, make, (owner, attribute, instead), name=name)


def without_signs(self, known, span):
    values = known.array.values
    unsigned = Array(known.array.dtype, np.where(values == 0, np.zeros_like(values), values))
    return _given(self, replace(known, array=unsigned), span)


def _inner_constant(self, name, dtype):
    if self.scope.parent is not None and name.text not in self.scope.names and name.text in self.around.constants:
        constant = self.around.value_of(name.text)
        return self.given(constant, name.span) if constant is not None else None
    return _named(self, name, dtype)


_given, _named = Expressions.given, Expressions._name
CONSTANTS = [
    constant("without_signs", "LANG-02.3-05", "drops the signs of zeros", Expressions, "given", without_signs),
    constant("untyped", "LANG-02.3-05", "types the literals of a constant apart", constants, "dtype_of",
        lambda _: None),
    refuses("literal_constants", "LANG-02.3-05", "has literals only as constants",
        r"(?m)^  let \w+: \w+ = [^;]* [-+*/]"),
    constant("inner_constant", "LANG-02.3-05", "takes a constant for the name that hides it, in a block", Expressions,
        "_name", _inner_constant),
    constant("one_space", "LANG-02.3-05", "shares constants among modules", ModuleLowering, "_declare", _in_one_space),
    constant("circles", "LANG-02.3-05", "lets a constant depend on itself", ModuleLowering, "constant",
        lambda self, name: None if name in self.computing else _constant(self, name)),
    refuses("literal_defaults", "LANG-02.3-05", "has no constants in defaults", r": \w+ = [a-z]\w*[,) ]"),
    constant("ones", "LANG-02.3-35", "takes a tensor expression for ones", expressions, "ConstTensor",
        partial(ConstTensor, value=1)),
    refuses("bare_expressions", "LANG-02.3-35", "has no layouts in tensor expressions", r"(?:=|return) tensor<[^>]*;"),
    shown("other_name", "LANG-05.2-01", "lowers constant tensors to an operation of another name",
        lambda operation: operation | {"name": operation["name"].replace("const_tensor", "zeros")}),
    constant("first_number", "LANG-05.2-01", "fills a constant tensor with the first of its numbers", ConstTensor,
        "execute", _first_number),
]  # fmt: skip


def _of_the_first_module(modules, name):
    """The first function of a name, whatever module stands before it."""
    short = name.rpartition(".")[2]
    return _find_function([module for module in modules if short in module.functions][:1], short)


_find_function = execution.find_function

of_the_first_module = replaced(
    "LANG-05-03",
    "runs the first function of a name, whatever module is named",
    make,
    *((owner, "find_function", _of_the_first_module) for owner in (adapter, texts)),
)
