"""Reading the parameters of protocol methods, refusing malformed ones, and writing their answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeAlias

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.interface import Type, interface
from tessera_conformance.protocol import Diagnostic
from tessera_conformance.tensors import Tensor

from ..abi.policy import Descriptor, NumericsPolicy, StableMath
from ..abi.status import Failure
from ..collectives.queues import Collective, Compute, Unit
from ..collectives.selection import Knobs, Limits, Measurement
from ..collectives.travel import Cut
from ..graph.execution import UnknownFunction
from ..graph.interpreter import InputMismatch
from ..host_io.machine import MachineSize, Place
from ..ir import diagnostics
from ..ir.attributes import ByteCount
from ..ir.diagnostics import MissingTool, Rejection, UnsupportedConstruct
from ..ir.operation import AttributeValue, Function, Instruction
from ..ir.targets import TARGETS, Target, target_of
from ..ir.types import Shard
from ..mesh.topology import MeshAxes
from ..numerics.array import Array
from ..numerics.attributes import Reader, extents, one_of, switch, text, tree, whole
from ..numerics.errors import InvalidArgument, ShapeMismatch
from ..numerics.formats import DType, NumericsFailure, dtype

if TYPE_CHECKING:
    from ..runtime.launches import LaunchConfig
    from ..schedule.choices import Options

# Readers of values that the protocol's messages have and JSON lacks: bytes, versions, axes, launch configurations.
#
# A reader takes the operation, the name of the argument and the actual value, and raises `InvalidArgument`.


AXES = tuple(field.name for field in fields(MeshAxes))
CONFIG = ("grid", "block", "shmemBytes", "flags")
number = whole(-(1 << 63), (1 << 63) - 1)
"""A whole number; the method restricts it."""


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
    """Read bytes, or their address; None is NULL."""
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
    """Read an object with no names but the allowed ones."""
    members = mapping(operation, name, value)
    for key in members:
        if key not in allowed:
            raise InvalidArgument(operation, f"{name}, a name in it,", key, "one of " + ", ".join(allowed))
    return members


def list_of(item: Reader | None, allowed: str) -> Reader:
    """Return a reader of a list whose items `item` reads."""

    def read(operation: str, name: str, value: Any) -> Sequence[Any]:
        if not isinstance(value, list | tuple):
            raise InvalidArgument(operation, name, value, allowed)
        return value if item is None else [item(operation, f"{name}[{i}]", element) for i, element in enumerate(value)]

    return read


def tuple_of(count: int, allowed: str, item: Reader) -> Reader:
    """Return a reader of a list of `count` items."""

    def read(operation: str, name: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or len(value) != count:
            raise InvalidArgument(operation, name, value, allowed)
        return tuple(item(operation, f"{name}[{i}]", element) for i, element in enumerate(value))

    return read


version = tuple_of(2, "a list of major and minor", whole(0, 0xFFFF))
pair = tuple_of(2, "a list of two whole numbers", number)


def require_members(operation: str, prefix: str, members: Mapping[str, Any], required: Iterable[str]) -> None:
    """Raise `InvalidArgument` for the first member that is missing."""
    for key in required:
        if key not in members:
            raise InvalidArgument(operation, f"{prefix}{key}", None, "a value, since it has no default")


def record(readers: Mapping[str, Reader], required: Collection[str] | None = None) -> Reader:
    """Return a reader of an object with no other members than these; all are required unless `required` names some."""

    def read(operation: str, name: str, value: Any) -> dict[str, Any]:
        members = names_within(operation, name, value, readers)
        require_members(operation, f"{name}.", members, readers if required is None else required)
        return {key: readers[key](operation, f"{name}.{key}", value) for key, value in members.items()}

    return read


def axes(operation: str, name: str, value: Any) -> Mapping[str, Any]:
    """Read the axes of a mesh, some or all."""
    return names_within(operation, name, value, AXES)


def config(operation: str, name: str, value: Any) -> LaunchConfig:
    """Read the configuration of a launch."""
    from ..runtime.launches import LaunchConfig

    members = mapping(operation, name, value)
    require_members(operation, f"{name}.", members, CONFIG)
    return LaunchConfig(**{field: members[field] for field in CONFIG})


# Reading objects with known members: those of a dataclass, and the parameters of the endpoint's methods.


FIELD_READERS: Mapping[str, Reader] = {"int": number, "str": text, "tuple[int, int]": pair}
"""The readers by the annotation of a field."""


def members_of(dataclass: type[Any]) -> Reader:
    """Return a reader of an object with the fields of a dataclass; those with a default may be left out."""
    readers = {field.name: FIELD_READERS[str(field.type)] for field in fields(dataclass)}
    return record(readers, [field.name for field in fields(dataclass) if field.default is MISSING])


_place = record(dict.fromkeys(Place._fields, number))


def place(operation: str, name: str, value: Any) -> Place:
    """Read SIP, cube and PE."""
    return Place(**_place(operation, name, value))


# Reading units of work in the protocol's messages.


_names = list_of(text, "a list of texts")
_numbers = list_of(number, "a list of whole numbers")

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
COMM: Mapping[str, Reader] = {
    **MEMBERS,
    "collective": record(COLLECTIVE, ("operation", "algorithm", "bytes", "chunk_bytes")),
    "qos": text,
    "fused": _names,
}


def work_unit(operation: str, name: str, value: Any) -> dict[str, Any]:
    """Read the members of a unit; a missing `ranks` means all."""
    both = {**COMM, **COMPUTE}
    queue = both["queue"](operation, f"{name}.queue", names_within(operation, name, value, both).get("queue"))
    read = record(COMPUTE, ("id", "picoseconds")) if queue == "compute" else record(COMM, ("id", "collective"))
    unit: dict[str, Any] = read(operation, name, value)
    return unit


# Targets and schedules from messages, and lowered functions as messages.


MOST = (1 << 31) - 1
"""The largest extent of a tile, and the largest depth."""


def target(operation: str, name: str, value: Any) -> Target:
    """Read the name of a target."""
    if not isinstance(value, str) or value not in TARGETS:
        raise InvalidArgument(operation, name, value, "one of " + ", ".join(TARGETS))
    return target_of(value)


def schedule(operation: str, name: str, value: Any) -> Options:
    """Read the schedule's options; the program determines missing ones."""
    from ..schedule.choices import Options

    return Options(**_schedule(operation, name, value))


