"""Programs as the language-neutral objects that `wsp.compile` takes, from one function a statement.

    program(
        process("producer", repeat(3, send("c", slot("i")), index="i")),
        process("consumer", consume("c", "x", run("w7"), note(slot("x")))),
        channels=[channel("c")],
        kernels=work(7),
    )

Where a value is wanted, a number is a constant; a member that is not given is left out, so that defaults are the
implementation's. `note` appends a hexadecimal digit to the tensor `log`, which tells the order of what happened.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

Statement: TypeAlias = dict[str, Any]
Value: TypeAlias = int | Mapping[str, Any]

FORMATS = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q"} | {
    "fp32": "f",
    "fp64": "d",
    "bool": "?",
}
"""The dtypes of tensors, by their letters in `struct`."""


def program(
    *processes: Mapping[str, Any],
    channels: Iterable[Mapping[str, Any]] = (),
    kernels: Iterable[Mapping[str, Any]] = (),
    tensors: Iterable[Mapping[str, Any]] = (),
    symbols: Iterable[Mapping[str, Any]] = (),
    schedule: Mapping[str, Any] | None = None,
    logs: Iterable[str] = ("log",),
    name: str = "case",
) -> dict[str, Any]:
    """Return a program of processes, with the kernel of `note` and its tensors, the logs."""
    return {
        "name": name,
        "kernels": [*kernels, _note()],
        "schedule": dict(schedule or {}),
        "csp": {"channels": list(channels), "processes": list(processes)},
        "symbols": list(symbols),
        "tensors": [*tensors, *(tensor(log, "u64", [0]) for log in logs)],
    }


# declarations


def process(name: str, *body: Statement) -> dict[str, Any]:
    """Return a process and its body."""
    return {"name": name, "body": list(body)}


def channel(name: str, capacity: int | None = None, latency: int | None = None) -> dict[str, Any]:
    """Return a channel; the implementation chooses an omitted capacity or latency."""
    return {"name": name, **_given(capacity=capacity, latency=latency)}


def kernel(
    name: str,
    parameters: Mapping[str, str] | None = None,
    instructions: Sequence[Mapping[str, Any]] = (),
    cycles: int = 0,
    per_element: int = 0,
    executor: str | None = None,
) -> dict[str, Any]:
    """Return a kernel whose parameters are `tensor` or `scalar`, with its report of cycles."""
    return {
        "name": name,
        "payload": {
            "form": "wsp-kernel",
            "parameters": [{"name": parameter, "kind": kind} for parameter, kind in (parameters or {}).items()],
            "instructions": list(instructions),
        },
        "cycles": {"fixed": cycles, "per_element": per_element},
        **_given(executor=executor),
    }


def instruction(op: str, destination: str, *operands: str | int) -> dict[str, Any]:
    """Return an instruction of a kernel on parameters and constants."""
    read = [{"constant": operand} if isinstance(operand, int) else {"parameter": operand} for operand in operands]
    return {"op": op, "destination": destination, "operands": read}


def work(*cycles: int) -> list[dict[str, Any]]:
    """Return the kernel `w<cycles>` for each number of cycles, which does nothing else."""
    return [kernel(f"w{cycle}", cycles=cycle) for cycle in cycles]


def filler(name: str, cycles: int = 0, per_element: int = 0) -> dict[str, Any]:
    """Return a kernel that fills its tensor with its scalar."""
    parameters = {"t": "tensor", "by": "scalar"}
    return kernel(name, parameters, [instruction("fill", "t", "by")], cycles, per_element)


def tensor(name: str, dtype: str, values: Sequence[int | float]) -> dict[str, Any]:
    """Return a tensor with its initial elements, little-endian."""
    data = struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)
    return {"name": name, "dtype": dtype, "count": len(values), "initial": data.hex()}


def elements(dtype: str, data: str) -> list[Any]:
    """Return the elements in the hexadecimal bytes of a tensor."""
    found = bytes.fromhex(data)
    form = FORMATS[dtype]
    return list(struct.unpack(f"<{len(found) // struct.calcsize(form)}{form}", found))


def symbol_of(name: str, default: int = 0, width: int = 64) -> dict[str, Any]:
    """Return the declaration of a symbol."""
    return {"name": name, "width": width, "default": default}


def schedule(
    policy: str | None = None,
    workers: int = 1,
    window: Mapping[str, Any] | int | None = None,
    directives: Sequence[Mapping[str, Any]] = (),
    parameters: Mapping[str, Any] | None = None,
    **resources: int,
) -> dict[str, Any]:
    """Return a schedule: a policy over workers, a task window, sizes of resources, further directives."""
    stated: dict[str, Any] = {}
    if policy is not None:
        given = {
            name: parameter if name == "workers" else value(parameter) for name, parameter in (parameters or {}).items()
        }
        stated["policy"] = {"id": policy, "parameters": {"workers": workers, **given}}
    if window is not None:
        stated["task_window"] = {"size": window} if isinstance(window, int) else dict(window)
    if resources:
        stated["resources"] = resources
    if directives:
        stated["directives"] = list(directives)
    return stated


# values


def value(given: Value) -> dict[str, Any]:
    """Return an expression; a number is a constant."""
    return {"constant": given} if isinstance(given, int) else dict(given)


def slot(name: str) -> dict[str, Any]:
    """Return the expression for a slot's value."""
    return {"slot": name}


