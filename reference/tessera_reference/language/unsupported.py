"""What the grammar has and the lowering does not carry out yet. This file shrinks to nothing.

It is asked before any check of meaning: a program that uses one of these is neither accepted nor refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from ..ir.diagnostics import Location, Span, UnsupportedConstruct
from ..ir.operation import SPELLINGS, Role
from . import syntax as s

FEATURES: dict[type[s.Node], str] = {
    s.KernelDecl: "language.kernel",
    s.TypeDecl: "language.type",
    s.MeshDecl: "language.mesh",
    s.Annotation: "language.annotation",
    s.Assign: "language.assign",
    s.If: "language.if",
    s.For: "language.for",
    s.While: "language.while",
    s.Barrier: "language.barrier",
    s.Assert: "language.assert",
    s.Index: "language.index",
    s.TensorExpr: "language.tensor_expression",
    s.MemrefType: "language.memref",
    s.FragmentType: "language.fragment",
    s.MeshType: "language.mesh",
    s.FunctionType: "language.fn",
}

NAMESPACES = frozenset({"schedule", "dist", "numerics"})

PLANNED = frozenset(
    [
        "all_reduce",
        "grad",
        "reshape",
        "broadcast",
        "slice",
        "concat",
        "gather",
        "pad",
        "layer_norm",
        "rms_norm",
        "dropout",
        "select",
        "clamp",
        "const_tensor",
    ]
)
"""Operators of the language that come with a later slice."""

COMMON_ATTRIBUTES = frozenset({"shape", "dtype", "layout", "mesh_axes", "precision", "numerics_profile"})
"""Attributes that any operation may carry (spec section 5.3, AMB-LANG-83)."""


def refuse_unsupported(program: s.Program) -> None:
    """Raise `UnsupportedConstruct` for the first construct, in source order, that is not carried out."""
    found = min(((node.span, feature) for node, feature in _unsupported(program)), default=None)
    if found:
        span, feature = found
        raise UnsupportedConstruct(feature, Location(program.filename, span))


def _unsupported(program: s.Program) -> Iterator[tuple[s.Node, str]]:
    for module in program.modules:
        for declaration in module.declarations:
            if isinstance(declaration, s.Let):
                yield declaration, "language.const"
    for node in _walk(program):
        if feature := FEATURES.get(type(node)):
            yield node, feature
        elif isinstance(node, s.Parameter) and node.default is not None:
            yield node, "language.default"
        elif isinstance(node, s.FunctionDecl):
            yield from ((a, f"attribute.{a.name}") for a in node.attributes if a.name != "numerics_profile")
        elif isinstance(node, s.Call):
            yield from _unsupported_call(node)


def _unsupported_call(call: s.Call) -> Iterator[tuple[s.Node, str]]:
    head, *rest = call.callee
    spelling = ".".join(call.callee)
    if rest and head in NAMESPACES:
        yield call, f"language.{head}"
    elif head == "op" and len(rest) == 1 and rest[0] in PLANNED and spelling not in SPELLINGS:
        yield call, spelling
    elif spelling in SPELLINGS:
        own = {name for name, role in SPELLINGS[spelling].roles.items() if role is Role.ATTRIBUTE}
        for given in call.named:
            if given.name in COMMON_ATTRIBUTES - own:
                yield given, f"attribute.{given.name}"
    elif not rest and call.attributes:
        yield call.attributes[0], "language.call_attributes"


def _walk(item: object) -> Iterator[s.Node]:
    """Every node of a tree, without recursion."""
    pending = [item]
    while pending:
        item = pending.pop()
        if isinstance(item, tuple):
            pending.extend(item)
        elif isinstance(item, s.Node):
            yield item
            pending.extend(getattr(item, field.name) for field in fields(item) if field.type is not Span)
