"""The process that loads the library and serves the line protocol: `python -m ...child OPTIONS TYPES CALL_RECORD`.

The protocol has descriptors of its own. The library's standard input is empty, and what it writes to standard output
goes to standard error. The process ends with the one that started it.

With `fresh=1` this process never loads the library: it forks one that does, for every case, and ends as that one ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple, NoReturn

from tessera_conformance.server import serve
from tessera_conformance.transports.cabi.adapter import CabiAdapter
from tessera_conformance.transports.cabi.call_record import opened
from tessera_conformance.transports.cabi.library import Library
from tessera_conformance.transports.cabi.options import CabiOptions

PR_SET_PDEATHSIG = 1


class Files(NamedTuple):
    """Files shared by the process that loads the library and the one that starts it: `c_types` and `call_record`."""

    types: str
    record: str


def main(arguments: list[str]) -> int:
    """Serve the library until the session is closed."""
    options, files = CabiOptions.read(arguments[0]), Files(*arguments[1:])
    requests, responses = _own_descriptors()
    _end_with_the_parent()
    if options.fresh:
        return _serve_in_forks(options, files, requests, responses)
    return serve(_adapter(options, files), requests, responses)


def _adapter(options: CabiOptions, files: Files) -> CabiAdapter:
    library = Library(options.library, files.types, opened(files.record))
    return CabiAdapter(library, options.name, options.header, options.description)


def _own_descriptors() -> tuple[BinaryIO, BinaryIO]:
    """The descriptors of the protocol, out of the library's way."""
    requests, responses = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, responses


def _end_with_the_parent() -> None:
    """Ask the system to kill this process when its parent dies: a call that hangs does not see the end of its input."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class _FreshStart(BaseException):
    """A reset is due: another process is to answer it."""


class _FreshAdapter:
    """The adapter of one case: a reset is answered by the next process."""

    def __init__(self, adapter: CabiAdapter) -> None:
        self._adapter = adapter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapter, name)

    def session_reset(self, **_: Any) -> NoReturn:
        raise _FreshStart


class _Remembered:
    """The requests, of which the last is remembered."""

    def __init__(self, requests: BinaryIO) -> None:
        self._requests = requests
        self.last = b""

    def __iter__(self) -> Iterator[bytes]:
        while line := self._requests.readline():
            self.last = line
            yield line


def _serve_in_forks(options: CabiOptions, files: Files, requests: BinaryIO, responses: BinaryIO) -> int:
    """A process for every case; returns, or ends by a signal, as the last one did."""
    due: int | None = None
    while True:
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reading)
            _end_with_the_parent()
            _serve_case(options, files, requests, responses, due, writing)
        os.close(writing)
        message = os.read(reading, 64)
        os.close(reading)
        _, status = os.waitpid(process, 0)
        if message:
            due = int(message)
            continue
        if os.WIFSIGNALED(status):
            _end_by(os.WTERMSIG(status))
        return os.waitstatus_to_exitcode(status)


def _serve_case(
    options: CabiOptions,
    files: Files,
    requests: BinaryIO,
    responses: BinaryIO,
    due: int | None,
    tell: int,
) -> NoReturn:
    """Answer the reset that is due, then requests up to the next one, whose id goes to the first process."""
    adapter = _FreshAdapter(_adapter(options, files))
    if due is not None:
        adapter.hello()  # what it says to be unsupported is not answered
        answer = {"jsonrpc": "2.0", "id": due, "result": {"returned": {}}}
        responses.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
        responses.flush()
    remembered = _Remembered(requests)
    code = 1
    try:
        code = serve(adapter, remembered, responses)  # type: ignore[arg-type]
    except _FreshStart:
        os.write(tell, str(json.loads(remembered.last)["id"]).encode())
        code = 0
    os._exit(code)


def _end_by(number: int) -> NoReturn:
    """End by a signal, so that the suite sees it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
