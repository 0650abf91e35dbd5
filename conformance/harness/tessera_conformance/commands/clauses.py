"""The commands `clauses` and `interface`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import Any

from tessera_conformance import cases as locations
from tessera_conformance.cases import SuiteNotCollected, clauses_directory, schemas_directory
from tessera_conformance.documents import NoDocument
from tessera_conformance.interface import Interface, interface, page_with_tables, schema_text, tables_of
from tessera_conformance.registry import load
from tessera_conformance.registry.cases import (
    Coverage,
    Tally,
    case_index,
    cases_by_clause,
    coverage,
    naming_tests,
    wrong_tags,
)
from tessera_conformance.registry.errors import RegistryError
from tessera_conformance.registry.load import examine, load_registry
from tessera_conformance.registry.model import AREAS, DOCUMENTS, LEVELS, VERIFICATIONS, Clause, Registry, features
from tessera_conformance.reports.annotate import Knowledge, Run, annotated, document_page, feedback, first_page
from tessera_conformance.reports.causes import OUTCOME_WORDS, clause_results
from tessera_conformance.reports.claim import JUDGED
from tessera_conformance.reports.journal import Report, UnreadableReport, read, report_in
from tessera_conformance.reports.publish import write_text
from tessera_conformance.reports.weaknesses import FILE_NAME, RULES, Reasons, facts_of, facts_of_index, weaknesses
from tessera_conformance.reports.wording import implementation_name
from tessera_conformance.terminal import (
    UNANSWERABLE,
    Handler,
    Subparsers,
    error_text,
    print_error,
    print_problems,
    reporting_errors,
)
from tessera_conformance.vectors.files import vector_paths

# The command line `tessera-conformance clauses`: list, show, check, lock, coverage, weaknesses, annotate, feedback.
#
# Exit codes: 0 on success, 1 if the registry or its tests have problems, 2 if the command cannot answer (an unknown
# id, an unreadable directory). Every problem is printed with its place and its remedy.


SOUND, PROBLEMS = 0, 1
FEEDBACK = "spec-feedback.md"


def configure_clauses(parser: argparse.ArgumentParser) -> None:
    """The command `clauses`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = _add(actions, "list", "list clauses, all or those that every filter lets through", list_clauses)
    id_help = "the beginning of ids, such as RT-04.6, or a pattern of them, such as '*-01'"
    listing.add_argument("pattern", nargs="?", default="", metavar="ID", help=id_help)
    listing.add_argument("--document", choices=DOCUMENTS, help="clauses of this document")
    listing.add_argument("--level", choices=LEVELS, help="clauses of this requirement level")
    listing.add_argument("--section", help="a section and all below it, such as 10 or 10.1")
    listing.add_argument("--verify", choices=VERIFICATIONS, help="clauses that are verified in this way")
    listing.add_argument("--feature", help="clauses that need this feature")
    listing.add_argument("--area", choices=AREAS, help="clauses whose cases belong to this chapter")
    listing.add_argument("--untested", action="store_true", help="only clauses that wait for a test")
    listing.add_argument("--json", action="store_true", help="print a JSON array")
    _add(actions, "features", "list what an implementation can claim beyond the core", list_features)
    showing = _add(actions, "show", "show a clause or an interpretation, and everything that hangs on it", show)
    showing.add_argument("id", metavar="ID", help="a clause (LANG-15-05) or an interpretation (AMB-RT-49)")
    showing.add_argument("--specs", type=Path, metavar="DIR", help="the specifications, to print the source lines")
    checking = _add(actions, "check", "check the registry's files, references and lock", check)
    checking.add_argument("--specs", type=Path, metavar="DIR", help="compare with the specifications in DIR")
    update_help = "with --specs: record the texts as they are, once reviewed"
    checking.add_argument("--update-sources", action="store_true", help=update_help)
    _add(actions, "lock", "record new ids and changed meanings in the lock; refuses to reuse an id", update_lock)
    counting = _add(actions, "coverage", "count the clauses that have tests, by document, section and level", report)
    counting.add_argument("--json", action="store_true", help="print a JSON object")
    report_help = "count beside them the clauses that this run has judged: a report.jsonl, packed or not, or its folder"
    counting.add_argument("--report", type=Path, metavar="PATH", help=report_help)
    marking = _add(actions, "weaknesses", "mark clauses whose cases may let a wrong implementation pass", mark)
    evidence_help = "a run with --evidence=all: report.jsonl or its folder; repeatable. Without one: features alone"
    marking.add_argument("--report", type=Path, metavar="PATH", action="append", default=[], help=evidence_help)
    marking.add_argument("--facts", action="store_true", help="print what the cases of each clause ask and judge")
    annotating = _add(
        actions, "annotate", "write the specifications as pages, with all that is known of them", annotate
    )
    annotating.add_argument("--specs", type=Path, metavar="DIR", required=True, help="the texts of the specifications")
    verdicts_help = "show the verdicts of this run beside the clauses; may be given again"
    annotating.add_argument("--report", type=Path, metavar="PATH", action="append", default=[], help=verdicts_help)
    annotating.add_argument("--output", type=Path, metavar="DIR", required=True, help="the folder for the pages")
    telling = _add(actions, "feedback", "list what the specifications leave open, for their authors", print_feedback)
    telling.add_argument("--output", type=Path, metavar="FILE", help="write it to a file instead of printing it")


