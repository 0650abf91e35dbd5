"""Contexts and their policies (runtime spec 4.1, 4.7)."""

from __future__ import annotations

import pytest

from tessera_reference.abi import Failure, NumericsPolicy, Status
from tessera_reference.runtime import Contexts


def test_the_default_policy_is_the_strict_one() -> None:
    contexts = Contexts()
    assert contexts.policy(contexts.init()) == NumericsPolicy(1, 1, 1, 0)


def test_each_context_has_its_own_policy() -> None:
    contexts = Contexts()
    first, second = contexts.init(), contexts.init()
    contexts.set_policy(first, NumericsPolicy(0, 0, 0, 1))
    assert contexts.policy(first) == NumericsPolicy(0, 0, 0, 1)
    assert contexts.policy(second) == NumericsPolicy()


@pytest.mark.parametrize("field", ["stableReductions", "deterministic", "rngStateless", "allowFastMath"])
@pytest.mark.parametrize("value", [-1, 2, 1 << 40])
def test_a_switch_takes_0_and_1_only(field: str, value: int) -> None:
    with pytest.raises(Failure, match=f"{field} is {value}; expected 0 or 1") as caught:
        NumericsPolicy(**{field: value})
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_a_context_that_was_shut_down_is_refused_and_its_handle_not_reused() -> None:
    contexts = Contexts()
    context = contexts.init()
    contexts.shutdown(context)
    for call in (contexts.shutdown, contexts.policy):
        with pytest.raises(Failure) as caught:
            call(context)
        assert caught.value.status is Status.TESS_ERR_NOT_INITIALIZED
    assert contexts.init() != context


@pytest.mark.parametrize(("policy", "permitted"), [((1, 0, 1, 1), True), ((1, 0, 1, 0), False), ((1, 1, 1, 1), False)])
def test_a_lossy_wire_needs_fast_math_and_no_determinism(policy: tuple[int, int, int, int], permitted: bool) -> None:
    assert NumericsPolicy(*policy).permits_lossy_wire is permitted
