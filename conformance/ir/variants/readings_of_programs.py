"""Front ends that follow a listed alternative where the texts are silent about the meaning of a program."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tessera_conformance.strength import altered, without_refusals
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.graph import control, movement
from tessera_reference.graph.collectives import AllGather, AllToAll, Reducing, RootBroadcast
from tessera_reference.graph.term import require_numeric
from tessera_reference.ir import attributes, verifier
from tessera_reference.ir import text as type_text
from tessera_reference.ir.diagnostics import Span
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.types import Scalar, Tensor, Value
from tessera_reference.kernel_machine import block as pending_copies
from tessera_reference.kernel_machine.block import BlockState, exchanged
from tessera_reference.language import expressions, modules, statements, syntax
from tessera_reference.language import values as literals
from tessera_reference.language.scope import Scope
from tessera_reference.levels import texts
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import round_exact
from tessera_reference.schedule import operations as schedule_operations
from tessera_reference.schedule.nests import Legality
from tessera_reference.schedule.operations import Tile
from tessera_reference.target_ir import verifier as target_verifier

from .substitutes import Substitution

ANNOTATIONS: Any = sys.modules["tessera_reference.language.values"]
COMPILER: Any = sys.modules["tessera_reference.language.modules"]
SCOPES: Any = sys.modules["tessera_reference.language.scope"]
STATEMENTS: Any = sys.modules["tessera_reference.language.statements"]
VALUES: Any = sys.modules["tessera_reference.language.values"]
VERIFIER: Any = sys.modules["tessera_reference.ir.verifier"]

PROGRAMS = (
    *(f"ir/{topic}/*" for topic in ("constants", "constructs", "control-flow", "declarations", "evaluation")),
    *(f"ir/{topic}/*" for topic in ("expressions", "func-declarations", "fuzz", "grammar", "indexing", "kernels")),
    *(f"ir/{topic}/*" for topic in ("literals", "purity", "readings-of-programs", "rejections", "statements")),
    *(f"ir/{topic}/*" for topic in ("gradients-of-programs", "printed-ir", "shapes", "type-rules", "types")),
    "ir/worked-examples/*",
)
"""Cases that read programs of the DSL."""


def reading(
    name: str,
    number: int,
    description: str,
    reach: Iterable[str],
    *substitutions: Substitution,
    taken_for: tuple[str, ...] = (),
) -> Any:
    """A variant that follows an alternative of an interpretation of the language."""
    made = altered(f"AMB-LANG-{number:02}", description, tuple(reach), ReferenceAdapter, *substitutions, name=name)
    return replace(made, taken_for=taken_for)


def lenient(owner: Any, *phrases: str) -> Sequence[Substitution]:
    """A module that passes over the refusals whose source has one of the phrases."""
    return without_refusals(owner, lambda source: any(phrase in source for phrase in phrases))


def unreported(clause: str) -> Substitution:
    """Findings without those of a clause."""
    report = SCOPES.Findings.report

    def report_others(findings: Any, *arguments: Any, **about: Any) -> None:
        if arguments[4:5] != (clause,):
            report(findings, *arguments, **about)

    return SCOPES.Findings, "report", report_others


# Section 2.3

DEFAULTS = reading(
    "defaults_anywhere",
    74,
    "takes a default on any parameter",
    PROGRAMS,
    unreported("AMB-LANG-74"),
    *lenient(verifier, "the default of"),
)

DECLARE = Scope.declare


def declare_once(
    inside: Scope, name: str, span: Span, value: Value | None, declared: Any = None, *, broken: bool = False
) -> None:
    """Bind a name of a block unless a block around it has one of that spelling."""
    outer = inside.parent.find(name) if inside.parent else None
    if outer is not None and not outer.broken:
        inside.findings.report("types", f"{name!r} is declared in line {outer.span.line}, too", span)
    DECLARE(inside, name, span, value, declared, broken=broken)


SHADOWING = reading(
    "no_shadowing", 86, "refuses a name that a block around has", PROGRAMS, (Scope, "declare", declare_once)
)

ROUNDED, NUMBER = literals.exact, literals.number


def through_fp64(text: str) -> Any:
    """A literal's value, rounded to fp64."""
    value = ROUNDED(text)
    return Fraction(round_exact(value, DTYPES["fp64"])) if value < Fraction(10) ** 308 else value


