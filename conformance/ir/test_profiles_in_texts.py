"""Numerics profiles in texts of Graph IR: what a verifier refuses wherever the IR comes from (sections 10 and 11)."""

import pytest

from tessera_conformance.chapters.ir.kit.graph_texts import MATRIX as T
from tessera_conformance.chapters.ir.kit.graph_texts import branch, func, module, returns, softmax, yields
from tessera_conformance.chapters.ir.kit.programs import accepts_if
from tessera_conformance.marks import clause, feature

pytestmark = feature("graph-ir-text")

STATED = (("strict", ""), ("deterministic", ""), ("fast", "strict"), ("fast", "deterministic"), ("", "strict"))
"""Profiles of a function and of the operation itself, which wins (AMB-LANG-111), that keep the accumulator."""
FREE = (("fast", ""), ("strict", "fast"), ("deterministic", "fast"), ("", "fast"))
"""Those that do not."""


def product(dtype, accumulator, profile, own):
    """A function that multiplies matrices, accumulating in some dtype."""
    attributes = f'accum = "{accumulator}"' + (f', numerics_profile = "{own}"' if own else "")
    type_ = f"tensor<2x2x{dtype}>"
    multiply = f'%p = "tessera.graph.matmul"(%a, %a) {{{attributes}}} : ({type_}, {type_}) -> {type_}'
    leave = f'"tessera.graph.return"(%p) : ({type_}) -> ()'
    return module(func(multiply, leave, takes=f"%a: {type_}", gives=type_, profile=profile))


@clause("LANG-11-13", "LANG-10-01")
@pytest.mark.parametrize(
    ("dtype", "canonical", "narrower"),
    [("bf16", "fp32", "bf16"), ("bf16", "fp32", "fp16"), ("fp64", "fp64", "fp32"), ("int8", "int32", "int16")],
)
@pytest.mark.parametrize(("profile", "own"), [*STATED, *FREE], ids=lambda profile: profile or "none")
def test_an_accumulator_is_as_wide_as_the_profile_asks(impl, check, dtype, canonical, narrower, profile, own):
    """The reference arithmetic's is accepted under every profile, a narrower one under fast alone (AMB-LANG-69)."""
    check.accepts(impl.language.verify_ir(text=product(dtype, canonical, profile, own)))
    narrow = impl.language.verify_ir(text=product(dtype, narrower, profile, own))
    accepts_if(check, (profile, own) in FREE, narrow, category=("numerics", "types"))


@clause("LANG-11-13")
def test_an_accumulator_in_a_branch_is_looked_at_too(impl, check):
    """The second of two regions, behind one that is as it should be (AMB-LANG-69)."""
    for accumulator in ("fp32", "bf16"):
        sums = [
            softmax("%a", f"%{name}", f' {{accum = "{dtype}"}}') for name, dtype in (("x", "fp32"), ("y", accumulator))
        ]
        choice = branch([sums[0], yields("%x")], [sums[1], yields("%y")])
        text = module(func(choice, returns("%r"), profile="strict"))
        accepts_if(check, accumulator == "fp32", impl.language.verify_ir(text=text), category=("numerics", "types"))


def calling(*profiles):
    """Functions of these profiles, of which each calls the next, and the last nothing; the callees come first."""
    members = []
    for number, profile in enumerate(profiles):
        inner = f'%r = "tessera.graph.call"(%a) {{callee = "f{number + 1}"}} : ({T}) -> {T}'
        body = [inner, returns("%r")] if number + 1 < len(profiles) else [returns("%a")]
        members.insert(0, func(*body, takes=f"%a: {T}", name=f"f{number}", profile=profile))
    return module(*members)


@clause("LANG-11-16")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        (("fast", "strict"), ("strict", "fast")),
        (("deterministic", "strict"), ("strict", "deterministic")),
        (("fast", "deterministic"), ("deterministic", "fast")),
        (("strict", "", "strict"), ("strict", "", "fast")),
        (("", "fast"), ("deterministic", "", "", "fast")),
    ],
    ids=lambda profiles: "-calls-".join(profile or "none" for profile in profiles),
)
def test_a_callee_is_as_strict_as_its_caller(impl, check, legal, illegal):
    """Two declared profiles may not contradict each other, also through others (AMB-LANG-69, AMB-LANG-128)."""
    check.accepts(impl.language.verify_ir(text=calling(*legal)))
    check.rejects(impl.language.verify_ir(text=calling(*illegal)), category=("numerics", "types"))


@clause("LANG-11-16")
def test_a_call_with_a_profile_of_its_own_counts(impl, check):
    """The operations of a block have its profile in IR, which takes precedence over the function's (AMB-LANG-69)."""
    for own, legal in (("fast", True), ("deterministic", False)):
        call = f'%r = "tessera.graph.call"(%a) {{callee = "g", numerics_profile = "{own}"}} : ({T}) -> {T}'
        caller = func(call, returns("%r"), takes=f"%a: {T}", profile="strict" if legal else "fast")
        text = module(caller, func(returns("%a"), takes=f"%a: {T}", name="g", profile="fast"))
        accepts_if(check, legal, impl.language.verify_ir(text=text), category=("numerics", "types"))
