"""Profilers: started, stopped, and the file that they leave (runtime specification, 4.8).

What the trace holds is for the cases of the feature `trace-export`.
"""

from __future__ import annotations

import json
import os

import pytest

from tessera_conformance.chapters.runtime.kit.calls import legal_call
from tessera_conformance.chapters.runtime.kit.mesh_session import MeshSession, opened, refused
from tessera_conformance.marks import clause

WORK = {
    "nothing": (),
    "copy": ("tessMemcpyAsync",),
    "launch": ("tessLaunch",),
    "collective": ("tessAllReduce",),
    "everything": ("tessMemcpyAsync", "tessLaunch", "tessAllReduce", "tessBroadcast", "tessEventRecord"),
}


def started(session: MeshSession) -> int:
    """A profiler."""
    return int(session.ask("tessProfilerStart", context=session.context)["profiler"])


@clause("RT-04.8-04")
@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
@pytest.mark.parametrize("synchronized", [True, False], ids=["synchronized", "queued"])
def test_stopping_a_profiler_writes_a_json_file(impl, check, work, synchronized, tmp_path):
    """At the path that is given, whatever was done meanwhile, and not before it is stopped."""
    session, path = opened(impl, check), tmp_path / "trace.json"
    profiler = started(session)
    for function in work:
        session.ask(function, **legal_call(session, function))
    if synchronized:
        session.synchronize()
    check.true(not path.exists(), "there is no file before")
    check.equal(session.ask("tessProfilerStop", profiler=profiler, outJsonPath=str(path)), {}, "no outputs")
    check.true(path.is_file(), "there is a file afterwards")
    check.true(_is_json(path.read_bytes()), "the file holds JSON in UTF-8")


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data.decode("utf-8")), dict | list)
    except ValueError:
        return False


@clause("RT-04.8-04")
@pytest.mark.parametrize("name", ["trace.json", "no suffix", "a name with spaces.json", "spur-\u00e4\u03bb.json"])
def test_the_file_has_the_name_that_is_given(impl, check, name, tmp_path):
    """The profiler writes that file and no other."""
    session = opened(impl, check)
    session.ask("tessProfilerStop", profiler=started(session), outJsonPath=str(tmp_path / name))
    names = [file.decode("utf-8", "replace") for file in os.listdir(os.fsencode(tmp_path))]
    check.equal(names, [name], "the files in the folder, in UTF-8")


@clause("RT-04.8-04")
def test_a_file_that_is_there_is_replaced(impl, check, tmp_path):
    """The old content of the file, longer than any trace of nothing, is replaced."""
    session, path = opened(impl, check), tmp_path / "trace.json"
    path.write_text("old " * 100_000)
    session.ask("tessProfilerStop", profiler=started(session), outJsonPath=str(path))
    check.true(_is_json(path.read_bytes()), "the file holds JSON in UTF-8")


@clause("RT-04.8-05")
def test_a_started_profiler_can_be_stopped(impl, check, tmp_path):
    """Its handle is not NULL; another can be started afterwards (AMB-RT-34)."""
    session = opened(impl, check)
    for number in range(3):
        profiler = started(session)
        check.true(profiler != 0, "the profiler is not NULL", profiler)
        session.ask("tessLaunch", **legal_call(session, "tessLaunch"))
        session.ask("tessProfilerStop", profiler=profiler, outJsonPath=str(tmp_path / f"{number}.json"))
    check.equal(sorted(path.name for path in tmp_path.iterdir()), ["0.json", "1.json", "2.json"], "the files")


@clause("RT-04.8-05")
def test_a_profiler_is_started_on_a_live_context(impl, check, tmp_path):
    """One of two contexts, and without a mesh too; none without a context."""
    first, second = (check.returns(impl.runtime.tessInit())["context"] for _ in range(2))
    profiler = check.returns(impl.runtime.tessProfilerStart(context=second), "tessProfilerStart succeeds")["profiler"]
    check.returns(impl.runtime.tessShutdown(context=first))
    stopped = impl.runtime.tessProfilerStop(profiler=profiler, outJsonPath=str(tmp_path / "trace.json"))
    check.returns(stopped, "tessProfilerStop succeeds")
    answer = impl.runtime.tessProfilerStart(context=0)
    refused(check, answer, "TESS_ERR_NOT_INITIALIZED", "TESS_ERR_INVALID_VALUE")