def whole_or_refused(text: str, negative: bool, is_float: bool, dtype: Any) -> int | float:
    """A literal as a dtype; a float literal of a whole value may become an integer."""
    value = ROUNDED(text) if is_float else None
    whole = value is not None and value.denominator == 1 and dtype.kind == "int"
    return NUMBER(str(value) if whole else text, negative, is_float and not whole, dtype)


LITERALS = ("ir/literals/*", "ir/readings-of-programs/*", "ir/constants/*", "ir/rejections/*", "ir/lexical/*")
TWICE_ROUNDED = reading(
    "literals_through_fp64", 87, "rounds a literal to fp64 first", LITERALS, (literals, "exact", through_fp64)
)
WHOLE_FLOATS = reading(
    "whole_float_literals",
    87,
    "takes 2.0 where an integer is wanted",
    PROGRAMS,
    (VALUES, "number", whole_or_refused),
)

FOR_STEPS = control.For.steps


def never_empty(loop: Any, start: Any, stop: Any, step: Any, *carried: Any, env: Any) -> Any:
    """Run a loop over a range that has a number in it."""
    if int(step.values) and not range(int(start.values), int(stop.values), int(step.values)):
        raise control.ZeroStep
    return (yield from FOR_STEPS(loop, start, stop, step, *carried, env=env))


EMPTY_RANGES = reading(
    "no_empty_ranges", 94, "ends with an error where a range is empty", PROGRAMS, (control.For, "steps", never_empty)
)

NAMED = expressions.Expressions._name


def zero_unless_assigned(around: Any, name: syntax.Name, expected: Any) -> Any:
    """The value of a name, zero for a number to which none was assigned."""
    binding: Any = around.scope.find(name.text)
    unassigned = binding is not None and binding.value is None and not binding.broken
    if unassigned and isinstance(binding.declared, Scalar) and binding.declared.dtype.kind != "bool":
        return around.lower(syntax.IntLiteral(name.span, "0"), binding.declared.dtype)
    return NAMED(around, name, expected)


ZEROS = reading(
    "zero_by_default",
    152,
    "takes a scalar without a value as zero",
    PROGRAMS,
    (expressions.Expressions, "_name", zero_unless_assigned),
)

LOWER_FOR = STATEMENTS.Statements._for


def as_a_while(block: Any, loop: syntax.For) -> None:
    """Lower a loop by ones, whose end is a name that its body assigns, as a while with a condition."""
    assigned = {statement.name for statement in loop.body.statements if isinstance(statement, syntax.Assign)}
    if loop.step is not None or not isinstance(loop.stop, syntax.Name) or loop.stop.text not in assigned:
        LOWER_FOR(block, loop)
        return
    span, counter = loop.span, syntax.Name(loop.span, loop.names[0])
    more = syntax.Binary(span, "<", counter, loop.stop)
    ahead = syntax.Assign(span, counter.text, None, syntax.Binary(span, "+", counter, syntax.IntLiteral(span, "1")))
    again = syntax.While(span, more, replace(loop.body, statements=(*loop.body.statements, ahead)))
    first = syntax.Let(span, counter.text, syntax.NamedType(span, "int32"), loop.start)
    block.block(syntax.Block(span, (first, again)))


TURNS = reading(
    "ends_at_each_turn",
    169,
    "compares with the end of a range at each turn",
    PROGRAMS,
    (STATEMENTS.Statements, "_for", as_a_while),
)

ENTRIES = movement.read_entries


