"""Judge implementations that others wrote, and renew the page that compares them.

    python -m conformance.adapters.judge numpy jax      judges these, and writes NAME.json for each
    python -m conformance.adapters.judge numpy --report report/report.jsonl     takes a report that is there
    python -m conformance.adapters.judge                renews the page alone

`implementations.toml` says what each is and which cases it is asked. NAME.json is the summary of a run; the findings in
NAME.md are written by hand. README.md is made from all summaries in the folder.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tessera_conformance.reports.claim import counts_against
from tessera_conformance.reports.journal import Report, read

ROOT = Path(__file__).resolve().parents[2]
IMPLEMENTATIONS = Path(__file__).with_name("implementations.toml")
PUBLISHED = ROOT / "reports" / "implementations"
INTRODUCTION = """# Implementations that others wrote

Each row is one run of the suite by `python -m conformance.adapters.judge NAME`, against a release as it is installed.
None of these libraries claims to follow the specifications: what fails is a finding, and the report of each says by
clause and bits whether it is a defect or another reading. What is unsupported is not there, or not for that dtype.

This page is made from the `.json` files beside it.
"""
HEAD = (
    "implementation",
    "kind",
    "level",
    "pass",
    "fail",
    "crash or hang",
    "other reading",
    "unsupported",
    "failing clauses",
)


def implementations() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `implementations.toml` by name."""
    table = tomllib.loads(IMPLEMENTATIONS.read_text(encoding="utf-8"))
    return {name: row for name, row in table.items() if name != "format"}


def missing(row: Mapping[str, Any]) -> list[str]:
    """The modules and programs that it needs and that are not there."""
    return [name for name in row["needs"] if importlib.util.find_spec(name) is None and shutil.which(name) is None]


def judged(row: Mapping[str, Any], *options: str) -> Report:
    """The report of a run of the suite.

    Raises:
        RuntimeError: the run ended without a report; says what it printed last.
    """
    with tempfile.TemporaryDirectory(prefix="tessera-judge-") as folder:
        if "build" in row:
            subprocess.run(row["build"].replace("{folder}", folder).split(), cwd=ROOT, check=True)
        implementation = row["impl"].replace("{python}", sys.executable).replace("{folder}", folder)
        asked = [f"--impl={implementation}", f"--report-dir={folder}/report", *row["options"], *options]
        command = [sys.executable, "-m", "tessera_conformance", "run", *asked]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        path = Path(folder) / "report" / "report.jsonl"
        if not path.exists():
            raise RuntimeError((done.stdout + done.stderr).strip()[-2000:])
        return read(path)


def summary(row: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """The figures of a report: verdicts, clauses, and for each group of cases what failed there."""
    hello = report.header["implementation"]["hello"] or {"implementation": {"name": row["title"], "version": "?"}}
    lines = list(report.observed)
    verdicts = Counter(line["verdict"] for line in lines if line["disposition"] != "other_reading")
    readings = Counter(line["interpretation"] for line in lines if line["disposition"] == "other_reading")
    failed = [line for line in lines if counts_against(line)]
    causes = Counter(
        line["cause"] or "question" for line in lines if line["verdict"] in ("unsupported", "inapplicable")
    )
    return {
        "title": row["title"],
        "kind": row["kind"],
        "version": hello["implementation"]["version"],
        "impl": row["impl"],
        "options": list(row["options"]),
        "level": report.header["selection"]["level"],
        "claim": report.claim,
        "cases": dict(sorted(verdicts.items())),
        "other_readings": dict(sorted(readings.items())),
        "causes": dict(sorted(causes.items())),
        "failed_clauses": _counts(clause for line in failed for clause in line["clauses"]),
        "failed_groups": _counts("/".join(_group(line["case"])) for line in failed),
        "passed_groups": _counts("/".join(_group(line["case"])[:2]) for line in lines if line["verdict"] == "pass"),
    }


def _counts(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _group(case: str) -> Sequence[str]:
    """The file of a case, and of a golden one its dtype and operation; the name of the vector is left out."""
    parts = case.split("/")
    return [part for part in parts[:5] if part != "golden"][: max(2, min(4, len(parts) - 2))]


def page(folder: Path = PUBLISHED) -> str:
    """The comparison of all summaries."""
    told = [path for path in sorted(folder.glob("*.json")) if "cases" in json.loads(path.read_text(encoding="utf-8"))]
    head = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    return "\n".join([INTRODUCTION, *head, *map(row_of, told), "", *_readers(folder), ""])


def _readers(folder: Path) -> list[str]:
    """The tools that read texts, and how many they read at each level."""
    found = {path: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    rows = [f"- {_reader_row(path, told)}" for path, told in found.items() if "texts" in told]
    command = "`python -m conformance.adapters.text_readers`"
    return [f"Tools that read what the levels print, asked by {command}:", "", *rows] if rows else []


def _reader_row(path: Path, told: Mapping[str, Any]) -> str:
    levels = [
        f"{row['read']} of {row['read'] + sum(map(len, row['refused'].values()))} at {level}"
        for level, row in told["texts"].items()
    ]
    refused = sum(row["refused"] for row in told["forgeries"].values())
    whole = refused + sum(len(row["read"]) for row in told["forgeries"].values())
    reads = f"reads {', '.join(levels)}; refuses {refused} of {whole} forgeries"
    return f"[{path.stem}]({path.stem}.md), {told['version']}: {reads}"


def row_of(path: Path) -> str:
    """One line of the comparison."""
    told = json.loads(path.read_text(encoding="utf-8"))
    cases, findings = told["cases"], path.with_suffix(".md")
    name = f"{told['title']} {told['version']}"
    stopped = sum(cases.get(verdict, 0) for verdict in ("crash", "hang", "protocol_error"))
    clauses = ", ".join(list(told["failed_clauses"])[:6]) + (" ..." if len(told["failed_clauses"]) > 6 else "")
    cells = [
        f"[{name}]({findings.name})" if findings.exists() else name,
        told["kind"],
        told["level"],
        str(cases.get("pass", 0)),
        str(cases.get("fail", 0)),
        str(stopped),
        str(sum(told["other_readings"].values())),
        str(cases.get("unsupported", 0)),
        clauses,
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge what is named, and renew the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *implementations()])
    parser.add_argument("--report", type=Path, help="a report of the one that is named, instead of a run")
    told = parser.parse_args(arguments)
    PUBLISHED.mkdir(exist_ok=True)
    for name in told.names:
        row = implementations()[name]
        if not told.report and (lacking := missing(row)):
            print(f"{name}: {', '.join(lacking)} is not there: {row['install']}", file=sys.stderr)
            return 2
        text = json.dumps(summary(row, read(told.report) if told.report else judged(row)), indent=1)
        (PUBLISHED / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
    (PUBLISHED / "README.md").write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
