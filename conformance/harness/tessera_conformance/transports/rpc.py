"""The transport `rpc:`: an implementation in a process of its own, which is ended with all its descendants."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tessera_conformance import __version__
from tessera_conformance.documents import NoDocument, exceeds, read_json
from tessera_conformance.protocol import MALFORMED_ANSWER, METHOD_NOT_FOUND, PROTOCOL
from tessera_conformance.tensors import to_wire
from tessera_conformance.terminal import Interrupted
from tessera_conformance.transports import ImplementationUnavailable, TransportFault
from tessera_conformance.transports.hostio_connection import excerpt

# All processes that an implementation has started, so that none of them outlives its session.
#
# A process may leave the group and the session of its parent (`setsid`), and its parent may die before it. So a token
# in its environment identifies each descendant; inner families add theirs. A process that cleared its environment is
# identified by its ancestors; where Linux can do that, orphans become children of this process, unless others start
# processes here too. Elsewhere only the group is ended.


VARIABLE = "TESSERA_CONFORMANCE_SESSION"
ROUNDS = 20
"""The most times that the processes are listed: one that is ended may have started another meanwhile."""
_SET_CHILD_SUBREAPER = 36
_PROCESSES = Path("/proc")


class ProcessFamily:
    """The processes of one session: `start` the first, and `end` them all.

    A family that was not ended when this process ends is ended then. With `adopts`, nobody else starts processes here,
    so that it has the orphans too.
    """

    def __init__(self, *, adopts: bool = True) -> None:
        self.token = uuid.uuid4().hex
        self.first: subprocess.Popen[bytes] | None = None
        self._since = 0
        self._adopts = adopts
        if adopts:
            _receive_orphans()
        self._children_before = {process.pid for process in _processes() if process.parent == os.getpid()}
        _LIVING[self.token] = self

    def start(self, command: Sequence[str], variables: Mapping[str, str], **options: Any) -> subprocess.Popen[bytes]:
        """Start and return the first process, with more variables and with options of `Popen`. Raises `OSError`."""
        environment = {**os.environ, VARIABLE: os.environ.get(VARIABLE, "") + self.token, **variables}
        self.first = subprocess.Popen(command, env=environment, **options)
        living = _living(self.first.pid)
        self._since = 0 if living is None else living.started  # no other process of the family began before it
        return self.first

    def end(self) -> None:
        """End the first process, its group and all its descendants."""
        first = None if self.first is None else self.first.pid
        for _ in range(ROUNDS):
            members = self._members()
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if first is not None:
                    os.killpg(first, signal.SIGKILL)
            for pid in members:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            for pid in members - {first}:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            if not members:
                break
        _LIVING.pop(self.token, None)
        if self.first is not None:
            self.first.wait()

    def _members(self) -> set[int]:
        """Yield the living processes of the family."""
        living = [process for process in _processes() if process.started >= self._since]
        children: dict[int, list[int]] = {}
        for member in living:
            children.setdefault(member.parent, []).append(member.pid)
        pids = {process.pid for process in living}
        pending = [pid for pid in pids if self.token in _tokens(pid)]
        pending += self._orphans(children.get(os.getpid(), [])) if self._adopts else []
        pending += [] if self.first is None else [self.first.pid]
        members: set[int] = set()
        while pending:
            pid = pending.pop()
            if pid in pids and pid not in members:
                members.add(pid)
                pending += children.get(pid, [])
        return members

    def _orphans(self, children: list[int]) -> Iterator[int]:
        """Yield children that no family here has started: they began since, and have a session of their own."""
        own = os.getsid(0)
        pids = self._children_before | {family.first.pid for family in _LIVING.values() if family.first}
        others = _LIVING.keys() - {self.token}
        for pid in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                tokens = _tokens(pid)
                if pid not in pids and os.getsid(pid) != own and not any(other in tokens for other in others):
                    yield pid


def run_to_the_end(command: Sequence[str], grace: float, variables: Mapping[str, str], **options: Any) -> int:
    """Return the exit code of a process; leave no other process behind.

    Raises `Interrupted`: a signal arrived, which was passed on; the process had so many seconds to end by itself.
    """
    family = ProcessFamily()
    process = family.start(command, variables, **options)
    try:
        return process.wait()
    except Interrupted as signal_:
        process.send_signal(signal_.number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
        raise
    finally:
        family.end()


_LIVING: dict[str, ProcessFamily] = {}
"""The families that were not ended, by token."""


@atexit.register
def end_families() -> None:
    """End all families that were not ended."""
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
    """Yield each living process; none where the system does not list them."""
    for name in os.listdir(_PROCESSES) if _PROCESSES.is_dir() else ():
        if name.isdigit() and (process := _living(int(name))) is not None:
            yield process


def _living(pid: int) -> _Living | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"{_PROCESSES}/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        if fields[0] not in (b"Z", b"X"):
            return _Living(pid, int(fields[1]), int(fields[19]))
    return None


def _tokens(pid: int) -> str:
    """Return the tokens in the environment of a process; "" if it has none, or cannot be read."""
    try:
        variables = (_PROCESSES / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    prefix = f"{VARIABLE}=".encode()
    tokens = (variable.removeprefix(prefix) for variable in variables if variable.startswith(prefix))
    return next(tokens, b"").decode(errors="replace")


# The implementation as a process of its own: JSON-RPC 2.0, one message a line, on standard input and output.
#
# Every request has an id that the answer must repeat, and a deadline. Standard error is drained all the time and its
# tail kept. A process that exits, hangs or breaks the protocol is killed with its descendants; the caller may start it
# again.


_encoded = json.JSONEncoder(separators=(",", ":")).encode
"""Made once: `json.dumps` would make an encoder for each of many small requests."""
MESSAGE_LIMIT = 256 * 1024 * 1024
CHUNK = 1 << 16
"""Bytes per read: as many as a pipe holds, since memory for many more would be mapped for each read."""
STDERR_TAIL = 16 * 1024
CLOSE_GRACE = 2.0
EXCHANGE = "TESSERA_CONFORMANCE_EXCHANGE"
"""The environment variable naming the exchange directory of a process. A process that starts others, as `serve` does,
may be ended before it removes theirs, so that they are inside its own."""
LAST_WORDS_GRACE = 0.5
"""Seconds that a process has to exit after it wrote a malformed answer."""


class ProcessTransport(ABC):
    """Sends requests to a process of its own, which `start` restarts after a fault."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._process: _Process | None = None
        self._exchange: tempfile.TemporaryDirectory[str] | None = None
        self._folder = Path()  # that of `_exchange`, while it exists

    @abstractmethod
    def arguments(self, exchange: Path) -> list[str]:
        """Return the command of the process; `exchange` is a directory that exists as long as it."""

    def start(self, deadline: float) -> Any:
        """Start the process and return its Hello message."""
        self.stop()
        outer = os.environ.get(EXCHANGE, "")
        place = outer if os.path.isdir(outer) else None
        self._exchange = tempfile.TemporaryDirectory(prefix="tessera-exchange-", dir=place)
        self._folder = Path(self._exchange.name)
        try:
            self._process = _Process(self.arguments(self._folder), {EXCHANGE: self._exchange.name})
        except OSError as error:
            raise ImplementationUnavailable(self.label, f"{error}", "make the program executable") from None
        params = {
            "protocol": PROTOCOL,
            "harness": f"tessera-conformance {__version__}",
            "exchange": self._exchange.name,
        }
        return self._exchange_message("session.open", params, deadline)

    def call(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        """Send one request and wait for its answer."""
        if self._process is None or self._exchange is None:
            raise TransportFault("crash", "the implementation is not started")
        return self._exchange_message(method, to_wire(params, self._folder), deadline)

    def _exchange_message(self, method: str, params: Any, deadline: float) -> Any:
        assert self._process is not None
        try:
            return self._process.request(method, params, deadline)
        except BaseException:  # after a signal too: later requests must not read a late answer
            self._process.kill()
            self._process = None
            raise

    def stop(self) -> None:
        """Ask the process to close, then make sure that it has."""
        if self._process is not None:
            with contextlib.suppress(TransportFault):
                self._process.request("session.close", {}, CLOSE_GRACE)
            self._process.kill()
            self._process = None
        if self._exchange is not None:
            self._exchange.cleanup()
            self._exchange = None


class RpcTransport(ProcessTransport):
    """Sends requests to the process started by `command`.

    Raises `ImplementationUnavailable`: the command is empty, badly quoted or names no program.
    """

    def __init__(self, command: str) -> None:
        super().__init__(f"rpc:{command}")
        try:
            self._arguments = shlex.split(command)
        except ValueError as error:
            raise ImplementationUnavailable(self.label, f"{error}", "balance the quotes of the command") from None
        if not self._arguments or shutil.which(self._arguments[0]) is None:
            raise ImplementationUnavailable(
                self.label, _absence(self._arguments), "give the command that starts the implementation"
            )

    def arguments(self, exchange: Path) -> list[str]:
        """Return the words of the command."""
        return self._arguments


def _absence(words: list[str]) -> str:
    """Return the reason for which a command starts no program."""
    if not words:
        return "the command is empty"
    if os.sep not in words[0]:
        return f"no program {words[0]} is on PATH"
    return f"{words[0]} is no program that may be run" if os.path.exists(words[0]) else f"there is no file {words[0]}"


class _Process:
    """A running implementation: its pipes, its unread bytes and the tail of its standard error."""

    def __init__(self, arguments: list[str], variables: Mapping[str, str]) -> None:
        self._family = ProcessFamily()
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self._popen = self._family.start(arguments, variables, **pipes, start_new_session=True, bufsize=0)
        assert self._popen.stdin and self._popen.stdout and self._popen.stderr
        self._stdin, self._stdout = self._popen.stdin.fileno(), self._popen.stdout.fileno()
        os.set_blocking(self._stdin, False)
        os.set_blocking(self._stdout, False)
        self._unread = bytearray()
        self._stderr = bytearray()
        self._last_id = 0
        self._drain = threading.Thread(target=self._drain_stderr, args=(self._popen.stderr.fileno(),), daemon=True)
        self._drain.start()

    def request(self, method: str, params: Any, deadline: float) -> Any:
        """Send a request and return its result; `rejected` and the like are results too."""
        limit = time.monotonic() + deadline
        self._refuse_unsolicited(method)
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        line = self._exchange(_encoded(message).encode() + b"\n", method, limit, deadline)
        result = self._result(method, line)
        if time.monotonic() > limit:
            raise TransportFault("hang", f"{method}: no answer that could be read within {deadline:g} s")
        return result

    def _refuse_unsolicited(self, method: str) -> None:
        self._read_available()
        if self._unread:
            words = bytes(self._unread)
            self._unread.clear()
            self._refuse_last_words(method, words)
            raise self._violation(f"an unsolicited message before {method}: {excerpt(words)}")

    def _exchange(self, data: bytes, method: str, limit: float, deadline: float) -> bytes:
        """Send a request and return the first line after it, while reading what the process writes before it."""
        unsent, searched = memoryview(data), 0
        while True:
            try:
                unsent = unsent[os.write(self._stdin, unsent) :] if unsent else unsent
            except BlockingIOError:
                pass
            except BrokenPipeError:
                raise self._death(method) from None
            if not unsent and (end := self._unread.find(b"\n", searched)) >= 0:
                break
            searched = 0 if unsent else len(self._unread)
            if len(self._unread) > MESSAGE_LIMIT:
                raise self._violation(f"{method}: a message of more than {MESSAGE_LIMIT} bytes")
            remaining = limit - time.monotonic()
            writers = [self._stdin] if unsent else []
            if remaining <= 0 or not any(select.select([self._stdout], writers, [], remaining)):
                raise TransportFault("hang", f"{method}: no answer within {deadline:g} s", self._stderr_tail())
            if not self._read_available():
                raise self._death(method)
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line

    def _read_available(self) -> bool:
        """Read what the process has written; return False at the end of its output."""
        while True:
            try:
                chunk = os.read(self._stdout, CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self._unread += chunk
            if len(chunk) < CHUNK:
                return True

    def _result(self, method: str, line: bytes) -> Any:
        if excess := exceeds(line):  # parsing it would take long, and much memory
            raise self._violation(f"{method}: an answer of {excess}: {excerpt(line)}")
        try:
            answer = read_json(line)
        except NoDocument as wrong:
            self._refuse_last_words(method, line)
            raise self._violation(f"{method}: the answer is {wrong}: {excerpt(line)}") from None
        if not isinstance(answer, dict) or answer.get("jsonrpc") != "2.0":
            raise self._violation(f"{method}: the answer is not a JSON-RPC 2.0 object: {excerpt(line)}")
        strange = answer.keys() - {"jsonrpc", "id", "result", "error"}
        if strange:
            raise self._violation(f"{method}: the answer carries unknown fields: {excerpt(line)}")
        if type(answer.get("id")) is not int or answer["id"] != self._last_id:
            raise self._violation(f"{method}: the answer carries id {answer.get('id')!r}, expected {self._last_id}")
        if ("result" in answer) == ("error" in answer):
            raise self._violation(f"{method}: the answer must carry either result or error: {excerpt(line)}")
        if "error" not in answer:
            return answer["result"]
        error = answer["error"]
        sound = isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str)
        if not sound:
            raise self._violation(f"{method}: the error needs an integer code and a message: {excerpt(line)}")
        if error["code"] == METHOD_NOT_FOUND:
            return {"unsupported": {"feature": method}}
        if error["code"] == MALFORMED_ANSWER:
            raise self._violation(f"{method}: {error['message']}")
        raise TransportFault("crash", f"{method}: {error['message']}", self._stderr_tail())

    def _violation(self, detail: str) -> TransportFault:
        return TransportFault("protocol_error", detail, self._stderr_tail())

    def _refuse_last_words(self, method: str, line: bytes) -> None:
        """Raise the end of the process if it wrote an error message instead of an answer, as launchers do."""
        try:
            failed = self._popen.wait(timeout=LAST_WORDS_GRACE) != 0
        except subprocess.TimeoutExpired:
            return
        if failed:
            self._read_available()
            self._stderr += line + b"\n" + self._unread
            raise self._death(method)

    def _death(self, method: str) -> TransportFault:
        """Return a fault: the process ended, or it closed its output while alive."""
        try:
            code = self._popen.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return self._violation(f"{method}: the implementation closed its output")
        self._drain.join(timeout=1.0)
        return TransportFault("crash", f"{method}: the implementation ended with {ending(code)}", self._stderr_tail())

    def _drain_stderr(self, descriptor: int) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(descriptor, 65536):
                self._stderr += chunk
                del self._stderr[:-STDERR_TAIL]

    def _stderr_tail(self) -> str:
        return bytes(self._stderr).decode(errors="replace")

    def kill(self) -> None:
        """End the process and all its descendants."""
        self._family.end()
        self._drain.join(timeout=1.0)
        with contextlib.suppress(OSError), self._popen:
            pass  # closes the pipes


def ending(code: int) -> str:
    """Return `exit code 3` or `signal SIGSEGV` for the return code of a process."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