def as_many_as_dimensions(spec: tuple[str, ...], x: Tensor, bounds: tuple[object, ...]) -> Any:
    """A selection that says something of every dimension."""
    if len(spec) < x.rank:
        raise Refusal("shapes", f"{len(spec)} indices for rank {x.rank}", "one a dimension")
    return ENTRIES(spec, x, bounds)


INDICES = reading(
    "every_index",
    180,
    "wants an index for every dimension",
    PROGRAMS,
    (movement, "read_entries", as_many_as_dimensions),
)

STATED = reading(
    "statements_ignored",
    182,
    "passes over what an attribute says of the result",
    (*PROGRAMS, "ir/annotations/*", "ir/ir-text/*", "ir/layouts/*"),
    *lenient(attributes, "is stated, the result is"),
)

# Section 9

OPEN_SET = reading(
    "open_set",
    76,
    "has products and means of collectives",
    ("ir/collectives/*", "ir/rejections/*", "ir/ir-text/*", "ir/ranks/*", "ir/meshes/*"),
    (Reducing, "operators", ("sum", "max", "min", "prod", "mean")),
)
NO_RANKS = reading(
    "meshes_without_ranks",
    153,
    "takes a mesh axis of extent 0",
    (*PROGRAMS, "ir/meshes/*", "ir/mesh-axes/*", "ir/ir-text/*"),
    *lenient(type_text, "an axis has no extent"),
)

# Sections 10 and 11

LOWER, EMIT = COMPILER._lower, Scope.emit
LOOSER, NARROW = VERIFIER.looser_calls, SCOPES.refuse_narrow_accumulation
PROFILES = ("ir/profiles/*", "ir/profiles-in-texts/*", "ir/rejections/*", "ir/readings-of-programs/*", "ir/declared-*")


def emit_with_warning(inside: Scope, operation: Any, operands: Any, span: Span, *others: Any, **about: Any) -> Any:
    """Append an operation, with a warning where its accumulator is narrow for the profile."""
    own = str((about.get("attributes") or {}).get("numerics_profile", ""))
    try:
        NARROW(operation, own or inside.profile)
    except Refusal as refusal:
        inside.findings.report(refusal.category, refusal.message, span, severity="warning")
    return EMIT(inside, operation, operands, span, *others, **about)


def lower_with_warnings(program: syntax.Program, source: str) -> Any:
    """Lower a program, with a warning for each call of a looser function."""
    compiled = LOWER(program, source)
    found = [finding for module in compiled.modules for finding in LOOSER(module, [*module.functions][::-1])]
    return replace(
        compiled, warnings=(*compiled.warnings, *(replace(finding, severity="warning") for finding in found))
    )


WARNINGS = reading(
    "numerics_warnings",
    69,
    "warns of looser callees and of narrow accumulators",
    PROFILES,
    (Scope, "emit", emit_with_warning),
    (SCOPES, "refuse_narrow_accumulation", lambda *_: None),
    (VERIFIER, "looser_calls", lambda *_: []),
    (COMPILER, "_lower", lower_with_warnings),
)

# Section 2.2

ABSENT = ANNOTATIONS._resolve_memref


def shared_unless_stated(type_: syntax.MemrefType) -> Any:
    """A memref, in shared memory unless it says otherwise."""
    return ABSENT(replace(type_, address_space=type_.address_space or "shared"))


SHARED = reading(
    "memrefs_are_shared",
    61,
    "takes a memref without an address space as shared",
    ("ir/declarations/*", "ir/types/*", "ir/function-values/*", "ir/rejections/*", "ir/tile/*"),
    (ANNOTATIONS, "_resolve_memref", shared_unless_stated),
)

# Section 6.1

TILED = Legality._tile


def tiled_without_k(legality: Legality, instruction: Any, tile: Tile) -> Any:
    """Yield what is wrong with a tile, whose k means nothing where there is no contraction."""
    return [finding for finding in TILED(legality, instruction, tile) if "k tiles a contraction" not in finding.message]


