"""Stable formulations in launches: where a toggle of the descriptor is on, no large number overflows (spec 11).

Softmax and log-sum-exp subtract the maximum, and clamp keeps NaN (AMB-RT-76). A toggle is on where nothing else is set,
under every policy, flag and descriptor, in replays, and in the softmax of an attention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import packed
from tessera_conformance.chapters.runtime.kit.graphs import instantiated, replay
from tessera_conformance.chapters.runtime.kit.mesh_session import CAPTURE, DETERMINISTIC, MeshSession, opened
from tessera_conformance.chapters.runtime.kit.policies import FAST, LOOSE, STRICT
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.movement import clamp
from tessera_conformance.oracle.reductions import logsumexp, softmax
from tessera_conformance.tensors import Tensor

LARGE = {"fp16": 2.0**15, "bf16": 2.0**126, "fp32": 2.0**127, "fp64": 2.0**1023}
"""Near the largest number of each dtype."""


def rows(dtype: str) -> Tensor:
    """Rows whose exponentials overflow, vanish or both, though softmax and log-sum-exp are ordinary numbers."""
    large = LARGE[dtype]
    few = [800.0, 792.0, 796.0, 800.0]
    lines = [few, [-value for value in few], [large, large, 0.0, -large], [-large] * 4, [0.0, 1.0, -1.0, 2.0]]
    return tensor_of(dtype, lines)


@dataclass(frozen=True)
class Formulation:
    """A kernel's computation, the shape of its result, the exact result, and the bound of its error."""

    body: str
    result: tuple[int, ...]
    exact: Callable[[Tensor], Tensor]
    bound: str

    def source(self, dtype: str) -> str:
        """The kernel over five rows of four."""
        shape = "x".join(map(str, self.result))
        return f"module m {{ kernel k(x: tensor<5x4x{dtype}>, y: tensor<{shape}x{dtype}>) {{ y = {self.body}; }} }}"

    def size(self, x: Tensor) -> int:
        """The bytes of the result of an operand."""
        return len(x.data) // x.size * prod(self.result)


SOFTMAX = Formulation("op.softmax(x) @{axis=1}", (5, 4), lambda x: softmax(x, 1), "oracle.softmax")
LOG_SUM_EXP = Formulation("op.logsumexp(x) @{axis=1}", (5,), lambda x: logsumexp(x, 1), "oracle.logsumexp")

FORMULATIONS = [
    pytest.param(SOFTMAX, marks=clause("RT-11-05"), id="softmax"),
    pytest.param(LOG_SUM_EXP, marks=[clause("RT-11-06"), feature("reductions")], id="log-sum-exp"),
]

Given = dict[str, Any]
WHERE: dict[str, Given] = {
    "by default": {},
    "fast policy": {"policy": FAST},
    "loose policy": {"policy": LOOSE},
    "fast policy, deterministic launch": {"policy": FAST, "flags": DETERMINISTIC},
    "toggles set": {"policy": FAST, "descriptor": {"stable": {"softmax": True, "log_sum_exp": True, "clamp": True}}},
    "another field set": {"policy": STRICT, "descriptor": {"seed": 3}},
}


def launched(session: MeshSession, source: str, operands: Sequence[Tensor], size: int, given: Given) -> bytes:
    """Return a kernel's result from its operands, under a policy, flags and a descriptor."""
    if "policy" in given:
        session.set_policy(given["policy"])
    if "descriptor" in given:
        session.ask("tessxSetDescriptor", context=session.context, descriptor=given["descriptor"])
    pointers = [*(session.upload(operand.data) for operand in operands), session.upload(bytes(size))]
    arguments = packed(*(("ptr", pointer) for pointer in pointers))
    session.launch(session.kernel("k", source), arguments, flags=given.get("flags", 0))
    return session.download(pointers[-1], size)


