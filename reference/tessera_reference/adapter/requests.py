"""Reading the parameters of protocol methods: malformed ones are refused, unknown ones ignored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeAlias

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.interface import interface
from tessera_conformance.interface.declarations import Builtin, Enumeration, ListOf, MapOf, Named, Record, Type, Union
from tessera_conformance.tensors import Tensor

from ..abi.status import AbiVersion
from ..host_io.machine import MachineSize, Place
from ..ir.attributes import ByteCount
from ..ir.module import Function, Instruction
from ..ir.operation import AttributeValue
from ..ir.targets import TARGETS, Target, target_of
from ..ir.types import Shard
from ..mesh.axes import MeshAxes
from ..numerics.attributes import Reader, extents, one_of, switch, text, whole
from ..numerics.errors import InvalidArgument
from ..numerics.formats import DType

if TYPE_CHECKING:
    from ..runtime.launches import LaunchConfig
    from ..schedule.options import Options

# Reading the values that the protocol's messages have and JSON has not: bytes, versions, axes, launch configurations.
#
# A reader takes the operation, the name of the argument and what was found, and raises `InvalidArgument`.


AXES = tuple(field.name for field in fields(MeshAxes))
CONFIG = ("grid", "block", "shmemBytes", "flags")


def data(operation: str, name: str, value: Any) -> bytes:
    """Read bytes: lower-case hexadecimal digits, two a byte, in order of address."""
    try:
        content = bytes.fromhex(text(operation, name, value))
    except ValueError:
        content = None
    if content is None or content.hex() != value:
        raise InvalidArgument(operation, name, value, "lower-case hexadecimal digits, two a byte")
    return content


def memory(operation: str, name: str, value: Any) -> bytes | int | None:
    """Read bytes, or the address where they are; None is NULL."""
    if value is None or type(value) is int:
        return value
    return data(operation, name, value)


def mapping(operation: str, name: str, value: Any) -> Mapping[str, Any]:
    """Read an object: names and their values."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidArgument(operation, name, value, "an object")
    return value


def object_of(member: Reader | None) -> Reader:
    """Return a reader of an object whose values `member` reads."""

    def read(operation: str, name: str, value: Any) -> Mapping[str, Any]:
        members = mapping(operation, name, value)
        return members if member is None else {key: member(operation, f"{name}.{key}", members[key]) for key in members}

    return read


def names_within(operation: str, name: str, value: Any, allowed: Collection[str]) -> Mapping[str, Any]:
    """Read an object that holds no names but those allowed."""
    members = mapping(operation, name, value)
    for key in members:
        if key not in allowed:
            raise InvalidArgument(operation, f"{name}, a name in it,", key, "one of " + ", ".join(allowed))
    return members


def texts_by_name(operation: str, name: str, value: Any) -> Mapping[str, str]:
    """Read an object whose values are texts."""
    members = mapping(operation, name, value)
    for key, member in members.items():
        if not isinstance(member, str):
            raise InvalidArgument(operation, f"{name}.{key}", member, "a text")
    return members


def list_of(kind: type, allowed: str) -> Reader:
    """Return a reader of a list whose items are of exactly one type."""

    def read(operation: str, name: str, value: Any) -> Sequence[Any]:
        if not isinstance(value, list | tuple) or not all(type(item) is kind for item in value):
            raise InvalidArgument(operation, name, value, allowed)
        return value

    return read


def version(operation: str, name: str, value: Any) -> AbiVersion:
    """Read major and minor."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise InvalidArgument(operation, name, value, "a list of major and minor")
    number = whole(0, 0xFFFF)
    return number(operation, f"{name}[0]", value[0]), number(operation, f"{name}[1]", value[1])


def axes(operation: str, name: str, value: Any) -> Mapping[str, Any]:
    """Read the axes of a mesh, some or all."""
    return names_within(operation, name, value, AXES)


def config(operation: str, name: str, value: Any) -> LaunchConfig:
    """Read the configuration of a launch."""
    from ..runtime.launches import LaunchConfig

    members = mapping(operation, name, value)
    for field in CONFIG:
        if field not in members:
            raise InvalidArgument(operation, f"{name}.{field}", None, "a value, since it has no default")
    return LaunchConfig(**{field: members[field] for field in CONFIG})


# Reading objects whose members are those of a dataclass: names, which of them must be there, and their types.
#
# A reader takes the operation, the name of the argument and what was found, and raises `InvalidArgument`.


number = whole(-(1 << 63), (1 << 63) - 1)
"""A whole number; the method says what it may be."""


def pair(operation: str, name: str, value: Any) -> tuple[int, int]:
    """Read two whole numbers."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise InvalidArgument(operation, name, value, "a list of two whole numbers")
    return number(operation, f"{name}[0]", value[0]), number(operation, f"{name}[1]", value[1])


