"""The flags of a launch: each is known, they combine, and one demands determinism (runtime specification, 6)."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    CAPTURE,
    COUNT,
    DETERMINISTIC,
    LOW_LATENCY,
    PERSISTENT,
    MeshSession,
    opened,
)
from tessera_conformance.chapters.runtime.kit.policies import LEVELS, STRICT
from tessera_conformance.chapters.runtime.kit.readings import rejected, wrong_configuration
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.reductions import sum_
from tessera_conformance.protocol import Observation, Rejected
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import Question, judge_declared

NAMES = {DETERMINISTIC: "deterministic", CAPTURE: "capture", PERSISTENT: "persistent", LOW_LATENCY: "low latency"}
UNSUPPORTED = "TESS_ERR_UNSUPPORTED"
FAST = LEVELS["fast"]

FLAG_CLAUSES = {CAPTURE: "RT-06-16", PERSISTENT: "RT-06-17", LOW_LATENCY: "RT-06-18"}
SINGLE = [pytest.param(flag, marks=clause(of), id=NAMES[flag]) for flag, of in FLAG_CLAUSES.items()]


def flagged(session: MeshSession, pointer: int, flags: int) -> Observation:
    """Return the answer of a launch with these flags; it would append the digit 7."""
    return session.launching(session.kernel("digit"), packed(("int32", 7), ("ptr", pointer)), flags=flags)


def is_known(check, answer: Observation, flags: int) -> bool:
    """A launch with defined flags is accepted, or refused as unsupported where one of them may be; whether it was."""
    refusable = bool(flags & ~DETERMINISTIC)
    code = answer.code if isinstance(answer, Rejected) else ""
    if code == UNSUPPORTED and refusable:
        check.status(answer, UNSUPPORTED)
        return False
    check.returns(answer, f"a launch with the flags {flags:#x} succeeds")
    return True


# Each flag


@pytest.mark.parametrize("flag", SINGLE)
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_defined_flag_is_no_invalid_value(impl, check, flag, ranks):
    """The launch is accepted, or refused with TESS_ERR_UNSUPPORTED (AMB-RT-11, AMB-RT-65, AMB-RT-144)."""
    session = opened(impl, check, ranks=ranks)
    is_known(check, flagged(session, session.upload(bytes(BYTES)), flag), flag)


@pytest.mark.parametrize("flag", [SINGLE[1], SINGLE[2]])
def test_an_accepted_launch_has_its_result(impl, check, flag):
    """Persistent or in a hurry, it computes what it computes without the flag; refused, it computes nothing."""
    session = opened(impl, check)
    pointer = session.upload(elements("int32", *range(COUNT)))
    accepted = is_known(check, flagged(session, pointer, flag), flag)
    session.synchronize()
    expected = [10 * place + 7 if accepted else place for place in range(COUNT)]
    check.equal(session.integers(pointer), expected, "what the launch left")


@clause("RT-06-16", "RT-06-19")
def test_a_captured_launch_does_not_capture_other_streams(impl, check):
    """Another stream of the mesh works on, if the launch is accepted or refused (AMB-RT-11, AMB-RT-86)."""
    session = opened(impl, check)
    is_known(check, flagged(session, session.upload(bytes(BYTES)), CAPTURE), CAPTURE)
    other = session.another_stream()
    pointer = other.upload(elements("int32", *range(COUNT)))
    check.returns(flagged(other, pointer, 0), "a launch without flags succeeds")
    check.equal(other.integers(pointer), [10 * place + 7 for place in range(COUNT)])


# Combinations


@clause("RT-06-19")
@pytest.mark.parametrize("flags", range(16))
def test_flags_combine(impl, check, flags):
    """Every combination is defined; where each flag alone is accepted, so are all together (AMB-RT-145)."""
    session = opened(impl, check)
    taken = []
    for flag in NAMES:
        if flags & flag:
            taken.append(is_known(check, flagged(session.another_stream(), session.upload(bytes(BYTES)), flag), flag))
            session.synchronize()
    fresh = opened(impl, check)
    pointer = fresh.upload(elements("int32", *range(COUNT)))
    fresh.synchronize()
    together = flagged(fresh, pointer, flags)
    both = all(flags & flag for flag in (CAPTURE, PERSISTENT)) and all(taken)
    check.reading("AMB-RT-145", "persistent launches cannot be captured", both and rejected(together, UNSUPPORTED))
    accepted = is_known(check, together, flags)
    check.equal(accepted, all(taken), "all together are accepted where each is")
    if accepted and not flags & CAPTURE:
        fresh.synchronize()
        check.equal(fresh.integers(pointer), [10 * place + 7 for place in range(COUNT)], "what the launch left")


@clause("RT-06-19")
@pytest.mark.parametrize("bit", [4, 5, 7, 16, 30, 31])
@pytest.mark.parametrize("others", [0, DETERMINISTIC, LOW_LATENCY])
def test_an_undefined_bit_is_refused(impl, check, bit, others):
    """An undefined bit is refused, alone and with defined ones; the launch does not run (AMB-RT-10)."""
    session = opened(impl, check)
    pointer = session.upload(elements("int32", *range(COUNT)))
    answer = flagged(session, pointer, others | 1 << bit)
    wrong_configuration(session, {"flags": others | 1 << bit}, answer)
    check.status(answer, "TESS_ERR_INVALID_VALUE")
    check.equal(session.integers(pointer), list(range(COUNT)), "the memory")


@feature("descriptor-access")
@clause("RT-06-19", "RT-06-09")
@pytest.mark.parametrize("flags", [flags for flags in range(16) if not flags & (CAPTURE | PERSISTENT)])
def test_each_flag_of_a_combination_counts(impl, check, flags):
    """A launch with that bit is deterministic, whatever other bits are set."""
    session = opened(impl, check)
    session.set_policy(FAST)
    if is_known(check, flagged(session, session.upload(bytes(BYTES)), flags), flags):
        carried = session.ask("tessxDescriptors", stream=session.stream)["descriptors"]
        check.equal(carried[-1]["policy"]["deterministic"], flags & DETERMINISTIC, "whether it is deterministic")


# Determinism


SUMMING = """module m {
  kernel sums(x: tensor<16x33xfp32>, y: tensor<16xfp32>) { y = op.sum(x) @{axis=1}; }
}
"""


def sums(session: MeshSession, kernel: int, x: int, flags: int) -> Tensor:
    """The sums of the rows, as a launch with these flags has them."""
    y = session.upload(bytes(64))
    session.launch(kernel, packed(("ptr", x), ("ptr", y)), flags=flags)
    return Tensor("fp32", (16,), session.download(y, 64))


def under(session: MeshSession, **switches: int) -> None:
    """Set the policy: `FAST` but for these switches."""
    session.set_policy(FAST | switches)


@feature("reductions")
@clause("RT-06-09", "RT-06-04", "RT-04.7-10")
def test_the_flag_makes_a_launch_deterministic(impl, check):
    """Under a fast policy it has the bits of the deterministic policy, on every run (AMB-RT-46)."""
    session = opened(impl, check)
    x = session.upload(counted("fp32", (16, 33), seed=401, exponents=(-8, 8)).data)
    kernel = session.kernel("sums", SUMMING)
    under(session, deterministic=1)
    expected = sums(session, kernel, x, 0)
    under(session)
    for turn in range(6):
        for _ in range(turn % 3):
            sums(session, kernel, x, 0)
        check.bits(sums(session, kernel, x, DETERMINISTIC), expected, "the bits of the deterministic policy")


@feature("reductions")
@clause("RT-06-04", "RT-03-01", "RT-04.7-10")
@pytest.mark.parametrize("stable", [0, 1])
def test_reductions_are_the_same_on_every_run(impl, check, stable):
    """With deterministic at 1 the tree of a launched reduction is fixed, and is the one that is declared."""
    session = opened(impl, check)
    given = counted("fp32", (16, 33), seed=402, exponents=(-8, 8))
    x, kernel = session.upload(given.data), session.kernel("sums", SUMMING)
    under(session, deterministic=1, stableReductions=stable, allowFastMath=0)
    first = sums(session, kernel, x, 0)
    for _ in range(5):
        check.bits(sums(session, kernel, x, 0), first, "the same bits on another run")
    if impl.level == "strict":
        check.bits(first, sum_(given, 1), "strict: the canonical tree")
    if impl.level == "deterministic" and not stable:
        judge_declared(impl, check, Question("sum", [given], {"axis": 1}), first)


MULTIPLYING = """module m {
  kernel product(a: tensor<7x33xfp32>, b: tensor<33x5xfp32>, c: tensor<7x5xfp32>) { c = a @ b; }
}
"""


@clause("RT-06-04", "RT-03-01")
def test_a_launched_product_has_the_declared_order(impl, check):
    """With deterministic at 1 every element is added in the order that is declared for a product, on every run."""
    session = opened(impl, check)
    under(session, deterministic=1, allowFastMath=0)
    given = [counted("fp32", shape, seed=403, exponents=(-8, 8)) for shape in ((7, 33), (33, 5))]
    pointers, kernel = [session.upload(tensor.data) for tensor in given], session.kernel("product", MULTIPLYING)
    for _ in range(2):
        result = session.upload(bytes(4 * 35))
        session.launch(kernel, packed(*(("ptr", pointer) for pointer in (*pointers, result))))
        actual = Tensor("fp32", (7, 5), session.download(result, 4 * 35))
        if impl.level == "fast":
            check.enclosed(actual, bounds.enclose("oracle.matmul", given, {}), "the product")
        else:
            judge_declared(impl, check, Question("matmul", given, {}), actual)


@feature("descriptor-access")
@clause("RT-06-09")
@pytest.mark.parametrize("policy", [FAST, STRICT, FAST | {"deterministic": 1}], ids=["fast", "strict", "deterministic"])
def test_the_flag_counts_for_one_launch(impl, check, policy):
    """The flagged launch is deterministic under any policy; those before and after it follow the policy."""
    session = opened(impl, check)
    session.set_policy(policy)
    for flags in (0, DETERMINISTIC, 0, DETERMINISTIC, DETERMINISTIC, 0):
        session.launch(session.kernel("nothing"), flags=flags)
    carried: list[dict[str, Any]] = session.ask("tessxDescriptors", stream=session.stream)["descriptors"]
    expected = [policy, policy | {"deterministic": 1}]
    actual = [descriptor["policy"] for descriptor in carried]
    check.equal(actual, [expected[place] for place in (0, 1, 0, 1, 1, 0)], "the policies of the launches")
    current = session.ask("tessGetNumericsPolicy", context=session.context)["policy"]
    check.equal(current, policy, "the policy of the context")


@feature("descriptor-access")
@clause("RT-04.7-10")
def test_a_policy_governs_what_is_submitted_afterwards(impl, check):
    """Launches and collectives carry the policy that was set when they were queued (AMB-RT-48)."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("nothing"), session.upload(bytes(BYTES))
    policies = [FAST, STRICT, FAST | {"stableReductions": 1}, STRICT | {"rngStateless": 0}]
    for policy in policies:
        session.set_policy(policy)
        session.launch(kernel)
        session.all_reduce(pointer)
    last = STRICT | {"deterministic": 0, "rngStateless": 0}
    session.set_policy(last)
    carried = session.ask("tessxDescriptors", stream=session.stream)["descriptors"]
    actual = [descriptor["policy"] for descriptor in carried]
    check.reading("AMB-RT-48", "at execution time", actual == [last] * 2 * len(policies))
    check.equal(actual, [expected_policy for expected_policy in policies for _ in range(2)], "the policies")
    session.synchronize()
