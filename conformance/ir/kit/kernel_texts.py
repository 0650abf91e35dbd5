"""Kernels of devices as text, in the generic form of MLIR, and functions of Schedule IR (language spec, 6, 7, 8.1).

`KernelText` writes a kernel operation by operation and keeps the types, so that a test reads like the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import graph_texts

FIRST_OPERATION = 4
"""The line of the first operation of a text's first function or kernel."""

COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})


@dataclass(frozen=True)
class Value:
    """A value of a text: its name with the sign `%`, and its type."""

    name: str
    type: str


def buffer(dtype: str, *shape: int) -> str:
    """Return the type of a buffer in global memory."""
    return _memref(dtype, shape, "global")


def shared(dtype: str, *shape: int) -> str:
    """Return the type of a tile in shared memory."""
    return _memref(dtype, shape, "shared")


def fragment(dtype: str, m: int, n: int, k: int) -> str:
    """Return the type of the operand of a matrix instruction."""
    return f"fragment<{m},{n},{k},{dtype}>"


class KernelText:
    """A kernel of a device, written one operation after another; `text` is all of it.

    Operations are generic, `op(name, *operands, gives=types, **attributes)`; the methods below write the usual ones.
    """

    def __init__(
        self,
        parameters: Mapping[str, str],
        *,
        name: str = "tss_kernel_k",
        level: str = "tile",
        grid: Sequence[int] | None = (1, 1, 1),
        block: Sequence[int] | None = (32, 1, 1),
        smem_bytes: int | None = 0,
        target: str | None = "sm_90",
        **attributes: Any,
    ) -> None:
        """Begin an entry with these parameters, types by name; an attribute that is None is left out."""
        self.name = name
        self.level = level
        self.parameters = {parameter: Value(f"%{parameter}", type_) for parameter, type_ in parameters.items()}
        given = {"grid": grid, "block": block, "smem_bytes": smem_bytes, "target": target, **attributes}
        self.attributes = {key: value for key, value in given.items() if value is not None}
        self.critical = 0
        self._lines: list[str] = []
        self._depth = 2
        self._count = 0

    def __getitem__(self, parameter: str) -> Value:
        return self.parameters[parameter]

    @property
    def line(self) -> int:
        """The line of the last operation, if the kernel is the first of its module."""
        return FIRST_OPERATION + len(self._lines) - 1

    def mark(self) -> None:
        """Mark the last operation as the critical one, at which the kernel is expected to fail."""
        self.critical = self.line

    # Any operation

    def op(self, name: str, *operands: Value, gives: str | Sequence[str] = (), **attributes: Any) -> Any:
        """Write an operation; return its result, a tuple if `gives` is a list, None if it is empty."""
        types = [gives] if isinstance(gives, str) else list(gives)
        results = [self._value(type_) for type_ in types]
        self._write(f"{_named(results)}{_applied(name, operands)}{_tail(operands, types, attributes)}")
        if isinstance(gives, str):
            return results[0]
        return tuple(results) if results else None

    def raw(self, line: str) -> None:
        """Write a line unchanged."""
        self._write(line)

    # Values of a lane

    def constant(self, value: bool | int | float, dtype: str = "int32") -> Value:
        """Return a number."""
        written = float(value) if dtype not in ("bool", "int8", "int16", "int32", "int64") else value
        return self._one("tessera.graph.constant", gives=dtype, value=written)

    def compute(self, name: str, *operands: Value, gives: str = "", **attributes: Any) -> Value:
        """Write an elementwise operation of Graph IR, one value a lane; the result has the last operand's type."""
        result = gives or ("bool" if name in COMPARISONS else operands[-1].type)
        return self._one(f"tessera.graph.{name}", *operands, gives=result, **attributes)

    def index(self, what: str, axis: str = "x") -> Value:
        """Return one of `block_id`, `thread_id`, `block_dim` and `grid_dim` along an axis."""
        return self._one(f"tessera.tile.{what}", gives="int32", axis=axis)

    def lane(self) -> Value:
        """Return the number of the lane in its warp."""
        return self._one("tessera.tile.lane_id", gives="int32")

    def warp(self) -> Value:
        """Return the number of the warp in its block."""
        return self._one("tessera.tile.warp_id", gives="int32")

    # Memory

    def load(self, memory: Value, *indices: Value) -> Value:
        """Return an element of a memref."""
        return self._one("tessera.tile.load", memory, *indices, gives=_dtype(memory))

    def store(self, value: Value, memory: Value, *indices: Value) -> None:
        """Write an element of a memref."""
        self.op("tessera.tile.store", value, memory, *indices)

    def allocate(self, dtype: str, *shape: int) -> Value:
        """Return a tile in shared memory."""
        return self._one("tessera.tile.shared.alloc", gives=shared(dtype, *shape))

    def copy(self, source: Value, destination: Value, *indices: Value, bytes: int = 16) -> None:
        """Write an asynchronous copy from global to shared memory; the indices into the source come first."""
        self.op("tessera.tile.cp.async", source, destination, *indices, bytes=bytes)

    def commit(self) -> None:
        """Make a group of the copies so far."""
        self.op("tessera.tile.cp.async.commit")

    def wait(self, pending: int = 0) -> None:
        """Wait until at most so many groups are pending."""
        self.op("tessera.tile.cp.async.wait", pending=pending)

    def barrier(self) -> None:
        """Wait for every thread of the block."""
        self.op("tessera.tile.barrier")

    # Control

    def loop(
        self, start: Value, stop: Value, step: Value, turn: Callable[..., Sequence[Value]], *carried: Value
    ) -> tuple[Value, ...]:
        """Write a loop; `turn` takes its index and the carried values, writes the body and returns their new values."""
        results = [self._value(value.type) for value in carried]
        operands = (start, stop, step, *carried)
        self._write(f"{_named(results)}{_applied('tessera.tile.for', operands)} ({{")
        arguments = [self._value(value.type) for value in (start, *carried)]
        self._lines.append(
            f"{'  ' * self._depth}^bb0({', '.join(f'{argument.name}: {argument.type}' for argument in arguments)}):"
        )
        self._region(lambda: turn(*arguments))
        self._write(f"}}){_tail(operands, [value.type for value in carried], {})}")
        return tuple(results)

    def branch(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]] = tuple,
    ) -> tuple[Value, ...]:
        """Write a branch under a mask; each side writes its body and returns the values that it yields."""
        place = len(self._lines)
        self._write("")
        yielded = self._region(then)
        self._write("}, {")
        self._region(otherwise)
        results = [self._value(value.type) for value in yielded]
        head = f"{_named(results)}{_applied('tessera.tile.if', (condition,))} ({{"
        self._lines[place] = "  " * self._depth + head
        self._write(f"}}){_tail((condition,), [result.type for result in results], {})}")
        return tuple(results)

    def _region(self, body: Callable[[], Sequence[Value]]) -> Sequence[Value]:
        self._depth += 1
        yielded = body() or ()
        self._write(_terminator("yield", yielded))
        self._depth -= 1
        return yielded

    # The whole

    @property
    def text(self) -> str:
        """The kernel, a member of a module."""
        types = ", ".join(parameter.type for parameter in self.parameters.values())
        arguments = ", ".join(f"{parameter.name}: {parameter.type}" for parameter in self.parameters.values())
        attributes = "".join(f", {name} = {_attribute(value)}" for name, value in self.attributes.items())
        inside = f'sym_name = "{self.name}", function_type = ({types}) -> (){attributes}'
        head, end = f'  "tessera.{self.level}.kernel"() ({{', f"    {_terminator('return', ())}"
        return "\n".join([head, f"  ^bb0({arguments}):", *self._lines, end, f"  }}) {{{inside}}} : () -> ()"])

    @property
    def module(self) -> str:
        """A module of this kernel alone."""
        return graph_texts.module(self.text)

    def launched(self, *results: str, name: str = "f") -> str:
        """Return a host function, a member of a module, that launches the kernel with its first parameters."""
        taken = list(self.parameters.values())[: len(self.parameters) - len(results)]
        types = {operand.name: _on_the_host(operand.type) for operand in taken}
        takes = ", ".join(f"{argument}: {type_}" for argument, type_ in types.items())
        given, gives = [f"%r{index}" for index in range(len(results))], ", ".join(results)
        outcome = gives if len(results) == 1 else f"({gives})"
        head = f'{", ".join(given)} = "tessera.tile.launch"({", ".join(types)}) {{kernel = "{self.name}"}}'
        return graph_texts.func(
            f"{head} : ({', '.join(types.values())}) -> {outcome}",
            f'"tessera.graph.return"({", ".join(given)}) : ({gives}) -> ()',
            takes=takes,
            gives=gives,
            name=name,
        )

    def _one(self, name: str, *operands: Value, gives: str, **attributes: Any) -> Value:
        result = self.op(name, *operands, gives=gives, **attributes)
        assert isinstance(result, Value)
        return result

    def _value(self, type_: str) -> Value:
        self._count += 1
        return Value(f"%v{self._count}", type_)

    def _write(self, line: str) -> None:
        self._lines.append("  " * self._depth + line)