FIELD_READERS: Mapping[str, Reader] = {"int": number, "str": text, "tuple[int, int]": pair}
"""By the annotation of a field."""


def members_of(dataclass: Callable[[], type[Any]]) -> Reader:
    """Return a reader of an object with the fields of a dataclass, which is found when the first object is read.

    Fields with a default may be left out.
    """

    def read(operation: str, name: str, value: Any) -> dict[str, Any]:
        declared = {field.name: field for field in fields(dataclass())}
        members = names_within(operation, name, value, declared)
        for field_name, field in declared.items():
            if field_name not in members and field.default is MISSING:
                raise InvalidArgument(operation, f"{name}.{field_name}", None, "a value, since it has no default")
        return {
            key: FIELD_READERS[str(declared[key].type)](operation, f"{name}.{key}", members[key]) for key in members
        }

    return read


# Reading the objects that the methods of the endpoint take: machines, places, buffers of the host.


machine_size = members_of(lambda: MachineSize)


def place(operation: str, name: str, value: Any) -> Place:
    """Read SIP, cube and PE."""
    members = _members(operation, name, value, Place._fields)
    return Place(*(number(operation, f"{name}.{field}", members[field]) for field in Place._fields))


def host_buffer(operation: str, name: str, value: Any) -> dict[str, Any]:
    """Read the ids of a request and its bytes."""
    readers = {"correlation_id": text, "request_id": text, "data": data}
    members = _members(operation, name, value, tuple(readers))
    return {key: read(operation, f"{name}.{key}", members[key]) for key, read in readers.items()}


def _members(operation: str, name: str, value: Any, expected: tuple[str, ...]) -> dict[str, Any]:
    """Read an object with exactly these members."""
    members = names_within(operation, name, value, expected)
    for key in expected:
        if key not in members:
            raise InvalidArgument(operation, f"{name}.{key}", None, "a value, since it has no default")
    return dict(members)


# Reading units of work in the protocol's messages.


_names = list_of(str, "a list of texts")
_numbers = list_of(int, "a list of whole numbers")

MEMBERS: Mapping[str, Reader] = {
    "id": text,
    "queue": one_of("compute", "comm"),
    "after": _names,
    "ranks": _numbers,
    "priority": number,
}
COMPUTE: Mapping[str, Reader] = {**MEMBERS, "picoseconds": number}
COLLECTIVE: Mapping[str, Reader] = {
    "operation": text,
    "algorithm": text,
    "bytes": number,
    "chunk_bytes": number,
    "root": number,
}
REQUIRED = {
    "compute": ("id", "picoseconds"),
    "comm": ("id", "collective"),
    "collective": ("operation", "algorithm", "bytes", "chunk_bytes"),
}


def work_unit(operation: str, name: str, value: Any) -> Mapping[str, Any]:
    """Read the members of a unit; `ranks` is left out where all are meant."""
    both = {**COMM, **COMPUTE}
    queue = both["queue"](operation, f"{name}.queue", names_within(operation, name, value, both).get("queue"))
    return _read(operation, name, value, COMPUTE if queue == "compute" else COMM, REQUIRED[queue])


def _read(
    operation: str, name: str, value: Any, readers: Mapping[str, Reader], required: Sequence[str]
) -> dict[str, Any]:
    members = names_within(operation, name, value, readers)
    for key in required:
        if key not in members:
            raise InvalidArgument(operation, f"{name}.{key}", None, "a value, since it has no default")
    return {key: readers[key](operation, f"{name}.{key}", members[key]) for key in members}


def _collective(operation: str, name: str, value: Any) -> dict[str, Any]:
    return _read(operation, name, value, COLLECTIVE, REQUIRED["collective"])


COMM: Mapping[str, Reader] = {**MEMBERS, "collective": _collective, "qos": text, "fused": _names}

# Reads targets and schedules, and writes lowered functions as messages.


MOST = (1 << 31) - 1
"""The largest extent of a tile, and the largest depth."""


def target(operation: str, name: str, value: Any) -> Target:
    """Read the name of a target."""
    if not isinstance(value, str) or value not in TARGETS:
        raise InvalidArgument(operation, name, value, "one of " + ", ".join(TARGETS))
    return target_of(value)


def schedule(operation: str, name: str, value: Any) -> Options:
    """Read how to schedule: what is left out follows from the program."""
    from ..schedule.options import Options

    readers = {"tile": _tile, "depth": whole(1, MOST), "prefetch": one_of("shared", "global", "none"), "fuse": switch}
    options = names_within(operation, name, value, readers)
    return Options(**{key: readers[key](operation, f"{name}.{key}", value) for key, value in options.items()})


