"""Traces that are incomplete or wrong (runtime spec 17; AMB-RT-164)."""

import json
from dataclasses import replace
from pathlib import Path
from weakref import WeakKeyDictionary

from tessera_conformance.strength import Around
from tessera_reference.runtime.streams import Work

from .changes import broken, result


def sliced(clause, name, description, change):
    """Return a violation that changes slices."""
    return broken(clause, name, description, "mesh.trace._slice", result(change))


def argued(clause, name, description, change):
    """Return a violation that changes `args` of slices."""
    return sliced(clause, name, description, lambda event: event | {"args": change(event["args"])})


def noted(clause, name, description, change):
    """Return a violation that changes records."""
    add = Around(lambda usual: lambda self, record: usual(self, change(record)))
    return broken(clause, name, description, "mesh.trace.Profiler.add", add)


def without_durations(usual):
    def write(records, path, *of):
        usual(records, path, *of)
        document = json.loads(Path(path).read_text())
        for event in document["traceEvents"]:
            if event["ph"] == "X":
                del event["dur"]
        Path(path).write_text(json.dumps(document))

    return write


def flow_ids(usual):
    return lambda phase, number, *of: usual(phase, number if phase == "s" else number + 1000, *of)


FIRST_MESH = WeakKeyDictionary()
"""The mesh whose work was the first to be profiled, by context."""


def of_the_first_mesh(self, *of, right=Work.profile, **named):
    mesh = self.stream.mesh
    if mesh.context.profilers and FIRST_MESH.setdefault(mesh.context, mesh.handle) == mesh.handle:
        right(self, *of, **named)


VIOLATORS = [
    broken("RT-17-02", "no_durations", "writes slices without durations", "runtime.calls.write_trace",
        Around(without_durations)),
    broken("RT-17-02", "flow_ids", "gives each end of a flow an id of its own", "mesh.trace._flow", Around(flow_ids)),
    noted("RT-17-01", "enqueue_forgotten", "enqueues half of the work at the beginning",
        lambda record: replace(record, enqueued=0 if record.enqueued // 1_000_000 % 2 else record.enqueued)),
    argued("RT-17-05", "stop_as_start", "tells of the stop when work starts",
        lambda args: args | {"stop": args["start"]}),
    noted("RT-17-05", "stop_late", "tells of the stop later than it was",
        lambda record: replace(record, stop=record.stop + 100_000_000)),
    noted("RT-17-06", "bandwidth_of_h2d", "tells the bandwidth of copies to the device alone", lambda record:
          record if record.kind != "copy" or record.name == "h2d" else replace(record, bytes=0)),
    argued("RT-17-07", "occupancy_in_percent", "tells occupancy in percent",
        lambda args: args | {name: 1000 * value for name, value in args.items() if name == "occupancy"}),
    argued("RT-17-07", "constant_occupancy", "tells an occupancy of 1",
        lambda args: args | {name: 1 for name in args if name == "occupancy"}),
    noted("RT-17-07", "occupancy_of_rank_0", "tells the occupancy of rank 0 alone",
        lambda record: replace(record, occupancy=None if record.rank else record.occupancy)),
    broken("RT-17-01", "of_the_first_mesh", "records the first mesh of a context alone",
        "runtime.streams.Work.profile", of_the_first_mesh),
]  # fmt: skip
