"""Random WSP programs in JSON form, from a seed, and the reduction of one that shows a difference.

Every program ends: repeats are short, and a body that consumes a channel sends to channels of a higher number only.
"""

from __future__ import annotations

import copy
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["program", "reduced"]

Form = dict[str, Any]
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
BINARY = ("add", "sub", "mul", "and", "or", "xor", "shl", "shr", "eq", "ne", "lt", "le", "gt", "ge", "min", "max")
NUMBERS = (0, 1, 2, 3, 5, 7, 63, 64, 255, 1 << 31, (1 << 53) + 1, (1 << 63) + 3, (1 << 64) - 1)
FLOATS = (0.0, -0.0, 1.0, 2.5, -3.0, 7.0, 1e-40, 1e30, float("inf"), float("-inf"), float("nan"), 2.0**64, 16777217.0)
SLOTS = ("x", "y", "z")
SYMBOLS = ("m", "n")
DEEPEST = 3


def program(seed: int) -> Form:
    """The program of a seed."""
    return _Maker(random.Random(seed)).program(f"p{seed}")


class _Maker:
    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.channels = source.randint(1, 4)
        self.tensors: list[Form] = []
        self.kernels: list[Form] = []
        self.calls: list[tuple[str, list[str | None]]] = []
        for group in range(source.choice((1, 1, 2))):
            self._group(f"g{group}")

    def program(self, name: str) -> Form:
        source = self.source
        processes = [{"name": f"p{each}", "body": self._body(0, -1)} for each in range(source.randint(1, 4))]
        return {
            "name": name,
            "kernels": self.kernels,
            "schedule": self._schedule(),
            "csp": {
                "channels": [
                    {"name": f"c{each}", "capacity": source.choice((0, 1, 1, 2, 3)), "latency": self._few()}
                    for each in range(self.channels)
                ],
                "processes": processes,
            },
            "slots": [{"name": each} for each in SLOTS],
            "symbols": [{"name": each, "width": 8, "default": source.choice((0, 1, 3, 200))} for each in SYMBOLS],
            "tensors": self.tensors,
        }

    def _few(self) -> int:
        return self.source.choice((0, 0, 0, 1, 2, 5))

    def _schedule(self) -> Form:
        source = self.source
        workers = source.randint(1, 3)
        policy = source.choice(("round_robin", "affinity", "hash", "expression"))
        parameters: Form = {"workers": workers}
        if policy == "expression":
            inputs = {"op": "add", "operands": [{"input": "task"}, {"input": "key"}]}
            within = {"op": "mod", "operands": [inputs, {"constant": workers}]}
            parameters["worker"] = within if source.random() < 0.9 else {"input": "key"}
        schedule = {
            "policy": {"id": policy, "parameters": parameters},
            "task_window": {"size": source.choice((1, 2, 3, 8, 64))},
        }
        sizes = {"tensormap_pool": (1, 2, 8), "deplist_pool": (1, 2, 8), "heap_arena": (40, 100), "ready_queue": (1, 2)}
        tight = [each for each in sizes if source.random() < 0.3]
        return schedule | {"resources": {each: source.choice(sizes[each]) for each in tight}}

    def _group(self, name: str) -> None:
        """Tensors of one dtype, and kernels over them."""
        source = self.source
        dtype = source.choice((*INTEGERS, "fp32", "fp64", "bool"))
        names = [f"{name}t{each}" for each in range(3)]
        count = source.choice((1, 2, 5, 7))
        self.tensors += [self._tensor(each, dtype, count) for each in names]
        self.tensors.append(self._tensor(f"{name}one", dtype, 1))
        for each in range(source.randint(1, 2)):
            self._kernel(f"{name}k{each}", dtype, names)
        if dtype != "bool":
            instruction = {"op": "sum", "destination": "a", "operands": [{"parameter": "b"}]}
            self._add_kernel(f"{name}sum", {"a": "tensor", "b": "tensor"}, [instruction])
            self.calls.append((f"{name}sum", [f"{name}one", source.choice(names)]))

    def _tensor(self, name: str, dtype: str, count: int) -> Form:
        source = self.source
        tensor: Form = {"name": name, "dtype": dtype, "count": count}
        if source.random() < 0.3:
            return tensor
        if dtype in ("fp32", "fp64"):
            form = "<f" if dtype == "fp32" else "<d"
            data = b"".join(struct.pack(form, source.choice(FLOATS)) for _ in range(count))
        elif dtype == "bool":
            data = bytes(source.randint(0, 1) for _ in range(count))
        else:
            data = source.randbytes(count * int(dtype[1:]) // 8)
        return tensor | {"initial": data.hex()}

    def _kernel(self, name: str, dtype: str, tensors: Sequence[str]) -> None:
        source = self.source
        parameters = {"a": "tensor", "b": "tensor", "s": "scalar"}
        operations = ("fill", "copy", "min", "max") if dtype == "bool" else ()
        operations = operations or ("fill", "iota", "copy", "add", "sub", "mul", "min", "max")
        instructions = [self._instruction(source.choice(operations)) for _ in range(source.randint(0, 3))]
        self._add_kernel(name, parameters, instructions)
        for _ in range(2):
            self.calls.append((name, [source.choice(tensors), source.choice(tensors), None]))

    def _instruction(self, op: str) -> Form:
        source = self.source
        scalars = [{"parameter": "s"}, {"constant": source.choice(NUMBERS)}]
        tensors = [{"parameter": "a"}, {"parameter": "b"}]
        if op in ("fill", "iota"):
            operands = [source.choice(scalars)]
        elif op == "copy":
            operands = [source.choice(tensors)]
        else:
            operands = [source.choice(tensors + scalars) for _ in range(2)]
        return {"op": op, "destination": source.choice("ab"), "operands": operands}

    def _add_kernel(self, name: str, parameters: dict[str, str], instructions: list[Form]) -> None:
        payload = {
            "form": "wsp-kernel",
            "parameters": [{"name": each, "kind": kind} for each, kind in parameters.items()],
            "instructions": instructions,
        }
        cycles = {"fixed": self._few(), "per_element": self.source.choice((0, 0, 1))}
        self.kernels.append({"name": name, "payload": payload, "cycles": cycles})

    def _expression(self, depth: int = 0) -> Form:
        source = self.source
        kind = source.random()
        if depth == 2 or kind < 0.5:
            slot, symbol = {"slot": source.choice(SLOTS)}, {"symbol": source.choice(SYMBOLS)}
            return source.choice(({"constant": source.choice(NUMBERS)}, slot, symbol))
        if kind < 0.9:
            op, arity = source.choice(BINARY), 2
        elif kind < 0.95:
            op, arity = source.choice((("not", 1), ("select", 3)))
        else:
            return self._quotient(depth)
        return {"op": op, "operands": [self._expression(depth + 1) for _ in range(arity)]}

    def _quotient(self, depth: int) -> Form:
        divisor = {"constant": self.source.choice((1, 3, 10))} if self.source.random() < 0.9 else self._expression(2)
        return {"op": self.source.choice(("div", "mod")), "operands": [self._expression(depth + 1), divisor]}

    def _body(self, depth: int, above: int) -> list[Form]:
        """Statements; within a body that consumes, those that send do so above its channel."""
        most = 5 if depth == 0 else 2
        return [self._statement(depth, above) for _ in range(self.source.randint(1, most))]

    def _statement(self, depth: int, above: int) -> Form:
        source = self.source
        nested = ("consume", "consume", "scope", "cond", "repeat") if depth < DEEPEST else ()
        simple = ("send", "send", "task", "task", "task", "run", "load", "wait")
        op = source.choice((*simple, *nested)) if source.random() < 0.95 else source.choice(("close", "receive"))
        channel, slot = f"c{source.randrange(self.channels)}", source.choice(SLOTS)
        upper = [f"c{each}" for each in range(above + 1, self.channels)]
        if op in ("send", "close") and upper:
            if op == "close":
                return {"op": op, "channel": upper[-1]}
            return {"op": op, "channel": source.choice(upper), "value": self._expression()}
        if op == "receive":
            return {"op": op, "channel": channel, "into": slot}
        if op == "load":
            tensor = source.choice(self.tensors)
            return {"op": op, "slot": slot, "tensor": tensor["name"], "element": self._element(tensor["count"])}
        if op == "wait":
            return {"op": op}
        if op == "consume" and upper:
            number = source.randrange(above + 1, self.channels)
            return {"op": op, "channel": f"c{number}", "into": slot, "body": self._body(depth + 1, number)}
        if op == "scope":
            return {"op": op, "body": self._body(depth + 1, above)}
        if op == "cond":
            then, otherwise = self._body(depth + 1, above), self._body(depth + 1, above)
            return {"op": op, "when": self._expression(), "then": then, "otherwise": otherwise}
        if op == "repeat":
            count = {"op": "mod", "operands": [self._expression(), {"constant": 4}]}
            index = {"index": slot} if source.random() < 0.5 else {}
            return {"op": op, "count": count, "body": self._body(depth + 1, above), **index}
        return self._call("run" if op == "run" else "task", upper)

    def _element(self, count: int) -> Form:
        if self.source.random() < 0.98:
            return {"op": "mod", "operands": [self._expression(), {"constant": count}]}
        return {"constant": count}

    def _call(self, op: str, upper: Sequence[str]) -> Form:
        source = self.source
        kernel, tensors = source.choice(self.calls)
        arguments = [self._expression() if each is None else {"tensor": each} for each in tensors]
        call: Form = {"op": op, "kernel": kernel, "arguments": arguments}
        if op == "run":
            return call
        if source.random() < 0.5:
            call["key"] = self._expression()
        if source.random() < 0.1:
            call["waits"] = [f"c{source.randrange(self.channels)}" for _ in range(source.randint(1, 2))]
        if upper and source.random() < 0.3:
            call["signals"] = [source.choice(upper) for _ in range(source.randint(1, 2))]
        return call


def reduced(form: Form, differs: Callable[[Form], bool], most: int = 300) -> Form:
    """A smaller program that still differs, where parts are left out one after the other; at most so many trials."""
    smaller = True
    while smaller and most > 0:
        smaller = False
        for candidate in _candidates(form):
            most -= 1
            if differs(candidate):
                form, smaller = candidate, True
                break
            if most <= 0:
                break
    return form


def _candidates(form: Form) -> Iterator[Form]:
    processes = form["csp"]["processes"]
    for place in range(len(processes)):
        found = copy.deepcopy(form)
        del found["csp"]["processes"][place]
        yield found
    for path in list(_bodies(processes)):
        body = _at(processes, path)
        for place, statement in enumerate(body):
            inner = [each for name in ("body", "then", "otherwise") for each in statement.get(name, [])]
            for replacement in ([], inner) if inner else ([],):
                found = copy.deepcopy(form)
                _at(found["csp"]["processes"], path)[place : place + 1] = copy.deepcopy(replacement)
                yield found


def _bodies(processes: Sequence[Form]) -> Iterator[tuple[int | str, ...]]:
    for place in range(len(processes)):
        yield from _within(processes[place]["body"], (place, "body"))


def _within(body: Sequence[Form], path: tuple[int | str, ...]) -> Iterator[tuple[int | str, ...]]:
    yield path
    for place, statement in enumerate(body):
        for name in ("body", "then", "otherwise"):
            if name in statement:
                yield from _within(statement[name], (*path, place, name))


def _at(found: Any, path: Sequence[int | str]) -> Any:
    for each in path:
        found = found[each]
    return found
