"""Where an endpoint is reached: a socket file, or a host and a port (AMB-HIO-58)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Address", "AddressProblem", "TcpAddress", "UnixAddress", "read_address"]


class AddressProblem(Exception):
    """An address that cannot be read, listened on or reached; says which and why."""


@dataclass(frozen=True)
class UnixAddress:
    """A socket file."""

    path: str

    def __str__(self) -> str:
        return f"unix:{self.path}"


@dataclass(frozen=True)
class TcpAddress:
    """A host and a port; to listen on port 0 is to listen on any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"tcp:[{self.host}]:{self.port}" if ":" in self.host else f"tcp:{self.host}:{self.port}"


Address: TypeAlias = UnixAddress | TcpAddress


def read_address(text: str) -> Address:
    """The address of `unix:PATH` or `tcp:HOST:PORT`. Raises `AddressProblem`."""
    form, _, rest = text.partition(":")
    if form == "unix" and rest and "\0" not in rest:
        return UnixAddress(rest)
    host, _, port = rest.rpartition(":")
    if form == "tcp" and host and port.isascii() and port.isdecimal() and int(port) < 1 << 16:
        return TcpAddress(host.removeprefix("[").removesuffix("]"), int(port))
    raise AddressProblem(f"address {text!r}: expected unix:PATH or tcp:HOST:PORT")
