"""Bad arguments of every function, one at a time (runtime specification, 4, 7 and Appendix A).

Each case begins with a legal call, changes one argument, and looks at the status. Handles of another kind, and handles
that are no more, are in `test_bad_handles.py`; memory that is too short or freed in `test_findings.py`.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from tessera_conformance.chapters.runtime.kit.calls import ADDRESSES, CALLS, HANDLES, OUTPUTS, POINTERS, legal_call
from tessera_conformance.chapters.runtime.kit.collectives import AXES as AXIS_NAMES
from tessera_conformance.chapters.runtime.kit.mesh_session import COUNT, MeshSession, axes_of, devices, opened, refused
from tessera_conformance.chapters.runtime.kit.readings import rejected, wrong_argument, wrong_axes, wrong_configuration
from tessera_conformance.marks import clause
from tessera_conformance.protocol import Returned

INVALID = "TESS_ERR_INVALID_VALUE"
NOT_INITIALIZED = "TESS_ERR_NOT_INITIALIZED"
WITHOUT_INITIALIZATION = ("context", "mesh")
"""NULL for one of these is TESS_ERR_NOT_INITIALIZED or TESS_ERR_INVALID_VALUE (AMB-RT-38)."""

ON_A_STREAM = [name for name, handles in HANDLES.items() if "stream" in handles and name != "tessStreamDestroy"]
"""Functions whose errors could be kept for a later synchronization."""

LARGEST_SIZE = (1 << 64) - 1
LOWEST_INT, LARGEST_INT = -(1 << 31), (1 << 31) - 1


def pairs(table: dict[str, Any]) -> list[Any]:
    """The parameters of cases: a function and one name of its row."""
    return [pytest.param(function, name, id=f"{function}-{name}") for function, row in table.items() for name in row]


def refuse(session: MeshSession, function: str, change: dict[str, Any], *statuses: str) -> None:
    """A legal call with this change is refused, at once and for good; memory stays; without it, it is accepted."""
    before = len(session.uploads)
    arguments = legal_call(session, function)
    answer = session.attempt(function, **(arguments | change))
    wrong_argument(session.check, function, change, answer)
    refused(session.check, answer, *statuses)
    session.synchronize()
    session.unchanged(session.uploads[before:])
    session.ask(function, **arguments)


@clause("RT-19.A-12", "RT-07-02")
@pytest.mark.parametrize("function", CALLS)
def test_a_legal_call_reports_success(impl, check, function):
    """Every function, called as it is meant to be, is TESS_OK, and gives what its out parameters are for."""
    session = opened(impl, check)
    given = session.ask(function, **legal_call(session, function))
    check.equal(sorted(given), sorted(OUTPUTS.get(function, ())), "the out parameters")
    for name, value in given.items():
        if name not in ("policy", "major", "minor", "patch"):
            check.true(value != 0, f"{name} is not NULL", value)


@clause("RT-19.A-01", "RT-07-03")
@pytest.mark.parametrize(("function", "name"), pairs(dict(HANDLES)))
def test_a_handle_that_is_null_is_refused(impl, check, function, name):
    """NULL is TESS_ERR_INVALID_VALUE, for a context or mesh also TESS_ERR_NOT_INITIALIZED, at once (AMB-RT-38)."""
    statuses = (NOT_INITIALIZED, INVALID) if name in WITHOUT_INITIALIZATION else (INVALID,)
    refuse(opened(impl, check), function, {name: 0}, *statuses)


@clause("RT-19.A-03")
@pytest.mark.parametrize(
    ("function", "name"),
    pairs({function: [n for n in names if n in WITHOUT_INITIALIZATION] for function, names in HANDLES.items()}),
)
def test_without_a_context_or_mesh_nothing_is_initialized(impl, check, function, name):
    """NULL for a context or mesh is refused, whatever else is given (AMB-RT-38)."""
    session = opened(impl, check)
    arguments = legal_call(session, function)
    answer = session.attempt(function, **(arguments | {name: 0}))
    wrong_argument(check, function, {name: 0}, answer)
    refused(check, answer, NOT_INITIALIZED, INVALID)


@clause("RT-19.A-01", "RT-07-03")
@pytest.mark.parametrize(("function", "name"), pairs(dict(POINTERS)))
def test_a_pointer_that_is_null_is_refused(impl, check, function, name):
    """Memory, names and structures that a call needs may not be NULL (AMB-RT-03, AMB-RT-38, AMB-RT-122)."""
    refuse(opened(impl, check), function, {name: 0 if name in ADDRESSES else None}, INVALID)


@clause("RT-19.A-01", "RT-07-03")
@pytest.mark.parametrize(("function", "name"), pairs(dict(OUTPUTS)))
def test_an_out_parameter_that_is_null_is_refused(impl, check, function, name):
    """A function needs a place for each of its outputs (AMB-RT-38, AMB-RT-39)."""
    refuse(opened(impl, check), function, {"null": [name]}, INVALID)


NUMBERS = {
    "tessMeshCreate": {"nDevices": [0, -1, LOWEST_INT]},
    "tessHostAlloc": {"kind": [0, 2, -1, 7, LARGEST_INT]},
    "tessMemcpyAsync": {"kind": [3, 99, -1, 7, LOWEST_INT, LARGEST_INT]},
    "tessModuleLoad": {"size": [0, 1]},
    "tessLaunch": {"argSize": [0, 1, 8, 15]},
    "tessAllReduce": {
        "dtype": [0, 14, -1, LARGEST_INT, LOWEST_INT],
        "op": [3, -1, 9, LARGEST_INT],
        "axis": ["", "xp", "DP", "dp ", "tpdp", "data"],
    },
    "tessReduceScatter": {
        "dtype": [0, 14, -1, LARGEST_INT, LOWEST_INT],
        "op": [3, -1, 9, LARGEST_INT],
        "axis": ["", "xp", "DP", "dp ", "tpdp", "data"],
    },
    "tessAllGather": {"dtype": [0, 14, -1, LARGEST_INT, LOWEST_INT], "axis": ["", "xp", "DP", "dp ", "tpdp", "data"]},
    "tessBroadcast": {"dtype": [0, 14, -1, LARGEST_INT, LOWEST_INT], "root": [-1, 1, 2, LARGEST_INT, LOWEST_INT]},
}
"""Values out of range. The mesh has one rank; `fill` takes 16 bytes of arguments (AMB-RT-06, -16, -51, -59)."""


@clause("RT-19.A-01", "RT-07-03")
@pytest.mark.parametrize(
    ("function", "name", "value"),
    [
        pytest.param(function, name, value, id=f"{function}-{name}-{value if value != '' else 'empty'}")
        for function, row in NUMBERS.items()
        for name, values in row.items()
        for value in values
    ],
)
def test_a_value_out_of_range_is_refused(impl, check, function, name, value):
    """The values lie next to each range, far from it, and at the ends of the type."""
    refuse(opened(impl, check), function, {name: value}, INVALID)


DEVICES = {
    "an id twice": lambda known: [known[0], known[0]],
    "an id twice, apart": lambda known: [known[0], known[-1], known[0]],
    "an unknown id alone": lambda known: [next(value for value in count(min(known)) if value not in known)],
    "an unknown id": lambda known: [known[0], next(value for value in count(min(known)) if value not in known)],
    "a negative id": lambda known: [known[0], -1 if -1 not in known else min(known) - 1],
    "an id far away": lambda known: [next(value for value in count(LARGEST_INT, -1) if value not in known), known[0]],
}


@clause("RT-19.A-01", "RT-07-03")
@pytest.mark.parametrize("ids", DEVICES.values(), ids=DEVICES)
def test_a_device_that_is_not_there_is_refused(impl, check, ids):
    """Each device of a mesh is one of the machine, and named once (AMB-RT-51)."""
    session = opened(impl, check)
    known = [device["id"] for device in session.ask("tessxDevices")["devices"]]
    wrong = ids(known)
    refuse(session, "tessMeshCreate", {"deviceIds": wrong, "axes": axes_of(tp=len(wrong))}, INVALID)


AXES = {
    "too many": (1, [2, 1, 1, 1]),
    "too many together": (1, [2, 0, 2, 1]),
    **{f"too many along {name}": (1, [2 if axis == name else 0 for axis in AXIS_NAMES]) for name in AXIS_NAMES[1:]},
    "negative": (1, [-1, 1, 1, 1]),
    "negative twice": (1, [-1, 1, 1, -1]),
    "lowest": (1, [1, LOWEST_INT, 1, 1]),
    "one modulo 2 to the 32": (1, [641, 6700417, 1, 1]),
    "none modulo 2 to the 32": (1, [65536, 0, 65536, 1]),
    "largest": (1, [LARGEST_INT] * 4),
    "too few for two": (2, [1, 1, 1, 1]),
    "none for two": (2, [0, 0, 0, 0]),
    "too many for two": (2, [4, 1, 1, 1]),
    "too many together for two": (2, [2, 1, 2, 1]),
    "two times two, pp": (2, [2, 2, 1, 1]),
    "two times two, ep": (2, [2, 1, 1, 2]),
    "three along ep for two": (2, [0, 0, 0, 3]),
    "negative for two": (2, [-2, 1, 1, 1]),
    "negative twice for two": (2, [-1, 1, 1, -2]),
    "two modulo 2 to the 32": (2, [3, 1431655766, 1, 1]),
}
"""A number of devices, and sizes of the axes."""


@clause("RT-19.A-01", "RT-07-03")
@pytest.mark.parametrize(("ranks", "sizes"), AXES.values(), ids=AXES)
def test_axes_that_do_not_hold_the_devices_are_refused(impl, check, ranks, sizes):
    """The product of the sizes is not the number of devices, or a size is negative (AMB-RT-01)."""
    session = opened(impl, check, ranks)
    axes = dict(zip(AXIS_NAMES, sizes, strict=True))
    arguments = {"context": session.context, "deviceIds": devices(impl, check, ranks)}
    answer = session.attempt("tessMeshCreate", axes=axes, **arguments)
    wrong_axes(check, sizes, answer)
    refused(check, answer, INVALID)
    session.ask("tessMeshCreate", axes=axes_of(pp=ranks), **arguments)


CONFIGURATIONS: dict[str, dict[str, Any]] = {
    **{f"grid {grid}": {"grid": grid} for grid in ([0, 1, 1], [1, 0, 1], [1, 1, 0], [-1, 1, 1], [1, 1, LOWEST_INT])},
    **{f"grid {grid}": {"grid": grid} for grid in ([1, -1, 1], [1, 1, -1], [LOWEST_INT, 1, 1], [1, LOWEST_INT, 1])},
    **{f"block {block}": {"block": block} for block in ([-1, 1, 1], [1, -1, 1], [32, 1, -1], [LOWEST_INT, 0, 0])},
    **{f"block {block}": {"block": block} for block in ([0, LOWEST_INT, 0], [0, 0, LOWEST_INT])},
    "a block of 65,536 threads": {"block": [65536, 1, 1]},
    "a block of 2,097,152 threads in three extents": {"block": [128, 128, 128]},
    "a block whose threads are none modulo 2 to the 32": {"block": [65536, 65536, 1]},
    "shared memory of an exabyte": {"shmemBytes": 1 << 60},
    "all shared memory there can be": {"shmemBytes": LARGEST_SIZE},
    **{f"flag bit {bit}": {"flags": 1 << bit} for bit in (4, 5, 16, 31)},
    "all flags": {"flags": (1 << 32) - 1},
    "a flag beside defined ones": {"flags": 0x10 | 1},
}


@clause("RT-19.A-01", "RT-07-03")
@pytest.mark.parametrize("change", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_a_launch_configuration_that_is_wrong_is_refused(impl, check, change):
    """By tessLaunch itself, and nothing is left for the synchronization (AMB-RT-08, AMB-RT-10, AMB-RT-61)."""
    session = opened(impl, check)
    legal = legal_call(session, "tessLaunch")
    answer = session.attempt("tessLaunch", **(legal | {"cfg": legal["cfg"] | change}))
    wrong_configuration(session, change, answer)
    refused(check, answer, INVALID)
    session.synchronize()
    session.ask("tessLaunch", **legal)


@clause("RT-19.A-01")
@pytest.mark.parametrize("function", ["tessReduceScatter", "tessAllGather"])
def test_a_count_that_the_ranks_do_not_share_evenly_is_refused(impl, check, function):
    """Two ranks take an even number of elements (AMB-RT-04)."""
    session = opened(impl, check, ranks=2)
    legal = legal_call(session, function)
    one, whole = (session.attempt(function, **(legal | {"count": count})) for count in (1, COUNT))
    shares = isinstance(one, Returned) and rejected(whole, INVALID)
    check.reading("AMB-RT-04", "count is the elements of one share", shares)
    refuse(session, function, {"count": 63}, INVALID)
    refuse(session, function, {"count": 1}, INVALID)


@clause("RT-19.A-01")
@pytest.mark.parametrize(
    "function", ["tessLaunch", "tessAllReduce", "tessReduceScatter", "tessAllGather", "tessBroadcast"]
)
def test_a_mesh_and_the_stream_of_another_are_refused(impl, check, function):
    """A stream spans the ranks of its own mesh, and a call on it names that mesh (AMB-RT-123)."""
    session = opened(impl, check)
    other = session.ask("tessMeshCreate", **legal_call(session, "tessMeshCreate"))["mesh"]
    answer = session.attempt(function, **(legal_call(session, function) | {"mesh": other}))
    check.reading("AMB-RT-123", "the mesh or the stream counts", isinstance(answer, Returned))
    refused(check, answer, INVALID)
    session.synchronize()
    session.ask(function, **legal_call(session, function))


@clause("RT-19.A-01", "RT-07-03")
@pytest.mark.parametrize("function", ON_A_STREAM)
def test_a_refused_call_is_not_reported_again(impl, check, function):
    """An invalid value is reported by the call, and the stream has nothing more to say of it."""
    session = opened(impl, check)
    legal = legal_call(session, function)
    wrong = next((name for name in (*POINTERS.get(function, ()), *HANDLES[function]) if name != "stream"), "stream")
    missing = 0 if wrong in (*ADDRESSES, *HANDLES[function]) else None
    for _ in range(3):
        answer = session.attempt(function, **(legal | {wrong: missing}))
        wrong_argument(check, function, {wrong: missing}, answer)
        refused(check, answer, INVALID, NOT_INITIALIZED)
    session.synchronize()


PATHS = {"NULL": None, "empty": "", "in no folder": "no/such/folder/trace.json", "a folder": "."}


@clause("RT-19.A-01", "RT-07-03")
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_path_that_cannot_be_written_is_refused(impl, check, path, tmp_path):
    """tessProfilerStop refuses a path that cannot be written (AMB-RT-66)."""
    session = opened(impl, check)
    profiler = session.ask("tessProfilerStart", context=session.context)["profiler"]
    where = str(tmp_path / path) if path else path
    refused(check, session.attempt("tessProfilerStop", profiler=profiler, outJsonPath=where), INVALID)


@clause("RT-19.A-01", "RT-07-03")
def test_a_profiler_that_is_null_is_refused(impl, check, tmp_path):
    """The call is refused and writes no file."""
    session = opened(impl, check)
    path = tmp_path / "trace.json"
    refused(check, session.attempt("tessProfilerStop", profiler=0, outJsonPath=str(path)), INVALID)
    check.true(not path.exists(), "no file is written")