SCHEDULES = ("ir/schedule/*", "ir/directives/*", "ir/levels/*")
USELESS_K = reading(
    "k_ignored",
    77,
    "passes over the k of a tile of what is no product",
    SCHEDULES,
    (Legality, "_tile", tiled_without_k),
    *lenient(schedule_operations, "k tiles a contraction"),
)
ONE_PART = reading(
    "fusion_of_one", 81, "takes a fusion of one value", SCHEDULES, *lenient(schedule_operations, "fuses {len(")
)

# Sections 7 and 8

VERIFY_OF_TARGET = target_verifier._verify_instruction


def verify_of_any_level(instruction: Any, target: Any) -> None:
    """Verify an operation in a kernel of Target IR; one of Tile IR is legal there."""
    if not instruction.operation.name.startswith("tessera.tile."):
        VERIFY_OF_TARGET(instruction, target)


ANY_LEVEL = reading(
    "any_operation_at_any_level",
    245,
    "takes operations of every level in a text",
    ("ir/schedule/*", "ir/tile/*", "ir/target/*", "ir/ir-text/*"),
    (texts, "_require_level", lambda *_: None),
    (target_verifier, "_verify_instruction", verify_of_any_level),
)


def exchanged_by_xor(block: Any, values: Any, delta: int, mask: int | None = None) -> Any:
    """The value of the lane whose number differs in the bits of delta; its own beyond the warp."""
    lane = block.every_lane % block.warp
    return exchanged(block, values, np.where(lane ^ delta < block.warp, lane ^ delta, lane), mask)


XOR = reading(
    "shuffles_by_xor",
    63,
    "exchanges values with the lane of another number in the bits of delta",
    ("ir/tile/*", "ir/target/*", "ir/levels/*"),
    (BlockState, "shuffle", exchanged_by_xor),
)

ADD = pending_copies.PendingCopies.add


def add_finished(pending: Any, storage: Any, at: Any, lanes: Any) -> None:
    """Copy at once."""
    storage.finish_copy(at, lanes[:, None])


AT_ONCE = reading(
    "copies_at_once",
    64,
    "copies before it goes on to the next operation",
    ("ir/tile/*", "ir/target/*", "ir/levels/*"),
    (pending_copies.PendingCopies, "add", add_finished),
)

# Section 2.3: kernels

ASSIGN = statements.Statements._assign


def assign_no_parameter(block: Any, assign: syntax.Assign) -> None:
    """Assign a name that is no parameter of a kernel, since nothing marks one as an output."""
    if block.kernel and block.scope.find(assign.name) is block.scope.parameter(assign.name):
        block._refuse(f"{assign.name!r} is no output", assign.span, "AMB-LANG-98")
    ASSIGN(block, assign)


MARKED = reading(
    "outputs_are_marked",
    98,
    "writes no parameter of a kernel that is not marked as an output",
    (*PROGRAMS, "ir/levels/*", "ir/tile/*", "ir/directives/*"),
    (statements.Statements, "_assign", assign_no_parameter),
    taken_for=("AMB-RT-17", "AMB-RT-19"),
)

RESOLVE = statements.Statements.resolve


def resolve_in_func(block: Any, type_: Any) -> Any:
    """Return the type of an annotation; refuse outside kernels what is neither a tensor nor a scalar."""
    resolved = RESOLVE(block, type_)
    if block.kernel or resolved is None or isinstance(resolved, Scalar | Tensor):
        return resolved
    block._refuse(f"{resolved} in a func", type_.span, "AMB-LANG-187")
    return None


KERNEL_TYPES = reading(
    "types_of_kernels",
    187,
    "takes memrefs, fragments, meshes and functions in kernels alone",
    (*PROGRAMS, "ir/function-values/*", "ir/meshes/*"),
    (statements.Statements, "resolve", resolve_in_func),
)