_tile = tuple_of(3, "a list of m, n and k", whole(1, MOST))
_depth, _prefetch = whole(1, MOST), one_of("shared", "global", "none")
_schedule = record({"tile": _tile, "depth": _depth, "prefetch": _prefetch, "fuse": switch}, ())


def function_message(function: Function) -> dict[str, Any]:
    """Return a function or kernel with its operations."""
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


# Reading the parameters of the protocol's methods: malformed ones are refused, unknown ones are ignored.
#
# The type of a parameter in the interface (`interface.toml` of each chapter) determines its reader. The harness may add
# optional parameters, so a method takes any (docs/protocol.md, "Versions"). A missing one, or one of another type, is
# refused with TESS_ERR_INVALID_VALUE, by name, with the actual and the allowed values.


Method: TypeAlias = Callable[..., dict[str, Any]]

LIMIT = (1 << 63) - 1
"""The largest whole number that is read where the interface states no other bound."""


def _tensor(operation: str, name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise InvalidArgument(operation, name, value, "a tensor")
    return value


def policy(operation: str, name: str, value: Any) -> NumericsPolicy:
    """Read a numerics policy. Raises `Failure` for switches of other names or values."""
    from ..runtime.calls import read_policy

    return read_policy(operation.removeprefix("runtime."), mapping(operation, name, value))


PARAMETER_READERS: Mapping[str, Reader] = {
    "axes": axes,
    "choices": _numbers,
    "config": config,
    "data": data,
    "descriptor": lambda operation, name, value: read_descriptor(mapping(operation, name, value)),
    "handle": whole(-LIMIT - 1, LIMIT),
    "host_buffer": record({"correlation_id": text, "request_id": text, "data": data}),
    "launch_flags": whole(0, (1 << 64) - 1),
    "machine_size": members_of(MachineSize),
    "memory": memory,
    "null_outputs": list_of(text, "a list of names"),
    "place": place,
    "policy": policy,
    "schedule": schedule,
    "shape": extents,
    "target": target,
    "tensor": _tensor,
    "variables": object_of(text),
    "environment": object_of(text),
    "interval": pair,
    "link_cut": members_of(Cut),
    "rank_pair": pair,
    "knob_limits": members_of(Limits),
    "knobs": members_of(Knobs),
    "measurement": members_of(Measurement),
    "quantity": number,
    "version": version,
    "work_unit": work_unit,
}
"""The named types that become something JSON does not have, or whose refusals have their own words."""

LISTS = {"string": "a list of texts", "value": "a list of values", "data": "a list of keys"}
"""The allowed values where a list of a type is expected."""


def checked(method: Method) -> Method:
    """Read the parameters of an adapter's method by their types; it checks those annotated `Any` itself.

    A parameter whose default is None may be given as None; so may those of the interface that a method takes as
    `**options`. The method raises `Refusal` for a parameter that is missing or malformed and for a failure of the
    runtime, and `NotSupported` for work that is too large for this machine.
    """
    area = next(name for name in interface().areas if method.__name__.startswith(f"{name}_"))
    function = method.__name__.removeprefix(f"{area}_")
    stated = interface().areas[area]
    declared = {parameter.name: parameter.type for parameter in (*stated.methods[function].parameters, *stated.also)}
    parameters = list(signature(method).parameters.values())[1:]
    if parameters and parameters[-1].kind is Parameter.VAR_KEYWORD:
        named = {parameter.name: parameter for parameter in parameters}
        names = [parameter.name for parameter in stated.methods[function].parameters]
        parameters = [named.get(name) or Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in names]
    readers = {
        parameter.name: reader_of(declared[parameter.name])
        for parameter in parameters
        if parameter.annotation not in ("Any", Any)
    }
    return wraps(method)(reading(method, f"{area}.{function}", parameters, readers))


def reading(
    method: Method, name: str, parameters: Sequence[Parameter], readers: Mapping[str, Reader | None]
) -> Callable[..., dict[str, Any]]:
    """Return a method that requests call `name`, with its parameters read."""
    required = [parameter.name for parameter in parameters if parameter.default is Parameter.empty]
    readers_by_name = [
        (parameter.name, readers.get(parameter.name), parameter.default is None) for parameter in parameters
    ]

    def answer(self: Any, **given: Any) -> dict[str, Any]:
        arguments = {}
        with statuses():
            for parameter, reader, optional in readers_by_name:
                if parameter in given:
                    value = given[parameter]
                    if reader is not None and not (optional and value is None):
                        value = reader(name, parameter, value)
                    arguments[parameter] = value
            require_members(name, "", given, required)
            try:
                return method(self, **arguments)
            except MemoryError:
                raise NotSupported("memory") from None

    return answer


def reader_of(declared: Type) -> Reader | None:
    """Return the reader of a parameter's type; None for a number without bounds and for a pointer that may be NULL."""
    match declared:
        case {"$ref": name}:
            return PARAMETER_READERS.get(name) or reader_of(interface().types[name].type)
        case {"type": "string"}:
            return text
        case {"type": "boolean"}:
            return switch
        case {"type": "integer", "minimum": int(least)}:
            return whole(least, LIMIT)
        case {"enum": words}:
            return one_of(*words)
        case {"const": word}:
            return one_of(word)
        case {"type": "array"}:
            item = declared.get("items", {})
            return list_of(reader_of(item), LISTS.get(item.get("$ref") or item.get("type"), "a list"))
        case {"type": "object", "additionalProperties": {"$ref": _} as value}:
            return object_of(reader_of(value))
        case {"type": "object"}:
            return object_of(None)
        case {"oneOf": alternatives} if all(alternative.get("type") == "object" for alternative in alternatives):
            return object_of(None)
    return None


def is_scalar(declared: Type) -> bool:
    """True if a type is a handle or a text, a number, a word or a boolean as JSON has it."""
    match declared:
        case {"$ref": name} if name not in PARAMETER_READERS:
            return is_scalar(interface().types[name].type)
        case {"type": "string" | "integer" | "number" | "boolean"} | {"enum": _} | {"const": _} | {"$ref": "handle"}:
            return True
    return False


# Answers of the protocol from the reference's own values and exceptions.


@contextmanager
def outcomes() -> Iterator[None]:
    """Turn the reference's own exceptions into outcomes of the protocol."""
    try:
        yield
    except Rejection as rejection:
        first = next(entry for entry in rejection.diagnostics if entry.severity == "error")
        entries = [diagnostic(entry) for entry in rejection.diagnostics]
        raise Refusal(first.category, first.phase, first.message, entries) from None
    except UnsupportedConstruct as construct:
        raise NotSupported(construct.feature) from None
    except MissingTool as missing:
        raise NotSupported(str(missing)) from None
    except (InputMismatch, UnknownFunction) as mismatch:
        raise Refusal("types", "call", str(mismatch)) from None
    except ShapeMismatch as mismatch:  # an input's: those of operations are already rejections
        raise Refusal("shapes", "call", str(mismatch)) from None


def diagnostic(entry: diagnostics.Diagnostic) -> Diagnostic:
    """Return a diagnostic in the protocol's form."""
    span = entry.span._asdict()
    return Diagnostic(
        entry.category,
        entry.message,
        entry.severity,
        **span,
        operands=entry.operands,
        requirement=entry.requirement or None,
        remedy=entry.remedy or None,
        clause=entry.clause or None,
    )


def array(value: Tensor) -> Array:
    """Return the array that a tensor of the protocol denotes."""
    return Array.from_bits(dtype(value.dtype), value.shape, value.data)


def tensor(result: Array) -> Tensor:
    """Return an array as a tensor of the protocol."""
    return Tensor(result.dtype.name, result.shape, result.to_bits())


def message(value: Any) -> Any:
    """Return a value as the protocol writes it: an array as a tensor, a record as an object of the members it has."""
    if isinstance(value, Array):
        return tensor(value)
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: message(member) for name, member in value.items() if member is not None}
    return [message(item) for item in value] if isinstance(value, list | tuple) else value


