"""The table of `docs/first-hour.md`: the methods that are core for each document, which no feature excuses from."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tessera_conformance.cases import clauses_directory, schemas_directory
from tessera_conformance.interface.declarations import Interface, interface
from tessera_conformance.interface.published import page_with_tables, schema_text
from tessera_conformance.registry import Registry, RegistryError, load_registry
from tessera_conformance.registry.coverage import wrong_tags
from tessera_conformance.terminal import error_text, print_error, print_problems

MARKED = re.compile(r"(<!-- core methods -->\n).*?(<!-- end -->)", re.DOTALL)


def core_methods(interface: Interface, registry: Registry) -> dict[str, list[str]]:
    """The methods by document: those without a feature that a clause of its core is judged by."""
    methods: dict[str, list[str]] = {document: [] for document in registry.documents}
    for method in interface.methods.values():
        clauses = [registry.clauses[name] for name in method.clauses] if not method.feature else []
        for document in dict.fromkeys(clause.document for clause in clauses if clause.profile == "core"):
            methods[document].append(method.name if method.area == "runtime" else method.full_name)
    return methods


def page_with_core_methods(interface: Interface, registry: Registry, page: str) -> str:
    """The page with the table between its marks, `<!-- core methods -->` and `<!-- end -->`, made anew."""
    table = "\n".join(_table(interface, registry))
    return MARKED.sub(lambda match: f"{match[1]}{table}\n{match[2]}", page)


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


# The command `interface`: its clauses exist, and the files of a checkout that are made from it are current.
#
# Made from it are the schemas of the messages, the tables of the page of the protocol, and that of the first hour.


def made_files(root: Path) -> Mapping[Path, str]:
    """Return the text that each file should hold; `root` is the checkout."""
    declared = interface()
    page, first_hour = root / "docs" / "protocol.md", root / "docs" / "first-hour.md"
    schemas = {
        root / "schemas" / "protocol" / f"{area.name}.schema.json": schema_text(declared, area)
        for area in declared.areas.values()
    }
    registry = load_registry(clauses_directory())
    return {
        **schemas,
        page: page_with_tables(declared, page.read_text(encoding="utf-8")),
        first_hour: page_with_core_methods(declared, registry, first_hour.read_text(encoding="utf-8")),
    }


def wrong_clauses(declared: Interface) -> list[RegistryError]:
    """A problem for each clause that methods name and the registry does not have, or has withdrawn."""
    methods: dict[str, list[str]] = {}
    for method in declared.methods.values():
        for clause in method.clauses:
            methods.setdefault(clause, []).append(method.full_name)
    return list(wrong_tags(load_registry(clauses_directory()), methods))


def configure_interface(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments and the handler of the subcommand `interface`."""
    parser.add_argument("--write", action="store_true", help="write the files that are not current")
    parser.set_defaults(handler=_interface)


def _interface(options: argparse.Namespace) -> int:
    root = schemas_directory().parent
    if not (root / "docs" / "protocol.md").is_file():
        print_error(error_text("interface", "the installed suite is as it was made", "a checkout of the project"))
        return 2
    try:
        problems = wrong_clauses(interface())
    except RegistryError as error:
        print_error(error)
        return 1
    if problems:
        print_problems(problems)
        return 1
    stale = [
        (path, text)
        for path, text in made_files(root).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        print(f"{path.relative_to(root)}: {'written' if options.write else 'not current'}")
        if options.write:
            path.write_text(text, encoding="utf-8")
    return int(bool(stale) and not options.write)
