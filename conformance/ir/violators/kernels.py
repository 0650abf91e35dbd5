"""Implementations that declare kernels wrongly, or return other outputs (language spec, section 2.3)."""

from tessera_conformance.strength import Around
from tessera_reference.language import syntax

from .changes import instead, wrapped
from .language_syntax import refuses

KERNELS = [
    wrapped("LANG-02.3-52", "outer_return", "loses what a branch of a kernel wrote before its return",
        "language.modules.FunctionLowering._buffers", lambda usual, self, scope: usual(self, self.scope)),
    instead("LANG-02.3-52", "called_a_func", "tells of a kernel as a func", "adapter.language.KINDS",
        Around(lambda kinds: {**kinds, syntax.KernelDecl: "func"})),
    refuses("LANG-02.3-08", "no_attributes", "has no attributes on kernels", r"kernel \w+\([^)]*\) @\{"),
    refuses("LANG-02.3-08", "no_scalars", "takes tensors only in kernels", r"kernel \w+\([^)]*: int32"),
    wrapped("LANG-02.3-52", "hidden_too", "hands back what hides a parameter where a kernel returns",
        "language.scope.Scope.parameter", lambda usual, self, name: self.names.get(name) or usual(self, name)),
]  # fmt: skip