def _add(actions: Subparsers, name: str, help_text: str, handler: Handler) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=help_text, description=help_text)
    default = locations.clauses_directory()
    help_of_registry = "the registry (default: this suite's own)"
    parser.add_argument("--registry", type=Path, default=default, metavar="DIR", help=help_of_registry)
    errors = (RegistryError, SuiteNotCollected, UnreadableReport, NoDocument)
    parser.set_defaults(handler=reporting_errors(handler, *errors))
    return parser


def list_clauses(args: argparse.Namespace) -> int:
    """Print the clauses that match every filter."""
    registry = load_registry(args.registry)
    if not any(_named(clause, args.pattern) for clause in registry.clauses.values()):
        registry.clause(args.pattern)  # raises, with the nearest ids
    chosen = [clause for clause in registry.clauses.values() if _passes(clause, args)]
    if args.untested:
        result = coverage(registry, cases_by_clause(case_index()))
        problems = (*result.errors, *result.warnings)
        waiting = {problem.id for problem in problems if problem.kind == "untested clause"}
        chosen = [clause for clause in chosen if clause.id in waiting]
    if args.json:
        print(json.dumps([asdict(clause) for clause in chosen], ensure_ascii=False, indent=1))
        return SOUND
    for clause in chosen:
        print(f"{clause.id:<19} {clause.level:<6} {clause.verify:<10} {clause.summary}")
    print(f"{len(chosen)} clauses")
    return SOUND


def _passes(clause: Clause, args: argparse.Namespace) -> bool:
    filters = {field: getattr(args, field) for field in ("document", "level", "verify", "feature", "area")}
    fits = all(value is None or getattr(clause, field) == value for field, value in filters.items())
    return fits and _named(clause, args.pattern) and (args.section is None or clause.within(args.section))


def _named(clause: Clause, pattern: str) -> bool:
    """Return True if a pattern, or the beginning of ids, is that of a clause."""
    return clause.id.startswith(pattern) or fnmatchcase(clause.id, pattern)


def list_features(args: argparse.Namespace) -> int:
    """Print the features that an implementation can claim: number of clauses, a sentence, interpretations."""
    for feature in features(load_registry(args.registry), args.registry):
        cited = f"  ({', '.join(feature.interpretations)})" if feature.interpretations else ""
        print(f"{feature.id:<24}{len(feature.clauses):>4} clauses  {feature.summary}{cited}".rstrip())
    return SOUND


