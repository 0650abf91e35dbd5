"""The kill matrix tells a violator that is caught from one that is not, and fails for any that is not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tessera_conformance.cli import main
from tessera_conformance.locations import clauses_directory
from tessera_conformance.registry import load_registry
from tessera_conformance.strength import commands
from tessera_conformance.strength.matrix import kill_matrix, suite_of
from tessera_conformance.strength.violation import load_violations
from tessera_conformance.transports.locate import load_adapter

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
    (violation,) = [each for each in load_violations() if each.name == "ir/language_syntax.octal"]
    suite = suite_of(["ir/lexical/an-integer"])
    sound = kill_matrix(suite, registry, [violation], lambda: load_adapter("reference"))
    assert [kill.fate for kill in sound.kills] == ["killed"]
    with violation.broken() as adapter:  # which reads its text in its own way, and patches nothing
        broken = kill_matrix(suite, registry, [violation], lambda: adapter)
    assert [kill.fate for kill in broken.kills] == ["survived"]
    assert [failure.split(":")[0] for failure in broken.control_failures] == list(sound.kills[0].killers)


def test_what_a_violation_says_of_itself_is_kept(tmp_path: Path) -> None:
    """Its level need not be asked for, and without its tools it is left out."""
    (tmp_path / "native.py").write_text(
        "from tessera_conformance.strength import Violation\n"
        'VIOLATIONS = [Violation("late", "RT-10.1-04", "is late", None, "deterministic", "no gcc on PATH")]\n'
    )
    (violation,) = load_violations(tmp_path)
    assert violation.name == "native.late"
    assert (violation.level, violation.missing) == ("deterministic", "no gcc on PATH")
