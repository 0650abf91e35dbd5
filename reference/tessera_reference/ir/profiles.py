"""Numerics that agree with the profile in force (spec sections 10, 11; LANG-11-13, LANG-11-16, AMB-LANG-69).

A profile belongs to a function or to one instruction, which wins (AMB-LANG-111); a function without one runs under
that of its callers (AMB-LANG-128).
"""

from __future__ import annotations

from collections.abc import Iterable

from ..numerics.formats import DType
from .common_attributes import PROFILES
from .diagnostics import Diagnostic
from .module import Instruction, Module
from .operation import Operation, Refusal, require
from .refusals import diagnostic_of
from .types import dtype_of

__all__ = ["looser_calls", "loosest", "refuse_narrow_accumulation"]


def loosest(profiles: Iterable[str | None]) -> str | None:
    """The loosest of the profiles that are declared, if one is."""
    return min((profile for profile in profiles if profile in PROFILES), key=PROFILES.index, default=None)


def looser_calls(module: Module, order: Iterable[str]) -> list[Diagnostic]:
    """What is wrong with the calls of a module whose functions come in `order`, each behind those that it calls."""
    found: list[Diagnostic] = []
    run_under: dict[str, str | None] = {}  # of each function its own profile, else the loosest among what it calls
    for name in order:
        function = module.functions[name]
        calls = [each for each in function.body.walk() if _named(each) in run_under]
        own = function.attributes.get("numerics_profile")
        for each in calls:
            callee, ours = _named(each), each.attributes.get("numerics_profile", own)
            try:
                _refuse_looser(callee, run_under[callee], None if ours is None else str(ours))
            except Refusal as refusal:
                found.append(diagnostic_of(refusal, each.location))
        if not function.kernel:  # what is launched runs under a policy of its own
            run_under[name] = str(own) if own is not None else loosest(run_under[_named(each)] for each in calls)
    return found


def refuse_narrow_accumulation(operation: Operation, profile: str | None) -> None:
    """Refuse an accumulator narrower than the canon's unless the profile is fast; no profile means strict.

    Raises `Refusal`.
    """
    accumulator = getattr(operation, "accum", None)
    if profile == "fast" or not isinstance(accumulator, DType):
        return
    operands = [dtype_of(type_) for _, type_ in operation.operand_types]
    if not operands or operands[0] is None:
        return  # beside a fragment it says for what, not in what is added
    canonical = operands[0].accumulator
    require(
        not _is_narrower(accumulator, canonical),
        "numerics",
        f"accumulates in {accumulator}, which is narrower than {canonical}",
        f"accum={canonical}, or numerics_profile fast",
        "LANG-11-13",
        "leave accum out",
    )


def _refuse_looser(name: str, theirs: str | None, ours: str | None) -> None:
    """Raise `Refusal` where a function of profile `ours` calls `name`, which runs under a looser one."""
    if ours not in PROFILES or theirs not in PROFILES:
        return
    require(
        PROFILES.index(theirs) >= PROFILES.index(ours),
        "numerics",
        f"a {ours} function calls {name}, which is {theirs}",
        "callees at least as strict as their callers",
        "LANG-11-16",
        f"declare {name} as {ours}",
    )


def _is_narrower(dtype: DType, canonical: DType) -> bool:
    """Whether `dtype` is of the kind of `canonical` and lacks some of its values."""
    if dtype.kind != canonical.kind:
        return False
    if dtype.kind == "int":
        return dtype.bits < canonical.bits
    stored = dtype.storage
    return stored.fraction_bits < canonical.fraction_bits or stored.exponent_bits < canonical.exponent_bits


def _named(instruction: Instruction) -> str:
    operation = instruction.operation
    return str(getattr(operation, operation.calls)) if operation.calls else ""