# Failures as rejections with a status of the runtime.


@contextmanager
def statuses() -> Iterator[None]:
    """Turn failures of the runtime and of the arithmetic into rejections with a status."""
    try:
        yield
    except Failure as failure:
        raise Refusal(failure.status.name, "call", str(failure)) from None
    except NumericsFailure as failure:
        raise Refusal("TESS_ERR_INVALID_VALUE", "call", str(failure)) from None


# Determinism descriptors in messages (runtime spec 11).


def read_descriptor(message: Mapping[str, Any]) -> Descriptor:
    """Return a determinism descriptor from its message. Raises `Failure` and `InvalidArgument`."""
    fields_ = dict(names_within("tessLaunch", "descriptor", message, [field.name for field in fields(Descriptor)]))
    if "reduction_order" in fields_:
        fields_["reduction_order"] = tree("tessLaunch", "descriptor.reduction_order", fields_["reduction_order"])
    if "stable" in fields_:
        allowed = [field.name for field in fields(StableMath)]
        fields_["stable"] = StableMath(**names_within("tessLaunch", "descriptor.stable", fields_["stable"], allowed))
    return Descriptor(**fields_)


# Units of work of the two queues of a device, from and to messages.


def unit_of(members: Mapping[str, Any], ranks: int) -> Unit:
    """Return the unit of these members, on all of `ranks` ranks unless it names some."""
    options: dict[str, Any] = {
        n: tuple(member) if isinstance(member, list | tuple) else member for n, member in members.items()
    }
    options.setdefault("ranks", tuple(range(ranks)))
    if options.pop("queue") == "compute":
        return Compute(**options)
    return Collective(**options.pop("collective"), **options)


def unit_message(unit: Unit) -> dict[str, Any]:
    """Return a unit in the protocol's form."""
    members = message(unit)
    if isinstance(unit, Compute):
        return {"queue": "compute", **members}
    return {"queue": "comm", "collective": {name: members.pop(name) for name in COLLECTIVE}, **members}