# Sections 2.3 and 14.2: what one of the two texts lacks

UNARY = expressions.Expressions._unary


def refuse_sign(block: Any, expr: syntax.Unary, *arguments: Any) -> Any:
    """Take a sign before a literal alone."""
    if isinstance(expr.operand, syntax.IntLiteral | syntax.FloatLiteral):
        return UNARY(block, expr, *arguments)
    return refuse_index(block, expr)


def refuse_index(block: Any, expr: Any, *_: Any) -> None:
    """Take no index, nor anything else that stands here."""
    block.report("syntax", "no production has it", expr.span, "a production of section 2.3", "AMB-LANG-19")


NO_SIGNS = reading(
    "neither_signs_nor_indices",
    19,
    "has neither signs before operands nor indices",
    (*PROGRAMS, "ir/unary-operators/*"),
    (expressions.Expressions, "_unary", refuse_sign),
    (expressions.Expressions, "_index", refuse_index),
)


def refusing(resolve: Any, refuses: Any, category: Any, clause: str) -> Any:
    """Return a function that reads part of a type, and refuses some of them."""

    def resolve_others(part: Any, *others: Any) -> Any:
        if refuses(part, *others):
            raise Refusal(category, "no such type", "a type of section 2.3", clause)
        return resolve(part, *others)

    return resolve_others


def named(dimension: Any) -> bool:
    """True for the name of a dimension."""
    return dimension.text != "?" and not dimension.text.isdecimal()


NUMBERED = refusing(literals.resolve_dim, named, "shapes", "AMB-LANG-08")
PLAIN = refusing(literals.resolve_layout, lambda spec: bool(spec.parameters), "layouts", "AMB-LANG-24")
UNALIASED = refusing(literals._resolve_name, lambda name, aliases: name in aliases, "types", "AMB-LANG-50")
TYPES = (*PROGRAMS, "ir/layouts/*")
NUMBERED_DIMENSIONS = reading(
    "dimensions_without_names",
    8,
    "takes names of dimensions in examples alone",
    TYPES,
    (literals, "resolve_dim", NUMBERED),
    taken_for=("AMB-RT-85",),
)
PLAIN_LAYOUTS = reading(
    "layouts_without_numbers", 24, "takes no numbers in a layout", TYPES, (literals, "resolve_layout", PLAIN)
)
UNUSED_ALIASES = reading(
    "aliases_are_no_types", 50, "declares aliases that nothing names", TYPES, (literals, "_resolve_name", UNALIASED)
)

GIVE_BACK = modules.FunctionLowering.give_back


def give_nothing_back(function: Any, block: Any, statement: syntax.Return) -> None:
    """Refuse the value of a return in a func without a result annotation."""
    if function.kernel or function.declaration.result is not None or not statement.values:
        GIVE_BACK(function, block, statement)
        return
    function._refuse(statement.span, "the func returns nothing", "no value", "AMB-LANG-12")
    function.broken = True
    block.scope.leave("unreachable")


NOTHING_RETURNED = reading(
    "returns_what_is_annotated",
    12,
    "returns nothing from a func without a result annotation",
    PROGRAMS,
    (modules.FunctionLowering, "give_back", give_nothing_back),
    taken_for=("AMB-LANG-26",),
)


def of_numbers(collective: Any) -> Substitution:
    """A collective that moves no bools."""
    usual = collective.result_type

    def result_type(self: Any) -> Any:
        require_numeric(self.x.dtype)
        return usual(self)

    return collective, "result_type", result_type


NUMBERS_MOVED = reading(
    "moves_numbers",
    268,
    "moves numbers alone",
    ("ir/ranks/*", "ir/collectives/*", "ir/drawn/*", "collectives/waiting/*", "collectives/plan-execution/*"),
    *map(of_numbers, (AllGather, RootBroadcast, AllToAll)),
)
