"""Writing answers of the protocol: tensors, refusals, statuses, descriptors and units of work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.protocol import Diagnostic
from tessera_conformance.tensors import Tensor

from ..abi.policy import Descriptor, StableMath
from ..abi.status import Failure
from ..collectives.queues import Collective, Compute, Unit
from ..graph.execution import UnknownFunction
from ..graph.interpreter import InputMismatch
from ..ir import diagnostics
from ..ir.diagnostics import MissingTool, Rejection, UnsupportedConstruct
from ..numerics.array import Array
from ..numerics.attributes import tree
from ..numerics.errors import ShapeMismatch
from ..numerics.formats import NumericsFailure, dtype
from .requests import COLLECTIVE, names_within

# From the reference's own values and exceptions to those of the protocol.


@contextmanager
def outcomes() -> Iterator[None]:
    """Turn the reference's own exceptions into outcomes of the protocol."""
    try:
        yield
    except Rejection as rejection:
        first = next(entry for entry in rejection.diagnostics if entry.severity == "error")
        entries = [diagnostic(entry) for entry in rejection.diagnostics]
        raise Refusal(first.category, first.phase, first.message, entries) from None
    except UnsupportedConstruct as construct:
        raise NotSupported(construct.feature) from None
    except MissingTool as missing:
        raise NotSupported(str(missing)) from None
    except (InputMismatch, UnknownFunction) as mismatch:
        raise Refusal("types", "call", str(mismatch)) from None
    except ShapeMismatch as mismatch:  # of an input: those of operations have become rejections
        raise Refusal("shapes", "call", str(mismatch)) from None


def diagnostic(entry: diagnostics.Diagnostic) -> Diagnostic:
    """A diagnostic as the protocol has it."""
    span = entry.span._asdict()
    return Diagnostic(
        entry.category,
        entry.message,
        entry.severity,
        **span,
        operands=entry.operands,
        requirement=entry.requirement or None,
        remedy=entry.remedy or None,
        clause=entry.clause or None,
    )


def array(value: Tensor) -> Array:
    """The array that a tensor of the protocol stands for."""
    return Array.from_bits(dtype(value.dtype), value.shape, value.data)


def tensor(result: Array) -> Tensor:
    """An array as a tensor of the protocol."""
    return Tensor(result.dtype.name, result.shape, result.to_bits())


# Failures as rejections with a status of the runtime.


@contextmanager
def statuses() -> Iterator[None]:
    """Turn failures of the runtime and of the arithmetic into rejections with a status."""
    try:
        yield
    except Failure as failure:
        raise Refusal(failure.status.name, "call", str(failure)) from None
    except NumericsFailure as failure:
        raise Refusal("TESS_ERR_INVALID_VALUE", "call", str(failure)) from None


# Determinism descriptors as messages have them (runtime spec 11).


def read_descriptor(message: Mapping[str, Any]) -> Descriptor:
    """A determinism descriptor from its message. Raises `Failure` and `InvalidArgument`."""
    fields_ = dict(names_within("tessLaunch", "descriptor", message, [field.name for field in fields(Descriptor)]))
    if "reduction_order" in fields_:
        fields_["reduction_order"] = tree("tessLaunch", "descriptor.reduction_order", fields_["reduction_order"])
    if "stable" in fields_:
        allowed = [field.name for field in fields(StableMath)]
        fields_["stable"] = StableMath(**names_within("tessLaunch", "descriptor.stable", fields_["stable"], allowed))
    return Descriptor(**fields_)


# Units of work as the two queues of a device hold them, from and to what messages have.


def unit_of(members: Mapping[str, Any], ranks: int) -> Unit:
    """The unit of these members, on all of so many ranks unless it names some."""
    options: dict[str, Any] = {
        n: tuple(member) if isinstance(member, list | tuple) else member for n, member in members.items()
    }
    options.setdefault("ranks", tuple(range(ranks)))
    if options.pop("queue") == "compute":
        return Compute(**options)
    return Collective(**options.pop("collective"), **options)


def unit_told(unit: Unit) -> dict[str, Any]:
    """A unit as the protocol has it."""
    message: dict[str, Any] = {
        "id": unit.id,
        "ranks": list(unit.ranks),
        "after": list(unit.after),
        "priority": unit.priority,
    }
    if isinstance(unit, Compute):
        return {**message, "queue": "compute", "picoseconds": unit.picoseconds}
    qos = {} if unit.qos is None else {"qos": unit.qos}
    collective = {name: getattr(unit, name) for name in COLLECTIVE}
    return {**message, "queue": "comm", "collective": collective, "fused": list(unit.fused), **qos}
