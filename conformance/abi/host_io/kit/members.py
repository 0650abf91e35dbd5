"""The members of requests in the published schema, and values that each of its keywords rules out (D3, D5 to D7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tessera_conformance.schemas import schemas

from .exchange import SCHEMA, Host
from .messages import ABSENT, Message, changed, scalar, shard, tensor

__all__ = ["CARRIERS", "ENVELOPE", "IDS", "UNLISTED", "Member", "members", "sound", "wrong"]

Path: TypeAlias = tuple[str | int, ...]


class Member(NamedTuple):
    """A member of a part of a request."""

    part: str
    """The name of the part's definition in the schema."""
    name: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def clause(self) -> str:
        """The clause about the form of the member: the first of those it has in the schema."""
        return str(self.schema["x-clauses"][0])

    @property
    def path(self) -> Path:
        """The member's path in the request of `sound`."""
        return (*CARRIERS[self.part][1], self.name)


CARRIERS: Mapping[str, tuple[str, Path]] = {
    "memory_write": ("memory_write", ()),
    "pattern": ("memory_write", ("pattern",)),
    "memory_read": ("memory_read", ()),
    "kernel_launch": ("kernel_launch", ()),
    "kernel_ref": ("kernel_launch", ("kernel_ref",)),
    "tensor_argument": ("kernel_launch", ("args", 0)),
    "tensor_pa_map": ("kernel_launch", ("args", 0, "tensor_pa_map")),
    "tensor_shard": ("kernel_launch", ("args", 0, "tensor_pa_map", "shards", 1)),
    "scalar_argument": ("kernel_launch", ("args", 1)),
}
"""The request that contains each part, and the path in it."""


IDS = ("correlation_id", "request_id")
"""Members without which a response would belong to no request."""
ENVELOPE: Mapping[str, str] = {"memory_write": "HIO-D5-02", "memory_read": "HIO-D6-02", "kernel_launch": "HIO-D7-02"}
"""The clause that requires the members of the envelope."""
UNLISTED: Mapping[str, str] = {
    "msg_type": "HIO-D2-01",
    "src_kind": "HIO-D5-08",
    "dst_mem_kind": "HIO-D5-31",
    "pattern_kind": "HIO-D5-12",
    "dst_kind": "HIO-D6-15",
    "failure_policy": "HIO-D7-50",
    "kind": "HIO-D7-06",
    "arg_kind": "HIO-D7-49",
    "dtype": "HIO-D7-26",
}
"""The clause that refuses a value that is not listed."""


def members() -> Iterator[Member]:
    """Yield every member of every part."""
    for part in CARRIERS:
        definition = _definition(part)
        for name, schema in definition["properties"].items():
            yield Member(part, name, _merged(schema), name in definition["required"])


def sound(host: Host, part: str) -> Message:
    """Return a request that contains the part. A launch is of a binary that takes any arguments."""
    message = CARRIERS[part][0]
    if message == "memory_write":
        return host.write()
    if message == "memory_read":
        return host.read()
    base, places = host.machine.memories[0].base, host.machine.neighbours()
    shards = [shard(places[0], base + 64, 64), shard(places[-1], base + 128, 32, 64)]
    return host.launch(host.deploy(), [tensor(*shards), scalar("i32", -7)])


def wrong(member: Member, keyword: str, message: Message) -> dict[str, Message]:
    """Return requests that differ from a sound one in a value that the member's keyword rules out, by description."""
    value: Any = message
    for key in member.path:
        value = value.get(key) if isinstance(value, dict) else value[key]
    values = MISTAKES[keyword](member.schema, value)
    return {f"{member.name} {name}": changed(message, member.path, substitute) for name, substitute in values.items()}