def show(args: argparse.Namespace) -> int:
    """Print a clause or an interpretation with what hangs on it and, with --specs, the source lines of a clause."""
    from tessera_conformance.strength.variants import load_variants  # these import the reference, 1 s
    from tessera_conformance.strength.violation import load_violations

    registry = load_registry(args.registry)
    if args.id.startswith("AMB-"):
        _print_fields(asdict(registry.interpretation(args.id)))
        _print_names("tests", naming_tests(locations.suite_directory()).get(args.id, ()))
        variants = (variant for variant in load_variants() if variant.freedom == args.id)
        _print_names("variants", [f"{variant.name}: {variant.description}" for variant in variants])
        return SOUND
    clause = registry.clause(args.id)
    _print_fields(asdict(clause))
    if args.specs:
        _print_source(clause, registry, args.specs)
    for cited in clause.interpretations:
        print()
        _print_fields(asdict(registry.interpretation(cited)))
    cases = coverage(registry, cases_by_clause(case_index())).cases.get(clause.id, ())
    _print_names("tests", cases)
    _print_names("vectors", _vectors_of(clause))
    violations = (violation for violation in load_violations() if violation.clause == clause.id)
    _print_names("violators", [f"{violation.name}: {violation.description}" for violation in violations])
    reasons = Reasons.read(args.registry)
    _print_names("weaknesses", [f"{rule}: {reason}" for rule in RULES if (reason := reasons.of(rule, clause))])
    return SOUND


def _print_names(title: str, names: Sequence[str]) -> None:
    print(f"\n{title}: {len(names)}" + "".join(f"\n  {name}" for name in names))


def _vectors_of(clause: Clause) -> list[str]:
    """Return the golden vectors with a clause: the file and the name of each."""
    folder = locations.vectors_directory()
    lines = ((path, line) for path in vector_paths(folder) for line in (folder / path).read_text("utf-8").splitlines())
    vectors = ((path, json.loads(line)) for path, line in lines if f'"{clause.id}"' in line)
    return [f"{path}: {vector['name']}" for path, vector in vectors if clause.id in vector.get("clauses", ())]


def _print_fields(fields: Mapping[str, object]) -> None:
    for name, value in fields.items():
        if value is None or value == ():
            continue
        separator = "; " if name in ("alternatives", "excluded") else ", "
        text = separator.join(map(str, value)) if isinstance(value, tuple) else str(value)
        print(f"{name + ':':<17} {text}")


def _print_source(clause: Clause, registry: Registry, directory: Path) -> None:
    document = registry.documents[clause.document]
    specifications, missing = load.read_specifications([document], directory)
    for error in missing:
        raise error
    first, last = clause.lines
    print(f"\n{document.title}, section {clause.section}")
    for change in load.changes_of(clause, specifications[document.key]):
        print(f"note: {change}")
    for number, line in enumerate(specifications[document.key].span(first, last), start=first):
        print(f"{number:>5} | {line}")


def _print_changes(problems: Sequence[RegistryError]) -> None:
    """Print problems, and in one line the clauses of each document that only moved with their text."""
    print_problems([problem for problem in problems if problem.kind != "source moved"])
    moved = [problem for problem in problems if problem.kind == "source moved"]
    for document, changes in groupby(moved, key=lambda problem: problem.document):
        first, *others = changes
        print_problems([first])
        if others:
            more = f"{len(others)} more clause{'s' * (len(others) > 1)}"
            print(f"{document}.toml: and {more} moved with the text, up to {others[-1].id}")


def check(args: argparse.Namespace) -> int:
    """Check form, references and lock, and with --specs the sources; print every problem."""
    if args.update_sources and not args.specs:
        print("error: --update-sources records the texts given with --specs; add --specs DIR")
        return UNANSWERABLE
    registry, problems = examine(args.registry)
    if args.specs and registry is not None:
        specifications, missing = load.read_specifications(registry.documents.values(), args.specs)
        changes = list(load.changed_sources(registry, specifications))
        problems = [*problems, *missing, *changes]
        if args.update_sources and changes:
            load.record_sources(registry, specifications, args.registry)
            print(
                f"the sources are recorded as they are now in {args.registry}; review the diff, then run `clauses lock`"
            )
    _print_changes(problems)
    if registry is not None:
        compared = f", compared with {args.specs}" if args.specs else ""
        print(
            f"{len(registry.clauses)} clauses, {len(registry.interpretations)} interpretations{compared}: "
            f"{len(problems)} problem(s)"
        )
    return PROBLEMS if problems else SOUND


