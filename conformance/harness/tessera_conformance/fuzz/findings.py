"""Findings as files: what was tried, what went wrong, and the smallest form of it; enough to try it again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tessera_conformance.documents import read_json
from tessera_conformance.fuzz.properties import Problem
from tessera_conformance.fuzz.trials import Trial, trial_from, trial_message
from tessera_conformance.tensors import MalformedTensor

FORMAT = 1


class MalformedFinding(ValueError):
    """A file that holds no finding of this version."""


@dataclass(frozen=True)
class Finding:
    """A problem, the trial that found it, and a smaller trial with the same problem."""

    implementation: str
    seed: int
    index: int
    features: tuple[str, ...]
    problem: Problem
    trial: Trial
    minimal: Trial

    @property
    def title(self) -> str:
        """One line for people."""
        return f"trial {self.index} of seed {self.seed} ({self.trial.what}): {self.problem.name}: {self.problem.detail}"


def save(finding: Finding, folder: Path) -> Path:
    """Write a finding, and the smallest program beside it as text; the path of the finding."""
    folder.mkdir(parents=True, exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", finding.problem.name.lower()).strip("-")[:40]
    path = folder / f"{finding.seed}-{finding.index}-{slug}.json"
    path.write_text(json.dumps(_message(finding), indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
    path.with_suffix(".tsr").write_bytes(finding.minimal.subject.source.encode("utf-8", "surrogatepass"))
    return path


def load(path: Path) -> Finding:
    """The finding in a file.

    Raises:
        MalformedFinding: it holds something else.
        OSError: it cannot be read.
    """
    try:
        return _finding(read_json(path.read_text(encoding="utf-8")))
    except (KeyError, TypeError, ValueError, AttributeError, MalformedTensor) as error:
        raise MalformedFinding(f"{path}: no finding of format {FORMAT}: {error}") from None


def _message(finding: Finding) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "implementation": finding.implementation,
        "seed": finding.seed,
        "index": finding.index,
        "features": list(finding.features),
        "problem": {"name": finding.problem.name, "detail": finding.problem.detail},
        "minimal": trial_message(finding.minimal),
        "trial": trial_message(finding.trial),
    }


def _finding(message: Mapping[str, Any]) -> Finding:
    if message["format"] != FORMAT:
        raise ValueError(f"format {message['format']!r}")
    return Finding(
        str(message["implementation"]),
        int(message["seed"]),
        int(message["index"]),
        tuple(message["features"]),
        Problem(str(message["problem"]["name"]), str(message["problem"]["detail"])),
        trial_from(message["trial"]),
        trial_from(message["minimal"]),
    )
