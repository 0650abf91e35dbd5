"""The tables of `docs/protocol.md`, made from the interface: the methods and the types of each area."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tessera_conformance.interface.declarations import Area, Interface, Method
from tessera_conformance.interface.types import Record, fields_notation, notation

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
