"""An endpoint in a process of its own, and connections to it that see every byte."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Self, TypeAlias

Message: TypeAlias = dict[str, Any]
PATIENCE = 60.0


class Served:
    """`tessera-reference host-io serve` with options."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "tessera_reference.cli", "host-io", "serve", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), self.process.communicate()[1]
        self.address = line.removeprefix("listening on ").rstrip("\n")

    def connect(self) -> Wire:
        return Wire(self.address)

    def rss(self) -> int:
        """Bytes of memory that the process has now."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; the exit code and what was written to standard error."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        errors = self.process.communicate(timeout=PATIENCE)[1]
        return self.process.returncode, errors


class Wire:
    """A connection of bytes."""

    def __init__(self, address: str) -> None:
        form, _, rest = address.partition(":")
        self.socket = socket.socket(socket.AF_UNIX if form == "unix" else socket.AF_INET)
        self.socket.settimeout(PATIENCE)
        host, _, port = rest.rpartition(":")
        self.socket.connect(rest if form == "unix" else (host, int(port)))
        self._unread = b""

    def send(self, *messages: Message | bytes) -> None:
        """Send frames in one piece."""
        self.socket.sendall(frames(messages))

    def lines(self, count: int) -> list[Message]:
        """So many answers."""
        while self._unread.count(b"\n") < count:
            chunk = self.socket.recv(1 << 20)
            assert chunk, f"the end behind {self._unread[-300:]!r}"
            self._unread += chunk
        *found, self._unread = self._unread.split(b"\n", count)
        return [json.loads(line) for line in found]

    def rest(self) -> list[Message]:
        """All answers until the end of the connection, after this side has ended."""
        self.socket.shutdown(socket.SHUT_WR)
        return self.until_the_end()

    def until_the_end(self) -> list[Message]:
        while chunk := self.socket.recv(1 << 20):
            self._unread += chunk
        *found, last = self._unread.split(b"\n")
        assert last == b""
        return [json.loads(line) for line in found]

    def flood(self, block: bytes, seconds: float) -> int:
        """Send a block again and again until the other side takes nothing for some time, or is gone; the bytes sent."""
        sent = 0
        self.socket.settimeout(seconds)
        try:
            while sent < 1 << 28:
                sent += self.socket.send(block[sent % len(block) :])
        except (TimeoutError, ConnectionError):
            pass
        self.socket.settimeout(PATIENCE)
        return sent

    def ask(self, *messages: Message | bytes) -> list[Message]:
        """Return one answer for each frame."""
        self.send(*messages)
        return self.lines(len(messages))

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def frames(messages: Iterable[Message | bytes]) -> bytes:
    """Frames as they are sent, one a line."""
    return b"".join(
        (message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n" for message in messages
    )


def codes(answers: Sequence[Message]) -> list[Any]:
    """The error codes of responses; of a refusal, its reason."""
    return [answer["refused"] if "refused" in answer else answer["completion"]["error_code"] for answer in answers]
