"""The architecture model of each target has the information of section 5.1, in any structure (AMB-WSP-33)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.targets import targets
from tessera_conformance.marks import clause
from tessera_conformance.protocol import Rejected, Unsupported

EVERY_TARGET = pytest.mark.parametrize("target", targets())


def model(impl, check, target, *parts):
    """A part of the model that says something."""
    answer = check.returns(impl.wsp.architecture(target=target))
    for part in parts:
        there = isinstance(answer, dict) and bool(answer.get(part))
        check.true(there, f"the model has {'.'.join(parts)}", answer)
        answer = answer[part]
    return answer


def every(check, entries, member, fits, what):
    """A member of each entry fits."""
    check.true(len(entries) > 0, "there are entries", entries)
    wrong = [entry.get("name") for entry in entries if not fits(entry.get(member))]
    check.equal(wrong, [], f"the entries without {what}")


def is_count(least):
    """Whole numbers from `least` on."""
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_text(value):
    """Something is said."""
    return isinstance(value, str) and bool(value.strip())


PLACEHOLDERS = {"", "n/a", "na", "tbd", "todo", "unknown", "unspecified", "null", "nil", "xxx"}


def informs(value):
    """Text other than a placeholder, a number, or a list or object of which each part informs."""
    if isinstance(value, dict):
        return bool(value) and all(is_text(name) and informs(part) for name, part in value.items())
    if isinstance(value, list):
        return bool(value) and all(map(informs, value))
    if isinstance(value, str):
        return value.strip(" \t\n.-?()").lower() not in PLACEHOLDERS
    return value is not None


@clause("WSP-05.1-01")
@EVERY_TARGET
def test_memory_has_address_spaces(impl, check, target):
    """Each by its name, no name twice."""
    names = [space.get("name") for space in model(impl, check, target, "memory")]
    check.equal([name for name in names if not is_text(name)], [], "the spaces without a name")
    check.equal(len(set(names)), len(names), "the different names")


@clause("WSP-05.1-06")
@EVERY_TARGET
def test_memory_has_capacities(impl, check, target):
    """Each address space has a capacity in bytes."""
    every(check, model(impl, check, target, "memory"), "bytes", is_count(1), "a capacity")


@clause("WSP-05.1-07")
@EVERY_TARGET
def test_memory_has_an_access_granularity(impl, check, target):
    """Each address space has an access granularity in bytes, no larger than the space."""
    memory = model(impl, check, target, "memory")
    every(check, memory, "access_bytes", is_count(1), "an access granularity")
    wrong = [space["name"] for space in memory if space["access_bytes"] > space["bytes"]]
    check.equal(wrong, [], "the spaces smaller than one access")


@clause("WSP-05.1-02")
@EVERY_TARGET
def test_execution_units_are_for_vectors_matrices_and_dma(impl, check, target):
    """Each kind has a unit."""
    units = model(impl, check, target, "exec_units")
    kinds = {kind for unit in units for kind in unit.get("kinds", [])}
    check.equal(sorted({"vector", "matrix", "dma"} - kinds), [], "the kinds without a unit")


@clause("WSP-05.1-08")
@EVERY_TARGET
def test_execution_units_have_concurrency_limits(impl, check, target):
    """A unit that runs kernels states how many it runs at a time, at least one."""
    units = [unit for unit in model(impl, check, target, "exec_units") if unit.get("kinds")]
    every(check, units, "concurrent_kernels", is_count(1), "a concurrency limit")


@clause("WSP-05.1-03")
@EVERY_TARGET
def test_synchronization_has_barriers_and_flags(impl, check, target):
    """The target has at least one barrier and one flag."""
    kinds = {primitive.get("kind") for primitive in model(impl, check, target, "sync")}
    check.equal(sorted({"barrier", "flag"} - kinds), [], "the kinds that are missing")


@clause("WSP-05.1-09")
@EVERY_TARGET
def test_synchronization_has_ordering_domains(impl, check, target):
    """Each barrier and flag states what it orders."""
    every(check, model(impl, check, target, "sync"), "orders", is_text, "an ordering domain")


@clause("WSP-05.1-04")
@EVERY_TARGET
def test_dispatch_has_a_core_grid(impl, check, target):
    """The model states the extents of the core grid."""
    grid = model(impl, check, target, "dispatch", "core_grid")
    check.true(isinstance(grid, list) and all(map(is_count(1), grid)), "the grid has extents", grid)


@pytest.mark.parametrize(
    "member",
    [
        pytest.param("waves", marks=clause("WSP-05.1-10")),
        pytest.param("queues", marks=clause("WSP-05.1-11")),
        pytest.param("worker_types", marks=clause("WSP-05.1-12")),
    ],
)
@EVERY_TARGET
def test_dispatch_has_waves_queues_and_worker_types(impl, check, target, member):
    """Each is described in words, by a number, or by members that have values; "n/a" is no information."""
    stated = model(impl, check, target, "dispatch", member)
    entries = stated if isinstance(stated, list) else [stated]
    check.equal([entry for entry in entries if not informs(entry)], [], f"entries of {member} that say nothing")


@pytest.mark.parametrize(
    "member",
    [
        pytest.param("report", marks=clause("WSP-05.1-05")),
        pytest.param("composition", marks=clause("WSP-05.1-13")),
    ],
)
@EVERY_TARGET
def test_timing_says_how_cycles_are_reported_and_composed(impl, check, target, member):
    """The target says in words how cycles are reported and composed."""
    check.true(is_text(model(impl, check, target, "timing", member)), f"timing has its {member}")


@clause("WSP-05.1-01", "WSP-05.1-04")
def test_an_unknown_target_has_no_model(impl, check):
    """The request for its model is refused."""
    answer = impl.wsp.architecture(target="gpu")
    check.true(isinstance(answer, Rejected | Unsupported), "an unknown target is refused or missing", answer)
