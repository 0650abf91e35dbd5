"""Violators and legal variants: their fates, and what is refused."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tessera_conformance.adapter import Refusal
from tessera_conformance.cases import clauses_directory
from tessera_conformance.cli import main
from tessera_conformance.registry import load_registry
from tessera_conformance.strength import commands
from tessera_conformance.strength.matrix import kill_matrix, suite_of
from tessera_conformance.strength.variants import Selection, Variant, judge_variants, load_variants
from tessera_conformance.strength.violation import Around, load_violations, place_of, replaced
from tessera_conformance.transports.locate import load_adapter
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.numerics import random

# The kill matrix tells a violator that is caught from one that is not, and fails for any that is not.

FAKES = Path(__file__).parent / "fakes"
VIOLATORS = """
from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import replaced, violates
from tessera_reference.adapter import ReferenceAdapter, make


@violates("LANG-02.1-08", "takes module for a name")
class Killed(ReferenceAdapter):
    def _compile(self, source):
        return super()._compile(source.replace("let module", "let nodule"))

    def language_parse(self, *, source):
        renamed = source.replace("let module", "let nodule").replace("func module", "func f")
        return super().language_parse(source=renamed)

    def language_verify(self, *, source):
        try:
            return super().language_verify(source=source)
        except Refusal:
            if "module" in source.replace("module", "", 1):
                return {"warnings": []}
            raise


@violates("LANG-02.1-09", "is the reference")
class Survivor(ReferenceAdapter):
    pass


@violates("LANG-02.1-10", "cannot start")
class OnlyCrashes(ReferenceAdapter):
    def hello(self):
        raise RuntimeError("no device")


@violates("LANG-02.1-11", "subtracts instead of adding")
class OnlyOthersNotice(ReferenceAdapter):
    def language_execute(self, *, source, function, inputs, level="strict"):
        return super().language_execute(source=source.replace("+", "-"), function=function, inputs=inputs)


@violates("RT-10.1-04", "breaks a clause that has no case")
class Untested(ReferenceAdapter):
    pass
"""

FATES = {
    "Survivor": "survived",
    "OnlyCrashes": "killed_by_fault",
    "OnlyOthersNotice": "killed_by_unrelated",
    "Untested": "untested",
}


@pytest.mark.slow
def test_each_fate_is_told_and_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "violators").mkdir()
    (tmp_path / "violators" / "sample.py").write_text(VIOLATORS)
    command = [sys.executable, "-m", "tessera_conformance", "strength", f"--violators={tmp_path / 'violators'}"]
    command += ["--cases=ir/keywords/", "--cases=ir/statements/"]

    done = subprocess.run([*command, f"--output={tmp_path}"], capture_output=True, text=True, check=False)
    rows = json.loads((tmp_path / "kill-matrix.json").read_text())["violators"]
    fates = {row["name"].removeprefix("sample."): row["fate"] for row in rows}
    assert (done.returncode, fates) == (1, {"Killed": "killed", **FATES})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def broken(:", "own.py: it cannot be imported: SyntaxError: invalid syntax (own.py, line 1); run `python "),
        ("import cellar", "own.py: it cannot be imported: ModuleNotFoundError: No module named 'cellar'; run `python "),
        ("", ": no file *.py there declares violators\n"),
    ],
)
def test_a_bad_folder_of_violators_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, expected: str
) -> None:
    (tmp_path / "own.py").write_text(text)
    assert main(["strength", "--violators", str(tmp_path)]) == 2
    assert expected in capsys.readouterr().err


def test_a_violator_of_what_the_control_does_not_claim_is_not_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It is named with what it needs, and where no other is left that is no proof."""
    monkeypatch.syspath_prepend(FAKES)
    monkeypatch.setattr(commands, "suite_of", lambda texts: suite_of(["ir/random", "ir/lexical/an-integer"]))
    command = ["strength", "--control=py:claims_chosen:WithoutFeatures", "--jobs=1", "--violators", str(tmp_path)]
    (tmp_path / "unclaimed.py").write_text(
        "from contextlib import nullcontext\n"
        "from tessera_conformance.strength import Violation\n"
        'VIOLATIONS = [Violation("drawn", "LANG-04-06", "draws nothing", nullcontext)]\n'
    )
    assert main(command) == 2
    told = capsys.readouterr().err
    assert told == (
        "1 violators are not judged: needs random-ops, which the control does not claim\n"
        "error: strength: no violator is left to judge; name a control that claims what they need\n"
    )


