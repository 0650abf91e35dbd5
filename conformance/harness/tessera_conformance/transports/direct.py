"""The implementation as a Python object in this process.

Fast and easy to debug. A Python-level hang is interrupted at the deadline; a native crash or a native busy loop takes
the run with it, so implementations with native code belong behind the rpc transport.
"""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from tessera_conformance.adapter import Adapter, MalformedAnswer, invoke
from tessera_conformance.protocol import write_outcome
from tessera_conformance.tensors import MalformedTensor, from_wire
from tessera_conformance.transports import TransportFault

HARNESS = Path(__file__).parents[1]


class DeadlinePassed(BaseException):
    """Raised inside a call that outlived its deadline; not an Exception, so that adapters do not swallow it."""


class DirectTransport:
    """Calls an adapter object made by `factory`."""

    def __init__(self, factory: Callable[[], Adapter], label: str) -> None:
        self.label = label
        self._factory = factory
        self._adapter: Adapter | None = None

    def start(self, deadline: float) -> Any:
        """Make a new adapter and ask for its Hello."""
        self._adapter = None
        take_alarm()
        return _answer_of(self._started, deadline)

    def _started(self) -> Any:
        self._adapter = self._factory()
        return self._adapter.hello()

    def call(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        """Call one method of the adapter."""
        if self._adapter is None:
            raise TransportFault("crash", "the implementation is not started")
        adapter = self._adapter
        if method == "session.reset":
            take_alarm()
        return _answer_of(lambda: write_outcome(invoke(adapter, method, from_wire(dict(params)))), deadline)

    def stop(self) -> None:
        """Drop the adapter."""
        self._adapter = None


def _answer_of(ask: Callable[[], Any], deadline: float) -> Any:
    """Return the result of a call, interrupted at its deadline. Raises `TransportFault` for any exception.

    A plain function: two context managers for each of 200,000 calls would cost half a second of a run.
    """
    try:
        return limited(ask, deadline)
    except DeadlinePassed:
        raise TransportFault("hang", f"no answer within {deadline:g} s") from None
    except SystemExit as error:
        raise TransportFault("crash", f"the implementation called exit({error.code})") from None
    except KeyboardInterrupt:
        raise
    except MalformedAnswer as error:
        raise TransportFault("protocol_error", str(error)) from None
    except BaseException as error:
        detail = traceback.format_exception_only(error)[-1].strip().removeprefix(f"{MalformedTensor.__module__}.")
        raise TransportFault("crash", detail, _trace_of_others(error)) from None


def _trace_of_others(error: BaseException) -> str:
    """The traceback of an error, without the frames of the harness, where there are others."""
    told = traceback.TracebackException.from_exception(error)
    others = [frame for frame in told.stack if not frame.filename.startswith(str(HARNESS)) and frame.filename[0] != "<"]
    if others:
        told.stack = traceback.StackSummary.from_list(others)
    return "".join(told.format())


def limited(ask: Callable[[], Any], seconds: float) -> Any:
    """Call, and interrupt Python code after `seconds`, where that can be done."""
    if not _can_interrupt():
        return ask()
    signal.setitimer(signal.ITIMER_REAL, seconds)
    limit = time.monotonic() + seconds
    try:
        answer = ask()
        if time.monotonic() > limit:
            raise DeadlinePassed  # the adapter swallowed the interrupt, or switched it off
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return answer


def _can_interrupt() -> bool:
    """Only the main thread of a POSIX process can."""
    return threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")


def take_alarm() -> None:
    """Set the handler at the start and before every case, since the case before may have set another.

    It stays, since without a timer nothing calls it. To set it before each of 200,000 calls took a fortieth of a run.
    """
    if _can_interrupt():
        signal.signal(signal.SIGALRM, _interrupt)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise DeadlinePassed
