"""Frozen vectors: only confirmed answers, the same bytes, every damage noticed, changes told case by case."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.commands.vectors import differences, integrity
from tessera_conformance.schemas import first_problem
from tessera_conformance.vectors import load
from tessera_conformance.vectors.files import DamagedFile, Unanswerable, canonical, digest

CHECKOUT = Path(__file__).resolve().parents[2]


def test_filling_writes_lines_tensors_and_a_manifest(project: Any) -> None:
    code, said = project.fill()
    assert code == 0, said
    assert "ir/sums: 2 vectors" in said
    header, *cases = [json.loads(line) for line in project.lines.read_text(encoding="utf-8").splitlines()]
    assert header == {"format": 2, "topic": "ir/sums", "documentation": "Sums of fp32."}
    assert [case["name"] for case in cases] == ["ties", "large"]
    assert all(first_problem("tessera:vectors/lines", "case", case) is None for case in cases)
    assert cases[0]["provenance"]["reference"] == "adder 1"
    assert len(list(project.vectors.glob("ir/*.bin"))) == 3


def test_what_was_written_is_what_is_loaded(frozen: Any) -> None:
    ties, large = load("ir/sums", frozen.vectors)
    assert ties.id == "ir/sums/ties"
    assert ties.clauses == ("LANG-10-06", "LANG-02.3-61")
    assert ties.call.method == "language.execute"
    assert ties.expected[0].bits() == "3f800000" + "3f800001" + "7fc00000"
    assert large.expected[0].shape == (5000,)


def test_an_implementation_that_disagrees_freezes_nothing(project: Any) -> None:
    code, said = project.fill("Wrong")
    assert code == 1
    assert "py:fake_adder:Wrong and oracle.add disagree: element [0]: 0x3f800001, expected 0x3f800000  1 ULP" in said
    assert "ir/sums/ties" in said
    assert not project.vectors.exists()


@pytest.mark.parametrize("adapter", ["Dead", "Missing"])
def test_an_implementation_that_does_not_start_is_reported(project: Any, adapter: str) -> None:
    code, said = project.fill(adapter)
    assert (code, "error:" in said) == (2, True)


def test_filling_again_changes_nothing(frozen: Any) -> None:
    before = {path: path.stat().st_mtime_ns for path in frozen.vectors.rglob("*")}
    code, said = frozen.fill()
    assert (code, said) == (0, "ir/sums: 2 vectors, unchanged\n")
    assert {path: path.stat().st_mtime_ns for path in frozen.vectors.rglob("*")} == before


def test_changing_a_frozen_question_takes_a_reason(frozen: Any) -> None:
    before = frozen.lines.read_bytes()
    frozen.edit_source("2.0**-23", "3 * 2.0**-24")
    code, said = frozen.fill()
    assert (code, "--reason" in said, frozen.lines.read_bytes() == before) == (1, True, True)
    code, said = frozen.fill("Adder", "--reason=a tie upwards")
    assert (code, "ir/sums.jsonl" in said) == (0, True)
    ties, large = load("ir/sums", frozen.vectors)
    assert (ties.provenance.reason, large.provenance.reason) == ("a tie upwards", None)
    assert frozen("check")[0] == 0


def test_a_new_wording_takes_no_reason_and_keeps_the_provenance(frozen: Any) -> None:
    before = load("ir/sums", frozen.vectors)
    frozen.edit_source("Half a step", "Half a unit")
    assert frozen.fill()[0] == 0
    after = load("ir/sums", frozen.vectors)
    assert after[0].comment == "Half a unit above one goes to the even number."
    assert after[0].provenance == before[0].provenance


def test_only_the_named_cases_are_run(frozen: Any) -> None:
    """The adapter is wrong about every case, but only one is asked for, and it is said."""
    code, said = frozen.fill("Wrong", "ir/sums/ties")
    assert (code, "ir/sums/ties" in said, "ir/sums/large" in said) == (1, True, False)
    assert frozen.fill("Adder", "ir/nothing")[0] == 2


def test_tensors_that_nothing_names_any_more_are_removed(frozen: Any) -> None:
    frozen.edit_source("(5000,)", "(4999,)")
    assert frozen.fill("Adder", "--reason=one fewer")[0] == 0
    assert len(list(frozen.vectors.glob("ir/*.bin"))) == 3
    assert frozen("check")[0] == 0


def test_damage_is_not_filled_over(frozen: Any, flipped: Any) -> None:
    flipped(frozen.lines, 200, 1)
    damaged = frozen.lines.read_bytes()
    code, _ = frozen.fill("Adder", "--reason=why not")
    assert (code, frozen.lines.read_bytes() == damaged) == (1, True)
    with pytest.raises(DamagedFile):
        load("ir/sums", frozen.vectors)


def test_a_topic_that_is_not_there(frozen: Any) -> None:
    with pytest.raises(Unanswerable):
        load("ir/nothing", frozen.vectors)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"""More than a line can show."""', "", "no docstring"),
        ('"large"', '"ties"', "two cases are called ties"),
        ("2.0**-24", "0.1", "is not a value of fp32"),
        ("topic = Topic(__doc__)", "topic = Topic(None)", "no documented topic"),
        ("import Topic", "import Topics", "ImportError"),
    ],
)
def test_a_broken_source_is_named(project: Any, old: str, new: str, complaint: str) -> None:
    project.edit_source(old, new)
    code, said = project.fill()
    assert (code, complaint in said, "sums.py" in said) == (2, True, True), said


@pytest.mark.slow
def test_the_hash_seed_changes_no_byte(project: Any, tmp_path: Path) -> None:
    folders = []
    for seed in ("1", "2"):
        folder = tmp_path / f"seed{seed}"
        paths = [str(tmp_path), str(CHECKOUT / "conformance" / "harness"), str(CHECKOUT / "reference")]
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-m", "tessera_conformance", "vectors", "fill", "--impl=py:fake_adder:Adder"]
        places = [f"--vectors={folder}", f"--sources={project.sources}"]
        done = subprocess.run([*command, *places], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        folders.append({path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()})
    assert folders[0] == folders[1]
    assert len(folders[0]) == 5


def reseal(folder: Path, path: Path, data: bytes) -> None:
    """Edit a file and cover it up in the manifest."""
    path.write_bytes(data)
    manifest = folder / "MANIFEST.json"
    document = json.loads(manifest.read_text(encoding="utf-8"))
    document["files"][path.relative_to(folder).as_posix()] = digest(data)
    manifest.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def test_an_untouched_folder_is_sound(frozen: Any) -> None:
    assert frozen("check") == (0, "2 vectors in 1 files compared with their sources: 0 problem(s)\n")
    assert frozen("check", "--recompute")[0] == 0


def test_the_digest_of_recomputed_answers_is_one_line(frozen: Any) -> None:
    code, said = frozen("check", "--recompute", "--digest")
    assert code == 0
    assert re.fullmatch(r"sha256:[0-9a-f]{64}  the answers of 2 vectors", said.splitlines()[-1])
    assert frozen("check", "--recompute", "--digest") == (code, said)
    assert frozen("check", "--digest")[0] == 2


@pytest.mark.slow
@pytest.mark.parametrize("mask", [0x01, 0x80])
def test_every_flipped_byte_is_noticed(frozen: Any, mask: int) -> None:
    """Every byte of the vector file and of the manifest, and a byte in every 499 of the tensors."""
    for path in [frozen.lines, frozen.vectors / "MANIFEST.json", *frozen.vectors.glob("ir/*.bin")]:
        sound = path.read_bytes()
        for place in range(0, len(sound), 499 if path.suffix == ".bin" else 1):
            path.write_bytes(sound[:place] + bytes([sound[place] ^ mask]) + sound[place + 1 :])
            assert list(integrity(frozen.vectors)), f"{path.name} byte {place}"
        path.write_bytes(sound)
    assert list(integrity(frozen.vectors)) == []


def test_a_wrong_answer_that_was_sealed_is_found_by_computing_it_again(frozen: Any) -> None:
    header, ties, large = frozen.lines.read_text(encoding="utf-8").splitlines()
    case = json.loads(ties)
    case["expected"]["outputs"][0]["$tensor"]["bits"] = "3f800001" * 2 + "7fc00000"
    del case["sha256"]
    case["sha256"] = digest(canonical(case).encode())
    reseal(frozen.vectors, frozen.lines, "\n".join([header, canonical(case), large, ""]).encode())
    assert frozen("check")[0] == 0
    code, said = frozen("check", "--recompute")
    assert (code, "0x3f800000, expected 0x3f800001" in said) == (1, True)


def test_a_line_without_a_source_and_a_source_without_a_line(frozen: Any) -> None:
    frozen.edit_source('"large"', '"huge"')
    code, said = frozen("check")
    assert code == 1
    assert "this line has no source\n  where:  ir/sums/large" in said
    assert "this source case has no frozen line\n  where:  ir/sums/huge" in said


def test_a_source_that_asks_something_else(frozen: Any) -> None:
    frozen.edit_source("2.0**-23", "2.0**-22")
    code, said = frozen("check")
    assert (code, "differ in call" in said) == (1, True)


def test_missing_and_extra_files(frozen: Any) -> None:
    tensor = next(frozen.vectors.glob("ir/*.bin"))
    tensor.rename(tensor.with_name("other.bin"))
    code, said = frozen("check")
    assert code == 1
    assert "which is missing" in said
    assert "does not list this file" in said
    assert "there is no file" in said


def test_a_folder_without_a_manifest(frozen: Any) -> None:
    (frozen.vectors / "MANIFEST.json").unlink()
    code, said = frozen("check")
    assert (code, "there is no manifest" in said) == (1, True)


def test_nothing_frozen_is_not_sound(project: Any) -> None:
    assert project("check")[0] == 2
    project.vectors.mkdir()
    assert project("check")[0] == 1


def test_sources_that_are_not_there(frozen: Any) -> None:
    frozen.source.unlink()
    frozen.source.parent.rmdir()
    frozen.sources.rmdir()
    code, said = frozen("check")
    assert (code, "--sources" in said) == (2, True)


@pytest.fixture
def old(frozen: Any, tmp_path: Path) -> Path:
    """A copy of the vectors as they were."""
    return Path(shutil.copytree(frozen.vectors, tmp_path / "old"))


def test_no_difference(frozen: Any, old: Path) -> None:
    assert frozen("diff", str(old)) == (0, "2 vectors, no differences\n")


def test_added_removed_and_changed(frozen: Any, old: Path) -> None:
    frozen.edit_source('"large"', '"huge"')
    frozen.edit_source("2.0**-23, 1]", "2.0**-22, 1]")
    assert frozen.fill("Adder", "--reason=wider")[0] == 0
    code, said = frozen("diff", str(old), str(frozen.vectors))
    assert code == 1
    assert said.splitlines()[0] == "~ ir/sums/ties"
    assert "    input B: element [1]: 0x34000000 -> 0x34800000, 8388608 ULP (1 of 3 elements differ)" in said
    assert "    expected output 0: element [1]: 0x3f800001 -> 0x3f800002, 1 ULP (1 of 3 elements differ)" in said
    assert "- ir/sums/large" in said
    assert "+ ir/sums/huge" in said


def test_an_order_is_compared_in_one_pass_over_the_vectors(frozen: Any) -> None:
    """The vector that is elsewhere is named; the ids of both sides are put together once, not for every vector."""

    asked: list[None] = []

    class Counted(dict[str, Any]):
        def keys(self) -> Any:
            asked.append(None)
            return super().keys()

    vector = load("ir/sums", frozen.vectors)[0]
    names = [f"ir/sums/{number}" for number in range(9)]
    old, new = Counted(dict.fromkeys(names, vector)), dict.fromkeys([*names[1:], names[0]], vector)
    asked.clear()
    assert list(differences(old, new)) == ["order: ir/sums/0 is elsewhere"]
    assert len(asked) == 1


def test_a_line_edited_by_hand_can_still_be_looked_at(frozen: Any, old: Path) -> None:
    frozen.lines.write_bytes(frozen.lines.read_bytes().replace(b"7fc00000", b"7fc00001"))
    code, said = frozen("diff", str(old), str(frozen.vectors))
    assert (code, "NaN codes differ" in said) == (1, True)


@pytest.mark.slow
def test_against_a_git_revision(frozen: Any) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=frozen.vectors.parent, capture_output=True, check=True)

    git("init")
    git("add", "vectors")
    git("commit", "-m", "frozen")
    assert frozen("diff", "HEAD")[0] == 0
    frozen.edit_source("goes to", "moves to")
    assert frozen.fill()[0] == 0
    code, said = frozen("diff", "HEAD")
    assert (code, "comment: Half a step above one goes to" in said) == (1, True)


@pytest.mark.parametrize("place", ["nothing-there", "--version"])
def test_a_side_that_is_not_there(frozen: Any, place: str) -> None:
    code, said = frozen("diff", "--", place)
    assert (code, "name a folder or a git revision" in said) == (2, True)
