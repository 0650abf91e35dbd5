"""The trace in the Chrome format (runtime spec 4.8, 17), read back by SQL."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_conformance.schemas import first_problem
from tessera_reference.abi import Failure, Status
from tessera_reference.mesh.trace import Names, Record, chrome_trace, trace_text, write_trace

HOST, LINKS = 1_000_000, 1_000_001


def record(kind: str = "kernel", start: int = 0, stop: int = 0, **fields: Any) -> Record:
    """A record of stream 7 on device 0, enqueued at 0, unless told otherwise."""
    told = {"name": kind, "stream": 7, "rank": 0, "device": 0, "enqueued": 0, **fields}
    return Record(kind=kind, start=start, stop=stop, **told)


def events(records: list[Record], phase: str, names: Names | None = None) -> list[dict[str, Any]]:
    trace = json.loads(trace_text(chrome_trace(records, names)))
    assert first_problem("tessera:trace", "", trace) is None
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


def loaded(trace: dict[str, Any]) -> sqlite3.Connection:
    """Slices and flow ends as tables, in picoseconds and in the order of the file."""
    base = sqlite3.connect(":memory:")
    base.execute("create table slice(place int, ts int, stop int, name text, pid int, tid int)")
    base.execute("create table flow(place int, phase text, id int, ts int, pid int, tid int)")
    for place, event in enumerate(trace["traceEvents"]):
        if event["ph"] == "X":
            ts, dur = (round(event[key] * 1_000_000) for key in ("ts", "dur"))
            row = (place, ts, ts + dur, event["name"], event["pid"], event["tid"])
            base.execute("insert into slice values(?,?,?,?,?,?)", row)
        elif event["ph"] in "sf":
            row = (place, event["ph"], event["id"], round(event["ts"] * 1_000_000), event["pid"], event["tid"])
            base.execute("insert into flow values(?,?,?,?,?,?)", row)
    return base


OVERLAPS = """
    select count(*) from
        (select ts, max(stop) over
            (partition by pid, tid order by place rows between unbounded preceding and 1 preceding) as busy from slice)
    where ts < busy"""
UNRESOLVED = """
    select count(*) from flow f left join flow s on s.id = f.id and s.phase = 's'
    where f.phase = 'f' and (s.id is null or s.ts > f.ts or s.place > f.place)"""
BOUND = """
    select flow.phase, flow.id,
        (select name from slice where slice.pid = flow.pid and slice.tid = flow.tid and slice.place < flow.place
         order by slice.place desc limit 1)
    from flow order by flow.id, flow.phase desc"""
"""Each end of a flow with the slice that a reader ties it to: the one that began last on the row before it."""
UNORDERED = """
    select count(*) from
        (select ts, lag(ts) over (order by place) as earlier from
            (select place, ts from slice union all select place, ts from flow))
    where ts < earlier"""


def ask(base: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    return base.execute(query).fetchall()


def test_a_slice_tells_when_its_work_was_enqueued_and_ran_and_how_fast() -> None:
    """3 MB in 1.5 us are 2e12 bytes a second; times are exact to the picosecond."""
    copy = record("copy", 2_000_001, 3_500_001, enqueued=1_234_567, bytes=3_000_000, rank=3, device=5)
    (event,) = events([copy], "X")
    assert event == {
        "ph": "X", "pid": 5, "tid": 7, "name": "copy", "cat": "copy", "ts": 2.000001, "dur": 1.5,
        "args": {
            "enqueue": 1234.567, "start": 2000.001, "stop": 3500.001, "stream": 7, "rank": 3,
            "bytes": 3_000_000, "bandwidth_bytes_per_second": 2e12,
        },
    }  # fmt: skip


@given(st.integers(0, 2**50), st.integers(0, 2**50))
def test_times_are_exact_to_the_picosecond(start: int, stop: int) -> None:
    start, stop = sorted((start, stop))
    (event,) = [event for event in chrome_trace([record("host", start, stop)])["traceEvents"] if event["ph"] == "X"]
    read = json.loads(json.dumps(event))
    assert round(read["ts"] * 1_000_000) == start
    assert round(read["dur"] * 1_000_000) == stop - start
    assert round(read["args"]["stop"] * 1_000) == stop


def test_processes_and_rows_have_titles_in_order() -> None:
    records = [
        record("copy", 0, 5, device=2, link="node0.nvlink1"),
        record("kernel", 0, 5, device=1, stream=9),
        record("host", 0, 1, stream=0, device=-1, rank=-1),
    ]
    found = events(records, "M", Names(devices={1: "device 1 (sm_90)", 4: "idle"}, streams={9: "compute", 0: "main"}))
    titles = [(e["pid"], e.get("tid"), e["args"]["name"]) for e in found if "name" in e["args"]]
    assert titles == [
        (1, None, "device 1 (sm_90)"), (2, None, "device 2"), (4, None, "idle"), (HOST, None, "host"),
        (LINKS, None, "links"), (1, 9, "compute"), (2, 7, "stream 7"), (HOST, 0, "main"), (LINKS, 10, "node0.nvlink1"),
    ]  # fmt: skip
    order = [e["args"]["sort_index"] for e in found if e["name"] == "process_sort_index"]
    assert order == [0, 1, 2, 3, 4]


def test_work_that_shares_a_link_spreads_over_lanes() -> None:
    """0-10 and 5-15 overlap; 10-20 takes the first lane again, although it begins before the second is free."""
    spans = [(0, 10), (5, 15), (10, 20)]
    records = [record("copy", *span, stream=n, link="a-b", name=f"copy {n}") for n, span in enumerate(spans)]
    on_links = {event["name"]: event["tid"] for event in events(records, "X") if event["pid"] == LINKS}
    assert on_links["copy 0"] == on_links["copy 2"] != on_links["copy 1"]
    titles = [e["args"]["name"] for e in events(records, "M") if e["pid"] == LINKS and e["name"] == "thread_name"]
    assert titles == ["a-b", "a-b (2)"]
    threads = {event["tid"] for event in events(records, "X")}
    assert len(threads) == 5  # three streams, two lanes


def test_a_flow_goes_from_the_recording_to_each_wait_on_the_same_device() -> None:
    records = [
        record("event", 5, 5, stream=1, device=0, flow_out=70, name="record on 0"),
        record("event", 6, 6, stream=1, device=1, flow_out=70, name="record on 1"),
        record("wait", 2, 5, stream=2, device=0, flow_in=70, name="wait on 0"),
        record("wait", 7, 7, stream=2, device=1, flow_in=70, name="wait on 1"),
        record("wait", 9, 9, stream=3, device=2, flow_in=70, name="wait elsewhere"),
        record("kernel", 5, 8, stream=2, device=0, name="next"),
    ]
    base = loaded(chrome_trace(records))
    assert ask(base, BOUND) == [
        ("s", 1, "record on 0"), ("f", 1, "wait on 0"),
        ("s", 2, "record on 1"), ("f", 2, "wait on 1"),
        ("s", 3, "record on 1"), ("f", 3, "wait elsewhere"),
    ]  # fmt: skip
    assert ask(base, UNRESOLVED) == [(0,)]
    assert [(e["ts"], e["bp"]) for e in events(records, "f")] == [(5e-6, "e"), (7e-6, "e"), (9e-6, "e")]


def test_a_chain_of_waits_at_one_instant_keeps_its_order() -> None:
    """Recorded, waited for, recorded again and waited for again within no time, while the first wait began long ago."""
    records = [
        record("event", 9, 9, stream=1, flow_out=1, name="first"),
        record("wait", 0, 9, stream=2, flow_in=1, name="second"),
        record("event", 9, 9, stream=2, flow_out=2, name="third"),
        record("wait", 3, 9, stream=3, flow_in=2, name="fourth"),
        record("kernel", 9, 12, stream=3, name="fifth"),
    ]
    base = loaded(chrome_trace(records))
    assert [name for _, _, name in ask(base, BOUND)] == ["first", "second", "third", "fourth"]
    assert [ask(base, query) for query in (UNRESOLVED, OVERLAPS, UNORDERED)] == [[(0,)]] * 3


def test_a_wait_for_what_was_recorded_before_the_profiler_began_has_no_flow() -> None:
    records = [record("wait", 1, 2, flow_in=3), record("event", 5, 5, flow_out=4), record("wait", 3, 4, flow_in=4)]
    assert events(records, "s") == events(records, "f") == []


def test_occupancy_is_counted_per_device_and_returns_to_zero() -> None:
    """0.1 + 0.2 - 0.1 - 0.2 is 0 in exact arithmetic alone."""
    records = [
        record("kernel", 0, 4_000_000, occupancy=0.1),
        record("kernel", 1_000_000, 6_000_000, stream=8, occupancy=0.2),
        record("kernel", 6_000_000, 7_000_000, stream=8, occupancy=0.5),
        record("kernel", 2, 2, device=1, occupancy=0.5),
    ]
    found = [(event["pid"], event["ts"], event["args"]["occupancy"]) for event in events(records, "C")]
    assert found == [(0, 0, 0.1), (0, 1, 0.1 + 0.2), (0, 4, 0.2), (0, 6, 0.5), (0, 7, 0)]
    assert [event["args"]["occupancy"] for event in events(records, "X")] == [0.1, 0.5, 0.2, 0.5]


spans = st.builds(
    lambda start, length, **fields: record("copy", start, start + length, **fields),
    start=st.integers(0, 30),
    length=st.integers(0, 10),
    stream=st.integers(1, 2),
    device=st.integers(0, 1),
    link=st.sampled_from([None, "a", "b"]),
    flow_out=st.sampled_from([None, 1, 2]),
    flow_in=st.sampled_from([None, 1, 2]),
)


@given(st.lists(spans, max_size=20))
def test_whatever_the_records_slices_never_overlap_and_flows_resolve(records: list[Record]) -> None:
    records.sort(key=lambda each: each.stop)
    trace = chrome_trace(records)
    base = loaded(trace)
    assert ask(base, OVERLAPS) == [(0,)]
    assert ask(base, UNORDERED) == [(0,)]
    assert ask(base, "select count(*) from flow s left join flow f using (id) where s.phase <> f.phase") == ask(
        base, "select count(*) from flow"
    )
    linked = sum(record.link is not None for record in records)
    assert ask(base, "select count(*) from slice") == [(len(records) + linked,)]


def test_the_same_records_give_the_same_text_and_a_line_an_event(tmp_path: Path) -> None:
    records = [record("kernel", 3, 5, name="añ\n"), record("host", 0, 1)]
    write_trace(records, str(tmp_path / "one.json"))
    write_trace(iter(records), str(tmp_path / "two.json"))
    text = (tmp_path / "one.json").read_text(encoding="ascii")
    assert text == (tmp_path / "two.json").read_text(encoding="ascii")
    trace = json.loads(text)
    assert trace == chrome_trace(records)
    assert text.count("\n") == len(trace["traceEvents"]) + 2


@pytest.mark.parametrize("path", ["missing/trace.json", "", "a\0b", 1, None])
def test_a_path_that_cannot_be_written_is_an_invalid_value(tmp_path: Path, path: Any) -> None:
    with pytest.raises(Failure, match="tessProfilerStop: outJsonPath") as caught:
        write_trace([], str(tmp_path / path) if isinstance(path, str) else path)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


class Counted(int):
    """A time that counts how often it is compared."""

    comparisons = 0

    def __lt__(self, other: int) -> bool:
        Counted.comparisons += 1
        return int(self) < int(other)


def busy_link(count: int) -> Iterator[Record]:
    """Work on 64 devices, all of it over one link and much of it at once, with a wait for every other piece."""
    for n in range(count):
        flow: dict[str, Any] = {"flow_out": n} if n % 2 == 0 else {"flow_in": n - 1}
        yield record(
            "copy", Counted(n * 100), n * 100 + 6_350, device=n % 64, stream=n % 2, link="spine", bytes=1, **flow
        )


def test_the_work_grows_with_the_number_of_records_alone() -> None:
    """Twice the records, hardly more than twice the comparisons, and no more lanes."""
    counts = []
    for size in (1_000, 2_000):
        Counted.comparisons = 0
        trace = chrome_trace(busy_link(size))
        counts.append(Counted.comparisons)
        lanes = {event["tid"] for event in trace["traceEvents"] if event["ph"] == "X" and event["pid"] == LINKS}
        assert len(lanes) == 64
    assert 0 < counts[1] < 2.5 * counts[0]


@pytest.mark.slow
def test_many_records_are_written_and_read_back(tmp_path: Path, drawn: Callable[[int], int]) -> None:
    """A hundred thousand with `--whole`."""
    count = drawn(100_000)
    path = tmp_path / "trace.json"
    write_trace(busy_link(count), str(path))
    base = loaded(json.loads(path.read_text()))
    assert ask(base, "select count(*) from slice") == [(2 * count,)]
    assert ask(base, OVERLAPS) == [(0,)]
    base.execute("create index of_flow on flow(id, phase)")
    assert ask(base, UNRESOLVED) == [(0,)]
    assert ask(base, "select count(*) from flow") == [(count,)]
