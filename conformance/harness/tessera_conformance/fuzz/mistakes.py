"""Statements that are wrong wherever they stand, and statements that are wrong about a name in scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tessera_conformance.fuzz import dtypes
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.choices import Chooser
from tessera_conformance.fuzz.slots import Slot

SYNTAX, TYPES, SHAPES = ("syntax",), ("types",), ("shapes",)
EITHER = ("types", "shapes")

MISTAKES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("a float for an integer", "let bad : int32 = 1.5 ;", TYPES),
    ("out of range of int8", "let bad : int8 = 300 ;", TYPES),
    ("out of range of int32", "let bad : int32 = 2147483648 ;", TYPES),
    ("out of range of fp16", "let bad : fp16 = 65520 ;", TYPES),
    ("out of range of fp8_e4m3", "let bad : fp8_e4m3 = 480.0 ;", TYPES),
    ("a string for a number", 'let bad : fp32 = "1" ;', TYPES),
    ("a truth value for a number", "let bad : fp32 = true ;", TYPES),
    ("a number for a truth value", "let bad : bool = 1 ;", TYPES),
    ("an unknown name", "let bad : fp32 = nowhere ;", TYPES),
    ("an unknown name assigned", "nowhere = 1 ;", TYPES),
    ("an unknown operation", "op.nosuch ( 1 ) ;", TYPES),
    ("an unknown function", "nosuch ( ) ;", TYPES),
    ("an unknown dtype", "let bad : fp31 ;", TYPES),
    ("an unknown dtype of a tensor", "let bad : tensor < 2x2xfp31 > ;", TYPES),
    ("an unknown layout", "let bad : tensor < 2x2xfp32 ; layout = diagonal > ;", ("layouts",)),
    ("no operand", "op.softmax ( ) ;", TYPES),
    ("an operand too few", "op.matmul ( tensor < 2x2xfp32 > ) ;", TYPES),
    ("an operand too many", "op.matmul ( tensor < 2x2xfp32 > , tensor < 2x2xfp32 > , 1 , 2 ) ;", TYPES),
    ("inner dimensions", "op.matmul ( tensor < 2x3xfp32 > , tensor < 2x3xfp32 > ) ;", SHAPES),
    ("batch dimensions", "op.matmul ( tensor < 2x2x2xfp32 > , tensor < 3x2x2xfp32 > ) ;", SHAPES),
    ("an axis out of range", "op.softmax ( tensor < 2x2xfp32 > , axis = 2 ) ;", SHAPES),
    ("softmax of integers", "op.softmax ( tensor < 2xint32 > ) ;", TYPES),
    ("softmax of a scalar", "op.softmax ( 1.5 ) ;", EITHER),
    ("an attribute of two values", "op.softmax ( tensor < 2x2xfp32 > , axis = 0 ) @ { axis = 1 } ;", TYPES),
    ("an attribute that nothing reads", "op.softmax ( tensor < 2xfp32 > , nonsense = 1 ) ;", TYPES),
    ("shapes that do not broadcast", "let bad : tensor < 2xfp32 > = tensor < 2xfp32 > + tensor < 3xfp32 > ;", SHAPES),
    ("another shape", "let bad : tensor < 2xfp32 > = tensor < 3xfp32 > ;", SHAPES),
    ("another layout", "let bad : tensor < 2x2xfp32 > = tensor < 2x2xfp32 ; layout = col_major > ;", ("layouts",)),
    (
        "a directive as a value",
        "let bad : tensor < 2x2xfp32 > = schedule.tile ( tensor < 2x2xfp32 > , m = 1 ) ;",
        TYPES,
    ),
    ("a collective without an operation", "dist.all_reduce ( tensor < 2xfp32 > ) ;", ("distributed", "types")),
    ("a number as a condition", "if ( 1 ) { }", TYPES),
    ("a tensor as a condition", "while ( tensor < 2xbool > ) { }", EITHER),
    ("a number asserted", "assert ( 1 ) ;", TYPES),
    ("two names in a loop", "for ( bad , worse in 0 : 2 ) { }", (*TYPES, *SHAPES, *SYNTAX)),
    ("a range of floats", "for ( bad in 0 : 1.5 ) { }", TYPES),
    ("declared twice", "let bad : int32 = 1 ; let bad : int32 = 2 ;", TYPES),
    ("used before it has a value", "let bad : int32 ; let worse : int32 = bad ;", TYPES),
    ("gone with its block", "if ( true ) { let bad : int32 = 1 ; } let worse : int32 = bad ;", TYPES),
    ("a value on one branch only", "let bad : int32 ; if ( true ) { bad = 1 ; } let worse : int32 = bad ;", TYPES),
    ("chained comparisons", "let bad : bool = 1 < 2 < 3 ;", SYNTAX),
    ("a hexadecimal number", "let bad : int32 = 0x10 ;", SYNTAX),
    ("no digit before the point", "let bad : fp32 = .5 ;", SYNTAX),
    ("an unknown operator", "let bad : bool = true && true ;", SYNTAX),
    ("an unknown escape", 'barrier ( "\\q" ) ;', SYNTAX),
    ("else without a block", "if ( true ) { } else if ( true ) { }", SYNTAX),
    ("no parentheses", "if true { }", SYNTAX),
    ("no type", "let bad = 1 ;", SYNTAX),
    ("no value", "let bad : int32 = ;", SYNTAX),
    ("an expression as a statement", "1 + 2 ;", SYNTAX),
    ("a word alone", "break ;", SYNTAX),
    ("a comma too many", "op.softmax ( tensor < 2xfp32 > , ) ;", SYNTAX),
    ("a reserved word as a name", "let shared : int32 = 1 ;", SYNTAX),
    ("an increment", "let bad : int32 = 1 ; bad += 1 ;", SYNTAX),
    ("a label that is no string", "barrier ( 1 ) ;", SYNTAX),
    ("a function in a function", "func bad ( ) { }", SYNTAX),
    ("an empty index", "let bad : tensor < 2xfp32 > = tensor < 2xfp32 > [ ] ;", SYNTAX),
    ("an index too many", "let bad : fp32 = tensor < 2xfp32 > [ 0 , 0 ] ;", EITHER),
    ("an index that is a float", "let bad : fp32 = tensor < 2xfp32 > [ 0.5 ] ;", EITHER),
    ("a slice for an element", "let bad : fp32 = tensor < 2xfp32 > [ 0 : 1 ] ;", EITHER),
    (
        "another shape in a slice",
        "let bad : tensor < 4xfp32 > ; bad = tensor < 4xfp32 > ; bad [ 0 : 2 ] = tensor < 3xfp32 > ;",
        SHAPES,
    ),
)
"""What is wrong, its tokens between blanks, and the categories that say so."""

Found = tuple[tuple[t.Stmt, ...], tuple[str, ...]]


class Mistake(Protocol):
    """Wrong statements about some name in scope; None where no name will do. A dry run decides nothing."""

    def __call__(self, chooser: Chooser, slot: Slot, *, dry: bool) -> Found | None:
        """The statements and the categories."""


def _some(chooser: Chooser, names: Sequence[str], dry: bool) -> str | None:
    """One of the names, if there are any."""
    return None if not names else names[0] if dry else chooser.pick(names)


def _other_dtype(chooser: Chooser, slot: Slot, *, dry: bool) -> Found | None:
    """A name's value where another dtype is annotated."""
    name = _some(chooser, list(slot.visible), dry)
    if name is None:
        return None
    type_ = slot.visible[name]
    others = [each for each in (*dtypes.NUMBERS, "bool") if each != type_.dtype]
    other = others[0] if dry else chooser.pick(others)
    return (t.Let("bad", t.Type(other, type_.shape, type_.layout), t.Var(name)),), TYPES


