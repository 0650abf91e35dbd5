"""The pages that scripts in `docs` write are current, linked and complete; so are their pictures."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.cli import main
from tessera_conformance.commands.adapters import TEMPLATES
from tessera_conformance.documents import table_of
from tessera_conformance.interface import interface
from tessera_conformance.operations import OPERATIONS
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.cases import case_index
from tessera_conformance.registry.load import schema_violations
from tessera_conformance.registry.model import FILE, Feature, features
from tessera_conformance.reports.journal import read
from tessera_reference.ir.operation import OPERATIONS as IR_OPERATIONS
from tessera_reference.ir.operation import SPELLINGS
from tessera_reference.ir.targets import target_of
from tessera_reference.levels.texts import read_at

PAGES = ("command_line", "features", "levels", "names", "operations", "profiles")
LINKED = {"collectives", "command_line", "features", "glossary", "levels", "operations", "profiles", "runtime"}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_script_writes(root: Path, name: str) -> None:
    script = runpy.run_path(str(root / "docs" / f"draw_{name}.py"))
    written = (root / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert written == script["page"](), f"run `python docs/draw_{name}.py`"


def test_the_index_links_the_pages(root: Path) -> None:
    assert set((root / "docs" / "index.md").read_text(encoding="utf-8").splitlines()) >= LINKED


def test_every_argument_of_a_command_has_a_meaning(root: Path) -> None:
    rows = re.findall(r"^\| `(.*)` \|(.*)\|$", (root / "docs" / "command_line.md").read_text("utf-8"), re.MULTILINE)
    assert len(rows) > 200
    assert [argument for argument, meaning in rows if not meaning.strip()] == []


def test_every_operation_and_every_spelling_stands_on_the_page(root: Path) -> None:
    written = (root / "docs" / "operations.md").read_text(encoding="utf-8")
    names = [name for name in IR_OPERATIONS if name.startswith("tessera.graph.")]
    assert len(names) > 80
    assert [name for name in names if f"`{name}`" not in written] == []
    assert [spelling for spelling in SPELLINGS if f"`{spelling}`" not in written] == []


def test_the_skeleton_lists_every_operation() -> None:
    text = (TEMPLATES / "python" / "operations.py").read_text(encoding="utf-8")
    lines = dict(re.findall(r'^    (?:# )?"(\w+)": lambda(.*?):', text, re.MULTILINE))
    assert list(lines) == list(OPERATIONS)
    for name, row in OPERATIONS.items():
        parameters = re.findall(r"\*?[a-z_0-9]+", lines[name])
        present = [attribute for attribute in row.attributes if attribute in parameters]
        assert [*row.operands, *present] == parameters, name


REGISTRY = load_registry(clauses_directory())
FEATURES = features(REGISTRY, clauses_directory())


def test_every_feature_has_a_sentence_and_no_other_has() -> None:
    table = table_of(clauses_directory() / FILE)
    assert schema_violations(FILE, table) == []
    assert list(table["features"]) == list(REGISTRY.features)
    assert len({feature.summary for feature in FEATURES}) == len(FEATURES)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.id)
def test_a_feature_has_methods_of_its_own_or_shows_through_others(feature: Feature) -> None:
    assert bool(feature.methods) != bool(feature.through)
    assert {*feature.methods, *feature.through} <= {method.full_name for method in interface().methods.values()}


def test_the_command_prints_the_sentences_of_features(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clauses", "features"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [feature.id for feature in FEATURES]
    assert all(feature.summary in line for feature, line in zip(FEATURES, lines, strict=True))


@pytest.mark.slow
def test_the_cases_of_a_feature_call_the_methods_through_which_it_shows(root: Path) -> None:
    """By the published run of the reference: each method by a case of the feature at least, where any ran."""
    report = read(root / "reports" / "reference" / "report.jsonl.gz")
    methods_of = {str(line["case"]): set(line.get("methods", ())) for line in report.observations}
    called: dict[str, set[str]] = {}
    for identifier, case in case_index().items():
        for name in case.features:
            called.setdefault(name, set()).update(methods_of.get(identifier, ()))
    wrong = {
        feature.id: sorted(set(feature.through) - called[feature.id])
        for feature in FEATURES
        if called.get(feature.id) and not set(feature.through) <= called[feature.id]
    }
    assert wrong == {}


def test_texts_of_the_page_are_read_as_ir_of_their_levels(root: Path) -> None:
    written = (root / "docs" / "levels.md").read_text(encoding="utf-8")
    texts = re.findall(r"^```\n(.*?)^```$", written, re.DOTALL | re.MULTILINE)[1:]
    levels = (("graph", "sm_90"), ("schedule", "sm_90"), ("tile", "sm_90"), ("target", "sm_90"), ("target", "gfx942"))
    for text, (level, target) in zip(texts, levels, strict=True):
        (module,) = read_at(level, text, target_of(target))
        assert any(function.device for function in module.functions.values()) == (level in ("tile", "target"))


def test_the_protocol_names_every_operation_of_the_lower_levels(root: Path) -> None:
    """One of a row stands in full, those beside it without their dialect or beginning; `rocdl.mfma...` for them all."""
    page = (root / "docs" / "protocol.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    named = set()
    for row in rows:
        words = [word.removesuffix(".x") for word in re.findall(r"`([\w.]+)`", row)]
        starts = {".".join(word.split(".")[:count]) for word in words for count in range(1, word.count(".") + 1)}
        named |= {f"{start}.{word}" for start in starts for word in words} | set(words)
    lower = [name for name in IR_OPERATIONS if not name.startswith(("tessera.graph.", "rocdl.mfma."))]
    assert len(lower) > 80
    assert [name for name in lower if re.sub(r"\.[xyz]$", "", name) not in named] == []


def test_the_page_of_collectives_and_its_pictures_are_current(root: Path) -> None:
    script = runpy.run_path(str(root / "docs" / "draw_collectives.py"))
    written = (root / "docs" / "collectives.md").read_text(encoding="utf-8")
    assert written == script["page"](written), "run `python docs/draw_collectives.py`"
    assert {found[1] for found in script["MARKED"].findall(written)} == set(script["TABLES"])
    for name, drawing in script["PICTURES"].items():
        drawn = (root / "docs" / "images" / name).read_text(encoding="utf-8")
        assert drawn == drawing(), "run `python docs/draw_collectives.py`"
        assert f"(images/{name})" in written


def test_the_picture_of_a_trace_is_current(root: Path) -> None:
    script = runpy.run_path(str(root / "docs" / "draw_trace.py"))
    drawn = (root / "docs" / "images" / "trace.svg").read_text(encoding="utf-8")
    assert drawn == script["drawing"](script["trace"]()) + "\n", "run `python docs/draw_trace.py`"
    assert "(images/trace.svg)" in (root / "docs" / "runtime.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["data_parallel", "moe", "prefetch"])
def test_an_example_runs(root: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(root / "examples" / "collectives" / f"{name}.py"), run_name="__main__")
    assert " us" in capsys.readouterr().out


def test_the_committed_trace_is_current(root: Path) -> None:
    example = runpy.run_path(str(root / "examples" / "collectives" / "perfetto.py"))
    written = (root / "examples" / "collectives" / "step.trace.json").read_text(encoding="ascii")
    assert written == example["trace"](), "run `python perfetto.py` in examples/collectives"
    names = {event["name"] for event in json.loads(written)["traceEvents"] if event["ph"] == "X"}
    assert {"layer0", "backward1", "scatter0 chunk 0"} <= names
