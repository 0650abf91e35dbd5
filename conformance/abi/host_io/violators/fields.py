"""Requests with members of a wrong form that are accepted, by the keywords of their schemas (D3, D5 to D7)."""

from decimal import Decimal

from tessera_conformance.chapters.abi.host_io.kit.members import CARRIERS, ENVELOPE, IDS, UNLISTED, members

from ....ir.violators.changes import breaks
from .message_changes import read_as

MEMBERS = [member for member in members() if member.name not in IDS]
MESSAGES = {"memory_write": "MemoryWrite", "memory_read": "MemoryRead", "kernel_launch": "KernelLaunch"}

PLACES = ("sip", "cube", "pe")
SHARD = {**dict.fromkeys((*PLACES, "pa", "offset_bytes"), 0), "nbytes": 64}
KERNEL = {"name": "nop", "kind": "builtin", "deploy_sip": 0, "deploy_cube": 0, "deploy_pe": 0, "nbytes_code": 0}
SOUND = {
    **SHARD,
    **{f"{side}_{name}": 0 for side in ("dst", "src", "deploy") for name in PLACES},
    "target_device": "sip:0",
    "dst_pa": 0,
    "src_pa": 0,
    "src_kind": "pattern",
    "pattern": {"pattern_kind": "zero"},
    "pattern_kind": "fill_u8",
    "value": 1,
    "kernel_ref": KERNEL,
    "args": [],
    "name": "anything",
    "kind": "deployed",
    "deploy_pa": 2048,
    "nbytes_code": 256,
    "tensor_pa_map": {"shards": [SHARD]},
    "shards": [SHARD],
    "dtype": "i32",
}
"""The value that a lenient reader takes instead; it drops a member that is not here."""

TYPES = {"null": type(None), "integer": int, "number": (int, Decimal), "string": str, "array": list, "object": dict}


def has_type(value, names):
    """True if a value is of one of the types of JSON."""
    names = [names] if isinstance(names, str) else names
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, TYPES[name]) for name in names if name != "boolean")


def ruled_out(keyword, schema, value):
    """True if a keyword rules out a value, None for an absent one."""
    number = not isinstance(value, bool) and isinstance(value, int)
    match keyword:
        case "required":
            return value is None
        case "type":
            return value is not None and not has_type(value, schema["type"])
        case "enum" | "const":
            return value is not None and value not in schema.get("enum", [schema.get("const")])
        case "minimum":
            return number and value < schema["minimum"]
        case "items":
            return isinstance(value, list) and not all(isinstance(element, dict) and element for element in value)
    raise ValueError(keyword)


def parts_of(message, part):
    """Yield the parts of a request that have this definition and are objects."""
    carrier, path = CARRIERS[part]
    found = [message] if message.get("msg_type", MESSAGES[carrier]) == MESSAGES[carrier] else []
    if path == () and message.get("msg_type") not in MESSAGES.values():  # an unknown type: identified by its members
        found = [message] if MARKS[part] in message else []
    for step in path:
        found = [inner for outer in found for inner in _inner(outer, step)]
    for value in found:
        if isinstance(value, dict) and (part not in ARGUMENTS or ARGUMENTS[part] in value):
            yield value


MARKS = {"memory_write": "dst_pa", "memory_read": "src_pa", "kernel_launch": "kernel_ref"}
ARGUMENTS = {"tensor_argument": "tensor_pa_map", "scalar_argument": "dtype"}
"""The members that identify a request, or an argument, whose kind is wrong."""


def _inner(value, step):
    if isinstance(step, int):
        return value if isinstance(value, list) else []
    return [value[step]] if isinstance(value, dict) and step in value else []


def lenient(member, keyword, clause):
    """Return a violation that reads a valid value if a member breaks one keyword of its schema."""
    constant = member.schema.get("const")

    def change(message):
        for part in list(parts_of(message, member.part)):
            value = part.get(member.name)
            if not ruled_out(keyword, member.schema, value):
                continue
            if keyword == "items":
                part[member.name] = [element for element in value if isinstance(element, dict) and element]
            elif constant is not None or member.name in SOUND:
                part[member.name] = SOUND[member.name] if constant is None else constant
            else:
                del part[member.name]

    name = f"{member.part}_{member.name}_{keyword}_of_{clause.removeprefix('HIO-').replace('-', '_')}"
    return read_as(clause, name, f"takes {member.name} of {member.part} without looking at its {keyword}", change)


