"""A conversation with one implementation: it is opened, called, reset between cases, and restarted after a fault.

Every call gives an observation, also when the implementation fails. After a crash the session starts the implementation
again and replays the calls made since the last reset, the crashed one included. So the report can distinguish a
reproducible crash from another one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tessera_conformance.protocol import (
    Arithmetic,
    Fault,
    Hello,
    Observation,
    ProtocolViolation,
    Returned,
    Unsupported,
    read_hello,
    read_outcome,
)
from tessera_conformance.transports import Inapplicable, Transport, TransportFault

DEADLINE = 30.0
START_DEADLINE = 60.0
START_ATTEMPTS = 2


@dataclass(frozen=True)
class Exchange:
    """One request and its outcome; `seconds` is the time the call took."""

    method: str
    params: Mapping[str, Any]
    observation: Observation
    seconds: float


class Session:
    """One implementation behind a transport."""

    def __init__(
        self, transport: Transport, deadline: float = DEADLINE, start_deadline: float = START_DEADLINE
    ) -> None:
        self.transport = transport
        self.deadline = deadline
        self.exchanges: list[Exchange] = []
        self.start_deadline = start_deadline
        self._hello: Hello | None = None
        self._running = False
        self._failed_starts = 0
        self._start_fault = Fault("crash", "never started")

    @property
    def label(self) -> str:
        """The name of the implementation on the command line."""
        return self.transport.label

    @property
    def compiler(self) -> str | None:
        """The compiler of the images, if it is not the implementation itself."""
        return getattr(self.transport, "compiler", None)

    def open(self) -> Hello | Fault:
        """Start the implementation unless it runs; after `START_ATTEMPTS` failures in a row it is not started again."""
        if self._running and self._hello is not None:
            return self._hello
        if self._failed_starts >= START_ATTEMPTS:
            return self._start_fault
        try:
            self._hello = read_hello(self.transport.start(self.start_deadline))
        except TransportFault as stop:
            return self._start_failed(stop.fault)
        except (ProtocolViolation, ValueError, RecursionError) as error:
            return self._start_failed(Fault("protocol_error", str(error)))
        self._running, self._failed_starts = True, 0
        return self._hello

    def _start_failed(self, fault: Fault) -> Fault:
        self.transport.stop()
        self._failed_starts += 1
        self._start_fault = replace(fault, detail=f"at start: {fault.detail}")
        return self._start_fault

    def call(self, method: str, params: Mapping[str, Any]) -> Observation:
        """Call one method and record the exchange."""
        started = time.perf_counter()
        observation = self._observe(method, params)
        if isinstance(observation, Fault) and observation.kind == "crash" and self._failed_starts == 0:
            observation = replace(observation, reproducible=self._crashes_again(method, params))
        self.exchanges.append(Exchange(method, params, observation, time.perf_counter() - started))
        return observation

    def _observe(self, method: str, params: Mapping[str, Any]) -> Observation:
        hello = self.open()
        if isinstance(hello, Fault):
            return hello
        try:
            return read_outcome(method, self.transport.call(method, params, self.deadline))
        except TransportFault as stop:
            self._running = False
            return stop.fault
        except (ProtocolViolation, ValueError, RecursionError) as error:
            self.transport.stop()
            self._running = False
            return Fault("protocol_error", str(error))

    def _crashes_again(self, method: str, params: Mapping[str, Any]) -> bool:
        for exchange in self.exchanges:
            if isinstance(self._observe(exchange.method, exchange.params), Fault):
                return True
        return isinstance(self._observe(method, params), Fault)

    def reset(self) -> Fault | None:
        """Forget the calls so far and reset the implementation to its initial state.

        One that refuses, or exceeds the deadline, is stopped, and the next call starts it again, so that nothing of
        this case remains. So is one that failed: its calls were replayed with handles of the previous process.
        """
        went_wrong = any(isinstance(exchange.observation, Fault) for exchange in self.exchanges)
        self.exchanges = []
        if not self._running:
            return None
        if not went_wrong:
            observation = self._observe("session.reset", {})
            if isinstance(observation, Fault):
                return None if observation.kind == "hang" else observation
            if isinstance(observation, Returned) or observation == Unsupported("session.reset"):
                return None
        self.close()
        return None

    def close(self) -> None:
        """Stop the implementation."""
        self.transport.stop()
        self._running = False


class Area:
    """The methods of one area: `language.execute(source=..., function=..., inputs=...)` gives an observation.

    A case that calls an area that is closed for a reason is inapplicable.
    """

    def __init__(self, session: Session, name: str, closed: str = "") -> None:
        self._session = session
        self._name = name
        self._closed = closed

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_"):
            raise AttributeError(method)
        name = f"{self._name}.{method}"
        if self._closed:
            raise Inapplicable(f"asks for {name}: {self._closed}")

        def call(**params: Any) -> Observation:
            return self._session.call(name, params)

        setattr(self, method, call)  # asked for once
        return call


class Implementation:
    """The implementation under test, as the tests see it.

    `level` is the numerics level of the run; `via` is `programs` or `operations`, the way in which arithmetic is
    requested; `seed` determines the inputs of cases with random values.
    """

    def __init__(self, session: Session, level: str = "strict", via: str = "programs", seed: int = 0) -> None:
        self._session = session
        self.seed = seed
        self.level = level
        self.via = via
        without_programs = "this run goes through --via=operations, which has no programs"
        self.language = Area(session, "language", "" if via == "programs" else without_programs)
        self.numerics = Area(session, "numerics")
        self.abi = Area(session, "abi")
        self.binding = Area(session, "binding")
        self.runtime = Area(session, "runtime")
        self.collectives = Area(session, "collectives")
        self.wsp = Area(session, "wsp")
        self.host_io = Area(session, "host_io")

    def restart(self) -> None:
        """Stop the implementation; the next call starts it again, in a process of its own if it has one."""
        self._session.close()

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic that the implementation declares in its Hello."""
        hello = self._session.open()
        return Arithmetic.of(hello.message.get("arithmetic", {}) if isinstance(hello, Hello) else {})
