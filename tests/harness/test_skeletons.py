"""Every skeleton that `new-adapter` writes builds as it is, answers `smoke`, and passes cases of the suite.

Those of `docs/first-hour.md` do so in `tests/project/test_documentation.py`, by the commands of the page.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.cli import main
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.commands.adapters import KINDS, LANGUAGES, TEMPLATES, Skeleton, skeleton
from tessera_conformance.plugin import CASE
from tessera_conformance.protocol import Hello
from tessera_conformance.registry import load_registry
from tessera_conformance.strength.matrix import judge
from tessera_conformance.suite_run import SuiteRun
from tessera_conformance.transports.locate import locate

EVERY = [(language, kind) for language in LANGUAGES for kind in KINDS]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "first-hour.md"
ON_THE_PAGE = {
    (language, kind)
    for kind, language in re.findall(r"--kind=(\w+) --language=(\w+)", PAGE.read_text(encoding="utf-8"))
}
PASSED = {
    "language": ["ir/grammar/a-malformed-module-is-refused/", 7],
    "operations": ["ir/elementwise/golden/fp32/add/", 1],
    "collectives": ["collectives/all-reduce/golden/fp32/sum/ranks-", 7],
    "runtime": ["runtime/contexts/the-version-has-three-numbers", 1],
}
"""The cases that the methods of each kind answer, and their least number."""
FILES = [
    "ir/test_grammar.py",
    "ir/test_keywords.py",
    "ir/test_elementwise.py",
    "ir/test_softmax.py",
    "collectives/test_all_reduce.py",
    "runtime/test_contexts.py",
]
"""Folders of these cases, and of the cases that a skeleton cannot pass."""
ASKED = {
    "language": "language.parse",
    "operations": "numerics.evaluate",
    "collectives": "collectives.all_reduce",
    "runtime": "tessGetVersion",
}
HOW_TO_INSTALL = {"node": "nodejs", "gcc": "gcc", "g++": "g++", "rustc": "rustc", "go": "golang-go"}


@pytest.fixture(scope="module")
def suite() -> CollectedSuite:
    return CollectedSuite(files=FILES)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Skeleton]:
    """A skeleton, written and built in a folder of its own, from which its `--impl` is found."""

    def build(language: str, kind: str) -> Skeleton:
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        path = Path(f"adapter_{kind}.py") if language == "python" else None
        made = skeleton(language, kind, path)
        for program in made.needs:
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not there: apt-get install {HOW_TO_INSTALL[program]}")
        made.write()
        if made.build:
            done = subprocess.run(quick(made.build), capture_output=True, text=True, timeout=300, check=False)
            assert (done.returncode, done.stderr) == (0, "")
        return made

    return build


def quick(build: str) -> list[str]:
    """The command without its optimisations, which take longer than what is compiled will run here."""
    return [word for word in shlex.split(build) if word not in ("-O", "-O2")]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("language", "kind"), [skeleton for skeleton in EVERY if skeleton not in ON_THE_PAGE])
def test_it_builds_answers_and_passes(
    built: Callable[[str, str], Skeleton],
    suite: CollectedSuite,
    capsys: pytest.CaptureFixture[str],
    language: str,
    kind: str,
) -> None:
    made = built(language, kind)
    via = "operations" if kind == "operations" else "programs"
    assert main(["smoke", f"--impl={made.impl}", f"--via={via}"]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith(ASKED[kind])]
    assert [line for line in told if "right, " in line] or kind == "language", told
    prefix, least = PASSED[kind]
    cases = [item for item in suite.items if item.stash[CASE].id.startswith(str(prefix))]
    run = SuiteRun(locate(made.impl), load_registry(clauses_directory()), via=via)
    assert isinstance(run.hello, Hello) and run.hello.message["parallel"] is True
    try:
        verdicts = {item.stash[CASE].id: judge(run, item) for item in cases if "scalar" not in item.stash[CASE].id}
    finally:
        run.session.close()
    assert {judgement.verdict for judgement in verdicts.values()} == {"pass"}, verdicts
    assert len(verdicts) >= int(least)


@pytest.mark.parametrize(("language", "kind"), EVERY)
def test_it_says_that_several_processes_may_answer_and_when_they_may_not(language: str, kind: str) -> None:
    texts = [template.read_text(encoding="utf-8") for template in skeleton(language, kind).files.values()]
    (told,) = [text for text in texts if re.search(r"\bparallel\b", text, re.IGNORECASE) and "share a device" in text]
    assert re.search("take (it|the line) away where", told, re.IGNORECASE)


@pytest.mark.parametrize(
    ("language", "kind"), [("c", "operations"), ("rust", "collectives"), ("node", "language"), ("go", "operations")]
)
def test_what_it_lacks_is_no_pass(
    built: Callable[[str, str], Skeleton], suite: CollectedSuite, language: str, kind: str
) -> None:
    made = built(language, kind)
    via = "operations" if kind == "operations" else "programs"
    run = SuiteRun(locate(made.impl), load_registry(clauses_directory()), via=via)
    case = "ir/softmax/golden/fp32/small" if kind == "operations" else "ir/keywords/a-reserved-word-names-no-value/if"
    (item,) = [item for item in suite.items if item.stash[CASE].id == case]
    try:
        assert judge(run, item).verdict == ("unsupported" if kind == "operations" else "fail")
    finally:
        run.session.close()


def test_every_template_is_written_by_some_skeleton() -> None:
    written = {template for language, kind in EVERY for template in skeleton(language, kind).files.values()}
    table = TEMPLATES / "templates.toml"
    files = {path for path in TEMPLATES.rglob("*") if path.is_file() and path != table and path.suffix != ".pyc"}
    assert files <= written
    assert {path.name for path in written - files} == {"tessera.h"}


@pytest.mark.parametrize("language", ["c", "rust"])
def test_nothing_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], language: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new-adapter", "mine", "--kind=operations", f"--language={language}"]) == 0
    files = {path: path.read_bytes() for path in (tmp_path / "mine").iterdir()}
    next(path for path in files if path.stem == "protocol").unlink()
    assert main(["new-adapter", "mine", "--kind=collectives", f"--language={language}"]) == 2
    assert "adapter." in capsys.readouterr().err
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {f"adapter.{'c' if language == 'c' else 'rs'}"}
