"""From the reference's own values and exceptions to those of the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.observations import Diagnostic
from tessera_conformance.tensors import Tensor

from ..graph.execution import InputMismatch, UnknownFunction
from ..ir import diagnostics
from ..ir.diagnostics import Rejection, UnsupportedConstruct
from ..ir.missing_tool import MissingTool
from ..numerics.array import Array
from ..numerics.errors import ShapeMismatch
from ..numerics.formats import dtype

__all__ = ["array", "diagnostic", "outcomes", "tensor"]


@contextmanager
def outcomes() -> Iterator[None]:
    """Turn the reference's own exceptions into outcomes of the protocol."""
    try:
        yield
    except Rejection as rejection:
        first = next(entry for entry in rejection.diagnostics if entry.severity == "error")
        found = [diagnostic(entry) for entry in rejection.diagnostics]
        raise Refusal(first.category, first.phase, first.message, found) from None
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


def array(given: Tensor) -> Array:
    """The array that a tensor of the protocol stands for."""
    return Array.from_bits(dtype(given.dtype), given.shape, given.data)


def tensor(result: Array) -> Tensor:
    """An array as a tensor of the protocol."""
    return Tensor(result.dtype.name, result.shape, result.to_bits())
