"""The interface as published: its JSON Schema and its page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tessera_conformance.interface.declarations import Area, Interface, Method
from tessera_conformance.interface.types import (
    Builtin,
    Constant,
    Enumeration,
    Field,
    ListOf,
    MapOf,
    Named,
    Record,
    Type,
    Union,
    fields_notation,
    notation,
)

# The JSON Schemas in `schemas/protocol/`, made from the interface: one file an area.


WIDTH = 120
TYPES = {"bool": "boolean", "int": "integer", "text": "string"}
"""The builtin types that JSON Schema calls otherwise."""


def schema_text(interface: Interface, area: Area) -> str:
    """The file of an area."""
    return _laid_out(schema_of(interface, area)) + "\n"


def schema_of(interface: Interface, area: Area) -> dict[str, Any]:
    """The schema of an area: the parameters and the result of each method, and the types."""
    writer = _Writer(interface, area)
    definitions: dict[str, Any] = {}
    for method in area.methods.values():
        parameters = writer.record((*method.parameters, *area.also))
        definitions[f"{method.name}.params"] = ({"title": method.doc} if method.doc else {}) | parameters
        definitions[f"{method.name}.result"] = writer.type(method.result)
    for name, each in area.types.items():
        title = {"title": each.title} if each.title else {}
        definitions[name] = {**title, **writer.type(each.type), **each.where}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"tessera:protocol/{area.name}",
        "title": f"Protocol 1, {area.name}: {area.title}",
        "$comment": "Generated from the interface.toml files by `tessera-conformance interface --write`",
        "$defs": definitions,
    }


class _Writer:
    def __init__(self, interface: Interface, area: Area) -> None:
        self.types = interface.types
        self.area = area.name

    def type(self, kind: Type) -> dict[str, Any]:
        match kind:
            case Builtin("any"):
                return {}
            case Builtin(name, least):
                bound = "minLength" if name == "text" else "minimum"
                return {"type": TYPES.get(name, name)} | ({} if least is None else {bound: least})
            case Named(name):
                area = self.types[name].area
                return {"$ref": f"{'' if area == self.area else f'tessera:protocol/{area}'}#/$defs/{name}"}
            case Enumeration(words):
                return {"enum": list(words)}
            case Constant(text):
                return {"const": text}
            case ListOf(item, least, most):
                bounds = {"minItems": least, "maxItems": most}
                items = {} if item == Builtin("any") else {"items": self.type(item)}
                return {"type": "array", **items, **{name: each for name, each in bounds.items() if each is not None}}
            case MapOf(value):
                return {"type": "object", "additionalProperties": self.type(value)}
            case Record(fields):
                return self.record(fields)
            case Union((Builtin() as one, Builtin("null"))):
                schema = self.type(one)
                return schema | {"type": [schema["type"], "null"]}
            case Union(alternatives):
                return {"oneOf": [self.type(each) for each in alternatives]}

    def record(self, fields: Sequence[Field]) -> dict[str, Any]:
        if not fields:
            return {"type": "object", "maxProperties": 0}
        required = [each.name for each in fields if not each.optional]
        return {
            "type": "object",
            **({"required": required} if required else {}),
            "properties": {each.name: self.type(each.type) for each in fields},
            "additionalProperties": False,
        }


def _laid_out(node: Any, indent: int = 0, taken: int = 0) -> str:
    """JSON as a person would break it: what fits on a line stands on one."""
    flat = _on_one_line(node)
    if not node or not isinstance(node, dict | list) or (indent > 2 and indent + taken + len(flat) < WIDTH):
        return flat
    pad = " " * (indent + 2)
    if isinstance(node, list):
        lines = [pad + _laid_out(each, indent + 2) for each in node]
        return "[\n" + ",\n".join(lines) + "\n" + " " * indent + "]"
    lines = [f"{pad}{json.dumps(key)}: {_laid_out(each, indent + 2, len(key) + 4)}" for key, each in node.items()]
    return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"


def _on_one_line(node: Any) -> str:
    if isinstance(node, dict) and node:
        return "{ " + ", ".join(f"{json.dumps(key)}: {_on_one_line(each)}" for key, each in node.items()) + " }"
    if isinstance(node, list):
        return "[" + ", ".join(map(_on_one_line, node)) + "]"
    return json.dumps(node, ensure_ascii=False)


# The tables of `docs/protocol.md`, made from the interface: the methods and the types of each area.


MARKED = re.compile(r"(<!-- interface: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def page_with_tables(interface: Interface, page: str) -> str:
    """The page with the tables between its marks, `<!-- interface: AREA -->` and `<!-- end -->`, made anew.

    Raises:
        KeyError: a mark names no area.
    """

    def made(found: re.Match[str]) -> str:
        return found[1] + "\n".join(_tables(interface.areas[found[2]])) + "\n" + found[3]

    return MARKED.sub(made, page)


def _tables(area: Area) -> Iterator[str]:
    if area.methods:
        yield "\n| method | returned value | |\n|---|---|---|"
        yield from (_row(area, each) for each in area.methods.values())
    if area.types:
        yield "\n| type | is | |\n|---|---|---|"
        yield from (f"| `{each.name}` | `{notation(each.type)}` | {each.title} |" for each in area.types.values())
    yield ""


def _row(area: Area, method: Method) -> str:
    name = method.name if area.name == "runtime" else method.full_name
    result = method.result
    returned = f"{{{fields_notation(result.fields)}}}" if isinstance(result, Record) else notation(result)
    feature = f"Feature `{method.feature}`." if method.feature else ""
    remarks = " ".join(filter(None, [feature, method.doc, ", ".join(method.clauses)]))
    return f"| `{name}({fields_notation(method.parameters)})` | `{returned}` | {remarks} |"