def test_what_the_control_does_not_pass_kills_nothing() -> None:
    """A violator of which the control is no better survives, and the control's failure is told."""
    registry = load_registry(clauses_directory())
    (violation,) = [violation for violation in load_violations() if violation.name == "ir/language_syntax.octal"]
    suite = suite_of(["ir/lexical/an-integer"])
    sound = kill_matrix(suite, registry, [violation], lambda: load_adapter("reference"))
    assert [kill.fate for kill in sound.kills] == ["killed"]
    with violation.broken() as adapter:  # which reads its text in its own way, and patches nothing
        broken = kill_matrix(suite, registry, [violation], lambda: adapter)
    assert [kill.fate for kill in broken.kills] == ["survived"]
    assert [failure.split(":")[0] for failure in broken.control_failures] == list(sound.kills[0].killers)


def test_every_violator_and_variant_can_be_put_in_force() -> None:
    """The names that it replaces are looked up then: one that is gone would break the violator, not the clause."""
    in_force = [violation.broken for violation in load_violations() if not violation.missing]
    in_force += [variant.made for variant in load_variants()]
    assert len(in_force) > 3000
    for begin in in_force:
        with begin():
            pass


def test_a_substitute_may_be_made_of_what_it_replaces() -> None:
    """It gets what is there when the violation begins, and that is back afterwards."""
    usual, name = random.words, "numerics.random.words"
    broken = replaced("RT-04.1-19", "", ReferenceAdapter, (name, Around(lambda replaced: (replaced, "changed"))))
    with broken.broken():
        assert random.words == (usual, "changed")
    assert random.words is usual
    with pytest.raises(AttributeError, match="random has no such_name"):
        place_of("numerics.random.such_name")


def test_what_a_violation_says_of_itself_is_kept(tmp_path: Path) -> None:
    """Its level need not be asked for, and without its tools it is left out."""
    (tmp_path / "native.py").write_text(
        "from tessera_conformance.strength import Violation\n"
        'VIOLATIONS = [Violation("late", "RT-10.1-04", "is late", None, "deterministic", "no gcc on PATH")]\n'
    )
    (violation,) = load_violations(tmp_path)
    assert violation.name == "native.late"
    assert (violation.level, violation.missing) == ("deterministic", "no gcc on PATH")


