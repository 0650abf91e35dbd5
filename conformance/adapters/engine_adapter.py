"""The protocol methods that adapters of engines of collectives share; an engine gets sound requests only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any

from conformance.adapters.collective_requests import COMBINING, Request, all_reduce_of, request_of, send_recv_of
from conformance.adapters.exchange import hello_of_engine, rank_array, rank_outputs
from conformance.adapters.orders import declared

from tessera_conformance.adapter import NotSupported
from tessera_conformance.operations.table_adapter import adapter_of
from tessera_conformance.tensors import Tensor

FEATURES = ("all-to-all", "subgroups")


class EngineAdapter(ABC):
    """An engine in one version, over so many ranks at most; `name` is that of the library where it is another.

    `operations` is the module with the library's table of operations, if it has one.
    """

    features: tuple[str, ...] = ()
    """The features that it claims beside `FEATURES`."""

    def __init__(
        self, engine: str, version: str, ranks: int, name: str = "", operations: ModuleType | None = None
    ) -> None:
        self.engine, self.version, self.ranks, self.name = engine, version, ranks, name
        self.operations = adapter_of(operations, "TABLE") if operations else None

    def hello(self) -> dict[str, Any]:
        """Identity and claims."""
        return hello_of_engine(self.engine, self.version, (*FEATURES, *self.features), self.name)

    def numerics_evaluate(self, **question: Any) -> dict[str, Any]:
        """One operation of the library's table."""
        if self.operations is None:
            raise NotSupported("numerics.evaluate")
        return self.operations.numerics_evaluate(**question)

    def numerics_declared(self, *, operation: str, **question: Any) -> dict[str, Any]:
        """The order of a sum over ranks, as it was found."""
        return declared(self.engine, self.version, operation, **question)

    def collectives_all_reduce(
        self, *, inputs: list[Tensor], op: str, level: str = "deterministic", **rest: Any
    ) -> dict[str, Any]:
        """The engine's all-reduce over as many ranks as there are inputs."""
        return self._answer(all_reduce_of(inputs, op, self.ranks, level, rest), inputs)

    def collectives_run(self, *, operation: str, inputs: list[Tensor], **arguments: Any) -> dict[str, Any]:
        """One collective among the ranks of each group."""
        return self._answer(request_of(operation, inputs, self.ranks, **arguments), inputs)

    def collectives_send_recv(
        self, *, inputs: list[Tensor], pairs: list[list[int]], chunk: int | None = None, messages: bool = False
    ) -> dict[str, Any]:
        """Sends and receives of pairs of ranks, all at once."""
        return self._answer(send_recv_of(inputs, pairs, self.ranks, chunk, messages), inputs)

    def _answer(self, request: Request, inputs: list[Tensor]) -> dict[str, Any]:
        self.require(request, inputs[0].dtype)
        arrays = [rank_array(tensor, request.operation in COMBINING) for tensor in inputs]
        return rank_outputs(request, inputs, self.carry_out(request, arrays))

    @abstractmethod
    def require(self, request: Request, dtype: str) -> None:
        """Raise `NotSupported` for what the engine cannot combine or run at all."""

    @abstractmethod
    def carry_out(self, request: Request, arrays: list[Any]) -> list[Any]:
        """Return the flat result of each rank, from the flat input of each."""
