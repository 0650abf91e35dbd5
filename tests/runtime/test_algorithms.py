"""Which algorithm a collective runs by, and why (runtime spec 13)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tessera_reference.abi.status import Status
from tessera_reference.collectives.travel import collective_duration
from tessera_reference.mesh.axes import MeshAxes
from tessera_reference.mesh.topology import named
from tessera_reference.runtime.collectives import Plan

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


def test_the_default_is_the_row_of_the_table(used: Maker) -> None:
    """Up to 16 KiB direct, up to 1 MiB by halving and doubling, then ring, or hierarchical over two nodes."""
    for topology, devices, last in (("eight-sm90", 4, "ring"), ("two-nodes", 8, "hierarchical")):
        at = used(devices, topology=named(topology))
        for bytes, algorithm in ((1 << 14, "direct"), (1 << 20, "halving_doubling"), ((1 << 20) + 4, last)):
            plan = at.ask("tessxCollectivePlan", at.mesh, "all_reduce", bytes // 4, 5, "dp")
            assert plan == Plan(algorithm, "default")


def test_an_override_that_one_group_cannot_follow_is_passed_over(used: Maker) -> None:
    """As hints are; an algorithm that a rank names itself is refused."""
    at = used(1, topology=named("mixed"), environment={"TESSERA_COLL_ALGO": "hierarchical"})
    at.mesh = at.ask("tessMeshCreate", at.context, [0, 4, 5, 6], 4, MeshAxes(tp=2, dp=2))
    at.stream = at.ask("tessStreamCreate", at.mesh, 0)
    memory = at.ask("tessMalloc", at.mesh, 64)
    assert planned(at) == DEFAULT
    issue = (at.mesh, 0, "all_reduce", memory, 8, 9, at.stream)
    status = at.runtime.tessxIssue(*issue, op=0, axis="dp", algorithm="hierarchical")
    assert status is Status.TESS_ERR_UNSUPPORTED
    assert "hierarchical" in at.runtime.tessxLastError()


@pytest.mark.parametrize(("path", "link"), [("auto", "nvlink0"), ("pcie", "pcie0"), ("rdma", "bus0")])
def test_the_path_of_the_environment_is_taken(used: Maker, tmp_path: Path, path: str, link: str) -> None:
    """The slice of a collective names the first link of its rank's way, and lasts as long as that way takes."""
    at = used(4, topology=named("two-nodes"), environment={"TESSERA_COLL_PATH": path})
    memory = at.ask("tessMalloc", at.mesh, 4 << 20)
    profiler = at.ask("tessProfilerStart", at.context)
    at.ask("tessAllReduce", at.mesh, memory, 1 << 20, 9, 0, "dp", at.stream)
    at.ask("tessStreamSynchronize", at.stream)
    (record, *_) = [each for each in at.runtime.context(at.context).profilers[profiler].records if each.rank == 0]
    assert (record.link, record.algorithm) == (link, "ring")
    sizes = (named("two-nodes"), range(4), "all_reduce", 4 << 20, "ring")
    assert record.stop - record.start == collective_duration(*sizes, path=path)


def test_what_the_autotuner_found_is_of_its_path(used: Maker, tmp_path: Path) -> None:
    for path, entries in (("auto", 1), ("pcie", 2), ("auto", 2)):
        variables = {"TESS_AUTOTUNE": "1", "TESS_CACHE_DIR": str(tmp_path), "TESSERA_COLL_PATH": path}
        at = used(4, environment=variables)
        assert planned(at).source == "autotuner"
        assert len(at.ask("tessxCacheEntries")) == entries


def test_all_ranks_fail_where_no_link_is_left(used: Maker) -> None:
    """Each of those that issue for themselves; the failure names the link and both devices."""
    at = used(4)
    memory = at.ask("tessMalloc", at.mesh, 1 << 20)
    cuts = [{"kind": "link_cut", "link": link, "nanoseconds": 10} for link in ("nvlink2", "pcie2")]
    at.ask("tessxSetFaults", at.context, cuts)
    for rank in range(4):
        at.ask("tessxIssue", at.mesh, rank, "all_reduce", memory, 1 << 18, 9, at.stream, op=0, axis="dp")
    assert at.refused("tessStreamSynchronize", at.stream) is Status.TESS_ERR_LAUNCH_FAILED
    assert "nvlink2, pcie2" in at.runtime.tessxLastError()
    at.ask("tessStreamSynchronize", at.stream)
