"""Sockets to listen on: for this machine alone unless told otherwise, a socket file for its owner alone."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import stat
from typing import Any

from .addresses import Address, AddressProblem, TcpAddress, UnixAddress

__all__ = ["Listener"]

OWNER_ONLY = 0o600


class Listener:
    """A socket that is bound to an address and does not listen yet; `address` has the port that was found for port 0.

    Raises:
        AddressProblem: another endpoint listens there, other machines reach the address and `allow_remote` is false,
            or the system refuses.
    """

    def __init__(self, address: Address, *, allow_remote: bool = False) -> None:
        self.address = address
        self._file: tuple[int, int] | None = None
        try:
            if isinstance(address, UnixAddress):
                self.socket = socket.socket(socket.AF_UNIX)
                self._bind_file(address.path)
            else:
                family, kind, protocol, place = _resolved(address, allow_remote)
                self.socket = socket.socket(family, kind, protocol)
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self.socket.bind(place)
                self.address = TcpAddress(address.host, self.socket.getsockname()[1])
        except (OSError, UnicodeError, AddressProblem) as error:
            self.close()
            raise AddressProblem(f"{address}: {getattr(error, 'strerror', None) or error}") from None

    socket: socket.socket

    def _bind_file(self, path: str) -> None:
        """Make the socket file; it gets its mode before the socket listens, until when nobody can connect."""
        _remove_stale(path)
        self.socket.bind(path)
        os.chmod(path, OWNER_ONLY)
        self._file = _identity(path)

    def close(self) -> None:
        """Close the socket and remove its file, unless another one has taken its place."""
        if isinstance(self.address, UnixAddress) and self._file is not None:
            with contextlib.suppress(OSError):
                if _identity(self.address.path) == self._file:
                    os.unlink(self.address.path)
        if hasattr(self, "socket"):
            self.socket.close()


def _identity(path: str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def _remove_stale(path: str) -> None:
    """Remove a socket file on which nobody listens. Raises `AddressProblem` for any other file."""
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise AddressProblem("there is a file that is no socket")
    with socket.socket(socket.AF_UNIX) as trial:
        trial.setblocking(False)
        try:
            trial.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except BlockingIOError:  # it listens, and has not accepted others yet
            pass
    raise AddressProblem("another endpoint listens there")


def _resolved(address: TcpAddress, allow_remote: bool) -> tuple[int, int, int, Any]:
    """Family, kind, protocol and place of a socket. Raises `OSError`, `UnicodeError` or `AddressProblem`."""
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, place = found[0]
    if not (allow_remote or ipaddress.ip_address(str(place[0]).partition("%")[0]).is_loopback):
        raise AddressProblem("other machines reach it: name a loopback address, or add --allow-remote")
    return family, kind, protocol, place