KEYWORDS = ("type", "enum", "const", "minimum", "items")
"""A reader without upper bounds, and one that takes an empty list of shards, follow a listed alternative."""


def beside(member, keyword, by):
    """Return a violation with a range that is one too wide."""
    beyond = member.schema[keyword] + by

    def change(message):
        for part in parts_of(message, member.part):
            if part.get(member.name) == beyond and not isinstance(part[member.name], bool):
                part[member.name] = SOUND[member.name]

    name = f"{member.part}_{member.name}_{keyword}_off_by_one"
    return read_as(member.clause, name, f"takes {beyond} for {member.name} of {member.part}", change)


def falsy(member):
    """Return a violation that takes empty values of any type as an absent optional member."""

    def change(message):
        for part in parts_of(message, member.part):
            if member.name in part and not part[member.name]:
                del part[member.name]

    name = f"{member.part}_{member.name}_falsy"
    return read_as(member.clause, name, f"takes whatever is empty for no {member.name} of {member.part}", change)


KEPT = ("pattern", "value", "deploy_pa")


@breaks("HIO-Verification-01", "takes a default for every missing member", read_as)
def all_defaults(message):
    for member in MEMBERS:
        for part in parts_of(message, member.part):
            if member.required and part.get(member.name) is None and member.name in SOUND:
                part[member.name] = SOUND[member.name]


def integers(clause, name, description, kinds, read):
    def change(message):
        for member in MEMBERS:
            if member.schema.get("type") == "integer":
                for part in parts_of(message, member.part):
                    if isinstance(part.get(member.name), kinds):
                        part[member.name] = read(part[member.name])

    return read_as(clause, name, description, change)


def planted(clause, name, kind, *words):
    """Return a violation that ignores members of a part with these names, and refuses other unknown ones."""

    def change(message):
        known = {member.name for member in members() if member.part == kind}
        for part in parts_of(message, kind):
            for other in [key for key in part if key not in known and key in words]:
                del part[other]

    return read_as(clause, name, f"ignores {' and '.join(words)} of {kind}", change)


VIOLATORS = [
    *(lenient(member, "required", member.clause) for member in MEMBERS if member.required),
    *(lenient(member, keyword, UNLISTED[member.name] if keyword in ("enum", "const") else member.clause)
        for member in MEMBERS
        for keyword in KEYWORDS
        if keyword in member.schema and not (keyword == "type" and not member.required)
        if (keyword, member.schema[keyword]) != ("minimum", 0)  # which `beside` has
    ),
    *(lenient(member, "required", ENVELOPE[member.part])
        for member in MEMBERS
        if member.name in ("msg_type", "target_device")),
    *(beside(member, keyword, by)
        for member in MEMBERS
        for keyword, by in {"minimum": -1, "maximum": 1}.items()
        if keyword in member.schema and (keyword, member.schema[keyword]) != ("minimum", 1)),
    *(falsy(member) for member in MEMBERS if not member.required and member.name not in KEPT),
    integers("HIO-D5-04", "digits_are_integers", "reads texts of digits", str, lambda text: int(text or 0)),
    integers("HIO-D5-07", "fractions_are_cut", "cuts fractions off", Decimal, int),
    integers("HIO-D7-22", "addresses_of_64_bits", "reads integers modulo 2 to the 64", int,
        lambda value: value % 2**64),
    integers("HIO-D7-21", "magnitudes", "drops the sign", int, abs),
    planted("HIO-D5-25", "data_in_writes", "memory_write", "data", "tensor_data"),
    planted("HIO-D5-25", "data_in_patterns", "pattern", "data"),
    planted("HIO-D7-14", "sources_of_a_kernel", "kernel_ref", "code"),
    planted("HIO-D7-15", "ir_of_a_launch", "kernel_launch", "module", "graph_ir"),
    planted("HIO-D7-33", "data_in_launches", "kernel_launch", "data", "tensors"),
    planted("HIO-D7-33", "data_in_shards", "tensor_shard", "bytes"),
    planted("HIO-D7-33", "data_in_scalars", "scalar_argument", "values"),
]  # fmt: skip
