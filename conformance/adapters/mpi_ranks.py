"""Collectives of MPI between the processes of one job, one rank in each; `mpi_adapter.py` has them judged."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from conformance.adapters.collective_requests import Request
from conformance.adapters.rank_collectives import Array, taken_part
from mpi4py import MPI

NAP = 0.0002
"""Seconds between two looks of a waiting rank."""


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


def is_known(kind: np.dtype[Any]) -> bool:
    """True if MPI has the type; it has no bf16."""
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
        communicator: Any = self.control.Split(color, key)
        if own is None or communicator == MPI.COMM_NULL:
            return None
        try:
            return taken_part(Communicator(communicator), request, own)
        finally:
            communicator.Free()
