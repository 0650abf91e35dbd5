"""Statements that are wrong wherever they stand, and statements that are wrong about a name in scope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tessera_conformance.fuzz import dtypes
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.choices import Chooser
from tessera_conformance.fuzz.slots import Slot
from tessera_conformance.fuzz.texts import wrong_texts

TYPES, SHAPES, EITHER = ("types",), ("shapes",), ("types", "shapes")

MISTAKES = wrong_texts("statements")


class NamedMistake(NamedTuple):
    """A wrong statement about a name in scope: what is wrong, which names will do, the statement, the categories."""

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
    """The names of numbers of another dtype."""
    numbers = {each: type_.dtype for each, type_ in slot.visible.items() if type_.dtype in dtypes.NUMBERS}
    return [each for each, dtype in numbers.items() if name in numbers and dtype != numbers[name]]


def _in_two_dtypes(slot: Slot) -> list[str]:
    return [name for name in slot.visible if _other_numbers(slot, name)]


def _with_result(slot: Slot) -> list[str]:
    return [slot.function.name] if slot.function.result is not None else []


def _other_dtype(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    """Its value where another dtype is annotated."""
    type_ = slot.visible[name]
    other = chooser.pick([each for each in (*dtypes.NUMBERS, "bool") if each != type_.dtype])
    return t.Let("bad", t.Type(other, type_.shape, type_.layout), t.Var(name))


def _other_extent(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    """Its value where its first dimension is annotated one larger."""
    type_ = slot.visible[name]
    first, *rest = type_.shape
    assert isinstance(first, int)
    return t.Let("bad", t.Type(type_.dtype, (first + 1, *rest), type_.layout), t.Var(name))


def _other_rank(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    """A tensor where a scalar is annotated, or the other way round."""
    type_ = slot.visible[name]
    return t.Let("bad", t.Type(type_.dtype, () if type_.shape else (1,)), t.Var(name))


def _no_condition(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    """No truth value as a condition."""
    statements: tuple[t.Stmt, ...] = (t.If(t.Var(name), ()), t.While(t.Var(name), ()), t.Assert(t.Var(name)))
    return chooser.pick(statements)


def _two_dtypes(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    """Two names of different dtypes in one operator."""
    other = t.Var(chooser.pick(_other_numbers(slot, name)))
    return t.Let("bad", slot.visible[name], t.Binary(chooser.pick("+-*/"), t.Var(name), other))


def _assigned(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    return t.Assign(name, (), t.Literal('"text"'))


def _too_many_indices(chooser: Chooser, slot: Slot, name: str) -> t.Stmt:
    """One index more than there are dimensions."""
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