def update_lock(args: argparse.Namespace) -> int:
    """Write the lock that matches the registry, unless an id vanished or got a second meaning."""
    registry = load_registry(args.registry)
    present, wrong = load.read_lock(args.registry) if (args.registry / load.FILE).exists() else ({}, [])
    if wrong:
        raise wrong[0]
    refusals = list(load.broken_promises(registry, present))
    if refusals:
        print_problems(refusals)
        print(f"{load.FILE} is unchanged")
        return PROBLEMS
    changes = list(load.differences(registry, present))
    for change in changes:
        print(f"{change.id}: {'new' if change.field == 'id' else f'{change.field} changed'}")
    load.write_lock(registry, args.registry)
    print(f"{load.FILE}: {len(changes)} change(s), {len(load.lock_of(registry))} ids")
    return SOUND


def report(args: argparse.Namespace) -> int:
    """Print the numbers of clauses with tests; fail on unknown tags and on untested clauses of enforced chapters."""
    registry = load_registry(args.registry)
    judged = None
    if args.report is not None:
        results = clause_results(_whole_report(args.report), registry)
        judged = {name for name, found in results.items() if found.outcome in JUDGED}
    result = coverage(registry, cases_by_clause(case_index()), judged)
    if args.json:
        print(json.dumps(_as_json(result), indent=1))
    else:
        _print_table(_as_json(result))
        print_problems(result.errors)
        waiting = f"{len(result.warnings)} clause(s) without a test in chapters not yet enforced, duplicates aside"
        print(f"{len(result.errors)} error(s), {waiting}")
    return PROBLEMS if result.errors else SOUND


def _whole_report(path: Path) -> Report:
    """Return the report at a path. Raises `UnreadableReport`, also for an invalid one."""
    report = read(report_in(path))
    if report.problem is not None:
        raise UnreadableReport(f"{report.path}: {report.problem}")
    return report


def mark(args: argparse.Namespace) -> int:
    """Print the marks of the rules without a reason, and reasons that explain no mark; fail on either."""
    registry, reasons = load_registry(args.registry), Reasons.read(args.registry)
    whole = bool(args.report)
    facts = facts_of(registry, map(report_in, args.report)) if whole else facts_of_index(registry, case_index())
    if args.facts:
        for name, fact in facts.items():
            print(f"{name:<19} {fact}")
    marks = list(weaknesses(registry, facts, reasons))
    unexplained = [weakness for weakness in marks if not weakness.reason]
    for weakness in unexplained:
        print(f"{weakness.clause:<19} {weakness.rule:<11} {weakness.what}")
    idle = reasons.idle(marks, RULES if whole else ("feature",))
    for entry in idle:
        print(f"{FILE_NAME}: {entry}: explains no mark; take it out")
    print(f"{len(marks)} marks, {len(unexplained)} without a reason; {len(idle)} entries explain none")
    return PROBLEMS if unexplained or idle else SOUND


def annotate(args: argparse.Namespace) -> int:
    """Write the pages and the feedback, unless the texts differ from those of the registry."""
    registry = load_registry(args.registry)
    specifications, missing = load.read_specifications(registry.documents.values(), args.specs)
    problems = [*missing, *load.changed_sources(registry, specifications)]
    if problems:
        _print_changes(problems)
        return PROBLEMS
    runs = _runs(args.report, registry)
    cases = coverage(registry, cases_by_clause(case_index())).cases
    knowledge = Knowledge(registry, cases, naming_tests(locations.suite_directory()), runs)
    documents = {key: annotated(registry.documents[key], text, knowledge) for key, text in specifications.items()}
    args.output.mkdir(parents=True, exist_ok=True)
    write_text(args.output / "index.html", first_page(registry.documents.values()))
    for key, passages in documents.items():
        write_text(args.output / f"{key}.html", document_page(registry.documents[key], passages, knowledge))
    write_text(args.output / FEEDBACK, feedback(registry, knowledge.tests))
    print(f"{args.output}: index.html, a page for each of {len(documents)} documents, {FEEDBACK}")
    return SOUND


def _runs(paths: Sequence[Path], registry: Registry) -> list[Run]:
    """Return each report's results under the name of its implementation, and its path if the name is already used."""
    runs: list[Run] = []
    for path in paths:
        report = _whole_report(path)
        name = implementation_name(report)
        if name in {run.name for run in runs}:
            name = f"{name} ({path})"
        outcomes = {name: OUTCOME_WORDS[found.outcome] for name, found in clause_results(report, registry).items()}
        verdicts = {line["case"]: line["verdict"] for line in report.observed}
        runs.append(Run(name, outcomes, verdicts))
    return runs


