"""A project of one topic with two vectors, and an implementation that can add fp32 tensors, rightly or wrongly."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tessera_conformance.commands.vectors import configure_vectors

SOURCE = '''"""Sums of fp32."""

from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import Topic, tensor
from tessera_conformance.chapters.ir.kit.questions import binary
from tessera_conformance.vectors.building import counted

topic = Topic(__doc__)


@topic.vector("ties", "LANG-10-06")
def ties():
    """Half a step above one goes to the even number."""
    return binary("add", tensor("fp32", [1, 1, float("nan")]), tensor("fp32", [2.0**-24, 2.0**-23, 1]))


@topic.vector("large")
def large():
    """More than a line can show."""
    return binary("add", counted("fp32", (5000,), seed=1), counted("fp32", (5000,), seed=2))
'''

ADAPTER = '''
import numpy as np
from tessera_conformance.adapter import NotSupported
from tessera_conformance.tensors import Tensor


class Adder:
    flips = 0

    def hello(self):
        identity = {"name": "adder", "version": "1"}
        return {"protocol": {"minimum": 1, "maximum": 1}, "implementation": identity, "documents": []}

    def language_execute(self, *, source, function, inputs, level="strict"):
        a, b = (np.frombuffer(inputs[name].data, "<f4") for name in "AB")
        total = (a + b).view("<u4") ^ self.flips
        return {"outputs": [Tensor("fp32", inputs["A"].shape, total.tobytes())]}


class Wrong(Adder):
    """The last bit of every sum is flipped."""

    flips = 1


class Unable(Adder):
    def language_execute(self, **_):
        raise NotSupported("adding")


class Dead(Adder):
    def hello(self):
        raise RuntimeError("no device")
'''


@dataclass(frozen=True)
class Project:
    """The paths of the fixture, and the command to run on them."""

    vectors: Path
    sources: Path | None
    capsys: pytest.CaptureFixture[str]

    def __call__(self, action: str, *arguments: str) -> tuple[int, str]:
        """Exit code and output of a subcommand on this project."""
        parser = argparse.ArgumentParser()
        configure_vectors(parser.add_subparsers().add_parser("vectors"))
        places = [f"--vectors={self.vectors}", *([] if self.sources is None else [f"--sources={self.sources}"])]
        parsed = parser.parse_args(["vectors", action, *places, *arguments])
        self.capsys.readouterr()
        code: int = parsed.handler(parsed)
        printed = self.capsys.readouterr()
        return code, printed.out + printed.err

    def fill(self, adapter: str = "Adder", *arguments: str) -> tuple[int, str]:
        """Fill with one of the adapters above."""
        return self("fill", f"--impl=py:fake_adder:{adapter}", *arguments)

    @property
    def source(self) -> Path:
        """The only source."""
        return self.sources / "ir" / "sums.py"

    @property
    def lines(self) -> Path:
        """The only vector file."""
        return self.vectors / "ir" / "sums.jsonl"

    def edit_source(self, old: str, new: str) -> None:
        """Replace a piece of the source."""
        text = self.source.read_text(encoding="utf-8")
        assert old in text
        self.source.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    """The project, not yet filled."""
    project = Project(tmp_path / "vectors", tmp_path / "sources", capsys)
    project.source.parent.mkdir(parents=True)
    project.source.write_text(SOURCE, encoding="utf-8")
    (tmp_path / "fake_adder.py").write_text(ADAPTER, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.delitem(__import__("sys").modules, "fake_adder", raising=False)
    return project


@pytest.fixture
def frozen(project: Project) -> Project:
    """The project, filled."""
    assert project.fill()[0] == 0
    return project


@pytest.fixture
def flipped() -> Callable[[Path, int, int], None]:
    """Flips bits of one byte of a file."""

    def flip(path: Path, place: int, mask: int) -> None:
        data = bytearray(path.read_bytes())
        data[place] ^= mask
        path.write_bytes(data)

    return flip
