"""JAX behind the protocol: sends that are a permutation go by ppermute, and others are unsupported with the reason."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tessera_conformance.dsl import tensor_of
from tessera_conformance.observations import Returned, Unsupported
from tessera_conformance.session import Session
from tessera_conformance.transports.locate import locate

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def jax(at_the_root: Path) -> Iterator[Session]:
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed: pip install 'jax[cpu]'")
    served = f"{sys.executable} -m tessera_conformance serve py:conformance.adapters.jax_adapter:make"
    session = Session(locate(f"rpc:{served}"), deadline=120.0)
    yield session
    session.close()


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [
        ([[0, 1], [1, 2], [2, 0]], [3, 1, 2]),
        ([[0, 2]], [1, 2, 1]),
        ([[2, 1], [1, 2]], [1, 3, 2]),
    ],
    ids=["around", "one", "exchange"],
)
def test_a_permutation_is_sent(jax: Session, pairs: list[list[int]], wanted: list[int]) -> None:
    """Who receives nothing keeps its own; of a dtype that JAX cannot add too, since what is moved travels as bytes."""
    for dtype in ("fp32", "fp8_e4m3"):
        inputs = [tensor_of(dtype, [value] * 3) for value in (1, 2, 3)]
        observed = jax.call("collectives.send_recv", {"inputs": inputs, "pairs": pairs})
        assert observed == Returned({"outputs": [tensor_of(dtype, [value] * 3) for value in wanted]})


def test_one_sender_of_several_ranks_is_unsupported(jax: Session) -> None:
    inputs = [tensor_of("fp32", [rank]) for rank in range(3)]
    observed = jax.call("collectives.send_recv", {"inputs": inputs, "pairs": [[0, 1], [0, 2]]})
    assert isinstance(observed, Unsupported)
    assert "permutation" in observed.feature
