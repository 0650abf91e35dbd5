"""Calls of libtessera from C, against an empty function of C and a callback of ctypes, which enters Python as well."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from measurement import Measurement, NotMeasured, Outcome

from tessera_reference.c_library.building import CannotBuild, build

SOURCE = Path(__file__).parent / "c_calls.c"
LOOP = """
typedef int callback(int*, int*, int*);
int call(callback* function, long times) {
  int major, minor, patch, failed = 0;
  while (times--) failed |= function(&major, &minor, &patch);
  return failed;
}
"""
CALLS, ROUNDS = 1_000, 201
LIMIT = 1.0
"""Microseconds of a trivial call."""


def measure() -> list[Outcome]:
    """The median over rounds of each, in time of the processor, of which other work on the machine takes nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            build(folder)
        except CannotBuild as problem:
            return [NotMeasured("trivial call from C", str(problem))]
        found = _calls(folder)
        callback = _callback(folder)
    figures = [
        _row("trivial call from C", found["tessGetVersion"], "ctypes callback", callback, LIMIT),
        _row("trivial call from C", found["tessGetVersion"], "empty C function", found["empty"], LIMIT),
    ]
    for function in ("tessStreamSynchronize", "tessEventRecord"):
        figures.append(_row(f"{function} from C", found[function], "ctypes callback", callback, None))
    return list(figures)


def _row(name: str, seconds: float, peer_name: str, peer: float, limit: float | None) -> Measurement:
    return Measurement(name, seconds, peer_name, peer, seconds * 1e6, "us", limit)


def _calls(folder: Path) -> dict[str, float]:
    """The seconds of each kind of call, by a program that is linked with the library."""
    program, library = folder / "calls", folder / "lib"
    include, search, where = f"-I{folder / 'include'}", f"-L{library}", f"-Wl,-rpath,{library}"
    subprocess.run(["gcc", "-O2", include, str(SOURCE), "-o", str(program), search, where, "-ltessera"], check=True)
    told = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    return {name: float(seconds) for name, seconds in (line.split() for line in told.splitlines())}


def _callback(folder: Path) -> float:
    """The seconds of a callback of ctypes that does what tessGetVersion does, called in a loop in C."""
    (folder / "loop.c").write_text(LOOP)
    command = ["gcc", "-O2", "-shared", "-fPIC", str(folder / "loop.c"), "-o", str(folder / "loop.so")]
    subprocess.run(command, check=True)
    call = ctypes.CDLL(str(folder / "loop.so")).call
    out = ctypes.POINTER(ctypes.c_int)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, out, out, out)

    def version(major: ctypes._Pointer, minor: ctypes._Pointer, patch: ctypes._Pointer) -> int:  # type: ignore[type-arg]
        major[0], minor[0], patch[0] = 1, 0, 0
        return 0

    function, times = kind(version), []
    for _ in range(ROUNDS):
        started = time.thread_time()
        assert call(function, ctypes.c_long(CALLS)) == 0
        times.append((time.thread_time() - started) / CALLS)
    return median(times)
