"""Reading the parameters of the protocol's methods: what is malformed is refused, what is unknown is ignored.

How a parameter is read follows from its type in the interface (`interface.toml` of each chapter). The harness may add
optional parameters, so a method takes any (docs/protocol.md, "Versions"); one that is missing, or not of its type, is
refused with TESS_ERR_INVALID_VALUE, by name, with what was found and what is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeAlias

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.interface import interface
from tessera_conformance.interface.types import (
    Builtin,
    Enumeration,
    ListOf,
    MapOf,
    Named,
    Record,
    Type,
    Union,
)
from tessera_conformance.tensors import Tensor

from ..numerics.attributes import Reader, extents, one_of, switch, text, whole
from ..numerics.errors import InvalidArgument
from .host_values import host_buffer, machine_size, place
from .levels import schedule, target
from .records import members_of, number, pair
from .values import axes, config, data, list_of, memory, object_of, texts_by_name, version
from .work_units import work_unit

__all__ = ["checked", "is_scalar", "reader_of", "reading"]

Method: TypeAlias = Callable[..., dict[str, Any]]

LIMIT = (1 << 63) - 1
"""The largest whole number that is read where the interface names no other bound."""


def _tensor(operation: str, name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise InvalidArgument(operation, name, value, "a tensor")
    return value


def _cut() -> type[Any]:
    from ..collectives.travel import Cut

    return Cut


def _limits() -> type[Any]:
    from ..collectives.autotuner import Limits

    return Limits


def _knobs() -> type[Any]:
    from ..collectives.autotuner import Knobs

    return Knobs


def _measurement() -> type[Any]:
    from ..collectives.autotuner import Measurement

    return Measurement


READERS: Mapping[str, Reader] = {
    "axes": axes,
    "choices": list_of(int, "a list of whole numbers"),
    "config": config,
    "data": data,
    "handle": whole(-LIMIT - 1, LIMIT),
    "host_buffer": host_buffer,
    "launch_flags": whole(0, (1 << 64) - 1),
    "machine_size": machine_size,
    "memory": memory,
    "null_outputs": list_of(str, "a list of names"),
    "place": place,
    "schedule": schedule,
    "shape": extents,
    "target": target,
    "tensor": _tensor,
    "variables": texts_by_name,
    "environment": texts_by_name,
    "interval": pair,
    "link_cut": members_of(_cut),
    "rank_pair": pair,
    "knob_limits": members_of(_limits),
    "knobs": members_of(_knobs),
    "measurement": members_of(_measurement),
    "quantity": number,
    "version": version,
    "work_unit": work_unit,
}
"""The named types that become something else than JSON has, or whose refusals have words of their own."""

LISTS: Mapping[Type, str] = {
    Builtin("text"): "a list of texts",
    Named("value"): "a list of values",
    Named("data"): "a list of keys",
}
"""What is allowed where a list of a type is wanted."""


def checked(method: Method) -> Method:
    """Read the parameters of an adapter's method by their types, but those annotated `Any`, which it checks itself.

    A parameter whose default is None may be given as None. The method raises `Refusal` for a parameter that is missing
    or malformed, and `NotSupported` for what is too large for this machine.
    """
    area = next(name for name in interface().areas if method.__name__.startswith(f"{name}_"))
    function = method.__name__.removeprefix(f"{area}_")
    stated = interface().areas[area]
    declared = {each.name: each.type for each in (*stated.methods[function].parameters, *stated.also)}
    taken = list(signature(method).parameters.values())[1:]
    readers = {each.name: reader_of(declared[each.name]) for each in taken if each.annotation not in ("Any", Any)}
    return wraps(method)(reading(method, f"{area}.{function}", taken, readers))


def reading(
    method: Method, name: str, taken: Sequence[Parameter], readers: Mapping[str, Reader | None]
) -> Callable[..., dict[str, Any]]:
    """A method that is called `name` in requests, with its parameters read."""
    required = [each.name for each in taken if each.default is Parameter.empty]
    known = [(each.name, readers.get(each.name), each.default is None) for each in taken]

    def answer(self: Any, **given: Any) -> dict[str, Any]:
        arguments = {}
        try:
            for each, reader, optional in known:
                if each in given:
                    value = given[each]
                    if reader is not None and not (optional and value is None):
                        value = reader(name, each, value)
                    arguments[each] = value
            for each in required:
                if each not in given:
                    raise InvalidArgument(name, each, None, "a value, since it has no default")
        except InvalidArgument as problem:
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", str(problem)) from None
        try:
            return method(self, **arguments)
        except MemoryError:
            raise NotSupported("memory") from None

    return answer


def reader_of(declared: Type) -> Reader | None:
    """How a parameter of a type is read; None for a number without bounds and for what may be NULL, which pass."""
    match declared:
        case Named(name):
            return READERS.get(name) or reader_of(interface().types[name].type)
        case Builtin("text"):
            return text
        case Builtin("bool"):
            return switch
        case Builtin("int", int(least)):
            return whole(least, LIMIT)
        case Enumeration(words):
            return one_of(*words)
        case ListOf(item):
            return _list_of(reader_of(item), LISTS.get(item, "a list"))
        case MapOf(value):
            return object_of(reader_of(value) if isinstance(value, Named) else None)
        case Builtin("object") | Record():
            return object_of(None)
        case Union(alternatives) if all(isinstance(each, Record) for each in alternatives):
            return object_of(None)
    return None


def is_scalar(declared: Type) -> bool:
    """Whether a type is a handle or a text, a number, a word or a truth value as JSON has it."""
    if isinstance(declared, Named) and declared.name not in READERS:
        return is_scalar(interface().types[declared.name].type)
    return declared == Named("handle") or isinstance(declared, Builtin | Enumeration)


def _list_of(item: Reader | None, allowed: str) -> Reader:
    def read(operation: str, name: str, value: Any) -> Sequence[Any]:
        if not isinstance(value, list | tuple):
            raise InvalidArgument(operation, name, value, allowed)
        return value if item is None else [item(operation, f"{name}[{i}]", each) for i, each in enumerate(value)]

    return read