def judge_stable(session: MeshSession, of: Formulation, x: Tensor, actual: Tensor, strict: bool) -> None:
    """The bits of the reference under a strict policy at the strict level, else within the bound of any order."""
    if strict and session.impl.level == "strict":
        session.check.bits(actual, of.exact(x), "the stable result")
    else:
        session.check.enclosed(actual, bounds.enclose(of.bound, [x], {"axis": 1}), "the bound of a stable result")


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("given", WHERE.values(), ids=WHERE)
def test_a_launch_is_stable_wherever_the_toggle_is_on(impl, check, formulation, given):
    """Rows of large numbers, with the policy, flags and descriptor of the case."""
    session = opened(impl, check)
    x = rows("fp32")
    data = launched(session, formulation.source("fp32"), [x], formulation.size(x), given)
    strict = given.get("policy", STRICT) == STRICT
    judge_stable(session, formulation, x, Tensor("fp32", formulation.result, data), strict)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp64"])
def test_a_launch_is_stable_in_every_dtype(impl, check, formulation, dtype):
    """The naive exponentials overflow at these arguments."""
    session = opened(impl, check)
    x = rows(dtype)
    data = launched(session, formulation.source(dtype), [x], formulation.size(x), {"policy": STRICT})
    judge_stable(session, formulation, x, Tensor(dtype, formulation.result, data), True)


@feature("graph-replay")
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_replay_is_stable(impl, check, formulation):
    """Captured under a fast policy, replayed twice."""
    session = opened(impl, check)
    session.set_policy(FAST)
    x = rows("fp32")
    size = formulation.size(x)
    pointer, result = session.upload(x.data), session.upload(bytes(size))
    kernel = session.kernel("k", formulation.source("fp32"))
    session.launch(kernel, packed(("ptr", pointer), ("ptr", result)), flags=CAPTURE)
    graph = instantiated(session)
    for _ in range(2):
        session.write(result, bytes(size))
        replay(session, graph)
        actual = Tensor("fp32", formulation.result, session.download(result, size))
        judge_stable(session, formulation, x, actual, False)


# Clamp

NAN = {"fp16": "007e", "bf16": "c07f", "fp32": "0000c07f", "fp64": "000000000000f87f"}


def with_nan(dtype: str) -> Tensor:
    """Numbers below, between and above the bounds of -1 and 1, infinities, and NaN in two places."""
    plain = tensor_of(dtype, [-3.0, -1.0, 0.25, 1.0, 7.0, float("inf"), float("-inf"), 0.0])
    size = len(plain.data) // 8
    nan = bytes.fromhex(NAN[dtype])
    return Tensor(dtype, (8,), nan + plain.data[size : 7 * size] + nan)


@clause("RT-11-07")
@feature("tensor-ops")
@pytest.mark.parametrize("dtype", NAN)
@pytest.mark.parametrize("given", WHERE.values(), ids=WHERE)
def test_a_launched_clamp_keeps_nan(impl, check, dtype, given):
    """NaN stays NaN and all else is kept between the bounds, exactly."""
    session = opened(impl, check)
    source = f"module m {{ kernel k(x: tensor<8x{dtype}>, y: tensor<8x{dtype}>) {{ y = op.clamp(x, -1.0, 1.0); }} }}"
    x = with_nan(dtype)
    low, high = (tensor_of(dtype, [bound] * 8) for bound in (-1.0, 1.0))
    actual = Tensor(dtype, (8,), launched(session, source, [x], len(x.data), given))
    check.bits(actual, clamp(x, low, high), "the clamped numbers")


# Attention


@clause("RT-11-05")
@feature("fused-attention")
@pytest.mark.parametrize("given", WHERE.values(), ids=WHERE)
def test_the_softmax_of_an_attention_is_stable(impl, check, given):
    """Scores of some thousand: with one key far ahead of the others the result is that key's row of values."""
    session = opened(impl, check)
    source = """module m {
      kernel k(q: tensor<2x2xfp32>, v: tensor<2x2xfp32>, y: tensor<2x2xfp32>) { y = op.flash_attention(q, q, v); }
    }"""
    q, v = tensor_of("fp32", [[4096.0, 0.0], [0.0, 8192.0]]), tensor_of("fp32", [[3.0, -5.0], [0.5, 7.0]])
    actual = Tensor("fp32", (2, 2), launched(session, source, [q, v], 16, given))
    check.bits(actual, v, "the values of the key that is far ahead")
