"""The reference, whose all-gather, reduce-scatter and broadcast take their arguments, or refuse them, and do nothing.

It gives no access to the memory of single ranks, by which most cases of collectives would see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from claims_chosen import WithoutFeatures

from tessera_reference.adapter import FEATURES
from tessera_reference.collectives.operations import combine
from tessera_reference.numerics.array import Array
from tessera_reference.runtime import collectives


class IdleCollectives(WithoutFeatures):
    documents = ("runtime_abi",)
    features = tuple(name for name in FEATURES if name not in ("rank-memory", "mesh-execution"))


def _idle(collective: str, buffers: Sequence[Array], **arguments: Any) -> list[Array]:
    return combine(collective, buffers, **arguments) if collective == "all_reduce" else list(buffers)


collectives.combine = _idle  # type: ignore[assignment]
