"""Implementations that break one rule of reported Graph IR, diagnostics, profiles or evaluation."""

from dataclasses import replace
from unittest import mock

import numpy as np

from tessera_reference.graph.reductions import MatMul
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.trees import pairwise

from .changes import after, instead, wrapped
from .language_syntax import rewrites


def shown(clause, name, description, change):
    """Return a violation that reports changed operations."""
    return instead(clause, name, description, "adapter.messages._operation", after(change))


def without_accumulator(operation):
    kept = {name: value for name, value in operation["attributes"].items() if name != "accum"}
    return operation | {"attributes": kept}


SHOWN = [
    shown("LANG-01-03", "one_name", "calls every value %0",
        lambda operation: operation | {"results": ["%0" for _ in operation["results"]]}),
    shown("LANG-01-07", "no_attributes", "shows no attributes", lambda operation: operation | {"attributes": {}}),
    shown("LANG-10-01", "no_accumulator", "does not state the accumulator", without_accumulator),
    instead("LANG-05-01", "backwards", "shows operations last to first", "adapter.language.function_message",
        after(lambda text: text | {"operations": text["operations"][::-1]})),
    instead("LANG-02-01", "FirstFunctionOnly", "lowers only the first function",
        "adapter.ReferenceAdapter.language_lower", after(lambda text: text | {"functions": text["functions"][:1]})),
    instead("LANG-12-03", "no_remedy", "suggests no remedy", ("adapter.messages.diagnostic",
        "adapter.language.diagnostic"), after(lambda entry: replace(entry, remedy=None))),
]  # fmt: skip


def profiles(clause, name, description, known):
    """Return a violation that knows other numerics profiles."""
    places = ("ir.attributes.PROFILES", "ir.verifier.PROFILES", "language.modules.PROFILES")
    return instead(clause, name, description, places, tuple(known.split()))


def outer_profile(usual, self, call, first):
    if self.scope.parent is None or self.scope.parent.parent is None:
        usual(self, call, first)


def along_a_tree(self, a, b, env):
    terms = a.values[..., :, None, :] * np.moveaxis(b.values, -1, -2)[..., None, :, :]
    return Array(a.dtype, pairwise(terms, -1))


def of_the_run(usual, self, *, level="strict", **request):
    with mock.patch.object(MatMul, "execute", MatMul.execute if level == "strict" else along_a_tree):
        return usual(self, level=level, **request)


PROFILES = [
    wrapped("LANG-02-07", "outer_profile", "passes over a profile in a block of a block",
        "language.statements.Statements._profile", outer_profile),
    profiles("LANG-10-04", "faster", "knows a profile called faster", "faster fast deterministic strict"),
    instead("LANG-11-16", "looser_callee_of_a_callee", "looks at the profiles of direct callees only",
        "ir.verifier.loosest", lambda declared: None),
    rewrites("LANG-11-16", "looser_body", "passes over the profile at the head of a body",
        r'numerics\.profile\("\w+"\);', ""),
    profiles("LANG-10-08", "no_fast", "does not know the profile fast", "deterministic strict"),
    profiles("LANG-10-09", "no_deterministic", "does not know the profile deterministic", "fast strict"),
    profiles("LANG-10-10", "no_strict", "does not know the profile strict", "fast deterministic"),
    instead("LANG-11-13", "narrow_accumulation", "takes an accumulator that is narrower than the profile allows",
        "language.scope.refuse_narrow_accumulation", lambda operation, profile: None),
    wrapped("LANG-04-04", "ProfileOfTheRun", "lets the profile of the run win over the function's",
        "adapter.ReferenceAdapter.language_execute", of_the_run),
]  # fmt: skip


def backwards(usual, self, block, arguments, frame):
    frame.update((value, nothing_yet(value)) for instruction in block.instructions for value in instruction.results)
    return usual(self, replace(block, instructions=block.instructions[::-1]), arguments, frame)


def nothing_yet(value):
    extents = [extent if isinstance(extent, int) else 1 for extent in getattr(value.type, "shape", ())]
    return Array(value.type.dtype, np.zeros(extents, value.type.dtype.carrier))


last_to_first = wrapped("LANG-04-03", "", "runs operations last to first", "graph.interpreter.Interpreter.block",
    backwards)  # fmt: skip
