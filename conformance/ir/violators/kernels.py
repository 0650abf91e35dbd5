"""Implementations that declare kernels wrongly, or return other outputs (language spec, section 2.3)."""

from tessera_conformance.strength import Around
from tessera_reference.language import syntax

from .changes import around, instead
from .language_syntax import refuses

KERNELS = [
    instead("outer_return", "LANG-02.3-52", "loses what a branch of a kernel wrote before its return",
        "language.modules.FunctionLowering._buffers", around(lambda usual, self, scope: usual(self, self.scope))),
    instead("called_a_func", "LANG-02.3-52", "tells of a kernel as a func", "adapter.language.KINDS",
        Around(lambda kinds: {**kinds, syntax.KernelDecl: "func"})),
    refuses("no_attributes", "LANG-02.3-08", "has no attributes on kernels", r"kernel \w+\([^)]*\) @\{"),
    refuses("no_scalars", "LANG-02.3-08", "takes tensors only in kernels", r"kernel \w+\([^)]*: int32"),
    instead("hidden_too", "LANG-02.3-52", "hands back what hides a parameter where a kernel returns",
        "language.scope.Scope.parameter", around(lambda usual, self, name: self.names.get(name) or usual(self, name))),
]  # fmt: skip
