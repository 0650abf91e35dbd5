"""Writes the typed messages of the reference and their page from `schemas/host_io.schema.json`.

`python docs/draw_host_messages.py` renews `reference/tessera_reference/host_io/messages.py`, the schema beside it, and
`docs/host_messages.md`; `tests/host_io/test_messages.py` holds them current.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = ROOT / "schemas" / "host_io.schema.json"
ROOM = ROOT / "reference" / "tessera_reference" / "host_io"

HEAD = '''"""The messages between host and IO_CPU, typed (the Host - IO_CPU document, D3 to D7).

Written by `docs/draw_host_messages.py` from `schemas/host_io.schema.json`; not edited by hand. The page of that schema,
`docs/host_messages.md`, says what each member is, with its clauses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Literal
'''

PAGE = """# The messages between host and IO_CPU

One JSON object a line; `schemas/host_io.schema.json` is the contract, and this page is made from it by
`python docs/draw_host_messages.py`. [The endpoint](host_io.md) says what a schema cannot.

"""

RESPONSES = ("response", "completion", "refusal")
PLAIN = {"integer": "int", "number": "int | Decimal", "boolean": "bool", "string": "str", "object": "Mapping[str, Any]"}


class Messages:
    """The definitions of the schema."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]

    def merged(self, node: Mapping[str, Any]) -> dict[str, Any]:
        """A definition with what it refers to; its own words come first."""
        if "$ref" not in node:
            return dict(node)
        name = node["$ref"].removeprefix("#/$defs/")
        return {**self.merged(self.definitions[name]), "name": name, **node}

    def classes(self) -> dict[str, dict[str, Any]]:
        """Return the objects that become classes: those whose members are named."""
        return {
            name: node
            for name, node in self.definitions.items()
            if node.get("type") == "object" and "additionalProperties" in node
        }

    def members(self, node: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], bool]]:
        """Name, definition, and whether it is required; those that are come first."""
        required = node["required"]
        for name in sorted(node["properties"], key=lambda member: member not in required):
            yield name, self.merged(node["properties"][name]), name in required

    def python_type(self, node: Mapping[str, Any], required: bool) -> str:
        """The type of a member."""
        if node.get("name") in self.classes():
            return class_name(self.classes()[node["name"]])
        if node.get("name") == "argument":
            return "TensorArgument | ScalarArgument"
        if "enum" in node:
            return f"Literal[{', '.join(json.dumps(value) for value in node['enum'] if value is not None)}]"
        if node["type"] == "array":
            inner = self.python_type(self.merged(node["items"]), True)
            return f"tuple[{inner}, ...]"
        if "then" in node:
            return class_name(self.merged(node["then"])) + " | None"
        kinds = node["type"] if isinstance(node["type"], list) else [node["type"]]
        found = " | ".join(PLAIN[kind] for kind in kinds if kind != "null")
        return f"{found} | None" if "null" in kinds else found


def class_name(node: Mapping[str, Any]) -> str:
    """`Tensor argument` is the class `TensorArgument`."""
    return "".join(word[0].upper() + word[1:] for word in node["title"].split())


def module(messages: Messages) -> str:
    """The text of `messages.py`: requests and their parts, since an endpoint writes responses and reads none."""
    requests = {name: node for name, node in messages.classes().items() if name not in RESPONSES}
    return HEAD + "".join(dataclass_text(messages, request) for request in requests.values())


def dataclass_text(messages: Messages, node: Mapping[str, Any]) -> str:
    """One class."""
    clauses = ", ".join(node.get("x-clauses", ()))
    described = f"{node['description'].removesuffix(')')}; {clauses})" if clauses else node["description"]
    lines = [f'\n\n@dataclass(frozen=True)\nclass {class_name(node)}:\n    """{described}."""\n']
    for name, member, required in messages.members(node):
        if "const" in member:
            lines.append(f"    {name}: ClassVar[str] = {json.dumps(member['const'])}")
        else:
            default = "" if required else f" = {json.dumps(member['default']) if 'default' in member else None}"
            lines.append(f"    {name}: {messages.python_type(member, required)}{default}")
    return "\n".join(lines) + "\n"


def json_type(node: Mapping[str, Any]) -> str:
    """Return the page's words for a member."""
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return " or ".join("null" if value is None else f"`{value}`" for value in node["enum"])
    if node.get("type") == "array":
        return "array"
    kinds = node["type"] if isinstance(node["type"], list) else [node["type"]]
    bounds = [f"{words} {node[key]}" for key, words in BOUNDS.items() if key in node]
    return " or ".join(kinds) + (f", {', '.join(bounds)}" if bounds else "")


BOUNDS = {"minimum": "at least", "maximum": "at most", "minLength": "length at least", "maxLength": "length at most"}


def page(messages: Messages) -> str:
    """The text of `host_messages.md`."""
    parts = [PAGE]
    for node in messages.classes().values():
        clauses = ", ".join(node.get("x-clauses", ()))
        parts.append(f"## {node['title']}\n\n{node['description']}.{f' Clauses: {clauses}.' if clauses else ''}\n\n")
        parts.append("| member | | is | clauses | |\n|---|---|---|---|---|\n")
        for name, member, required in messages.members(node):
            default = f"default `{member['default']}`" if "default" in member else "optional"
            told = (f"`{name}`", "required" if required else default, json_type(member), ", ".join(member["x-clauses"]))
            parts.append(f"| {' | '.join(told)} | {member['description']} |\n")
        parts.append("\n")
    return "".join(parts).rstrip("\n") + "\n"


def outputs() -> dict[Path, str]:
    """Each file with the text that it should have."""
    messages = Messages()
    return {
        ROOM / "messages.schema.json": SCHEMA.read_text(encoding="utf-8"),
        ROOM / "messages.py": module(messages),
        ROOT / "docs" / "host_messages.md": page(messages),
    }


if __name__ == "__main__":
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
