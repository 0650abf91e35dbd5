"""Implementations that declare kernels wrongly, or return other outputs (language spec, section 2.3)."""

from tessera_conformance.strength import replaced
from tessera_reference.adapter import language as adapter
from tessera_reference.adapter import make
from tessera_reference.language import syntax
from tessera_reference.language.modules import FunctionLowering
from tessera_reference.language.scope import Scope

from .language_syntax import refuses


def _remembering(self, parameter):
    """Declare a parameter, and remember its initial value."""
    value = _parameter(self, parameter)
    vars(self).setdefault("given", {})[parameter.name] = value
    return value


_parameter, _buffers = FunctionLowering._parameter, FunctionLowering._buffers


def delivers(name, description, buffers):
    """Return a violation whose kernels return other values."""
    changes = (
        ("language.modules.FunctionLowering._parameter", _remembering),
        ("language.modules.FunctionLowering._buffers", buffers),
    )
    return replaced("LANG-02.3-52", description, make, *changes, name=name)


KERNELS = [
    delivers("outer_return", "loses what a branch of a kernel wrote before its return",
        lambda self, scope: _buffers(self, self.scope)),
    replaced("LANG-02.3-52", "tells of a kernel as a func", make,
        ("adapter.language.KINDS", {**adapter.KINDS, syntax.KernelDecl: "func"}), name="called_a_func"),
    refuses("no_attributes", "LANG-02.3-08", "has no attributes on kernels", r"kernel \w+\([^)]*\) @\{"),
    refuses("no_scalars", "LANG-02.3-08", "takes tensors only in kernels", r"kernel \w+\([^)]*: int32"),
]  # fmt: skip


def _hidden_too(self, name):
    """The binding of a parameter, or of what hides it where it is asked for."""
    return self.names.get(name) or _parameter_of_scope(self, name)


_parameter_of_scope = Scope.parameter

hidden_too = replaced(
    "LANG-02.3-52",
    "hands back what hides a parameter where a kernel returns",
    make,
    ("language.scope.Scope.parameter", _hidden_too),
)