def symbol(name: str) -> dict[str, Any]:
    """Return the value of a symbol in this run."""
    return {"symbol": name}


def op(name: str, *operands: Value) -> dict[str, Any]:
    """Return an operation on values."""
    return {"op": name, "operands": [value(operand) for operand in operands]}


def tensor_argument(name: str) -> dict[str, Any]:
    """Return a tensor given to a kernel."""
    return {"tensor": name}


# statements


def run(kernel: str, *arguments: str | Value) -> Statement:
    """Execute a kernel in the time of the process; a text is the name of a tensor."""
    return {"op": "run", "kernel": kernel, "arguments": _arguments(arguments)}


def task(
    kernel: str,
    *arguments: str | Value,
    key: Value | None = None,
    waits: Sequence[str] = (),
    signals: Sequence[str] = (),
) -> Statement:
    """Issue a kernel to a worker; a text is the name of a tensor."""
    more = {} if key is None else {"key": value(key)}
    more |= {name: list(events) for name, events in (("waits", waits), ("signals", signals)) if events}
    return {"op": "task", "kernel": kernel, "arguments": _arguments(arguments), **more}


def send(channel: str, token: Value = 0) -> Statement:
    """Publish a token."""
    return {"op": "send", "channel": channel, "value": value(token)}


def receive(channel: str, into: str) -> Statement:
    """Take one token into a slot."""
    return {"op": "receive", "channel": channel, "into": into}


def consume(channel: str, into: str, *body: Statement) -> Statement:
    """Return a consume: its body runs for each token, until the channel is closed and empty."""
    return {"op": "consume", "channel": channel, "into": into, "body": list(body)}


def close(channel: str) -> Statement:
    """Close a channel; the last operation of the process on it."""
    return {"op": "close", "channel": channel}


def scope(*body: Statement) -> Statement:
    """Return a scope: outputs of tasks issued in its body stay alive until its end."""
    return {"op": "scope", "body": list(body)}


def cond(when: Value, then: Sequence[Statement], otherwise: Sequence[Statement] = ()) -> Statement:
    """One of two bodies."""
    more = {"otherwise": list(otherwise)} if otherwise else {}
    return {"op": "cond", "when": value(when), "then": list(then), **more}


def repeat(count: Value, *body: Statement, index: str | None = None) -> Statement:
    """Return a loop over a body; the index counts from 0."""
    return {"op": "repeat", "count": value(count), "body": list(body), **_given(index=index)}


def load(slot: str, tensor: str, element: Value = 0) -> Statement:
    """Load an element of a tensor into a slot."""
    return {"op": "load", "slot": slot, "tensor": tensor, "element": value(element)}


def wait() -> Statement:
    """Until all tasks that the process issued are complete."""
    return {"op": "wait"}


def note(digit: Value, log: str = "log") -> Statement:
    """Append a hexadecimal digit to a log, which holds sixteen; it takes no time."""
    return run("note", log, digit)


def _note() -> dict[str, Any]:
    digits = [instruction("mul", "log", "log", 16), instruction("add", "log", "log", "digit")]
    return kernel("note", {"log": "tensor", "digit": "scalar"}, digits)


def _arguments(given: Iterable[str | Value]) -> list[dict[str, Any]]:
    return [tensor_argument(argument) if isinstance(argument, str) else value(argument) for argument in given]


def _given(**members: Any) -> dict[str, Any]:
    """Return the members that are not None."""
    return {name: member for name, member in members.items() if member is not None}
