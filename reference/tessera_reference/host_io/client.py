"""The host's side of a connection to an endpoint: frames as they are, or requests with their responses (D3)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from asyncio import StreamReader, StreamWriter
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias

from .addresses import Address, AddressProblem
from .connections import closed, connect
from .endpoint import ids_of
from .errors import InvalidFrame
from .frames import write_frame
from .journal import Pair

__all__ = ["BlockingClient", "Client", "ConnectionEnded"]

Response: TypeAlias = dict[str, Any]


class ConnectionEnded(Exception):
    """The endpoint ended the connection before it answered; says what it told last."""


class Client:
    """Sends requests, any number of which may be unanswered, and matches the responses by their ids."""

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._unanswered: dict[Pair, asyncio.Future[Response]] = {}
        self._last_words = ""
        self._receiving = asyncio.create_task(self._receive())

    @classmethod
    async def open(cls, address: Address) -> Self:
        """A client with a connection of its own. Raises `AddressProblem`."""
        return cls(*await connect(address))

    async def request(self, message: Mapping[str, Any]) -> Response:
        """The response of one request.

        Raises:
            InvalidFrame: the message has no two ids.
            ValueError: a request with the same ids is unanswered.
            ConnectionEnded: the endpoint ended the connection before.
        """
        pair = ids_of(message)
        if pair in self._unanswered:
            raise ValueError(f"{pair[1]!r} of {pair[0]!r} is not answered yet")
        if self._receiving.done():
            raise self._ended()
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._unanswered[pair] = answer
        with contextlib.suppress(ConnectionError):  # what the endpoint told before decides
            self._writer.write(f"{write_frame(message)}\n".encode())
            await self._writer.drain()
        try:
            return await answer
        finally:
            self._unanswered.pop(pair, None)

    async def exchange(self, messages: Sequence[Mapping[str, Any]]) -> list[Response]:
        """The responses of requests that are sent without waiting, in their order; raises as `request`."""
        return await asyncio.gather(*map(self.request, messages))

    async def close(self) -> None:
        """End the connection; what is unanswered raises `ConnectionEnded`."""
        await closed(self._writer)
        await self._receiving

    async def _receive(self) -> None:
        """Match lines to requests until the connection ends."""
        try:
            while line := await self._reader.readline():
                self._match(line)
        except (ConnectionError, ValueError) as error:
            self._last_words = str(error)
        for answer in self._unanswered.values():
            if not answer.done():
                answer.set_exception(self._ended())

    def _match(self, line: bytes) -> None:
        """Give a response to its request; anything else is what the endpoint told last. Raises `ValueError`."""
        response = json.loads(line)
        try:
            answer = self._unanswered[ids_of(response)]
        except (InvalidFrame, KeyError, AttributeError):
            self._last_words = line.decode().strip()
            return
        if not answer.done():
            answer.set_result(response)

    def _ended(self) -> ConnectionEnded:
        told = f"; it told: {self._last_words:.300}" if self._last_words else ""
        return ConnectionEnded(f"the endpoint ended the connection{told}")


class BlockingClient:
    """A client for code that waits: `with BlockingClient(address) as client: client.request(message)`.

    Raises:
        AddressProblem: nobody listens at the address.
    """

    def __init__(self, address: Address) -> None:
        self._runner = asyncio.Runner()
        try:
            self._client = self._runner.run(Client.open(address))
        except AddressProblem:
            self._runner.close()
            raise

    def request(self, message: Mapping[str, Any]) -> Response:
        """As `Client.request`."""
        return self._runner.run(self._client.request(message))

    def exchange(self, messages: Sequence[Mapping[str, Any]]) -> list[Response]:
        """As `Client.exchange`."""
        return self._runner.run(self._client.exchange(messages))

    def close(self) -> None:
        """End the connection."""
        self._runner.run(self._client.close())
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
