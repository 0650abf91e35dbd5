"""The numerics policy of a context (runtime specification, 4.7 and 6)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tessera_conformance.chapters.runtime.kit.long_reductions import (
    FUNCTIONS,
    LARGE,
    LAUNCHED_FUNCTIONS,
    launched_kernel,
    question_of,
    vectors_of,
)
from tessera_conformance.chapters.runtime.kit.mesh_session import judge_contexts, opened
from tessera_conformance.chapters.runtime.kit.policies import FAST, LEVELS, POLICY_FIELDS, STRICT, set_policy
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle import bounds
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import judge_outputs

DETERMINISTIC_LAUNCH = 1
"""TESS_LAUNCH_DETERMINISTIC."""


def context_with(impl, check, policy=None):
    """A new context, under a policy where one is given."""
    context = check.returns(impl.runtime.tessInit())["context"]
    if policy is not None:
        set_policy(impl, check, context, policy)
    return context


def evaluate(impl, check, operation, inputs, attributes, **under):
    """The one result of an operation."""
    observation = impl.numerics.evaluate(operation=operation, inputs=inputs, attributes=attributes, **under)
    outputs = check.returns(observation)["outputs"]
    check.equal(len(outputs), 1, "the number of results")
    return outputs[0]


@clause("RT-04.7-08", "RT-04.7-10")
@pytest.mark.parametrize("bits", range(16))
def test_the_policy_that_was_set_is_the_one_that_is_read(impl, check, bits):
    """Every combination of the four switches is accepted and read back (AMB-RT-47)."""
    policy = {name: bits >> place & 1 for place, name in enumerate(POLICY_FIELDS)}
    context = check.returns(impl.runtime.tessInit(), "tessInit succeeds")["context"]
    set_policy(impl, check, context, policy)
    check.equal(check.returns(impl.runtime.tessGetNumericsPolicy(context=context))["policy"], policy, "the policy")


@clause("RT-04.7-08")
def test_the_last_policy_counts_and_only_for_its_context(impl, check):
    """A second policy replaces the first; other contexts keep their own, set or not."""
    first, second, unset = (context_with(impl, check, policy) for policy in (FAST, FAST, None))
    judge_contexts(check, first, second, unset)
    before = impl.runtime.tessGetNumericsPolicy(context=unset)
    check.returns(impl.runtime.tessSetNumericsPolicy(context=first, policy=FAST))
    between = impl.runtime.tessGetNumericsPolicy(context=unset)
    check.returns(impl.runtime.tessSetNumericsPolicy(context=second, policy=FAST))
    for after in (between, impl.runtime.tessGetNumericsPolicy(context=unset)):
        check.true(after == before, "a context on which none was set answers as before (AMB-RT-33)", after)
    check.returns(impl.runtime.tessSetNumericsPolicy(context=first, policy=STRICT))
    check.equal(check.returns(impl.runtime.tessGetNumericsPolicy(context=first))["policy"], STRICT, "the last policy")
    check.equal(check.returns(impl.runtime.tessGetNumericsPolicy(context=second))["policy"], FAST, "another context's")


@clause("RT-04.7-08")
def test_a_policy_stays_while_other_contexts_come_and_go(impl, check):
    """A context that is initialized, gets another policy and is shut down leaves the one that was set before it."""
    first = context_with(impl, check, FAST)
    second = context_with(impl, check)
    judge_contexts(check, first, second)

    def policy():
        return check.returns(impl.runtime.tessGetNumericsPolicy(context=first), "tessGetNumericsPolicy")["policy"]

    check.equal(policy(), FAST, "the policy once another context is initialized")
    set_policy(impl, check, second, STRICT)
    check.returns(impl.runtime.tessShutdown(context=second), "tessShutdown succeeds")
    check.equal(policy(), FAST, "the policy once the other context is shut down")


@clause("RT-04.7-10")
@pytest.mark.parametrize("name", POLICY_FIELDS)
@pytest.mark.parametrize("value", [-1, 2, 255])
def test_a_switch_that_is_neither_0_nor_1_is_refused(impl, check, name, value):
    """Other values are TESS_ERR_INVALID_VALUE, and no switch of the policy changes (AMB-RT-47)."""
    context = context_with(impl, check, STRICT)
    opposite = {switch: 1 - setting for switch, setting in STRICT.items()}
    for others in (STRICT, opposite):
        answer = impl.runtime.tessSetNumericsPolicy(context=context, policy=others | {name: value})
        check.status(answer, "TESS_ERR_INVALID_VALUE")
        policy = check.returns(impl.runtime.tessGetNumericsPolicy(context=context))["policy"]
        check.equal(policy, STRICT, "the policy")


@feature("operation-access", "reductions")
@clause("RT-04.7-02")
@pytest.mark.parametrize("count", [64, 1000, 4096])
def test_stable_reductions_keep_the_error_small(impl, check, count):
    """A pairwise or a compensated sum errs by at most ceil(log2 n) + 1 units of roundoff of the sum of magnitudes.

    4,096 times 0.1 after a large number: adding from the left loses about a hundred times as much (AMB-RT-24).
    """
    context = context_with(impl, check, STRICT)
    tenth = Fraction(13421773, 1 << 27)
    x = tensor_of("fp32", [float(tenth)] * count)
    actual = evaluate(impl, check, "sum", [x], {"axis": 0}, context=context)
    exact = tenth * count
    steps = (count - 1).bit_length() + 1
    check.within(actual, [exact], [exact * steps / (1 << 24)], f"{steps} roundings of a pairwise or Kahan sum")


@feature("operation-access")
@clause("RT-04.7-03", "RT-06-03", "RT-06-04")
def test_deterministic_collectives_give_the_same_bits_on_every_run(impl, check):
    """Eight ranks, a sum whose bits depend on its order, ten runs."""
    context = context_with(impl, check, STRICT)
    inputs = [counted("fp32", (64,), seed=301 + rank, exponents=(-12, 12)) for rank in range(8)]
    first = check.returns(impl.collectives.all_reduce(inputs=inputs, op="sum", context=context))["outputs"]
    check.equal(len(first), len(inputs), "the number of ranks that get a result")
    for _ in range(9):
        again = check.returns(impl.collectives.all_reduce(inputs=inputs, op="sum", context=context))["outputs"]
        for one, other in zip(again, first, strict=True):
            check.bits(one, other, "the same bits on another run")


@feature("operation-access")
@clause("RT-04.7-10", "RT-06-09")
@pytest.mark.parametrize("operation", [pytest.param("sum", marks=feature("reductions")), "matmul", "softmax"])
def test_a_deterministic_launch_gives_the_bits_of_a_deterministic_policy(impl, check, operation):
    """Under a fast policy the flag does what its switch would, and under a strict one it changes nothing (AMB-RT-46).

    The flag demands determinism and nothing else: the other switches stay as the policy has them.
    """
    x = counted("fp32", (33, 33), seed=311, exponents=(-8, 8))
    inputs, attributes = ([x, x], {}) if operation == "matmul" else ([x], {"axis": 1})
    for policy in (FAST, STRICT):
        switched = context_with(impl, check, policy | {"deterministic": 1})
        expected = evaluate(impl, check, operation, inputs, attributes, context=switched)
        flagged = context_with(impl, check, policy)
        for _ in range(3):
            launched = evaluate(impl, check, operation, inputs, attributes, context=flagged, flags=DETERMINISTIC_LAUNCH)
            check.bits(launched, expected, "the bits of the deterministic policy")


@feature("operation-access")
@vectors_of(FUNCTIONS)
@clause("RT-04.7-05")
def test_without_fast_math_functions_keep_to_their_accuracy(impl, check, vector):
    """With allowFastMath at 0 no result is further off than the accuracy that is declared (AMB-LANG-136)."""
    context = context_with(impl, check, strictest(impl))
    question = question_of(vector)
    actual = evaluate(impl, check, question.operation, list(question.inputs), question.arguments, context=context)
    judge_outputs(impl, check, vector, [actual])


@vectors_of(LAUNCHED_FUNCTIONS)
@clause("RT-04.7-05")
def test_without_fast_math_launched_functions_keep_to_their_accuracy(impl, check, vector):
    """Elementary functions in kernels keep to their accuracy without fast math."""
    session = opened(impl, check)
    session.set_policy(strictest(impl))
    judge_outputs(impl, check, vector, [launched_kernel(session, vector)])


def strictest(impl):
    """The policy of the level of the run, or of deterministic at fast."""
    return STRICT if impl.level == "strict" else LEVELS["deterministic"]


@feature("operation-access", "reductions")
@clause("RT-04.7-05")
def test_without_fast_math_subnormals_are_kept(impl, check):
    """A subnormal survives a sum with +0; at deterministic it may be declared to be flushed, at fast it may be."""
    context = context_with(impl, check, STRICT)
    tiny = [2.0**-149, 2.0**-130, -(2.0**-127)]
    x = tensor_of("fp32", [tiny, [0.0] * 3])
    actual = evaluate(impl, check, "sum", [x], {"axis": 0}, context=context)
    if impl.level == "fast" or (impl.level == "deterministic" and impl.arithmetic.flushes):
        check.enclosed(actual, bounds.enclose("oracle.sum", [x], {"axis": 0}), "subnormals, kept or flushed")
    else:
        check.bits(actual, tensor_of("fp32", tiny), "subnormals")


@vectors_of(LARGE)
@clause("RT-04.7-05")
def test_without_fast_math_a_large_launch_keeps_to_the_arithmetic_of_its_dtype(impl, check, vector):
    """Products past 32 in all three extents, and long sums, where libraries have faster kernels."""
    session = opened(impl, check)
    session.set_policy(strictest(impl))
    judge_outputs(impl, check, vector, [launched_kernel(session, vector)])


@feature("operation-access")
@vectors_of(LARGE)
@clause("RT-04.7-05")
def test_without_fast_math_a_large_operation_keeps_to_the_arithmetic_of_its_dtype(impl, check, vector):
    """The same operations, evaluated under a context."""
    context = context_with(impl, check, strictest(impl))
    question = question_of(vector)
    actual = evaluate(impl, check, question.operation, list(question.inputs), question.arguments, context=context)
    judge_outputs(impl, check, vector, [actual])


@feature("operation-access", "fast-math", "reductions")
@clause("RT-04.7-06")
def test_with_fast_math_the_result_stays_within_the_bound(impl, check):
    """allowFastMath = 1 loosens the bits, not the bound of the profile fast."""
    context = context_with(impl, check, FAST)
    x = counted("fp32", (16, 100), seed=313, exponents=(-6, 6))
    actual = evaluate(impl, check, "sum", [x], {"axis": 1}, context=context)
    check.enclosed(actual, bounds.enclose("oracle.sum", [x], {"axis": 1}), "the bound of any order")
