"""The statements of a process body (sections 2, 3 and 4), as a package has them: what they name, they name by id.

A statement is a frozen class, and its members, by their types, say how it is read and written (`json_form.py`).
`run` executes a kernel in the process's own time; `task` issues one to a worker; `wait` lasts until all tasks that the
process issued are complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .expressions import Expression

__all__ = [
    "STATEMENTS",
    "Argument",
    "ArgumentList",
    "Body",
    "ChannelId",
    "ChannelIds",
    "Close",
    "Cond",
    "Consume",
    "KernelId",
    "Load",
    "Receive",
    "Repeat",
    "RunKernel",
    "Scope",
    "Send",
    "SlotId",
    "Statement",
    "Task",
    "TensorArgument",
    "TensorId",
    "Wait",
]

ChannelId: TypeAlias = int
KernelId: TypeAlias = int
SlotId: TypeAlias = int
TensorId: TypeAlias = int
ChannelIds: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor given to a kernel."""

    tensor: TensorId


Argument: TypeAlias = TensorArgument | Expression
ArgumentList: TypeAlias = tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class RunKernel:
    """Execute a kernel in the time of the process."""

    kernel: KernelId
    arguments: ArgumentList


@dataclass(frozen=True, slots=True)
class Task:
    """Issue a kernel to the worker that the policy chooses; `key` is what policies place by, 0 where left out."""

    kernel: KernelId
    arguments: ArgumentList
    key: Expression | None = None
    waits: ChannelIds = ()
    signals: ChannelIds = ()


@dataclass(frozen=True, slots=True)
class Send:
    """Publish a token."""

    channel: ChannelId
    value: Expression


@dataclass(frozen=True, slots=True)
class Receive:
    """Take one token."""

    channel: ChannelId
    into: SlotId


@dataclass(frozen=True, slots=True)
class Consume:
    """Run the body for each token until the channel is closed and empty."""

    channel: ChannelId
    into: SlotId
    body: Body


@dataclass(frozen=True, slots=True)
class Close:
    """The last act of the process on a channel."""

    channel: ChannelId


@dataclass(frozen=True, slots=True)
class Scope:
    """Outputs of tasks issued in the body stay alive until its end."""

    body: Body


@dataclass(frozen=True, slots=True)
class Cond:
    """One of two bodies."""

    when: Expression
    then: Body
    otherwise: Body = ()


@dataclass(frozen=True, slots=True)
class Repeat:
    """The body as often as `count` says when it begins; `index` counts from 0."""

    count: Expression
    body: Body
    index: SlotId | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """Bring an element of a tensor into a slot."""

    slot: SlotId
    tensor: TensorId
    element: Expression


@dataclass(frozen=True, slots=True)
class Wait:
    """Until all tasks that the process issued are complete."""


Statement: TypeAlias = RunKernel | Task | Send | Receive | Consume | Close | Scope | Cond | Repeat | Load | Wait
Body: TypeAlias = tuple[Statement, ...]

STATEMENTS: dict[str, type[Statement]] = {
    "run": RunKernel,
    "task": Task,
    "send": Send,
    "receive": Receive,
    "consume": Consume,
    "close": Close,
    "scope": Scope,
    "cond": Cond,
    "repeat": Repeat,
    "load": Load,
    "wait": Wait,
}
"""The statements by their `op`."""
