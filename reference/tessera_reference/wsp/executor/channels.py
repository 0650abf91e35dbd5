"""A channel (section 2.2): tokens from send to take, and who waits at both ends, first come, first served.

At most `capacity` tokens are between send and take; each is visible `latency` cycles after its send. With capacity 0 a
send ends when its token is taken (AMB-WSP-38). Who waits is told through `deliver` and `release`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import TypeAlias

from .agenda import CLOSE_SEEN, TOKEN_SEEN, Agenda

__all__ = ["CLOSED", "PROCESS", "TASK", "ChannelState", "Party"]

PROCESS, TASK = 0, 1
CLOSED = -1
"""What is taken from a channel that is closed and empty."""
Party: TypeAlias = tuple[int, int]
"""PROCESS and its index, or TASK and its number; in this order those who came at one instant are served."""


class ChannelState:
    """One channel of a run."""

    def __init__(
        self,
        index: int,
        capacity: int,
        latency: int,
        producers: int,
        agenda: Agenda,
        deliver: Callable[[Party, int], None],
        release: Callable[[Party], None],
    ) -> None:
        self.index = index
        self.capacity = capacity
        self.latency = latency
        self.producers = producers
        self.tokens: deque[tuple[int, int]] = deque()
        self.takers: list[tuple[int, int, int]] = []
        self.senders: list[tuple[int, int, int, int]] = []
        self.seen_closed = producers == 0
        self.sent = 0
        self.taken = 0
        self._agenda = agenda
        self._deliver = deliver
        self._release = release

    def send(self, party: Party, value: int) -> bool:
        """Whether the send is done; else the party waits, and is released later."""
        if self.capacity == 0:
            if self.takers and not self.latency:
                self._hand_over(value)
                return True
            heappush(self.senders, (self._agenda.now, *party, value))
            if self.latency:
                self._agenda.after(self.latency, TOKEN_SEEN, self.index)
            return False
        if len(self.tokens) < self.capacity:
            self._enter(value)
            return True
        heappush(self.senders, (self._agenda.now, *party, value))
        return False

    def take(self, party: Party) -> int | None:
        """A token, or CLOSED; None where the party waits, to whom one is delivered later."""
        value = self._visible_token()
        if value is not None:
            return value
        if self.seen_closed:
            return CLOSED
        heappush(self.takers, (self._agenda.now, *party))
        return None

    def producer_closes(self) -> None:
        """One producer fewer; after the last the channel is closed, which is seen after the latency (AMB-WSP-40)."""
        self.producers -= 1
        if self.producers == 0:
            if self.latency:
                self._agenda.after(self.latency, CLOSE_SEEN, self.index)
            else:
                self.close_seen()

    def token_seen(self) -> None:
        """Tokens may have become visible."""
        while self.takers:
            value = self._visible_token()
            if value is None:
                return
            self._deliver(heappop(self.takers)[1:], value)

    def close_seen(self) -> None:
        """The channel is closed; whoever waits for a token learns it."""
        self.seen_closed = True
        while self.takers:
            self._deliver(heappop(self.takers)[1:], CLOSED)

    def _visible_token(self) -> int | None:
        """The first token, which is taken, if it is visible."""
        now = self._agenda.now
        if self.tokens:
            if self.tokens[0][0] > now:
                return None
            value = self.tokens.popleft()[1]
            self.taken += 1
            if self.senders:
                _, kind, number, waiting = heappop(self.senders)
                self._enter(waiting)
                self._release((kind, number))
            return value
        if self.capacity == 0 and self.senders and self.senders[0][0] + self.latency <= now:
            _, kind, number, value = heappop(self.senders)
            self.sent += 1
            self.taken += 1
            self._release((kind, number))
            return value
        return None

    def _enter(self, value: int) -> None:
        """A token is sent; there is room for it."""
        if self.latency:
            self.sent += 1
            self.tokens.append((self._agenda.now + self.latency, value))
            self._agenda.after(self.latency, TOKEN_SEEN, self.index)
        elif self.takers:
            self._hand_over(value)
        else:
            self.sent += 1
            self.tokens.append((self._agenda.now, value))

    def _hand_over(self, value: int) -> None:
        """From a sender to the first who waits, at once."""
        self.sent += 1
        self.taken += 1
        self._deliver(heappop(self.takers)[1:], value)
