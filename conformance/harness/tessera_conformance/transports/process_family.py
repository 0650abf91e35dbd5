"""All processes that an implementation has started, so that none of them outlives its session.

A process may leave the group and the session of its parent (`setsid`), and its parent may die before it. So each
descendant is known by a token in its environment, and one that has cleared its environment by its line of parents, for
which orphans are handed to this process where Linux can do that. Elsewhere only the group is ended.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import sys
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

VARIABLE = "TESSERA_CONFORMANCE_SESSION"
ROUNDS = 20
"""The most times that the family is looked through: a process that is ended may have started another meanwhile."""
_SET_CHILD_SUBREAPER = 36
_PROCESSES = Path("/proc")


class ProcessFamily:
    """The processes of one session: give `environment` to the first of them, say which it is, and `end` them all.

    A family that was not ended when this process ends is ended then.
    """

    def __init__(self) -> None:
        self.token = uuid.uuid4().hex
        self.first: int | None = None
        self._since = 0
        _receive_orphans()
        self._children_before = {each.pid for each in _processes() if each.parent == os.getpid()}
        _LIVING[self.token] = self

    def environment(self) -> dict[str, str]:
        """The environment of this process, with the token."""
        return {**os.environ, VARIABLE: self.token}

    def begins_with(self, pid: int) -> None:
        """Name the first process, which leads a process group of its own; no other of the family began before it."""
        self.first = pid
        living = _living(pid)
        self._since = 0 if living is None else living.started

    def end(self) -> None:
        """End the first process, its group and everything that they have started."""
        for _ in range(ROUNDS):
            members = self._members()
            if self.first is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.first, signal.SIGKILL)
            for pid in members:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            for pid in members - {self.first}:  # the first one is waited for by who started it
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            if not members:
                break
        _LIVING.pop(self.token, None)

    def _members(self) -> set[int]:
        """The living processes of the family."""
        living = [each for each in _processes() if each.started >= self._since]
        children: dict[int, list[int]] = {}
        for each in living:
            children.setdefault(each.parent, []).append(each.pid)
        known = {each.pid for each in living}
        pending = [*self._orphans(children.get(os.getpid(), [])), *filter(self._has_token, known)]
        pending += [] if self.first is None else [self.first]
        found: set[int] = set()
        while pending:
            pid = pending.pop()
            if pid in known and pid not in found:
                found.add(pid)
                pending += children.get(pid, [])
        return found

    def _orphans(self, children: list[int]) -> Iterator[int]:
        """Children that no family here has started: they came since, and stand in a session of their own."""
        own = os.getsid(0)
        known = self._children_before | {family.first for family in _LIVING.values()}
        others = _LIVING.keys() - {self.token}
        for pid in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if pid not in known and os.getsid(pid) != own and _token(pid).decode(errors="replace") not in others:
                    yield pid

    def _has_token(self, pid: int) -> bool:
        return _token(pid) == self.token.encode()


_LIVING: dict[str, ProcessFamily] = {}
"""The families that were not ended, by token."""


@atexit.register
def _end_all() -> None:
    for family in list(_LIVING.values()):
        family.end()


@cache
def _receive_orphans() -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class _Living(NamedTuple):
    """A process, its parent, and when it began, in clock ticks since the system did."""

    pid: int
    parent: int
    started: int


def _processes() -> Iterator[_Living]:
    """Each living process; none where the system does not tell."""
    for name in os.listdir(_PROCESSES) if _PROCESSES.is_dir() else ():
        if name.isdigit() and (found := _living(int(name))) is not None:
            yield found


def _living(pid: int) -> _Living | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"{_PROCESSES}/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        if fields[0] not in (b"Z", b"X"):
            return _Living(pid, int(fields[1]), int(fields[19]))
    return None


def _token(pid: int) -> bytes:
    """The token in the environment of a process; empty where there is none, or it cannot be read."""
    try:
        variables = (_PROCESSES / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return b""
    prefix = f"{VARIABLE}=".encode()
    return next((each.removeprefix(prefix) for each in variables if each.startswith(prefix)), b"")
