"""Implementations that break one rule of reported Graph IR, diagnostics, profiles or evaluation."""

from dataclasses import replace
from unittest import mock

import numpy as np

from tessera_conformance.strength import replaced, violates
from tessera_reference.adapter import ReferenceAdapter, make, messages
from tessera_reference.adapter import language as adapter
from tessera_reference.graph.interpreter import Interpreter
from tessera_reference.graph.reductions import MatMul
from tessera_reference.ir import attributes as ir_attributes
from tessera_reference.ir import verifier as ir_profiles
from tessera_reference.language import modules
from tessera_reference.language.statements import Statements
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.trees import pairwise

from .language_syntax import rewrites

# Reported Graph IR


def shown(name, clause, description, change):
    """Return a violation that reports changed operations."""
    show = messages._operation
    return replaced(
        clause, description, make, ("adapter.messages._operation", lambda operation: change(show(operation))), name=name
    )


def _without_accumulator(operation):
    kept = {name: value for name, value in operation["attributes"].items() if name != "accum"}
    return operation | {"attributes": kept}


def _backwards(function):
    text = _show_function(function)
    return text | {"operations": text["operations"][::-1]}


_show_function = adapter.function_message

SHOWN = [
    shown("one_name", "LANG-01-03", "calls every value %0",
        lambda operation: operation | {"results": ["%0" for _ in operation["results"]]}),
    shown("no_attributes", "LANG-01-07", "shows no attributes", lambda operation: operation | {"attributes": {}}),
    shown("no_accumulator", "LANG-10-01", "does not state the accumulator", _without_accumulator),
    replaced("LANG-05-01", "shows operations last to first", make, ("adapter.language.function_message", _backwards),
        name="backwards"),
]  # fmt: skip


@violates("LANG-02-01", "lowers only the first function")
class FirstFunctionOnly(ReferenceAdapter):
    def language_lower(self, *, source, to, **request):
        lowered = super().language_lower(source=source, to=to, **request)
        return lowered | {"functions": lowered["functions"][:1]}


# Diagnostics


def diagnosed(name, clause, description, **changes):
    """Return a violation with changed fields of diagnostics."""
    right = messages.diagnostic
    substitutions = [
        (owner, "diagnostic", lambda entry: replace(right(entry), **changes)) for owner in (messages, adapter)
    ]
    return replaced(clause, description, make, *substitutions, name=name)


DIAGNOSTICS = [diagnosed("no_remedy", "LANG-12-03", "suggests no remedy", remedy=None)]


# Profiles


def profiles(name, clause, description, *arguments):
    """Return a violation that knows other numerics profiles."""
    return replaced(
        clause,
        description,
        make,
        *((owner, "PROFILES", arguments) for owner in (ir_attributes, ir_profiles, modules)),
        name=name,
    )


def _outer_profile(self, call, first):
    if self.scope.parent is None or self.scope.parent.parent is None:
        _profile(self, call, first)


_profile = Statements._profile
PROFILES = [
    replaced("LANG-02-07", "passes over a profile in a block of a block", make,
        ("language.statements.Statements._profile", _outer_profile), name="outer_profile"),
    profiles("faster", "LANG-10-04", "knows a profile called faster", "faster", "fast", "deterministic", "strict"),
    replaced("LANG-11-16", "looks at the profiles of direct callees only", make,
        ("ir.verifier.loosest", lambda declared: None), name="looser_callee_of_a_callee"),
    rewrites("looser_body", "LANG-11-16", "passes over the profile at the head of a body",
        r'numerics\.profile\("\w+"\);', ""),
    profiles("no_fast", "LANG-10-08", "does not know the profile fast", "deterministic", "strict"),
    profiles("no_deterministic", "LANG-10-09", "does not know the profile deterministic", "fast", "strict"),
    profiles("no_strict", "LANG-10-10", "does not know the profile strict", "fast", "deterministic"),
    replaced("LANG-11-13", "takes an accumulator that is narrower than the profile allows", make,
        ("language.scope.refuse_narrow_accumulation", lambda operation, profile: None), name="narrow_accumulation"),
]  # fmt: skip


@violates("LANG-04-04", "lets the profile of the run win over the function's")
class ProfileOfTheRun(ReferenceAdapter):
    def language_execute(self, *, level="strict", **request):
        execute = MatMul.execute if level == "strict" else _along_a_tree
        with mock.patch.object(MatMul, "execute", execute):
            return super().language_execute(level=level, **request)


def _along_a_tree(self, a, b, env):
    terms = a.values[..., :, None, :] * np.moveaxis(b.values, -1, -2)[..., None, :, :]
    return Array(a.dtype, pairwise(terms, -1))


# Evaluation


_calls = []


def _last_to_first(self, block, arguments, frame):
    frame.update((value, _nothing_yet(value)) for instruction in block.instructions for value in instruction.results)
    return _block(self, replace(block, instructions=block.instructions[::-1]), arguments, frame)


def _nothing_yet(value):
    extents = [extent if isinstance(extent, int) else 1 for extent in getattr(value.type, "shape", ())]
    return Array(value.type.dtype, np.zeros(extents, value.type.dtype.carrier))


_block = Interpreter.block

last_to_first = replaced(
    "LANG-04-03", "runs operations last to first", make, ("graph.interpreter.Interpreter.block", _last_to_first)
)
