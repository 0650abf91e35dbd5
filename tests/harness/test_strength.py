"""The kill matrix tells a violator that is caught from one that is not, and fails for any that is not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

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

    def run(*options: str) -> tuple[int, dict[str, str]]:
        done = subprocess.run([*command, f"--output={tmp_path}", *options], capture_output=True, text=True, check=False)
        rows = json.loads((tmp_path / "kill-matrix.json").read_text())["violators"]
        return done.returncode, {row["name"].removeprefix("sample."): row["fate"] for row in rows}

    assert run("--only=Killed") == (0, {"Killed": "killed"})
    assert run() == (1, {"Killed": "killed", **FATES})
