"""Hops and latencies, counted by hand from the components; the timeline."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from jsonschema import Draft202012Validator

from tessera_reference.host_io.endpoint import Endpoint, timeline
from tessera_reference.host_io.machine import Place, Trace, components, traced
from tessera_reference.mesh.engine import Seeded

Message: TypeAlias = dict[str, Any]
Build: TypeAlias = Callable[..., Message]
Ask: TypeAlias = Callable[..., list[Message]]

WAY = ["host", "pcie_ep", "io_cpu", "noc", "m_cpu", "pe_cpu", "memory"]


def time(name: str, count: int) -> int:
    """The fixed picoseconds and, rounded up, those of the bytes."""
    each = components()[name]
    return each.fixed + (0 if each.bandwidth is None else -(-count * 10**12 // each.bandwidth))


def trace_of(endpoint: Endpoint, request: str = "r") -> Trace:
    found = endpoint.journal.get(("c", request))
    assert found is not None
    return traced(found.journey)


def test_a_write_goes_to_memory_and_back(endpoint: Endpoint, ask: Ask, memory_write: Build) -> None:
    ask(memory_write())
    trace = trace_of(endpoint)
    assert [each.component for each in trace.path] == WAY + WAY[-2::-1]
    assert [each.bytes for each in trace.path] == [64] * 13
    assert trace.latency == time("memory", 64) + 2 * sum(time(name, 64) for name in WAY[:-1])
    assert all(before.end == after.start for before, after in zip(trace.path, trace.path[1:], strict=False))
    assert trace.branches == ()


def test_a_buffer_travels_with_its_message(endpoint: Endpoint, ask: Ask, memory_write: Build) -> None:
    endpoint.share({("c", "r"): bytes(640)})
    ask(memory_write(src_kind="host_buffer_ref", pattern=None, nbytes=640))
    assert [each.bytes for each in trace_of(endpoint).path] == [704] * 6 + [640] + [64] * 6


def test_a_read_travels_back_kept_or_not(endpoint: Endpoint, ask: Ask, memory_read: Build) -> None:
    for kind in ("host_sink", "discard"):
        ask(memory_read(nbytes=1000, dst_kind=kind))
        assert [each.bytes for each in trace_of(endpoint).path] == [64] * 6 + [1000] + [1064] * 6


def test_what_is_refused_ends_in_the_endpoint(endpoint: Endpoint, ask: Ask, memory_write: Build) -> None:
    ask(memory_write(dst_pe=9))
    assert [each.component for each in trace_of(endpoint).path] == [*WAY[:3], *WAY[2::-1]]


def test_a_pe_that_fails_does_not_reach_its_memory(endpoint: Endpoint, ask: Ask, memory_write: Build) -> None:
    endpoint.machine.failing = frozenset([Place(0, 1, 2)])
    ask(memory_write())
    assert [each.component for each in trace_of(endpoint).path] == WAY[:-1] + WAY[-2::-1]


def test_the_path_of_a_launch_is_that_of_its_last_branch(
    endpoint: Endpoint, ask: Ask, kernel_launch: Build, tensor: Build
) -> None:
    places = [(0, 0, 0), (0, 0, 1), (1, 0, 0)]
    argument = tensor(places)
    argument["tensor_pa_map"]["shards"][1]["nbytes"] = 100_000
    ask(kernel_launch(args=[argument]))
    trace = trace_of(endpoint)
    assert [each.component for each in trace.path] == WAY + WAY[-2::-1]
    assert (trace.path[6].place, trace.path[6].bytes) == (Place(0, 0, 1), 100_000)
    assert [each.component for each in trace.branches] == WAY[3:] * 2
    assert {each.place for each in trace.branches} == {Place(0, 0, 0), Place(1, 0, 0)}
    assert {each.start for each in trace.branches if each.component == "noc"} == {trace.path[2].end}


def test_the_binary_is_fetched_before_the_branches(
    endpoint: Endpoint, ask: Ask, memory_write: Build, kernel_launch: Build, tensor: Build
) -> None:
    ask(memory_write(dst_sip=1, dst_cube=0, dst_pe=0, dst_pa=0, nbytes=1 << 20))
    found = []
    for size in (64, 6400):
        code = {"kind": "deployed", "deploy_pa": 0, "deploy_sip": 1, "nbytes_code": size}
        ask(kernel_launch(args=[tensor([(0, 0, 1)], pa=64)], kernel=code))
        trace = trace_of(endpoint)
        assert [each.component for each in trace.path] == [*WAY[:3], "noc", "memory", *WAY[3:], *WAY[-2::-1]]
        assert [each.bytes for each in trace.path[3:6]] == [64, size, 64 + size]
        assert [each.place for each in trace.path[3:6]] == [Place(1, 0, 0), Place(1, 0, 0), Place(0, 0, 1)]
        found.append(trace.latency)
    assert found[1] - found[0] == time("memory", 6400) - time("memory", 64) + time("noc", 6464) - time("noc", 128)


def test_shards_above_the_first_failure_are_not_begun(
    endpoint: Endpoint, ask: Ask, kernel_launch: Build, tensor: Build
) -> None:
    endpoint.machine.failing = frozenset([Place(0, 0, 1)])
    places = [(1, 0, 0), (0, 0, 1), (0, 0, 0)]
    for policy, reached in (("fail_fast", set(places[1:])), ("collect_all", set(places))):
        ask(kernel_launch(args=[tensor(places)], failure_policy=policy))
        trace = trace_of(endpoint)
        assert {each.place for each in (*trace.path, *trace.branches) if each.place} == reached


def test_a_launch_without_shards_ends_in_the_endpoint(endpoint: Endpoint, ask: Ask, kernel_launch: Build) -> None:
    ask(kernel_launch())
    assert [each.component for each in trace_of(endpoint).path] == [*WAY[:3], *WAY[2::-1]]


def test_tags_labels_and_other_requests_change_no_latency(
    endpoint: Endpoint, memory_write: Build, memory_read: Build
) -> None:
    marked = memory_write(timestamp_tag="t" * 1000, debug_label="d" * 1000)
    others = [memory_read(request_id=str(number), nbytes=1 << 20) for number in range(50)]
    found = []
    for requests in ([memory_write()], [marked], [*others, memory_write()]):
        endpoint.exchange(map(json.dumps, requests), Seeded(5))
        found.append(trace_of(endpoint))
    assert found[0] == found[1] == found[2]


def test_the_timeline_follows_the_schema_of_traces(
    endpoint: Endpoint, ask: Ask, memory_write: Build, kernel_launch: Build, tensor: Build
) -> None:
    ask(memory_write(), kernel_launch(args=[tensor([(0, 0, 1), (0, 0, 1), (1, 1, 3)])], request_id="k"))
    text = timeline(endpoint.machine, endpoint.journal)
    schema = json.loads((Path(__file__).parents[2] / "schemas" / "trace.schema.json").read_text(encoding="utf-8"))
    found = json.loads(text)
    Draft202012Validator(schema).validate(found)
    slices = [each for each in found["traceEvents"] if each["ph"] == "X"]
    assert len(slices) == 13 + 13 + 8
    assert timeline(endpoint.machine, endpoint.journal) == text
