"""Contexts and their policies (runtime spec 4.1, 4.7; AMB-RT-46, AMB-RT-48)."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_reference.abi import Failure, NumericsPolicy, Status
from tessera_reference.runtime.api import Runtime
from tessera_reference.runtime.contexts import Context, Environment, ModulePolicy

LOOSE = {"stableReductions": 0, "deterministic": 0, "rngStateless": 0, "allowFastMath": 1}


def test_the_default_policy_is_the_strict_one() -> None:
    runtime = Runtime()
    _, context = runtime.tessInit()
    assert runtime.tessGetNumericsPolicy(context) == (Status.TESS_OK, NumericsPolicy(1, 1, 1, 0))


def test_each_context_has_its_own_policy() -> None:
    runtime = Runtime()
    (_, first), (_, second) = runtime.tessInit(), runtime.tessInit()
    assert runtime.tessSetNumericsPolicy(first, LOOSE) is Status.TESS_OK
    assert runtime.tessGetNumericsPolicy(first)[1] == NumericsPolicy(0, 0, 0, 1)
    assert runtime.tessGetNumericsPolicy(second)[1] == NumericsPolicy()


@pytest.mark.parametrize("field", ["stableReductions", "deterministic", "rngStateless", "allowFastMath"])
@pytest.mark.parametrize("value", [-1, 2, 1 << 40, True, None, "1"])
def test_a_switch_takes_0_and_1_only(field: str, value: Any) -> None:
    with pytest.raises(Failure, match=f"{field} is {value!r}; expected 0 or 1") as caught:
        NumericsPolicy(**{field: value})
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_a_refused_policy_leaves_the_old_one() -> None:
    runtime = Runtime()
    _, context = runtime.tessInit()
    runtime.tessSetNumericsPolicy(context, LOOSE)
    for policy in ({**LOOSE, "deterministic": 2}, {"deterministic": 1}, None, 5):
        assert runtime.tessSetNumericsPolicy(context, policy) is Status.TESS_ERR_INVALID_VALUE  # type: ignore[arg-type]
    assert runtime.tessGetNumericsPolicy(context)[1] == NumericsPolicy(0, 0, 0, 1)


def test_a_context_that_was_shut_down_is_refused_and_its_handle_not_reused() -> None:
    runtime = Runtime()
    _, context = runtime.tessInit()
    assert runtime.tessShutdown(context) is Status.TESS_OK
    assert runtime.tessShutdown(context) is Status.TESS_ERR_NOT_INITIALIZED
    assert runtime.tessGetNumericsPolicy(context) == (Status.TESS_ERR_NOT_INITIALIZED, None)
    assert runtime.tessInit()[1] != context


def test_flag_before_context_before_module_before_environment() -> None:
    module = NumericsPolicy(deterministic=0, stableReductions=0)
    context = Context(1, Environment(deterministic=False))
    assert context.governing() == NumericsPolicy(deterministic=0)
    assert context.governing(module) == module
    context.policy = NumericsPolicy(deterministic=0, rngStateless=0)
    assert context.governing(module) == context.policy
    flagged = NumericsPolicy(deterministic=1, rngStateless=0)
    assert context.governing(module, deterministic_launch=True) == flagged


def test_forbidden_fast_math_is_refused_when_it_is_asked_for() -> None:
    runtime = Runtime()
    _, context = runtime.tessInit()
    assert runtime.tessxSetModulePolicy(context, ModulePolicy(forbid_fast_math=True)) is Status.TESS_OK
    assert runtime.tessSetNumericsPolicy(context, LOOSE) is Status.TESS_ERR_DETERMINISM_VIOLATION
    assert runtime.tessGetNumericsPolicy(context)[1] == NumericsPolicy()


def test_shutting_a_context_down_ends_what_it_has_and_nothing_else() -> None:
    runtime = Runtime()
    (_, first), (_, second) = runtime.tessInit(), runtime.tessInit()
    (_, mine), (_, other) = runtime.tessProfilerStart(first), runtime.tessProfilerStart(second)
    runtime.tessShutdown(first)
    assert [handle for handle, _ in runtime.handles.live("profiler")] == [other]
    assert mine != other
