"""The table of `docs/first-hour.md`: the methods that are core for each document, which no feature excuses from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tessera_conformance.interface.declarations import Interface
from tessera_conformance.registry import Registry

MARKED = re.compile(r"(<!-- core methods -->\n).*?(<!-- end -->)", re.DOTALL)


def core_methods(interface: Interface, registry: Registry) -> dict[str, list[str]]:
    """The methods by document: those without a feature that a clause of its core is judged by."""
    found: dict[str, list[str]] = {document: [] for document in registry.documents}
    for method in interface.methods.values():
        clauses = [registry.clauses[name] for name in method.clauses] if not method.feature else []
        for document in dict.fromkeys(clause.document for clause in clauses if clause.profile == "core"):
            found[document].append(method.name if method.area == "runtime" else method.full_name)
    return found


def page_with_core_methods(interface: Interface, registry: Registry, page: str) -> str:
    """The page with the table between its marks, `<!-- core methods -->` and `<!-- end -->`, made anew."""
    table = "\n".join(_table(interface, registry))
    return MARKED.sub(lambda found: f"{found[1]}{table}\n{found[2]}", page)


def _table(interface: Interface, registry: Registry) -> Iterator[str]:
    yield "\n| document | clauses of its core that cases judge | methods |\n|---|---|---|"
    for document, methods in core_methods(interface, registry).items():
        core = [
            clause
            for clause in registry.clauses.values()
            if clause.document == document and clause.active and clause.testable and clause.profile == "core"
        ]
        yield f"| `{document}` | {len(core)} | {', '.join(f'`{name}`' for name in methods)} |"
    yield ""
