"""Drawn inputs: the same for a seed, others for another."""

from __future__ import annotations

import pytest

from tessera_conformance.fuzz.drawn import chooser_of, numbers
from tessera_conformance.session import Implementation, Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports.locate import DirectTransport
from tessera_reference.adapter import make


def drawn(seed: int, case: str = "case") -> Tensor:
    implementation = Implementation(Session(DirectTransport(make, "reference")), seed=seed)
    return numbers(chooser_of(implementation, case), "fp32", 3, 4)


def test_a_seed_draws_the_same_numbers_again() -> None:
    assert drawn(7) == drawn(7)


@pytest.mark.parametrize("other", [drawn(8), drawn(7, "other")], ids=["seed", "case"])
def test_another_seed_or_case_draws_other_numbers(other: Tensor) -> None:
    assert other != drawn(7)