def print_feedback(args: argparse.Namespace) -> int:
    """Print, or write to a file, the open points of the specifications."""
    text = feedback(load_registry(args.registry), naming_tests(locations.suite_directory()))
    if args.output is None:
        print(text, end="")
    else:
        write_text(args.output, text)
    return SOUND


def _as_json(tallies: Coverage) -> dict[str, Any]:
    sections: dict[str, dict[str, Any]] = {document: {} for document in tallies.by_document}
    for (document, section), tally in tallies.by_section.items():
        sections[document][section] = _numbers(tally)
    return {
        "total": _numbers(tallies.total),
        "documents": {document: _numbers(tally) for document, tally in tallies.by_document.items()},
        "sections": sections,
        "levels": {level: _numbers(tally) for level, tally in tallies.by_level.items()},
        "untested": [warning.id for warning in tallies.warnings],
        "errors": [error.explain() for error in tallies.errors],
    }


def _print_table(tallies: Mapping[str, Any]) -> None:
    rows = [("", {name: name for name in tallies["total"]})]
    for document, numbers in tallies["documents"].items():
        rows.append((document, numbers))
        rows += [(f"  {section}", part) for section, part in tallies["sections"][document].items()]
    for name, numbers in (*rows, *tallies["levels"].items(), ("total", tallies["total"])):
        print(f"{name:<28}" + "".join(f"{number:>9}" for number in numbers.values()))


def _numbers(tally: Tally) -> dict[str, int]:
    """Return the numbers by name; without those judged if no run was given."""
    return {name: number for name, number in asdict(tally).items() if number is not None}


# The table of `docs/first-hour.md`: the core methods of each document, which no feature excuses.


def core_methods(interface: Interface, registry: Registry) -> dict[str, list[str]]:
    """Return by document the methods without a feature that judge one of its core clauses."""
    methods: dict[str, list[str]] = {document: [] for document in registry.documents}
    for method in interface.methods.values():
        clauses = [registry.clauses[name] for name in method.clauses] if not method.feature else []
        for document in dict.fromkeys(clause.document for clause in clauses if clause.profile == "core"):
            methods[document].append(method.name if method.area == "runtime" else method.full_name)
    return methods


def core_table(interface: Interface, registry: Registry) -> Iterator[str]:
    """Yield the table of the documents: how many clauses of the core are judged, and the methods."""
    yield "\n| document | clauses of its core that cases judge | methods |\n|---|---|---|"
    for document, methods in core_methods(interface, registry).items():
        clauses = [clause for clause in registry.clauses.values() if clause.document == document]
        core = [clause for clause in clauses if clause.active and clause.testable and clause.profile == "core"]
        yield f"| `{document}` | {len(core)} | {', '.join(f'`{name}`' for name in methods)} |"
    yield ""


# The command `interface`: its clauses exist, and the generated files of a checkout are current.
#
# Generated are the schemas of the messages, the tables of the page of the protocol, and that of the first hour.


def made_files(root: Path) -> Mapping[Path, str]:
    """Return the text of each generated file; `root` is the checkout."""
    declared = interface()
    areas = declared.areas.values()
    schemas = root / "schemas" / "protocol"
    files = {schemas / f"{area.name}.schema.json": schema_text(declared, area) for area in areas}
    tables = {f"interface: {area.name}": [*tables_of(area)] for area in areas}
    tables["core methods"] = [*core_table(declared, load_registry(clauses_directory()))]
    pages = (root / "docs" / "protocol.md", root / "docs" / "first-hour.md")
    return files | {page: page_with_tables(page.read_text(encoding="utf-8"), tables) for page in pages}


def wrong_clauses(declared: Interface) -> list[RegistryError]:
    """Return a problem for each clause that methods name and the registry lacks or has withdrawn."""
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
    files = made_files(root)
    stale = [path for path in files if not path.is_file() or path.read_text(encoding="utf-8") != files[path]]
    for path in stale:
        print(f"{path.relative_to(root)}: {'written' if options.write else 'not current'}")
        if options.write:
            path.write_text(files[path], encoding="utf-8")
    return int(bool(stale) and not options.write)