def _other_extent(chooser: Chooser, slot: Slot, *, dry: bool) -> Found | None:
    """A tensor's name where its first dimension is annotated one larger."""
    name = _some(chooser, [each for each, type_ in slot.visible.items() if type_.shape and type_.is_static], dry)
    if name is None:
        return None
    type_ = slot.visible[name]
    first, *rest = type_.shape
    assert isinstance(first, int)
    return (t.Let("bad", t.Type(type_.dtype, (first + 1, *rest), type_.layout), t.Var(name)),), SHAPES


def _other_rank(chooser: Chooser, slot: Slot, *, dry: bool) -> Found | None:
    """A tensor's name where a scalar is annotated, or the other way round."""
    name = _some(chooser, list(slot.visible), dry)
    if name is None:
        return None
    type_ = slot.visible[name]
    return (t.Let("bad", t.Type(type_.dtype, () if type_.shape else (1,)), t.Var(name)),), EITHER


def _no_condition(chooser: Chooser, slot: Slot, *, dry: bool) -> Found | None:
    """A name that is no truth value as a condition."""
    name = _some(chooser, [each for each, type_ in slot.visible.items() if type_ != t.Type("bool")], dry)
    if name is None:
        return None
    statements: tuple[t.Stmt, ...] = (t.If(t.Var(name), ()), t.While(t.Var(name), ()), t.Assert(t.Var(name)))
    return (statements[0] if dry else chooser.pick(statements),), EITHER