def _tile(operation: str, name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise InvalidArgument(operation, name, value, "a list of m, n and k")
    extent = whole(1, MOST)
    return tuple(extent(operation, f"{name}[{i}]", element) for i, element in enumerate(value))


def function_message(function: Function) -> dict[str, Any]:
    """A function or kernel with its operations."""
    return {
        "name": function.name,
        "kind": "kernel" if function.kernel or function.device else "func",
        "arguments": [str(value.type) for value in function.parameters],
        "results": [str(result) for result in function.results],
        "attributes": {name: _plain(value) for name, value in function.attributes.items()},
        "operations": [_operation(instruction) for instruction in function.body.walk()],
    }


def _operation(instruction: Instruction) -> dict[str, Any]:
    attributes: Mapping[str, AttributeValue] = {**instruction.operation.attributes, **instruction.attributes}
    return {
        "name": instruction.operation.name,
        "operands": [f"%{value.name}" for value in instruction.operands],
        "results": [f"%{value.name}" for value in instruction.results],
        "operand_types": [str(value.type) for value in instruction.operands],
        "result_types": [str(value.type) for value in instruction.results],
        "attributes": {name: _plain(value) for name, value in attributes.items()},
        "effects": sorted(instruction.operation.effects),
        "regions": len(instruction.regions),
    }


def _plain(value: AttributeValue) -> Any:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, ByteCount):
        return int(value)
    if isinstance(value, Shard):
        return str(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


# Reading the parameters of the protocol's methods: what is malformed is refused, what is unknown is ignored.
#
# How a parameter is read follows from its type in the interface (`interface.toml` of each chapter). The harness may
# add optional parameters, so a method takes any (docs/protocol.md, "Versions"); one that is missing, or not of its
# type, is refused with TESS_ERR_INVALID_VALUE, by name, with what was found and what is allowed.


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
    from ..collectives.selection import Limits

    return Limits


def _knobs() -> type[Any]:
    from ..collectives.selection import Knobs

    return Knobs


def _measurement() -> type[Any]:
    from ..collectives.selection import Measurement

    return Measurement


PARAMETER_READERS: Mapping[str, Reader] = {
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
"""The values allowed where a list of a type is wanted."""


def checked(method: Method) -> Method:
    """Read the parameters of an adapter's method by their types, but those annotated `Any`, which it checks itself.

    A parameter whose default is None may be given as None. The method raises `Refusal` for a parameter that is missing
    or malformed, and `NotSupported` for what is too large for this machine.
    """
    area = next(name for name in interface().areas if method.__name__.startswith(f"{name}_"))
    function = method.__name__.removeprefix(f"{area}_")
    stated = interface().areas[area]
    declared = {parameter.name: parameter.type for parameter in (*stated.methods[function].parameters, *stated.also)}
    parameters = list(signature(method).parameters.values())[1:]
    readers = {
        parameter.name: reader_of(declared[parameter.name])
        for parameter in parameters
        if parameter.annotation not in ("Any", Any)
    }
    return wraps(method)(reading(method, f"{area}.{function}", parameters, readers))


def reading(
    method: Method, name: str, parameters: Sequence[Parameter], readers: Mapping[str, Reader | None]
) -> Callable[..., dict[str, Any]]:
    """A method that is called `name` in requests, with its parameters read."""
    required = [parameter.name for parameter in parameters if parameter.default is Parameter.empty]
    readers_by_name = [
        (parameter.name, readers.get(parameter.name), parameter.default is None) for parameter in parameters
    ]

    def answer(self: Any, **given: Any) -> dict[str, Any]:
        arguments = {}
        try:
            for member, reader, optional in readers_by_name:
                if member in given:
                    value = given[member]
                    if reader is not None and not (optional and value is None):
                        value = reader(name, member, value)
                    arguments[member] = value
            for key in required:
                if key not in given:
                    raise InvalidArgument(name, key, None, "a value, since it has no default")
        except InvalidArgument as problem:
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", str(problem)) from None
        try:
            return method(self, **arguments)
        except MemoryError:
            raise NotSupported("memory") from None

    return answer


def reader_of(declared: Type) -> Reader | None:
    """Return the reader of a parameter's type; None for a number without bounds and for a pointer that may be NULL."""
    match declared:
        case Named(name):
            return PARAMETER_READERS.get(name) or reader_of(interface().types[name].type)
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
        case Union(alternatives) if all(isinstance(alternative, Record) for alternative in alternatives):
            return object_of(None)
    return None


def is_scalar(declared: Type) -> bool:
    """True if a type is a handle or a text, a number, a word or a truth value as JSON has it."""
    if isinstance(declared, Named) and declared.name not in PARAMETER_READERS:
        return is_scalar(interface().types[declared.name].type)
    return declared == Named("handle") or isinstance(declared, Builtin | Enumeration)


def _list_of(item: Reader | None, allowed: str) -> Reader:
    def read(operation: str, name: str, value: Any) -> Sequence[Any]:
        if not isinstance(value, list | tuple):
            raise InvalidArgument(operation, name, value, allowed)
        return value if item is None else [item(operation, f"{name}[{i}]", element) for i, element in enumerate(value)]

    return read
