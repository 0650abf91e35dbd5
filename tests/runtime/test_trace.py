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

from tessera_reference.abi.status import Failure, Status
from tessera_reference.mesh.trace import Record, chrome_trace, write_trace

HOST, LINKS = 1_000_000, 1_000_001


def record(kind: str = "kernel", start: int = 0, stop: int = 0, **fields: Any) -> Record:
    """A record of stream 7 on device 0, enqueued at 0, unless told otherwise."""
    told = {"name": kind, "stream": 7, "rank": 0, "device": 0, "enqueued": 0, **fields}
    return Record(kind=kind, start=start, stop=stop, **told)


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
UNORDERED = """
    select count(*) from
        (select ts, lag(ts) over (order by place) as earlier from
            (select place, ts from slice union all select place, ts from flow))
    where ts < earlier"""


def ask(base: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    return base.execute(query).fetchall()


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
    records.sort(key=lambda record: record.stop)
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