def _two_dtypes(chooser: Chooser, slot: Slot, *, dry: bool) -> Found | None:
    """Two names of different dtypes in one operator."""
    numbers = {name: type_ for name, type_ in slot.visible.items() if type_.dtype in dtypes.NUMBERS}
    name = _some(chooser, list(numbers), dry)
    other = _some(chooser, [each for each in numbers if name and numbers[each].dtype != numbers[name].dtype], dry)
    if name is None or other is None:
        return None
    operator = "+" if dry else chooser.pick("+-*/")
    return (t.Let("bad", numbers[name], t.Binary(operator, t.Var(name), t.Var(other))),), EITHER


def _assigned(chooser: Chooser, slot: Slot, *, dry: bool) -> Found | None:
    """A string assigned to a name."""
    name = _some(chooser, list(slot.visible), dry)
    return None if name is None else ((t.Assign(name, (), t.Literal('"text"')),), TYPES)


def _too_many_indices(chooser: Chooser, slot: Slot, *, dry: bool) -> Found | None:
    """One index more than a name has dimensions."""
    name = _some(chooser, list(slot.visible), dry)
    if name is None:
        return None
    type_ = slot.visible[name]
    items = (t.Literal("0"),) * (len(type_.shape) + 1)
    return (t.Let("bad", t.Type(type_.dtype), t.Index(t.Var(name), items)),), EITHER


def _called(chooser: Chooser, slot: Slot, *, dry: bool) -> Found | None:
    """A value called as if it were a function."""
    name = _some(chooser, list(slot.visible), dry)
    return None if name is None else ((t.Call(name, (), own=True),), TYPES)


def _empty_return(chooser: Chooser, slot: Slot, *, dry: bool) -> Found | None:
    """A return without a value where one is annotated."""
    if slot.function.result is None:
        return None
    return (t.If(t.Literal("true"), (t.Return(()),)),), TYPES


MISTAKES_WITH_NAMES: tuple[tuple[str, Mistake], ...] = (
    ("another dtype than the name's", _other_dtype),
    ("another extent than the name's", _other_extent),
    ("another rank than the name's", _other_rank),
    ("a condition that is none", _no_condition),
    ("two dtypes in one operator", _two_dtypes),
    ("a string assigned", _assigned),
    ("an index more than dimensions", _too_many_indices),
    ("a value called", _called),
    ("a return without a value", _empty_return),
)