SLOW = """
import time
from pathlib import Path
from tessera_conformance.strength import violates
from tessera_reference.adapter import ReferenceAdapter

def slow(self):
    Path(__file__).with_suffix("." + type(self).__name__).touch()
    time.sleep(60)

First = violates("LANG-02.1-08", "is slow")(type("First", (ReferenceAdapter,), {"hello": slow, "__module__": __name__}))
Other = violates("LANG-02.1-09", "is slow")(type("Other", (ReferenceAdapter,), {"hello": slow, "__module__": __name__}))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_with_several_processes_prints_one_line(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C goes to the processes too, SIGTERM to the command alone."""
    (tmp_path / "slow.py").write_text(SLOW)
    command = [*COMMAND, f"--violators={tmp_path}", "--cases=ir/keywords/", "--jobs=2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
        while len(list(tmp_path.glob("slow.*"))) < 3 and running.poll() is None:
            time.sleep(0.1)
        (os.killpg if number == signal.SIGINT else os.kill)(running.pid, number)
        assert running.communicate(timeout=30)[1] == "interrupted\n"
    assert running.returncode == 128 + number


# Legal variants: every one passes; what is none is reported by its name and the case; what shows nowhere, too.

COMMAND = [sys.executable, "-m", "tessera_conformance", "strength"]

VARIANTS = """
from tessera_conformance.strength import altered, varies
from tessera_reference.adapter import ReferenceAdapter

@varies("AMB-RT-38", "has handles of which NULL is one", "runtime/streams/*")
class NullIsAHandle(ReferenceAdapter):
    def runtime_tessStreamCreate(self, **given):
        super().runtime_tessStreamCreate(**given)
        return {"stream": 0}

@varies("LANG-02.1-08", "is the reference", "ir/keywords/*")
class TheSame(ReferenceAdapter):
    pass
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)


def test_what_is_not_legal_is_reported_by_name_and_case(tmp_path: Path) -> None:
    """A variant that no case may fail, and does, and one that answers as the control does, fail the command."""
    (tmp_path / "variants").mkdir()
    (tmp_path / "variants" / "sample.py").write_text(VARIANTS)
    few = [f"--cases={part}" for part in ("runtime/streams/", "ir/keywords/", "ir/grammar/", "abi/constants/")]
    options = [*few, "--beside=3", f"--output={tmp_path}"]
    done = run(f"--variants={tmp_path / 'variants'}", *options)
    assert done.returncode == 1, done.stderr
    rows = {row["name"]: row for row in json.loads((tmp_path / "variants.json").read_text())["variants"]}
    failing = {name: bool(row["failed"]) for name, row in rows.items()}
    assert failing == {"sample.NullIsAHandle": True, "sample.TheSame": False}
    assert all(row["cases"] == row["passed"] + row["left_out"] + len(row["failed"]) for row in rows.values())
    assert 100 < rows["sample.TheSame"]["cases"] < 200 and rows["sample.TheSame"]["shown_by"] == ""
    failed = [row["case"] for row in rows["sample.NullIsAHandle"]["failed"]]
    assert any(case.startswith("runtime/streams/") for case in failed)
    for case in failed:
        assert f"sample.NullIsAHandle (AMB-RT-38) does not pass {case}: fail: " in done.stdout
    assert "sample.TheSame answers as the control does in each case" in done.stdout
    assert not (tmp_path / "kill-matrix.json").exists()
    lines = (tmp_path / "variants.md").read_text().splitlines()
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| sample")] == sorted(rows)


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (VARIANTS.replace("AMB-RT-38", "AMB-RT-9999"), [], "AMB-RT-9999"),
        (VARIANTS.replace("runtime/streams/*", "runtime/brooks/*"), [], "no case is like runtime/brooks/*"),
        (VARIANTS, ["--only=Zebra"], "no variant's name or freedom contains 'Zebra'"),
    ],
)
def test_a_variant_that_cannot_be_run_is_refused(
    tmp_path: Path,
    text: str,
    options: list[str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two files of the suite, which are collected quickly."""
    monkeypatch.setattr(commands, "suite_of", lambda texts: suite_of(["runtime/streams/", "ir/keywords/"]))
    (tmp_path / f"{tmp_path.name}.py").write_text(text)  # no module that is imported already
    assert main(["strength", f"--variants={tmp_path}", *options]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert expected in told.err and "Traceback" not in told.err


def test_a_variant_that_cannot_be_run_is_refused_before_the_violators_are_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without any case, none is like a pattern of the first variant."""
    monkeypatch.setattr(commands, "suite_of", lambda texts: SimpleNamespace(items=[]))
    monkeypatch.setattr(commands, "kill_matrix", None)
    assert main(["strength", "--jobs=1"]) == 2
    assert "no case is like" in capsys.readouterr().err


def test_every_variant_of_the_chapters_names_a_freedom_that_there_is() -> None:
    registry = load_registry(clauses_directory())
    variants = load_variants()
    assert {variant.freedom for variant in variants} <= {*registry.clauses, *registry.interpretations}
    assert len(variants) >= 50


SIGNS = re.compile(r"(?:return|[-+*/@(=]) *[-+] *[a-zA-Z(]|\w\[\d")


class WithoutSigns(ReferenceAdapter):
    """Has neither signs before an operand nor an index behind it, a listed alternative of AMB-LANG-19."""

    def language_verify(self, *, source: str, **options: Any) -> dict[str, Any]:
        """Refuse the operators of section 14.2 that section 2.3 lacks."""
        if SIGNS.search(source):
            raise Refusal("syntax", "parse", "no such operator")
        return super().language_verify(source=source, **options)

    def language_execute(self, *, source: str, **options: Any) -> dict[str, Any]:
        """Run what `language_verify` accepts."""
        self.language_verify(source=source)
        return super().language_execute(source=source, **options)


@pytest.mark.parametrize(("freedom", "fails"), [("AMB-LANG-19", False), ("AMB-LANG-04", True)])
@pytest.mark.parametrize("beside", [0, 100])
def test_another_reading_excuses_the_variant_that_follows_it_and_no_other(
    freedom: str, fails: bool, beside: int
) -> None:
    """Cases that name the interpretation are blocked by one that shows the reading, whether or not it was chosen."""
    suite = suite_of(["ir/constructs/", "ir/precedence/unary-plus-and-minus"])
    variant = Variant("v", freedom, "has no signs", ("ir/precedence/*",), lambda: nullcontext(WithoutSigns()))
    registry = load_registry(clauses_directory())
    (outcome,) = judge_variants([variant], suite.items, registry, ReferenceAdapter, Selection(beside=beside))
    failed = [failure.case for failure in outcome.failures]
    assert bool(failed) == fails, failed
