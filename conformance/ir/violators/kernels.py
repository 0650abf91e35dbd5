"""Implementations that declare kernels wrongly, or return other outputs (language spec, section 2.3)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.strength import Violation, replaced, violates
from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.adapter import language as adapter
from tessera_reference.language import syntax
from tessera_reference.language.modules import FunctionLowering
from tessera_reference.language.scope import Scope

from .language_syntax import refuses


def is_kernel(source: str, name: str) -> bool:
    """True if a source declares a kernel of that name."""
    return f"kernel {name}(" in source


@violates("LANG-02.3-52", "hands back the tensors of a kernel last to first")
class LastToFirst(ReferenceAdapter):
    def language_execute(self, *, source: str, function: str, **request: Any) -> dict[str, Any]:
        outputs = super().language_execute(source=source, function=function, **request)["outputs"]
        return {"outputs": outputs[::-1] if is_kernel(source, function) else outputs}


@violates("LANG-02.3-52", "hands back only the tensors that a kernel changed")
class ChangedOnly(ReferenceAdapter):
    def language_execute(self, *, source: str, function: str, inputs: Any, **request: Any) -> dict[str, Any]:
        answer = super().language_execute(source=source, function=function, inputs=inputs, **request)["outputs"]
        given = [operand.data for operand in inputs.values() if isinstance(operand, Tensor)]
        changed = [tensor for tensor in answer if tensor.data not in given]
        return {"outputs": changed if is_kernel(source, function) else answer}


def _remembering(self: FunctionLowering, parameter: Any) -> Any:
    """Declare a parameter, and remember its initial value."""
    value = _parameter(self, parameter)
    vars(self).setdefault("given", {})[parameter.name] = value
    return value


def _as_given(self: FunctionLowering, scope: Any) -> Any:
    """Return the initial contents of the tensor parameters."""
    return tuple(vars(self)["given"][name] for name in self.buffers)


def _at_the_end_only(self: FunctionLowering, scope: Any) -> Any:
    return _buffers(self, scope) if scope is self.scope else _as_given(self, scope)


_parameter, _buffers = FunctionLowering._parameter, FunctionLowering._buffers


def _of_the_body(self: FunctionLowering, scope: Any) -> Any:
    return _buffers(self, self.scope)


def delivers(name: str, description: str, buffers: Any) -> Violation:
    """Return a violation whose kernels return other values."""
    changes = (FunctionLowering, "_parameter", _remembering), (FunctionLowering, "_buffers", buffers)
    return replaced("LANG-02.3-52", description, make, *changes, name=name)


KERNELS = [
    delivers("unwritten", "hands back the tensors of a kernel as they came", _as_given),
    delivers("early_return", "loses what a kernel wrote before a return in a branch", _at_the_end_only),
    delivers("outer_return", "loses what a branch of a kernel wrote before its return", _of_the_body),
    replaced(
        "LANG-02.3-52",
        "tells of a kernel as a func",
        make,
        (adapter, "KINDS", {**adapter.KINDS, syntax.KernelDecl: "func"}),
        name="called_a_func",
    ),
    refuses("no_attributes", "LANG-02.3-08", "has no attributes on kernels", r"kernel \w+\([^)]*\) @\{"),
    refuses("no_scalars", "LANG-02.3-08", "takes tensors only in kernels", r"kernel \w+\([^)]*: int32"),
]


def _hidden_too(self: Scope, name: str) -> Any:
    """The binding of a parameter, or of what hides it where it is asked for."""
    return self.names.get(name) or _parameter_of_scope(self, name)


_parameter_of_scope = Scope.parameter

hidden_too = replaced(
    "LANG-02.3-52",
    "hands back what hides a parameter where a kernel returns",
    make,
    (Scope, "parameter", _hidden_too),
)
