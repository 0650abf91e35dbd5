"""The registry as shipped: complete, and what suite and documents name of it exists."""

from __future__ import annotations

import ast
import collections
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tessera_conformance import cases
from tessera_conformance.cases import clauses_directory, suite_directory
from tessera_conformance.fuzz.statements import generate
from tessera_conformance.fuzz.trials import chooser_of
from tessera_conformance.interface import interface
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import RegistryError, load, load_registry
from tessera_conformance.registry.cases import case_index
from tessera_conformance.registry.load import examine
from tessera_conformance.reports.claim import COMMENT
from tessera_conformance.strength.matrix import put, suite_of
from tessera_conformance.suite_run import SuiteRun
from tessera_conformance.transports.locate import DirectTransport
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.language import syntax
from tessera_reference.language.parser import parse

# The registry as shipped: its size, its form, its speed, and its agreement with the specifications.

DIRECTORY = cases.clauses_directory()


def test_every_row_is_there(registry):
    documents = collections.Counter(clause.document for clause in registry.clauses.values())
    assert documents == {"runtime_abi": 299, "language_ir": 361, "host_io": 141, "collectives": 128, "wsp": 187}
    assert len(registry.clauses) == 1116
    assert len(registry.interpretations) >= 251 + 35


def test_the_testable_musts(registry):
    testable = [
        clause
        for clause in registry.clauses.values()
        if clause.level == "MUST" and clause.testable and clause.duplicate_of is None
    ]
    core = [clause for clause in testable if clause.profile == "core"]
    assert (len(testable), len(core)) == (768, 686)


def test_it_has_no_problems():
    assert examine(DIRECTORY)[1] == []


def test_the_lock_is_as_the_command_writes_it(registry, tmp_path):
    load.write_lock(registry, tmp_path)
    assert (tmp_path / load.FILE).read_text() == (DIRECTORY / load.FILE).read_text()


def test_the_files_name_no_place_on_a_machine():
    for file in DIRECTORY.iterdir():
        assert not re.search(r"/(work|home|tmp|root|usr)/", file.read_text()), file.name


def test_ids_are_met_with_their_clause_or_with_the_nearest(registry):
    assert registry.clause("RT-10.1-04").topic == "parameter-buffer"
    with pytest.raises(RegistryError, match=r"did you mean RT-10\.1-04"):
        registry.clause("RT-10.1-4")


def test_it_fits_the_specifications(registry, specifications):
    assert list(load.changed_sources(registry, specifications)) == []


def test_it_quotes_no_sentence_of_the_specifications(registry, quotations):
    rows = [(clause.id, clause.summary) for clause in registry.clauses.values()]
    rows += [
        (row.id, f"{row.issue} | {row.decision} | {row.why} | {row.wording}")
        for row in registry.interpretations.values()
    ]
    assert [name for name, text in rows if quotations(text)] == []


def test_every_section_with_clauses_has_the_title_of_its_document(registry):
    """But for those whose name is their title."""
    named = {"preamble", "Context", "Links", "Status"}
    untitled = {
        (clause.document, clause.section)
        for clause in registry.clauses.values()
        if clause.section not in {*registry.documents[clause.document].sections, *named}
    }
    assert untitled == set()
    assert registry.documents["runtime_abi"].sections["10.1"] == "Parameter Buffer Layout"


# Every clause and interpretation that the code, the pages or the examples name can be looked up.

ROOT = Path(__file__).resolve().parents[2]
CITED = re.compile(r"\b(?:AMB-[A-Z]+-[0-9]+|(?:RT|LANG|COLL|HIO|WSP)-[0-9A-Z]+(?:\.[0-9A-Z]+)*-[0-9]{2,})\b")
SUFFIXES = {".c", ".h", ".md", ".py", ".toml", ".tsr"}


@pytest.mark.parametrize("folder", ["conformance", "docs", "examples", "reference"])
def test_what_is_cited_is_there(folder: str) -> None:
    registry = load_registry(clauses_directory())
    known = registry.clauses.keys() | registry.interpretations.keys()
    files = [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES and path.is_file()]
    strange = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in CITED.findall(path.read_text(encoding="utf-8"))
        if name not in known
    }
    assert strange == set()


# Other readings and constructs that the suite names exist: alternatives letter for letter, control cases by id.

REGISTRY = load_registry(clauses_directory())


