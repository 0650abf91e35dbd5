"""The reference, whose all-gather, reduce-scatter and broadcast take their arguments, or refuse them, and do nothing.

It gives no access to the memory of single ranks, by which most cases of collectives would see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from claims_chosen import WithoutFeatures

from tessera_reference.adapter import FEATURES
from tessera_reference.numerics.array import Array
from tessera_reference.runtime.collectives import CollectiveWork

_COMBINED = CollectiveWork._combined


class IdleCollectives(WithoutFeatures):
    documents = ("runtime_abi",)
    features = tuple(name for name in FEATURES if name not in ("rank-memory", "mesh-execution"))


def _idle(work: CollectiveWork, group: Any, contributions: Any) -> Mapping[int, Array]:
    results = _COMBINED(work, group, contributions)
    return results if work.call.collective == "all_reduce" else {}


CollectiveWork._combined = _idle  # type: ignore[method-assign]