# Functions of the host


def scheduled(*lines: str, takes: str, gives: str, name: str = "f") -> str:
    """Return a module of one function whose lines are operations, `%y = "tessera.schedule.tile"(%x) ... : (T) -> T`.

    The last line is its return, which `returning` writes.
    """
    return graph_texts.module(graph_texts.func(*lines, takes=takes, gives=gives, name=name))


def line(result: str, name: str, operands: Mapping[str, str], gives: str, **attributes: Any) -> str:
    """An operation of a function: `line("%y", "tessera.schedule.tile", {"%x": T}, T, m=2)`, operands with types."""
    values = [Value(operand, type_) for operand, type_ in operands.items()]
    return f"{result} = {_applied(name, values)}{_tail(values, [gives], attributes)}"


def returning(**values: str) -> str:
    """Return the end of a function that returns these values, types by name: `returning(y="tensor<2xfp32>")`."""
    return _terminator("return", [Value(f"%{name}", type_) for name, type_ in values.items()])


# Spelling


def _memref(dtype: str, shape: Sequence[int], space: str) -> str:
    return f"memref<{'x'.join([*map(str, shape), dtype])}>[addrspace={space}]"


def _dtype(memory: Value) -> str:
    match = re.fullmatch(r"memref<(?:(?:\d+|\?)x)*(\w+)>\[addrspace=\w+\]", memory.type)
    if match is None:
        raise ValueError(f"{memory.type} is no memref")
    return match[1]


def _on_the_host(type_: str) -> str:
    """Return the host's type for a parameter: a tensor for a buffer, the scalar itself."""
    match = re.fullmatch(r"memref<(.*)>\[addrspace=global\]", type_)
    return f"tensor<{match[1]}>" if match else type_


def _named(results: Sequence[Value]) -> str:
    return f"{', '.join(result.name for result in results)} = " if results else ""


def _applied(name: str, operands: Sequence[Value]) -> str:
    return f'"{name}"({", ".join(operand.name for operand in operands)})'


def _tail(operands: Sequence[Value], results: Sequence[str], attributes: Mapping[str, Any]) -> str:
    inside = ", ".join(f"{name} = {_attribute(value)}" for name, value in attributes.items())
    outputs = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"{f' {{{inside}}}' if inside else ''} : ({', '.join(operand.type for operand in operands)}) -> {outputs}"


def _terminator(name: str, values: Sequence[Value]) -> str:
    return f"{_applied(f'tessera.graph.{name}', values)}{_tail(values, (), {})}"


def _attribute(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_attribute, value))}]"
    return repr(value)
