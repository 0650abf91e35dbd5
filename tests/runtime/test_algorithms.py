"""Which algorithm a collective runs by, and why (runtime spec 13)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tessera_reference.abi.status import Status
from tessera_reference.mesh.axes import MeshAxes
from tessera_reference.mesh.topology import named
from tessera_reference.runtime.algorithms import Plan

Maker = Callable[..., Any]
DEFAULT = Plan("direct", "default")
"""What the table has for eight elements (AMB-RT-180)."""


def planned(at: Any, collective: str = "all_reduce", axis: str = "dp", dtype: int = 5) -> Plan:
    plan = at.ask("tessxCollectivePlan", at.mesh, collective, 8, dtype, axis)
    assert isinstance(plan, Plan)
    return plan


def test_hint_before_autotuner_before_default(used: Maker) -> None:
    at = used(4)
    assert planned(at) == DEFAULT
    at.ask("tessxSetAlgorithm", at.context, "all_reduce", "tree", "autotuner")
    assert planned(at) == Plan("tree", "autotuner")
    at.ask("tessxSetAlgorithm", at.context, "all_reduce", "hierarchical", "hint")
    assert planned(at) == Plan("hierarchical", "hint")
    assert planned(at, "broadcast") == DEFAULT
    at.ask("tessxSetAlgorithm", at.context, "all_reduce", None, "hint")
    at.ask("tessxSetAlgorithm", at.context, "all_reduce", None, "autotuner")
    assert planned(at) == DEFAULT


def test_a_refused_algorithm_leaves_the_old_one(used: Maker) -> None:
    at = used(4)
    at.ask("tessxSetAlgorithm", at.context, "all_reduce", "tree", "hint")
    for wrong in (("all_reduce", "star", "hint"), ("all_reduce", "ring", "guess"), ("gather", "ring", "hint")):
        assert at.refused("tessxSetAlgorithm", at.context, *wrong) is Status.TESS_ERR_INVALID_VALUE
    assert planned(at) == Plan("tree", "hint")


def test_a_hint_that_one_group_cannot_follow_is_passed_over(used: Maker) -> None:
    """Of the pairs along dp, one joins two nodes, as hierarchical takes it, and the other has no switch."""
    at = used(1, topology=named("mixed"))
    at.mesh = at.ask("tessMeshCreate", at.context, [0, 4, 5, 6], 4, MeshAxes(tp=2, dp=2))
    at.stream = at.ask("tessStreamCreate", at.mesh, 0)
    memory = at.ask("tessMalloc", at.mesh, 64)
    at.ask("tessxSetAlgorithm", at.context, "all_reduce", "hierarchical", "hint")
    assert planned(at) == DEFAULT
    at.ask("tessAllReduce", at.mesh, memory, 8, 9, 0, "dp", at.stream)
    at.ask("tessStreamSynchronize", at.stream)


@pytest.mark.parametrize("dtype", range(1, 14))
def test_there_is_a_plan_for_every_dtype(used: Maker, dtype: int) -> None:
    at = used(4)
    for collective in ("all_reduce", "reduce_scatter", "all_gather", "broadcast"):
        assert planned(at, collective, dtype=dtype) == DEFAULT


def test_what_the_autotuner_found_is_kept_in_the_cache(used: Maker, tmp_path: Path) -> None:
    at = used(4, environment={"TESS_AUTOTUNE": "1", "TESS_CACHE_DIR": str(tmp_path)})
    first = planned(at)
    assert first.source == "autotuner"
    assert planned(at) == first
    assert (at.runtime.code.hits, at.runtime.code.misses) == (1, 1)
    ((_, entry),) = at.ask("tessxCacheEntries")
    assert (entry.kind, entry.payload.decode()) == ("autotune", first.algorithm)