def readings() -> Iterator[tuple[Path, int, str, str]]:
    """Yield every `check.reading("AMB-...", "alternative", ...)` of the suite with its place.

    An alternative that is no literal is one of a table in the same file, which is looked for there. A pair of both
    that is no call, or a `Reading` of the messages between host and IO_CPU, is handed to such a call elsewhere.
    """
    for path in sorted(suite_directory().rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if ".reading(" not in text and "Reading(" not in text and "ACCEPTED_BY" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and path.name == "open_programs.py":
                yield from ((path, node.lineno, *alternative) for alternative in alternatives_of(node))
            interpretation, *others = elements_of(node)
            if isinstance(interpretation, ast.Constant) and str(interpretation.value).startswith("AMB-"):
                words = others[0].value if others and isinstance(others[0], ast.Constant) else ""
                yield path, node.lineno, interpretation.value, words


def alternatives_of(call: ast.Call) -> Iterator[tuple[str, str]]:
    """Yield the interpretation of an open program with each alternative, which are the keys of its first mapping."""
    if getattr(call.func, "id", "") != "Question":
        return
    interpretation = ast.literal_eval(call.args[0])
    alternatives = next(argument for argument in call.args if isinstance(argument, ast.Dict))
    yield from ((interpretation, ast.literal_eval(key)) for key in alternatives.keys if key is not None)


def elements_of(node: ast.AST) -> list[ast.AST | None]:
    """Return the arguments of a reading, or the elements of a tuple; else None alone."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return [*node.args] if name in ("reading", "Reading") and node.args else [None]
    return [*node.elts] if isinstance(node, ast.Tuple) and node.elts else [None]


def test_every_reading_names_a_listed_alternative():
    problems = []
    for path, line, name, alternative in readings():
        known = REGISTRY.interpretations[name].alternatives if name in REGISTRY.interpretations else ()
        named = alternative in known if alternative else any(spelling in path.read_text("utf-8") for spelling in known)
        if not named:
            problems.append(f"{path.name}:{line}: {name} has no alternative {alternative!r}: {known}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("construct", REGISTRY.constructs, ids=lambda construct: construct.id)
def test_a_construct_has_a_control_case_and_methods_or_a_pattern(construct):
    assert construct.control in case_index(), f"{construct.control} is no case of the suite"
    assert all(method in interface().methods for method in construct.methods)
    re.compile(construct.pattern)


def test_no_two_constructs_have_one_name():
    names = [construct.id for construct in REGISTRY.constructs]
    assert len(names) == len(set(names))


# Listed alternatives are read as such: what follows one is another reading, and no failure.

NAMED = re.compile(r'(?:\.reading\(|Reading\(|varies\(|\()\s*"(AMB-[A-Z]+-\d+)"')


def recognised() -> set[str]:
    """The interpretations of which a case names an alternative, or which a legal variant follows."""
    return {name for path in suite_directory().rglob("*.py") for name in NAMED.findall(path.read_text("utf-8"))}


def test_alternatives_of_what_is_asserted_are_recognised():
    interpretations = load_registry(clauses_directory()).interpretations.values()
    asserted = [row.id for row in interpretations if row.active and row.alternatives and row.asserted == "the decision"]
    missing = sorted({*asserted} - recognised())
    assert missing == [], "say of each what is asserted, or let a case recognise the alternative (docs/clauses.md)"


def test_a_reading_is_legal_or_excluded():
    for row in REGISTRY.interpretations.values():
        assert not {*row.alternatives} & {*row.excluded}, row.id


# A control case uses its own construct and none after it, so that what blocks a case is what fails in it.


@pytest.mark.slow
def test_the_program_of_a_control_case_has_its_construct_and_none_after_it():
    constructs = [construct for construct in REGISTRY.constructs if construct.pattern]
    items = {item.stash[CASE].id: item for item in suite_of(["ir/constructs/", "ir/readings-of-texts/"]).items}
    run = SuiteRun(DirectTransport(ReferenceAdapter, "reference"), REGISTRY)
    for place, construct in enumerate(constructs):
        case, judgement = put(run, items[construct.control])
        assert judgement.verdict == "pass"
        source = case.exchanges[0].params["source"]
        uses = [other for other, row in enumerate(constructs) if re.search(row.pattern, source, re.MULTILINE)]
        assert place in uses, f"{construct.id}: its pattern does not find {source!r}"
        assert max(uses) == place, f"{construct.id}: its program uses {constructs[max(uses)].id} too"


CONSTRUCTS = {
    "assignment": lambda node: isinstance(node, syntax.Assign),
    "index": lambda node: isinstance(node, syntax.Index),
    "operator": lambda node: isinstance(node, syntax.Binary) and node.operator != "@",
    "matrix-product": lambda node: isinstance(node, syntax.Binary) and node.operator == "@",
    "attribute-block": lambda node: isinstance(node, syntax.Call) and node.attributes,
    "function-attributes": lambda node: isinstance(node, syntax.FunctionDecl) and node.attributes,
    "several-results": lambda node: isinstance(node, syntax.Return) and len(node.values) > 1,
}


def nodes(part):
    if isinstance(part, syntax.Node):
        yield part
    below = vars(part).values() if isinstance(part, syntax.Node) else part if isinstance(part, tuple | list) else ()
    for inner in below:
        yield from nodes(inner)


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_a_construct_is_found_wherever_a_program_has_it(registry, name):
    """In programs that the fuzzer draws; and in few others."""
    (construct,) = [construct for construct in registry.constructs if construct.id == name]
    sources = [COMMENT.sub(r"\1 ", generate(chooser_of(7, number)).source) for number in range(200)]
    has = [any(map(CONSTRUCTS[name], nodes(parse(source)))) for source in sources]
    found = [bool(re.search(construct.pattern, source, re.MULTILINE)) for source in sources]
    assert sum(has) > 30
    assert [source for source, here, there in zip(sources, has, found, strict=True) if here and not there] == []
    assert sum(found) <= sum(has) * 1.1
