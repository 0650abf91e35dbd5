"""Connections on which a line is a frame: made, and ended once everything is sent."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import StreamReader, StreamWriter

from .addresses import Address, AddressProblem, UnixAddress

__all__ = ["closed", "connect"]

LONGEST_ANSWER = 1 << 21


async def connect(address: Address) -> tuple[StreamReader, StreamWriter]:
    """A connection to an endpoint. Raises `AddressProblem`."""
    try:
        if isinstance(address, UnixAddress):
            return await asyncio.open_unix_connection(address.path, limit=LONGEST_ANSWER)
        return await asyncio.open_connection(address.host, address.port, limit=LONGEST_ANSWER)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AddressProblem(f"{address}: no connection: {reason}") from None


async def closed(writer: StreamWriter) -> None:
    """Close a connection once everything is sent, or the other side is gone."""
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