def _missing(schema: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Return the absent member and null, which are the same (AMB-HIO-18)."""
    return {"missing": ABSENT, "null": None}


OF_EACH_TYPE: Mapping[str, Sequence[Any]] = {
    "boolean": [True, False],
    "number": [1.5],
    "integer": [3, 0],
    "string": ["3", ""],
    "array": [[], [3]],
    "object": [{}, {"value": 3}],
}
"""Values of each type of JSON, including those that a lenient reader takes as absent; null is the same as absent."""


def _of_another_type(schema: Mapping[str, Any], value: Any) -> dict[str, Any]:
    types = schema["type"]
    own = [types] if isinstance(types, str) else list(types)
    if "number" in own:
        own.append("integer")
    if "boolean" in own:  # a scalar's value: a boolean goes with dtype bool alone (AMB-HIO-14)
        own.remove("boolean")
    return {f"is {number!r}": number for type_, values in OF_EACH_TYPE.items() if type_ not in own for number in values}


def _unlisted(schema: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Return texts that are nearly listed, texts that other formats list, and values that are no texts."""
    listed = [name for name in schema.get("enum", [schema.get("const")]) if name is not None]
    near = [text for name in listed for text in (name.swapcase(), f"{name} ", name[:-1])]
    texts = [text for text in [*near, "", "unknown", *NEIGHBOURS.get(listed[0], ())] if text not in listed]
    others = {type_: values for type_, values in OF_EACH_TYPE.items() if type_ != "string"}
    return {
        f"is {substitute!r}": substitute
        for substitute in (*texts, *(number for values in others.values() for number in values))
    }


NEIGHBOURS: Mapping[str, Sequence[str]] = {
    "MemoryWrite": ("MemoryCopy",),
    "pattern": ("inline", "bytes"),
    "HBM": ("DRAM", "SRAM"),
    "zero": ("fill_u64", "fill_i8", "fill_bf16", "fill_fp64", "fill", "ones"),
    "host_sink": ("device", "host"),
    "deployed": ("source", "ir"),
    "tensor": ("buffer", "pointer"),
    "i32": ("i8", "u32", "bf16", "fp64", "fp8_e4m3", "string"),
    "fail_fast": ("retry", "ignore"),
}
"""Plausible members of a list with this first entry that it does not have."""


def _below(schema: Mapping[str, Any], value: Any) -> dict[str, Any]:
    least = schema["minimum"]
    return {"just below the least": least - 1, "far below": -(1 << 63), "lowest i32": -(1 << 31)}


def _above(schema: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Return values above the maximum, including those that give the sound value once bits are cut off."""
    beyond = schema["maximum"] + 1
    cut = {f"sound modulo {beyond * times:#x}": value + beyond * times for times in (1, 2)}
    return {"just above the most": beyond, "far above": 10**40, **cut}


def _too_few(schema: Mapping[str, Any], value: Any) -> dict[str, Any]:
    return {"empty": []}


def _of_other_items(schema: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Return a sound item with an invalid one, at either end."""
    none: list[Any] = [None, 3, "3", True, [], {}]
    return {f"with {extra!r} {where}": items for extra in none for where, items in _extended(value, extra).items()}


def _extended(items: Sequence[Any], other: Any) -> dict[str, Any]:
    return {"in front": [other, *items], "at the end": [*items, other]}


MISTAKES: Mapping[str, Callable[[Mapping[str, Any], Any], dict[str, Any]]] = {
    "required": _missing,
    "type": _of_another_type,
    "enum": _unlisted,
    "const": _unlisted,
    "minimum": _below,
    "maximum": _above,
    "minItems": _too_few,
    "items": _of_other_items,
}
"""The values that each keyword rules out, given the member's schema and its sound value."""


def _definition(name: str) -> Mapping[str, Any]:
    definition: Mapping[str, Any] = schemas()[SCHEMA]["$defs"][name]
    return definition


def _merged(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with its references resolved; its own keywords take precedence."""
    if "$ref" not in schema:
        return schema
    return {**_merged(_definition(schema["$ref"].removeprefix("#/$defs/"))), **schema}
